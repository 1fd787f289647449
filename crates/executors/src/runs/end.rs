//! How an agent ended. The lock file keeps it for the process that looks when its supervisor is
//! gone.

use std::fmt;
use std::fs;
use std::io;

use super::RunFiles;

/// How an agent ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentEnd {
    /// By itself, with this exit status.
    Exited(i32),
    /// By this signal, which another process sent.
    Signalled(i32),
    /// Because we were asked to end it.
    Cancelled,
}

impl AgentEnd {
    /// The end that stands in a text, on its last line.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let last = text.strip_suffix('\n')?.lines().next_back()?;
        match *last.split(' ').collect::<Vec<_>>() {
            ["exited", code] => Some(Self::Exited(code.parse().ok()?)),
            ["signalled", signal] => Some(Self::Signalled(signal.parse().ok()?)),
            ["cancelled"] => Some(Self::Cancelled),
            _ => None,
        }
    }
}

impl fmt::Display for AgentEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(code) => writeln!(f, "exited {code}"),
            Self::Signalled(signal) => writeln!(f, "signalled {signal}"),
            Self::Cancelled => writeln!(f, "cancelled"),
        }
    }
}

impl RunFiles {
    /// How the agent of this run ended, if its supervisor saw it. Says nothing about what the agent left
    /// running: that is over when the lock is free.
    pub fn agent_end(&self) -> io::Result<Option<AgentEnd>> {
        match fs::read_to_string(self.lock_path()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            read => Ok(AgentEnd::parse(&read?)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_kept_and_read() {
        let town = tempfile::tempdir().unwrap();
        let files = RunFiles::of(town.path(), "gt-abc#3");
        assert_eq!(files.agent_end().unwrap(), None);
        files.create().unwrap();
        let lock = files.try_lock().unwrap().unwrap();
        for end in [AgentEnd::Exited(0), AgentEnd::Signalled(9), AgentEnd::Cancelled] {
            lock.write(&end.to_string()).unwrap();
            assert_eq!(files.agent_end().unwrap(), Some(end));
        }
    }

    #[test]
    fn text_that_is_no_end_is_refused() {
        for text in ["", "exited 0", "exited\n", "exited x\n", "exited 1 2\n", "cancelled 1\n"] {
            assert_eq!(AgentEnd::parse(text), None, "{text:?}");
        }
    }
}
