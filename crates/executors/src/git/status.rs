//! The differences in a tree: the parsed answer of `git status`.

use std::path::PathBuf;

use super::call::path_of;
use super::commit::Commit;
use super::tree::UnfinishedOperation;

/// How a tree stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeStatus {
    /// The commit that is checked out, unless the branch has no commit yet.
    pub head: Option<Commit>,
    /// The branch, unless `HEAD` is detached.
    pub branch: Option<String>,
    /// The uncommitted changes.
    pub changes: Changes,
    /// How many commits of `HEAD` no branch of the origin has, as last fetched.
    pub unpushed: u64,
    /// The operation that has begun and is not over.
    pub unfinished: Option<UnfinishedOperation>,
}

impl TreeStatus {
    /// Whether everything is committed and nothing has begun. Ignored files do not matter.
    pub fn is_clean(&self) -> bool {
        self.changes.is_empty() && self.unfinished.is_none()
    }
}

/// The uncommitted changes, as paths from the top of the tree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// Tracked files that are not as in `HEAD`, staged or not.
    pub tracked: Vec<PathBuf>,
    /// Files that git does not know. A repository of its own is named as a whole.
    pub untracked: Vec<PathBuf>,
    /// Files that a merge could not settle.
    pub conflicts: Vec<PathBuf>,
    /// Those of the tracked ones that are submodules with changes or unknown files inside.
    pub dirty_submodules: Vec<PathBuf>,
    /// Ignored files and directories, if they were asked for.
    pub ignored: Vec<PathBuf>,
    /// Those of the tracked ones that are submodules which `HEAD` does not have.
    pub new_submodules: Vec<PathBuf>,
    /// Tracked files that a sparse checkout has left out. They are no changes.
    pub absent: Vec<PathBuf>,
}

impl Changes {
    /// Whether everything is committed.
    pub fn is_empty(&self) -> bool {
        self.tracked.is_empty() && self.untracked.is_empty() && self.conflicts.is_empty()
    }

    /// Every path that is not committed.
    pub fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        self.tracked.iter().chain(&self.conflicts).chain(&self.untracked)
    }
}

/// The parsed output of `git status --porcelain=v2 --branch -z`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct StatusOutput {
    pub(super) head: Option<Commit>,
    pub(super) branch: Option<String>,
    pub(super) changes: Changes,
}

/// Reads the output of `git status --porcelain=v2 --branch -z`. Entries of kinds that a later git may add
/// are passed over.
pub(super) fn parse(output: &[u8]) -> StatusOutput {
    let mut report = StatusOutput::default();
    let mut entries = output.split(|byte| *byte == 0);
    while let Some(entry) = entries.next() {
        let Some((kind, rest)) = split_word(entry) else { continue };
        match kind {
            b"#" => header(rest, &mut report),
            b"1" => tracked(rest, 7, &mut report.changes),
            b"2" => {
                tracked(rest, 8, &mut report.changes);
                // The name before the renaming is an entry of its own, and it is gone from the tree.
                if let Some(source) = entries.next() {
                    report.changes.tracked.push(path_of(source));
                }
            }
            b"u" => report.changes.conflicts.extend(after_words(rest, 9).map(path_of)),
            b"?" => report.changes.untracked.push(path_of(rest)),
            b"!" => report.changes.ignored.push(path_of(rest)),
            _ => {}
        }
    }
    report
}

fn header(rest: &[u8], report: &mut StatusOutput) {
    let text = String::from_utf8_lossy(rest);
    if let Some(hash) = text.strip_prefix("branch.oid ") {
        report.head = Commit::parse(hash);
    } else if let Some(branch) = text.strip_prefix("branch.head ") {
        report.branch = (branch != "(detached)").then(|| branch.to_owned());
    }
}

fn tracked(rest: &[u8], words_before_path: usize, changes: &mut Changes) {
    let Some(path) = after_words(rest, words_before_path) else { return };
    // `S` and then, for a submodule, `C` for another commit, `M` for changes, `U` for unknown files.
    let submodule = after_words(rest, 1).and_then(split_word).map(|(word, _)| word);
    let has_changes = |state: &[u8]| state.iter().any(|letter| matches!(letter, b'M' | b'U'));
    if submodule.is_some_and(|state| state.starts_with(b"S") && has_changes(state)) {
        changes.dirty_submodules.push(path_of(path));
    }
    changes.tracked.push(path_of(path));
}

fn split_word(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let space = bytes.iter().position(|byte| *byte == b' ')?;
    Some((&bytes[..space], &bytes[space + 1..]))
}

fn after_words(bytes: &[u8], words: usize) -> Option<&[u8]> {
    (0..words).try_fold(bytes, |rest, _| split_word(rest).map(|(_, rest)| rest))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HASH: &str = "0123456789012345678901234567890123456789";

    #[test]
    fn every_kind_of_entry_is_understood() {
        let text = format!(
            "# branch.oid {HASH}\0# branch.head polecat/nux/gt-abc@1\0\
             1 .M N... 100644 100644 100644 {HASH} {HASH} with space.txt\0\
             1 .M S.MU 160000 160000 160000 {HASH} {HASH} lib\0\
             1 .M SC.. 160000 160000 160000 {HASH} {HASH} moved lib\0\
             2 R. N... 100644 100644 100644 {HASH} {HASH} R100 new\0old\0\
             u UU N... 100644 100644 100644 100644 {HASH} {HASH} {HASH} torn\nfile\0\
             ? nested/\0! target/\0"
        );
        let report = parse(text.as_bytes());
        assert_eq!(report.head, Commit::parse(HASH));
        assert_eq!(report.branch.as_deref(), Some("polecat/nux/gt-abc@1"));
        let paths = |names: &[&str]| names.iter().map(PathBuf::from).collect::<Vec<_>>();
        let wanted = Changes {
            tracked: paths(&["with space.txt", "lib", "moved lib", "new", "old"]),
            untracked: paths(&["nested/"]),
            conflicts: paths(&["torn\nfile"]),
            dirty_submodules: paths(&["lib"]),
            ignored: paths(&["target/"]),
            absent: vec![],
            new_submodules: vec![],
        };
        assert_eq!(report.changes, wanted);
    }

    #[test]
    fn without_a_commit_or_a_branch_there_is_none() {
        let report = parse(b"# branch.oid (initial)\0# branch.head (detached)\0");
        assert_eq!(report, StatusOutput::default());
    }

    proptest! {
        #[test]
        fn no_output_makes_it_panic(output in proptest::collection::vec(any::<u8>(), 0..300)) {
            parse(&output);
        }

        #[test]
        fn untracked_names_come_out_as_they_went_in(
            names in proptest::collection::vec(proptest::collection::vec(1_u8.., 1..20), 0..10),
        ) {
            let mut output = Vec::new();
            for name in &names {
                output.extend_from_slice(b"? ");
                output.extend_from_slice(name);
                output.push(0);
            }
            let wanted: Vec<PathBuf> = names.iter().map(|name| path_of(name)).collect();
            prop_assert_eq!(parse(&output).changes.untracked, wanted);
        }
    }
}
