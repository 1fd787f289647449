//! Starting supervisors that go on without us, and giving them one run after the other.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::RunFiles;
use super::cgroup::outside_control_group;
use super::control::make_pipe_for_reading;
use crate::background::spawn;
use crate::process::{ProcessError, command};

/// What a supervisor says when its run is over and it can have another.
const ENDED: &str = "ended";

/// What is done when a run that was begun here has ended, or its supervisor has.
pub type OnEnd = Arc<dyn Fn() + Send + Sync>;

/// The supervisors that were started here. Each has one run at a time; one whose run has ended gets the next
/// instead of a new process. All of them outlive us, and those without a run end when we do.
#[derive(Clone, Default)]
pub struct Supervisors {
    known: Arc<Mutex<HashMap<u32, Supervisor>>>,
    on_end: Option<OnEnd>,
}

/// A supervisor that is alive as far as we know, by its process number.
struct Supervisor {
    orders: ChildStdin,
    /// Who waits for the next thing it says; nobody once it has answered.
    listener: Option<mpsc::Sender<String>>,
    /// Since when it has had nothing to do.
    idle_since: Option<Instant>,
}

/// A run that a supervisor is to take.
#[derive(Debug, Clone, Copy)]
pub struct Order<'a> {
    /// The program that supervises.
    pub program: &'a Path,
    /// Its arguments, if it has to be started for this.
    pub arguments: &'a [&'a OsStr],
    /// Variables that it gets besides ours, if it has to be started for this.
    pub environment: &'a [(&'a str, &'a str)],
    /// What one that is there already is told: one line without its end.
    pub line: &'a str,
    /// The files of the run.
    pub files: &'a RunFiles,
}

impl Supervisors {
    /// None yet. `on_end` is called, on another thread, whenever one of them can have another run or is gone.
    pub fn new(on_end: Option<OnEnd>) -> Self {
        Self { known: Arc::default(), on_end }
    }

    /// Gives a run to a supervisor and returns the first line that it says: empty if it ended without a
    /// word, nothing if it has said nothing when the time is up.
    pub fn begin(
        &self,
        order: &Order<'_>,
        limit: Duration,
    ) -> Result<Option<String>, ProcessError> {
        let answer = match self.tell_one(order.line) {
            Some(answer) => answer,
            None => self.start(order).map_err(|source| ProcessError::Start {
                program: order.program.display().to_string(),
                source,
            })?,
        };
        match answer.recv_timeout(limit) {
            Ok(line) => Ok(Some(line)),
            Err(mpsc::RecvTimeoutError::Disconnected) => Ok(Some(String::new())),
            Err(mpsc::RecvTimeoutError::Timeout) => Ok(None),
        }
    }

    /// Lets those go that have had nothing to do for so long. Whoever stays for weeks does not keep as many as were
    /// needed once.
    pub fn dismiss_idle(&self, after: Duration) {
        // One whose pipe is closed ends.
        self.known().retain(|_, supervisor| {
            supervisor.idle_since.is_none_or(|since| since.elapsed() < after)
        });
    }

    fn known(&self) -> MutexGuard<'_, HashMap<u32, Supervisor>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells one that has nothing to do. Those that turn out to be gone are forgotten.
    fn tell_one(&self, line: &str) -> Option<mpsc::Receiver<String>> {
        let mut known = self.known();
        loop {
            let (&number, supervisor) =
                known.iter_mut().find(|(_, supervisor)| supervisor.idle_since.is_some())?;
            let (tell, answer) = mpsc::channel();
            supervisor.idle_since = None;
            supervisor.listener = Some(tell);
            // A line is shorter than what a pipe takes at once, and an idle supervisor has read all others.
            if supervisor.orders.write_all(format!("{line}\n").as_bytes()).is_ok() {
                return Some(answer);
            }
            known.remove(&number);
        }
    }

    fn start(&self, order: &Order<'_>) -> io::Result<mpsc::Receiver<String>> {
        let (tell, answer) = mpsc::channel();
        // The thread comes first: a supervisor that nobody collects is not started.
        let (introduce, introduced) = mpsc::channel::<(Child, ChildStdout)>();
        let this = self.clone();
        thread::Builder::new().spawn(move || {
            if let Ok((child, voice)) = introduced.recv() {
                this.listen(child, voice);
            }
        })?;
        let mut child = start(order)?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (orders, voice) = pipes.ok_or(io::ErrorKind::BrokenPipe)?;
        let supervisor = Supervisor { orders, listener: Some(tell), idle_since: None };
        self.known().insert(child.id(), supervisor);
        // The thread waits for this alone.
        let _ = introduce.send((child, voice));
        Ok(answer)
    }

    /// Hears what a supervisor says, to its end.
    fn listen(&self, mut child: Child, voice: ChildStdout) {
        let number = child.id();
        for line in BufReader::new(voice).split(b'\n') {
            let Ok(line) = line else { break };
            let line = String::from_utf8_lossy(&line).into_owned();
            let is_over = line == ENDED;
            if let Some(supervisor) = self.known().get_mut(&number) {
                supervisor.idle_since = is_over.then(Instant::now);
                if let Some(listener) = supervisor.listener.take() {
                    // Whoever has lost patience does not listen any more.
                    let _ = listener.send(line);
                }
            }
            if is_over {
                self.tell_end();
            }
        }
        // Before it is collected: then its number may be that of the next.
        self.known().remove(&number);
        // It says in the store what came of its run; here only its end matters.
        let _ = child.wait();
        self.tell_end();
    }

    fn tell_end(&self) {
        if let Some(on_end) = &self.on_end {
            on_end();
        }
    }
}

/// Where a supervisor speaks whose standard output is a terminal that people look at.
static VOICE: OnceLock<File> = OnceLock::new();

/// Makes this supervisor speak into a pipe instead of its standard output, to its end.
pub fn speak_into(pipe: &Path) -> io::Result<()> {
    // A second call would be a second supervisor in one process; the first one is heard.
    let _ = VOICE.set(File::options().write(true).open(pipe)?);
    Ok(())
}

/// Says one line to whoever started this supervisor. If they are gone, nobody needs it.
pub fn say(line: &str) {
    if let Some(mut voice) = VOICE.get() {
        let _ = voice.write_all(format!("{}\n", line.replace('\n', " ")).as_bytes());
        return;
    }
    let mut out = io::stdout().lock();
    let _ = out.write_all(line.replace('\n', " ").as_bytes());
    let _ = out.write_all(b"\n").and_then(|()| out.flush());
}

/// Says that the run is over, and returns the line with the next order; nothing if there is none, because
/// whoever started this supervisor is gone or has no use for it.
pub fn next_order() -> Option<String> {
    say(ENDED);
    let mut line = String::new();
    // Not buffered beyond the line, as far as we are concerned: there is never more than one.
    match io::stdin().lock().read_line(&mut line) {
        Ok(_) if line.ends_with('\n') => Some(line.trim_end_matches('\n').to_owned()),
        Ok(_) | Err(_) => None,
    }
}

/// What the supervisor of a run says that was not started by us, but for us: in a session, say.
///
/// Dropping it ends the listening if nobody has spoken and nobody is about to; a supervisor that speaks is heard to its end.
#[derive(Debug)]
pub struct Hearing {
    answer: mpsc::Receiver<String>,
    pipe: PathBuf,
}

/// How often it is looked whether anybody is there who could speak. Most have spoken before the first time.
const LOOK_FOR_SPEAKER_EVERY: Duration = Duration::from_millis(250);

/// How long nobody may be there before that is believed: a supervisor is nobody's child, and has not yet taken its lock, for
/// a moment.
const NOBODY_FOR: Duration = Duration::from_secs(5);

impl Hearing {
    /// Makes the pipe of a run into which its supervisor is to speak ([`speak_into`]), and listens. `on_end` is called
    /// when the supervisor has ended.
    pub fn of(files: &RunFiles, on_end: Option<OnEnd>) -> io::Result<Self> {
        files.create()?;
        let path = files.voice_path();
        let pipe = make_pipe_for_reading(&path)?;
        let (tell, answer) = mpsc::channel();
        let hearing = Self { answer, pipe: path.clone() };
        thread::Builder::new().spawn(move || {
            // Nobody has spoken yet, and nobody may ever: the pipe is read when there is something.
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
    /// `is_anybody_there` tells whether there is somebody who could still say one: a pipe that nobody has opened does not
    /// tell whether somebody will.
    pub fn first_line_within(
        &self,
        limit: Duration,
        is_anybody_there: impl Fn() -> bool,
    ) -> Option<String> {
        let began = Instant::now();
        let mut seen = began;
        loop {
            let rest = limit.saturating_sub(began.elapsed());
            match self.answer.recv_timeout(rest.min(LOOK_FOR_SPEAKER_EVERY)) {
                Ok(line) => return Some(line),
                Err(mpsc::RecvTimeoutError::Disconnected) => return Some(String::new()),
                Err(mpsc::RecvTimeoutError::Timeout) if rest.is_zero() => return None,
                Err(mpsc::RecvTimeoutError::Timeout) => {}
            }
            if is_anybody_there() {
                seen = Instant::now();
            } else if seen.elapsed() >= NOBODY_FOR {
                return Some(String::new());
            }
        }
    }
}

impl Drop for Hearing {
    fn drop(&mut self) {
        // Opened and closed: if nobody else has the pipe open, whoever listens hears its end. Nobody listens any more if
        // that fails.
        let at_once = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
        drop(File::options().write(true).custom_flags(at_once).open(&self.pipe));
    }
}

/// Whether a process is there: one that has ended and was not collected counts.
pub fn is_there(process: u32) -> bool {
    let pid = i32::try_from(process).ok().and_then(rustix::process::Pid::from_raw);
    pid.is_some_and(|pid| rustix::process::test_kill_process(pid) != Err(Errno::SRCH))
}

/// Starts the supervisor of a run. Its complaints are appended to a file beside those of the runs.
///
/// The supervisor itself calls [`become_detached`] first.
fn start(order: &Order<'_>) -> io::Result<Child> {
    order.files.create()?;
    let log = order.files.supervisor_log_path();
    let log = crate::private::options().append(true).create(true).open(log)?;
    let mut command = command(order.program);
    // No process group of its own: whoever leads one cannot begin a session.
    command
        .args(order.arguments)
        .envs(order.environment.iter().copied())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(log);
    // A supervisor does not end with the run of the agent that asked for it.
    outside_control_group(|| spawn(&mut command))
}

/// Leaves the session and the terminal of whoever started us, so that their end is not ours.
pub fn become_detached() -> io::Result<()> {
    match rustix::process::setsid() {
        // We lead a process group: a person started us by hand, and wants to be able to interrupt us.
        Ok(_) | Err(Errno::PERM) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
