//! The part of a command's output that is kept as a note.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

/// How much of the end of the output is read, in bytes.
const TAIL_BYTES_MAX: u64 = 4096;
/// How many lines of it are noted.
const LINES_MAX: usize = 20;

/// The last lines of a file, safe to show to every reader. Nothing if they cannot be read: the file is kept.
pub(super) fn tail(path: &Path) -> String {
    last_lines(&end_of(path).unwrap_or_default())
}

fn end_of(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES_MAX)))?;
    let mut bytes = Vec::new();
    file.take(TAIL_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn last_lines(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let plain: String =
        text.chars().filter(|c| matches!(c, '\n' | '\t') || !c.is_control()).collect();
    let lines: Vec<&str> = plain.trim().lines().map(str::trim_end).collect();
    lines[lines.len().saturating_sub(LINES_MAX)..].join("\n")
}

/// The notes of an item after a command: its failure and its last words, then the earlier notes. Nothing if there is nothing
/// to add.
pub(super) fn noted(old: &str, failure: Option<&str>, words: &str) -> Option<String> {
    let parts = [failure.unwrap_or_default(), words].into_iter().filter(|part| !part.is_empty());
    let new = parts.collect::<Vec<_>>().join("\n");
    if new.is_empty() {
        return None;
    }
    Some(if old.is_empty() { new } else { format!("{new}\n\n{old}") })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_last_lines_say_what_happened() {
        assert_eq!(last_lines(b"one\r\n\x1b[31mtwo\x1b[0m  \n\n"), "one\n[31mtwo[0m");
        let many: Vec<String> = (0..50).map(|line| format!("line {line}")).collect();
        let last = last_lines(many.join("\n").as_bytes());
        assert_eq!((last.lines().count(), last.lines().last()), (LINES_MAX, Some("line 49")));
        assert_eq!(tail(Path::new("/there/is/none")), "");
    }

    #[test]
    fn earlier_notes_are_kept() {
        assert_eq!(noted("", None, ""), None);
        assert_eq!(noted("by Marcus", None, ""), None);
        assert_eq!(noted("", None, "merged").as_deref(), Some("merged"));
        let failed = noted("by Marcus", Some("exit status 3"), "no such file");
        assert_eq!(failed.as_deref(), Some("exit status 3\nno such file\n\nby Marcus"));
    }

    proptest! {
        #[test]
        fn every_output_of_a_command_can_be_noted(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let lines = last_lines(&bytes);
            prop_assert!(lines.lines().count() <= LINES_MAX);
            prop_assert!(!lines.contains('\0'));
        }
    }
}
