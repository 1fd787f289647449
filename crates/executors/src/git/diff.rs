//! The differences between two commits.

use std::path::PathBuf;

use super::call::{GitCall, entries, path_of};
use super::commit::Commit;
use super::error::GitError;
use super::repository::Repository;

/// The size of a difference. Files that are no text count without lines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DiffStat {
    /// Changed files.
    pub files: u64,
    /// Added lines.
    pub insertions: u64,
    /// Removed lines.
    pub deletions: u64,
}

/// How a difference is shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DiffOptions {
    /// Only the number of lines for each file.
    pub stat: bool,
    /// With colours of a terminal.
    pub color: bool,
    /// The unchanged lines around a change, if not the usual number.
    pub context: Option<u32>,
    /// Only these files and directories; all if there are none.
    pub paths: Vec<PathBuf>,
}

impl Repository {
    /// A call that compares, with all commits there.
    fn compare(&self, base: &Commit, commit: &Commit) -> Result<GitCall, GitError> {
        self.import(base)?;
        self.import(commit)?;
        Ok(self.own_call("compare commits"))
    }

    /// The newest commit that two commits have in common, if there is one.
    pub fn merge_base(&self, one: &Commit, other: &Commit) -> Result<Option<Commit>, GitError> {
        self.compare(one, other)?
            .args(["merge-base", one.as_str(), other.as_str()])
            .optional_commit()
    }

    /// The files that differ, in order. A renamed file counts under both names.
    pub fn changed_paths(&self, base: &Commit, commit: &Commit) -> Result<Vec<PathBuf>, GitError> {
        let output = self
            .compare(base, commit)?
            .args(["diff-tree", "-r", "-z", "--name-only", "--no-renames"])
            .args([base.as_str(), commit.as_str()])
            .done()?;
        Ok(entries(&output).map(path_of).collect())
    }

    /// The size of the difference.
    pub fn diff_stat(&self, base: &Commit, commit: &Commit) -> Result<DiffStat, GitError> {
        let output = self
            .compare(base, commit)?
            .args(["diff-tree", "-r", "-z", "--numstat", "--no-renames"])
            .args([base.as_str(), commit.as_str()])
            .done()?;
        let mut stat = DiffStat::default();
        for entry in entries(&output) {
            let text = String::from_utf8_lossy(entry);
            let mut numbers = text.split('\t').map(|number| number.parse::<u64>().unwrap_or(0));
            stat.files += 1;
            stat.insertions += numbers.next().unwrap_or(0);
            stat.deletions += numbers.next().unwrap_or(0);
        }
        Ok(stat)
    }

    /// The difference for a person.
    pub fn diff(
        &self,
        base: &Commit,
        commit: &Commit,
        options: &DiffOptions,
    ) -> Result<Vec<u8>, GitError> {
        let color = if options.color { "--color=always" } else { "--color=never" };
        let mut call = self.compare(base, commit)?.args([
            "--literal-pathspecs",
            "diff",
            "--no-ext-diff",
            "--no-textconv",
            color,
        ]);
        if options.stat {
            call = call.arg("--stat");
        }
        if let Some(context) = options.context {
            call = call.arg(format!("--unified={context}"));
        }
        call = call.args([base.as_str(), commit.as_str(), "--"]);
        options.paths.iter().fold(call, GitCall::arg).done()
    }
}
