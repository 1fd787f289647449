//! Points in time and durations as programs write them for people.

use std::time::Duration;

use jiff::civil::{Date, DateTime, Time, Weekday};
use jiff::tz::{Offset, TimeZone};
use jiff::{Span, ToSpan as _};

use crate::Timestamp;

/// How names of places become time zones. Which ones there are is known to the machine, not to us.
#[derive(Clone)]
pub struct Zones<'a> {
    /// The zone of a time that names none.
    pub local: TimeZone,
    /// The zone of a name such as `Europe/Rome`.
    pub named: &'a dyn Fn(&str) -> Option<TimeZone>,
}

impl std::fmt::Debug for Zones<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Zones").field("local", &self.local).finish_non_exhaustive()
    }
}

/// How far into a text a point in time is looked for, in words.
const WORDS_MAX: usize = 16;

/// The point in time that a text begins with: `2026-05-31T12:34:56Z`, seconds since 1970, or words such as
/// `9am (America/Chicago)`, `Jul 5th, 2026 8:19 PM`, `tomorrow at 14:00`. A clock time alone is the next one.
pub(super) fn point(text: &str, now: Timestamp, zones: &Zones<'_>) -> Option<Timestamp> {
    let head = head_of(text);
    if let Some(instant) = written_out(head) {
        return Some(instant);
    }
    if let Some(instant) = unix(head) {
        return Some(instant);
    }
    spoken(text, now, zones)
}

/// The text before the first white space or closing sign.
fn head_of(text: &str) -> &str {
    let end = text.find(|c: char| c.is_whitespace() || "\",;)]}'".contains(c));
    text[..end.unwrap_or(text.len())].trim_end_matches('.')
}

fn written_out(head: &str) -> Option<Timestamp> {
    head.contains('T').then(|| Timestamp::parse(head).ok())?
}

/// Seconds or milliseconds since 1970; shorter numbers are something else.
fn unix(head: &str) -> Option<Timestamp> {
    let digits = head.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = head.split_at(digits);
    if rest.starts_with(|c: char| c.is_alphanumeric() || c == ':') {
        return None;
    }
    let unit_nanos = match digits {
        10 => 1_000_000_000,
        13 => 1_000_000,
        _ => return None,
    };
    Some(Timestamp::from_nanos(number.parse::<i64>().ok()?.checked_mul(unit_nanos)?))
}

/// The parts of a point in time in words that were understood so far.
#[derive(Default)]
struct ParsedInstant {
    day: Option<ParsedDay>,
    year: Option<i16>,
    time: Option<Time>,
    zone: Option<TimeZone>,
}

enum ParsedDay {
    Of { month: i8, day: i8 },
    Whole(Date),
    Weekday(Weekday),
    Tomorrow,
    Today,
}

fn spoken(text: &str, now: Timestamp, zones: &Zones<'_>) -> Option<Timestamp> {
    let tokens = tokens(text);
    let mut spoken = ParsedInstant::default();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let following = tokens.get(at + 1).copied().unwrap_or_default();
        match spoken.take(token, following, zones) {
            Some(used) => at += used,
            None => break,
        }
    }
    spoken.instant(now, &zones.local)
}

/// The words at the beginning of a text, without the signs around them.
fn tokens(text: &str) -> Vec<&str> {
    let is_around = |c: char| "()[]{}\"',;·".contains(c);
    text.split(|c: char| c.is_whitespace() || is_around(c))
        .map(|word| word.trim_end_matches('.'))
        .filter(|word| !word.is_empty())
        .take(WORDS_MAX)
        .collect()
}

impl ParsedInstant {
    /// Understands a word, or two; says how many, and nothing at the end of the time.
    fn take(&mut self, word: &str, following: &str, zones: &Zones<'_>) -> Option<usize> {
        let lower = word.to_ascii_lowercase();
        if matches!(lower.as_str(), "at" | "on" | "the" | "by") {
            return Some(1);
        }
        if self.day.is_none() {
            let day = match lower.as_str() {
                "today" => Some(ParsedDay::Today),
                "tomorrow" => Some(ParsedDay::Tomorrow),
                _ => weekday(&lower).map(ParsedDay::Weekday),
            };
            if day.is_some() {
                self.day = day;
                return Some(1);
            }
            if let Ok(date) = word.parse::<Date>()
                && word.len() == 10
            {
                self.day = Some(ParsedDay::Whole(date));
                return Some(1);
            }
            let of = |month: &str, day: &str| {
                Some(ParsedDay::Of { month: self::month(month)?, day: day_number(day)? })
            };
            if let Some(day) = of(word, following).or_else(|| of(following, word)) {
                self.day = Some(day);
                return Some(2);
            }
        }
        if self.year.is_none()
            && matches!(self.day, Some(ParsedDay::Of { .. }))
            && word.len() == 4
            && let Ok(year) = word.parse()
        {
            self.year = Some(year);
            return Some(1);
        }
        if self.time.is_none()
            && let Some((time, used)) = clock(&lower, &following.to_ascii_lowercase())
        {
            self.time = Some(time);
            return Some(used);
        }
        if self.time.is_some() && self.zone.is_none() {
            self.zone = zone(word, zones);
            return self.zone.is_some().then_some(1);
        }
        None
    }

    fn instant(self, now: Timestamp, local: &TimeZone) -> Option<Timestamp> {
        let zone = self.zone.unwrap_or_else(|| local.clone());
        let here = now.to_jiff().to_zoned(zone.clone());
        let today = here.date();
        let in_zone = |date: Date, time: Time| {
            let instant = DateTime::from_parts(date, time).to_zoned(zone.clone()).ok()?.timestamp();
            Some(Timestamp::from_nanos(i64::try_from(instant.as_nanosecond()).ok()?))
        };
        let later = |date: Date, span: Span| date.checked_add(span).ok();
        let Some(day) = self.day else {
            // A clock time alone is the next one.
            let first = in_zone(today, self.time?)?;
            return if first > now {
                Some(first)
            } else {
                in_zone(later(today, 1.day())?, self.time?)
            };
        };
        let time = self.time.unwrap_or(Time::midnight());
        let date = match day {
            ParsedDay::Whole(date) => date,
            ParsedDay::Today => today,
            ParsedDay::Tomorrow => later(today, 1.day())?,
            ParsedDay::Weekday(weekday) => {
                let days = weekday.since(today.weekday());
                let date = later(today, i64::from(days).days())?;
                if in_zone(date, time)? > now { date } else { later(date, 7.days())? }
            }
            ParsedDay::Of { month, day } => {
                if let Some(year) = self.year {
                    Date::new(year, month, day).ok()?
                } else {
                    let this_year = Date::new(today.year(), month, day).ok()?;
                    // In December, January is next year's; in May, yesterday is not.
                    let half_a_year_ago = today.checked_sub(6.months()).ok()?;
                    if this_year < half_a_year_ago {
                        later(this_year, 1.year())?
                    } else {
                        this_year
                    }
                }
            }
        };
        in_zone(date, time)
    }
}

/// `9am`, `9:30pm`, `21:30`, `21:30:05`, or the first half of `9 am`; and how many words that took.
fn clock(word: &str, following: &str) -> Option<(Time, usize)> {
    let (digits, half, used) = match (word.strip_suffix("am"), word.strip_suffix("pm"), following) {
        (Some(digits), _, _) => (digits, Some(0), 1),
        (_, Some(digits), _) => (digits, Some(12), 1),
        (_, _, "am" | "a.m") => (word, Some(0), 2),
        (_, _, "pm" | "p.m") => (word, Some(12), 2),
        _ => (word, None, 1),
    };
    let mut parts = digits.trim_end_matches('z').splitn(3, ':');
    let hour: i8 = two_digits(parts.next()?)?;
    let minute = parts.next();
    // A number alone is no time.
    if minute.is_none() && half.is_none() {
        return None;
    }
    let minute = minute.map_or(Some(0), two_digits)?;
    let second = parts.next().map_or(Some(0), two_digits)?;
    let hour = match half {
        Some(_) if !(1..=12).contains(&hour) => return None,
        Some(half) => hour % 12 + half,
        None => hour,
    };
    Some((Time::new(hour, minute, second, 0).ok()?, used))
}

fn two_digits(text: &str) -> Option<i8> {
    let is_number = (1..=2).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { text.parse().ok() } else { None }
}

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

fn month(word: &str) -> Option<i8> {
    let word = word.to_ascii_lowercase();
    let place = MONTHS.iter().position(|name| word.len() >= 3 && name.starts_with(&word))?;
    i8::try_from(place + 1).ok()
}

fn day_number(word: &str) -> Option<i8> {
    let ending = ["st", "nd", "rd", "th"].into_iter().find_map(|ending| word.strip_suffix(ending));
    two_digits(ending.unwrap_or(word)).filter(|day| (1..=31).contains(day))
}

fn weekday(lower: &str) -> Option<Weekday> {
    const NAMES: [(&str, Weekday); 7] = [
        ("monday", Weekday::Monday),
        ("tuesday", Weekday::Tuesday),
        ("wednesday", Weekday::Wednesday),
        ("thursday", Weekday::Thursday),
        ("friday", Weekday::Friday),
        ("saturday", Weekday::Saturday),
        ("sunday", Weekday::Sunday),
    ];
    let found = NAMES.iter().find(|(name, _)| lower.len() >= 3 && name.starts_with(lower));
    found.map(|(_, day)| *day)
}

/// Short names of zones that programs print, with their minutes from UTC.
const SHORT_ZONES: [(&str, i32); 14] = [
    ("UTC", 0),
    ("GMT", 0),
    ("PST", -480),
    ("PDT", -420),
    ("MST", -420),
    ("MDT", -360),
    ("CST", -360),
    ("CDT", -300),
    ("EST", -300),
    ("EDT", -240),
    ("CET", 60),
    ("CEST", 120),
    ("IST", 330),
    ("JST", 540),
];

fn zone(word: &str, zones: &Zones<'_>) -> Option<TimeZone> {
    let short = SHORT_ZONES.iter().find(|(name, _)| name.eq_ignore_ascii_case(word));
    if let Some((_, minutes)) = short {
        return Offset::from_seconds(minutes * 60).ok().map(TimeZone::fixed);
    }
    // Names of places have a slash; anything else is a word of the sentence.
    if word.contains('/') { (zones.named)(word) } else { None }
}

/// Seconds of each unit of time; a unit is known by its first letters.
const UNITS: [(&str, f64); 6] =
    [("ms", 0.001), ("w", 604_800.0), ("d", 86_400.0), ("h", 3_600.0), ("m", 60.0), ("s", 1.0)];

const UNIT_WORDS: [&str; 22] = [
    "ms", "w", "week", "weeks", "d", "day", "days", "h", "hr", "hrs", "hour", "hours", "m", "min",
    "mins", "minute", "minutes", "s", "sec", "secs", "second", "seconds",
];

/// The duration that a text begins with: `5 days 22 hours 11 minutes`, `3h14m`, `39.07s`, or a number alone,
/// which is seconds.
pub(super) fn duration(text: &str) -> Option<Duration> {
    let mut seconds = 0.0;
    let mut rest = text.trim_start_matches(|c: char| c == '"' || c.is_whitespace());
    let mut is_first = true;
    loop {
        let length = rest.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(rest.len());
        let digits = rest[..length].trim_end_matches('.');
        let Ok(number) = digits.parse::<f64>() else { break };
        let behind = rest[digits.len()..].trim_start();
        let letters = behind.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(behind.len());
        let unit = behind[..letters].to_ascii_lowercase();
        if UNIT_WORDS.contains(&unit.as_str()) {
            let size = UNITS
                .iter()
                .find(|(name, _)| unit.starts_with(name))
                .map_or(1.0, |(_, size)| *size);
            seconds += number * size;
            rest = behind[letters..].trim_start_matches([' ', ',', '\n', '\t']);
            rest = rest.strip_prefix("and ").unwrap_or(rest);
        } else {
            if is_first {
                seconds = number;
                is_first = false;
            }
            break;
        }
        is_first = false;
    }
    if is_first {
        return None;
    }
    Duration::try_from_secs_f64(seconds).ok()
}
