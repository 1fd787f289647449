//! Git, through its command line.
//!
//! A rig has one shared bare [`Repository`]; workers have worktrees of it, each a [`Tree`].
//! Everything here is a function over paths and names: other modules decide about permissions.
//!
//! - Our own commands run without hooks. That is how they pass the [`fence`] that workers stand behind.
//! - Our own commands read no configuration, attributes, excludes or index that a worker can write. Landings are made in a
//!   repository of ours (`own`); the shared one and its trees are seen through a `view`, with an index of ours.
//! - Nothing that a worker made is deleted. Trees are moved ([`move_tree_away`]), work is kept as commits
//!   ([`Tree::rescue`]), and a file in the way is an error.
//! - Only `-z` and porcelain output is read, and paths are bytes, so every file name survives.

mod accept;
mod call;
mod candidate;
mod candidate_builder;
mod checking;
mod checkout;
mod commit;
mod commit_graph;
mod commit_object;
mod commit_writer;
mod diff;
mod error;
pub mod fence;
mod git_processes;
mod history;
mod hosted_branch;
mod identity;
mod included_files;
mod landing;
mod large_files;
mod links;
mod merge_driver;
mod moving;
mod nested_repositories;
mod networking;
mod object_writer;
mod origin_turn;
mod own_repository;
mod patches;
mod rebasing;
mod refusal;
mod repair;
mod repository;
mod repository_view;
mod rescue;
mod sample;
mod scratch;
mod snapshot;
mod status;
mod tree;
mod tree_merger;
mod tree_view;

pub use accept::{CommitLimits, conflict_regions};
pub use candidate::{
    AppliedAs, CandidateBuild, CandidateMember, LandMethod, LandedRange, MemberOutcome,
    RevertCommit,
};
pub use checking::{TreeEntry, checkout_around, files_of_checkout, repository_of_worktree};
pub use checkout::{CheckoutInTheWay, CheckoutObstacle, checkouts_of};
pub use commit::{Commit, Signature};
pub use commit_object::CommitTrailer;
pub use diff::{DiffOptions, DiffStat};
pub use error::GitError;
pub use history::{CommitMessage, commit_messages};
pub use identity::{GitIdentity, Variables, identity};
pub use included_files::included_files;
pub use landing::Push;
pub use large_files::LargeFiles;
pub use merge_driver::set_merge_driver;
pub use moving::{TreeMove, move_tree_away, move_tree_back};
pub use networking::PUSH_TIME_MAX;
pub use origin_turn::OriginTurn;
pub use patches::PatchId;
pub use rebasing::{Rebased, WorkToRebase};
pub use refusal::{OriginRefusal, RefusalKind};
pub use repository::Repository;
pub use rescue::{LeftOutFile, Reason, Rescue, RescuedRepository, RescuedRepositoryKind};
pub use sample::make_sample;
pub use status::{Changes, TreeStatus};
pub use tree::{Tree, UnfinishedOperation};

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::process::{ProcessError, capture, command, mark_served};

fn git() -> Command {
    // Not by its name: on the path of a worker that is the fence.
    let mut git = command(fence::real_git(fence::path_in_use().as_deref()));
    if let Some(environment) = fence::environment_in_use() {
        git.env_clear().envs(environment.iter().map(|(name, value)| (name, value)));
        mark_served(&mut git);
    }
    git.env("GIT_TERMINAL_PROMPT", "0").env("LC_ALL", "C").env("GIT_OPTIONAL_LOCKS", "0");
    git
}

/// How long an origin may take to answer the question whether it answers.
const ORIGIN_ANSWER_MAX: Duration = Duration::from_secs(20);

/// Asks an origin (a URL or a path) for the names of its branches. Fails if it does not let us read.
pub fn ask_origin(repository: &str) -> Result<Vec<String>, GitError> {
    let asked = call::GitCall::anywhere("read the origin").limited(ORIGIN_ANSWER_MAX);
    let output = asked.args(["ls-remote", "--quiet", "--heads", "--", repository]).done()?;
    Ok(branch_names(&output))
}

/// The names in the output of `git ls-remote --heads`.
fn branch_names(output: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(output);
    let names = text.lines().filter_map(|line| line.split_once("\trefs/heads/"));
    names.map(|(_, name)| name.to_owned()).collect()
}

/// The names of all branches of a repository (a URL or a path). Fails when there is no repository, or none that can be
/// reached.
pub fn branches(repository: &str) -> Result<Vec<String>, ProcessError> {
    let mut asked = git();
    asked.args(["ls-remote", "--heads", "--", repository]);
    Ok(branch_names(&capture(asked)?.stdout))
}

/// Whether git accepts a text as the name of a branch.
pub fn is_branch_name(text: &str) -> Result<bool, GitError> {
    if text.starts_with('-') || text == "HEAD" {
        return Ok(false);
    }
    call::GitCall::anywhere("check the name of a branch")
        .arg("check-ref-format")
        .arg(format!("refs/heads/{text}"))
        .holds()
}

/// The branch that `HEAD` of a repository (a URL or a path) points to. Fails when there is no
/// repository, or none that can be reached.
pub fn default_branch(repository: &str) -> Result<String, ProcessError> {
    let mut asked = git();
    // The configuration of the directory that we are in does not count.
    asked.args(["-C", "/", "ls-remote", "--symref", "--", repository, "HEAD"]);
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
