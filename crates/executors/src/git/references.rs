//! Reading references, and beginning branches, without asking git, where that is safe. A process for each of them is what a
//! start of a worker would mostly consist of.
//!
//! Everything here may say that it does not know (`None`); then git is asked. So only the plainest form of a repository is
//! read: files below `refs` and the list of packed ones.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use super::commit::Commit;

/// Where the references of a repository at `path` are: there itself, or in its `.git`.
pub(super) fn plain_repository(path: &Path) -> Option<PathBuf> {
    let inside = path.join(".git");
    let directory = if inside.is_dir() { inside } else { path.to_owned() };
    // A worktree has its references elsewhere, and there are repositories that keep them in another form.
    let is_plain = directory.join("HEAD").is_file()
        && directory.join("refs").is_dir()
        && !directory.join("commondir").exists()
        && !directory.join("reftable").exists();
    is_plain.then_some(directory)
}

/// All references below `prefix` (`refs/heads/`) that name a commit, without the prefix. Nothing if one of them is
/// something else.
pub(super) fn references_below(directory: &Path, prefix: &str) -> Option<BTreeMap<String, Commit>> {
    // In this order: what is packed meanwhile is in both, and not in neither.
    let mut found = BTreeMap::new();
    add_loose(&directory.join(prefix), "", &mut found)?;
    for (name, commit) in packed(directory, prefix)? {
        found.entry(name).or_insert(commit);
    }
    Some(found)
}

/// What one reference names; nothing if it is not there, or not known.
pub(super) fn reference(directory: &Path, name: &str) -> Option<Commit> {
    match fs::read_to_string(directory.join(name)) {
        Ok(text) => Commit::parse(text.trim_end()),
        Err(_) => packed(directory, name)?.remove(""),
    }
}

/// Begins a branch at a commit and has the `HEAD` of a worktree name it, if that `HEAD` is at this commit already: no file
/// changes then. Whoever else writes the same is kept out as git keeps them out, by files beside them. Nothing if git has
/// to do it, also what was begun here.
pub(super) fn begin_branch(
    directory: &Path,
    worktree: &Path,
    branch: &str,
    at: &Commit,
) -> Option<()> {
    let name = format!("refs/heads/{branch}");
    let is_in_the_way = |packed: &String| {
        let below = |longer: &str, shorter: &str| {
            longer
                .strip_prefix(shorter)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        below(packed, branch) || below(branch, packed)
    };
    plain_repository(directory)?;
    if packed(directory, "refs/heads/")?.keys().any(is_in_the_way) {
        return None;
    }
    let reference = directory.join(&name);
    fs::create_dir_all(reference.parent()?).ok()?;
    put(&reference, &format!("{at}\n"), |file| !file.exists())?;
    put(&worktree.join("HEAD"), &format!("ref: {name}\n"), Path::exists)
}

/// Writes a file under its lock, if it is as it should be.
fn put(file: &Path, text: &str, is_right: impl Fn(&Path) -> bool) -> Option<()> {
    let mut lock = file.as_os_str().to_owned();
    lock.push(".lock");
    let lock = PathBuf::from(lock);
    let mut locked = File::create_new(&lock).ok()?;
    let written = is_right(file)
        && locked.write_all(text.as_bytes()).is_ok()
        && fs::rename(&lock, file).is_ok();
    if !written {
        let _ = fs::remove_file(&lock);
    }
    written.then_some(())
}

/// How deep names of branches go before we stop looking.
const SLASHES_MAX: usize = 32;

fn add_loose(directory: &Path, before: &str, found: &mut BTreeMap<String, Commit>) -> Option<()> {
    if before.matches('/').count() > SLASHES_MAX {
        return None;
    }
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Some(()),
        entries => entries.ok()?,
    };
    for entry in entries {
        let entry = entry.ok()?;
        let name = format!("{before}{}", entry.file_name().to_str()?);
        if entry.file_type().ok()?.is_dir() {
            add_loose(&entry.path(), &format!("{name}/"), found)?;
            continue;
        }
        match fs::read_to_string(entry.path()) {
            Ok(text) if text.starts_with("ref: ") && name == "HEAD" => {}
            // One that is just being written; what it was before counts.
            Ok(_) if name.strip_suffix(".lock").is_some() => {}
            Ok(text) => {
                found.insert(name, Commit::parse(text.trim_end())?);
            }
            // It was packed, or deleted, meanwhile.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(_) => return None,
        }
    }
    Some(())
}

/// The packed references whose names begin with `prefix`, without it.
fn packed(directory: &Path, prefix: &str) -> Option<BTreeMap<String, Commit>> {
    let text = match fs::read_to_string(directory.join("packed-refs")) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Some(BTreeMap::new()),
        text => text.ok()?,
    };
    parse_packed(&text, prefix)
}

fn parse_packed(text: &str, prefix: &str) -> Option<BTreeMap<String, Commit>> {
    let mut found = BTreeMap::new();
    for line in text.lines() {
        // What a tag names stands below it.
        if line.starts_with(['#', '^']) {
            continue;
        }
        let (hash, name) = line.split_once(' ')?;
        if let Some(name) = name.strip_prefix(prefix) {
            found.insert(name.to_owned(), Commit::parse(hash)?);
        }
    }
    Some(found)
}

/// What the text of a configuration says about the remote `origin`, as far as it says it plainly: names and values, in
/// order.
pub(super) fn settings_of_origin(configuration: &str) -> Vec<(&str, &str)> {
    let mut is_inside = false;
    let mut found = Vec::new();
    for line in configuration.lines().map(str::trim) {
        if line.starts_with('[') {
            is_inside = line == "[remote \"origin\"]";
        } else if let Some((name, value)) = line.split_once('=').filter(|_| is_inside) {
            found.push((name.trim(), value.trim()));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ONE: &str = "1111111111111111111111111111111111111111";
    const TWO: &str = "2222222222222222222222222222222222222222";

    fn repository() -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir_all(directory.path().join("refs/heads/deep")).unwrap();
        fs::write(directory.path().join("HEAD"), "ref: refs/heads/main\n").unwrap();
        directory
    }

    fn write(directory: &tempfile::TempDir, file: &str, text: &str) {
        fs::write(directory.path().join(file), text).unwrap();
    }

    #[test]
    fn what_is_not_packed_counts() {
        let there = repository();
        let packed = format!(
            "# pack-refs with: peeled\n{ONE} refs/heads/main\n{ONE} refs/heads/old\n\
             {ONE} refs/tags/v1\n^{TWO}\n"
        );
        write(&there, "packed-refs", &packed);
        write(&there, "refs/heads/main", &format!("{TWO}\n"));
        write(&there, "refs/heads/deep/er", &format!("{TWO}\n"));
        write(&there, "refs/heads/deep/er.lock", "");
        let found = references_below(there.path(), "refs/heads/").unwrap();
        let found: Vec<(&str, &str)> =
            found.iter().map(|(name, commit)| (name.as_str(), commit.as_str())).collect();
        assert_eq!(found, [("deep/er", TWO), ("main", TWO), ("old", ONE)]);
        let one = |name: &str| reference(there.path(), name).map(|commit| commit.to_string());
        assert_eq!(one("refs/heads/main").as_deref(), Some(TWO));
        assert_eq!(one("refs/heads/old").as_deref(), Some(ONE));
        assert_eq!(one("refs/heads/none"), None);
    }

    #[test]
    fn what_is_not_plain_is_left_to_git() {
        let there = repository();
        assert_eq!(references_below(there.path(), "refs/heads/"), Some(BTreeMap::new()));
        assert!(plain_repository(there.path()).is_some());
        write(&there, "refs/heads/link", "ref: refs/heads/main\n");
        assert_eq!(references_below(there.path(), "refs/heads/"), None);
        write(&there, "commondir", "../..\n");
        assert_eq!(plain_repository(there.path()), None);
        assert_eq!(plain_repository(&there.path().join("none")), None);
    }

    #[test]
    fn a_branch_begins_where_head_is_unless_something_is_in_the_way() {
        let there = repository();
        let worktree = there.path().join("worktrees/nux");
        fs::create_dir_all(&worktree).unwrap();
        fs::write(worktree.join("HEAD"), format!("{ONE}\n")).unwrap();
        let at = Commit::parse(ONE).unwrap();
        let begin = |branch: &str| begin_branch(there.path(), &worktree, branch, &at);
        let head = || fs::read_to_string(worktree.join("HEAD")).unwrap();

        assert_eq!(begin("polecat/nux/we-1@a"), Some(()));
        assert_eq!(head(), "ref: refs/heads/polecat/nux/we-1@a\n");
        assert_eq!(reference(there.path(), "refs/heads/polecat/nux/we-1@a"), Some(at.clone()));

        let packed = format!("{TWO} refs/heads/packed\n{TWO} refs/heads/nested/one\n");
        write(&there, "packed-refs", &packed);
        write(&there, "refs/heads/locked.lock", "");
        for taken in ["polecat/nux/we-1@a", "polecat", "packed", "packed/more", "nested", "locked"]
        {
            assert_eq!(begin(taken), None, "{taken}");
        }
        write(&there, "worktrees/nux/HEAD.lock", "");
        assert_eq!(begin("polecat/nux/we-2@b"), None);
        assert_eq!(head(), "ref: refs/heads/polecat/nux/we-1@a\n");
        let left = fs::read_dir(there.path().join("refs/heads/polecat/nux")).unwrap().flatten();
        assert!(left.into_iter().all(|file| !file.path().to_string_lossy().ends_with(".lock")));
    }

    #[test]
    fn what_a_configuration_says_about_the_origin_is_read() {
        let text = "[core]\n\turl = /a\n[remote \"origin\"]\n\turl = /b\n\tfetch = +x:y=z\n\
                    [remote \"fork\"]\n\turl = /c\n[remote \"origin\"]\n\turl = /d\n";
        let wanted = [("url", "/b"), ("fetch", "+x:y=z"), ("url", "/d")];
        assert_eq!(settings_of_origin(text), wanted);
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "(.{0,20}\n){0,6}|([0-9a-f]{40} refs/[a-z/]{1,9}\n){0,4}") {
            let _ = parse_packed(&text, "refs/");
            let _ = settings_of_origin(&text);
        }
    }
}
