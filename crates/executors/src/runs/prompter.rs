//! A program that types the prompt of an agent which cannot be given it otherwise, and sees to it that it arrives.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::process::{ChildStdout, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::Pid;

use super::agent::prompt_file;
use super::files::Keyboard;
use crate::background::spawn;
use crate::process::command;

/// The program that types the prompt of an agent on a terminal. It reads the prompt, and prints
/// [`ARRIVED`] or, in another line, the error. While it runs no other process types.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompter {
    /// The program.
    pub program: PathBuf,
    /// Its arguments, without `--supervisor` and the process that the session was started with.
    pub arguments: Vec<OsString>,
}

/// The message of a prompter that did its work.
pub const ARRIVED: &str = "arrived";

/// A prompter at work.
#[derive(Debug)]
pub(super) struct Prompting {
    voice: ChildStdout,
    said: Vec<u8>,
}

impl Prompter {
    /// Starts it for the session that was started with this process. It is one of our children, and ends with the agent if it
    /// has not before.
    pub(super) fn start(
        &self,
        prompt: &[u8],
        keyboard: Keyboard,
        process: Pid,
    ) -> io::Result<Prompting> {
        let mut program = command(&self.program);
        program
            .args(&self.arguments)
            .args(["--supervisor", &process.as_raw_pid().to_string()])
            .stdin(prompt_file(prompt)?)
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        // The supervisor collects all of the agent's children, and this one too.
        let mut child = keyboard.handed_to(|| spawn(&mut program))?;
        let voice = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(Prompting { voice, said: Vec::new() })
    }
}

impl Prompting {
    /// The result, once that is known. Only to be called when there is something to read.
    pub(super) fn verdict(&mut self) -> Option<Result<(), String>> {
        let mut more = [0; 4096];
        match rustix::io::read(&self.voice, &mut more) {
            Ok(read) if read > 0 => {
                self.said.extend_from_slice(&more[..read]);
                None
            }
            Err(Errno::INTR) => None,
            Ok(_) | Err(_) => {
                let said = String::from_utf8_lossy(&self.said);
                Some(match said.trim() {
                    ARRIVED => Ok(()),
                    "" => {
                        Err("the program that types its prompt ended without a message".to_owned())
                    }
                    why => Err(why.to_owned()),
                })
            }
        }
    }
}

impl Prompting {
    /// The result, if that is known before the time is up.
    pub(super) fn verdict_within(mut self, limit: Duration) -> Result<(), String> {
        let begun = Instant::now();
        while let Some(left) = limit.checked_sub(begun.elapsed()) {
            let timeout = Timespec::try_from(left).ok();
            let mut polled = [PollFd::new(&self, PollFlags::IN)];
            let is_spoken = poll(&mut polled, timeout.as_ref()).is_ok_and(|ready| ready > 0);
            if let Some(verdict) = is_spoken.then(|| self.verdict()).flatten() {
                return verdict;
            }
        }
        Err("it ended before it had its prompt".to_owned())
    }
}

impl AsFd for Prompting {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.voice.as_fd()
    }
}
