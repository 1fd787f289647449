//! Which tmux this is.

use super::{OLDEST, TmuxError};
use crate::process::version_of;

/// Refuses a tmux that is missing or too old.
pub(super) fn check() -> Result<(), TmuxError> {
    let said = version_of("tmux", "-V").ok_or(TmuxError::Missing)?;
    if is_new_enough(&said) {
        return Ok(());
    }
    let found = said.strip_prefix("tmux ").unwrap_or(&said).to_owned();
    Err(TmuxError::TooOld { found })
}

/// Whether `tmux 3.3a`, `tmux next-3.5` or the like is at least [`OLDEST`]. A tmux without a
/// version of its own (`tmux master`, `tmux openbsd-7.4`) is taken for a new one.
fn is_new_enough(said: &str) -> bool {
    let version = said.trim().strip_prefix("tmux ").unwrap_or(said.trim());
    let version = version.strip_prefix("next-").unwrap_or(version);
    let mut parts = version.split('.').map(|part| {
        let digits = part.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(part.len());
        part[..digits].parse::<u32>().ok()
    });
    match (parts.next().flatten(), parts.next().flatten()) {
        (Some(major), minor) => (major, minor.unwrap_or(0)) >= OLDEST,
        (None, _) => true,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        for new in ["tmux 3.0", "tmux 3.0a", "tmux 3.3a", "tmux 3.10-rc2", "tmux 10.1", "tmux 4"] {
            assert!(is_new_enough(new), "{new}");
        }
        for new in ["tmux next-3.5", "tmux master", "tmux openbsd-7.4"] {
            assert!(is_new_enough(new), "{new}");
        }
        for old in ["tmux 2.9a", "tmux 2.10", "tmux 1.8", "tmux next-2.9", "tmux 2"] {
            assert!(!is_new_enough(old), "{old}");
        }
    }

    proptest! {
        #[test]
        fn no_answer_makes_it_panic(said in "(tmux )?(next-)?[0-9.a-z]{0,12}|.*") {
            let _ = is_new_enough(&said);
        }
    }
}
