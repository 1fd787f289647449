//! Keys of a person who types a line while other lines are printed.

use std::ffi::OsStr;
use std::io;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::termios::{LocalModes, OptionalActions};

use super::Display;

/// The terminal of this process: keys come at once, are not shown, and send no signals. Output is as usual. It is as before
/// when this value is dropped.
#[derive(Debug)]
pub struct KeyInput(Display);

impl KeyInput {
    /// The terminal of this process, if it has one.
    pub fn of_this_process() -> io::Result<Option<Self>> {
        // A key that ended this process would leave the terminal without an echo.
        let hidden = LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG;
        let display = Display::with(OsStr::new("/dev/tty"), OptionalActions::Now, |modes| {
            modes.local_modes -= hidden;
        })?;
        Ok(display.map(Self))
    }

    /// Waits at most this long for keys. Empty if there are none; an error if the terminal has gone.
    pub fn read(&self, wait: Duration) -> io::Result<Vec<u8>> {
        let wait = Timespec::try_from(wait).map_err(io::Error::other)?;
        match poll(&mut [PollFd::new(&self.0, PollFlags::IN)], Some(&wait)) {
            Ok(0) | Err(Errno::INTR) => return Ok(Vec::new()),
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        let mut keys = [0; 1024];
        match rustix::io::read(&self.0, &mut keys) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => Ok(keys[..count].to_vec()),
            Err(Errno::AGAIN | Errno::INTR) => Ok(Vec::new()),
            Err(error) => Err(error.into()),
        }
    }
}
