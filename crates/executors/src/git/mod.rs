//! Git, through its command line.

mod identity;

pub use identity::{Identity, Variables, identity};

use std::path::Path;
use std::process::Command;

use crate::process::{ProcessError, capture, command};

/// Variables that would make git look somewhere else than where we send it.
const INHERITED: [&str; 5] = [
    "GIT_DIR",
    "GIT_INDEX_FILE",
    "GIT_WORK_TREE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
];

fn git() -> Command {
    let mut git = command("git");
    for variable in INHERITED {
        git.env_remove(variable);
    }
    git.env("GIT_TERMINAL_PROMPT", "0").env("LC_ALL", "C").env("GIT_OPTIONAL_LOCKS", "0");
    git
}

/// The branch that `HEAD` of a repository (a URL or a path) points to. Fails when there is no
/// repository, or none that can be reached.
pub fn default_branch(repository: &str) -> Result<String, ProcessError> {
    let mut asked = git();
    asked.args(["ls-remote", "--symref", "--", repository, "HEAD"]);
    let output = capture(asked)?;
    let text = String::from_utf8_lossy(&output.stdout);
    let named = text.lines().find_map(|line| {
        let (reference, name) = line.strip_prefix("ref: ")?.split_once('\t')?;
        if name == "HEAD" { reference.strip_prefix("refs/heads/") } else { None }
    });
    if let Some(branch) = named {
        return Ok(branch.to_owned());
    }
    // A repository without a commit advertises no HEAD.
    if Path::new(repository).is_dir() {
        let mut asked = git();
        asked.args(["-C", repository, "symbolic-ref", "--short", "HEAD"]);
        let output = capture(asked)?;
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    Ok("main".to_owned())
}
