//! Starts supervisors that outlive the process that starts them, and hears their messages.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::{Arc, OnceLock, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::RunFiles;
use super::cgroup::outside_control_group;
use super::control::{make_pipe_for_reading, open_if_read};
use crate::background::spawn;
use crate::process::{ProcessError, command};

/// Called when a supervisor that was started here has ended.
pub type OnEnd = Arc<dyn Fn() + Send + Sync>;

/// How the supervisor of a run is started.
#[derive(Debug, Clone, Copy)]
pub struct SupervisorCommand<'a> {
    /// The program that supervises.
    pub program: &'a Path,
    /// Its arguments.
    pub arguments: &'a [&'a OsStr],
    /// Variables that it gets besides ours.
    pub environment: &'a [(&'a str, &'a str)],
    /// The files of the run.
    pub files: &'a RunFiles,
}

impl SupervisorCommand<'_> {
    /// Starts the supervisor and returns the first line that it says: empty if it ended without one, nothing if it has said
    /// nothing within `limit`. `on_end` is called on another thread when it has ended.
    pub fn start(
        &self,
        limit: Duration,
        on_end: Option<OnEnd>,
    ) -> Result<Option<String>, ProcessError> {
        let answer = self.start_listening(on_end).map_err(|source| ProcessError::Start {
            program: self.program.display().to_string(),
            source,
        })?;
        match answer.recv_timeout(limit) {
            Ok(line) => Ok(Some(line)),
            Err(mpsc::RecvTimeoutError::Disconnected) => Ok(Some(String::new())),
            Err(mpsc::RecvTimeoutError::Timeout) => Ok(None),
        }
    }

    fn start_listening(&self, on_end: Option<OnEnd>) -> io::Result<mpsc::Receiver<String>> {
        let (tell, answer) = mpsc::channel();
        let (introduce, introduced) = mpsc::channel::<Child>();
        // The thread is started first, so that no supervisor is left that this process does not reap.
        thread::Builder::new().spawn(move || {
            if let Ok(child) = introduced.recv() {
                listen(child, &tell);
                drop(tell);
                if let Some(on_end) = on_end {
                    on_end();
                }
            }
        })?;
        // The thread receives until it has the child.
        let _ = introduce.send(self.spawn()?);
        Ok(answer)
    }

    /// Starts the process. Its complaints are appended to a file beside those of the runs.
    ///
    /// The supervisor itself calls [`become_detached`] first.
    fn spawn(&self) -> io::Result<Child> {
        self.files.create()?;
        let log = self.files.supervisor_log_path();
        let log = crate::private::options().append(true).create(true).open(log)?;
        let mut command = command(self.program);
        // No process group of its own: a process that leads one cannot begin a session.
        command
            .args(self.arguments)
            .envs(self.environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log);
        // A supervisor does not end with the run of the agent that asked for it.
        outside_control_group(|| spawn(&mut command))
    }
}

/// Passes on the first line that a supervisor says, and returns when it has ended.
fn listen(mut child: Child, tell: &mpsc::Sender<String>) {
    if let Some(voice) = child.stdout.take() {
        // The rest is read too, so that the pipe never fills up. The receiver may have lost patience.
        for line in BufReader::new(voice).split(b'\n').map_while(Result::ok) {
            let _ = tell.send(String::from_utf8_lossy(&line).into_owned());
        }
    }
    // The result of the run is in the store; here only the end of the process matters.
    let _ = child.wait();
}

/// The pipe for the answer of a supervisor in a session, whose standard output is a terminal that people see. `None` inside if no
/// process reads the pipe.
static VOICE: OnceLock<Option<File>> = OnceLock::new();

/// Has this supervisor write its answer to a pipe instead of its standard output.
pub fn speak_into(pipe: &Path) -> io::Result<()> {
    // The process that made the pipe may have been killed, and never reads it. The claim of the run decides then whether
    // the supervisor goes on, as when the reader ends later.
    let voice = open_if_read(pipe)?;
    // A second call would be a second supervisor in one process; the first one is heard.
    let _ = VOICE.set(voice);
    Ok(())
}

/// The answer of a supervisor to the process that started it: one line of JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "answer", content = "why")]
pub enum SupervisorAnswer {
    /// The agent is at work.
    Started,
    /// Something of an earlier run is still there.
    Busy(String),
    /// The origin cannot be reached.
    Away(String),
    /// The agent cannot be started.
    Failed(String),
}

impl SupervisorAnswer {
    /// Reads the line of a supervisor; nothing if it is no answer.
    pub fn parse(line: &str) -> Option<Self> {
        serde_json::from_str(line).ok()
    }
}

/// Answers the process that started this supervisor. If that is gone, the answer is not needed.
pub fn say(answer: &SupervisorAnswer) {
    if let Ok(line) = serde_json::to_string(answer) {
        say_line(&line);
    }
}

/// Says one line to the process that started this one. If that is gone, the line is not needed.
pub(super) fn say_line(line: &str) {
    let line = format!("{}\n", line.replace('\n', " "));
    if let Some(voice) = VOICE.get() {
        let _ = voice.as_ref().map(|mut voice| voice.write_all(line.as_bytes()));
        return;
    }
    let mut out = io::stdout().lock();
    let _ = out.write_all(line.as_bytes()).and_then(|()| out.flush());
}

/// The lines of a run's supervisor that was not started by us, but for us: in a session, say.
///
/// Dropping it ends the listening if no supervisor has the pipe open; a supervisor that speaks is
/// heard to its end.
#[derive(Debug)]
pub struct SupervisorListener {
    answer: mpsc::Receiver<String>,
    pipe: PathBuf,
}

/// How often to check that there is still a process that could speak. Most have spoken before the
/// first check.
const SPEAKER_CHECK_INTERVAL: Duration = Duration::from_millis(250);

/// How long no supervisor may be found before it counts as gone: for a moment it has left its
/// parent and not yet taken its lock.
const SPEAKER_ABSENCE_MAX: Duration = Duration::from_secs(5);

impl SupervisorListener {
    /// Makes the pipe of a run into which its supervisor is to speak ([`speak_into`]), and listens. `on_end` is called
    /// when the supervisor has ended.
    pub fn of(files: &RunFiles, on_end: Option<OnEnd>) -> io::Result<Self> {
        files.create()?;
        let path = files.voice_path();
        let pipe = make_pipe_for_reading(&path)?;
        let (tell, answer) = mpsc::channel();
        let hearing = Self { answer, pipe: path.clone() };
        thread::Builder::new().spawn(move || {
            // No supervisor has opened the pipe yet, and perhaps none will: it is read when there
            // is something.
            let wanted = PollFlags::IN;
            let _ = poll(&mut [PollFd::new(&pipe, wanted)], None);
            let mut listener = Some(tell);
            for line in BufReader::new(&pipe).split(b'\n') {
                match line {
                    Ok(line) => {
                        if let Some(listener) = listener.take() {
                            let _ = listener.send(String::from_utf8_lossy(&line).into_owned());
                        }
                    }
                    // It has nothing more to say for now.
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        let _ = poll(&mut [PollFd::new(&pipe, wanted)], None);
                    }
                    Err(_) => break,
                }
            }
            drop(listener);
            let _ = std::fs::remove_file(&path);
            if let Some(on_end) = on_end {
                on_end();
            }
        })?;
        Ok(hearing)
    }

    /// The first line that it says: empty if it ended without a word, nothing if it has said nothing when the time is up.
    /// `has_speaker` tells whether there is a process that could still say one: a pipe that was
    /// never opened does not tell whether it will be.
    pub fn first_line_within(
        &self,
        limit: Duration,
        has_speaker: impl Fn() -> bool,
    ) -> Option<String> {
        let began = Instant::now();
        let mut seen = began;
        loop {
            let rest = limit.saturating_sub(began.elapsed());
            match self.answer.recv_timeout(rest.min(SPEAKER_CHECK_INTERVAL)) {
                Ok(line) => return Some(line),
                Err(mpsc::RecvTimeoutError::Disconnected) => return Some(String::new()),
                Err(mpsc::RecvTimeoutError::Timeout) if rest.is_zero() => return None,
                Err(mpsc::RecvTimeoutError::Timeout) => {}
            }
            if has_speaker() {
                seen = Instant::now();
            } else if seen.elapsed() >= SPEAKER_ABSENCE_MAX {
                return Some(String::new());
            }
        }
    }
}

impl Drop for SupervisorListener {
    fn drop(&mut self) {
        // Opened and closed: if no other process has the pipe open, the listening thread sees its
        // end. If that fails, the thread has ended already.
        drop(open_if_read(&self.pipe));
    }
}

/// Whether a process is there: one that has ended and was not collected counts.
pub fn is_there(process: u32) -> bool {
    let pid = i32::try_from(process).ok().and_then(rustix::process::Pid::from_raw);
    pid.is_some_and(|pid| rustix::process::test_kill_process(pid) != Err(Errno::SRCH))
}

/// Leaves the session and the terminal of our parent, so that their end is not ours.
pub fn become_detached() -> io::Result<()> {
    match rustix::process::setsid() {
        // We lead a process group: a person started us by hand, and wants to be able to interrupt us.
        Ok(_) | Err(Errno::PERM) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
