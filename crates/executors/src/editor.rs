//! The person's editor.

use std::path::Path;

use crate::process::{ProcessError, command, interactive};

/// Opens `file` in `editor` and waits until the person is done. `editor` may have arguments, as
/// `$EDITOR` often does.
pub fn edit(editor: &str, file: &Path) -> Result<(), ProcessError> {
    let mut words = editor.split_whitespace();
    let mut editor = command(words.next().unwrap_or("vi"));
    editor.args(words);
    interactive(editor, file)
}
