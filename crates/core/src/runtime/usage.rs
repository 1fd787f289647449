//! "Tokens used: 12,345": the usage that programs report.

use super::Pattern;
use super::limit::plain;
use crate::Invalid;
use crate::schedule::Money;

/// The patterns of a program's messages about its usage. The groups of a pattern are the numbers, which are added up.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UsageReport {
    /// How it says how many tokens it used.
    pub tokens: Option<Pattern>,
    /// How it reports its cost.
    pub cost: Option<Pattern>,
}

/// Reads a pattern with a group around the number.
pub fn parse_usage_pattern(text: &str) -> Result<Pattern, Invalid> {
    let pattern = Pattern::parse(text)?;
    if pattern.regex().captures_len() < 2 {
        return Err(Invalid::new("put the number in parentheses, like 'tokens used: ([0-9,]+)'"));
    }
    Ok(pattern)
}

impl UsageReport {
    /// Whether nothing is looked for.
    pub fn is_empty(&self) -> bool {
        self.tokens.is_none() && self.cost.is_none()
    }

    /// The report in the output of a session. Most programs count up, so the last message counts. If a group of the pattern is
    /// named `each`, the program tells of each message alone, and all of them count.
    pub fn of_session(&self, output: &str) -> SessionUsage {
        let text = plain(output);
        SessionUsage {
            tokens: matched_number(self.tokens.as_ref(), &text, 1.0, number),
            cost: matched_number(self.cost.as_ref(), &text, MICRO_DOLLARS, |text| {
                Some(Money::parse(text)?.0)
            })
            .map(Money),
        }
    }
}

/// The usage of a session, as far as its output tells it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SessionUsage {
    /// The tokens.
    pub tokens: Option<u64>,
    /// The cost.
    pub cost: Option<Money>,
}

/// The unit of costs, in dollars.
const MICRO_DOLLARS: f64 = 1e6;

/// The name of a group whose number is about one message.
const EACH: &str = "each";

fn matched_number(
    pattern: Option<&Pattern>,
    text: &str,
    unit: f64,
    read: fn(&str) -> Option<u64>,
) -> Option<u64> {
    let regex = pattern?.regex();
    let messages = regex.captures_iter(text).filter_map(|captures| {
        let groups = captures.iter().skip(1).flatten();
        groups
            .filter_map(|group| match power_of_ten(&text[group.end()..]) {
                Some(power) => units_of(group.as_str(), power, unit),
                None => read(group.as_str()),
            })
            .reduce(u64::saturating_add)
    });
    if regex.capture_names().flatten().any(|name| name == EACH) {
        messages.reduce(u64::saturating_add)
    } else {
        messages.last()
    }
}

/// The power of ten behind the digits that a pattern found, as JSON writes very small and very large numbers: `e-7` of `8.1e-7`.
fn power_of_ten(after: &str) -> Option<&str> {
    let power = after.strip_prefix(['e', 'E'])?;
    let sign = usize::from(power.starts_with(['+', '-']));
    let length = power[sign..].find(|c: char| !c.is_ascii_digit()).unwrap_or(power.len() - sign);
    (length > 0).then(|| &after[..1 + sign + length])
}

/// A number with a power of ten, in units; nothing where no program can use it.
fn units_of(digits: &str, power: &str, unit: f64) -> Option<u64> {
    let value = (format!("{digits}{power}").parse::<f64>().ok()? * unit).round();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the range is checked"
    )]
    (0.0..1e18).contains(&value).then_some(value as u64)
}

/// Reads `12345`, `12,345`, `12_345`, `2.5k` and `1.2M`.
fn number(text: &str) -> Option<u64> {
    let (digits, factor) = match text.strip_suffix(['k', 'K']) {
        Some(digits) => (digits, 1_000),
        None => match text.strip_suffix(['m', 'M']) {
            Some(digits) => (digits, 1_000_000),
            None => (text, 1),
        },
    };
    let digits = digits.replace('_', "");
    Some(Money::parse(&digits)?.0.checked_mul(factor)? / 1_000_000)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn report(tokens: &str, cost: &str) -> UsageReport {
        let pattern = |text| Some(parse_usage_pattern(text).unwrap());
        UsageReport { tokens: pattern(tokens), cost: pattern(cost) }
    }

    #[test]
    fn the_last_number_of_a_session_counts() {
        let report = report(r"tokens used: ([\d.,]+k?)", r"cost: \$([\d.]+)");
        let first = "tokens used: 1,000\nmore work\ntokens used: 2.5k\ncost: $0.10\n";
        let used = SessionUsage { tokens: Some(2_500), cost: Some(Money(100_000)) };
        assert_eq!(report.of_session(first), used);
        let second = "\u{1b}[1mTokens used: 300\u{1b}[0m\n";
        assert_eq!(report.of_session(second), SessionUsage { tokens: Some(300), cost: None });
        assert_eq!(report.of_session("tokens used: ,\n"), SessionUsage::default());
    }

    #[test]
    fn numbers_with_a_power_of_ten_are_read_whole() {
        let report = report(r#""tokens":([\d.]+)"#, r#""cost":([\d.]+)"#);
        for (output, tokens, cost) in [
            (r#""tokens":1.5e3,"cost":8.1e-7"#, Some(1_500), Some(1)),
            (r#""tokens":12E+2,"cost":2.5e-1}"#, Some(1_200), Some(250_000)),
            (r#""tokens":1e400,"cost":1e308"#, None, None),
            (r#""tokens":1e99999999999,"cost":3e-99999999999"#, None, Some(0)),
            (r#""tokens":7 each,"cost":1e"#, Some(7), Some(1_000_000)),
        ] {
            let told = report.of_session(output);
            assert_eq!((told.tokens, told.cost.map(|cost| cost.0)), (tokens, cost), "{output}");
        }
    }

    #[test]
    fn the_numbers_of_a_message_are_added_up_and_those_of_each_message_if_asked() {
        let copilot = report(r"tokens\s+↑\s*([\d.]+k?).*?↓\s*([\d.]+k?)", "(x)");
        let output = "Tokens ↑ 1.0k • ↓ 50\nTokens ↑ 2.0k (600 cached) • ↓ 100\n";
        assert_eq!(copilot.of_session(output).tokens, Some(2_100));
        let aider =
            report(r"(?<each>[\d.]+k?) sent, .*?([\d.]+k?) received", r"\$([\d.]+) session");
        let output = "Tokens: 2.0k sent, 1k cache hit, 100 received. Cost: $0.01 message, $0.01 session.\n\
                      Tokens: 500 sent, 7 received. Cost: $0.02 message, $0.03 session.\n";
        let used = SessionUsage { tokens: Some(2_607), cost: Some(Money(30_000)) };
        assert_eq!(aider.of_session(output), used);
    }

    #[test]
    fn a_pattern_without_a_place_for_the_number_is_refused() {
        assert!(
            parse_usage_pattern("tokens used").unwrap_err().to_string().contains("parentheses")
        );
    }

    #[test]
    fn numbers_are_read_as_programs_write_them() {
        for (text, expected) in [
            ("12345", Some(12_345)),
            ("12,345", Some(12_345)),
            ("12_345", Some(12_345)),
            ("2.5k", Some(2_500)),
            ("1.2M", Some(1_200_000)),
            ("k", None),
            ("99999999999999999999", None),
        ] {
            assert_eq!(number(text), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_output_makes_it_panic(output in ".{0,80}") {
            let _ = report("(.+)", "([0-9.,]+)").of_session(&output);
        }
    }
}
