//! The inputs that the hunt begins with.

use std::path::{Path, PathBuf};

/// The directory with a directory of inputs for every target.
pub fn directory() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).join("fuzz/corpus")
}

/// The inputs of a target, by name.
pub fn of(target: &str) -> std::io::Result<Vec<(String, Vec<u8>)>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory().join(target))? {
        let entry = entry?;
        found
            .push((entry.file_name().to_string_lossy().into_owned(), std::fs::read(entry.path())?));
    }
    found.sort();
    Ok(found)
}
