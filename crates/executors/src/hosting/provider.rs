//! The file that describes a hosting service and the tool for it.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use gt_core::command_template::expand;
use gt_core::formula::WordSet;
use gt_core::hosting::{
    HostedCheckState, PullRequestApproval, PullRequestReviewState, PullRequestState,
};
use gt_core::runtime::{Pattern, RuntimeName};
use gt_core::time::parse_duration;
use serde::Deserialize;
use serde::de::Error as _;

use super::json_path::JsonPath;

/// The providers that this program brings: their names and their files.
pub const PROVIDERS: [(&str, &str); 2] =
    [("gh", include_str!("providers/gh.toml")), ("glab", include_str!("providers/glab.toml"))];

/// Longest file, in bytes.
const FILE_BYTES_MAX: usize = 256 * 1024;

/// The values that each template can name.
const VALUES: [&str; 17] = [
    "host",
    "owner",
    "name",
    "path",
    "path_encoded",
    "number",
    "numbers",
    "title",
    "head",
    "head_owner",
    "head_commit",
    "branch",
    "branch_encoded",
    "base",
    "base_encoded",
    "author",
    "author_id",
];

/// Why a file does not describe a provider.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {message}")]
pub struct InvalidProvider {
    /// The file, as the caller named it.
    pub file: String,
    /// The error, with the line where it is known.
    pub message: String,
}

/// A hosting service and the tool for it.
#[derive(Debug, Clone)]
pub struct HostingProvider {
    file: ProviderFile,
}

impl HostingProvider {
    /// Reads a file. `file` is how messages name it.
    pub fn parse(text: &str, file: &str) -> Result<Self, InvalidProvider> {
        let wrong = |message: String| InvalidProvider { file: file.to_owned(), message };
        if text.len() > FILE_BYTES_MAX {
            return Err(wrong(format!("longer than {FILE_BYTES_MAX} bytes")));
        }
        let read: ProviderFile =
            toml::from_str(text).map_err(|error| wrong(one_line(text, &error)))?;
        read.check().map_err(wrong)?;
        Ok(Self { file: read })
    }

    /// The provider of this name that came with this program.
    pub fn built_in(name: &str) -> Option<Self> {
        let (_, text) = PROVIDERS.iter().find(|(known, _)| *known == name)?;
        Self::parse(text, name).ok()
    }

    /// The provider of this name: the file `<name>.toml` in a directory of the user replaces the built-in one as a
    /// whole. None if there is neither.
    pub fn load(name: &str, directory: &Path) -> Result<Option<Self>, InvalidProvider> {
        let path = directory.join(format!("{name}.toml"));
        let is_plain = RuntimeName::parse(name).is_ok();
        match std::fs::read_to_string(&path) {
            Ok(text) if is_plain => Self::parse(&text, &path.display().to_string()).map(Some),
            Err(error) if is_plain && error.kind() != ErrorKind::NotFound => Err(InvalidProvider {
                file: path.display().to_string(),
                message: format!("cannot be read: {error}"),
            }),
            _ => Ok(Self::built_in(name)),
        }
    }

    /// The same with another program: the tool under another name or path.
    #[must_use]
    pub fn with_program(mut self, program: impl Into<String>) -> Self {
        self.file.program = program.into();
        self
    }

    /// One line for people.
    pub fn description(&self) -> &str {
        &self.file.description
    }

    /// The tool.
    pub fn program(&self) -> &str {
        &self.file.program
    }

    /// The command that logs in at a host.
    pub fn login_command(&self, host: &str) -> String {
        expand(&self.file.login_command, &[("host", host)]).unwrap_or_default().join(" ")
    }

    /// Whether a pull request may come from a branch of a fork.
    pub fn takes_forks(&self) -> bool {
        self.file.fork_head.is_some()
    }

    /// Whether a host is known to be of this service.
    pub fn serves(&self, host: &str) -> bool {
        self.file.hosts.iter().any(|pattern| pattern.0.is_in(host))
    }

    pub(super) fn file(&self) -> &ProviderFile {
        &self.file
    }
}

/// The line of an error and its message, on one line.
fn one_line(text: &str, error: &toml::de::Error) -> String {
    let message = error.message().replace(char::is_control, " ");
    match error.span().and_then(|span| text.get(..span.start)) {
        Some(before) => format!("line {}: {message}", before.matches('\n').count() + 1),
        None => message,
    }
}

/// The name of the built-in provider for a host, if its name tells which one. A service under a name of its own needs
/// a setting.
pub fn provider_for_host(host: &str) -> Option<&'static str> {
    let serves = |name: &str| HostingProvider::built_in(name).is_some_and(|it| it.serves(host));
    PROVIDERS.iter().map(|(name, _)| *name).find(|name| serves(name))
}

/// The whole file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProviderFile {
    pub(super) description: String,
    pub(super) program: String,
    pub(super) hosts: Vec<FilePattern>,
    pub(super) login_command: String,
    pub(super) fork_head: Option<String>,
    pub(super) bot_login: Option<FilePattern>,
    /// How long one call may take.
    pub(super) timeout: Option<FileDuration>,
    #[serde(default)]
    pub(super) environment: BTreeMap<String, String>,
    pub(super) login: LoginQuery,
    pub(super) create: CreateQuery,
    pub(super) update: PlainQuery,
    pub(super) find: FindQuery,
    pub(super) list: ListQuery,
    pub(super) show: ShowQuery,
    pub(super) checks: ChecksQuery,
    #[serde(default)]
    pub(super) feedback: Vec<FeedbackQuery>,
    pub(super) access: Option<AccessQuery>,
    pub(super) rate_limit: Option<RateLimitQuery>,
    #[serde(default)]
    pub(super) failure: Vec<FailureRule>,
}

/// A command whose output is not read.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PlainQuery {
    pub(super) command: String,
}

/// Which account the tool uses; it fails if there is none.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LoginQuery {
    pub(super) command: String,
    pub(super) login: JsonPath,
}

/// Opens a pull request. Its text is on standard input.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CreateQuery {
    pub(super) command: String,
    pub(super) number: JsonPath,
    pub(super) url: JsonPath,
}

/// The open pull requests of one branch.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FindQuery {
    pub(super) command: String,
    pub(super) number: JsonPath,
    pub(super) url: JsonPath,
    pub(super) body: JsonPath,
    pub(super) branch: JsonPath,
    pub(super) head_owner: Option<JsonPath>,
}

/// The pull requests of a poll. Each whole row is a fingerprint.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ListQuery {
    pub(super) command: String,
    pub(super) rows: Option<JsonPath>,
    pub(super) number: JsonPath,
    /// Most numbers in one call, where the command names them.
    pub(super) numbers_max: Option<usize>,
}

/// One pull request.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ShowQuery {
    pub(super) command: String,
    pub(super) number: JsonPath,
    pub(super) state: JsonPath,
    pub(super) states: BTreeMap<String, FileWord<PullRequestState>>,
    pub(super) url: JsonPath,
    pub(super) author: JsonPath,
    pub(super) head_branch: JsonPath,
    pub(super) head_commit: JsonPath,
    pub(super) base_branch: JsonPath,
    pub(super) merge_commit: JsonPath,
    pub(super) conflict: Option<JsonPath>,
    /// The values there that mean a conflict with the base.
    #[serde(default)]
    pub(super) conflicts: Vec<String>,
    pub(super) approval: Option<JsonPath>,
    #[serde(default)]
    pub(super) approvals: BTreeMap<String, FileWord<PullRequestApproval>>,
}

/// The checks of the head commit; without a command they are in the answer about the pull request.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ChecksQuery {
    pub(super) command: Option<String>,
    pub(super) rows: Option<JsonPath>,
    pub(super) name: JsonPath,
    /// Checks of the same name are the same check only within one group.
    pub(super) group: Option<JsonPath>,
    pub(super) state: JsonPath,
    pub(super) states: BTreeMap<String, FileWord<HostedCheckState>>,
    pub(super) link: Option<JsonPath>,
    pub(super) started: Option<JsonPath>,
    pub(super) ended: Option<JsonPath>,
    /// Whether its failure is allowed.
    pub(super) optional: Option<JsonPath>,
}

/// One list of texts on a pull request.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FeedbackQuery {
    /// The name of the list, the first part of the identity of its texts.
    pub(super) name: String,
    pub(super) command: String,
    pub(super) id: JsonPath,
    pub(super) author: JsonPath,
    pub(super) author_id: Option<JsonPath>,
    pub(super) author_kind: Option<JsonPath>,
    #[serde(default)]
    pub(super) bot_kinds: Vec<String>,
    pub(super) access: Option<JsonPath>,
    #[serde(default)]
    pub(super) write_access: Vec<String>,
    pub(super) body: JsonPath,
    pub(super) url: Option<JsonPath>,
    pub(super) submitted: Option<JsonPath>,
    pub(super) file: Option<JsonPath>,
    pub(super) line: Option<JsonPath>,
    pub(super) resolved: Option<JsonPath>,
    pub(super) skip: Option<JsonPath>,
    /// The state of a review; a list without it has comments.
    pub(super) state: Option<JsonPath>,
    #[serde(default)]
    pub(super) states: BTreeMap<String, FileWord<PullRequestReviewState>>,
}

/// The access of one author, where the texts do not say it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AccessQuery {
    pub(super) command: String,
    pub(super) level: JsonPath,
    /// The lowest level that may write.
    pub(super) write_level: u64,
}

/// When a rate limit ends.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RateLimitQuery {
    pub(super) command: String,
    pub(super) rows: Vec<JsonPath>,
    pub(super) remaining: JsonPath,
    /// Seconds since 1970.
    pub(super) reset: JsonPath,
}

/// How a failure is told from another: by the exit code, by a text, or by both.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FailureRule {
    pub(super) kind: FailureKind,
    pub(super) exit: Option<i32>,
    pub(super) pattern: Option<FilePattern>,
    /// How long to wait if nothing says until when.
    pub(super) wait: Option<FileDuration>,
}

/// The kinds of failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum FailureKind {
    LoggedOut,
    RateLimited,
    NotFound,
    Protected,
    Unreachable,
}

/// A pattern in a file.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct FilePattern(pub(super) Pattern);

impl TryFrom<String> for FilePattern {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Pattern::parse(&text).map(Self).map_err(|why| why.to_string())
    }
}

/// A duration in a file.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct FileDuration(pub(super) Duration);

impl TryFrom<String> for FileDuration {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        parse_duration(&text).map(Self).map_err(|why| why.to_string())
    }
}

/// A word of a set in a file.
#[derive(Debug, Clone, Copy)]
pub(super) struct FileWord<W>(pub(super) W);

impl<'de, W: WordSet> Deserialize<'de> for FileWord<W> {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        W::parse(&text).map(Self).map_err(D::Error::custom)
    }
}

impl ProviderFile {
    /// A rule that the types do not say: each template names only values that exist.
    fn check(&self) -> Result<(), String> {
        if self.program.is_empty() {
            return Err("program: missing; name the tool".to_owned());
        }
        let values: Vec<(&str, &str)> = VALUES.iter().map(|name| (*name, "x")).collect();
        for (key, template) in self.templates() {
            expand(template, &values).map_err(|why| format!("{key}: {why}"))?;
        }
        if self.failure.iter().any(|rule| rule.exit.is_none() && rule.pattern.is_none()) {
            return Err("failure: a rule needs exit or pattern".to_owned());
        }
        let mut names: Vec<&str> = self.feedback.iter().map(|list| list.name.as_str()).collect();
        names.sort_unstable();
        if names.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err("feedback: each list needs a name of its own".to_owned());
        }
        Ok(())
    }

    fn templates(&self) -> Vec<(&'static str, &str)> {
        let mut templates = vec![
            ("login_command", self.login_command.as_str()),
            ("login.command", &self.login.command),
            ("create.command", &self.create.command),
            ("update.command", &self.update.command),
            ("find.command", &self.find.command),
            ("list.command", &self.list.command),
            ("show.command", &self.show.command),
        ];
        let optional = [
            ("fork_head", self.fork_head.as_deref()),
            ("checks.command", self.checks.command.as_deref()),
            ("access.command", self.access.as_ref().map(|query| query.command.as_str())),
            ("rate_limit.command", self.rate_limit.as_ref().map(|query| query.command.as_str())),
        ];
        templates.extend(optional.into_iter().filter_map(|(key, text)| Some((key, text?))));
        let lists = self.feedback.iter();
        templates.extend(lists.map(|list| ("feedback.command", list.command.as_str())));
        templates
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_files_are_right() {
        for (name, text) in PROVIDERS {
            let provider = HostingProvider::parse(text, name).unwrap();
            assert_eq!(provider.program(), name);
            assert!(!provider.description().is_empty());
        }
    }

    #[test]
    fn a_file_of_the_user_replaces_the_built_in_one() {
        let directory = tempfile::tempdir().unwrap();
        let load = |name| HostingProvider::load(name, directory.path());
        assert_eq!(load("gh").unwrap().unwrap().program(), "gh");
        assert!(load("forge").unwrap().is_none() && load("../gh").unwrap().is_none());
        let mine = PROVIDERS[0].1.replace("program = \"gh\"", "program = \"/opt/gh\"");
        std::fs::write(directory.path().join("gh.toml"), &mine).unwrap();
        std::fs::write(directory.path().join("forge.toml"), &mine).unwrap();
        for name in ["gh", "forge"] {
            assert_eq!(load(name).unwrap().unwrap().program(), "/opt/gh");
        }
        std::fs::write(directory.path().join("gh.toml"), "program = 1").unwrap();
        assert!(load("gh").unwrap_err().file.ends_with("/gh.toml"));
    }

    #[test]
    fn a_host_tells_its_provider() {
        for (host, expected) in [
            ("github.com", Some("gh")),
            ("acme.ghe.com", Some("gh")),
            ("github.acme.com", Some("gh")),
            ("gitlab.com", Some("glab")),
            ("gitlab.acme.com:8443", Some("glab")),
            ("code-gitlab.acme.com", Some("glab")),
            ("mygithub.com", None),
            ("code.acme.com", None),
        ] {
            assert_eq!(provider_for_host(host), expected, "{host}");
        }
    }

    #[test]
    fn an_error_names_the_file_and_the_place() {
        let (_, good) = PROVIDERS[0];
        for (from, to, expected) in [
            ("program = \"gh\"", "program = 3", "invalid type: integer"),
            ("program = \"gh\"", "programme = \"gh\"", "unknown field `programme`"),
            ("{owner}/{name}/pulls --raw", "{user}/pulls --raw", "create.command: {user} stands"),
            ("OPEN = \"open\"", "OPEN = \"opened\"", "is not a state of a pull request"),
            ("kind = \"rate-limited\"", "kind = \"limited\"", "unknown variant `limited`"),
            ("exit = 4", "", "a rule needs exit or pattern"),
            ("name = \"comment\"", "name = \"review\"", "each list needs a name of its own"),
            ("wait = \"1m\"", "wait = \"soon\"", "soon"),
            ("'HTTP 404|", "'(HTTP 404|", "is not a pattern"),
            ("body = \"body\"", "body = \"body.\"", "is not a path"),
        ] {
            let text = good.replacen(from, to, 1);
            assert_ne!(text, good, "{from}");
            let said = HostingProvider::parse(&text, "mine.toml").unwrap_err().to_string();
            assert!(said.starts_with("mine.toml: ") && said.contains(expected), "{said}");
            assert!(!said.contains(char::is_control), "{said}");
        }
        let said = HostingProvider::parse("program = 'gh'\n\n= 3", "x").unwrap_err().to_string();
        assert!(said.starts_with("x: line 3: "), "{said}");
    }
}
