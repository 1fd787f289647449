//! Looking at a file before SQLite may touch it.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::StoreError;

/// Marks our files: "gtwn".
pub(crate) const APPLICATION_ID: i32 = 0x6774_776e;

const HEADER_BYTES: usize = 100;
const APPLICATION_ID_AT: usize = 68;

/// The kind of a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FileKind {
    /// Nothing there, or an empty file.
    Absent,
    /// A store of ours.
    Store,
    /// Something else, and how one can tell.
    Foreign(&'static str),
}

/// Reads the header of the file at `path`. SQLite itself would create journals beside a file that is
/// not ours.
pub(crate) fn kind_of(path: &Path) -> Result<FileKind, StoreError> {
    let io = |action| move |source| StoreError::Io { action, path: path.to_owned(), source };
    // Asked before it is opened: opening a pipe would wait for a writer.
    let about = match std::fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(FileKind::Absent),
        found => found.map_err(io("look at"))?,
    };
    if !about.is_file() {
        return Ok(FileKind::Foreign("not a regular file"));
    }
    let file = File::open(path).map_err(io("open"))?;
    let mut header = Vec::with_capacity(HEADER_BYTES);
    file.take(HEADER_BYTES as u64).read_to_end(&mut header).map_err(io("read"))?;
    if header.is_empty() {
        return Ok(FileKind::Absent);
    }
    if !header.starts_with(b"SQLite format 3\0") {
        return Ok(FileKind::Foreign("not an SQLite database"));
    }
    let id = header.get(APPLICATION_ID_AT..APPLICATION_ID_AT + 4);
    if id != Some(&APPLICATION_ID.to_be_bytes()) {
        return Ok(FileKind::Foreign("an SQLite database of another program"));
    }
    Ok(FileKind::Store)
}

/// Says whether the file at `path` is a store of ours, without touching it.
pub(crate) fn inspect(path: &Path) -> Result<(), StoreError> {
    match kind_of(path)? {
        FileKind::Store => Ok(()),
        FileKind::Absent => Err(StoreError::Missing(path.to_owned())),
        FileKind::Foreign(why) => {
            Err(StoreError::NotOurs { place: path.display().to_string(), why })
        }
    }
}
