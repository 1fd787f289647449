//! The name of the branch of a pull request.

use crate::BeadId;

/// Most characters of the part that tells what the work is about.
const SLUG_CHARACTERS_MAX: usize = 40;

/// How many names are tried for a branch before a person is asked.
pub const BRANCH_TRIES_MAX: u32 = 50;

/// The branch for the work of a bead with this title: `gt/<bead>-<slug>`. The second try, where another branch has the
/// name, ends with `-2`, and so on.
pub fn pull_request_branch(bead: &BeadId, title: &str, attempt: u32) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric();
    let id: String = bead
        .as_str()
        .chars()
        .map(|c| if is_plain(c) || "-_".contains(c) { c } else { '-' })
        .collect();
    let lower = title.to_lowercase();
    let words = lower.split(|c: char| !is_plain(c)).filter(|word| !word.is_empty());
    let mut slug = String::new();
    for word in words {
        if slug.len() + word.len() >= SLUG_CHARACTERS_MAX {
            break;
        }
        slug.push('-');
        slug.push_str(word);
    }
    let number = if attempt > 1 { format!("-{attempt}") } else { String::new() };
    format!("gt/{id}{slug}{number}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_branch_names_the_bead_and_its_title() {
        let bead = BeadId::parse("we-a.1").unwrap();
        for (title, attempt, expected) in [
            ("Add a login page!", 1, "gt/we-a-1-add-a-login-page"),
            ("Überall & ~^:? a..b", 2, "gt/we-a-1-berall-a-b-2"),
            ("", 1, "gt/we-a-1"),
            ("日本語", 3, "gt/we-a-1-3"),
        ] {
            assert_eq!(pull_request_branch(&bead, title, attempt), expected, "{title}");
        }
        let long = pull_request_branch(&bead, &"word ".repeat(100), 1);
        assert!(long.len() <= 60 && long.ends_with("-word"), "{long}");
    }

    proptest! {
        #[test]
        fn every_title_makes_a_name_that_git_takes(title in ".{0,200}", attempt in 1..9_u32) {
            let name = pull_request_branch(&BeadId::parse("we-a").unwrap(), &title, attempt);
            let is_fit = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "/-".contains(c);
            prop_assert!(name.chars().all(is_fit), "{name}");
            prop_assert!(!name.ends_with('-') && !name.contains("//"), "{name}");
        }
    }
}
