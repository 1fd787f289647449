//! Showing polecats.

use std::collections::BTreeSet;
use std::path::PathBuf;

use gt_core::runtime::TranscriptFormat;
use gt_core::schedule::{Polecat, Run, TreeState, WorkerPlace, session_name};
use gt_core::secret_mask::SecretMask;
use gt_core::{ExecutorKind, Rig};
use gt_executors::git::TreeStatus;
use gt_executors::tmux::{AttachCommand, Capture, Tmux, TmuxError};

use crate::runs::{RunOutput, has_screen, session_of_run, session_server};
use gt_beads::polecat_names::{live_run_at, named_polecat};
use gt_beads::run_records::resolve;
use gt_scheduling::processes::{LocalProcesses, ProcessProbe as _};
use gt_scheduling::runtimes::transcript_format;
use gt_town::parallel::execute;
use gt_town::tree_paths::Trees;
use gt_town::{OperationError, Result, Town};

/// How many trees git examines in parallel.
const PARALLEL_STATUS_MAX: usize = 4;

/// The activity of a polecat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PolecatState {
    /// It has a live run.
    Working,
    /// It has a tree, and waits for work.
    Idle,
    /// It has a warm tree, and waits for work.
    Warm,
    /// It has no tree; the next run makes it one.
    Absent,
}

impl PolecatState {
    /// Its name in output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Working => "working",
            Self::Idle => "idle",
            Self::Warm => "warm",
            Self::Absent => "absent",
        }
    }
}

/// A polecat with its related data.
#[derive(Debug, Clone)]
pub struct ShownPolecat {
    /// The polecat.
    pub polecat: Polecat,
    /// Its activity.
    pub state: PolecatState,
    /// Its live run, else the last one it had.
    pub run: Option<Run>,
    /// The path of its tree, even if there is none.
    pub path: PathBuf,
    /// Whether its tree is in this directory of the town.
    pub is_here: bool,
    /// Its session, if it runs in one.
    pub session: Option<String>,
    /// Whether that session is there; nothing if tmux cannot say.
    pub session_alive: Option<bool>,
    /// The status of its tree, if that was asked and could be answered.
    pub status: Option<TreeStatus>,
}

/// All polecats, or those of a rig, by rig and name. With `dirty`, git is asked how each tree stands, which takes time.
pub fn polecats(town: &Town, rig: Option<&str>, dirty: bool) -> Result<Vec<ShownPolecat>> {
    let (rigs, polecats, runs) = town.read(|reader| {
        let only = rig.map(|name| gt_town::rig_names::require(reader, name)).transpose()?;
        let mut polecats = reader.polecats()?;
        polecats.retain(|one| only.as_ref().is_none_or(|rig| rig.slug == one.rig));
        let live = reader.live_runs()?;
        let run_of = |polecat: &Polecat| -> Result<Option<Run>> {
            let place = WorkerPlace::polecat(&polecat.rig, &polecat.name)?;
            match live.iter().find(|run| run.place.as_ref() == Some(&place)) {
                Some(run) => Ok(Some(run.clone())),
                None => {
                    Ok(polecat.last_run.as_ref().map(|id| reader.run(id)).transpose()?.flatten())
                }
            }
        };
        let runs = polecats.iter().map(run_of).collect::<Result<Vec<_>>>()?;
        Ok((reader.rigs()?, polecats, runs))
    })?;
    let sessions = Sessions::of(town, &rigs);
    let host = LocalProcesses::of(town)?.host().to_owned();
    let one = |(polecat, run): (Polecat, Option<Run>)| {
        let rig = rigs.iter().find(|rig| rig.slug == polecat.rig)?;
        let trees = Trees::of(town, rig)?;
        Some(shown(&trees, &sessions, &host, polecat, run))
    };
    let mut all: Vec<ShownPolecat> = polecats.into_iter().zip(runs).filter_map(one).collect();
    if dirty {
        let looked = execute(all, PARALLEL_STATUS_MAX, |one| {
            let has_tree = one.is_here && one.path.join(".git").exists();
            let rig = rigs.iter().find(|rig| rig.slug == one.polecat.rig).filter(|_| has_tree)?;
            Trees::of(town, rig)?.tree(&one.polecat.name).status().ok()
        });
        let with_status = |one: gt_town::parallel::FinishedItem<
            ShownPolecat,
            Option<TreeStatus>,
        >| { ShownPolecat { status: one.outcome, ..one.input } };
        all = looked.into_iter().map(with_status).collect();
    }
    Ok(all)
}

/// One polecat, with the status of its tree.
pub fn polecat(town: &Town, input: &str) -> Result<ShownPolecat> {
    let (rig, polecat) = named_polecat(town, input)?;
    let all = polecats(town, Some(rig.slug.as_str()), true)?;
    let found = all.into_iter().find(|one| one.polecat.name == polecat.name);
    found.ok_or_else(|| OperationError::rejected(format!("{input} was taken away meanwhile")))
}

fn shown(
    trees: &Trees<'_>,
    sessions: &Sessions,
    host: &str,
    polecat: Polecat,
    run: Option<Run>,
) -> ShownPolecat {
    let is_here = polecat.host == host;
    let is_live = run.as_ref().is_some_and(|run| run.state.is_live());
    let state = match (is_live, polecat.tree) {
        (true, _) => PolecatState::Working,
        (false, TreeState::Ready) if polecat.is_warm() => PolecatState::Warm,
        (false, TreeState::Ready) => PolecatState::Idle,
        (false, TreeState::Absent) => PolecatState::Absent,
    };
    let executor = run.as_ref().filter(|_| is_live).map_or(trees.rig.executor, |run| run.executor);
    let session =
        (executor == ExecutorKind::Tmux).then(|| session_name(&trees.rig.prefix, &polecat.name));
    let session_alive = match &session {
        Some(name) if is_here => sessions.has(name),
        _ => None,
    };
    let path = trees.tree(&polecat.name).path().to_owned();
    ShownPolecat { polecat, state, run, path, is_here, session, session_alive, status: None }
}

/// The sessions of a town, listed once for all polecats.
struct Sessions(Option<BTreeSet<String>>);

impl Sessions {
    fn of(town: &Town, rigs: &[Rig]) -> Self {
        if !rigs.iter().any(|rig| rig.executor == ExecutorKind::Tmux) {
            return Self(Some(BTreeSet::new()));
        }
        // Without tmux this is unknown; the rest is worth seeing all the same.
        let asked = Tmux::of_town(&session_server(town)).sessions();
        Self(asked.ok().map(BTreeSet::from_iter))
    }

    fn has(&self, name: &str) -> Option<bool> {
        self.0.as_ref().map(|names| names.contains(name))
    }
}

/// The run that `input` means: that of a polecat (`<rig>/<name>`, or its name), else of a bead, else itself.
pub fn run_of(town: &Town, input: &str) -> Result<Run> {
    let is_polecat = input.contains('/')
        || town.read(|reader| Ok(reader.polecats()?.iter().any(|one| one.name == input)))?;
    if !is_polecat {
        return resolve(town, input);
    }
    let (rig, polecat) = named_polecat(town, input)?;
    let place = WorkerPlace::polecat(&rig.slug, &polecat.name)?;
    let run = town.read(|reader| match live_run_at(reader, &place)? {
        Some(run) => Ok(Some(run)),
        None => Ok(polecat.last_run.as_ref().map(|id| reader.run(id)).transpose()?.flatten()),
    })?;
    run.ok_or_else(|| {
        OperationError::rejected(format!("{place} has had no run yet; gt sling <bead> {input}"))
    })
}

/// The place at which a person watches a worker and types to it.
#[derive(Debug)]
pub enum AttachPoint {
    /// The session of a worker that has a screen.
    Session(AttachCommand),
    /// The events of a live run without a screen.
    Transcript(Box<Run>),
}

/// The place at which a person watches a polecat, or the worker of a bead, while it works.
pub fn attach(town: &Town, input: &str) -> Result<AttachPoint> {
    let run = run_of(town, input)?;
    let instead = format!("gt polecat log {input} shows what it printed");
    if !run.is_on(LocalProcesses::of(town)?.host()) {
        return Err(OperationError::rejected(format!(
            "{} is on {}, in another directory of this town; attach there",
            run.id,
            run.host_name()
        )));
    }
    let is_live = run.state.is_live();
    if run.executor != ExecutorKind::Tmux && !is_live {
        return Err(OperationError::rejected(format!(
            "{} is {}, so there is nothing to attach to; {instead}",
            run.id,
            run.state.as_str()
        )));
    }
    if is_live && !has_screen(town, &run) {
        return Ok(AttachPoint::Transcript(Box::new(run)));
    }
    let name = session_of_run(town, &run)?;
    let tmux = Tmux::of_town(&session_server(town));
    if !is_live || !tmux.has(&name).map_err(|error| tmux_failed(&error))? {
        return Err(OperationError::rejected(format!(
            "there is no session {name}: {} is {}; {instead}",
            run.id,
            run.state.as_str()
        )));
    }
    tmux.attach_command(&name).map(AttachPoint::Session).map_err(|error| tmux_failed(&error))
}

fn tmux_failed(error: &TmuxError) -> OperationError {
    OperationError::rejected(error.to_string())
}

/// The current output of a worker.
#[derive(Debug, Clone)]
pub struct WorkerOutput {
    /// The run of the worker.
    pub run: Run,
    /// The session it comes from; nothing if it is the end of the output file.
    pub session: Option<String>,
    /// The format of the text.
    pub format: TranscriptFormat,
    /// The last lines.
    pub text: String,
}

/// The last lines of a worker: the screen of its session if it has one, else the end of its output.
pub fn peek(town: &Town, input: &str, lines: u32) -> Result<WorkerOutput> {
    let run = run_of(town, input)?;
    if run.executor == ExecutorKind::Tmux && run.state.is_live() {
        let name = session_of_run(town, &run)?;
        let tmux = Tmux::of_town(&session_server(town));
        let shown = tmux.capture(&name, Capture::Last(lines));
        // The output of a session that ends meanwhile is in its file, and a worker without a terminal shows nothing.
        if let Ok(text) = shown
            && !text.trim().is_empty()
        {
            let format = TranscriptFormat::Plain;
            let mask =
                SecretMask::of_accounts(&town.read(|reader| Ok(reader.accounts_to_mask()?))?);
            let text = mask.mask(&text).into_owned();
            return Ok(WorkerOutput { run, session: Some(name), format, text });
        }
    }
    let mut output = RunOutput::of(town, &run)?;
    output.skip_to_last(lines as usize)?;
    let text = String::from_utf8_lossy(&output.read_to_end()?).into_owned();
    let format = transcript_format(town, &run.runtime);
    Ok(WorkerOutput { run, session: None, format, text })
}
