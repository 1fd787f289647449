//! The control pipe of a supervisor: a named pipe among the files of its run. Opening it for
//! writing fails if no supervisor listens.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::io::Errno;

use super::RunFiles;

/// The result of asking a supervisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AskResult {
    /// It has been told, or its agent has just ended by itself.
    Told,
    /// No supervisor listens: the agent has not been started yet, it has ended, or its supervisor
    /// is gone.
    NoListener,
}

/// A request to a supervisor about its run. Of several requests the last in this list wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SupervisorRequest {
    /// Its agent is to end now, and another one goes on with the same run.
    HandOver,
    /// Its work is done: the agent has a while to end by itself, and is ended then.
    Leave,
    /// It is to end now.
    Cancel,
}

/// Asks the supervisor of a run to end it, and returns at once.
pub fn ask_to_cancel(files: &RunFiles) -> io::Result<AskResult> {
    send_request(files, SupervisorRequest::Cancel)
}

/// Tells the supervisor of a run that its work is done, and returns at once. An agent that does not
/// end by itself is ended: it would block its place for the next run.
pub fn tell_done(files: &RunFiles) -> io::Result<AskResult> {
    send_request(files, SupervisorRequest::Leave)
}

/// Asks the supervisor of a run to end its agent and to begin another one in the same run, and returns at once.
pub fn ask_to_hand_over(files: &RunFiles) -> io::Result<AskResult> {
    send_request(files, SupervisorRequest::HandOver)
}

fn send_request(files: &RunFiles, wish: SupervisorRequest) -> io::Result<AskResult> {
    match open_if_read(&files.control_path())? {
        None => Ok(AskResult::NoListener),
        Some(mut pipe) => match pipe.write_all(&word(files, wish)) {
            // A pipe that is full has been asked often enough.
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
            _ => Ok(AskResult::Told),
        },
    }
}

/// Whether the supervisor of a run is there and its agent has not ended.
pub fn has_listener(files: &RunFiles) -> io::Result<bool> {
    Ok(open_if_read(&files.control_path())?.is_some())
}

/// Opens a pipe for writing without waiting for a reader; nothing if no process reads it.
pub(super) fn open_if_read(path: &Path) -> io::Result<Option<File>> {
    let at_once = OFlags::NONBLOCK.bits().cast_signed();
    match File::options().write(true).custom_flags(at_once).open(path) {
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

/// The end of the pipe that a supervisor listens to, as long as there is an agent to be ended.
#[derive(Debug)]
pub(crate) struct ControlPipe {
    pipe: File,
    path: PathBuf,
    /// The messages about this run, with their meanings.
    words: [(Vec<u8>, SupervisorRequest); 3],
    /// Bytes that were read and are no whole message yet.
    heard: Vec<u8>,
}

impl ControlPipe {
    /// The pipe of the agent before, so that no request is lost between two agents of a run. One that was removed, or was never
    /// there, is made.
    pub(crate) fn ready<'c>(
        slot: &'c mut Option<Self>,
        files: &RunFiles,
    ) -> io::Result<&'c mut Self> {
        let path = files.control_path();
        let control = match slot.take().filter(|kept| kept.path.exists()) {
            Some(kept) => kept,
            None => Self { pipe: make(&path)?, path, words: words(files), heard: Vec::new() },
        };
        Ok(slot.insert(control))
    }

    /// The request about this run. Only to be called when there is something to read.
    pub(crate) fn wish(&mut self) -> Option<SupervisorRequest> {
        let mut more = [0; 4096];
        let read = self.pipe.read(&mut more).ok()?;
        self.heard.extend_from_slice(&more[..read]);
        let whole = self.heard.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let lines: Vec<u8> = self.heard.drain(..whole).collect();
        let wishes = lines.split_inclusive(|byte| *byte == b'\n').filter_map(|line| {
            self.words.iter().find(|(word, _)| word == line).map(|(_, wish)| *wish)
        });
        wishes.max()
    }

    /// The same at any time: nothing if there is no request.
    pub(super) fn wish_at_once(&mut self) -> Option<SupervisorRequest> {
        let is_spoken_to = {
            let mut polled = [PollFd::new(&*self, PollFlags::IN)];
            poll(&mut polled, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
        };
        if is_spoken_to { self.wish() } else { None }
    }
}

impl Drop for ControlPipe {
    fn drop(&mut self) {
        // Without a listener it is of no use and does no harm.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// The message for a request about a run. No name of a run has a space.
fn word(files: &RunFiles, wish: SupervisorRequest) -> Vec<u8> {
    let mut word = files.name().as_os_str().as_bytes().to_vec();
    word.extend_from_slice(match wish {
        SupervisorRequest::HandOver => b" handover\n",
        SupervisorRequest::Leave => b" done\n",
        SupervisorRequest::Cancel => b"\n",
    });
    word
}

fn words(files: &RunFiles) -> [(Vec<u8>, SupervisorRequest); 3] {
    [SupervisorRequest::HandOver, SupervisorRequest::Leave, SupervisorRequest::Cancel]
        .map(|wish| (word(files, wish), wish))
}

fn make(path: &Path) -> io::Result<File> {
    make_fresh_pipe(path)?;
    // For writing too, so that opening does not wait for a writer, and a writer that leaves does not end the
    // pipe.
    File::options().read(true).write(true).open(path)
}

/// Makes a pipe in place of a file that is there. Such a file is stale: only the holder of the lock of the run uses it.
fn make_fresh_pipe(path: &Path) -> io::Result<()> {
    match make_pipe(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            std::fs::remove_file(path)?;
            make_pipe(path)
        }
        made => made,
    }
}

/// Makes a pipe and opens it for reading, without waiting for a writer.
pub(super) fn make_pipe_for_reading(path: &Path) -> io::Result<File> {
    make_fresh_pipe(path)?;
    let at_once = OFlags::NONBLOCK.bits().cast_signed();
    File::options().read(true).custom_flags(at_once).open(path)
}

impl AsFd for ControlPipe {
    /// Readable when there is a request.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }
}

pub(super) fn make_pipe(path: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    Ok(mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_whose_reader_was_killed_is_not_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("voice");
        let reader = make_pipe_for_reading(&path).unwrap();
        assert!(open_if_read(&path).unwrap().is_some());

        drop(reader);

        assert!(path.exists());
        assert!(open_if_read(&path).unwrap().is_none());
        std::fs::remove_file(&path).unwrap();
        assert!(open_if_read(&path).unwrap().is_none());
    }

    #[test]
    fn requests_are_heard_only_during_a_run() {
        let town = tempfile::tempdir().unwrap();
        let files = RunFiles::of(town.path(), "gt-abc#3");
        assert_eq!(ask_to_cancel(&files).unwrap(), AskResult::NoListener);
        files.create().unwrap();
        assert_eq!(ask_to_cancel(&files).unwrap(), AskResult::NoListener);

        let mut slot = None;
        let control = ControlPipe::ready(&mut slot, &files).unwrap();
        assert_eq!(ask_to_cancel(&files).unwrap(), AskResult::Told);
        assert_eq!(control.wish(), Some(SupervisorRequest::Cancel));

        drop(slot);
        assert_eq!(ask_to_cancel(&files).unwrap(), AskResult::NoListener);
    }

    #[test]
    fn a_removed_pipe_is_made_anew_and_none_is_left() {
        let town = tempfile::tempdir().unwrap();
        let files = RunFiles::of(town.path(), "gt-abc#3");
        let mut slot = None;
        let control = ControlPipe::ready(&mut slot, &files).unwrap();
        std::fs::remove_file(&control.path).unwrap();

        ControlPipe::ready(&mut slot, &files).unwrap();

        assert_eq!(ask_to_cancel(&files).unwrap(), AskResult::Told);
        drop(slot);
        assert_eq!(std::fs::read_dir(town.path()).unwrap().count(), 0);
    }

    #[test]
    fn of_several_requests_a_cancellation_wins() {
        let town = tempfile::tempdir().unwrap();
        let files = RunFiles::of(town.path(), "gt-abc#3");
        let mut slot = None;
        let control = ControlPipe::ready(&mut slot, &files).unwrap();

        assert_eq!(tell_done(&files).unwrap(), AskResult::Told);
        assert_eq!(control.wish(), Some(SupervisorRequest::Leave));

        tell_done(&files).unwrap();
        ask_to_cancel(&files).unwrap();
        tell_done(&files).unwrap();
        assert_eq!(control.wish(), Some(SupervisorRequest::Cancel));

        assert_eq!(control.wish_at_once(), None);
        ask_to_hand_over(&files).unwrap();
        assert_eq!(control.wish_at_once(), Some(SupervisorRequest::HandOver));
        tell_done(&files).unwrap();
        ask_to_hand_over(&files).unwrap();
        assert_eq!(control.wish_at_once(), Some(SupervisorRequest::Leave));
    }

    #[test]
    fn asking_too_often_does_not_wait() {
        let town = tempfile::tempdir().unwrap();
        let files = RunFiles::of(town.path(), "gt-abc#3");
        files.create().unwrap();
        std::fs::write(files.control_path(), "not a pipe").unwrap();
        let mut slot = None;
        ControlPipe::ready(&mut slot, &files).unwrap();
        for _ in 0..100_000 {
            assert_eq!(ask_to_cancel(&files).unwrap(), AskResult::Told);
        }
    }
}
