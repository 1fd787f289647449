//! A repository on a service, and the tool for it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use gt_core::hosting::{HostedRepository, PullRequestDescription, RequestMarker};
use gt_core::merging::MergeRequestId;
use gt_core::{Clock, Timestamp};
use gt_executors::hosting::{
    HostingError, HostingProvider, HostingTool, NewPullRequest, OpenedPullRequest, PullRequestHead,
};
use gt_testkit::{FakeHosting, FakeService};

pub(crate) const SERVICES: [FakeService; 2] = [FakeService::GitHub, FakeService::GitLab];

/// A clock that stands.
struct Noon;

impl Clock for Noon {
    fn now(&self) -> Timestamp {
        noon()
    }
}

pub(crate) fn noon() -> Timestamp {
    Timestamp::parse("2026-05-31T12:00:00Z").unwrap()
}

pub(crate) struct World {
    directory: tempfile::TempDir,
    pub(crate) service: FakeHosting,
    provider: HostingProvider,
    repository: HostedRepository,
    limit: Duration,
}

impl World {
    /// A repository with the branches `main`, `release` and one of ours, and no pull request.
    pub(crate) fn new(service: FakeService) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let origin = directory.path().join("origin.git");
        git(directory.path(), &["init", "--quiet", "--bare", "-b", "main", "origin.git"]);
        let clone = directory.path().join("clone");
        git(directory.path(), &["clone", "--quiet", "origin.git", "clone"]);
        commit(&clone, "README", "Hello\n");
        git(&clone, &["push", "--quiet", "origin", "HEAD:main", "HEAD:release"]);
        commit(&clone, "login", "log in\n");
        let to_branch = format!("HEAD:refs/heads/{}", branch());
        git(&clone, &["push", "--quiet", "origin", &to_branch]);
        let fake = FakeHosting::new(directory.path().join("service"), service, &origin);
        let provider = HostingProvider::built_in(service.tool()).unwrap();
        let provider = provider.with_program(fake.tool().to_str().unwrap());
        let repository = HostedRepository::of_origin(&fake.address()).unwrap();
        std::fs::create_dir(directory.path().join("calls")).unwrap();
        let limit = Duration::from_mins(1);
        Self { directory, service: fake, provider, repository, limit }
    }

    /// A person commits a file to `main`.
    pub(crate) fn commit_on_main(&self, name: &str, text: &str) {
        git(self.directory.path(), &["clone", "--quiet", "-b", "main", "origin.git", "person"]);
        let clone = self.directory.path().join("person");
        commit(&clone, name, text);
        git(&clone, &["push", "--quiet", "origin", "HEAD:main"]);
    }

    /// The same with a short time limit for each call; long enough for a service that answers on a busy machine.
    pub(crate) fn impatient(mut self) -> Self {
        self.limit = Duration::from_secs(8);
        self
    }

    pub(crate) fn with_program(mut self, program: &str) -> Self {
        self.provider = self.provider.with_program(program);
        self
    }

    pub(crate) fn directory(&self) -> PathBuf {
        self.directory.path().join("calls")
    }

    pub(crate) fn with<T>(&self, ask: impl FnOnce(HostingTool<'_>) -> T) -> T {
        let directory = self.directory();
        let tool = HostingTool::new(&self.provider, &self.repository, &directory, &Noon);
        ask(tool.limited(self.limit))
    }

    pub(crate) fn open(&self) -> Result<OpenedPullRequest, HostingError> {
        self.open_for(&marker(1), None)
    }

    pub(crate) fn open_for(
        &self,
        marker: &RequestMarker,
        fork_owner: Option<&str>,
    ) -> Result<OpenedPullRequest, HostingError> {
        let details = [("Run".to_owned(), "web-1#1".to_owned())];
        let text = PullRequestDescription {
            title: "Log in & out @all",
            description: "Let people\n\n\"log in\" 'and' out: ${HOME} {number}",
            details: &details,
            marker,
        };
        let (title, body, branch) = (text.title(), text.body(), branch());
        let head = PullRequestHead { fork_owner, branch: &branch };
        let new = NewPullRequest { head, base: "main", title: &title, body: &body, marker };
        self.with(|tool| tool.open(&new))
    }

    /// The commit that a branch of the origin is at.
    pub(crate) fn tip(&self, branch: &str) -> String {
        git(&self.directory.path().join("origin.git"), &["rev-parse", branch])
    }

    pub(crate) fn is_in_main(&self, commit: &str) -> bool {
        let ask = ["branch", "--contains", commit, "--list", "main", "--format=%(refname:short)"];
        git(&self.directory.path().join("origin.git"), &ask) == "main"
    }

    pub(crate) fn calls_of(&self, word: &str) -> usize {
        let has_word = |argv: &serde_json::Value| {
            argv.as_array().unwrap().iter().any(|argument| argument.as_str() == Some(word))
        };
        self.service.calls().iter().filter(|call| has_word(&call["argv"])).count()
    }
}

/// Does the same with each service, side by side.
pub(crate) fn with_each_service(test: impl Fn(FakeService) + Sync) {
    std::thread::scope(|scope| {
        for service in SERVICES {
            let test = &test;
            scope.spawn(move || test(service));
        }
    });
}

/// Our branch. Its name has signs that mean something in an address.
pub(crate) fn branch() -> String {
    "gt/web-1-log-in&out+é".to_owned()
}

pub(crate) fn marker(number: u32) -> RequestMarker {
    RequestMarker(MergeRequestId::parse(&format!("web-1@{number}")).unwrap())
}

#[expect(clippy::disallowed_methods, reason = "tests call git as a person does")]
pub(crate) fn git(at: &Path, arguments: &[&str]) -> String {
    let mut git = Command::new("git");
    git.args(["-c", "user.name=Test", "-c", "user.email=test@example.com"])
        .args(arguments)
        .current_dir(at)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", "/nonexistent")
        .env("GIT_CONFIG_NOSYSTEM", "1");
    let ran = git.output().unwrap();
    assert!(ran.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8(ran.stdout).unwrap().trim().to_owned()
}

fn commit(clone: &Path, file: &str, text: &str) {
    std::fs::write(clone.join(file), text).unwrap();
    git(clone, &["add", file]);
    git(clone, &["commit", "--quiet", "-m", file]);
}
