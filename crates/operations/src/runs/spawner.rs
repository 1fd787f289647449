//! How supervisors are started: each executor's way.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use gt_core::schedule::{Run, RunId};
use gt_core::time::format_duration;
use gt_core::{ExecutorKind, Rig};
use gt_executors::runs::{
    Hearing, Liveness, OnEnd, OpenedSession, Order, Reopen, RunFiles, Supervisors, is_there,
};
use gt_executors::tmux::{Session, Tmux, TmuxError};

use super::left_over::{HOLDS, OF_A_RUN, STANDS_BY, put_aside};
use super::standby;
use super::supervise::{AWAY, BUSY, FAILED, STARTED};
use crate::dispatch::{SchedulerSettings, SpawnError, Spawner};
pub(super) use crate::error::with_causes;
use crate::identity::NOT_A_WORKER;
use crate::settings::{file_layers, layers_over};
use crate::trees::{Ahead, forget};
use crate::{Result, Town};

/// How long the session of whoever was in a place before may take to end, before another place is taken.
const LEAVING_MAX: Duration = Duration::from_secs(1);
/// How often it is looked whether it has.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// What a session runs: it waits for the supervisor, and has its terminal in the place of it. When the session goes away,
/// perhaps with the server of all sessions, this shell ends. The supervisor and its agent go on, and the supervisor opens
/// another session ([`reopening`]).
const SESSION_HOLDER: [&str; 3] = ["/bin/sh", "-c", "\"$0\" \"$@\"; exit"];

/// Has `gt worker exec <run>` supervise runs, which goes on without us: as a process of its own, or in a session.
pub struct RunSpawner {
    program: PathBuf,
    root: PathBuf,
    runs: PathBuf,
    /// What names our sessions' server.
    identity: String,
    supervisors: Supervisors,
    on_end: Option<OnEnd>,
    known: Mutex<Known>,
}

/// What may change from one pass to the next.
#[derive(Debug, Clone, Default)]
struct Known {
    /// How long a supervisor may take to say that it has started.
    patience: Duration,
    prefixes: Vec<(gt_core::RigSlug, gt_core::Prefix)>,
}

impl RunSpawner {
    /// A spawner for this town that starts copies of `program`, and tells when one of their runs has ended,
    /// which frees its slot.
    pub fn new(town: &Town, program: PathBuf, on_end: Option<OnEnd>) -> Self {
        Self {
            program,
            root: town.root().to_owned(),
            runs: town.runs_directory(),
            identity: session_server(town),
            supervisors: Supervisors::new(on_end.clone()),
            on_end,
            known: Mutex::default(),
        }
    }

    /// Reads what may have changed since the last pass, and gives the settings that are in force now.
    pub fn refresh(&self, town: &Town) -> Result<SchedulerSettings> {
        let files = file_layers(town)?;
        let (settings, rigs) = town.read(|reader| {
            Ok((SchedulerSettings::of(&layers_over(&files, reader)?)?, reader.rigs()?))
        })?;
        let prefixes = rigs.into_iter().map(|rig| (rig.slug, rig.prefix)).collect();
        *self.known() = Known { patience: settings.start_timeout, prefixes };
        Ok(settings)
    }

    /// Lets supervisors go that have had nothing to do for so long.
    pub fn dismiss_idle(&self, after: Duration) {
        self.supervisors.dismiss_idle(after);
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long a supervisor may take to say that it has started.
    fn patience(&self) -> Duration {
        self.known().patience
    }

    fn words(&self, run: &Run, more: &[&OsStr]) -> Vec<OsString> {
        let id = run.id.to_string();
        // What the supervisor writes down is done by the agent, as far as others are concerned.
        let words = ["--actor", &run.agent, "worker", "exec", &id].map(OsStr::new);
        words_of_supervisor(&self.root, words.iter().chain(more))
    }

    fn as_process(&self, run: &Run) -> std::result::Result<Option<String>, SpawnError> {
        let id = run.id.to_string();
        let words = self.words(run, &["--stay".as_ref()]);
        let arguments: Vec<&OsStr> = words.iter().map(OsString::as_os_str).collect();
        let order = Order {
            program: &self.program,
            arguments: &arguments,
            environment: &NOT_A_WORKER,
            line: &format!("{id} {}", run.agent),
            files: &RunFiles::of(&self.runs, &id),
        };
        self.supervisors
            .begin(&order, self.patience())
            .map_err(|error| SpawnError::Failed(with_causes(&error)))
    }

    fn in_session(&self, run: &Run) -> std::result::Result<Option<String>, SpawnError> {
        let failed = |error: &dyn std::error::Error| SpawnError::Failed(error.to_string());
        let files = RunFiles::of(&self.runs, &run.id.to_string());
        let hearing = Hearing::of(&files, self.on_end.clone()).map_err(|error| failed(&error))?;
        let name = self.session_of(run);
        let is_held = || matches!(files.liveness(), Ok(Liveness::Held));
        if standby::tell(&self.runs, &name, &run.id, &run.agent) {
            return Ok(hearing.first_line_within(self.patience(), is_held));
        }
        let tmux = Tmux::of_town(&self.identity);
        let voice = files.voice_path();
        let words = self.words(run, &[OF_A_RUN.as_ref(), voice.as_os_str()]);
        let words = SessionWords::new(&self.program, words);
        let first = Instant::now();
        let mut begun = begin_session(&tmux, &name, &self.root, &words);
        while matches!(begun, Err(TmuxError::Exists { .. })) {
            // What ended a moment ago leaves its session a moment later.
            if !put_aside(&tmux, &name).map_err(|error| failed(&error))? {
                if first.elapsed() > LEAVING_MAX {
                    break;
                }
                std::thread::sleep(LOOK_AGAIN);
            }
            begun = begin_session(&tmux, &name, &self.root, &words);
        }
        match begun {
            Ok(session) => {
                // The session may go away, with the server of all of them perhaps, before its supervisor is there.
                let is_anybody_there = || is_there(session.pane_pid) || is_held();
                Ok(hearing.first_line_within(self.patience(), is_anybody_there))
            }
            Err(TmuxError::Exists { name }) => {
                Err(self.busy(run, format!("the session {name} has not ended yet")))
            }
            Err(error) => Err(failed(&error)),
        }
    }

    /// What keeps a run: something of an earlier run of its bead, or else whoever had its place.
    fn busy(&self, run: &Run, why: String) -> SpawnError {
        let is_left = |epoch: u32| {
            let earlier = RunId { bead: run.id.bead.clone(), epoch };
            let files = RunFiles::of(&self.runs, &earlier.to_string());
            matches!(files.liveness(), Ok(Liveness::Free | Liveness::NeverTaken))
        };
        if run.place.is_some() && (1..run.id.epoch).all(is_left) {
            SpawnError::Taken(why)
        } else {
            SpawnError::Busy(why)
        }
    }

    /// The session of a run: that of its polecat, or one of its own.
    fn session_of(&self, run: &Run) -> String {
        let known = self.known();
        let prefix = known.prefixes.iter().find(|(rig, _)| *rig == run.rig);
        let prefix = prefix.map(|(_, prefix)| prefix);
        crate::trees::session_of(run, prefix)
    }
}

/// What our program is told that is to supervise in this town.
fn words_of_supervisor<'a>(
    root: &Path,
    words: impl IntoIterator<Item = &'a &'a OsStr>,
) -> Vec<OsString> {
    let first = ["-C".into(), root.as_os_str().to_owned()];
    first.into_iter().chain(words.into_iter().map(OsString::from)).collect()
}

/// What a session is started with.
pub(super) struct SessionWords(Vec<OsString>);

impl SessionWords {
    fn new(program: &Path, words: Vec<OsString>) -> Self {
        let holder = SESSION_HOLDER.into_iter().map(OsString::from);
        Self(holder.chain([program.as_os_str().to_owned()]).chain(words).collect())
    }

    /// A process that does nothing until this lock is free.
    fn holding(program: &Path, lock: &Path) -> Self {
        let words = HOLDS.map(OsString::from).into_iter();
        Self([program.into()].into_iter().chain(words).chain([lock.into()]).collect())
    }

    /// A supervisor that waits at a pipe.
    pub(super) fn standing_by(program: &Path, root: &Path, post: &Path) -> Self {
        let words = ["worker", "exec", STANDS_BY].map(OsStr::new);
        let words = words_of_supervisor(root, words.iter().chain([&post.as_os_str()]));
        Self::new(program, words)
    }
}

/// Begins a session of the town.
pub(super) fn begin_session(
    tmux: &Tmux,
    name: &str,
    root: &Path,
    words: &SessionWords,
) -> std::result::Result<Session, TmuxError> {
    let environment = NOT_A_WORKER.map(|(name, value)| (name.to_owned(), value.to_owned()));
    tmux.new_session(name, root, &environment, &words.0)
}

/// Opens a session for a run whose session has gone away, and holds it open until the run is over.
pub(super) fn reopening(town: &Town, run: &Run, rig: &Rig, program: &Path) -> Reopen {
    let tmux = Tmux::of_town(&session_server(town));
    let files = RunFiles::of(&town.runs_directory(), &run.id.to_string());
    let words = SessionWords::holding(program, &files.lock_path());
    let (root, name) = (town.root().to_owned(), crate::trees::session_of(run, Some(&rig.prefix)));
    Box::new(move || {
        let mut begun = begin_session(&tmux, &name, &root, &words);
        // A person may have opened a window in the session before its first one went away.
        if matches!(begun, Err(TmuxError::Exists { .. })) && put_aside(&tmux, &name).ok()? {
            begun = begin_session(&tmux, &name, &root, &words);
        }
        let Session { pane_pid, terminal, .. } = begun.ok()?;
        Some(OpenedSession { terminal, holder: pane_pid, server: tmux.server_process() })
    })
}

/// What tells the sessions of this town apart from those of others on this machine.
pub(crate) fn session_server(town: &Town) -> String {
    town.root().to_string_lossy().into_owned()
}

impl Spawner for RunSpawner {
    fn spawn_from(&self, town: &Town, run: &Run) -> std::result::Result<(), SpawnError> {
        // A session takes as long to begin as a tree to be prepared; other supervisors are there at once.
        let ahead = match run.executor {
            ExecutorKind::Tmux => Ahead::begin(town, run),
            ExecutorKind::Process | ExecutorKind::Ssh | ExecutorKind::Pull | ExecutorKind::None => {
                None
            }
        };
        let Some(ahead) = ahead else { return self.spawn(run) };
        let spawned = std::thread::scope(|scope| {
            scope.spawn(|| ahead.carry_out(&self.program));
            self.spawn(run)
        });
        if spawned.is_err() {
            forget(town, run);
        }
        spawned
    }

    fn spawn(&self, run: &Run) -> std::result::Result<(), SpawnError> {
        let failed = |error: String| SpawnError::Failed(error);
        let line = match run.executor {
            ExecutorKind::Tmux => self.in_session(run)?,
            ExecutorKind::Process | ExecutorKind::Ssh | ExecutorKind::Pull | ExecutorKind::None => {
                self.as_process(run)?
            }
        };
        let Some(line) = line else {
            // If it wants the run later after all, it is refused: the start is taken back before.
            let patience = format_duration(self.patience());
            return Err(failed(format!("its supervisor said nothing for {patience}")));
        };
        match line.as_str() {
            STARTED => Ok(()),
            "" => Err(failed("its supervisor ended without a word".to_owned())),
            away if away.starts_with(AWAY) => {
                Err(SpawnError::Busy(away.trim_start_matches(AWAY).to_owned()))
            }
            other => Err(match (other.strip_prefix(BUSY), other.strip_prefix(FAILED)) {
                (Some(why), _) => self.busy(run, why.to_owned()),
                (None, Some(why)) => failed(why.to_owned()),
                (None, None) => failed(other.to_owned()),
            }),
        }
    }
}
