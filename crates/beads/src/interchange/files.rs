//! Small files of others, read as a whole.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use serde_json::Value;

use gt_town::{OperationError, Result};

/// No file that is read as a whole is larger, unless it is a table.
const SMALL_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// The text of a small file, if there is one.
pub(super) fn text(path: &Path) -> Result<Option<String>> {
    let failed =
        |action| move |source| OperationError::File { action, path: path.to_owned(), source };
    let file = match File::open(path) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        opened => opened.map_err(failed("open"))?,
    };
    let mut bytes = Vec::new();
    file.take(SMALL_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(failed("read"))?;
    if bytes.len() as u64 > SMALL_BYTES_MAX {
        return Err(wrong(path, "it is larger than 16 MiB"));
    }
    let text = String::from_utf8(bytes).map_err(|_| wrong(path, "it is not UTF-8 text"))?;
    Ok(Some(text.trim_start_matches('\u{feff}').to_owned()))
}

/// The JSON of a small file, if there is one, with its text.
pub(super) fn json(path: &Path) -> Result<Option<(Value, String)>> {
    let Some(text) = text(path)? else { return Ok(None) };
    match serde_json::from_str(&text) {
        Ok(value) => Ok(Some((value, text))),
        Err(error) => Err(OperationError::rejected(format!(
            "{}:{}: not valid JSON: {error}",
            path.display(),
            error.line()
        ))),
    }
}

/// The entries of a directory, by name.
pub(super) fn entries(directory: &Path) -> Result<Vec<PathBuf>> {
    let failed =
        |source| OperationError::File { action: "list", path: directory.to_owned(), source };
    let mut found = std::fs::read_dir(directory)
        .map_err(failed)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<std::io::Result<Vec<PathBuf>>>()
        .map_err(failed)?;
    found.sort();
    Ok(found)
}

/// The name of a file without its directory.
pub(super) fn name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// A file that is not what it should be.
pub(super) fn wrong(path: &Path, why: impl std::fmt::Display) -> OperationError {
    OperationError::rejected(format!("{}: {why}; nothing was imported", path.display()))
}
