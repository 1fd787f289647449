//! Instants, durations and the door to the clock.

use std::fmt::{self, Write as _};
use std::time::Duration;

use crate::Invalid;

/// An instant with nanosecond precision, so that an imported timestamp comes out as it went in.
///
/// Covers the years 1678 to 2261.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// An instant by its nanoseconds since 1970.
    pub const fn from_nanos(nanos: i64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since 1970.
    pub const fn as_nanos(self) -> i64 {
        self.0
    }

    /// Reads an RFC 3339 timestamp with any offset.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let beyond = || {
            let shown = text.escape_debug();
            Invalid(format!("\"{shown}\" is outside the years 1678 to 2261"))
        };
        let instant: jiff::Timestamp = text.parse().map_err(|_| {
            if is_far_off(text) {
                return beyond();
            }
            Invalid(format!(
                "\"{}\" is not a timestamp; write it like \"2026-05-31T12:34:56Z\"",
                text.escape_debug()
            ))
        })?;
        Self::from_jiff(instant).ok_or_else(beyond)
    }

    /// Reads a date, or a date with a time, that has no zone: it means UTC.
    pub fn parse_without_zone(text: &str) -> Option<Self> {
        let time: jiff::civil::DateTime = text.parse().ok()?;
        let zoned = time.to_zoned(jiff::tz::TimeZone::UTC).ok()?;
        Self::from_jiff(zoned.timestamp())
    }

    /// Reads a point in time as a person writes it: a timestamp, a date, `+2d` or `2d`, `today`, `tomorrow`,
    /// `next monday`, `2 days ago`. Dates and days mean midnight UTC.
    pub fn parse_relative(text: &str, now: Self) -> Result<Self, Invalid> {
        let day = Duration::from_hours(24);
        if let Some(rest) = text.strip_prefix('+') {
            return Ok(now.plus(parse_duration(rest)?));
        }
        match text {
            "now" => return Ok(now),
            "today" => return Ok(now.midnight()),
            "tomorrow" => return Ok(now.midnight().plus(day)),
            "yesterday" => return Ok(now.midnight().minus(day)),
            _ => {}
        }
        if let Some(ago) = text.strip_prefix('-').and_then(|rest| parse_duration(rest).ok()) {
            return Ok(now.minus(ago));
        }
        if let Ok(ahead) = parse_duration(text) {
            return Ok(now.plus(ahead));
        }
        if let Some(instant) = parse_phrase(text, now) {
            return Ok(instant);
        }
        if text.len() == 10
            && let Ok(instant) = Self::parse(&format!("{text}T00:00:00Z"))
        {
            return Ok(instant);
        }
        Self::parse(text).map_err(|error| {
            if is_far_off(text) {
                return error;
            }
            Invalid(format!(
                "\"{}\" is not a time; write 2026-05-31, \"2026-05-31T12:34:56Z\", tomorrow, next monday, 2 days ago or +2d",
                text.escape_debug()
            ))
        })
    }

    /// The time of a change that is made now to what changed last at `earlier`: a clock that was ahead may have told that.
    #[must_use]
    pub fn of_change_after(self, earlier: Self) -> Self {
        if earlier > self { earlier.plus(Duration::from_millis(1)) } else { self }
    }

    /// This instant moved later; stays at the end of the range instead of wrapping.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        let nanos = i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX);
        Self(self.0.saturating_add(nanos))
    }

    /// This instant moved earlier; stays at the beginning of the range instead of wrapping.
    #[must_use]
    pub fn minus(self, duration: Duration) -> Self {
        let nanos = i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX);
        Self(self.0.saturating_sub(nanos))
    }

    /// This instant moved by so many units of the calendar; nothing for a word that is no unit, or out of range.
    fn shifted(self, amount: i64, unit: &str) -> Option<Self> {
        let span = jiff::Span::new();
        let span = match unit.strip_suffix('s').unwrap_or(unit) {
            "second" | "sec" => span.try_seconds(amount),
            "minute" | "min" => span.try_minutes(amount),
            "hour" => span.try_hours(amount),
            "day" => span.try_days(amount),
            "week" => span.try_weeks(amount),
            "month" => span.try_months(amount),
            "year" => span.try_years(amount),
            _ => return None,
        };
        let utc = jiff::tz::TimeZone::UTC;
        let moved = utc.to_datetime(self.to_jiff()).checked_add(span.ok()?).ok()?;
        Self::from_jiff(utc.to_timestamp(moved).ok()?)
    }

    /// The next day of this name after today, in UTC.
    fn next_weekday(self, name: &str) -> Option<Self> {
        use jiff::civil::Weekday;
        let weekday = match name {
            "monday" | "mon" => Weekday::Monday,
            "tuesday" | "tue" => Weekday::Tuesday,
            "wednesday" | "wed" => Weekday::Wednesday,
            "thursday" | "thu" => Weekday::Thursday,
            "friday" | "fri" => Weekday::Friday,
            "saturday" | "sat" => Weekday::Saturday,
            "sunday" | "sun" => Weekday::Sunday,
            _ => return None,
        };
        let today = jiff::tz::TimeZone::UTC.to_datetime(self.to_jiff()).date();
        Self::of_date(today.nth_weekday(1, weekday).ok()?)
    }

    /// The second in which this is.
    #[must_use]
    pub fn floor_to_second(self) -> Self {
        Self(self.0 - self.0.rem_euclid(1_000_000_000))
    }

    /// How long after `earlier` this is; zero when it is not after it.
    pub fn since(self, earlier: Self) -> Duration {
        let nanos = self.0.saturating_sub(earlier.0);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(0))
    }

    /// The first moment of its month, in UTC.
    #[must_use]
    pub fn start_of_month(self) -> Self {
        let date = jiff::tz::TimeZone::UTC.to_datetime(self.to_jiff()).date();
        Self::of_date(date.first_of_month()).unwrap_or(self)
    }

    /// The first moment of the next month, in UTC.
    #[must_use]
    pub fn start_of_next_month(self) -> Self {
        let date = jiff::tz::TimeZone::UTC.to_datetime(self.to_jiff()).date();
        let next = date.last_of_month().tomorrow().ok();
        next.and_then(Self::of_date).unwrap_or(self)
    }

    fn of_date(date: jiff::civil::Date) -> Option<Self> {
        let start = jiff::tz::TimeZone::UTC.to_timestamp(date.at(0, 0, 0, 0)).ok()?;
        Self::from_jiff(start)
    }

    fn midnight(self) -> Self {
        let day = 24 * 60 * 60 * 1_000_000_000;
        Self(self.0 - self.0.rem_euclid(day))
    }

    fn from_jiff(instant: jiff::Timestamp) -> Option<Self> {
        i64::try_from(instant.as_nanosecond()).ok().map(Self)
    }

    /// The same instant for local-time display.
    pub fn to_jiff(self) -> jiff::Timestamp {
        // An i64 of nanoseconds covers 1678 to 2261; jiff covers the years -9999 to 9999.
        jiff::Timestamp::from_nanosecond(i128::from(self.0)).unwrap_or(jiff::Timestamp::UNIX_EPOCH)
    }
}

/// RFC 3339 in UTC; the fraction without trailing zeros, and none when it is zero.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.to_jiff())
    }
}

/// Where the current time comes from. The only implementation that reads the machine's clock is in
/// the operations; tests and the simulator bring their own.
pub trait Clock: Send + Sync {
    /// The current time.
    fn now(&self) -> Timestamp;
}

const UNITS: [(&str, u64); 8] = [
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
    ("w", 604_800_000_000_000),
];

/// A point in time in words: `next monday`, `2 days ago`, `in 3 weeks`.
fn parse_phrase(text: &str, now: Timestamp) -> Option<Timestamp> {
    let lower = text.to_ascii_lowercase();
    let words: Vec<&str> = lower.split_whitespace().collect();
    let number = |word: &str| match word {
        "a" | "an" | "one" => Some(1),
        digits => digits.parse::<u32>().ok().map(i64::from),
    };
    match words.as_slice() {
        ["next", unit @ ("week" | "month" | "year")] => now.midnight().shifted(1, unit),
        ["last", unit @ ("week" | "month" | "year")] => now.midnight().shifted(-1, unit),
        [day] | ["next", day] => now.next_weekday(day),
        ["in", amount, unit] | [amount, unit, "from", "now"] => now.shifted(number(amount)?, unit),
        [amount, unit, "ago"] => now.shifted(-number(amount)?, unit),
        _ => None,
    }
}

/// Reads `2s`, `3m`, `1h30m`, `1h 30m`, `500ms`, `2d`, `1w`, or `0`.
pub fn parse_duration(text: &str) -> Result<Duration, Invalid> {
    let invalid = || {
        Invalid(format!(
            "\"{}\" is not a duration; write it like 2s, 3m, 1h30m or 2d",
            text.escape_debug()
        ))
    };
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let mut rest = text;
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let number: u64 = rest[..digits].parse().map_err(|_| invalid())?;
        rest = &rest[digits..];
        let letters = rest.bytes().take_while(u8::is_ascii_alphabetic).count();
        let unit = &rest[..letters];
        let (_, nanos) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(invalid)?;
        let part = number.checked_mul(*nanos).ok_or_else(invalid)?;
        total = total.checked_add(part).ok_or_else(invalid)?;
        rest = &rest[letters..];
        // Durations are shown with a space between their units.
        rest = rest.strip_prefix(' ').filter(|rest| !rest.is_empty()).unwrap_or(rest);
    }
    if text.is_empty() { Err(invalid()) } else { Ok(Duration::from_nanos(total)) }
}

/// Writes a duration the way [`parse_duration`] reads it, in its largest units.
pub fn format_duration(duration: Duration) -> String {
    let mut nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    if nanos == 0 {
        return "0s".to_owned();
    }
    let mut text = String::new();
    for unit in ["d", "h", "m", "s", "ms", "us", "ns"] {
        let size = UNITS.iter().find(|(name, _)| *name == unit).map_or(1, |(_, size)| *size);
        if nanos >= size {
            let _ = write!(text, "{}{unit}", nanos / size);
            nanos %= size;
        }
    }
    text
}

/// Whether a date begins with a year that people write for "never".
fn is_far_off(text: &str) -> bool {
    let year = text.get(..4).and_then(|year| year.parse::<u32>().ok());
    year.is_some_and(|year| year > 2261) && text.as_bytes().get(4) == Some(&b'-')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn timestamps_print_without_trailing_zeros() {
        for (given, expected) in [
            ("2026-05-31T12:34:56Z", "2026-05-31T12:34:56Z"),
            ("2026-05-31T12:34:56.5Z", "2026-05-31T12:34:56.5Z"),
            ("2026-05-31T12:34:56.500Z", "2026-05-31T12:34:56.5Z"),
            ("2026-05-31T12:34:56.789012345Z", "2026-05-31T12:34:56.789012345Z"),
            ("2026-05-31T14:34:56+02:00", "2026-05-31T12:34:56Z"),
        ] {
            assert_eq!(Timestamp::parse(given).unwrap().to_string(), expected);
        }
    }

    #[test]
    fn a_change_is_later_than_what_a_clock_that_was_ahead_told() {
        let at = Timestamp::from_nanos;
        assert_eq!(at(7).of_change_after(at(5)), at(7));
        assert_eq!(at(7).of_change_after(at(7)), at(7));
        assert_eq!(at(7).of_change_after(at(9)), at(1_000_009));
        assert_eq!(at(7).of_change_after(at(i64::MAX)), at(i64::MAX));
    }

    #[test]
    fn people_may_write_relative_times() {
        let now = Timestamp::parse("2026-05-31T12:34:56Z").unwrap();
        for (given, expected) in [
            ("+2d", "2026-06-02T12:34:56Z"),
            ("+1h30m", "2026-05-31T14:04:56Z"),
            ("+1h 30m", "2026-05-31T14:04:56Z"),
            ("today", "2026-05-31T00:00:00Z"),
            ("tomorrow", "2026-06-01T00:00:00Z"),
            ("2026-07-01", "2026-07-01T00:00:00Z"),
        ] {
            assert_eq!(Timestamp::parse_relative(given, now).unwrap().to_string(), expected);
        }
        for (given, expected) in [
            ("yesterday", "2026-05-30T00:00:00Z"),
            ("2d", "2026-06-02T12:34:56Z"),
            ("-1d", "2026-05-30T12:34:56Z"),
            ("2 days ago", "2026-05-29T12:34:56Z"),
            ("an hour ago", "2026-05-31T11:34:56Z"),
            ("In 2 Weeks", "2026-06-14T12:34:56Z"),
            ("3 days from now", "2026-06-03T12:34:56Z"),
            ("next monday", "2026-06-01T00:00:00Z"),
            ("Sunday", "2026-06-07T00:00:00Z"),
            ("next week", "2026-06-07T00:00:00Z"),
            ("next month", "2026-06-30T00:00:00Z"),
            ("last year", "2025-05-31T00:00:00Z"),
        ] {
            let read = Timestamp::parse_relative(given, now).map(|read| read.to_string());
            assert_eq!(read.as_deref(), Ok(expected), "{given}");
        }
        for given in ["next", "next moon", "2 moons ago", "-3 days ago", "99999999999 years ago"] {
            assert!(Timestamp::parse_relative(given, now).is_err(), "{given}");
        }
        for given in ["", "yesterdayish", "+", "+2", "2026-13-01", "+99999999999999999999d"] {
            assert!(Timestamp::parse_relative(given, now).is_err(), "{given}");
        }
    }

    #[test]
    fn a_duration_may_have_a_space_between_its_units() {
        for (given, expected) in [("1m 20s", "1m20s"), ("3h 5m", "3h5m"), ("2d 3h 1s", "2d3h1s")] {
            assert_eq!(parse_duration(given), parse_duration(expected), "{given}");
        }
        for given in ["1m ", " 1m", "1m  20s", "1 m", "1m -20s"] {
            assert!(parse_duration(given).is_err(), "{given}");
        }
    }

    proptest! {
        #[test]
        fn every_timestamp_survives_printing(nanos: i64) {
            let instant = Timestamp::from_nanos(nanos);
            prop_assert_eq!(Timestamp::parse(&instant.to_string()).unwrap(), instant);
        }

        #[test]
        fn every_duration_survives_printing(nanos: u64) {
            let duration = Duration::from_nanos(nanos);
            prop_assert_eq!(parse_duration(&format_duration(duration)).unwrap(), duration);
        }

        #[test]
        fn no_text_makes_the_parsers_panic(text in ".{0,40}") {
            let _ = parse_duration(&text);
            let _ = Timestamp::parse(&text);
            let _ = Timestamp::parse_relative(&text, Timestamp::from_nanos(0));
        }
    }
}
