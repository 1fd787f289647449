//! The input and the files of a caller, which come through one connection.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fmt;
use std::io::{self, BufReader, Cursor, Read, Write};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, TryLockError};

use super::files::PIECE_BYTES;
use super::frames::receive;
use super::protocol::{CallReply, CallerMessage, FileUse};
use super::server::SocketOutput;

/// How much one command may read of its standard input, or of one file.
const INPUT_BYTES_MAX: usize = 64 << 20;

/// The connection of a caller, as the command that is carried out for it uses it.
pub(super) struct CallerConnection {
    messages: Mutex<CallerMessages>,
    sink: Arc<SocketOutput>,
}

struct CallerMessages {
    from: BufReader<UnixStream>,
    /// Pieces of standard input that came while a file was read.
    early_input: VecDeque<Vec<u8>>,
    early_bytes: usize,
    /// A file was not read to its end, so that pieces of it are still to come.
    is_file_open: bool,
}

impl CallerConnection {
    pub(super) fn new(from: BufReader<UnixStream>, sink: Arc<SocketOutput>) -> Self {
        let early_input = VecDeque::new();
        let messages = CallerMessages { from, early_input, early_bytes: 0, is_file_open: false };
        Self { messages: Mutex::new(messages), sink }
    }

    /// The next piece of standard input; empty at its end.
    fn next_input(&self) -> io::Result<Vec<u8>> {
        let mut messages = self.messages.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(piece) = messages.early_input.pop_front() {
            messages.early_bytes -= piece.len();
            return Ok(piece);
        }
        match receive::<CallerMessage>(&mut messages.from)? {
            Some((CallerMessage::Input, bytes)) => Ok(bytes),
            // Half of a text must not be taken for the whole.
            Some((CallerMessage::Call(_) | CallerMessage::File { .. }, _)) | None => Err(gone()),
        }
    }

    /// Has the caller use a file, and gives the whole answer.
    fn answer_about(&self, path: &Path, access: FileUse) -> io::Result<Vec<u8>> {
        let mut messages = match self.messages.try_lock() {
            Ok(messages) => messages,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            // Another thread of the command waits for input, perhaps for ever.
            Err(TryLockError::WouldBlock) => return Err(io::ErrorKind::ResourceBusy.into()),
        };
        if std::mem::replace(&mut messages.is_file_open, true) {
            return Err(io::Error::other("another file was not read to its end"));
        }
        self.use_file(path, access, &[])?;
        let mut whole = Vec::new();
        loop {
            match receive::<CallerMessage>(&mut messages.from)? {
                Some((CallerMessage::Input, bytes)) => {
                    messages.early_bytes += bytes.len();
                    check_input_size(messages.early_bytes)?;
                    messages.early_input.push_back(bytes);
                }
                Some((CallerMessage::File { error: None }, piece)) if !piece.is_empty() => {
                    check_input_size(whole.len() + piece.len())?;
                    whole.extend_from_slice(&piece);
                }
                Some((CallerMessage::File { error }, _)) => {
                    messages.is_file_open = false;
                    return error
                        .map_or(Ok(whole), |error| Err(io::Error::from_raw_os_error(error)));
                }
                Some((CallerMessage::Call(_), _)) | None => return Err(gone()),
            }
        }
    }

    fn use_file(&self, path: &Path, access: FileUse, piece: &[u8]) -> io::Result<()> {
        let path = path.to_str().ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidInput, "the path is not UTF-8 text")
        })?;
        self.sink.send(&CallReply::File { path: path.to_owned(), access }, piece)
    }
}

fn gone() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the caller went away")
}

/// The files that a caller names; its own process opens them. Clones lead to the same caller.
#[derive(Clone)]
pub struct CallerFiles(pub(super) Arc<CallerConnection>);

impl CallerFiles {
    /// The contents of a file.
    pub fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.0.answer_about(path, FileUse::Read)
    }

    /// The names in a directory.
    pub fn list(&self, directory: &Path) -> io::Result<Vec<OsString>> {
        let names = self.0.answer_about(directory, FileUse::List)?;
        let names = names.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        Ok(names.map(|name| OsString::from_vec(name.to_vec())).collect())
    }

    /// Writes a file anew, whole or not at all.
    pub fn create(&self, path: &Path) -> CallerFile {
        CallerFile { files: self.clone(), path: path.to_owned(), piece: Vec::new() }
    }
}

impl fmt::Debug for CallerFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CallerFiles")
    }
}

/// A file of a caller that is being written.
#[derive(Debug)]
pub struct CallerFile {
    files: CallerFiles,
    path: PathBuf,
    /// Bytes that were not sent yet.
    piece: Vec<u8>,
}

impl CallerFile {
    /// Puts the new contents in the place of the old ones.
    pub fn finish(mut self) -> io::Result<()> {
        self.flush()?;
        self.files.0.answer_about(&self.path, FileUse::Write).map(drop)
    }
}

impl Write for CallerFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.piece.extend_from_slice(bytes);
        if self.piece.len() >= PIECE_BYTES {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.piece.is_empty() {
            return Ok(());
        }
        let piece = std::mem::take(&mut self.piece);
        self.files.0.use_file(&self.path, FileUse::Write, &piece)
    }
}

/// The standard input of a caller, which is asked for when it is first read.
pub(super) struct CallerInput {
    caller: Arc<CallerConnection>,
    is_asked: bool,
    /// Bytes that have arrived.
    piece: Cursor<Vec<u8>>,
    /// How many bytes have arrived in all.
    total_bytes: usize,
    is_over: bool,
}

impl CallerInput {
    pub(super) fn new(caller: Arc<CallerConnection>) -> Self {
        let piece = Cursor::default();
        Self { caller, is_asked: false, piece, total_bytes: 0, is_over: false }
    }
}

impl Read for CallerInput {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.piece.read(buffer)?;
        if read > 0 || buffer.is_empty() || self.is_over {
            return Ok(read);
        }
        if !std::mem::replace(&mut self.is_asked, true) {
            self.caller.sink.send(&CallReply::InputWanted, &[])?;
        }
        let bytes = self.caller.next_input()?;
        self.is_over = bytes.is_empty();
        self.total_bytes += bytes.len();
        check_input_size(self.total_bytes)?;
        self.piece = Cursor::new(bytes);
        self.piece.read(buffer)
    }
}

/// Refuses more than a command may read.
fn check_input_size(bytes: usize) -> io::Result<()> {
    if bytes <= INPUT_BYTES_MAX {
        return Ok(());
    }
    let sentence = format!("there are more than {} MiB of it", INPUT_BYTES_MAX >> 20);
    Err(io::Error::new(io::ErrorKind::InvalidData, sentence))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_input_than_a_command_may_read_is_refused() {
        assert!(check_input_size(INPUT_BYTES_MAX).is_ok());
        let error = check_input_size(INPUT_BYTES_MAX + 1).unwrap_err().to_string();
        assert!(error.contains("64 MiB"), "{error}");
    }
}
