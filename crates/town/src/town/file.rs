//! `town.toml`: which store a town uses.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use gt_core::Invalid;
use serde::{Deserialize, Serialize};

use gt_executors::private;

use super::{DIRECTORY, credentials};
use crate::{Environment, OperationError, Result};

/// Its name inside the town's own directory.
pub(super) const NAME: &str = "town.toml";

/// The contents of `town.toml`.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TownFile {
    /// Tells towns apart that share a database server.
    pub(super) id: String,
    /// Where the records are, if not in the file beside this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) database_url: Option<String>,
}

impl TownFile {
    /// Reads the text of the file.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        toml::from_str(text)
            .map_err(|error| Invalid(error.message().replace(char::is_control, " ")))
    }

    /// The text of the file.
    pub fn to_text(&self) -> Result<String, Invalid> {
        toml::to_string(self).map_err(|error| Invalid(format!("cannot write town.toml: {error}")))
    }
}

fn path(root: &Path) -> PathBuf {
    root.join(DIRECTORY).join(NAME)
}

pub(super) fn read(root: &Path) -> Result<TownFile> {
    let path = path(root);
    let text = std::fs::read_to_string(&path).map_err(|source| OperationError::File {
        action: "read",
        path: path.clone(),
        source,
    })?;
    TownFile::parse(&text).map_err(|Invalid(why)| {
        OperationError::rejected(format!("{} is damaged: {why}", path.display()))
    })
}

/// The URL of a database may hold a password.
fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    let mut file = options.open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// The file that becomes `town.toml` when a move to another store is done.
fn next_path(root: &Path) -> PathBuf {
    root.join(DIRECTORY).join("town.toml.next")
}

/// Writes the file of a town that is about to use another store.
pub(super) fn write_next(root: &Path, file: &TownFile) -> Result<()> {
    let (path, text) = (next_path(root), file.to_text()?);
    // A file that is there may be readable by others.
    remove_next(root);
    write_private(&path, &text)
        .and_then(|()| sync_directory(&path))
        .map_err(|source| OperationError::File { action: "write", path, source })
}

/// The file of a town that was about to use another store, if there is one.
pub(super) fn read_next(root: &Path) -> Result<Option<TownFile>> {
    let path = next_path(root);
    let text = match std::fs::read_to_string(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        read => read.map_err(|source| OperationError::File { action: "read", path, source })?,
    };
    Ok(Some(TownFile::parse(&text)?))
}

/// Forgets a move that did not happen.
pub(super) fn remove_next(root: &Path) {
    // Usually it is not there.
    let _ = std::fs::remove_file(next_path(root));
}

/// Makes the next file the file of the town.
pub(super) fn put_next_in_place(root: &Path) -> Result<()> {
    let path = path(root);
    match std::fs::rename(next_path(root), &path) {
        // Another command was faster.
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        renamed => renamed
            .and_then(|()| sync_directory(&path))
            .map_err(|source| OperationError::File { action: "write", path, source }),
    }
}

/// Without this the name may be gone after a power cut.
fn sync_directory(path: &Path) -> std::io::Result<()> {
    std::fs::File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()
}

/// Takes the password out of the file of a town that an earlier program made.
pub(super) fn move_password(root: &Path, file: &TownFile, environment: &Environment) -> Result<()> {
    let Some(url) = &file.database_url else { return Ok(()) };
    let kept = credentials::keep(environment, url.clone())?;
    if kept == *url {
        return Ok(());
    }
    let text = TownFile { id: file.id.clone(), database_url: Some(kept) }.to_text()?;
    let path = path(root);
    private::replace(&path, text).map_err(|source| OperationError::File {
        action: "write",
        path,
        source,
    })
}

/// Writes the file last, so that a town exists only when everything else of it does. Of two who make
/// the same town at once, the first one's file stays.
pub(super) fn write(root: &Path, file: &TownFile) -> Result<()> {
    let path = path(root);
    let text = file.to_text()?;
    let temporary = path.with_extension(format!("toml.{}.new", std::process::id()));
    let io = |action| {
        let path = path.clone();
        move |source| OperationError::File { action, path, source }
    };
    write_private(&temporary, &text).map_err(io("write"))?;
    match std::fs::hard_link(&temporary, &path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            // Not every file system has links.
            std::fs::rename(&temporary, &path).map_err(io("write"))
        }
        _ => std::fs::remove_file(&temporary).map_err(io("tidy up beside")),
    }
}
