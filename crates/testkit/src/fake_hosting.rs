//! A hosting service for tests: `gh` or `glab` over a file, and a person on the service.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::program_file::write_program;

/// The program; see there for what it knows.
const PROGRAM: &str = include_str!("fake_hosting.py");

/// The interpreter of the system is taken if there is one: one behind a version manager takes long to start.
fn interpreter() -> &'static str {
    let of_system = "/usr/bin/python3";
    if Path::new(of_system).exists() { of_system } else { "python3" }
}

/// Which service it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FakeService {
    /// GitHub, with the tool `gh`.
    GitHub,
    /// GitLab, with the tool `glab`.
    GitLab,
}

impl FakeService {
    /// The name of its tool.
    pub fn tool(self) -> &'static str {
        match self {
            Self::GitHub => "gh",
            Self::GitLab => "glab",
        }
    }

    fn host(self) -> &'static str {
        match self {
            Self::GitHub => "github.com",
            Self::GitLab => "gitlab.com",
        }
    }

    fn path(self) -> &'static str {
        match self {
            Self::GitHub => "acme/web",
            Self::GitLab => "acme/tools/web",
        }
    }
}

/// A hosting service in a directory. Its repository is a bare one on disk; its login is `robot`.
#[derive(Debug, Clone)]
pub struct FakeHosting {
    directory: PathBuf,
    service: FakeService,
}

impl FakeHosting {
    /// A service without pull requests. `directory` must not exist yet; `origin` is a bare repository.
    #[track_caller]
    pub fn new(directory: impl Into<PathBuf>, service: FakeService, origin: &Path) -> Self {
        let directory = directory.into();
        let bin = directory.join("bin");
        fs::create_dir_all(&bin).expect("make the directory of the service");
        let (_, rest) = PROGRAM.split_once('\n').expect("it has several lines");
        let program = format!("#!/usr/bin/env -S {} -ISB\n{rest}", interpreter());
        for name in [service.tool(), "person"] {
            write_program(bin.join(name), &program);
        }
        let state = json!({
            "service": service.tool(),
            "host": service.host(),
            "path": service.path(),
            "origin": origin,
            "login": "robot",
            "now": "2026-01-01T00:00:00Z",
            "people": {
                "robot": {"id": 1, "access": "write", "bot": false},
                "ada": {"id": 2, "access": "write", "bot": false},
                "mallory": {"id": 3, "access": "none", "bot": false},
            },
            "pulls": [],
            "faults": [],
            "last_id": 100,
            "rate_limit_reset": 0,
        });
        fs::write(directory.join("state.json"), state.to_string()).expect("write the state");
        Self { directory, service }
    }

    /// The directory of the tool, for `PATH`.
    pub fn bin(&self) -> PathBuf {
        self.directory.join("bin")
    }

    /// The tool itself.
    pub fn tool(&self) -> PathBuf {
        self.bin().join(self.service.tool())
    }

    /// The address of the repository on the service. Nothing answers there: let git read it from the disk with
    /// `url.<origin>.insteadOf`.
    pub fn address(&self) -> String {
        format!("https://{}/{}.git", self.service.host(), self.service.path())
    }

    /// Does something as a person on the service, and gives what that printed:
    ///
    /// - `merge 1 merge|squash|rebase` prints the commit on the base branch; `close 1`, `reopen 1`
    /// - `push 1 file text` adds a commit to the head branch and prints it
    /// - `base 1 release`, `edit 1 text`, `approval 1 REVIEW_REQUIRED`
    /// - `review 1 ada CHANGES_REQUESTED text`, `comment 1 ada src/a.rs 12 text`, `note 1 ada text` print the number of
    ///   the text; `resolve 1 <number>`
    /// - `check 1 test FAILURE run|status|optional https://…`
    /// - `account grace write|read|none user|bot`
    /// - `set <key> <json>` changes a value of the state
    #[track_caller]
    pub fn person<'a>(&self, words: impl IntoIterator<Item = &'a str>) -> String {
        let words: Vec<&str> = words.into_iter().collect();
        let mut person = Command::new(interpreter());
        // Not started by its name: a program that was just written cannot be started while another thread forks.
        person.args(["-ISB"]).arg(self.bin().join("person")).args(&words);
        let ran = person.output().expect("python3 is installed");
        let said = String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.success(), "a person cannot {words:?}: {said}");
        String::from_utf8_lossy(&ran.stdout).trim().to_owned()
    }

    /// Lets the next `times` calls of one operation (`login`, `create`, `update`, `find`, `list`, `show`, `checks`,
    /// `feedback`, `access`, `rate_limit`, `any`, or `find-again` for the first `find` after a `create`) go wrong: `rate-limit`, `logged-out`, `silently-logged-out`,
    /// `unreachable`, `refused`, `forbidden`, `garbage`, `half-json`, `huge`, `slow`; for `create` also `half-created`,
    /// `half-created-slow` and `half-created-silent`, which open the pull request and lose the answer.
    #[track_caller]
    pub fn misbehave(&self, what: &str, operation: &str, times: u32) {
        self.change(|state| {
            let faults = state["faults"].as_array_mut().expect("the faults are a list");
            faults.push(json!({"what": what, "on": operation, "times": times}));
        });
    }

    /// Ends all misbehaviour.
    #[track_caller]
    pub fn behave(&self) {
        self.change(|state| state["faults"] = json!([]));
    }

    /// The pull requests as they are stored.
    #[track_caller]
    pub fn pull_requests(&self) -> Vec<Value> {
        self.change(|state| state["pulls"].as_array().cloned().unwrap_or_default())
    }

    /// Changes the state under the lock that the tool takes.
    #[track_caller]
    fn change<T>(&self, change: impl FnOnce(&mut Value) -> T) -> T {
        let lock = fs::File::create(self.directory.join("lock")).expect("open the lock");
        lock.lock().expect("take the lock");
        let path = self.directory.join("state.json");
        let text = fs::read_to_string(&path).expect("read the state");
        let mut state: Value = serde_json::from_str(&text).expect("the state is JSON");
        let changed = change(&mut state);
        fs::write(&path, state.to_string()).expect("write the state");
        changed
    }

    /// Every call of the tool so far: `argv` and `cwd`.
    #[track_caller]
    pub fn calls(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.directory.join("calls")).unwrap_or_default();
        let parse = |line| serde_json::from_str(line).expect("each call is JSON");
        text.lines().map(parse).collect()
    }
}
