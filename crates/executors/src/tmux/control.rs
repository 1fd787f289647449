//! One client in control mode, for callers with many commands.

use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, Read as _, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::invocation::InvocationFailure;
use super::protocol::{CommandReply, ControlLine, answer, command_line, parse};
use super::session::{Capture, SessionInfo, captured, capturing, listed, listing};
use super::{ANSWER_LIMIT, HIDDEN_MARK, SessionName, Tmux, TmuxError};
use crate::background::spawn;

/// One client in control mode: commands and answers over one process, each ten times faster than a call of
/// the tmux program.
///
/// A client must be attached to a session. This one has a hidden session of its own, in which
/// nothing happens; so it does not receive the output of the others, however much it is. The
/// session goes with the client.
#[derive(Debug)]
pub struct ControlClient {
    child: Child,
    commands: ChildStdin,
    answers: ChildStdout,
    /// The beginning of a line that is not complete.
    part: Vec<u8>,
    /// A random text that no pane can know.
    secret: String,
    /// How many commands were sent.
    asked: u64,
    /// Where the server is.
    socket: String,
    /// Nothing more can be asked: an answer is missing.
    is_lost: bool,
}

/// So that two clients of one process have different sessions.
static CLIENTS: AtomicU64 = AtomicU64::new(0);

impl ControlClient {
    /// Starts a client, and the server if there is none.
    pub(super) fn start(tmux: &Tmux) -> Result<Self, TmuxError> {
        tmux.with_prepared_server(|| Self::attach(tmux))
    }

    fn attach(tmux: &Tmux) -> Result<Self, InvocationFailure> {
        let number = CLIENTS.fetch_add(1, Ordering::Relaxed);
        let process = std::process::id();
        let session = format!("{HIDDEN_MARK}{process}{HIDDEN_MARK}{number}");
        let mut command = tmux.command();
        command
            .args(["-C", "show-options", "-gv", super::PREPARED, ";"])
            .args(["new-session", "-s", &session, "-x", "80", "-y", "24", "cat", "-", ";"])
            .args(["set-option", "-t", &format!("={session}"), "destroy-unattached", "on", ";"])
            .args(["set-option", "-s", "exit-empty", "on"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = spawn(&mut command)?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (commands, answers) =
            pipes.ok_or_else(|| io::Error::from(io::ErrorKind::BrokenPipe))?;
        let mut client = Self {
            child,
            commands,
            answers,
            part: Vec::new(),
            secret: format!("{:016x}", RandomState::new().hash_one(process)),
            asked: 0,
            socket: tmux.socket.clone(),
            is_lost: false,
        };
        match client.ask(&["display-message", "-p", ""]) {
            // It was let in to no server, or to one that did not know us.
            Err(InvocationFailure::NoServer) => Err(InvocationFailure::Unprepared),
            asked => asked.map(|_| client),
        }
    }

    /// Runs one command, each word of which means exactly itself, and returns the lines that it printed.
    pub fn run<W: AsRef<[u8]>>(&mut self, words: &[W]) -> Result<Vec<Vec<u8>>, TmuxError> {
        if words.is_empty() || words.iter().any(|word| word.as_ref().contains(&0)) {
            return Err(TmuxError::Words);
        }
        self.ask(words).map_err(|failure| match failure {
            InvocationFailure::NoServer => TmuxError::ServerGone,
            failure => super::error_of(&self.socket, failure),
        })
    }

    /// All sessions, like [`Tmux::sessions`].
    pub fn sessions(&mut self) -> Result<Vec<SessionInfo>, TmuxError> {
        let lines = self.run(&listing())?;
        Ok(listed(lines.iter().map(Vec::as_slice)))
    }

    /// The contents of the pane of a session, like [`Tmux::capture`].
    pub fn capture(&mut self, name: &str, capture: Capture) -> Result<String, TmuxError> {
        let name = SessionName::new(name)?;
        let lines =
            self.ask(&capturing(&name.pane(), capture)).map_err(|failure| match failure {
                InvocationFailure::NoServer => TmuxError::ServerGone,
                failure => name.error_of(&self.socket, failure),
            })?;
        Ok(captured(&lines.join(&b'\n'), capture))
    }

    fn ask<W: AsRef<[u8]>>(&mut self, words: &[W]) -> Result<Vec<Vec<u8>>, InvocationFailure> {
        if self.is_lost {
            return Err(InvocationFailure::NoServer);
        }
        // Until the answer is complete, the next answer may belong to an earlier command.
        self.is_lost = true;
        self.asked += 1;
        let secret = format!("{}-{}", self.secret, self.asked);
        let mut line = command_line(words);
        line.extend(command_line(&["display-message", "-p", &secret]));
        self.write_command(&line)?;
        let heard = self.read_reply(secret.as_bytes())?;
        self.is_lost = false;
        match heard {
            CommandReply::Lines(lines) => Ok(lines),
            CommandReply::Complaint(lines) => Err(InvocationFailure::of_lines(&lines)),
        }
    }

    fn write_command(&mut self, line: &[u8]) -> Result<(), InvocationFailure> {
        match self.commands.write_all(line).and_then(|()| self.commands.flush()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                Err(InvocationFailure::NoServer)
            }
            said => said.map_err(InvocationFailure::Io),
        }
    }

    /// Reads lines until they hold the answer that ends with this secret.
    fn read_reply(&mut self, secret: &[u8]) -> Result<CommandReply, InvocationFailure> {
        let deadline = Instant::now() + ANSWER_LIMIT;
        let mut lines: Vec<Vec<u8>> = Vec::new();
        let mut more = [0; 16 * 1024];
        loop {
            wait_for(&self.answers, deadline.saturating_duration_since(Instant::now()))?;
            let read = match self.answers.read(&mut more) {
                Ok(0) => return Err(InvocationFailure::NoServer),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                read => read?,
            };
            for piece in more[..read].split_inclusive(|byte| *byte == b'\n') {
                self.part.extend_from_slice(piece);
                if self.part.pop_if(|byte| *byte == b'\n').is_none() {
                    continue;
                }
                let line = std::mem::take(&mut self.part);
                match parse(&line) {
                    // Before the answer begins. Inside of it a line can look like anything.
                    ControlLine::Exit | ControlLine::Output { .. } | ControlLine::Other
                        if lines.is_empty() =>
                    {
                        continue;
                    }
                    _ => lines.push(line),
                }
                let is_last =
                    matches!(lines.last().map(|line| parse(line)), Some(ControlLine::End(_)));
                if let Some(answer) = is_last.then(|| answer(&lines, secret)).flatten() {
                    return Ok(answer);
                }
            }
        }
    }
}

impl Drop for ControlClient {
    fn drop(&mut self) {
        // An empty line is how a client says goodbye; one whose server hangs must not make us wait.
        let _ = self.commands.write_all(b"\n");
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until there is something to read.
fn wait_for(pipe: &ChildStdout, limit: Duration) -> Result<(), InvocationFailure> {
    let timeout = Timespec::try_from(limit).ok();
    match poll(&mut [PollFd::new(pipe, PollFlags::IN)], timeout.as_ref()) {
        Ok(0) => Err(InvocationFailure::Silent),
        // Interrupted is as good as woken: the reader waits again.
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(InvocationFailure::Io(error.into())),
    }
}
