//! Files that every tree of a rig has besides those of its repository: local settings, keys for tests.
//!
//! They are copied into the tree, and git is told not to see them, so they are never committed.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use gt_core::Rig;
use gt_executors::git::{Tree, included_files};

use gt_town::tree_paths::{Trees, git_failed};
use gt_town::{OperationError, Result, Town};

/// The lines around our section in the list of files that git ignores.
const BEGIN: &str = "# The overlay of the rig; gt writes this.";
const END: &str = "# The end of the overlay.";

/// The most files of a checkout that are copied into a tree. Git reads a line for each.
const CHECKOUT_FILES_MAX: usize = 10_000;

/// The files of a checkout of the user that its `.worktreeinclude` names.
#[derive(Debug, Default)]
pub(super) struct CheckoutFiles {
    pub(super) checkout: PathBuf,
    pub(super) files: BTreeSet<PathBuf>,
}

impl CheckoutFiles {
    /// Those of a checkout.
    pub(super) fn of(rig: &Rig, checkout: PathBuf) -> Result<Self> {
        let files = included_files(&checkout).map_err(git_failed(rig))?;
        if files.len() > CHECKOUT_FILES_MAX {
            return Err(OperationError::rejected(format!(
                "the .worktreeinclude in {} names {} files, and {CHECKOUT_FILES_MAX} can be copied into each tree; have a \
                 command make the others: gt config set rig.{}.setup <command>",
                checkout.display(),
                files.len(),
                rig.slug
            )));
        }
        Ok(Self { checkout, files })
    }
}

/// Copies the files of a checkout and everything below `overlay` into the tree. Where both have a file, that of the overlay
/// counts.
pub(super) fn lay_over(
    trees: &Trees<'_>,
    tree: &Tree,
    overlay: Option<&Path>,
    included: &CheckoutFiles,
) -> Result<()> {
    if overlay.is_none() && included.files.is_empty() {
        return Ok(());
    }
    let of_overlay = overlay.map(|overlay| overlay_files(trees.rig, overlay)).transpose()?;
    let of_overlay = of_overlay.unwrap_or_default();
    exclude(trees, &of_overlay.union(&included.files).cloned().collect())?;
    let tracked = tracked(trees, tree, &included.files)?;
    let wanted = |file: &&PathBuf| !of_overlay.contains(*file) && !tracked.contains(*file);
    for file in included.files.iter().filter(wanted) {
        // The person did not choose this tree, in which a directory may be a link.
        if !passes_link(tree, file) {
            copy(&included.checkout.join(file), &tree.path().join(file))?;
        }
    }
    match overlay {
        Some(overlay) => copy_overlay(trees.rig, tree, overlay, &of_overlay),
        None => Ok(()),
    }
}

fn refused(rig: &Rig, why: &str) -> OperationError {
    OperationError::rejected(format!("rig.{}.overlay: {why}", rig.slug))
}

fn overlay_files(rig: &Rig, overlay: &Path) -> Result<BTreeSet<PathBuf>> {
    if !overlay.is_dir() {
        let why = format!("{} is not a directory; make it, or set another", overlay.display());
        return Err(refused(rig, &why));
    }
    let files = files_below(overlay)?;
    match files.iter().find(|file| file.starts_with(".git")) {
        Some(inside) => {
            Err(refused(rig, &format!("{} belongs to git; take it out", inside.display())))
        }
        None => Ok(files),
    }
}

fn copy_overlay(rig: &Rig, tree: &Tree, overlay: &Path, files: &BTreeSet<PathBuf>) -> Result<()> {
    for file in files {
        if passes_link(tree, file) {
            let why = format!("a directory of {} is a link in the repository", file.display());
            return Err(refused(rig, &why));
        }
        copy(&overlay.join(file), &tree.path().join(file))?;
    }
    if files.is_empty() {
        return Ok(());
    }
    let changes = tree.status().map_err(git_failed(rig))?.changes;
    match changes.paths().find(|path| files.contains(*path)) {
        // Git would commit it with everything else.
        Some(path) => {
            let (path, overlay) = (path.display(), overlay.display());
            Err(refused(rig, &format!("{path} is in the repository too; take it out of {overlay}")))
        }
        None => Ok(()),
    }
}

/// Those of these files that the commit in the tree has.
fn tracked(trees: &Trees<'_>, tree: &Tree, files: &BTreeSet<PathBuf>) -> Result<BTreeSet<PathBuf>> {
    let failed = git_failed(trees.rig);
    if files.is_empty() {
        return Ok(BTreeSet::new());
    }
    let Some(head) = tree.head().map_err(&failed)? else { return Ok(BTreeSet::new()) };
    let entries = trees.repository().entries_of(&head).map_err(&failed)?;
    let paths = entries.into_iter().map(|entry| PathBuf::from(entry.path));
    Ok(paths.filter(|path| files.contains(path)).collect())
}

/// Whether a file would be written through a link, which may lead out of the tree.
fn passes_link(tree: &Tree, file: &Path) -> bool {
    let mut directories = file.ancestors().skip(1).filter(|path| !path.as_os_str().is_empty());
    directories.any(|directory| tree.path().join(directory).is_symlink())
}

/// Everything below a directory that is not a directory itself, as paths from there.
pub(super) fn files_below(top: &Path) -> Result<BTreeSet<PathBuf>> {
    let mut files = BTreeSet::new();
    let mut open = vec![PathBuf::new()];
    while let Some(directory) = open.pop() {
        let path = top.join(&directory);
        let failed = |source| OperationError::File { action: "read", path: path.clone(), source };
        for entry in fs::read_dir(&path).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let inside = directory.join(entry.file_name());
            if entry.file_type().map_err(failed)?.is_dir() {
                open.push(inside);
            } else {
                files.insert(inside);
            }
        }
    }
    Ok(files)
}

/// Puts a copy in place in one step, so that no reader sees half of it; its permissions come along.
fn copy(from: &Path, to: &Path) -> Result<()> {
    let failed = |source| OperationError::File { action: "write", path: to.to_owned(), source };
    let Some(parent) = to.parent() else { return Ok(()) };
    fs::create_dir_all(parent).map_err(failed)?;
    let beside = parent.join(format!(".gt-overlay-{}", std::process::id()));
    let _ = fs::remove_file(&beside);
    let written = if from.is_symlink() {
        fs::read_link(from).and_then(|target| std::os::unix::fs::symlink(target, &beside))
    } else {
        fs::copy(from, &beside).map(drop)
    };
    written.and_then(|()| fs::rename(&beside, to)).map_err(failed)
}

/// Tells git, that of workers and ours, to ignore files that match these patterns in all trees of a rig: agents leave
/// files of their own behind, which are no work.
pub(crate) fn ignore_files(town: &Town, rig: &Rig, patterns: &[String]) -> Result<()> {
    let Some(trees) = Trees::of(town, rig).filter(|_| !patterns.is_empty()) else { return Ok(()) };
    trees.repository().exclude_paths().iter().try_for_each(|path| {
        rewrite(path, |before| {
            let missing = patterns.iter().filter(|one| !before.lines().any(|line| line == *one));
            let gap = if before.is_empty() || before.ends_with('\n') { "" } else { "\n" };
            missing.fold(format!("{before}{gap}"), |list, pattern| list + pattern + "\n")
        })
    })
}

/// Tells git, that of workers and ours, to ignore these files. Other lines of the list stay.
fn exclude(trees: &Trees<'_>, files: &BTreeSet<PathBuf>) -> Result<()> {
    let paths = trees.repository().exclude_paths();
    paths.iter().try_for_each(|path| rewrite(path, |before| with_section(before, files)))
}

/// Changes a list of ignored files in one step.
fn rewrite(path: &Path, change: impl Fn(&str) -> String) -> Result<()> {
    let failed = |source| OperationError::File { action: "write", path: path.to_owned(), source };
    let before = fs::read_to_string(path).unwrap_or_default();
    let after = change(&before);
    let Some(directory) = path.parent().filter(|_| after != before) else { return Ok(()) };
    fs::create_dir_all(directory).map_err(failed)?;
    let beside = directory.join(format!("exclude-{}", std::process::id()));
    fs::write(&beside, after).and_then(|()| fs::rename(&beside, path)).map_err(failed)
}

/// The list with our section, in place of an earlier one.
fn with_section(before: &str, files: &BTreeSet<PathBuf>) -> String {
    let mut ours = false;
    let mut text = String::new();
    for line in before.lines() {
        ours |= line == BEGIN;
        if !ours {
            text.push_str(line);
            text.push('\n');
        }
        ours &= line != END;
    }
    if !files.is_empty() {
        let patterns = files.iter().map(|file| pattern(file) + "\n");
        text.extend([BEGIN, "\n"].map(str::to_owned).into_iter().chain(patterns));
        text.push_str(END);
        text.push('\n');
    }
    text
}

/// The pattern that means exactly this file.
fn pattern(file: &Path) -> String {
    let mut pattern = "/".to_owned();
    for c in file.to_string_lossy().chars() {
        match c {
            '*' | '?' | '[' | ']' | '\\' | ' ' => pattern.extend(['\\', c]),
            // A line break would end the pattern, so `?` stands for it, which matches any character.
            '\n' | '\r' => pattern.push('?'),
            _ => pattern.push(c),
        }
    }
    pattern
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn set(files: &[&str]) -> BTreeSet<PathBuf> {
        files.iter().map(PathBuf::from).collect()
    }

    #[test]
    fn lines_outside_our_section_stay() {
        let once = with_section("*.log\n", &set(&[".env", "a b/[x]"]));
        assert_eq!(once, format!("*.log\n{BEGIN}\n/.env\n/a\\ b/\\[x\\]\n{END}\n"));
        assert_eq!(with_section(&(once + "last\n"), &set(&[])), "*.log\nlast\n");
    }

    proptest! {
        #[test]
        fn the_section_is_replaced_and_nothing_else_is_touched(
            before in "([a-z*]{1,6}\n){0,4}",
            files in prop::collection::btree_set("[a-z]{1,4}", 0..4),
        ) {
            let files: BTreeSet<PathBuf> = files.into_iter().map(PathBuf::from).collect();
            let once = with_section(&before, &files);
            prop_assert_eq!(&with_section(&once, &files), &once);
            prop_assert_eq!(with_section(&once, &BTreeSet::new()), before);
        }
    }
}
