//! The ignored files of a checkout of the user that belong into every worktree.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::call::{GitCall, path_of};
use super::error::GitError;

/// The file with their patterns, in the syntax of `.gitignore`, at the top of a checkout. Other tools read it too.
const WORKTREE_INCLUDE: &str = ".worktreeinclude";

/// A large checkout takes a while, and a file system may hang.
const LIST_TIME_MAX: Duration = Duration::from_mins(1);

/// The files that a checkout says belong into every worktree: those that its `.worktreeinclude` names and that git ignores
/// there. A file that git tracks or would add is none of them.
pub fn included_files(checkout: &Path) -> Result<BTreeSet<PathBuf>, GitError> {
    let list = checkout.join(WORKTREE_INCLUDE);
    if !list.is_file() {
        return Ok(BTreeSet::new());
    }
    let deed = format!("list the files that {} names", list.display());
    let call = || GitCall::in_checkout(checkout, deed.clone()).limited(LIST_TIME_MAX);
    let named = call()
        .args(["ls-files", "-z", "--others", "--ignored"])
        .arg("--exclude-from")
        .arg(&list)
        .done()?;
    if named.is_empty() {
        return Ok(BTreeSet::new());
    }
    let mut ignored = call().args(["check-ignore", "-z", "--stdin"]).input(named);
    let answer = ignored.answer()?;
    match answer.code {
        // 1 says that git ignores none of them.
        Some(0 | 1) => {}
        _ => return Err(ignored.failed(&answer)),
    }
    // A repository inside is listed as a directory. It is not a file of this one.
    let paths = answer.output.split(|byte| *byte == 0);
    Ok(paths.filter(|path| !path.is_empty() && !path.ends_with(b"/")).map(path_of).collect())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_must_be_named_and_ignored() {
        let directory = tempfile::tempdir().unwrap();
        let checkout = directory.path();
        let git = |arguments: &[&str]| {
            GitCall::in_checkout(checkout, "prepare a test")
                .args(arguments.iter().copied())
                .done()
                .unwrap()
        };
        git(&["init", "--quiet"]);
        let write = |path: &str, text: &str| {
            let path = checkout.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write(".gitignore", ".env*\ncache/\n!.env.example\n");
        for path in
            [".env", ".env.local", ".env.example", "app/.env", "cache/a b", "other", "cache/deep/x"]
        {
            write(path, "x");
        }
        git(&["add", "--force", ".env.local"]);
        assert_eq!(included_files(checkout).unwrap(), BTreeSet::new());

        write(".worktreeinclude", "# local files\n.env*\n/cache/*\n!/cache/deep/\nother\n");
        let found = included_files(checkout).unwrap();
        let expected = [".env", "app/.env", "cache/a b"].map(PathBuf::from);
        assert_eq!(found, BTreeSet::from(expected));

        write(".worktreeinclude", "other\n");
        assert_eq!(included_files(checkout).unwrap(), BTreeSet::new());
    }
}
