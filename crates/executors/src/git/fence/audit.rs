//! Checks and repairs of changes that were made past the fence: a process of the same user can
//! clear its environment, use a git of its own, or write the files of a repository.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

use super::super::Repository;
use super::super::call::GitCall;
use super::super::commit::Commit;
use super::super::error::GitError;
use super::super::git_processes::is_git_at_work;
use super::super::links::replace;

/// A commit that the origin has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewCommit {
    /// The commit.
    pub commit: Commit,
    /// The address of its committer.
    pub email: String,
    /// Its first line.
    pub subject: String,
}

/// The most commits that are looked at one by one.
const COMMITS_MAX: &str = "--max-count=200";

/// Reflog entries of commits that were made on a branch, and not fetched.
const MADE: [&str; 5] = ["commit", "cherry-pick", "revert", "am:", "rebase (pick)"];

/// Settings of the shared repository that workers and their tools may change: none of them decides where work goes,
/// whether it is seen, or how the git of other workers acts unless it is asked to.
const FREE: [&str; 5] = ["lfs.", "filter.lfs.", "alias.", "color.", "advice."];
/// The same, where a second word names what the setting is about: the attributes of a project name its drivers.
const FREE_FOR_ONE: [&str; 3] = ["branch.", "merge.", "diff."];
/// The environment of a worker has its own name and address.
const FREE_EXACTLY: [&str; 3] = ["core.hookspath", "user.name", "user.email"];

/// The settings that `git sparse-checkout` changes so that each tree has settings of its own.
const PER_TREE: [&str; 3] = [SETTINGS_PER_TREE, BARE, "core.repositoryformatversion"];
const SETTINGS_PER_TREE: &str = "extensions.worktreeconfig";
const BARE: &str = "core.bare";

/// Settings that a worker may have changed before they were guarded, and with which git fails in trees. They are never
/// put back.
const NEVER_WANTED: [&str; 3] = [SETTINGS_PER_TREE, "commit.gpgsign", "tag.gpgsign"];

/// How old a lock of git must be to count as left behind. Git holds those of settings and references for moments.
const STALE_LOCK: Duration = Duration::from_mins(1);

/// Settings that were put back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoredSettings {
    /// The names of those that differed.
    pub names: Vec<String>,
    /// The file with the settings as they are now.
    pub file: Vec<u8>,
}

/// A setting and its value.
type GitSetting = (String, String);

impl Repository {
    /// The commits that `tip` has and neither `known` nor any of `accounted` has, newest first.
    pub fn new_commits(
        &self,
        known: &Commit,
        tip: &Commit,
        accounted: &[Commit],
    ) -> Result<Vec<NewCommit>, GitError> {
        let mut call = self
            .call("list new commits")?
            .args(["log", "-z", "--format=%H%n%ce%n%s", COMMITS_MAX, "--ignore-missing"])
            .arg(tip.as_str());
        for old in accounted.iter().chain([known]) {
            call = call.arg(format!("^{old}"));
        }
        let output = call.arg("--").done()?;
        let text = String::from_utf8_lossy(&output);
        let read = |entry: &str| {
            let mut lines = entry.split('\n');
            let commit = Commit::parse(lines.next()?)?;
            let mut next = || lines.next().unwrap_or_default().to_owned();
            Some(NewCommit { commit, email: next(), subject: next() })
        };
        Ok(text.split('\0').filter_map(read).collect())
    }

    /// The branches of workers that have this commit.
    pub fn branches_with(&self, commit: &Commit) -> Result<Vec<String>, GitError> {
        let output = self
            .call("find the branches of a commit")?
            .args(["for-each-ref", "--format=%(refname:lstrip=2)", "--contains"])
            .args([commit.as_str(), "refs/heads/"])
            .done()?;
        Ok(String::from_utf8_lossy(&output).lines().map(str::to_owned).collect())
    }

    /// Whether this commit was made on a branch, and not fetched or merged into it.
    pub fn was_made_on(&self, branch: &str, commit: &Commit) -> Result<bool, GitError> {
        let mut call = self
            .call("read the history of a branch")?
            .args(["log", "--walk-reflogs", "--format=%H %gs"])
            .arg(format!("refs/heads/{branch}"))
            .arg("--");
        let answer = call.answer()?;
        let text = String::from_utf8_lossy(&answer.output).into_owned();
        Ok(text.lines().filter_map(|line| line.split_once(' ')).any(|(hash, deed)| {
            hash == commit.as_str() && MADE.iter().any(|made| deed.starts_with(made))
        }))
    }

    /// The settings of the repository, as its file has them.
    pub fn settings_file(&self) -> Result<Vec<u8>, GitError> {
        let path = self.path().join("config");
        fs::read(&path).map_err(GitError::file("read", &path))
    }

    /// Removes the lock of the settings that a killed git has left: no other git could change them.
    pub fn free_settings(&self) {
        free_stale_lock(self.path(), "config");
    }

    /// Puts back the settings that differ from those in the file `before` and are not the workers'
    /// to change. The remote `origin` is set as by [`Self::keep_remote`].
    pub fn put_back_settings(&self, before: &[u8]) -> Result<RestoredSettings, GitError> {
        let mut wanted = list(before)?;
        wanted.retain(|(name, _)| !NEVER_WANTED.contains(&name.as_str()));
        let path = self.path().join("config");
        let Ok(present) = self.settings_file().and_then(|now| list(&now)) else {
            // Git cannot read it, so nothing else can be put back.
            replace(&path, before)?;
            let names = vec!["all settings".to_owned()];
            return Ok(RestoredSettings { names, file: before.to_vec() });
        };
        let changed = differing(&wanted, &present);
        let is_set = set_as_before(&path, &changed, &wanted, &present).is_ok();
        let mut names: Vec<String> = changed.into_iter().collect();
        let urls = |settings: &[GitSetting]| -> Vec<GitSetting> {
            settings.iter().filter(|setting| is_of_remote(setting)).cloned().collect()
        };
        if is_set && urls(&wanted) != urls(&present) && self.keep_remote_and_tell()? {
            names.push("remote.origin".to_owned());
        }
        let file = self.settings_file()?;
        if is_set && differing(&wanted, &list(&file)?).is_empty() {
            return Ok(RestoredSettings { names, file });
        }
        // A git that holds the lock, or was killed with it, must not keep them as they are.
        replace(&path, before)?;
        Ok(RestoredSettings { names, file: before.to_vec() })
    }

    /// Whether the remote `origin` had to be put back.
    fn keep_remote_and_tell(&self) -> Result<bool, GitError> {
        let before = self.settings_file()?;
        self.keep_remote()?;
        Ok(self.settings_file()? != before)
    }

    /// References that all trees share and no worker may change: tags, replacements, the stash, and branches of no run.
    pub fn shared_references(&self) -> Result<Vec<(String, Commit)>, GitError> {
        let mut found = self.references("refs/")?;
        found.retain(|(name, _)| {
            let is_branch = name.starts_with("refs/heads/");
            let is_work = name.starts_with("refs/heads/polecat/");
            let is_other = ["refs/tags/", "refs/replace/"].iter().any(|it| name.starts_with(it));
            (is_branch && !is_work) || is_other || name == "refs/stash"
        });
        Ok(found)
    }

    /// The tags that the origin has now.
    pub fn tags_of_origin(&self) -> Result<Vec<(String, Commit)>, GitError> {
        let origin = self.origin()?;
        let mut call = GitCall::over_network(None, &origin, "ask for the tags of the origin")?
            .args(["ls-remote", "--tags", "--refs", "--"])
            .arg(&origin);
        let answer = call.answer()?;
        if !answer.succeeded() {
            return Err(call.failed(&answer));
        }
        let text = String::from_utf8_lossy(&answer.output);
        let pairs = text.lines().filter_map(|line| line.split_once('\t'));
        Ok(pairs.filter_map(|(hash, name)| Some((name.to_owned(), Commit::parse(hash)?))).collect())
    }

    /// Sets a reference back to its previous commit, or deletes it if there was none, and keeps its
    /// present one as `kept`.
    pub fn put_back_reference(
        &self,
        name: &str,
        (before, now): (Option<&Commit>, Option<&Commit>),
        kept: &str,
    ) -> Result<(), GitError> {
        // A reference that is deleted is taken from the packed ones, too.
        for file in ["packed-refs", name] {
            free_stale_lock(self.path(), file);
        }
        if let Some(now) = now {
            self.set_reference(kept, now, None)?;
        }
        match before {
            Some(before) => self.set_reference(name, before, None),
            None => self
                .call(format!("delete {name}"))?
                .args(["update-ref", "-d", name])
                .done()
                .map(drop),
        }
    }

    /// Where a branch was before its last change, where it is now, and the committer's address of that change. Nothing if no
    /// file says so.
    pub fn last_change_of(&self, branch: &str) -> Option<(Option<Commit>, Commit, String)> {
        let path = self.path().join("logs/refs/heads").join(Path::new(branch));
        let log = fs::read(path).ok()?;
        let log = String::from_utf8_lossy(&log).into_owned();
        let line = log.lines().next_back()?;
        let (who, _) = line.split_once('\t').unwrap_or((line, ""));
        let mut words = who.splitn(3, ' ');
        let (old, new) = (words.next()?, words.next()?);
        let rest = words.next()?;
        let email = rest.split_once('<')?.1.split_once('>')?.0;
        let is_new = old.bytes().all(|digit| digit == b'0');
        let old = Commit::parse(old).filter(|_| !is_new);
        Some((old, Commit::parse(new)?, email.to_owned()))
    }
}

/// Whether a setting is about the remote `origin`, which has values of the town.
fn is_of_remote(setting: &GitSetting) -> bool {
    setting.0.starts_with("remote.origin.")
}

/// The names of the settings that are not the workers' to change and differ. `present` says whether each tree has its own.
fn differing(wanted: &[GitSetting], present: &[GitSetting]) -> BTreeSet<String> {
    let is_per_tree = is_per_tree(present);
    let (wanted, present) = (guarded(wanted, is_per_tree), guarded(present, is_per_tree));
    let mut names = BTreeSet::new();
    for (one, other) in [(&wanted, &present), (&present, &wanted)] {
        let more = one.iter().filter(|it| !is_of_remote(it) && !other.contains(it));
        names.extend(more.map(|(name, _)| name.clone()));
    }
    names
}

/// Gives these settings of a file the values that are wanted.
fn set_as_before(
    file: &Path,
    names: &BTreeSet<String>,
    wanted: &[GitSetting],
    present: &[GitSetting],
) -> Result<(), GitError> {
    for name in names {
        let call = || {
            let call = GitCall::anywhere(format!("put back {name}"));
            call.args(["config", "--file"]).arg(file)
        };
        if present.iter().any(|(present, _)| present == name) {
            call().args(["--unset-all", name]).done()?;
        }
        for (_, value) in wanted.iter().filter(|(wanted, _)| wanted == name) {
            call().args(["--add", name]).arg(value).done()?;
        }
    }
    Ok(())
}

/// Removes the lock of git beside a file of a repository if it is old and its process must have been killed: no git could
/// change the file any more. The age alone does not tell: a clock that jumps makes every lock old.
fn free_stale_lock(repository: &Path, file: &str) {
    let file = repository.join(file);
    let mut lock = file.as_os_str().to_owned();
    lock.push(".lock");
    let modified = fs::metadata(&lock).and_then(|lock| lock.modified()).ok();
    if modified.and_then(|at| at.elapsed().ok()).is_some_and(|age| age >= STALE_LOCK)
        && !is_git_at_work(repository)
    {
        // If it cannot be removed, git says so.
        let _ = fs::remove_file(&lock);
    }
}

/// The settings in a file.
fn list(file: &[u8]) -> Result<Vec<GitSetting>, GitError> {
    let output = GitCall::anywhere("read settings")
        .args(["config", "--no-includes", "--file", "-", "-z", "--list"])
        .input(if file.is_empty() { b"\n".to_vec() } else { file.to_vec() })
        .done()?;
    let text = String::from_utf8_lossy(&output);
    let entries = text.split('\0').filter(|entry| !entry.is_empty());
    let pair = |entry: &str| {
        // A name without a value means true.
        let (name, value) = entry.split_once('\n').unwrap_or((entry, "true"));
        (name.to_owned(), value.to_owned())
    };
    Ok(entries.map(pair).collect())
}

/// Whether each tree has settings of its own, as `git sparse-checkout` leaves the repository. With `core.bare` among the
/// settings that all share, no tree would be one.
fn is_per_tree(settings: &[GitSetting]) -> bool {
    let is_on = |wanted: &str| {
        let mut values = settings.iter().filter(|(name, _)| name == wanted);
        values.next_back().is_some_and(|(_, value)| value.eq_ignore_ascii_case("true"))
    };
    is_on(SETTINGS_PER_TREE) && !is_on(BARE)
}

/// Whether git reads no repository with this setting.
fn is_unknown_format(name: &str, value: &str) -> bool {
    name == "core.repositoryformatversion" && !["0", "1"].contains(&value)
}

/// Those that are not the workers' to change.
fn guarded(settings: &[GitSetting], is_per_tree: bool) -> Vec<GitSetting> {
    let is_guarded = |(name, value): &&GitSetting| {
        let is_ours = name == "include.path" && value == super::hook::SETTINGS;
        let is_about_one = name.matches('.').count() > 1;
        let begins = |free: &str| name.starts_with(free);
        let is_free = FREE.iter().any(|free| begins(free))
            || is_about_one && FREE_FOR_ONE.iter().any(|free| begins(free))
            || FREE_EXACTLY.contains(&name.as_str())
            || is_per_tree && PER_TREE.contains(&name.as_str()) && !is_unknown_format(name, value);
        !is_ours && !is_free
    };
    settings.iter().filter(is_guarded).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guarded_names(file: &[u8]) -> Vec<String> {
        let settings = list(file).unwrap();
        let guarded = guarded(&settings, is_per_tree(&settings));
        guarded.into_iter().map(|(name, _)| name).collect()
    }

    #[test]
    fn settings_that_decide_where_work_goes_are_guarded() {
        let file = b"[url \"x\"]\n\tinsteadOf = y\n[branch \"a\"]\n\tremote = z\n[core]\n\thooksPath = .husky\n\
                     \tsshCommand = evil\n[include]\n\tpath = gt-fence.config\n\tpath = other\n";
        assert_eq!(guarded_names(file), ["url.x.insteadof", "core.sshcommand", "include.path"]);
    }

    #[test]
    fn settings_that_change_what_git_does_for_other_workers_are_guarded() {
        let file = b"[commit]\n\tgpgSign = true\n[user]\n\tname = a\n\tsigningKey = b\n[pull]\n\tff = only\n\
                     [merge]\n\tff = false\n[merge \"ours\"]\n\tdriver = true\n[diff]\n\texternal = c\n\
                     [diff \"d\"]\n\ttextconv = e\n[core]\n\tsparseCheckout = true\n";
        let expected = [
            "commit.gpgsign",
            "user.signingkey",
            "pull.ff",
            "merge.ff",
            "diff.external",
            "core.sparsecheckout",
        ];
        assert_eq!(guarded_names(file), expected);
    }

    #[test]
    fn settings_of_trees_are_guarded_where_git_would_take_trees_for_bare() {
        let sparse =
            b"[core]\n\trepositoryformatversion = 1\n[extensions]\n\tworktreeConfig = true\n";
        assert_eq!(guarded_names(sparse), [""; 0]);
        let bare = b"[core]\n\tbare = true\n[extensions]\n\tworktreeConfig = true\n";
        assert_eq!(guarded_names(bare), ["core.bare", "extensions.worktreeconfig"]);
        let unknown =
            b"[core]\n\trepositoryformatversion = 99\n[extensions]\n\tworktreeConfig = true\n";
        assert_eq!(guarded_names(unknown), ["core.repositoryformatversion"]);
    }
}
