//! The repository of ours beside a shared one: commits that were fetched from the origin, and
//! commits that go there.
//!
//! Workers have no worktree of it, so nothing that they do with git reaches its configuration,
//! references or objects. It does not borrow objects from the shared repository; accepted commits
//! are copied ([`Repository::import`]). The shared repository borrows from it.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use super::call::GitCall;
use super::candidate::LandedRange;
use super::commit::Commit;
use super::error::GitError;
use super::networking::without_secrets;
use super::repository::{BRANCHES_HERE, BRANCHES_OF_ORIGIN, HEAD_OF_ORIGIN, Repository, SETTINGS};

/// How often fetching is tried again when others fetch at the same time.
const FETCH_TRIES_MAX: u32 = 8;

/// The copied-from side must allow this: no reference names the commit.
const UPLOAD_PACK: &str = "git -c uploadpack.allowAnySHA1InWant=true upload-pack";

/// The saved commits of runs. Candidates are ours: a worker must not move them.
const RESCUES: [&str; 2] = ["+refs/gt/*:refs/gt/*", "^refs/gt/candidates/*"];

/// The answer of an origin about itself, before anything is fetched.
struct OriginGreeting {
    /// The usual branch, unless its `HEAD` names none.
    head: Option<String>,
    /// Its hash function, as git calls it.
    object_format: &'static str,
}

/// Asks an origin.
fn ask_greeting(origin: &str) -> Result<OriginGreeting, GitError> {
    let mut call = GitCall::over_network(None, origin, "ask the origin")?;
    call = call.args(["ls-remote", "--symref", "--"]).arg(origin).args(["HEAD", "refs/heads/*"]);
    let answer = call.answer_once()?;
    if !answer.succeeded() {
        return Err(if answer.is_unreachable() {
            answer.unreachable(origin)
        } else {
            call.failed(&answer)
        });
    }
    let text = String::from_utf8_lossy(&answer.output);
    let head = text.lines().find_map(|line| {
        let (reference, name) = line.strip_prefix("ref: ")?.split_once('\t')?;
        (name == "HEAD").then(|| reference.strip_prefix("refs/heads/").map(str::to_owned))?
    });
    let mut hashes = text.lines().filter_map(|line| Commit::parse(line.split_once('\t')?.0));
    let object_format = match hashes.next() {
        Some(commit) if commit.as_str().len() == 64 => "sha256",
        Some(_) => "sha1",
        None => return Err(GitError::Empty { origin: without_secrets(origin) }),
    };
    Ok(OriginGreeting { head, object_format })
}

/// Makes an empty bare repository with our settings.
pub(super) fn init(path: &Path, object_format: &str) -> Result<(), GitError> {
    GitCall::anywhere(format!("make {}", path.display()))
        .args(["init", "--quiet", "--bare", "--template=", "--initial-branch=main"])
        .args([&*format!("--object-format={object_format}"), "--"])
        .arg(path)
        // Newer git would otherwise keep references as the person likes it; a view shows files.
        .env("GIT_DEFAULT_REF_FORMAT", "files")
        .done()?;
    for (name, value) in SETTINGS {
        GitCall::anywhere(format!("set {name}"))
            .args(["config", "--file"])
            .arg(path.join("config"))
            .args([name, value])
            .done()?;
    }
    Ok(())
}

/// Removes something half made.
pub(super) fn discard(path: &Path) -> Result<(), GitError> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed.map_err(GitError::file("remove", path)),
    }
}

/// Makes the repository at `path` from the origin, or from what `shared` knows of the origin if that does not answer.
pub(super) fn fill(path: &Path, origin: &str, shared: &Repository) -> Result<(), GitError> {
    let has_shared = shared.path().join("HEAD").is_file();
    let greeting = match ask_greeting(origin) {
        Err(GitError::Unreachable { .. }) if has_shared => None,
        greeting => Some(greeting?),
    };
    let known = greeting.as_ref().map(|greeting| greeting.object_format);
    let object_format = known.map_or_else(|| format_of(shared), |known| Ok(known.to_owned()))?;
    init(path, &object_format)?;
    if has_shared {
        // Commits that are here need not come over the network. Those that cannot be read come from
        // the origin.
        let copied = copy_from(path, shared, &[&format!("+{BRANCHES_HERE}*:{BRANCHES_HERE}*")])
            .and_then(|()| copy_from(path, shared, &RESCUES));
        if greeting.is_none() {
            copied?;
        }
    }
    let Some(OriginGreeting { head, .. }) = greeting else { return Ok(()) };
    fetch(path, origin)?;
    if let Some(head) = head {
        // So that `origin/HEAD` has a meaning for workers.
        GitCall::on(path, "note the usual branch")
            .args(["symbolic-ref", HEAD_OF_ORIGIN, &format!("{BRANCHES_HERE}{head}")])
            .done()?;
    }
    Ok(())
}

/// The hash function of a repository, as its references show it.
fn format_of(repository: &Repository) -> Result<String, GitError> {
    let references = repository.references("refs/")?;
    let is_long = references.first().is_some_and(|(_, commit)| commit.as_str().len() == 64);
    Ok(if is_long { "sha256" } else { "sha1" }.to_owned())
}

/// Brings `refs/remotes/origin` of the repository at `path` to where the branches of the origin are.
pub(super) fn fetch(path: &Path, origin: &str) -> Result<(), GitError> {
    let mut call = GitCall::over_network(Some(path), origin, "fetch")?
        .args(["fetch", "--quiet", "--prune", "--no-write-fetch-head", "--"])
        .arg(origin)
        .arg(BRANCHES_OF_ORIGIN);
    let mut answer = call.answer()?;
    for _ in 0..FETCH_TRIES_MAX {
        // Another process fetches the same.
        if answer.succeeded() || !answer.complaint.contains("cannot lock ref") {
            break;
        }
        answer = call.answer()?;
    }
    if answer.succeeded() {
        Ok(())
    } else if answer.is_unreachable() {
        Err(answer.unreachable(origin))
    } else {
        Err(call.failed(&answer))
    }
}

/// Copies commits of the shared repository, with all that they need, into the repository at `path`.
pub(super) fn copy_from(path: &Path, shared: &Repository, wanted: &[&str]) -> Result<(), GitError> {
    let view = shared.view()?;
    GitCall::on(path, "copy commits of workers")
        .args(["-c", "protocol.file.allow=always"])
        .args(["fetch", "--quiet", "--no-tags", "--no-write-fetch-head"])
        .args(["--upload-pack", UPLOAD_PACK, "--"])
        .arg(view.path())
        .args(wanted.iter().copied())
        .done()
        .map(drop)
}

impl Repository {
    /// Copies a commit of a worker into our own repository, unless it is there.
    pub fn import(&self, commit: &Commit) -> Result<(), GitError> {
        if self.owns(commit)? {
            return Ok(());
        }
        self.keep_objects()?;
        copy_from(&self.own_path(), self, &[commit.as_str()])
    }

    /// Copies the saved commits of runs into our own repository, so that they outlive the shared
    /// one.
    pub(super) fn import_rescues(&self) -> Result<(), GitError> {
        self.keep_objects()?;
        copy_from(&self.own_path(), self, &RESCUES)
    }

    /// Whether our own repository has a commit.
    pub(super) fn owns(&self, commit: &Commit) -> Result<bool, GitError> {
        let mut call = self.own_call(format!("look for {commit}"));
        call = call.args(["cat-file", "-e"]).arg(format!("{commit}^{{commit}}"));
        Ok(call.answer()?.succeeded())
    }

    /// Whether a branch of the origin contains a commit, as last fetched.
    pub fn origin_has(&self, branch: &str, commit: &Commit) -> Result<bool, GitError> {
        match self.tip(branch)? {
            Some(tip) if tip == *commit => Ok(true),
            // All that the branch contains was fetched.
            Some(tip) if self.owns(commit)? => self.own_contains(&tip, commit),
            _ => Ok(false),
        }
    }

    /// The commit that begins with these digits. Nothing if our own repository has none or several.
    pub fn find_commit(&self, digits: &str) -> Result<Option<Commit>, GitError> {
        if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Ok(None);
        }
        self.own_call(format!("find {digits}"))
            .args(["rev-parse", "--verify", "--quiet"])
            .arg(format!("{digits}^{{commit}}"))
            .optional_commit()
    }

    /// A commit and those after it on the branches of the origin, as they were fetched last; the oldest first.
    pub fn commits_from(&self, commit: &Commit) -> Result<Vec<Commit>, GitError> {
        let output = self
            .own_call(format!("list the commits after {commit}"))
            .args(["rev-list", "--topo-order", "--reverse", "--ancestry-path"])
            .arg(format!("--glob={BRANCHES_HERE}*"))
            .args(["--not", commit.as_str()])
            .done()?;
        let output = String::from_utf8_lossy(&output);
        let after = output.lines().filter_map(Commit::parse);
        Ok(std::iter::once(commit.clone()).chain(after).collect())
    }

    /// Whether a commit is in a landed range, and in nothing that was there before it.
    pub fn range_has(&self, range: &LandedRange, commit: &Commit) -> Result<bool, GitError> {
        Ok(self.own_contains(&range.after, commit)? && !self.own_contains(&range.before, commit)?)
    }

    /// Whether `descendant` contains `ancestor`; our own repository has both.
    pub(super) fn own_contains(
        &self,
        descendant: &Commit,
        ancestor: &Commit,
    ) -> Result<bool, GitError> {
        self.own_call(format!("compare {ancestor} with {descendant}"))
            .args(["merge-base", "--is-ancestor", ancestor.as_str(), descendant.as_str()])
            .holds()
    }
}
