//! The windows of subscriptions: so much may be used until a moment, and then anew.

use std::fmt;
use std::time::Duration;

use crate::Timestamp;

/// The most characters of the name of a window.
const NAME_CHARACTERS_MAX: usize = 40;

/// A window of a subscription, as its service tells of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageWindow {
    /// The name that the service gives it, such as `five_hour`.
    pub name: String,
    /// The used part in percent, rounded down; nothing if the service does not say it.
    pub used_percent: Option<u32>,
    /// How long it lasts, if that is known.
    pub length: Option<Duration>,
    /// When it begins anew, if the service says so.
    pub resets_at: Option<Timestamp>,
}

/// A window, and when that was said of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenWindow {
    /// The window.
    pub window: UsageWindow,
    /// When its service said so.
    pub seen_at: Timestamp,
}

impl UsageWindow {
    /// A name that a service gave, if it can be one of a window.
    pub fn name_from(text: &str) -> Option<String> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let is_name =
            !text.is_empty() && text.len() <= NAME_CHARACTERS_MAX && text.chars().all(is_plain);
        is_name.then(|| text.to_owned())
    }

    /// Until when nothing should start that uses more of it, if so many percent are used. A reset that is further away than
    /// the window is long is not believed.
    pub fn closed_until(&self, percent_max: u32, now: Timestamp) -> Option<Timestamp> {
        self.used_percent.filter(|used| percent_max > 0 && *used >= percent_max)?;
        let until = self.resets_at.filter(|until| *until > now)?;
        Some(self.length.map_or(until, |length| until.min(now.plus(length))))
    }
}

impl SeenWindow {
    /// Whether the window has begun anew since.
    pub fn is_over(&self, now: Timestamp) -> bool {
        self.window.resets_at.is_some_and(|resets_at| resets_at <= now)
    }
}

/// `five_hour: 96 % used`.
impl fmt::Display for UsageWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.used_percent {
            Some(percent) => write!(f, "{}: {percent} % used", self.name),
            None => write!(f, "{}: the service warns", self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HOUR: i64 = 3_600_000_000_000;

    fn window(used_percent: Option<u32>, resets_at: Option<i64>) -> UsageWindow {
        UsageWindow {
            name: "five_hour".to_owned(),
            used_percent,
            length: Some(Duration::from_hours(5)),
            resets_at: resets_at.map(Timestamp::from_nanos),
        }
    }

    #[test]
    fn a_window_closes_at_the_percentage_until_its_reset() {
        let now = Timestamp::from_nanos(10 * HOUR);
        let until = |used, resets_at, percent: u32| {
            let until = window(used, resets_at).closed_until(percent, now);
            until.map(|until| until.as_nanos() / HOUR)
        };
        assert_eq!(until(Some(95), Some(12 * HOUR), 95), Some(12));
        assert_eq!(until(Some(94), Some(12 * HOUR), 95), None);
        assert_eq!(until(Some(100), Some(12 * HOUR), 0), None, "it is switched off");
        assert_eq!(until(None, Some(12 * HOUR), 95), None);
        assert_eq!(until(Some(99), None, 95), None);
        assert_eq!(until(Some(99), Some(9 * HOUR), 95), None, "it has begun anew since");
        assert_eq!(until(Some(99), Some(900 * HOUR), 95), Some(15), "at most its length");
    }

    #[test]
    fn names_are_short_and_plain() {
        assert_eq!(UsageWindow::name_from("seven_day_opus").as_deref(), Some("seven_day_opus"));
        for wrong in ["", "five hour", "a\nb", &"x".repeat(41)] {
            assert_eq!(UsageWindow::name_from(wrong), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn no_window_closes_for_longer_than_it_lasts(
            used in 0_u32..200, resets_at in any::<i64>(), now in 0_i64..i64::MAX / 2,
        ) {
            let now = Timestamp::from_nanos(now);
            if let Some(until) = window(Some(used), Some(resets_at)).closed_until(95, now) {
                prop_assert!(until > now && until <= now.plus(Duration::from_hours(5)));
            }
        }
    }
}
