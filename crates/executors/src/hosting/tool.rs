//! The client: what is asked of a hosting service.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use gt_core::Clock;
use gt_core::command_template::expand;
use gt_core::hexadecimal::{self, digits_of};
use gt_core::hosting::{
    HostedRepository, PolledPullRequest, PullRequest, PullRequestFeedback, RequestMarker,
};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::failure::{FailedCall, HostingError, HostingRefusal, sensible, words_of};
use super::limited_call::{CallEnd, CallOutput, LimitedCall};
use super::provider::{HostingProvider, ProviderFile};
use super::reading::{needed, needed_number, object, rows};

/// How long one call may take, unless the file of the provider says otherwise.
pub const HOSTING_CALL_LIMIT: Duration = Duration::from_mins(1);

/// How many bytes of an answer are read.
const OUTPUT_BYTES_MAX: u64 = 32 * 1024 * 1024;

/// A hosting service, for one repository.
#[derive(Clone, Copy)]
pub struct HostingTool<'a> {
    provider: &'a HostingProvider,
    repository: &'a HostedRepository,
    directory: &'a Path,
    clock: &'a dyn Clock,
    limit: Duration,
}

/// The branch that is to be merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PullRequestHead<'a> {
    /// The owner of the fork that it is in; none: it is in the repository itself.
    pub fork_owner: Option<&'a str>,
    /// Its name.
    pub branch: &'a str,
}

/// A pull request to open.
#[derive(Debug, Clone, Copy)]
pub struct NewPullRequest<'a> {
    /// The branch that is to be merged.
    pub head: PullRequestHead<'a>,
    /// The branch that it is to be merged into.
    pub base: &'a str,
    /// The title.
    pub title: &'a str,
    /// The text; it has the marker.
    pub body: &'a str,
    /// The marker by which it is found again.
    pub marker: &'a RequestMarker,
}

/// An open pull request of a branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundPullRequest {
    /// Its number.
    pub number: u64,
    /// Where it is on the web.
    pub url: String,
}

/// A pull request that is open now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenedPullRequest {
    /// The pull request.
    pub pull_request: FoundPullRequest,
    /// Whether it was there already: another call had opened it, or the answer to ours was lost. Its title and text
    /// may be older than those that were asked for.
    pub was_there: bool,
}

/// Opens a pull request with these two calls, unless one of its branch with its marker is open. `find` returns the open ones
/// of the branch, each with its text.
pub fn open_once(
    new: &NewPullRequest<'_>,
    find: impl Fn() -> Result<Vec<(FoundPullRequest, String)>, HostingError>,
    create: impl FnOnce() -> Result<FoundPullRequest, HostingError>,
) -> Result<OpenedPullRequest, HostingError> {
    let open = find()?;
    let adopted = |pull_request| OpenedPullRequest { pull_request, was_there: true };
    if let Some((found, _)) = open.iter().find(|(_, body)| new.marker.is_in(body)) {
        return Ok(adopted(found.clone()));
    }
    let failed = match create() {
        Ok(pull_request) => return Ok(OpenedPullRequest { pull_request, was_there: false }),
        Err(failed) => failed,
    };
    if matches!(failed, HostingError::ToolMissing { .. } | HostingError::LoggedOut { .. }) {
        return Err(failed);
    }
    // If this fails too, the next call begins with the same question.
    let open = find().unwrap_or(open);
    match open.iter().find(|(_, body)| new.marker.is_in(body)) {
        Some((found, _)) => Ok(adopted(found.clone())),
        None => Err(match (failed, open.first()) {
            (HostingError::Refused { .. }, Some((foreign, _))) => HostingError::Refused {
                reason: HostingRefusal::ForeignPullRequest,
                words: format!(
                    "the branch {} has a pull request without our marker: {}",
                    new.head.branch, foreign.url
                ),
            },
            (failed, _) => failed,
        }),
    }
}

type Values<'v> = [(&'v str, &'v str)];

impl<'a> HostingTool<'a> {
    /// The tool of a provider for a repository. It runs in `directory`, which is ours and no clone.
    pub fn new(
        provider: &'a HostingProvider,
        repository: &'a HostedRepository,
        directory: &'a Path,
        clock: &'a dyn Clock,
    ) -> Self {
        let limit = provider.file().timeout.map_or(HOSTING_CALL_LIMIT, |limit| limit.0);
        Self { provider, repository, directory, clock, limit }
    }

    /// The same with another time limit for each call.
    #[must_use]
    pub fn limited(self, limit: Duration) -> Self {
        Self { limit, ..self }
    }

    /// The login that the tool uses. This is also the test whether the tool is there and logged in.
    pub fn login(&self) -> Result<String, HostingError> {
        let query = &self.file().login;
        let answer = self.answer(&query.command, &[], b"", object)?;
        needed(&query.login, &answer, "login").map_err(|what| self.unreadable(what))
    }

    /// The open pull request of this branch that has the marker. A closed one is never it.
    pub fn find_open(
        &self,
        head: PullRequestHead<'_>,
        marker: &RequestMarker,
    ) -> Result<Option<FoundPullRequest>, HostingError> {
        let found = self.open_of_branch(head)?;
        let marked = found.into_iter().find(|(_, body)| marker.is_in(body));
        Ok(marked.map(|(found, _)| found))
    }

    /// Opens a pull request, unless it is open already. One that was opened without our learning it is found by its
    /// branch and marker, before and after the try, so it is never opened twice.
    pub fn open(&self, new: &NewPullRequest<'_>) -> Result<OpenedPullRequest, HostingError> {
        open_once(new, || self.open_of_branch(new.head), || self.create(new))
    }

    /// Writes the title and the text of a pull request.
    pub fn update(&self, number: u64, title: &str, body: &str) -> Result<(), HostingError> {
        let number = number.to_string();
        let values = [("number", number.as_str()), ("title", title)];
        self.answer(&self.file().update.command, &values, body.as_bytes(), |_| Ok(()))
    }

    /// The changes of these pull requests: one call for all of them.
    pub fn poll(&self, numbers: &[u64]) -> Result<Vec<PolledPullRequest>, HostingError> {
        let query = &self.file().list;
        let mut found = BTreeMap::new();
        for asked in numbers.chunks(query.numbers_max.unwrap_or(usize::MAX).max(1)) {
            let named: Vec<String> = asked.iter().map(|number| format!("\"{number}\"")).collect();
            let named = named.join(",");
            let read = |output: &str| rows(output, query.rows.as_ref());
            for row in self.answer(&query.command, &[("numbers", &named)], b"", read)? {
                let number = needed_number(&query.number, &row);
                let number = number.map_err(|what| self.unreadable(what))?;
                found.insert(number, fingerprint(&row));
            }
        }
        let polled = numbers.iter().map(|number| PolledPullRequest {
            number: *number,
            fingerprint: found.get(number).cloned(),
        });
        Ok(polled.collect())
    }

    /// One pull request with its checks and texts.
    pub fn show(&self, number: u64) -> Result<PullRequest, HostingError> {
        let file = self.file();
        let shown = number.to_string();
        let values = [("number", shown.as_str())];
        let answer = self.answer(&file.show.command, &values, b"", object)?;
        let mut pull = file.show.read(&answer).map_err(|what| self.unreadable(what))?;
        if pull.number != number {
            return Err(self.unreadable(format!("it is about number {}", pull.number)));
        }
        let checks = match &file.checks.command {
            None => {
                let found = file.checks.rows.as_ref().and_then(|path| path.value(&answer));
                found.and_then(Value::as_array).cloned().unwrap_or_default()
            }
            Some(command) => {
                let values = [values[0], ("head_commit", pull.head_commit.as_str())];
                let read = |output: &str| rows(output, file.checks.rows.as_ref());
                self.answer(command, &values, b"", read)?
            }
        };
        pull.checks = file.checks.read(&checks).map_err(|what| self.unreadable(what))?;
        pull.feedback = self.feedback(&values)?;
        Ok(pull)
    }

    fn feedback(&self, values: &Values<'_>) -> Result<Vec<PullRequestFeedback>, HostingError> {
        let file = self.file();
        let mut levels: BTreeMap<String, (bool, String)> = BTreeMap::new();
        let mut all = Vec::new();
        for list in &file.feedback {
            let rows = self.answer(&list.command, values, b"", |output| rows(output, None))?;
            let read = list.read(&rows, file).map_err(|what| self.unreadable(what))?;
            for mut text in read {
                let is_number = |id: &String| id.bytes().all(|byte| byte.is_ascii_digit());
                if let Some(id) = text.author_id.filter(is_number)
                    && !text.feedback.is_bot
                {
                    let known = match levels.get(&id) {
                        Some(known) => known.clone(),
                        None => self.access_of(&id)?,
                    };
                    (text.feedback.may_write, text.feedback.access) = known.clone();
                    levels.insert(id, known);
                }
                all.push(text.feedback);
            }
        }
        // Lists come one after the other; people read in the order of time.
        all.sort_by_key(|text| text.submitted_at);
        Ok(all)
    }

    /// Whether an account may write, and what the service says about it.
    fn access_of(&self, author_id: &str) -> Result<(bool, String), HostingError> {
        let Some(query) = &self.file().access else { return Ok((false, String::new())) };
        match self.answer(&query.command, &[("author_id", author_id)], b"", object) {
            Ok(member) => {
                let level = query.level.number(&member).unwrap_or(0);
                Ok((level >= query.write_level, level.to_string()))
            }
            Err(HostingError::Refused { reason: HostingRefusal::NotFound, .. }) => {
                Ok((false, "0".to_owned()))
            }
            Err(failed) => Err(failed),
        }
    }

    /// The open pull requests of a branch, each with its text.
    fn open_of_branch(
        &self,
        head: PullRequestHead<'_>,
    ) -> Result<Vec<(FoundPullRequest, String)>, HostingError> {
        let query = &self.file().find;
        let encoded = percent_encoded(head.branch);
        let values = [("branch", head.branch), ("branch_encoded", encoded.as_str())];
        let rows = self.answer(&query.command, &values, b"", |output| rows(output, None))?;
        let owner = head.fork_owner.unwrap_or(&self.repository.owner);
        let is_of_head = |row: &&Value| {
            let branch = query.branch.text(row);
            let of = query.head_owner.as_ref().and_then(|path| path.text(row));
            branch.as_deref() == Some(head.branch)
                && of.is_none_or(|of| of.eq_ignore_ascii_case(owner))
        };
        let found = rows.iter().filter(is_of_head).map(|row| {
            let number = needed_number(&query.number, row)?;
            let url = needed(&query.url, row, "address")?;
            Ok((FoundPullRequest { number, url }, query.body.text(row).unwrap_or_default()))
        });
        found.collect::<Result<_, String>>().map_err(|what| self.unreadable(what))
    }

    fn create(&self, new: &NewPullRequest<'_>) -> Result<FoundPullRequest, HostingError> {
        let query = &self.file().create;
        let head = self.head_of(new.head)?;
        let values = [
            ("title", new.title),
            ("head", head.as_str()),
            ("branch", new.head.branch),
            ("base", new.base),
        ];
        let answer = self.answer(&query.command, &values, new.body.as_bytes(), object)?;
        let read = || {
            let number = needed_number(&query.number, &answer)?;
            Ok(FoundPullRequest { number, url: needed(&query.url, &answer, "address")? })
        };
        read().map_err(|what: String| self.unreadable(what))
    }

    /// How the head of a pull request is named.
    fn head_of(&self, head: PullRequestHead<'_>) -> Result<String, HostingError> {
        let Some(owner) = head.fork_owner.filter(|owner| **owner != *self.repository.owner) else {
            return Ok(head.branch.to_owned());
        };
        let Some(template) = &self.file().fork_head else {
            return Err(HostingError::Refused {
                reason: HostingRefusal::NotSupported,
                words: format!("{} opens no pull requests from forks", self.provider.program()),
            });
        };
        let values = [("head_owner", owner), ("branch", head.branch)];
        let words = self.expanded(template, &values)?;
        Ok(words.join(" "))
    }

    fn file(&self) -> &'a ProviderFile {
        self.provider.file()
    }

    /// Makes a call that must succeed, and reads its output.
    fn answer<T>(
        &self,
        template: &str,
        values: &Values<'_>,
        input: &[u8],
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Result<T, HostingError> {
        let output = self.call(template, values, input)?;
        let known = || self.file().known_failure(&output, self.clock.now());
        if output.code != Some(0) {
            let failed = known().unwrap_or_else(|| FailedCall::Refused {
                reason: HostingRefusal::Other,
                words: words_of(&output),
            });
            return Err(self.failed(failed));
        }
        read(&output.stdout).map_err(|what| {
            // Some commands report a failure and end well.
            let failed = if output.stderr.trim().is_empty() { None } else { known() };
            failed.map_or_else(|| self.unreadable(what), |failed| self.failed(failed))
        })
    }

    fn failed(&self, failed: FailedCall) -> HostingError {
        match failed {
            FailedCall::LoggedOut => self.logged_out(),
            FailedCall::Refused { reason, words } => HostingError::Refused { reason, words },
            FailedCall::Unreachable { words } => HostingError::Unreachable { words },
            FailedCall::RateLimited { until, wait, words } => {
                let until = until.or_else(|| self.rate_limit_end());
                let until = until.unwrap_or_else(|| self.clock.now().plus(wait));
                HostingError::RateLimited { until, words }
            }
        }
    }

    /// When the limits that are used up end, as the service says it. Nothing follows from a failure of this call.
    fn rate_limit_end(&self) -> Option<gt_core::Timestamp> {
        let query = self.file().rate_limit.as_ref()?;
        let output = self.call(&query.command, &[], b"").ok()?;
        let answer = object(&output.stdout).ok()?;
        let limits = query.rows.iter().filter_map(|path| path.value(&answer));
        let used_up = limits.filter(|limit| query.remaining.number(limit) == Some(0));
        let ends = used_up.filter_map(|limit| {
            let seconds = i64::try_from(query.reset.number(limit)?).ok()?;
            Some(gt_core::Timestamp::from_nanos(seconds.checked_mul(1_000_000_000)?))
        });
        sensible(ends.max(), self.clock.now())
    }

    fn logged_out(&self) -> HostingError {
        let host = self.repository.host.clone();
        let program = self.provider.program().to_owned();
        let command = self.provider.login_command(&host);
        HostingError::LoggedOut { program, host, command }
    }

    fn unreadable(&self, what: String) -> HostingError {
        HostingError::Unreadable { program: self.provider.program().to_owned(), what }
    }

    fn expanded(&self, template: &str, values: &Values<'_>) -> Result<Vec<String>, HostingError> {
        let HostedRepository { host, owner, name } = self.repository;
        let path = self.repository.path();
        let encoded = percent_encoded(&path);
        let mut all = vec![
            ("host", host.as_str()),
            ("owner", owner),
            ("name", name),
            ("path", &path),
            ("path_encoded", &encoded),
        ];
        all.extend(values);
        expand(template, &all).map_err(|why| self.unreadable(format!("its file is wrong: {why}")))
    }

    fn call(
        &self,
        template: &str,
        values: &Values<'_>,
        input: &[u8],
    ) -> Result<CallOutput, HostingError> {
        let arguments = self.expanded(template, values)?;
        let program = self.provider.program();
        let environment: Vec<(String, String)> =
            self.file().environment.clone().into_iter().collect();
        let call = LimitedCall {
            program,
            arguments: &arguments,
            directory: self.directory,
            environment: &environment,
            input,
            limit: self.limit,
            output_bytes_max: OUTPUT_BYTES_MAX,
        };
        match call.run() {
            Ok(CallEnd::Ended(output)) => Ok(output),
            Ok(CallEnd::TooLate) => {
                let limit = gt_core::time::format_duration(self.limit);
                let words = format!("{program} did not answer within {limit}");
                Err(HostingError::Unreachable { words })
            }
            Ok(CallEnd::TooMuch) => {
                Err(self.unreadable(format!("it is longer than {OUTPUT_BYTES_MAX} bytes")))
            }
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::PermissionDenied) =>
            {
                Err(HostingError::ToolMissing { program: program.to_owned() })
            }
            Err(error) => Err(self.unreadable(format!("the tool cannot be started ({error})"))),
        }
    }
}

/// A text that differs when anything in a row does.
fn fingerprint(row: &Value) -> String {
    digits_of(&Sha256::digest(row.to_string())[..16])
}

/// A text as one part of a path or query of an address.
fn percent_encoded(text: &str) -> String {
    hexadecimal::percent_encoded(text, |byte| {
        byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_addresses_are_encoded() {
        assert_eq!(percent_encoded("group/sub/web"), "group%2Fsub%2Fweb");
        assert_eq!(percent_encoded("gt/a b&c=ü"), "gt%2Fa%20b%26c%3D%C3%BC");
        assert_eq!(percent_encoded("a-b._~9"), "a-b._~9");
    }

    #[test]
    fn a_fingerprint_differs_when_anything_does() {
        let row = serde_json::json!({"number": 1, "checks": [{"state": "PENDING"}]});
        let other = serde_json::json!({"number": 1, "checks": [{"state": "SUCCESS"}]});
        assert_eq!(fingerprint(&row), fingerprint(&row.clone()));
        assert_ne!(fingerprint(&row), fingerprint(&other));
    }
}
