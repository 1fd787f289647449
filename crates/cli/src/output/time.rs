//! Times, durations and commits as people read them. JSON has RFC 3339 and whole ids instead.

use std::time::Duration;

use gt_core::{Clock as _, Timestamp};
use gt_town::SystemClock;
use jiff::civil::{DateTime, Time};
use jiff::tz::TimeZone;

/// An instant where the reader is, to the second: the time of day, and the date if it is not today.
pub(crate) fn moment(at: Timestamp) -> String {
    moment_in(at, SystemClock.now(), &TimeZone::system())
}

fn moment_in(at: Timestamp, now: Timestamp, zone: &TimeZone) -> String {
    let (at, now) = (at.to_jiff().to_zoned(zone.clone()), now.to_jiff().to_zoned(zone.clone()));
    let format = if at.date() == now.date() { "%H:%M:%S" } else { "%Y-%m-%d %H:%M:%S" };
    at.strftime(format).to_string()
}

/// Reads an instant as [`moment`] writes it; also without the seconds.
pub(crate) fn parse_moment(text: &str, now: Timestamp) -> Option<Timestamp> {
    parse_moment_in(text, now, &TimeZone::system())
}

fn parse_moment_in(text: &str, now: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
    let dated = |format: &&str| DateTime::strptime(format, text).ok();
    let at = ["%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M"].iter().find_map(dated).or_else(|| {
        let time = |format: &&str| Time::strptime(format, text).ok();
        let time = ["%H:%M:%S", "%H:%M"].iter().find_map(time)?;
        Some(now.to_jiff().to_zoned(zone.clone()).date().to_datetime(time))
    })?;
    let nanos = zone.to_timestamp(at).ok()?.as_nanosecond();
    i64::try_from(nanos).ok().map(Timestamp::from_nanos)
}

/// The date of an instant where the reader is.
pub(crate) fn local_date(at: Timestamp) -> String {
    at.to_jiff().to_zoned(TimeZone::system()).strftime("%Y-%m-%d").to_string()
}

/// A sentence of this program with every instant in it as [`moment`] writes it. Text in quotation marks was written
/// by others, and stays.
pub(crate) fn local_times(text: &str) -> String {
    local_times_in(text, SystemClock.now(), &TimeZone::system())
}

fn local_times_in(text: &str, now: Timestamp, zone: &TimeZone) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        // An instant ends with the Z of UTC; everything before it is digits and signs.
        let length = from.find(|c: char| !matches!(c, '0'..='9' | '-' | ':' | '.' | 'T' | 'Z'));
        let word = &from[..length.unwrap_or(from.len())];
        let word = &word[..word.find('Z').map_or(word.len(), |end| end + 1)];
        let is_quoted = before.ends_with(['"', '\'', '`']);
        let stands_alone = !out.ends_with(|c: char| c.is_alphanumeric() || matches!(c, '-' | '_'));
        let instant = Timestamp::parse(word).ok().filter(|_| stands_alone && !is_quoted);
        match instant.filter(|_| word.len() >= "2026-05-31T12:34:56Z".len()) {
            Some(instant) => out.push_str(&moment_in(instant, now, zone)),
            None => out.push_str(word),
        }
        rest = &from[word.len()..];
    }
    out.push_str(rest);
    out
}

/// How long something takes or took, in its two largest units, and never below a millisecond: `350ms`, `12s`, `1m 20s`,
/// `3h 5m`.
pub(crate) fn span(time: Duration) -> String {
    let (millis, seconds) = (time.as_millis(), time.as_secs());
    let (minutes, hours, days) = (seconds / 60, seconds / 3_600, seconds / 86_400);
    let two = |first: u64, unit: &str, second: u64, smaller: &str| match second {
        0 => format!("{first}{unit}"),
        _ => format!("{first}{unit} {second}{smaller}"),
    };
    match seconds {
        0 if millis == 0 => "0s".to_owned(),
        0 => format!("{millis}ms"),
        1..60 => format!("{seconds}s"),
        60..3_600 => two(minutes, "m", seconds % 60, "s"),
        3_600..86_400 => two(hours, "h", minutes % 60, "m"),
        _ => two(days, "d", hours % 24, "h"),
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

/// The first twelve digits of a commit id. A text that is no commit id is not shortened.
pub(crate) fn short_commit(commit: &str) -> &str {
    let is_id = commit.len() >= 40 && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_id { &commit[..12] } else { commit }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn zone() -> TimeZone {
        TimeZone::fixed(jiff::tz::offset(2))
    }

    fn instant(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    #[test]
    fn an_instant_has_a_date_unless_it_is_today() {
        let now = instant("2026-05-31T23:30:00Z");
        for (at, expected) in [
            ("2026-05-31T22:00:00Z", "00:00:00"),
            ("2026-05-31T23:29:59.999999999Z", "01:29:59"),
            ("2026-05-31T21:59:59Z", "2026-05-31 23:59:59"),
            ("2025-06-01T01:00:00Z", "2025-06-01 03:00:00"),
        ] {
            assert_eq!(moment_in(instant(at), now, &zone()), expected, "{at}");
        }
    }

    #[test]
    fn an_instant_is_read_as_it_is_shown() {
        let now = instant("2026-05-31T23:30:00Z");
        for at in ["2026-05-31T22:00:01Z", "2026-05-31T21:59:59Z", "2025-06-01T01:00:00Z"] {
            let at = instant(at);
            let shown = moment_in(at, now, &zone());
            assert_eq!(parse_moment_in(&shown, now, &zone()), Some(at), "{shown}");
        }
        for (text, expected) in [
            ("14:30", Some("2026-06-01T12:30:00Z")),
            ("2026-05-31 14:30", Some("2026-05-31T12:30:00Z")),
            ("2026-05-31", None),
            ("2026-05-31T14:30:00Z", None),
            ("2026-05-31 14:30:00+05:00", None),
            ("25:00", None),
            ("14", None),
            ("", None),
        ] {
            assert_eq!(parse_moment_in(text, now, &zone()), expected.map(instant), "{text}");
        }
    }

    #[test]
    fn an_example_of_a_time_in_an_error_stays_as_it_is() {
        let now = instant("2026-05-31T12:00:00Z");
        for error in [
            Timestamp::parse("soon").unwrap_err().to_string(),
            Timestamp::parse_relative("soon", now).unwrap_err().to_string(),
        ] {
            assert_eq!(local_times_in(&error, now, &zone()), error);
        }
    }

    #[test]
    fn sentences_have_local_times() {
        let now = instant("2026-05-31T12:00:00Z");
        for (text, expected) in [
            ("paused by ann since 2026-05-31T10:00:00.123Z", "paused by ann since 12:00:00"),
            ("until 2026-06-01T10:00:00Z: 3 of 5", "until 2026-06-01 12:00:00: 3 of 5"),
            ("\"2026-05-31T10:00:00Z\" is no id", "\"2026-05-31T10:00:00Z\" is no id"),
            ("gt-2026-05-31T10:00:00Z", "gt-2026-05-31T10:00:00Z"),
            ("web-12 at 10:00, 1.5 of 3, 2026-05-31", "web-12 at 10:00, 1.5 of 3, 2026-05-31"),
            ("", ""),
        ] {
            assert_eq!(local_times_in(text, now, &zone()), expected);
        }
    }

    #[test]
    fn a_span_has_at_most_two_units_and_is_never_below_a_millisecond() {
        for (nanos, expected) in [
            (0, "0s"),
            (999_999, "0s"),
            (1_999_999, "1ms"),
            (12_900_000_000, "12s"),
            (80_000_000_000, "1m 20s"),
            (11_100_000_000_000, "3h 5m"),
            (172_800_000_000_000, "2d"),
        ] {
            assert_eq!(span(Duration::from_nanos(nanos)), expected);
        }
    }

    #[test]
    fn only_commit_ids_are_shortened() {
        let id = "0123456789abcdef0123456789abcdef01234567";
        assert_eq!(short_commit(id), "0123456789ab");
        assert_eq!(
            short_commit("refs/heads/a-branch-with-a-name-of-40-letters"),
            "refs/heads/a-branch-with-a-name-of-40-letters"
        );
        assert_eq!(short_commit(""), "");
    }

    proptest! {
        #[test]
        fn a_text_without_instants_stays_as_it_is(text in "[^Z]{0,60}") {
            prop_assert_eq!(local_times_in(&text, instant("2026-05-31T12:00:00Z"), &zone()), text);
        }

        #[test]
        fn no_text_makes_it_panic(text in ".{0,60}") {
            let _ = (local_times(&text), short_commit(&text).len());
        }
    }
}
