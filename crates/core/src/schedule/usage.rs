//! The usage of runs.

use std::fmt;

/// The usage of a run, as far as it is known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// The most memory that its processes had at once, in megabytes.
    pub peak_memory_mb: Option<u32>,
    /// The tokens that its agent said it used.
    pub tokens: Option<u64>,
    /// The cost by its agent's own report.
    pub cost: Option<Money>,
}

impl Usage {
    /// Whether nothing is known.
    pub fn is_unknown(&self) -> bool {
        *self == Self::default()
    }
}

/// The share of the budgets that a run is expected to need. Nothing is reserved of what is absent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reserve {
    /// Tokens.
    pub tokens: Option<u64>,
    /// Money.
    pub cost: Option<Money>,
}

/// An amount in the currency that the agent counts in, in millionths.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Money(pub u64);

/// Millionths in one.
const MILLION: u64 = 1_000_000;

impl Money {
    /// Reads `0.25`, `12` or `1,204.5`; digits below a millionth are dropped.
    pub fn parse(text: &str) -> Option<Self> {
        let (whole, part) = text.split_once('.').unwrap_or((text, ""));
        let whole: String = whole.chars().filter(|c| *c != ',').collect();
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if (whole.is_empty() && part.is_empty()) || !is_number(&whole) || !is_number(part) {
            return None;
        }
        let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
        let part: u64 = format!("{part:0<6}").get(..6)?.parse().ok()?;
        Some(Self(whole.checked_mul(MILLION)?.checked_add(part)?))
    }

    /// All of it together; nothing if there is none.
    pub fn sum(parts: impl IntoIterator<Item = Self>) -> Option<Self> {
        parts.into_iter().reduce(|sum, part| Self(sum.0.saturating_add(part.0)))
    }
}

impl Money {
    /// The amount for people: to the cent, less than a dollar to a hundredth of a cent.
    pub fn dollars(self) -> String {
        if self.0 >= MILLION || self.0 == 0 {
            let cents = self.0.saturating_add(5_000) / 10_000;
            return format!("${}.{:02}", cents / 100, cents % 100);
        }
        format!("${}", Self((self.0 / 100).max(1) * 100))
    }
}

impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = format!("{:06}", self.0 % MILLION);
        // Cents are always there, the rest if it is.
        let part = part.trim_end_matches('0');
        write!(f, "{}.{part:0<2}", self.0 / MILLION)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn money_is_read_as_people_write_it() {
        for (text, millionths, shown) in [
            ("0.25", 250_000, "0.25"),
            ("12", 12_000_000, "12.00"),
            ("1,204.5", 1_204_500_000, "1204.50"),
            (".5", 500_000, "0.50"),
            ("0.0123459", 12_345, "0.012345"),
            ("3.", 3_000_000, "3.00"),
        ] {
            let money = Money::parse(text).unwrap();
            assert_eq!((money.0, money.to_string().as_str()), (millionths, shown), "{text}");
        }
        for wrong in ["", ".", "-1", "1e3", "a", "1.2.3", "99999999999999999999"] {
            assert_eq!(Money::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn small_amounts_keep_more_digits() {
        for (millionths, shown) in [
            (0, "$0.00"),
            (1, "$0.0001"),
            (123_456, "$0.1234"),
            (1_235_000, "$1.24"),
            (99_999_999, "$100.00"),
        ] {
            assert_eq!(Money(millionths).dollars(), shown, "{millionths}");
        }
    }

    proptest! {
        #[test]
        fn a_printed_amount_reads_back(millionths in any::<u64>()) {
            let money = Money(millionths);
            prop_assert_eq!(Money::parse(&money.to_string()), Some(money));
        }

        #[test]
        fn no_text_makes_it_panic(text in ".{0,30}") {
            let _ = Money::parse(&text);
        }
    }
}
