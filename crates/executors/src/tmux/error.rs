//! The errors of tmux.

use std::io;
use std::path::PathBuf;

/// The reason why tmux failed.
#[derive(Debug, thiserror::Error)]
pub enum TmuxError {
    /// There is no such program.
    #[error(
        "tmux is not installed: install tmux {}.{} or later, or let workers run without it: \
         gt rig set <rig> executor process",
        super::OLDEST.0, super::OLDEST.1
    )]
    Missing,
    /// The program is too old.
    #[error(
        "this is tmux {found}, which is too old: install tmux {}.{} or later, or let workers run \
         without it: gt rig set <rig> executor process",
        super::OLDEST.0, super::OLDEST.1
    )]
    TooOld {
        /// Its version, in its own words.
        found: String,
    },
    /// A session cannot have this name.
    #[error(
        "`{name}` cannot be the name of a session: use letters, digits, `-` and `_`, beginning with \
         a letter or digit, at most {} of them",
        super::NAME_BYTES_MAX
    )]
    Name {
        /// The name that was asked for.
        name: String,
    },
    /// A session of this name exists already.
    #[error("there is already a session {name}; end it first, or look at it with gt attach")]
    Exists {
        /// Its name.
        name: String,
    },
    /// There is no session of this name.
    #[error("there is no session {name}; it has ended, or was never started")]
    NoSession {
        /// The name that was asked for.
        name: String,
    },
    /// A session would run in a directory that is none.
    #[error("{}, where the session would run, is no directory", path.display())]
    Directory {
        /// The path that was given.
        path: PathBuf,
    },
    /// The command has no program, or a word with a zero byte.
    #[error("the command of a session needs a program, and no word of it can hold a zero byte")]
    Words,
    /// A variable cannot be given to a session.
    #[error(
        "the variable `{name}` cannot be given to a session: names are letters, digits and `_`, and \
         tmux takes at most {} bytes of name and value, none of them zero",
        super::VARIABLE_BYTES_MAX
    )]
    Variable {
        /// Its name.
        name: String,
    },
    /// The command does not fit into one message to the server.
    #[error("tmux cannot take a command this long (about 16 kB); put what is long into a file")]
    TooLong,
    /// The server has gone while it was spoken to, and its sessions with it.
    #[error("the tmux server has gone, and its sessions with it")]
    ServerGone,
    /// The server has not answered for a long time.
    #[error(
        "tmux has not answered for {} s; if its server hangs, end it: tmux -L {socket} kill-server",
        super::ANSWER_LIMIT.as_secs()
    )]
    Silent {
        /// The name of the socket of the server.
        socket: String,
    },
    /// Tmux refused.
    #[error("tmux failed: {message}")]
    Failed {
        /// Its message.
        message: String,
    },
    /// The program could not be started, or spoken to.
    #[error("cannot speak to tmux")]
    Io(#[from] io::Error),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_tmux_there_is_another_way() {
        for error in [TmuxError::Missing, TmuxError::TooOld { found: "2.9a".to_owned() }] {
            let said = error.to_string();
            assert!(said.contains("install tmux 3.0 or later"), "{said}");
            assert!(said.ends_with("gt rig set <rig> executor process"), "{said}");
        }
    }
}
