//! The terminal that a supervisor has itself, on which a person watches its agent.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::OFlags;
use rustix::termios::{
    OptionalActions, Termios, Winsize, isatty, tcgetattr, tcgetwinsize, tcsetattr, ttyname,
};

/// The terminal that this process was started on, if any. It may go away, for example with its tmux
/// session.
#[derive(Debug)]
pub struct OwnTerminal {
    terminal: Option<OwnedFd>,
}

impl OwnTerminal {
    /// Where standard input is one.
    pub fn of_this_process() -> Self {
        let input = io::stdin();
        let terminal = isatty(&input).then(|| input.as_fd().try_clone_to_owned().ok()).flatten();
        Self { terminal }
    }

    /// The terminal at this path, such as `/dev/pts/3`.
    pub fn at(path: &Path) -> Self {
        let flags = OFlags::NONBLOCK.union(OFlags::NOCTTY).bits().cast_signed();
        let opened = File::options().read(true).write(true).custom_flags(flags).open(path);
        Self { terminal: opened.ok().map(OwnedFd::from) }
    }

    /// A descriptor that reports when the terminal goes away.
    pub fn as_fd(&self) -> Option<BorrowedFd<'_>> {
        self.terminal.as_ref().map(AsFd::as_fd)
    }

    /// From now on it is as if there had been none.
    pub fn forget(&mut self) {
        self.terminal = None;
    }
}

/// The terminal of this process, given over to an agent: keys reach it as they were pressed, and nothing is
/// shown twice. It is as before when this value is dropped.
#[derive(Debug)]
pub struct Display {
    terminal: File,
    before: Termios,
}

impl Display {
    /// The terminal of this process, if it has one.
    pub fn of_this_process() -> io::Result<Option<Self>> {
        // Keys that were typed before there was an agent are not meant for it.
        let when = OptionalActions::Flush;
        match ttyname(io::stdin(), Vec::new()) {
            // A process that has left the session of its terminal still has it to show something on.
            Ok(name) => Self::at(OsStr::from_bytes(name.as_bytes()), when),
            Err(_) => Self::at(OsStr::new("/dev/tty"), when),
        }
    }

    /// The terminal at this path, such as `/dev/pts/3`, if it is there.
    pub fn on(path: &Path) -> io::Result<Option<Self>> {
        Self::at(path.as_os_str(), OptionalActions::Flush)
    }

    pub(super) fn at(path: &OsStr, when: OptionalActions) -> io::Result<Option<Self>> {
        Self::with(path, when, Termios::make_raw)
    }

    /// The terminal at this path in another mode.
    pub(super) fn with(
        path: &OsStr,
        when: OptionalActions,
        change: impl FnOnce(&mut Termios),
    ) -> io::Result<Option<Self>> {
        // Opened again, so that others who write to it are not made to write without waiting.
        let at_once = OFlags::NONBLOCK.union(OFlags::NOCTTY).bits().cast_signed();
        let opened = File::options().read(true).write(true).custom_flags(at_once).open(path);
        let Ok(terminal) = opened else { return Ok(None) };
        let before = tcgetattr(&terminal)?;
        let mut changed = before.clone();
        change(&mut changed);
        tcsetattr(&terminal, when, &changed)?;
        Ok(Some(Self { terminal, before }))
    }

    /// How large it is, if that is known.
    pub(super) fn size(&self) -> Option<Winsize> {
        let size = tcgetwinsize(&self.terminal).ok()?;
        (size.ws_row > 0 && size.ws_col > 0).then_some(size)
    }

    pub(super) fn file(&self) -> &File {
        &self.terminal
    }
}

impl AsFd for Display {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.terminal.as_fd()
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        // One that is gone needs nothing.
        let _ = tcsetattr(&self.terminal, OptionalActions::Now, &self.before);
    }
}
