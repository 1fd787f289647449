//! Our own process around an agent, and how it is started.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use gt_core::command_template::expand;
use gt_core::schedule::{Run, RunEnd, RunId, RunState, Workplace};
use gt_core::time::format_duration;
use gt_executors::process::ProcessError;
use gt_executors::runs::{
    Agent, AgentEnd, Asked, Liveness, OnEnd, Order, RunFiles, Supervision, Supervisors,
    ask_to_cancel, become_detached, end_orphan, next_order, say,
};

use super::claim::{Claim, WorkOrder, claim};
use super::finish::{exec_failed, finish};
use super::prompt::prompt;
use crate::dispatch::{SchedulerSettings, SpawnError, Spawner};
use crate::{Actor, OperationError, Result, Town};

/// What a supervisor tells whoever started it.
const STARTED: &str = "started";
const BUSY: &str = "busy: ";
const FAILED: &str = "failed: ";

/// Has `gt worker exec <run>` supervise runs, which goes on without us.
pub struct ProcessSpawner {
    program: PathBuf,
    root: PathBuf,
    runs: PathBuf,
    /// How long a supervisor may take to say that it has started.
    patience: Duration,
    supervisors: Supervisors,
}

impl ProcessSpawner {
    /// A spawner for this town that starts copies of `program`, and tells when one of their runs has ended,
    /// which frees its slot.
    pub fn new(town: &Town, program: PathBuf, on_end: Option<OnEnd>) -> Self {
        let (root, runs) = (town.root().to_owned(), town.runs_directory());
        let supervisors = Supervisors::new(on_end);
        Self { program, root, runs, patience: Duration::ZERO, supervisors }
    }

    /// Sets how long a supervisor may take to say that it has started.
    pub fn set_patience(&mut self, patience: Duration) {
        self.patience = patience;
    }
}

impl Spawner for ProcessSpawner {
    fn spawn(&self, run: &Run) -> std::result::Result<(), SpawnError> {
        let id = run.id.to_string();
        // What the supervisor writes down is done by the agent, as far as others are concerned.
        let words = ["--actor", &run.agent, "worker", "exec", &id, "--stay"].map(OsStr::new);
        let arguments: Vec<&OsStr> =
            ["-C".as_ref(), self.root.as_os_str()].into_iter().chain(words).collect();
        let order = Order {
            program: &self.program,
            arguments: &arguments,
            environment: &[],
            line: &format!("{id} {}", run.agent),
            files: &RunFiles::of(&self.runs, &id),
        };
        let failed = |error: String| SpawnError::Failed(error);
        let line = self
            .supervisors
            .begin(&order, self.patience)
            .map_err(|error| failed(explained(&error)))?;
        let Some(line) = line else {
            // If it wants the run later after all, it is refused: the start is taken back before.
            let patience = format_duration(self.patience);
            return Err(failed(format!("its supervisor said nothing for {patience}")));
        };
        match line.as_str() {
            STARTED => Ok(()),
            "" => Err(failed("its supervisor ended without a word".to_owned())),
            other => Err(match (other.strip_prefix(BUSY), other.strip_prefix(FAILED)) {
                (Some(why), _) => SpawnError::Busy(why.to_owned()),
                (None, Some(why)) => failed(why.to_owned()),
                (None, None) => failed(other.to_owned()),
            }),
        }
    }
}

/// An error with its cause.
fn explained(error: &ProcessError) -> String {
    match error {
        ProcessError::Start { program, source } => format!("cannot start {program}: {source}"),
        ProcessError::Failed { .. } => error.to_string(),
    }
}

/// Tells whoever started this supervisor that it cannot do its work. If somebody was told more already, this
/// is not heard.
pub fn say_failed(why: &str) {
    say(&format!("{FAILED}{why}"));
}

/// Carries out runs for whoever started us, one after the other, until they have no more: each order is a run
/// and its agent. What cannot be carried out ends it.
pub fn supervise_all(mut town: Town, first: &RunId) -> Result<()> {
    let mut supervision = Supervision::default();
    carry_out(&town, first, &mut supervision)?;
    while let Some(order) = next_order() {
        let (run, agent) = order.split_once(' ').unwrap_or((&order, ""));
        let id = RunId::parse(run)?;
        town = town.acting_as(Actor { name: agent.to_owned(), owner: String::new() }, None);
        carry_out(&town, &id, &mut supervision)?;
    }
    Ok(())
}

/// Carries out a run from its claim to its end: what `gt worker exec` does. Takes the run's lock, compares
/// and swaps, executes the agent, stays with it, and writes down how it ended.
pub fn supervise(town: &Town, id: &RunId) -> Result<()> {
    carry_out(town, id, &mut Supervision::default())
}

fn carry_out(town: &Town, id: &RunId, supervision: &mut Supervision) -> Result<()> {
    let failed = |action| {
        move |source| OperationError::File { action, path: PathBuf::from(id.to_string()), source }
    };
    become_detached().map_err(failed("detach from the terminal of"))?;
    let files = RunFiles::of(&town.runs_directory(), &id.to_string());
    let Some(lock) = files.try_lock().map_err(failed("lock"))? else {
        say_failed(&format!("another supervisor has {id}"));
        return Ok(());
    };
    let settings = town.scheduler_settings()?;
    if let Some((earlier, why)) = earlier_run_alive(&town.runs_directory(), id) {
        end_if_cancelled(town, &earlier, settings.kill_grace)?;
        say(&format!("{BUSY}{why}"));
        return Ok(());
    }
    let order = match claim(town, id, &Workplace::default())? {
        Claim::Granted(order) => order,
        Claim::Refused(why) => {
            say_failed(&why);
            return Ok(());
        }
    };
    let ended = agent(town, &settings, &order).and_then(|agent| {
        supervision
            .stay_with(&files, &lock, &agent, settings.kill_grace, || say(STARTED))
            .map_err(|error| explained(&error))
    });
    match ended {
        Ok(end) => {
            let end = run_end(end);
            insist(|| finish(town, id, &end))?;
        }
        Err(why) => {
            insist(|| exec_failed(town, id, &why))?;
            say_failed(&why);
        }
    }
    Ok(())
}

/// How long apart the end of a run is told again to a store that is away, and how often.
const INSIST_PAUSE: Duration = Duration::from_secs(1);
const INSIST_MAX: u32 = 3600;

/// Writes down an end. The run's lock is held meanwhile, so a store that comes back learns what happened
/// before anybody can take the run for lost.
fn insist<T>(write: impl Fn() -> Result<T>) -> Result<T> {
    for _ in 0..INSIST_MAX {
        match write() {
            Err(error) if error.may_pass() => std::thread::sleep(INSIST_PAUSE),
            written => return written,
        }
    }
    write()
}

/// An earlier run of the same bead of which something is, or may be, left. The store lets only one be live, but
/// the processes of one that was cancelled may take their time.
fn earlier_run_alive(runs: &Path, id: &RunId) -> Option<(RunId, String)> {
    for epoch in (1..id.epoch).rev() {
        let earlier = RunId { bead: id.bead.clone(), epoch };
        let files = RunFiles::of(runs, &earlier.to_string());
        match files.liveness() {
            Ok(Liveness::Held) => {
                let why = format!("{earlier} has not ended yet");
                return Some((earlier, why));
            }
            Err(error) => {
                let lock = files.lock_path();
                let why = format!(
                    "cannot tell from {} whether {earlier} has ended: {error}",
                    lock.display()
                );
                return Some((earlier, why));
            }
            // Its agent was begun, and that only after everything before it was gone.
            Ok(Liveness::Free) if files.output_path().exists() => return None,
            Ok(Liveness::Free | Liveness::NeverTaken) => {}
        }
    }
    None
}

/// Ends what is left of an earlier run that was cancelled in the store alone: whoever did so may have died
/// before they could end its processes.
fn end_if_cancelled(town: &Town, earlier: &RunId, grace: Duration) -> Result<()> {
    let run = town.read(|reader| Ok(reader.run(earlier)?))?;
    if run.is_some_and(|run| run.state == RunState::Cancelled) {
        let files = RunFiles::of(&town.runs_directory(), &earlier.to_string());
        // What cannot be ended keeps the bead busy, and shows as a run that is over and has processes.
        if !matches!(ask_to_cancel(&files), Ok(Asked::Told)) {
            let _ = end_orphan(&files, grace);
        }
    }
    Ok(())
}

/// The program that works on a run.
fn agent(
    town: &Town,
    settings: &SchedulerSettings,
    order: &WorkOrder,
) -> std::result::Result<Agent, String> {
    let WorkOrder { run, bead, context } = order;
    let template = settings.commands.get(&run.rig);
    let template = template.ok_or_else(|| format!("the rig {} has no command", run.rig))?;
    let id = run.id.to_string();
    let values = [("bead", bead.id.as_str()), ("run", id.as_str()), ("title", bead.title.as_str())];
    let argv = expand(template, &values).map_err(|invalid| invalid.to_string())?;
    let (rig, accounts) = town
        .read(|reader| Ok((reader.rig(run.rig.as_str())?, reader.accounts()?)))
        .map_err(|error| error.to_string())?;
    let rig = rig.ok_or_else(|| format!("the rig {} is gone", run.rig))?;
    let mut environment = vec![
        ("GT_TOWN_ROOT".to_owned(), town.root().display().to_string()),
        ("GT_RIG".to_owned(), run.rig.to_string()),
        ("GT_RUN".to_owned(), id),
        ("GT_ROLE".to_owned(), run.agent.clone()),
        ("BD_ACTOR".to_owned(), run.agent.clone()),
        // It goes before the other, and whoever dispatches may have it set for themselves.
        ("BEADS_ACTOR".to_owned(), run.agent.clone()),
        ("GIT_AUTHOR_NAME".to_owned(), run.agent.clone()),
    ];
    if let Some(name) = run.place.as_ref().and_then(|place| place.as_str().rsplit('/').next()) {
        environment.push(("GT_POLECAT".to_owned(), name.to_owned()));
    }
    let parameters = &context.parameters;
    for (name, value) in [
        ("GT_AGENT", parameters.runtime.as_deref()),
        ("GT_MERGE", parameters.merge.map(gt_core::schedule::Merge::as_str)),
        ("GT_BASE_BRANCH", parameters.base_branch.as_deref()),
        ("GT_MODE", parameters.ralph.then_some("ralph")),
        ("GT_NO_MERGE", parameters.no_merge.then_some("1")),
        ("GT_REVIEW_ONLY", parameters.review_only.then_some("1")),
    ] {
        environment.extend(value.map(|value| (name.to_owned(), value.to_owned())));
    }
    if let Some(account) = accounts.into_iter().find(|account| account.handle == run.account) {
        environment.extend(account.environment);
        if !account.config_dir.is_empty() {
            environment.push(("CLAUDE_CONFIG_DIR".to_owned(), account.config_dir));
        }
    }
    let prompt = prompt(bead, run, context).into_bytes();
    Ok(Agent { argv, directory: town.root().join(&rig.path), environment, prompt })
}

/// What the end of an agent means for its run.
pub(super) fn run_end(end: AgentEnd) -> RunEnd {
    match end {
        AgentEnd::Exited(0) => RunEnd {
            exit_code: Some(0),
            ..RunEnd::without_status(RunState::Done, "it ended with exit status 0")
        },
        AgentEnd::Exited(code) => RunEnd {
            exit_code: Some(code),
            ..RunEnd::without_status(RunState::Failed, format!("it ended with exit status {code}"))
        },
        AgentEnd::Signalled(signal) => RunEnd {
            exit_signal: Some(signal),
            ..RunEnd::without_status(RunState::Lost, format!("it was killed by signal {signal}"))
        },
        AgentEnd::Cancelled => RunEnd::without_status(RunState::Cancelled, "it was cancelled"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(epoch: u32) -> RunId {
        RunId::parse(&format!("gt-a#{epoch}")).unwrap()
    }

    #[test]
    fn an_agent_waits_for_whatever_may_be_left_of_an_earlier_run() {
        let runs = tempfile::tempdir().unwrap();
        let files = |epoch| RunFiles::of(runs.path(), &run(epoch).to_string());
        let busy = |epoch| earlier_run_alive(runs.path(), &run(epoch)).map(|(earlier, _)| earlier);
        assert_eq!(busy(9), None);

        let lock = files(3).try_lock().unwrap();
        assert_eq!(busy(9), Some(run(3)));
        assert_eq!(busy(3), None);
        drop(lock);

        // One that cannot be asked may be there.
        files(5).create().unwrap();
        let itself = files(5).lock_path();
        std::os::unix::fs::symlink(&itself, &itself).unwrap();
        let (earlier, why) = earlier_run_alive(runs.path(), &run(9)).unwrap();
        assert_eq!(earlier, run(5));
        assert!(why.contains("cannot tell") && why.contains("gt-a#5"), "{why}");

        // One whose agent has begun had made sure itself.
        drop(files(7).try_lock().unwrap());
        assert_eq!(busy(9), Some(run(5)));
        std::fs::write(files(7).output_path(), "").unwrap();
        assert_eq!(busy(9), None);
    }
}
