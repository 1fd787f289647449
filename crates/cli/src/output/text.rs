//! Plurals, sizes and harmless lines.

use std::borrow::Cow;

use comfy_table::Color;
use gt_core::Status;
use gt_core::schedule::RunState;

/// `1 bead`, `2 beads`.
pub(crate) fn plural(count: u64, one: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{count} {one}s") }
}

/// So many bytes, in the largest unit.
pub(crate) fn size(bytes: u64) -> String {
    indicatif::BinaryBytes(bytes).to_string()
}

/// One line of text without the control characters that text of others may hold: they must not reach
/// the terminal.
pub(crate) fn harmless(text: &str) -> Cow<'_, str> {
    let harmful = |c: char| c.is_control() && c != '\t';
    if text.contains(harmful) {
        Cow::Owned(text.replace(harmful, " "))
    } else {
        Cow::Borrowed(text)
    }
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
}
