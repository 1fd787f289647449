//! What the world says about runs, when nobody has written it down.

use std::path::PathBuf;
use std::time::Duration;

use gt_core::decide::Traces;
use gt_core::schedule::{Run, RunEnd, RunId, RunState};
use gt_core::{ExecutorKind, Timestamp};
use gt_executors::runs::{
    AgentEnd, Liveness, RunFiles, Suspect, awake_since, end_strays, lost_its_session,
    rebooted_since, starter_is_alive, strays_of,
};

use super::cancel::end_processes;
use super::conclude::run_end;
use super::remote::reach;
use crate::hosts::host_of;
use crate::town::DIRECTORY;
use crate::{OperationError, Result, Town};

/// Whether something is alive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Alive {
    /// It is.
    Yes,
    /// It is not, and never will be again.
    No,
    /// Nobody can say.
    Unknown,
}

/// Whoever can be asked before anything is declared lost. A simulator has a world of its own.
pub trait World: Sync {
    /// This machine, as runs name it.
    fn host(&self) -> &str;
    /// Whether whoever began this run, and did not see its worker take it, is still at it.
    fn starter_of(&self, run: &Run) -> Alive;
    /// Whether any process of this run is left.
    fn worker_of(&self, run: &Run) -> Alive;
    /// Sees to it that somebody here stays with this run, if it goes on elsewhere and nobody does. Returns at once.
    fn rejoin(&self, _run: &Run) -> Result<()> {
        Ok(())
    }
    /// Ends every process of this run, asking first and killing after `grace`, and returns when none is left.
    fn end_worker(&self, run: &Run, grace: Duration) -> Result<()>;
    /// Ends the processes of these runs that hold no lock, and returns for each the processes that are left: those that do
    /// not end, and those that are only seen and may belong to it. Nothing is looked for where a supervisor has done so.
    fn clear(&self, runs: &[&Run]) -> Vec<Vec<i32>> {
        vec![Vec::new(); runs.len()]
    }
    /// How the worker of this run ended, if whoever stayed with it saw it and could not write it down.
    fn agent_end_of(&self, _run: &Run) -> Option<AgentEnd> {
        None
    }
    /// What that means for a run without a tree.
    fn end_of(&self, run: &Run) -> Option<RunEnd> {
        self.agent_end_of(run).map(run_end)
    }
    /// When the worker of this run said something last, or could be heard again.
    fn last_output_of(&self, _run: &Run) -> Option<Timestamp> {
        None
    }
    /// Since when this machine goes on without a gap, as far as anybody knows who looked before: while it slept nobody
    /// could do anything, and while its clock was wrong nobody could tell, so that nothing before counts.
    fn awake_since(&self, _now: Timestamp) -> Option<Timestamp> {
        None
    }
    /// What is known of the end of this run, of which no process is left.
    fn traces_of(&self, _run: &Run) -> Traces {
        Traces::default()
    }
}

/// How long what is left of a run that nobody looks after may take to end by itself. Others wait for it.
pub(crate) const STRAY_GRACE: Duration = Duration::from_secs(2);

/// Says which processes keep a run that has lost its supervisor and its agent from being recovered.
pub(super) fn strays_are_left(run: &RunId, left: &[i32]) -> String {
    let left: Vec<String> = left.iter().map(ToString::to_string).collect();
    format!(
        "processes that belong to {run}, or are in its tree, are left: {}; end them, or have them leave the tree \
         (ps -o pid,user,tty,lstart,args -p {})",
        left.join(", "),
        left.join(",")
    )
}

/// The file that says since when this machine goes on without a gap.
const AWAKE: &str = "awake";

/// This machine.
#[derive(Debug, Clone)]
pub struct RealWorld {
    host: String,
    root: PathBuf,
    starters: PathBuf,
    runs: PathBuf,
}

impl RealWorld {
    /// The world as this town sees it.
    pub fn of(town: &Town) -> Result<Self> {
        let (host, root) = (host_of(town)?, town.root().to_owned());
        Ok(Self { host, root, starters: town.starters_directory(), runs: town.runs_directory() })
    }

    pub(crate) fn files_of(&self, run: &Run) -> RunFiles {
        RunFiles::of(&self.runs, &run.id.to_string())
    }

    /// This run, if its supervisor was cut off on this machine since that was started: then processes of it may be left that
    /// hold no lock.
    pub(crate) fn suspect_of(&self, run: &Run) -> Option<Suspect> {
        let is_here = run.is_on(&self.host) && run.executor != ExecutorKind::Ssh;
        if !is_here || rebooted_since(&run.starter) {
            return None;
        }
        let tree = Some(&run.workplace.tree).filter(|tree| !tree.is_empty());
        let tree = tree.map(|tree| self.root.join(tree));
        let suspect = Suspect::of(&self.files_of(run), &run.id.to_string(), tree)?;
        Some(suspect.trusting_control_group())
    }

    /// The processes that are left of a run whose supervisor was cut off and whose lock is free.
    pub(crate) fn strays_of(&self, run: &Run) -> Vec<i32> {
        let suspects: Vec<Suspect> = self.suspect_of(run).into_iter().collect();
        strays_of(&self.root, &suspects).iter().flat_map(gt_executors::runs::Strays::all).collect()
    }
}

impl World for RealWorld {
    fn host(&self) -> &str {
        &self.host
    }

    fn starter_of(&self, run: &Run) -> Alive {
        if !run.is_on(&self.host) {
            return Alive::Unknown;
        }
        match starter_is_alive(&self.starters, &run.starter) {
            Ok(true) => Alive::Yes,
            Ok(false) => Alive::No,
            Err(_) => Alive::Unknown,
        }
    }

    fn worker_of(&self, run: &Run) -> Alive {
        if !run.is_on(&self.host) {
            return Alive::Unknown;
        }
        if run.executor == ExecutorKind::Ssh {
            return reach::alive(&self.files_of(run), run);
        }
        match (self.files_of(run).liveness(), run.state) {
            (Ok(Liveness::Held), _) => Alive::Yes,
            // A machine that lost its power may have lost the file too, and no process outlives it.
            (Ok(Liveness::NeverTaken), _) if rebooted_since(&run.starter) => Alive::No,
            // Whoever took it had its lock. If that is missing, somebody has removed it, and its processes may
            // well be there.
            (Ok(Liveness::NeverTaken), RunState::Running | RunState::Blocked) | (Err(_), _) => {
                Alive::Unknown
            }
            (Ok(Liveness::Free | Liveness::NeverTaken), _) => Alive::No,
        }
    }

    fn rejoin(&self, run: &Run) -> Result<()> {
        if !run.is_on(&self.host) || run.executor != ExecutorKind::Ssh {
            return Ok(());
        }
        reach::rejoin(&self.root, run, &self.files_of(run))
    }

    fn end_worker(&self, run: &Run, grace: Duration) -> Result<()> {
        if run.executor == ExecutorKind::Ssh {
            return reach::end(&self.root, run, &self.files_of(run), grace);
        }
        end_processes(&self.files_of(run), run, grace)?;
        match self.clear(&[run]).into_iter().next() {
            Some(left) if !left.is_empty() => {
                Err(OperationError::rejected(strays_are_left(&run.id, &left)))
            }
            _ => Ok(()),
        }
    }

    fn clear(&self, runs: &[&Run]) -> Vec<Vec<i32>> {
        let suspects: Vec<Option<Suspect>> = runs.iter().map(|run| self.suspect_of(run)).collect();
        let asked: Vec<Suspect> = suspects.iter().flatten().cloned().collect();
        let mut left = end_strays(&self.root, &asked, STRAY_GRACE).into_iter();
        let left_of = |suspect: &Option<Suspect>| {
            let strays = suspect.as_ref().and_then(|_| left.next());
            strays.map(|strays| strays.all()).unwrap_or_default()
        };
        suspects.iter().map(left_of).collect()
    }

    fn agent_end_of(&self, run: &Run) -> Option<AgentEnd> {
        if !run.is_on(&self.host) {
            return None;
        }
        self.files_of(run).agent_end().ok().flatten()
    }

    fn last_output_of(&self, run: &Run) -> Option<Timestamp> {
        let files = self.files_of(run);
        // What a worker on another machine said while it could not be reached comes when it can.
        let line = if run.executor == ExecutorKind::Ssh { files.line_changed() } else { Ok(None) };
        files.last_output().ok().flatten().max(line.ok().flatten())
    }

    fn awake_since(&self, now: Timestamp) -> Option<Timestamp> {
        // What cannot be written down is not known, and a silence too many is told.
        awake_since(&self.root.join(DIRECTORY).join(AWAKE), now).ok().flatten()
    }

    fn traces_of(&self, run: &Run) -> Traces {
        if !run.is_on(&self.host) {
            return Traces::default();
        }
        Traces {
            rebooted: rebooted_since(&run.starter),
            server_gone: run.executor == ExecutorKind::Tmux
                && lost_its_session(&self.files_of(run)),
        }
    }
}

impl Town {
    /// Where the runs of this town keep their files.
    pub(crate) fn runs_directory(&self) -> PathBuf {
        self.root().join(DIRECTORY).join("runs")
    }

    /// Where the locks of those are who start runs.
    pub(crate) fn starters_directory(&self) -> PathBuf {
        self.root().join(DIRECTORY).join("starters")
    }
}
