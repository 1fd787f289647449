//! How a supervisor is spoken to: a named pipe in the directory of its run. Whoever opens it for writing
//! learns from the kernel whether a supervisor listens.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::RunDirectory;

/// What came of asking a supervisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// It has been told, or its agent has just ended by itself.
    Told,
    /// Nobody listens: the agent has not been started yet, it has ended, or its supervisor is gone.
    NobodyListens,
}

/// Asks the supervisor of a run to end it, and returns at once.
pub fn ask_to_cancel(directory: &RunDirectory) -> io::Result<Asked> {
    match open_for_asking(directory)? {
        None => Ok(Asked::NobodyListens),
        Some(mut pipe) => match pipe.write_all(b"c") {
            // A pipe that is full has been asked often enough.
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
            _ => Ok(Asked::Told),
        },
    }
}

/// Whether the supervisor of a run is there and its agent has not ended.
pub(super) fn somebody_listens(directory: &RunDirectory) -> io::Result<bool> {
    Ok(open_for_asking(directory)?.is_some())
}

fn open_for_asking(directory: &RunDirectory) -> io::Result<Option<File>> {
    // Without waiting for a listener, which is how the kernel says that there is none.
    let at_once = OFlags::NONBLOCK.bits().cast_signed();
    match File::options().write(true).custom_flags(at_once).open(directory.control_path()) {
        Ok(pipe) => Ok(Some(pipe)),
        Err(error)
            if error.kind() == io::ErrorKind::NotFound
                || error.raw_os_error() == Some(Errno::NXIO.raw_os_error()) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// The end of the pipe that a supervisor listens to.
#[derive(Debug)]
pub(super) struct Control {
    pipe: File,
}

impl Control {
    /// Makes the pipe of a run. From now on whoever asks is heard.
    pub(super) fn open(directory: &RunDirectory) -> io::Result<Self> {
        let path = directory.control_path();
        match make_pipe(&path) {
            // Whatever it is, nobody but the holder of the lock has a use for it.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                std::fs::remove_file(&path)?;
                make_pipe(&path)?;
            }
            made => made?,
        }
        // For writing too, so that opening does not wait for a writer, and a writer that leaves does not end
        // the pipe.
        let pipe = File::options().read(true).write(true).open(&path)?;
        Ok(Self { pipe })
    }
}

impl AsFd for Control {
    /// Can be read from when somebody has asked.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }
}

#[cfg(not(target_vendor = "apple"))]
fn make_pipe(path: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    Ok(mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?)
}

/// Where the call cannot be made without unsafe code; the program is part of the system.
#[cfg(target_vendor = "apple")]
fn make_pipe(path: &Path) -> io::Result<()> {
    if path.try_exists()? {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    let mut make = crate::process::command("/usr/bin/mkfifo");
    make.args(["-m", "600"]).arg(path);
    crate::process::capture(make).map(|_| ()).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn nobody_listens_before_and_after() {
        let town = tempfile::tempdir().unwrap();
        let directory = RunDirectory::of(town.path(), "gt-abc#3");
        assert_eq!(ask_to_cancel(&directory).unwrap(), Asked::NobodyListens);
        directory.create().unwrap();
        assert_eq!(ask_to_cancel(&directory).unwrap(), Asked::NobodyListens);

        let control = Control::open(&directory).unwrap();
        assert_eq!(ask_to_cancel(&directory).unwrap(), Asked::Told);
        let mut byte = [0];
        (&control.pipe).read_exact(&mut byte).unwrap();

        drop(control);
        // A test beside this one may be starting a program, which holds all our files until it has begun.
        gt_testkit::wait_until("nobody listens", || {
            ask_to_cancel(&directory).unwrap() == Asked::NobodyListens
        });
    }

    #[test]
    fn asking_too_often_does_not_wait() {
        let town = tempfile::tempdir().unwrap();
        let directory = RunDirectory::of(town.path(), "gt-abc#3");
        directory.create().unwrap();
        std::fs::write(directory.control_path(), "not a pipe").unwrap();
        let _control = Control::open(&directory).unwrap();
        for _ in 0..100_000 {
            assert_eq!(ask_to_cancel(&directory).unwrap(), Asked::Told);
        }
    }
}
