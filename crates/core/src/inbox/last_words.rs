//! The end of the output of a worker, for a person.

use crate::runtime::plain;

/// How many lines are shown.
const LINES_MAX: usize = 5;
/// How much of a line is shown.
const LINE_CHARACTERS_MAX: usize = 300;

/// The last lines of an output that are not empty, without what controls a terminal.
pub fn last_words(output: &str) -> String {
    let text = plain(output);
    let mut lines: Vec<String> = text
        .lines()
        .rev()
        .map(|line| line.trim_end().chars().take(LINE_CHARACTERS_MAX).collect::<String>())
        .filter(|line| !line.is_empty())
        .take(LINES_MAX)
        .collect();
    lines.reverse();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_plain_and_short() {
        assert_eq!(last_words(""), "");
        assert_eq!(last_words("\n \n"), "");
        let line = |number| format!("\u{1b}[31mline {number}\u{1b}[0m\r\n");
        let many: Vec<String> = (1..=9).map(line).collect();
        assert_eq!(last_words(&many.join("\n")), "line 5\nline 6\nline 7\nline 8\nline 9");
        assert_eq!(last_words(&"x".repeat(1000)).len(), LINE_CHARACTERS_MAX);
    }
}
