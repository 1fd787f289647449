//! The processes of runs: whether they are alive, how they ended, and how to end them.

mod ending;

pub use ending::unreadable;

use std::path::PathBuf;
use std::time::Duration;

use gt_core::decide::LossFacts;
use gt_core::schedule::{Run, RunEnd, RunId, RunState};
use gt_core::{ExecutorKind, Timestamp};
use gt_executors::runs::{
    AgentEnd, Liveness, RunFiles, Suspect, awake_since, end_strays, lost_its_session,
    rebooted_since, starter_is_alive, strays_of,
};

use self::ending::end_processes;
use gt_town::hosts::host_of;
use gt_town::town::DIRECTORY;
use gt_town::{OperationError, Result, Town};

/// Whether a process is alive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Alive {
    /// It is.
    Yes,
    /// It is not, and never will be again.
    No,
    /// This machine cannot tell.
    Unknown,
}

/// Asks about the processes of runs and ends them. Recovery asks it before it declares a run lost; a simulator has its own.
pub trait ProcessProbe: Sync {
    /// This machine, as runs name it.
    fn host(&self) -> &str;
    /// Whether the process that began this run, and has not seen its worker claim it, is still alive.
    fn starter_of(&self, run: &Run) -> Alive;
    /// Whether any process of this run is left.
    fn worker_of(&self, run: &Run) -> Alive;
    /// Ends every process of this run, asking first and killing after `grace`, and returns when none is left.
    fn end_worker(&self, run: &Run, grace: Duration) -> Result<()>;
    /// Ends the processes of these runs that hold no lock, and returns for each run the processes that are left:
    /// those that do not end, and those that may belong to it. Runs whose supervisor has done so are skipped.
    fn clear(&self, runs: &[&Run]) -> Vec<Vec<i32>> {
        vec![Vec::new(); runs.len()]
    }
    /// How the worker of this run ended, if its supervisor saw it and could not record it.
    fn agent_end_of(&self, _run: &Run) -> Option<AgentEnd> {
        None
    }
    /// The end of a run without a tree that follows from it.
    fn end_of(&self, run: &Run) -> Option<RunEnd> {
        self.agent_end_of(run).map(run_end)
    }
    /// When the worker of this run printed something last.
    fn last_output_of(&self, _run: &Run) -> Option<Timestamp> {
        None
    }
    /// Since when this machine has run without a gap, as far as earlier looks show. Time before does not count: while
    /// it slept no process could act, and while its clock was wrong no time was right.
    fn awake_since(&self, _now: Timestamp) -> Option<Timestamp> {
        None
    }
    /// The traces of the end of this run, of which no process is left.
    fn traces_of(&self, _run: &Run) -> LossFacts {
        LossFacts::default()
    }
}

/// How long the processes of a run without a supervisor may take to end by themselves. Others wait for it.
pub const STRAY_GRACE: Duration = Duration::from_secs(2);

/// Says which processes keep a run that has lost its supervisor and its agent from being recovered.
pub fn strays_are_left(run: &RunId, left: &[i32]) -> String {
    let left: Vec<String> = left.iter().map(ToString::to_string).collect();
    format!(
        "processes that belong to {run}, or are in its tree, are left: {}; end them, or have them leave the tree \
         (ps -o pid,user,tty,lstart,args -p {})",
        left.join(", "),
        left.join(",")
    )
}

/// The file that says since when this machine has run without a gap.
const AWAKE_FILE: &str = "awake";

/// The processes of this machine.
#[derive(Debug, Clone)]
pub struct LocalProcesses {
    host: String,
    root: PathBuf,
    starters: PathBuf,
    runs: PathBuf,
}

impl LocalProcesses {
    /// The processes of this town.
    pub fn of(town: &Town) -> Result<Self> {
        let (host, root) = (host_of(town)?, town.root().to_owned());
        Ok(Self { host, root, starters: town.starters_directory(), runs: town.runs_directory() })
    }

    /// The files of a run on this machine.
    pub fn files_of(&self, run: &Run) -> RunFiles {
        RunFiles::of(&self.runs, &run.id.to_string())
    }

    /// This run, if its supervisor was cut off on this machine since the last boot: then processes of it may be left
    /// that hold no lock.
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
    pub fn strays_of(&self, run: &Run) -> Vec<i32> {
        let suspects: Vec<Suspect> = self.suspect_of(run).into_iter().collect();
        strays_of(&self.root, &suspects).iter().flat_map(gt_executors::runs::Strays::all).collect()
    }
}

impl ProcessProbe for LocalProcesses {
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
        match (self.files_of(run).liveness(), run.state) {
            (Ok(Liveness::Held), _) => Alive::Yes,
            // Its agent is on another machine, which its supervisor alone, of an earlier program, reaches.
            (Ok(Liveness::Free | Liveness::NeverTaken), RunState::Running | RunState::Blocked)
                if run.executor == ExecutorKind::Ssh =>
            {
                Alive::Unknown
            }
            // A machine that lost its power may have lost the file too, and no process outlives it.
            (Ok(Liveness::NeverTaken), _) if rebooted_since(&run.starter) => Alive::No,
            // A claimed run had its lock. If the file is missing, it was removed, and the processes may still be
            // there.
            (Ok(Liveness::NeverTaken), RunState::Running | RunState::Blocked) | (Err(_), _) => {
                Alive::Unknown
            }
            (Ok(Liveness::Free | Liveness::NeverTaken), _) => Alive::No,
        }
    }

    fn end_worker(&self, run: &Run, grace: Duration) -> Result<()> {
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
        self.files_of(run).last_output().ok().flatten()
    }

    fn awake_since(&self, now: Timestamp) -> Option<Timestamp> {
        // If it cannot be recorded it is not known, and one silence too many is reported.
        awake_since(&self.root.join(DIRECTORY).join(AWAKE_FILE), now).ok().flatten()
    }

    fn traces_of(&self, run: &Run) -> LossFacts {
        if !run.is_on(&self.host) {
            return LossFacts::default();
        }
        LossFacts {
            rebooted: rebooted_since(&run.starter),
            server_gone: run.executor == ExecutorKind::Tmux
                && lost_its_session(&self.files_of(run)),
        }
    }
}

/// The end of a run that follows from the end of its agent alone.
pub fn run_end(end: AgentEnd) -> RunEnd {
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
