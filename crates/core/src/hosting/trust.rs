//! Whose comments start a repair: the setting `pr.trust`.

use std::fmt;

use super::{PullRequestFeedback, PullRequestFeedbackKind, PullRequestReviewState};
use crate::Invalid;
use crate::formula::WordSet;

/// Most names in the setting.
const LOGINS_MAX: usize = 100;

/// The people whose comments start a repair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PullRequestTrust {
    /// Every person.
    all: bool,
    /// People with write access.
    write: bool,
    /// These people, with any access. In small letters.
    logins: Vec<String>,
}

impl Default for PullRequestTrust {
    fn default() -> Self {
        Self { all: false, write: true, logins: Vec::new() }
    }
}

impl PullRequestTrust {
    /// Reads the setting: words separated by commas, each `write`, `all` or a login. Logins alone narrow it to them;
    /// `write,ada` adds one to those with write access.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let mut trust = Self { all: false, write: false, logins: Vec::new() };
        // Services do not mind capitals in a login.
        for word in text.split(',').map(|word| word.trim().to_lowercase()) {
            match word.as_str() {
                "all" => trust.all = true,
                "write" => trust.write = true,
                login if is_login(login) => trust.logins.push(word),
                other => {
                    let shown: String = other.chars().take(60).collect();
                    return Err(Invalid(format!(
                        "\"{}\" is no login; write write, all, or logins separated by commas: ada,grace",
                        shown.escape_debug()
                    )));
                }
            }
        }
        trust.logins.sort();
        trust.logins.dedup();
        if trust.logins.len() > LOGINS_MAX {
            return Err(Invalid(format!("name at most {LOGINS_MAX} logins")));
        }
        Ok(trust)
    }

    /// The effect that a text on a pull request may have. `own_login` is the account of the tool.
    pub fn judge(&self, feedback: &PullRequestFeedback, own_login: &str) -> FeedbackTrust {
        use PullRequestReviewState as Review;
        if feedback.author.is_empty() {
            return FeedbackTrust::UnknownAuthor;
        }
        if feedback.is_bot {
            return FeedbackTrust::Bot;
        }
        // An unknown account of ours could be any author.
        let is_own = feedback.author.to_lowercase() == own_login.to_lowercase();
        if is_own || own_login.is_empty() {
            return FeedbackTrust::OwnLogin;
        }
        match feedback.kind {
            PullRequestFeedbackKind::Review(Review::Pending) => return FeedbackTrust::NotSubmitted,
            PullRequestFeedbackKind::Review(Review::Approved | Review::Dismissed) => {
                return FeedbackTrust::AsksForNothing;
            }
            _ => {}
        }
        if feedback.is_resolved || feedback.body.trim().is_empty() {
            return FeedbackTrust::AsksForNothing;
        }
        let is_trusted = self.all
            || (self.write && feedback.may_write)
            || self.logins.contains(&feedback.author.to_lowercase());
        if is_trusted { FeedbackTrust::StartsRepair } else { FeedbackTrust::NotTrusted }
    }
}

/// As it is written in the settings.
impl fmt::Display for PullRequestTrust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = [(self.write, "write"), (self.all, "all")];
        let words = words.into_iter().filter(|(is_set, _)| *is_set).map(|(_, word)| word);
        let all: Vec<&str> = words.chain(self.logins.iter().map(String::as_str)).collect();
        f.write_str(&all.join(","))
    }
}

/// Letters, digits and the few signs that services allow.
fn is_login(word: &str) -> bool {
    (1..=255).contains(&word.len())
        && word.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

/// The effect that a text on a pull request may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FeedbackTrust {
    /// It starts a repair and enters its briefing. Any other text is only shown.
    StartsRepair,
    /// Its author is not among the people of `pr.trust`.
    NotTrusted,
    /// Its author is a program.
    Bot,
    /// Its author is the account that we use ourselves.
    OwnLogin,
    /// The account of its author is gone.
    UnknownAuthor,
    /// It is a review that is not submitted.
    NotSubmitted,
    /// It is an approval, a dismissed review, a resolved thread or has no text.
    AsksForNothing,
}

impl WordSet for FeedbackTrust {
    const WHAT: &str = "reason why a text is only shown";
    const NAMES: &[(&str, Self)] = &[
        ("starts-repair", Self::StartsRepair),
        ("not-trusted", Self::NotTrusted),
        ("bot", Self::Bot),
        ("own-login", Self::OwnLogin),
        ("unknown-author", Self::UnknownAuthor),
        ("not-submitted", Self::NotSubmitted),
        ("asks-for-nothing", Self::AsksForNothing),
    ];
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::verdict::tests::feedback;
    use super::*;

    #[test]
    fn the_setting_is_read_and_written() {
        for (text, written) in [
            ("write", "write"),
            ("all", "all"),
            ("Ada, grace,ada", "ada,grace"),
            ("ada,Write", "write,ada"),
        ] {
            assert_eq!(PullRequestTrust::parse(text).unwrap().to_string(), written);
        }
        for text in ["", "ada,", "ada grace", "-x", "a@b", "ä"] {
            assert!(PullRequestTrust::parse(text).is_err(), "{text}");
        }
        assert_eq!(PullRequestTrust::default(), PullRequestTrust::parse("write").unwrap());
    }

    #[test]
    fn only_submitted_texts_of_trusted_people_start_a_repair() {
        use FeedbackTrust as Trust;
        use PullRequestFeedbackKind::{LineComment, Review};
        type Change = fn(&mut PullRequestFeedback);
        let cases: [(&str, Change, Trust); 15] = [
            ("write", |_| {}, Trust::StartsRepair),
            ("write", |f| f.may_write = false, Trust::NotTrusted),
            ("all", |f| f.may_write = false, Trust::StartsRepair),
            ("ada", |f| f.may_write = false, Trust::StartsRepair),
            ("ADA", |f| f.author = "Ada".to_owned(), Trust::StartsRepair),
            ("grace", |_| {}, Trust::NotTrusted),
            ("write,grace", |_| {}, Trust::StartsRepair),
            ("all", |f| f.is_bot = true, Trust::Bot),
            ("all,robot", |f| f.author = "Robot".to_owned(), Trust::OwnLogin),
            ("all", |f| f.author = String::new(), Trust::UnknownAuthor),
            ("all", |f| f.body = " \n".to_owned(), Trust::AsksForNothing),
            ("all", |f| f.is_resolved = true, Trust::AsksForNothing),
            ("all", |f| f.kind = Review(PullRequestReviewState::Approved), Trust::AsksForNothing),
            ("all", |f| f.kind = Review(PullRequestReviewState::Pending), Trust::NotSubmitted),
            ("write", |f| f.kind = LineComment, Trust::StartsRepair),
        ];
        for (index, (setting, change, expected)) in cases.into_iter().enumerate() {
            let mut text = feedback("review:1", "ada");
            change(&mut text);
            let trust = PullRequestTrust::parse(setting).unwrap();
            assert_eq!(trust.judge(&text, "robot"), expected, "case {index}");
        }
        let text = feedback("review:1", "ada");
        assert_eq!(PullRequestTrust::default().judge(&text, ""), Trust::OwnLogin);
    }

    proptest! {
        #[test]
        fn a_bot_or_our_own_login_never_starts_a_repair(
            setting in "(write|all|ada|robot)(,(write|all|ada|robot)){0,3}", is_bot: bool, may_write: bool
        ) {
            let trust = PullRequestTrust::parse(&setting).unwrap();
            let mut text = feedback("comment:1", if is_bot { "ada" } else { "RoBot" });
            text.is_bot = is_bot;
            text.may_write = may_write;
            prop_assert_ne!(trust.judge(&text, "robot"), FeedbackTrust::StartsRepair);
        }

        #[test]
        fn what_is_written_reads_back(text in "[a-zA-Z_.,-]{0,30}") {
            if let Ok(trust) = PullRequestTrust::parse(&text) {
                prop_assert_eq!(PullRequestTrust::parse(&trust.to_string()), Ok(trust));
            }
        }
    }
}
