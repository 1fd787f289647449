//! A command that does one thing for whoever started it, and stays with it: no run of this town, no lock.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, kill_process_group, waitpid};

use super::AgentEnd;
use super::agent::{agent_end, prompt_file};
use super::attend::{LOOK_AGAIN, end_of};
use super::remains::{end_all, left_in_group};
use crate::background::spawn;
use crate::daemon::wait_for_any;
use crate::process::{ProcessError, command_in};

/// How long whatever does not even end when it is killed is waited for.
const PATIENCE: Duration = Duration::from_secs(2);

/// A command to be started.
#[derive(Debug)]
pub struct Order<'a> {
    /// The program and its arguments. A program with a relative path is looked for in `directory`.
    pub argv: &'a [String],
    /// Where it runs.
    pub directory: &'a Path,
    /// Variables it gets besides ours.
    pub environment: &'a [(&'a str, String)],
    /// What it can read.
    pub input: &'a [u8],
    /// Where its output goes.
    pub output: File,
    /// A directory on whose file system its input may be kept meanwhile.
    pub scratch: &'a Path,
}

/// A command at work, in a process group of its own. Dropping it leaves it running.
#[derive(Debug)]
pub struct Errand {
    child: Pid,
    /// Can be read from when it has ended.
    end: Option<OwnedFd>,
}

impl Errand {
    /// Starts a command.
    pub fn start(order: Order<'_>) -> Result<Self, ProcessError> {
        let name = order.argv.first().cloned().unwrap_or_default();
        let child = begin(order).map_err(|source| ProcessError::Start { program: name, source })?;
        Ok(Self { child, end: end_of(child) })
    }

    /// Waits until it has ended, or something can be read from `other`, but no longer than this; how it ended, if it has.
    /// What it has left running in its process group is ended then.
    pub fn wait(
        &mut self,
        other: BorrowedFd<'_>,
        limit: Duration,
        grace: Duration,
    ) -> Option<AgentEnd> {
        match &self.end {
            Some(end) => wait_for_any(&[end.as_fd(), other], limit),
            None => wait_for_any(&[other], limit.min(LOOK_AGAIN)),
        }
        let ended = self.collect()?;
        self.clear(grace);
        Some(ended)
    }

    /// Ends it, and everything in its process group: asked first, and killed after `grace`.
    pub fn end(mut self, grace: Duration) {
        let began = Instant::now();
        self.signal(Signal::TERM);
        // One that is stopped would not hear the question.
        self.signal(Signal::CONT);
        let mut is_killed = false;
        while self.collect().is_none() {
            let left = grace.saturating_sub(began.elapsed());
            if left.is_zero() && !std::mem::replace(&mut is_killed, true) {
                self.signal(Signal::KILL);
            }
            if began.elapsed() > grace + PATIENCE {
                break;
            }
            let limit = if is_killed { LOOK_AGAIN } else { left };
            match &self.end {
                Some(end) => wait_for_any(&[end.as_fd()], limit),
                None => wait_for_any(&[], limit.min(LOOK_AGAIN)),
            }
        }
        self.clear(grace.saturating_sub(began.elapsed()));
    }

    fn signal(&self, signal: Signal) {
        // It is not collected yet, so that the number is still its own; one that has gone needs none.
        let _ = kill_process_group(self.child, signal);
    }

    fn collect(&mut self) -> Option<AgentEnd> {
        loop {
            match waitpid(Some(self.child), WaitOptions::NOHANG) {
                Ok(Some((_, status))) => return Some(agent_end(status, false)),
                Ok(None) => return None,
                Err(Errno::INTR) => {}
                // Nobody can say any more how it ended.
                Err(_) => return Some(AgentEnd::Cancelled),
            }
        }
    }

    /// Ends what is left of its process group.
    fn clear(&self, grace: Duration) {
        end_all(grace, Some(PATIENCE), || left_in_group(self.child));
    }
}

fn begin(order: Order<'_>) -> io::Result<Pid> {
    let Some((program, arguments)) = order.argv.split_first() else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the command is empty"));
    };
    let is_path = program.contains('/');
    let found = if is_path { order.directory.join(program) } else { program.into() };
    let mut command = command_in(found, order.directory);
    command
        .args(arguments)
        .envs(order.environment.iter().map(|(name, value)| (name, value)))
        .stdin(prompt_file(order.scratch, order.input)?)
        .stdout(order.output.try_clone()?)
        .stderr(order.output)
        .process_group(0);
    spawn(&mut command).map(|child| Pid::from_child(&child))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::runs::processes;

    const LONG: Duration = Duration::from_mins(1);

    struct Started {
        directory: tempfile::TempDir,
        errand: Errand,
        never: io::PipeReader,
        _held: io::PipeWriter,
    }

    fn start(script: &str) -> Started {
        let directory = tempfile::tempdir().unwrap();
        let output = File::create(directory.path().join("output")).unwrap();
        let argv = ["sh".to_owned(), "-c".to_owned(), script.to_owned()];
        let order = Order {
            argv: &argv,
            directory: directory.path(),
            environment: &[("COLOUR", "red".to_owned())],
            input: b"an item",
            output,
            scratch: directory.path(),
        };
        let errand = Errand::start(order).unwrap();
        let (never, held) = io::pipe().unwrap();
        Started { directory, errand, never, _held: held }
    }

    impl Started {
        fn wait(&mut self) -> Option<AgentEnd> {
            let began = Instant::now();
            loop {
                let ended = self.errand.wait(self.never.as_fd(), LONG, LONG);
                if ended.is_some() || began.elapsed() > LONG {
                    return ended;
                }
            }
        }

        fn output(&self) -> String {
            fs::read_to_string(self.directory.path().join("output")).unwrap()
        }
    }

    #[test]
    fn it_is_told_what_to_do_and_says_how_it_went() {
        let mut started = start("echo \"$(cat) $COLOUR\"; echo wrong >&2; exit 3");
        assert_eq!(started.wait(), Some(AgentEnd::Exited(3)));
        assert_eq!(started.output(), "an item red\nwrong\n");
        assert_eq!(start("kill -9 $$").wait(), Some(AgentEnd::Signalled(9)));
    }

    #[test]
    fn what_cannot_be_started_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let order = |argv| Order {
            argv,
            directory: directory.path(),
            environment: &[],
            input: b"",
            output: File::create(directory.path().join("output")).unwrap(),
            scratch: directory.path(),
        };
        let missing = ["./nothing".to_owned()];
        let error = Errand::start(order(&missing)).unwrap_err();
        assert_eq!(error.to_string(), "cannot start ./nothing");
        assert!(Errand::start(order(&[])).is_err());
    }

    #[test]
    fn nothing_of_it_is_left_when_it_has_ended() {
        let mut started = start("sleep 600 & echo $! > left");
        assert_eq!(started.wait(), Some(AgentEnd::Exited(0)));
        let left = fs::read_to_string(started.directory.path().join("left")).unwrap();
        let left = processes::pid_of(left.trim()).and_then(processes::look);
        // Whoever collects orphans here may take its time.
        assert!(left.is_none_or(|left| left.is_over));
    }

    #[test]
    fn it_ends_when_it_is_asked_and_is_killed_if_it_does_not() {
        let begun = |started: &Started| {
            let path = started.directory.path().join("begun");
            while !path.exists() {
                std::thread::yield_now();
            }
        };
        let polite =
            start("trap 'echo bye; exit 0' TERM; touch begun; while :; do sleep 0.01; done");
        begun(&polite);
        let Started { directory, errand, .. } = polite;
        errand.end(LONG);
        // What the shell says of the program that it waited for comes before.
        let said = fs::read_to_string(directory.path().join("output")).unwrap();
        assert!(said.ends_with("bye\n"), "{said}");

        let deaf = start("trap '' TERM; touch begun; while :; do sleep 0.01; done");
        begun(&deaf);
        let group = deaf.errand.child;
        deaf.errand.end(Duration::from_millis(50));
        assert!(left_in_group(group).processes.is_empty());
    }
}
