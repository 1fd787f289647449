//! A terminal for an agent whose whole output must be kept: the agent has a real one, its supervisor copies
//! what it prints to a log and to the terminal that the supervisor itself has, and what is typed there back.
//!
//! # Why a terminal of our own
//!
//! The supervisor runs inside of a tmux session, and the pane remembers only so much. Four ways could keep the rest:
//!
//! | way | whole output | true end of the agent | needs |
//! |---|---|---|---|
//! | `tmux pipe-pane` | until the server dies; no event says when its reader has written the last of it | only if the agent shares the process group, or takes the pane over in a race | tmux |
//! | `script(1)` | yes | a signal and an exit status look the same | a shell that reads the command; another one on each system |
//! | `setsid --ctty` around the agent, on a terminal of ours | yes | yes | util-linux, so not everywhere; a command that it cannot start looks like an agent that failed |
//! | our own program around the agent, on a terminal of ours | yes | yes | nothing |
//!
//! The last one is here. A process must begin a session and take the terminal after the fork and
//! before the agent. Without unsafe code only a program can do that: ours, called once more
//! ([`become_agent`]). It then *becomes* the agent, so that the child of the supervisor is the
//! agent, with its number, its process group and its end. It says whether it could, so that a
//! missing program is a failed start and not an agent that failed.
//!
//! # Invariants
//!
//! - Output of the agent is in the log before it is shown, and all of it is there when [`Relay::finish`] returns,
//!   if nothing that the agent started is left by then.
//! - A display that is slow slows the agent down, as any terminal does; one that is gone does not matter.
//! - A log that cannot be written does not stop the agent. How much was lost, and why, is said in the end.

mod display;
mod key_input;
mod launch;
mod relay;
mod typed_keys;

pub use display::{Display, OwnTerminal};
pub use key_input::KeyInput;
pub use launch::{BECOME, Launcher, become_agent};
pub use relay::{KeptOutput, OutputLoss, Relay};
pub use typed_keys::read_typed;

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// The size of a terminal without a display.
const SIZE: Winsize = Winsize { ws_row: 50, ws_col: 200, ws_xpixel: 0, ws_ypixel: 0 };

/// A terminal for one agent, seen from behind.
#[derive(Debug)]
pub struct Terminal {
    /// Reading gives printed bytes; writing types bytes.
    back: OwnedFd,
    /// The path that the agent opens.
    front: PathBuf,
}

impl Terminal {
    /// Makes a terminal, as large as the display if there is one.
    pub fn open(display: Option<&Display>) -> io::Result<Self> {
        let back = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        grantpt(&back)?;
        unlockpt(&back)?;
        let front = ptsname(&back, Vec::new())?;
        let front = PathBuf::from(OsStr::from_bytes(front.as_bytes()));
        let size = display.and_then(Display::size).unwrap_or(SIZE);
        tcsetwinsize(&back, size)?;
        // The copying thread must not block in one of the two directions.
        fcntl_setfl(&back, fcntl_getfl(&back)? | OFlags::NONBLOCK)?;
        Ok(Self { back, front })
    }

    /// The side of the agent.
    fn front(&self) -> io::Result<File> {
        use std::os::unix::fs::OpenOptionsExt as _;
        let not_ours = OFlags::NOCTTY.bits().cast_signed();
        File::options().read(true).write(true).custom_flags(not_ours).open(&self.front)
    }
}
