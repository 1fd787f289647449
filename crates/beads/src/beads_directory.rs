//! The directory `.beads` for tools that look for one and watch it.

use std::fs;
use std::path::Path;

use gt_core::Json;
use gt_store::Writer;
use gt_town::town::{CommitFollower, CommitHook};
use gt_town::{OperationError, Result, Town};

const NAME: &str = ".beads";
const METADATA: &str = "metadata.json";
/// Written after each change, with the id of the bead that changed last. Tools watch it.
const LAST_TOUCHED: &str = "last-touched";
/// The value of `backend` that tells our directory from one of the original.
const BACKEND: &str = "gt";

/// Makes the directory in a town that has none. One that exists is left as it is. Says whether it was made.
pub fn make(root: &Path, prefix: &str) -> Result<bool> {
    let directory = root.join(NAME);
    match fs::create_dir(&directory) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => return Ok(false),
        Err(source) => {
            return Err(OperationError::File { action: "create", path: directory, source });
        }
    }
    let metadata = metadata(prefix);
    // Only the export belongs into the history of a repository.
    let ignored = format!("{METADATA}\n{LAST_TOUCHED}\n.gitignore\n");
    let files = [
        (METADATA, format!("{}\n", metadata.as_str())),
        (".gitignore", ignored),
        (LAST_TOUCHED, String::new()),
    ];
    for (name, text) in files {
        let path = directory.join(name);
        fs::write(&path, text).map_err(|source| OperationError::File {
            action: "write",
            path,
            source,
        })?;
    }
    Ok(true)
}

fn metadata(prefix: &str) -> Json {
    Json::object(&[
        ("backend".to_owned(), Json::string(BACKEND)),
        ("database".to_owned(), Json::string("../.gt/gt.db")),
        ("issue_prefix".to_owned(), Json::string(prefix)),
        ("jsonl_export".to_owned(), Json::string("issues.jsonl")),
    ])
}

/// Tells tools another prefix. A directory that this program has not made is left as it is.
pub fn set_prefix(root: &Path, prefix: &str) -> Result<()> {
    if !is_ours(root) {
        return Ok(());
    }
    let path = root.join(NAME).join(METADATA);
    let text = format!("{}\n", metadata(prefix).as_str());
    fs::write(&path, text).map_err(|source| OperationError::File { action: "write", path, source })
}

/// Whether the town has a directory that this program has made.
fn is_ours(root: &Path) -> bool {
    let metadata = fs::read_to_string(root.join(NAME).join(METADATA)).ok();
    let metadata = metadata.and_then(|text| Json::parse(&text).ok());
    metadata.and_then(|json| json.string_field("backend")).as_deref() == Some(BACKEND)
}

/// Tells tools that watch the directory of each change.
#[derive(Debug, Clone, Copy)]
pub struct TouchBeadsDirectory;

impl CommitHook for TouchBeadsDirectory {
    fn begin(&self, town: &Town) -> Option<Box<dyn CommitFollower>> {
        let path = town.root().join(NAME).join(LAST_TOUCHED);
        let is_watched = town.has_directory() && is_ours(town.root());
        is_watched.then(|| Box::new(LastTouched { path, bead: None }) as Box<dyn CommitFollower>)
    }
}

struct LastTouched {
    path: std::path::PathBuf,
    bead: Option<String>,
}

impl CommitFollower for LastTouched {
    fn before_commit(&mut self, writer: &mut Writer<'_>) -> Result<()> {
        let changed = writer.recorded().iter().rev().find_map(|event| event.bead.as_ref());
        if let Some(bead) = changed {
            self.bead = Some(bead.to_string());
        }
        Ok(())
    }

    fn after_commit(self: Box<Self>) {
        if let Some(bead) = self.bead {
            // The change is committed; a tool that misses it finds it at its next look.
            let _ = fs::write(&self.path, format!("{bead}\n"));
        }
    }
}
