//! Starting supervisors, by executor.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::time::{Duration, Instant};

use gt_core::schedule::{Run, RunId};
use gt_core::time::format_duration;
use gt_core::{ExecutorKind, Rig};
use gt_executors::runs::{
    Liveness, OnEnd, OpenedSession, Reopen, RunFiles, SupervisorAnswer, SupervisorCommand,
    SupervisorListener, is_there,
};
use gt_executors::tmux::{Tmux, TmuxError, TmuxSession};

use super::run_cleanup::{HOLD_COMMAND, RUN_SESSION_FLAG, put_aside};
use gt_scheduling::dispatch::{SpawnError, Spawner};
pub(super) use gt_town::error::with_causes;
use gt_town::identity::NOT_A_WORKER;
use gt_town::{OperationError, Town};

/// How long the previous session in a place may take to end, before another place is taken.
const SESSION_END_WAIT_MAX: Duration = Duration::from_secs(1);
/// How often the spawner checks whether it has ended.
const SESSION_END_POLL_INTERVAL: Duration = Duration::from_millis(5);

/// The command of a session: a shell that waits for the supervisor and holds the terminal in its place. When the
/// session goes away, perhaps with the tmux server, this shell ends. The supervisor and its agent go on, and the
/// supervisor opens another session ([`reopening`]).
const SESSION_HOLDER: [&str; 3] = ["/bin/sh", "-c", "\"$0\" \"$@\"; exit"];

/// Has `gt worker exec <run>` supervise runs, which outlives this process: as a process of its own, or in a session.
pub struct RunSpawner<'a> {
    town: &'a Town,
    program: &'a Path,
    on_end: Option<OnEnd>,
}

impl<'a> RunSpawner<'a> {
    /// A spawner for this town that starts copies of `program`.
    pub fn new(town: &'a Town, program: &'a Path) -> Self {
        Self { town, program, on_end: None }
    }

    /// Calls `on_end` when the supervisor of a run that was started here has ended, which frees its slot.
    #[must_use]
    pub fn with_on_end(mut self, on_end: OnEnd) -> Self {
        self.on_end = Some(on_end);
        self
    }

    fn files_of(&self, run: &RunId) -> RunFiles {
        RunFiles::of(&self.town.runs_directory(), &run.to_string())
    }

    fn words(&self, run: &Run, more: &[&OsStr]) -> Vec<OsString> {
        let id = run.id.to_string();
        // The changes that the supervisor makes show the agent as their author.
        let words = ["--actor", &run.agent, "worker", "exec", &id].map(OsStr::new);
        let first = ["-C".into(), self.town.root().as_os_str().to_owned()];
        first.into_iter().chain(words.iter().chain(more).map(OsString::from)).collect()
    }

    fn as_process(
        &self,
        run: &Run,
        timeout: Duration,
    ) -> std::result::Result<Option<String>, SpawnError> {
        let words = self.words(run, &[]);
        let arguments: Vec<&OsStr> = words.iter().map(OsString::as_os_str).collect();
        let command = SupervisorCommand {
            program: self.program,
            arguments: &arguments,
            environment: &NOT_A_WORKER,
            files: &self.files_of(&run.id),
        };
        command
            .start(timeout, self.on_end.clone())
            .map_err(|error| SpawnError::Failed(with_causes(&error)))
    }

    fn in_session(
        &self,
        run: &Run,
        timeout: Duration,
    ) -> std::result::Result<Option<String>, SpawnError> {
        let failed = |error: &dyn std::error::Error| SpawnError::Failed(error.to_string());
        let files = self.files_of(&run.id);
        let hearing =
            SupervisorListener::of(&files, self.on_end.clone()).map_err(|error| failed(&error))?;
        let rig = self.town.read(|reader| Ok(reader.rig(run.rig.as_str())?));
        let rig = rig.map_err(|error| store_failed(&error))?;
        let name = gt_town::tree_paths::session_of(run, rig.as_ref().map(|rig| &rig.prefix));
        let tmux = Tmux::of_town(&session_server(self.town));
        let voice = files.voice_path();
        let words = self.words(run, &[RUN_SESSION_FLAG.as_ref(), voice.as_os_str()]);
        let words = SessionCommand::new(self.program, words);
        let root = self.town.root();
        let first = Instant::now();
        let mut begun = begin_session(&tmux, &name, root, &words);
        while matches!(begun, Err(TmuxError::Exists { .. })) {
            // A run that has just ended leaves its session a moment later.
            if !put_aside(&tmux, &name).map_err(|error| failed(&error))? {
                if first.elapsed() > SESSION_END_WAIT_MAX {
                    break;
                }
                std::thread::sleep(SESSION_END_POLL_INTERVAL);
            }
            begun = begin_session(&tmux, &name, root, &words);
        }
        match begun {
            Ok(session) => {
                // The session may go away, perhaps with the tmux server, before its supervisor is there.
                let can_answer =
                    || is_there(session.pane_pid) || matches!(files.liveness(), Ok(Liveness::Held));
                Ok(hearing.first_line_within(timeout, can_answer))
            }
            Err(TmuxError::Exists { name }) => {
                Err(self.busy(run, format!("the session {name} has not ended yet")))
            }
            Err(error) => Err(failed(&error)),
        }
    }

    /// The obstacle of a run: a process of an earlier run of its bead, or else the previous run in its place.
    fn busy(&self, run: &Run, why: String) -> SpawnError {
        let is_left = |epoch: u32| {
            let earlier = RunId { bead: run.id.bead.clone(), epoch };
            let liveness = self.files_of(&earlier).liveness();
            matches!(liveness, Ok(Liveness::Free | Liveness::NeverTaken))
        };
        if run.place.is_some() && (1..run.id.epoch).all(is_left) {
            SpawnError::Taken(why)
        } else {
            SpawnError::Busy(why)
        }
    }
}

/// A store that cannot be read is no fault of the work: the start is tried again.
fn store_failed(error: &OperationError) -> SpawnError {
    SpawnError::Busy(with_causes(error))
}

/// The command line of a session.
struct SessionCommand(Vec<OsString>);

impl SessionCommand {
    fn new(program: &Path, words: Vec<OsString>) -> Self {
        let holder = SESSION_HOLDER.into_iter().map(OsString::from);
        Self(holder.chain([program.as_os_str().to_owned()]).chain(words).collect())
    }

    /// A process that does nothing until this lock is free.
    fn holding(program: &Path, lock: &Path) -> Self {
        let words = HOLD_COMMAND.map(OsString::from).into_iter();
        Self([program.into()].into_iter().chain(words).chain([lock.into()]).collect())
    }
}

/// Begins a session of the town.
fn begin_session(
    tmux: &Tmux,
    name: &str,
    root: &Path,
    words: &SessionCommand,
) -> std::result::Result<TmuxSession, TmuxError> {
    let environment = NOT_A_WORKER.map(|(name, value)| (name.to_owned(), value.to_owned()));
    tmux.new_session(name, root, &environment, &words.0)
}

/// Opens a session for a run whose session has gone away, and holds it open until the run is over.
pub(super) fn reopening(town: &Town, run: &Run, rig: &Rig, program: &Path) -> Reopen {
    let tmux = Tmux::of_town(&session_server(town));
    let files = RunFiles::of(&town.runs_directory(), &run.id.to_string());
    let words = SessionCommand::holding(program, &files.lock_path());
    let (root, name) =
        (town.root().to_owned(), gt_town::tree_paths::session_of(run, Some(&rig.prefix)));
    Box::new(move || {
        let mut begun = begin_session(&tmux, &name, &root, &words);
        // A person may have opened a window in the session before its first one went away.
        if matches!(begun, Err(TmuxError::Exists { .. })) && put_aside(&tmux, &name).ok()? {
            begun = begin_session(&tmux, &name, &root, &words);
        }
        let TmuxSession { pane_pid, terminal, .. } = begun.ok()?;
        Some(OpenedSession { terminal, holder: pane_pid, server: tmux.server_process() })
    })
}

/// The name of the tmux server of this town, different from those of other towns on this machine.
pub(crate) fn session_server(town: &Town) -> String {
    town.root().to_string_lossy().into_owned()
}

impl Spawner for RunSpawner<'_> {
    fn spawn(&self, run: &Run) -> std::result::Result<(), SpawnError> {
        let failed = |error: String| SpawnError::Failed(error);
        let settings = self.town.scheduler_settings().map_err(|error| store_failed(&error))?;
        let timeout = settings.start_timeout;
        let line = match run.executor {
            ExecutorKind::Tmux => self.in_session(run, timeout)?,
            ExecutorKind::Process | ExecutorKind::Ssh | ExecutorKind::Pull | ExecutorKind::None => {
                self.as_process(run, timeout)?
            }
        };
        let Some(line) = line else {
            // If it wants the run later after all, it is refused: the start is taken back before.
            let timeout = format_duration(timeout);
            return Err(failed(format!("its supervisor said nothing for {timeout}")));
        };
        match SupervisorAnswer::parse(&line) {
            Some(SupervisorAnswer::Started) => Ok(()),
            Some(SupervisorAnswer::Away(why)) => Err(SpawnError::Busy(why)),
            Some(SupervisorAnswer::Busy(why)) => Err(self.busy(run, why)),
            Some(SupervisorAnswer::Failed(why)) => Err(failed(why)),
            None if line.is_empty() => {
                Err(failed("its supervisor ended without a word".to_owned()))
            }
            None => Err(failed(line)),
        }
    }
}
