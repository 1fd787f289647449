//! The path on which workers and checks find this program.

use std::io;
use std::path::Path;

use super::fence::{give_workers_git, programs_of};
use gt_town::{OperationError, Result, Town};

/// The path on which this very program is found first, under both of its names.
pub(crate) fn path_with_us(town: &Town, program: &Path) -> Result<String> {
    let directory = programs_of(town);
    let path = path_through(&directory, program).map_err(|source| OperationError::File {
        action: "make",
        path: directory,
        source,
    })?;
    give_workers_git(town, program)?;
    Ok(path)
}

/// The path on which a program of ours is found first, under both of its names, in this directory.
fn path_through(directory: &Path, program: &Path) -> io::Result<String> {
    gt_executors::private::create_dir_all(directory)?;
    for name in ["gt", "bd"] {
        let link = directory.join(name);
        if std::fs::read_link(&link).is_ok_and(|there| there == program) {
            continue;
        }
        // Made beside it and renamed, because others may be starting it right now.
        let beside = directory.join(format!(".{name}-{}", std::process::id()));
        let _ = std::fs::remove_file(&beside);
        std::os::unix::fs::symlink(program, &beside)?;
        std::fs::rename(&beside, &link)?;
    }
    let path = gt_town::Environment::from_process();
    let path = path.get("PATH").unwrap_or_default();
    Ok(format!("{}:{path}", directory.display()))
}
