//! A line to another machine.

use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::RemoteSite;
use super::protocol::{FromHome, FromThere, Hello, PROTOCOL};
use crate::background::{nameless_file, spawn};
use crate::calls::{MessageBuffer, send};
use crate::process::command;

/// How long the other machine has to greet.
const GREETING_PATIENCE: Duration = Duration::from_mins(1);

/// How long our program there has to take a lock, or to end earlier runs first.
const ANSWER_PATIENCE: Duration = Duration::from_mins(2);

/// How much a shell over there may print before our program greets.
const NOISE_BYTES_MAX: usize = 1 << 20;

/// How much error output of `ssh` and the shell over there is kept.
const WORDS_BYTES_MAX: u64 = 4096;

/// Why there is no line, or none any more.
#[derive(Debug, thiserror::Error)]
pub enum SshConnectionError {
    /// The machine, or our program on it, cannot be reached.
    #[error("{host} cannot be reached: {why}")]
    Unreachable {
        /// The machine.
        host: String,
        /// The reason.
        why: String,
    },
    /// It speaks another language.
    #[error(
        "gt {version} on {host} speaks protocol {theirs} and this one speaks {PROTOCOL}; install the same gt on \
         both machines"
    )]
    Stranger {
        /// The machine.
        host: String,
        /// Which program is there.
        version: String,
        /// Its version of the protocol.
        theirs: u32,
    },
}

/// Speaks into a line, from several threads if need be.
#[derive(Debug, Clone)]
pub(super) struct ConnectionWriter(Arc<Mutex<ChildStdin>>);

impl ConnectionWriter {
    pub(super) fn say(&self, message: &FromHome, payload: &[u8]) -> io::Result<()> {
        send(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner), message, payload)
    }
}

/// A line to our program on another machine. Runs over there go on when it is dropped.
#[derive(Debug)]
pub struct SshConnection {
    host: String,
    child: Child,
    out: ChildStdout,
    voice: ConnectionWriter,
    heard: MessageBuffer,
    complaints: File,
}

impl SshConnection {
    /// Calls the machine and waits for its greeting. `scratch` is a directory for temporary files.
    pub fn dial(site: &RemoteSite, scratch: &Path) -> Result<Self, SshConnectionError> {
        let unreachable =
            |why: String| SshConnectionError::Unreachable { host: site.host.clone(), why };
        let mut line = Self::start(site, scratch).map_err(|error| {
            let program = site.command.first().map_or("ssh", String::as_str);
            unreachable(format!("cannot start {program}: {error}"))
        })?;
        let hello = match line.greeting() {
            Ok(Some(hello)) => hello,
            Ok(None) => return Err(unreachable(line.complaint())),
            Err(error) => return Err(unreachable(error.to_string())),
        };
        if hello.protocol != PROTOCOL {
            let Hello { protocol: theirs, version } = hello;
            return Err(SshConnectionError::Stranger { host: site.host.clone(), version, theirs });
        }
        Ok(line)
    }

    fn start(site: &RemoteSite, scratch: &Path) -> io::Result<Self> {
        let Some((program, options)) = site.command.split_first() else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the command is empty"));
        };
        let complaints = nameless_file(scratch)?;
        let mut ssh = command(program);
        ssh.args(options)
            .args(["--", &site.host])
            .arg(format!("{} worker remote", site.gt))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(complaints.try_clone()?);
        let mut child = spawn(&mut ssh)?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (stdin, out) = pipes.ok_or(io::ErrorKind::BrokenPipe)?;
        let voice = ConnectionWriter(Arc::new(Mutex::new(stdin)));
        let (host, heard) = (site.host.clone(), MessageBuffer::default());
        Ok(Self { host, child, out, voice, heard, complaints })
    }

    fn greeting(&mut self) -> io::Result<Option<Hello>> {
        let began = Instant::now();
        loop {
            while let Some(line) = self.heard.line() {
                if let Some(hello) = Hello::parse(&String::from_utf8_lossy(&line)) {
                    return Ok(Some(hello));
                }
            }
            let left = GREETING_PATIENCE.saturating_sub(began.elapsed());
            if left.is_zero() || self.heard.len() > NOISE_BYTES_MAX {
                return Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    "gt over there does not greet",
                ));
            }
            self.wait(left);
            if !self.listen()? {
                return Ok(None);
            }
        }
    }

    /// Says something.
    pub fn say(&self, message: &FromHome, payload: &[u8]) -> Result<(), SshConnectionError> {
        self.voice.say(message, payload).map_err(|error| self.broken(&error.to_string()))
    }

    pub(super) fn voice(&self) -> ConnectionWriter {
        self.voice.clone()
    }

    /// The next message, waited for as long as an answer may take.
    pub(super) fn answer(&mut self) -> Result<FromThere, SshConnectionError> {
        let began = Instant::now();
        loop {
            if let Some((message, _)) = self.message()? {
                return Ok(message);
            }
            let left = ANSWER_PATIENCE.saturating_sub(began.elapsed());
            if left.is_zero() {
                return Err(self.broken("gt over there does not answer"));
            }
            self.wait(left);
            self.hear()?;
        }
    }

    /// The next message, if there is a whole one.
    pub(super) fn message(&mut self) -> Result<Option<(FromThere, Vec<u8>)>, SshConnectionError> {
        self.heard.message().map_err(|error| self.broken(&error.to_string()))
    }

    /// Hears what there is to be heard. Only to be called when there is something.
    pub(super) fn hear(&mut self) -> Result<(), SshConnectionError> {
        match self.listen() {
            Ok(true) => Ok(()),
            Ok(false) => {
                let why = self.complaint();
                Err(self.broken(&why))
            }
            Err(error) => Err(self.broken(&error.to_string())),
        }
    }

    /// Reads once; false at the end. Does not wait if there is nothing.
    fn listen(&mut self) -> io::Result<bool> {
        let mut polled = [PollFd::new(&self.out, PollFlags::IN)];
        let is_readable = poll(&mut polled, Some(&Timespec::default()))? > 0;
        if !is_readable {
            return Ok(true);
        }
        let mut more = vec![0; 128 << 10];
        let read = self.out.read(&mut more)?;
        self.heard.extend(&more[..read]);
        Ok(read > 0)
    }

    fn wait(&self, limit: Duration) {
        let timeout = Timespec::try_from(limit).ok();
        // The reason why the wait ended does not matter: the caller looks again.
        let _ = poll(&mut [PollFd::new(&self.out, PollFlags::IN)], timeout.as_ref());
    }

    fn broken(&self, why: &str) -> SshConnectionError {
        SshConnectionError::Unreachable { host: self.host.clone(), why: why.to_owned() }
    }

    /// The last words of `ssh`, or of the shell over there.
    fn complaint(&mut self) -> String {
        // It has closed its output, and ends.
        let status = self.child.wait().map(|status| status.to_string()).unwrap_or_default();
        let mut words = String::new();
        // If the words cannot be read, the exit status still tells.
        let _ = self.complaints.rewind();
        let _ = (&self.complaints).take(WORDS_BYTES_MAX).read_to_string(&mut words);
        let said = words.lines().map(str::trim).rfind(|line| !line.is_empty());
        said.map_or_else(|| format!("ssh ended ({status})"), str::to_owned)
    }
}

impl AsFd for SshConnection {
    /// Can be read from when there is something to be heard.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.out.as_fd()
    }
}

impl Drop for SshConnection {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
