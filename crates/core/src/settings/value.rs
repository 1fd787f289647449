//! Typed values.

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::checks::{parse_checks, parse_path_patterns, write_checks, write_path_patterns};
use crate::command_wrap::CommandWrap;
use crate::cost::PriceTable;
use crate::decide::WorkerRights;
use crate::hosting::{PullRequestTrust, is_repository_owner};
use crate::runtime::RuntimeName;
use crate::schedule::Money;
use crate::time::{format_duration, parse_duration};
use crate::{Invalid, Networks, WebAddress, words};

/// The kind of value that a setting may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingKind {
    /// true/yes/1/on, false/no/0/off.
    Bool,
    /// A whole number in this range.
    Integer {
        /// The smallest allowed.
        min: i64,
        /// The largest allowed.
        max: i64,
    },
    /// A number of at least 0 with up to six places, such as `1.5`.
    Decimal,
    /// `2s`, `3m`, `1h`.
    Duration,
    /// Bytes: `256MiB`, `1GB`, or a plain number.
    Bytes,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// Any text without NUL.
    Text,
    /// A command line whose words can be told apart, or nothing.
    Command,
    /// The program around commands, or nothing.
    CommandWrap,
    /// The name of a runtime, or nothing.
    Runtime,
    /// The address of a web service, or nothing.
    WebAddress,
    /// The rights of workers beyond their own work.
    WorkerRights,
    /// A text that is shown only to a caller that asks for it by name, or nothing.
    Secret,
    /// Addresses and networks, separated by commas, or nothing.
    Networks,
    /// The checks of a rig, as a JSON array, or nothing.
    Checks,
    /// Patterns of paths, separated by commas, or nothing.
    PathPatterns,
    /// The people whose comments on a pull request start a repair.
    PullRequestTrust,
    /// The name of a file about a hosting service, or nothing.
    HostingProvider,
    /// The owner of forks on a hosting service, or nothing.
    ForkOwner,
    /// The prices of models, separated by commas, or nothing.
    Prices,
    /// A name of letters, digits, `.`, `_` and `-`, or nothing.
    PlainName,
    /// Such names, separated by commas, or nothing.
    PlainNames,
}

/// The longest name in a list of plain names, in bytes.
const PLAIN_NAME_BYTES_MAX: usize = 64;

fn is_plain_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    !name.is_empty() && name.len() <= PLAIN_NAME_BYTES_MAX && name.bytes().all(is_plain)
}

/// The names in a list of plain names.
pub fn plain_names(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|name| !name.is_empty())
}

/// Longest secret, in bytes.
const SECRET_BYTES_MAX: usize = 1_000;

const BYTE_UNITS: [(&str, u64); 7] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("B", 1),
];

impl SettingKind {
    /// Checks `text` and gives its canonical spelling, which the store keeps.
    pub fn canonical(self, text: &str) -> Result<String, Invalid> {
        let shown = text.chars().take(60).collect::<String>().escape_debug().to_string();
        let invalid = |wanted: &str| Err(Invalid(format!("\"{shown}\" is not {wanted}")));
        match self {
            Self::Bool => match text.to_ascii_lowercase().as_str() {
                "true" | "yes" | "1" | "on" => Ok("true".to_owned()),
                "false" | "no" | "0" | "off" => Ok("false".to_owned()),
                _ => invalid("a yes or no; write true/yes/1/on or false/no/0/off"),
            },
            Self::Integer { min, max } => match text.parse::<i64>() {
                Ok(number) if (min..=max).contains(&number) => Ok(number.to_string()),
                _ => invalid(&format!("a whole number from {min} to {max}")),
            },
            Self::Decimal => match parse_decimal(text) {
                Some(millionths) => Ok(format_decimal(millionths)),
                None => invalid("a number like 0, 1.5 or 20"),
            },
            Self::Duration => parse_duration(text).map(format_duration),
            Self::Bytes => parse_bytes(text).map_or_else(
                || invalid("a size; write it like 256MiB, 1GB or 4096"),
                |bytes| Ok(format_bytes(bytes)),
            ),
            Self::Choice(words) if words.contains(&text) => Ok(text.to_owned()),
            Self::Choice(words) => {
                let named = words.iter().filter(|word| !word.is_empty());
                invalid(&format!("one of {}", named.copied().collect::<Vec<_>>().join(", ")))
            }
            Self::Text | Self::Command | Self::CommandWrap if text.contains('\0') => {
                invalid("text without NUL")
            }
            Self::Command => match words::split(text)?.first() {
                Some(program) if program.text.is_empty() => invalid("a command; name a program"),
                _ => Ok(text.to_owned()),
            },
            Self::Runtime | Self::WebAddress | Self::HostingProvider | Self::ForkOwner
                if text.is_empty() =>
            {
                Ok(String::new())
            }
            Self::PullRequestTrust => Ok(PullRequestTrust::parse(text)?.to_string()),
            Self::HostingProvider if RuntimeName::parse(text).is_ok() => Ok(text.to_owned()),
            Self::HostingProvider => {
                invalid("a hosting service; write gh, glab or the name of a file of yours")
            }
            Self::ForkOwner if is_repository_owner(text) => Ok(text.to_owned()),
            Self::ForkOwner => invalid(
                "the owner of a fork; write it as the address has it: ada or group/subgroup",
            ),
            Self::PlainName if text.is_empty() || is_plain_name(text) => Ok(text.to_owned()),
            Self::PlainName => {
                invalid("a name; use up to 64 letters, digits, dots, dashes and underscores")
            }
            Self::PlainNames => {
                let names: BTreeSet<&str> = plain_names(text).collect();
                match names.iter().find(|name| !is_plain_name(name)) {
                    Some(wrong) => Err(Invalid(format!(
                        "\"{}\" is not a name; separate names with commas, each of up to 64 letters, digits, dots, \
                         dashes and underscores",
                        wrong.chars().take(60).collect::<String>().escape_debug()
                    ))),
                    None => Ok(names.into_iter().collect::<Vec<_>>().join(",")),
                }
            }
            Self::CommandWrap => {
                // An escaped space at the end would leave its backslash.
                let text = text.trim();
                CommandWrap::parse(text)?;
                Ok(text.to_owned())
            }
            Self::Runtime => Ok(RuntimeName::parse(text)?.to_string()),
            Self::WebAddress => Ok(WebAddress::parse(text)?.to_string()),
            Self::WorkerRights => Ok(WorkerRights::parse(text)?.to_string()),
            Self::Networks => Ok(Networks::parse(text)?.to_string()),
            Self::Prices => Ok(PriceTable::parse(text)?.to_string()),
            Self::Checks => Ok(write_checks(&parse_checks(text)?)),
            Self::PathPatterns => Ok(write_path_patterns(&parse_path_patterns(text)?)),
            Self::Secret if text.chars().any(char::is_control) || text.len() > SECRET_BYTES_MAX => {
                Err(Invalid(format!(
                    "use at most {SECRET_BYTES_MAX} bytes without control characters"
                )))
            }
            Self::Text | Self::Secret => Ok(text.to_owned()),
        }
    }

    /// How the reference describes it.
    pub fn describe(self) -> String {
        match self {
            Self::Bool => "true or false".to_owned(),
            Self::Integer { min, max: i64::MAX } => format!("whole number, at least {min}"),
            Self::Integer { min, max } => format!("whole number, {min} to {max}"),
            Self::Decimal => "number (`1.5`)".to_owned(),
            Self::Duration => "duration (`2s`, `3m`, `1h`)".to_owned(),
            Self::Bytes => "size (`256MiB`)".to_owned(),
            Self::Choice(words) => words.join(" or "),
            Self::Text => "text".to_owned(),
            Self::Command => "command line".to_owned(),
            Self::CommandWrap => "command line with `{command}`, or none".to_owned(),
            Self::Runtime => "name of a runtime".to_owned(),
            Self::WebAddress => "address (`https://example.com/path`)".to_owned(),
            Self::WorkerRights => "worker, operator or a list of rights".to_owned(),
            Self::Secret => "secret text".to_owned(),
            Self::Checks => "checks (JSON)".to_owned(),
            Self::PathPatterns => "patterns of paths (`src/**,*.lock`)".to_owned(),
            Self::PullRequestTrust => "write, all or logins (`ada,grace`)".to_owned(),
            Self::HostingProvider => "gh, glab or the name of a file".to_owned(),
            Self::ForkOwner => "owner of a fork".to_owned(),
            Self::Prices => "prices of models (`gpt-5=1.25/10`)".to_owned(),
            Self::PlainName => "name".to_owned(),
            Self::PlainNames => "names (`gpu,linux`)".to_owned(),
            Self::Networks => "addresses and networks (`10.0.0.7,192.168.0.0/16`)".to_owned(),
        }
    }

    /// A value as lists, messages and the log of events show it: secret parts are left out.
    pub fn shown(self, value: &str) -> Cow<'_, str> {
        match self {
            Self::Secret if !value.is_empty() => Cow::Borrowed("…"),
            // Many services put a key into the path.
            Self::WebAddress => match WebAddress::parse(value) {
                Ok(address) if address.target() != "/" => {
                    Cow::Owned(format!("{}/…", address.origin()))
                }
                _ => Cow::Borrowed(value),
            },
            Self::Bool
            | Self::Integer { .. }
            | Self::Decimal
            | Self::Duration
            | Self::Bytes
            | Self::Choice(_)
            | Self::Text
            | Self::Command
            | Self::CommandWrap
            | Self::Runtime
            | Self::WorkerRights
            | Self::Networks
            | Self::Checks
            | Self::PathPatterns
            | Self::PullRequestTrust
            | Self::HostingProvider
            | Self::ForkOwner
            | Self::Prices
            | Self::PlainName
            | Self::PlainNames
            | Self::Secret => Cow::Borrowed(value),
        }
    }
}

/// How many millionths `1.5` is.
pub fn parse_decimal(text: &str) -> Option<u64> {
    let is_plain = text.len() <= 20 && !text.contains(',');
    Money::parse(text).filter(|_| is_plain).map(|Money(millionths)| millionths)
}

/// The shortest spelling of so many millionths.
fn format_decimal(millionths: u64) -> String {
    let text = Money(millionths).to_string();
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// How many bytes `256MiB` are.
pub fn parse_bytes(text: &str) -> Option<u64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().ok()?;
    match unit.trim_start() {
        "" => Some(number),
        unit => {
            let (_, size) = BYTE_UNITS.iter().find(|(name, _)| *name == unit)?;
            number.checked_mul(*size)
        }
    }
}

fn format_bytes(bytes: u64) -> String {
    let binary = BYTE_UNITS[..3].iter().rev();
    binary
        .filter(|(_, size)| bytes > 0 && bytes.is_multiple_of(*size))
        .map(|(name, size)| format!("{}{name}", bytes / size))
        .next()
        .unwrap_or_else(|| bytes.to_string())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn values_have_one_spelling() {
        for (kind, given, expected) in [
            (SettingKind::Bool, "Yes", "true"),
            (SettingKind::Bool, "off", "false"),
            (SettingKind::Integer { min: -1, max: 9 }, "-1", "-1"),
            (SettingKind::Duration, "120s", "2m"),
            (SettingKind::Bytes, "268435456", "256MiB"),
            (SettingKind::Bytes, "1GB", "1000000000"),
        ] {
            assert_eq!(kind.canonical(given).unwrap(), expected);
        }
    }

    #[test]
    fn commands_and_addresses_are_checked_and_may_be_nothing() {
        for kind in [SettingKind::Command, SettingKind::WebAddress, SettingKind::Secret] {
            assert_eq!(kind.canonical("").unwrap(), "");
        }
        for (kind, wrong) in [
            (SettingKind::Command, "say 'hello"),
            (SettingKind::CommandWrap, "\\\u{b}"),
            (SettingKind::Command, "'' hello"),
            (SettingKind::WebAddress, "nonsense"),
            (SettingKind::Secret, "a\nb"),
        ] {
            assert!(kind.canonical(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn secrets_are_not_shown() {
        for (kind, value, shown) in [
            (SettingKind::Secret, "s3cret", "…"),
            (SettingKind::Secret, "", ""),
            (SettingKind::WebAddress, "https://example.com/T0/k3y", "https://example.com/…"),
            (SettingKind::WebAddress, "https://example.com/", "https://example.com/"),
            (SettingKind::Text, "plain", "plain"),
        ] {
            assert_eq!(kind.shown(value), shown);
        }
    }

    proptest! {
        #[test]
        fn canonical_values_stay_as_they_are(text in ".{0,30}") {
            for kind in [
                SettingKind::Bool,
                SettingKind::Integer { min: -5, max: 500 },
                SettingKind::Duration,
                SettingKind::Bytes,
                SettingKind::Choice(&["a", "b"]),
                SettingKind::Text,
                SettingKind::Command,
                SettingKind::CommandWrap,
                SettingKind::Runtime,
                SettingKind::WorkerRights,
                SettingKind::WebAddress,
                SettingKind::Secret,
                SettingKind::Checks,
                SettingKind::PathPatterns,
                SettingKind::PullRequestTrust,
                SettingKind::HostingProvider,
                SettingKind::ForkOwner,
                SettingKind::PlainName,
                SettingKind::PlainNames,
            ] {
                if let Ok(once) = kind.canonical(&text) {
                    prop_assert_eq!(kind.canonical(&once).unwrap(), once);
                }
            }
        }
    }
}
