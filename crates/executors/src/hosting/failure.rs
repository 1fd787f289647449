//! Why a hosting service did not do what it was asked.

use std::time::Duration;

use gt_core::Timestamp;
use gt_core::runtime::LIMIT_WAIT_MAX;

use super::limited_call::CallOutput;
use super::provider::{FailureKind, ProviderFile};

/// How long a rate limit holds whose end is not known.
const RATE_LIMIT_WAIT: Duration = Duration::from_mins(5);

/// How much of the words of a tool is kept, in characters.
const WORDS_CHARACTERS_MAX: usize = 300;

/// Why a hosting service did not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostingError {
    /// The tool is not there.
    #[error("{program} is not installed, or not on PATH")]
    ToolMissing {
        /// The tool.
        program: String,
    },
    /// The tool has no valid login.
    #[error("{program} is not logged in to {host}; run: {command}")]
    LoggedOut {
        /// The tool.
        program: String,
        /// The host.
        host: String,
        /// The command that logs in.
        command: String,
    },
    /// Too many calls were made.
    #[error("the hosting service refuses calls until {until}: {words}")]
    RateLimited {
        /// When the next call makes sense: later than now.
        until: Timestamp,
        /// The words of the tool.
        words: String,
    },
    /// The service refuses what was asked, and would refuse it again.
    #[error("the hosting service refuses: {words}")]
    Refused {
        /// The kind of the refusal.
        reason: HostingRefusal,
        /// The words of the tool.
        words: String,
    },
    /// The service cannot be reached, or does not answer in time. A change may have been made nevertheless.
    #[error("the hosting service cannot be reached: {words}")]
    Unreachable {
        /// The words of the tool.
        words: String,
    },
    /// The tool answered something else than its file says.
    #[error("the answer of {program} cannot be read: {what}")]
    Unreadable {
        /// The tool.
        program: String,
        /// The fault in it.
        what: String,
    },
}

/// The kind of a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostingRefusal {
    /// The repository or the pull request is not there, or hidden from this login.
    NotFound,
    /// A rule of the repository or missing rights.
    Protected,
    /// A pull request that is not ours is open for the branch.
    ForeignPullRequest,
    /// The provider cannot do it.
    NotSupported,
    /// Another reason; the words tell.
    Other,
}

/// The meaning of a failed call, before the end of a rate limit is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FailedCall {
    LoggedOut,
    RateLimited { until: Option<Timestamp>, wait: Duration, words: String },
    Refused { reason: HostingRefusal, words: String },
    Unreachable { words: String },
}

impl ProviderFile {
    /// The meaning of the output of a failed call; none if no rule fits.
    pub(super) fn known_failure(&self, output: &CallOutput, now: Timestamp) -> Option<FailedCall> {
        // Standard output may hold texts of strangers.
        let said = if output.stderr.trim().is_empty() { &output.stdout } else { &output.stderr };
        let rule = self.failure.iter().find(|rule| {
            let fits_exit = rule.exit.is_none_or(|exit| output.code == Some(exit));
            fits_exit && rule.pattern.as_ref().is_none_or(|pattern| pattern.0.is_in(said))
        })?;
        let words = words_of(output);
        Some(match rule.kind {
            FailureKind::LoggedOut => FailedCall::LoggedOut,
            FailureKind::RateLimited => {
                let group = |name| rule.pattern.as_ref()?.0.group_in(said, name);
                let until = group("until").and_then(point).or_else(|| {
                    let seconds = group("after")?.parse().ok()?;
                    Some(now.plus(Duration::from_secs(seconds)))
                });
                let wait = rule.wait.map_or(RATE_LIMIT_WAIT, |wait| wait.0);
                FailedCall::RateLimited { until: sensible(until, now), wait, words }
            }
            FailureKind::NotFound => {
                FailedCall::Refused { reason: HostingRefusal::NotFound, words }
            }
            FailureKind::Protected => {
                FailedCall::Refused { reason: HostingRefusal::Protected, words }
            }
            FailureKind::Unreachable => FailedCall::Unreachable { words },
        })
    }
}

/// A point in time: RFC 3339, or seconds since 1970.
fn point(text: &str) -> Option<Timestamp> {
    let seconds: Option<i64> = text.parse().ok();
    let unix = seconds.and_then(|seconds| seconds.checked_mul(1_000_000_000));
    unix.map(Timestamp::from_nanos).or_else(|| Timestamp::parse(text).ok())
}

/// The end of a rate limit that can be true: later than now, and not by weeks.
pub(super) fn sensible(until: Option<Timestamp>, now: Timestamp) -> Option<Timestamp> {
    until.filter(|until| *until > now).map(|until| until.min(now.plus(LIMIT_WAIT_MAX)))
}

/// The output of a tool, on one line for people.
pub(super) fn words_of(output: &CallOutput) -> String {
    let said = [&output.stderr, &output.stdout].into_iter().find(|text| !text.trim().is_empty());
    let Some(said) = said else {
        let code = output.code.map_or("a signal".to_owned(), |code| format!("exit code {code}"));
        return format!("it ended with {code} and said nothing");
    };
    let plain: String = said.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let words: Vec<&str> = plain.split_whitespace().collect();
    words.join(" ").chars().take(WORDS_CHARACTERS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::super::HostingProvider;
    use super::*;

    fn now() -> Timestamp {
        Timestamp::parse("2026-05-31T12:00:00Z").unwrap()
    }

    fn said(provider: &str, code: i32, stderr: &str) -> Option<FailedCall> {
        let provider = HostingProvider::built_in(provider).unwrap();
        let (stdout, stderr) = (String::new(), stderr.to_owned());
        provider.file().known_failure(&CallOutput { code: Some(code), stdout, stderr }, now())
    }

    fn kind(failed: Option<&FailedCall>) -> &'static str {
        match failed {
            None => "unknown",
            Some(FailedCall::LoggedOut) => "logged out",
            Some(FailedCall::RateLimited { .. }) => "rate limited",
            Some(FailedCall::Refused { reason: HostingRefusal::NotFound, .. }) => "not found",
            Some(FailedCall::Refused { .. }) => "protected",
            Some(FailedCall::Unreachable { .. }) => "unreachable",
        }
    }

    #[test]
    fn messages_of_gh_are_told_apart() {
        for (code, stderr, expected) in [
            (4, "To get started with GitHub CLI, please run:  gh auth login", "logged out"),
            (4, "", "logged out"),
            (1, "HTTP 401: Bad credentials (https://api.github.com/graphql)", "logged out"),
            (1, "gh: Bad credentials (HTTP 401)", "logged out"),
            (1, "gh: API rate limit exceeded for user ID 12. (HTTP 403)", "rate limited"),
            (1, "GraphQL: API rate limit exceeded for user ID 12.", "rate limited"),
            (
                1,
                "HTTP 403: You have exceeded a secondary rate limit. Please wait a few minutes",
                "rate limited",
            ),
            (1, "gh: Not Found (HTTP 404)", "not found"),
            (1, "GraphQL: Could not resolve to a PullRequest with the number of 9.", "not found"),
            (1, "GraphQL: Could not resolve to a Repository with the name 'a/b'.", "not found"),
            (
                1,
                "error connecting to api.github.com\ncheck your internet connection",
                "unreachable",
            ),
            (1, "Post \"https://api.github.com/graphql\": dial tcp: lookup x", "unreachable"),
            (1, "HTTP 502: Bad Gateway (https://api.github.com/graphql)", "unreachable"),
            (1, "gh: Repository was archived so is read-only. (HTTP 403)", "protected"),
            (1, "gh: Resource not accessible by personal access token (HTTP 403)", "protected"),
            (1, "gh: Validation Failed (HTTP 422)", "unknown"),
        ] {
            assert_eq!(kind(said("gh", code, stderr).as_ref()), expected, "{stderr}");
        }
    }

    #[test]
    fn messages_of_glab_are_told_apart() {
        for (stderr, expected) in [
            ("glab: 401 Unauthorized (HTTP 401)", "logged out"),
            ("x gitlab.com: No token found (checked config file, keyring)", "logged out"),
            ("glab: HTTP 429", "rate limited"),
            ("glab: 404 Project Not Found (HTTP 404)", "not found"),
            ("Get \"https://gitlab.com/api/v4/user\": dial tcp: no such host", "unreachable"),
            ("glab: HTTP 502", "unreachable"),
            ("glab: 403 Forbidden (HTTP 403)", "protected"),
            ("glab: Another open merge request already exists: !3 (HTTP 409)", "unknown"),
        ] {
            assert_eq!(kind(said("glab", 1, stderr).as_ref()), expected, "{stderr}");
        }
    }

    #[test]
    fn texts_of_strangers_are_not_taken_for_words_of_the_tool() {
        let provider = HostingProvider::built_in("gh").unwrap();
        let output = CallOutput {
            code: Some(1),
            stdout: "[{\"body\": \"HTTP 401\"}]".to_owned(),
            stderr: "gh: Server Error (HTTP 500)".to_owned(),
        };
        assert_eq!(kind(provider.file().known_failure(&output, now()).as_ref()), "unreachable");
    }

    #[test]
    fn the_end_of_a_rate_limit_is_read_where_it_is_said() {
        let (_, text) = super::super::PROVIDERS[0];
        let old = "'API rate limit exceeded|";
        for (pattern, stderr, expected) in [
            (r"'reset at (?<until>\S+)|", "reset at 2026-05-31T12:10:00Z", "2026-05-31T12:10:00Z"),
            (r"'reset at (?<until>\S+)|", "reset at 1780229400", "2026-05-31T12:10:00Z"),
            (r"'retry after (?<after>\d+)|", "retry after 30 s", "2026-05-31T12:00:30Z"),
            (r"'reset at (?<until>\S+)|", "reset at 2020-01-01T00:00:00Z", "none"),
            (r"'reset at (?<until>\S+)|", "reset at 9000000000", "2026-06-07T12:00:00Z"),
        ] {
            let provider = HostingProvider::parse(&text.replacen(old, pattern, 1), "x").unwrap();
            let (stdout, stderr) = (String::new(), stderr.to_owned());
            let output = CallOutput { code: Some(1), stdout, stderr };
            let failed = provider.file().known_failure(&output, now());
            let Some(FailedCall::RateLimited { until, .. }) = failed else { panic!("{failed:?}") };
            assert_eq!(until.map_or("none".to_owned(), |until| until.to_string()), expected);
        }
    }
}
