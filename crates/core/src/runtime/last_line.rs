//! The last line of an agent's output.

use super::limit::plain;

/// How many characters of a line are kept: a line of JSON can be very long.
const LINE_CHARACTERS_MAX: usize = 200;

/// The last line of an output that has visible text, without control characters, shortened.
pub fn last_line(output: &str) -> Option<String> {
    let plain = plain(output);
    let visible = plain.lines().map(str::trim).rfind(|line| !line.is_empty())?;
    let words: Vec<&str> = visible.split_whitespace().collect();
    let line = words.join(" ");
    if line.chars().count() <= LINE_CHARACTERS_MAX {
        return Some(line);
    }
    let head: String = line.chars().take(LINE_CHARACTERS_MAX).collect();
    Some(format!("{head}…"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn last_line_skips_blank_lines_and_colours() {
        let output = "building\n\u{1b}[31merror:\u{1b}[0m  no such  file\r\n \n\u{1b}[0m\n";
        assert_eq!(last_line(output).as_deref(), Some("error: no such file"));
        for silent in ["", "\n\n", "\u{1b}[2J\u{1b}[H \r\n"] {
            assert_eq!(last_line(silent), None, "{silent:?}");
        }
    }

    #[test]
    fn last_line_is_shortened() {
        let long = last_line(&"x".repeat(5_000)).unwrap();
        assert_eq!(long.chars().count(), LINE_CHARACTERS_MAX + 1);
        assert!(long.ends_with('…'));
    }

    proptest! {
        #[test]
        fn last_line_is_one_printable_line(output in "\\PC{0,40}(\n|\r|\u{1b}\\[|\u{7})?\\PC{0,40}") {
            if let Some(line) = last_line(&output) {
                prop_assert!(!line.trim().is_empty());
                prop_assert!(!line.chars().any(char::is_control), "{line:?}");
            }
        }
    }
}
