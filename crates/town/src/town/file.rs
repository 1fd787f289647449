//! `town.toml`: which store a town uses.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use gt_core::Invalid;
use serde::{Deserialize, Serialize};

use super::DIRECTORY;
use crate::{OperationError, Result};

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
    options.open(path)?.write_all(text.as_bytes())
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
