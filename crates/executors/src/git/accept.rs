//! Commits the work of a worker, unless it should not be accepted.

use std::path::{Path, PathBuf};

use super::call::{GitCall, entries, path_of};
use super::commit::{Commit, Signature};
use super::error::GitError;
use super::tree::{Ignored, Tree, UnfinishedOperation};
use super::tree_view::TreeView;

/// The limits on what may be committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitLimits {
    /// How large a file may be.
    pub file_bytes_max: u64,
    /// Where the work began. With it, everything since then is checked, and not only uncommitted
    /// changes.
    pub base: Option<Commit>,
}

impl Tree {
    /// Commits tracked and untracked files to the branch, and gives the new commit; nothing if there was
    /// nothing to commit.
    ///
    /// Refuses conflict markers that are not in the base, files that are too large, repositories that are
    /// no submodules, and submodules with work that is nowhere else. Then nothing has changed.
    pub fn commit_all(
        &self,
        message: &str,
        author: &Signature,
        limits: &CommitLimits,
    ) -> Result<Option<Commit>, GitError> {
        let unfinished = self.unfinished()?;
        if let Some(operation) =
            unfinished.filter(|operation| *operation != UnfinishedOperation::Merge)
        {
            return Err(GitError::Unfinished { operation: operation.command() });
        }
        let view = TreeView::open(self)?;
        let report = view.report(Ignored::Hidden)?;
        let changes = &report.changes;
        if !changes.dirty_submodules.is_empty() {
            return Err(GitError::Submodules { paths: changes.dirty_submodules.clone() });
        }
        // A link to a directory is a file as far as git is concerned.
        let nested = |path: &&PathBuf| {
            self.path().join(path).symlink_metadata().is_ok_and(|file| file.is_dir())
        };
        let nested: Vec<PathBuf> = changes.untracked.iter().filter(nested).cloned().collect();
        if !nested.is_empty() {
            return Err(GitError::Nested { paths: nested });
        }
        let base = limits.base.as_ref().or(report.head.as_ref());
        let mut looked_at = if changes.is_empty() && base == report.head.as_ref() {
            // A difference from the base would be among the changes.
            Vec::new()
        } else {
            changed_since(&view, base)?
        };
        looked_at.extend(changes.untracked.iter().chain(&changes.conflicts).cloned());
        looked_at.sort();
        looked_at.dedup();
        let kept_elsewhere = self.demand_small(&looked_at, limits.file_bytes_max)?;
        looked_at.retain(|path| !kept_elsewhere.contains(path));
        self.demand_published(&looked_at)?;
        self.demand_resolved(&looked_at, base)?;
        if changes.is_empty() && unfinished.is_none() {
            return Ok(None);
        }
        view.stage(changes.paths())?;
        let files = view.write_files()?;
        let repository = self.repository()?;
        let mut parents: Vec<Commit> = report.head.iter().cloned().collect();
        if unfinished.is_some() {
            parents.extend(self.merge_heads()?);
        } else if let Some(head) = &report.head
            && repository.files_of(head)? == files
        {
            // Changes that were staged and then reverted in the files are no change any more.
            view.reset_index_of_worker();
            return Ok(None);
        }
        let message =
            GitCall::anywhere("tidy the message").args(["stripspace"]).input(message).done();
        let message = String::from_utf8_lossy(&message?).trim_end().to_owned();
        let parents: Vec<&Commit> = parents.iter().collect();
        let commit = repository.write_commit(&files, &parents, &message, author)?;
        let update = view.call("commit").args(["update-ref", "-m", "commit", "HEAD"]);
        let update = update.args([commit.as_str()]).args(report.head.as_ref().map(Commit::as_str));
        update.done()?;
        view.reset_index_of_worker();
        view.keep()?;
        Ok(Some(commit))
    }

    /// The commits that a merge which has begun brings in.
    fn merge_heads(&self) -> Result<Vec<Commit>, GitError> {
        let file = self.git_directory()?.join("MERGE_HEAD");
        let text = std::fs::read_to_string(&file).map_err(GitError::file("read", &file))?;
        Ok(text.lines().filter_map(Commit::parse).collect())
    }

    /// Gives the files that are too large and do not count, because a commit only points to them.
    fn demand_small(&self, paths: &[PathBuf], bytes_max: u64) -> Result<Vec<PathBuf>, GitError> {
        let large = |path: &&PathBuf| {
            let file = self.path().join(path).symlink_metadata();
            file.is_ok_and(|file| file.is_file() && file.len() > bytes_max)
        };
        let mut paths: Vec<PathBuf> = paths.iter().filter(large).cloned().collect();
        let kept_elsewhere = self.kept_by_lfs(&paths)?;
        paths.retain(|path| !kept_elsewhere.contains(path));
        if paths.is_empty() {
            Ok(kept_elsewhere)
        } else {
            Err(GitError::Oversize { paths, bytes_max })
        }
    }

    /// Every submodule that changed must be at a commit that others can get.
    fn demand_published(&self, paths: &[PathBuf]) -> Result<(), GitError> {
        let mut unpublished = Vec::new();
        for path in paths {
            let place = self.path().join(path);
            if place.is_symlink() || !place.join(".git").exists() {
                continue;
            }
            let inside = Self::at(place);
            if inside.head()?.is_some() && inside.unpushed()? > 0 {
                unpublished.push(path.clone());
            }
        }
        if unpublished.is_empty() {
            Ok(())
        } else {
            Err(GitError::Submodules { paths: unpublished })
        }
    }

    fn demand_resolved(&self, paths: &[PathBuf], base: Option<&Commit>) -> Result<(), GitError> {
        let mut torn = Vec::new();
        for path in paths {
            let place = self.path().join(path);
            if !place.symlink_metadata().is_ok_and(|file| file.is_file()) {
                continue;
            }
            let content = std::fs::read(&place).map_err(GitError::file("read", &place))?;
            let regions = conflict_regions(&content);
            // A test or a manual may show conflict markers; markers that the base already has do
            // not count.
            if regions > 0 && regions > self.regions_before(path, base)? {
                torn.push(path.clone());
            }
        }
        if torn.is_empty() { Ok(()) } else { Err(GitError::ConflictMarkers { paths: torn }) }
    }

    fn regions_before(&self, path: &Path, base: Option<&Commit>) -> Result<usize, GitError> {
        let Some(base) = base else { return Ok(0) };
        let mut name = std::ffi::OsString::from(format!("{base}:"));
        name.push(path);
        let mut call = self.call("read the base")?.args(["cat-file", "blob"]).arg(name);
        let answer = call.answer()?;
        Ok(if answer.succeeded() { conflict_regions(&answer.output) } else { 0 })
    }
}

/// The paths whose files are not as in a commit, or all if there is none.
fn changed_since(view: &TreeView<'_>, base: Option<&Commit>) -> Result<Vec<PathBuf>, GitError> {
    let call = view.call("compare with the base");
    let call = match base {
        Some(base) => call
            .args(["diff", "--name-only", "-z", "--no-renames", "--no-ext-diff"])
            .args(["--ignore-submodules=dirty", "--diff-filter=d", base.as_str(), "--"]),
        None => call.args(["ls-files", "-z"]),
    };
    Ok(entries(&call.done()?).map(path_of).collect())
}

/// How many times both sides of a conflict stand in a text: lines that begin with seven `<`, then seven
/// `=`, then seven `>`. A line of `=` alone is a heading.
pub fn conflict_regions(content: &[u8]) -> usize {
    const SEQUENCE: [u8; 3] = [b'<', b'=', b'>'];
    let mut regions = 0;
    let mut seen = 0;
    for line in content.split(|byte| *byte == b'\n') {
        if is_marker(line, SEQUENCE[0]) {
            seen = 1;
        } else if seen > 0 && is_marker(line, SEQUENCE[seen]) {
            seen += 1;
        }
        if seen == SEQUENCE.len() {
            regions += 1;
            seen = 0;
        }
    }
    regions
}

fn is_marker(line: &[u8], letter: u8) -> bool {
    const LENGTH: usize = 7;
    let marker = line.iter().take_while(|byte| **byte == letter).count();
    marker == LENGTH && matches!(line.get(LENGTH), None | Some(b' ' | b'\r'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_conflict_has_all_three_markers_in_order() {
        assert_eq!(conflict_regions(b"a\n<<<<<<< HEAD\nb\n=======\nc\n>>>>>>> theirs\n"), 1);
        assert_eq!(conflict_regions(b"<<<<<<<\r\n=======\r\n>>>>>>>"), 1);
        let with_base = b"<<<<<<< a\n1\n||||||| base\n2\n=======\n3\n>>>>>>> b\n";
        assert_eq!(conflict_regions(with_base), 1);
        assert_eq!(conflict_regions(&with_base.repeat(3)), 3);
    }

    #[test]
    fn a_heading_or_half_a_conflict_is_none() {
        assert_eq!(conflict_regions(b"Title\n=======\n"), 0);
        assert_eq!(conflict_regions(b">>>>>>> quoted\n=======\n<<<<<<< x\n"), 0);
        assert_eq!(conflict_regions(b"<<<<<<<< eight\n=======\n>>>>>>> x\n"), 0);
        assert_eq!(conflict_regions(b"  <<<<<<< indented\n=======\n>>>>>>> x\n"), 0);
    }

    proptest! {
        #[test]
        fn no_content_makes_it_panic(content in proptest::collection::vec(any::<u8>(), 0..200)) {
            conflict_regions(&content);
        }
    }
}
