//! Plurals, sizes and harmless lines.

use std::borrow::Cow;

use comfy_table::Color;
use gt_core::Status;
use gt_core::schedule::RunState;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// `1 bead`, `2 beads`.
pub(crate) fn plural(count: u64, one: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{count} {one}s") }
}

/// So many bytes, in the largest unit.
pub(crate) fn size(bytes: u64) -> String {
    indicatif::BinaryBytes(bytes).to_string()
}

/// One line of text without the control characters that text of others may hold: they must not reach the terminal. A
/// character that turns the direction of the text is shown as a mark, because it would change what stands beside it.
pub(crate) fn harmless(text: &str) -> Cow<'_, str> {
    let controls = |c: char| c.is_control() && c != '\t';
    let turns = |c: char| matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    if !text.contains(|c| controls(c) || turns(c)) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.replace(controls, " ").replace(turns, "\u{fffd}"))
}

/// Text for a cell of a screen: harmless, and without characters that have no width or turn the direction of the text, because
/// they hide or move what stands beside them.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    let is_hidden = |c: char| {
        matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}')
    };
    let text = harmless(text);
    if text.contains(is_hidden) { Cow::Owned(text.replace(is_hidden, "")) } else { text }
}

/// A text in lines of at most this many columns, broken between words where that is possible.
pub(crate) fn wrap_words(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(1);
    let mut lines: Vec<String> = Vec::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() && line.width() + 1 + word.width() > columns {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        for letter in word.chars() {
            if !line.is_empty() && line.width() + letter.width().unwrap_or(0) > columns {
                lines.push(std::mem::take(&mut line));
            }
            line.push(letter);
        }
    }
    if !line.is_empty() {
        lines.push(line);
    }
    lines
}

/// A line of another program without what colours it, and with what overwrote itself as it was in the end.
pub(crate) fn plain_line(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    let text = anstream::adapter::strip_str(&text).to_string();
    let shown = text.trim_end_matches('\r');
    harmless(shown.rsplit('\r').next().unwrap_or_default()).into_owned()
}

/// The colour that goes with a status.
pub(crate) fn status_colour(status: &Status) -> Option<Color> {
    match status {
        Status::Open | Status::Custom(_) => None,
        Status::InProgress | Status::Hooked => Some(Color::Yellow),
        Status::Blocked => Some(Color::Red),
        Status::Deferred | Status::Pinned => Some(Color::Cyan),
        Status::Closed => Some(Color::DarkGrey),
    }
}

/// The colour that goes with the state of a run.
pub(crate) fn run_state_colour(state: RunState) -> Color {
    match state {
        RunState::Starting | RunState::Running => Color::Yellow,
        RunState::Blocked | RunState::Lost | RunState::Failed => Color::Red,
        RunState::Done => Color::Green,
        RunState::Cancelled => Color::DarkGrey,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_do_not_reach_a_terminal() {
        assert_eq!(plain_line(b"\x1b[31mred\x1b[0m and \x1b]0;title\x07more\r"), "red and more");
        assert_eq!(plain_line(b"10%\r50%\r100%"), "100%");
        assert_eq!(plain_line(b"\xff\xfe"), "\u{fffd}\u{fffd}");
    }

    #[test]
    fn characters_that_turn_the_text_are_shown_as_marks() {
        for turning in ['\u{202e}', '\u{2066}', '\u{200f}', '\u{61c}'] {
            assert_eq!(harmless(&format!("pay {turning}ann")), "pay \u{fffd}ann");
        }
        assert_eq!(harmless("שלום עולם"), "שלום עולם");
    }

    #[test]
    fn words_are_kept_whole_if_they_fit() {
        assert_eq!(wrap_words("one two  three", 7), ["one two", "three"]);
        assert_eq!(wrap_words("abcdefgh 日本語", 4), ["abcd", "efgh", "日本", "語"]);
        assert!(wrap_words(" ", 4).is_empty());
        assert_eq!(wrap_words("日", 0), ["日"]);
    }

    #[test]
    fn cells_have_no_character_without_width() {
        assert_eq!(visible("a\u{202e}b\u{200b}c\x1b[2Jd"), "a\u{fffd}bc [2Jd");
        assert_eq!(visible("日本 é"), "日本 é");
    }
}
