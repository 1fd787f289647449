//! "You may go on at five": usage limits in the output of programs.

use std::time::Duration;

use super::instant::{self, Zones};
use super::{Pattern, Runtime};
use crate::{Invalid, Timestamp};

/// The longest wait that the output of a program can cause.
pub const LIMIT_WAIT_MAX: Duration = Duration::from_hours(7 * 24);

/// How long a limit holds whose end was not said, or has passed already.
const LIMIT_WAIT_DEFAULT: Duration = Duration::from_mins(30);

/// How long a limit holds that an event tells of without its end.
const LIMIT_WAIT_UNTOLD: Duration = Duration::from_mins(5);

/// How much of the end of an output is looked at, in bytes. A limit is the last thing that a program says.
const TAIL_BYTES_MAX: usize = 8 * 1024;

/// How much of the program's message is kept for people, in characters.
const SAID_CHARACTERS_MAX: usize = 200;

/// One thing that a program says when it may not go on for a while.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limit {
    /// The pattern of the output. The group `until` marks where a point in time begins, `after` where a duration
    /// does; where there is none it does not fit.
    pub pattern: Pattern,
    /// How long to wait if it does not say until when, or that has passed.
    pub wait: Duration,
}

impl Limit {
    /// A limit; without `wait`, half an hour is waited where nothing better is known.
    pub fn new(pattern: Pattern, wait: Option<Duration>) -> Result<Self, Invalid> {
        let wait = wait.unwrap_or(LIMIT_WAIT_DEFAULT);
        if wait.is_zero() || wait > LIMIT_WAIT_MAX {
            return Err(Invalid::new("wait must be longer than 0 and at most 7d"));
        }
        Ok(Self { pattern, wait })
    }
}

/// A program may not go on before this.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitUntil {
    /// When it may go on: later than now, and at most [`LIMIT_WAIT_MAX`] later.
    pub at: Timestamp,
    /// Whether the program said when; else it is a guess.
    pub is_exact: bool,
    /// The line that the program printed.
    pub said: String,
}

impl LimitUntil {
    /// A limit that an event tells of. A clock that is wrong does not make it longer than its window; where no end is told,
    /// or that has passed, the agent is tried again soon.
    pub fn reported(
        until: Option<Timestamp>,
        window: Option<Duration>,
        said: &str,
        now: Timestamp,
    ) -> Self {
        let longest = now.plus(window.unwrap_or(LIMIT_WAIT_MAX).min(LIMIT_WAIT_MAX));
        let told = until.filter(|at| *at > now).map(|at| at.min(longest));
        Self {
            at: told.unwrap_or_else(|| now.plus(LIMIT_WAIT_UNTOLD)),
            is_exact: told.is_some(),
            said: said.split_whitespace().collect::<Vec<_>>().join(" "),
        }
    }
}

impl Runtime {
    /// The usage limit that the end of an output tells of, if it does. The one that is said last counts, of those
    /// that say until when if there are any.
    pub fn limit_in(&self, output: &str, now: Timestamp, zones: &Zones<'_>) -> Option<LimitUntil> {
        let text = plain(tail(output));
        let mut last: Option<((bool, usize), LimitUntil)> = None;
        for limit in &self.limits {
            for captures in limit.pattern.regex().captures_iter(&text) {
                let Some(whole) = captures.get(0) else { continue };
                let from = |name| captures.name(name).map(|found| &text[found.start()..]);
                let until = from("until").map(|text| instant::point(text, now, zones));
                let after = from("after").map(|text| Some(now.plus(instant::duration(text)?)));
                let told = until.or(after);
                // Where a time should be and is none, something else was said.
                if told == Some(None) {
                    continue;
                }
                let told = told
                    .flatten()
                    .filter(|at| *at > now)
                    .map(|at| at.min(now.plus(LIMIT_WAIT_MAX)));
                let found = LimitUntil {
                    at: told.unwrap_or_else(|| now.plus(limit.wait)),
                    is_exact: told.is_some(),
                    said: line_at(&text, whole.start()),
                };
                let rank = (found.is_exact, whole.end());
                // Of several that fit the same words, the first in the file counts.
                if last.as_ref().is_none_or(|(best, _)| rank > *best) {
                    last = Some((rank, found));
                }
            }
        }
        last.map(|(_, found)| found)
    }
}

/// The end of a text.
fn tail(text: &str) -> &str {
    let start = text.len().saturating_sub(TAIL_BYTES_MAX);
    let start = (start..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    &text[start..]
}

/// A text without control sequences.
pub(crate) fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\u{1b}' => match rest.next() {
                // Parameters, then one letter.
                Some('[') => while rest.next().is_some_and(|c| !('@'..='~').contains(&c)) {},
                // A title, up to a bell or a string terminator.
                Some(']') => while rest.next().is_some_and(|c| c != '\u{7}' && c != '\u{1b}') {},
                _ => {}
            },
            '\n' => plain.push('\n'),
            '\r' if rest.peek() == Some(&'\n') => {}
            c if c.is_control() => plain.push(' '),
            '\u{2019}' => plain.push('\''),
            c => plain.push(c),
        }
    }
    plain
}

/// The line that a place is on, shortened.
fn line_at(text: &str, place: usize) -> String {
    let (before, after) = text.split_at(place);
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    let end = after.find('\n').map_or(text.len(), |at| place + at);
    // A machine-readable line can be long; only the message in it matters.
    let line =
        if place - start > SAID_CHARACTERS_MAX / 2 { &text[place..end] } else { &text[start..end] };
    let words: Vec<&str> = line.split_whitespace().collect();
    words.join(" ").chars().take(SAID_CHARACTERS_MAX).collect()
}
