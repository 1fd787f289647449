//! Starting an agent on a terminal.

use std::convert::Infallible;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use rustix::process::{ioctl_tiocsctty, setsid};

use super::Terminal;
use crate::background::spawn;
use crate::process::{command_in, command_with_everything};

/// How this program is called so that it does nothing but [`become_agent`] with the words that follow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launcher {
    /// This program, as an absolute path.
    pub program: PathBuf,
    /// The words before those of the agent.
    pub arguments: Vec<OsString>,
}

/// The first word for this program when it is to do nothing but [`become_agent`] with the others.
pub const BECOME: &str = "__become";

impl Launcher {
    /// This program, called as [`BECOME`] says. It stands between every run and its agent, so it reads nothing else.
    pub fn of(program: &Path) -> Self {
        Self { program: program.to_owned(), arguments: vec![BECOME.into()] }
    }
}

/// The prefix of an error number of the kernel in what the child writes to its parent.
const ERROR_NUMBER: &str = "error number ";

impl Terminal {
    /// Starts an agent that has this terminal, a session and a process group of its own, and returns when
    /// it runs. The child is the agent. A program with a relative path is looked for in `directory`.
    pub fn start(
        &self,
        launcher: &Launcher,
        argv: &[OsString],
        directory: &Path,
        environment: &[(String, String)],
    ) -> io::Result<Child> {
        let (mut complaint, complain) = io::pipe()?;
        let mut launch = command_in(&launcher.program, directory);
        launch
            .args(&launcher.arguments)
            .args(argv)
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .stdin(self.front()?)
            .stdout(Stdio::null())
            .stderr(complain);
        // No process group of its own: the leader of one cannot begin a session.
        let mut child = spawn(&mut launch)?;
        // Our copies of both, or the pipe would have no end.
        drop(launch);
        let mut said = Vec::new();
        let heard = complaint.read_to_end(&mut said);
        if heard.is_ok() && said.is_empty() {
            return Ok(child);
        }
        child.wait()?;
        Err(error_from_child(&String::from_utf8_lossy(&said)))
    }
}

fn error_from_child(said: &str) -> io::Error {
    let last = said.lines().next_back().unwrap_or_default();
    let number = last.strip_prefix(ERROR_NUMBER).and_then(|number| number.parse().ok());
    number.map_or_else(|| io::Error::other(said.trim().to_owned()), io::Error::from_raw_os_error)
}

/// Runs as a process that was started through a [`Launcher`]: it begins a session, takes the
/// terminal that it reads from, and becomes the agent. Returns only if that is not possible, after
/// it has told its parent why.
pub fn become_agent(argv: &[OsString]) -> io::Result<Infallible> {
    // Closed when it becomes the agent, by which it is known that it did.
    let mut complain = File::from(io::stderr().as_fd().try_clone_to_owned()?);
    let error = try_to_become(argv);
    match error.raw_os_error() {
        Some(number) => writeln!(complain, "{ERROR_NUMBER}{number}")?,
        None => writeln!(complain, "{error}")?,
    }
    Err(error)
}

fn try_to_become(argv: &[OsString]) -> io::Error {
    let Some((program, arguments)) = argv.split_first() else {
        return io::Error::new(io::ErrorKind::InvalidInput, "the command is empty");
    };
    match take_terminal() {
        Err(error) => error,
        Ok([out, errors]) => {
            // The agent's environment was set when we were started.
            let mut agent = command_with_everything(program);
            agent.args(arguments).stdout(out).stderr(errors).exec()
        }
    }
}

/// Makes what we read from our terminal, and returns it for what we write.
fn take_terminal() -> io::Result<[OwnedFd; 2]> {
    setsid()?;
    let terminal = io::stdin();
    ioctl_tiocsctty(&terminal)?;
    let terminal = terminal.as_fd();
    Ok([terminal.try_clone_to_owned()?, terminal.try_clone_to_owned()?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_told_by_number_or_in_words() {
        assert_eq!(error_from_child("error number 2\n").kind(), io::ErrorKind::NotFound);
        assert_eq!(error_from_child("something else\n").to_string(), "something else");
        assert_eq!(error_from_child("error number x\n").to_string(), "error number x");
    }
}
