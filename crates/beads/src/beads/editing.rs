//! A text of a bead in the person's editor.

use std::fs;
use std::path::Path;

use gt_executors::{editor, private};

use crate::acting::refuse_worker;
use gt_town::town::DIRECTORY;
use gt_town::{OperationError, Result, Town, with_causes};

/// The text that a person leaves in the editor `program`; nothing if it stays as it was.
pub fn edit_text(town: &Town, program: &str, id: &str, before: &str) -> Result<Option<String>> {
    refuse_worker(town, "bd edit")?;
    let name = format!("edit-{id}-{}.md", std::process::id());
    let path = town.root().join(DIRECTORY).join(name);
    let failed = |action: &'static str| {
        let path = path.clone();
        move |source| OperationError::File { action, path, source }
    };
    private::write(&path, before).map_err(failed("write"))?;
    let after =
        edited(program, &path, id).and_then(|()| fs::read_to_string(&path).map_err(failed("read")));
    // The text was read, or the bead still has it.
    let _ = fs::remove_file(&path);
    let after = after?;
    // Editors end the last line; a bead does not.
    let after = after.strip_suffix('\n').filter(|_| !before.ends_with('\n')).unwrap_or(&after);
    Ok((after != before).then(|| after.to_owned()))
}

fn edited(program: &str, path: &Path, id: &str) -> Result<()> {
    editor::edit(program, path).map_err(|error| {
        OperationError::rejected(format!(
            "the editor failed, and {id} stays as it is: {}",
            with_causes(&error)
        ))
    })
}
