//! Small words.

use std::borrow::Cow;
use std::time::Duration;

use comfy_table::Color;
use gt_core::schedule::RunState;
use gt_core::{Status, Timestamp};
use jiff::tz::TimeZone;

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

/// How long ago, in the largest unit.
pub(crate) fn ago(then: Timestamp, now: Timestamp) -> String {
    let seconds = now.since(then).as_secs();
    match seconds {
        0..60 => "just now".to_owned(),
        60..3_600 => format!("{}m ago", seconds / 60),
        3_600..86_400 => format!("{}h ago", seconds / 3_600),
        _ => format!("{}d ago", seconds / 86_400),
    }
}

/// How long, to two units.
pub(crate) fn roughly(time: Duration) -> String {
    let (minutes, hours) = (time.as_secs() / 60, time.as_secs() / 3_600);
    match time.as_secs() {
        seconds @ 0..60 => format!("{seconds}s"),
        60..3_600 => format!("{minutes}m"),
        3_600..86_400 => format!("{hours}h {}m", minutes % 60),
        _ => format!("{}d {}h", hours / 24, hours % 24),
    }
}

/// The time of day where the reader is.
pub(crate) fn clock_time(at: Timestamp) -> String {
    at.to_jiff().to_zoned(TimeZone::system()).strftime("%H:%M:%S").to_string()
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
