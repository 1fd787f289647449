//! Accounts that runs are charged to.

use crate::{Invalid, Timestamp};

/// An account of an agent's vendor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// Its short name.
    pub handle: String,
    /// Where its agent keeps its configuration; empty for nowhere of its own.
    pub config_dir: String,
    /// Variables that its runs get.
    pub environment: Vec<(String, String)>,
    /// Most live runs; 0 for no limit.
    pub max_runs: u32,
    /// Whether runs that name none get this one.
    pub is_default: bool,
    /// When it was added.
    pub created_at: Timestamp,
}

/// Checks the short name of an account.
pub fn check_account_handle(text: &str) -> Result<(), Invalid> {
    let well_formed = (1..=50).contains(&text.len())
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._@+-".contains(&byte));
    if well_formed {
        return Ok(());
    }
    let shown: String = text.chars().take(60).collect();
    Err(Invalid(format!(
        "\"{}\" is not a name for an account; use letters, digits and . _ @ + -, at most 50",
        shown.escape_debug()
    )))
}

/// Checks the name of a variable of the environment.
pub fn check_variable_name(text: &str) -> Result<(), Invalid> {
    let well_formed = (1..=200).contains(&text.len())
        && !text.starts_with(|c: char| c.is_ascii_digit())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if well_formed {
        return Ok(());
    }
    let shown: String = text.chars().take(60).collect();
    Err(Invalid(format!(
        "\"{}\" is not the name of a variable; use letters, digits and _",
        shown.escape_debug()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_are_short_plain_names() {
        for good in ["work", "w", "ann@example.com", "team-2.b+x", "9"] {
            assert!(check_account_handle(good).is_ok(), "{good}");
        }
        let long = "x".repeat(51);
        for bad in ["", "-a", ".a", "a b", "a/b", "ä", "a\n", long.as_str()] {
            assert!(check_account_handle(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn variables_have_names_that_every_shell_knows() {
        for good in ["A", "_a", "ANTHROPIC_API_KEY", "a1"] {
            assert!(check_variable_name(good).is_ok(), "{good}");
        }
        for bad in ["", "1a", "A-B", "A B", "A=B", "ä"] {
            assert!(check_variable_name(bad).is_err(), "{bad}");
        }
    }
}
