//! Reading references without asking git, where that is safe. A process for each of them is what a start of a worker
//! would mostly consist of.
//!
//! Everything here may say that it does not know (`None`); then git is asked. So only the plainest form of a repository is
//! read: files below `refs` and the list of packed ones.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
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

/// The URL of the origin in the text of a configuration, if it stands there plainly.
pub(super) fn origin_in(configuration: &str) -> Option<&str> {
    let mut is_inside = false;
    let mut found = None;
    for line in configuration.lines().map(str::trim) {
        if line.starts_with('[') {
            is_inside = line == "[remote \"origin\"]";
            // Another one, or other files: git knows how they are put together.
            if line.starts_with("[url ") || line.starts_with("[include") {
                return None;
            }
        } else if let Some((name, value)) = line.split_once('=').filter(|_| is_inside)
            && name.trim() == "url"
        {
            let value = value.trim();
            let is_plain = !value.is_empty() && !value.contains(['"', '\\', '#', ';']);
            if found.is_some() || !is_plain {
                return None;
            }
            found = Some(value);
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
    fn the_origin_is_read_where_it_stands_plainly() {
        let text =
            |url: &str| format!("[core]\n\tbare = true\n[remote \"origin\"]\n\turl = {url}\n");
        assert_eq!(origin_in(&text("/some/place")), Some("/some/place"));
        assert_eq!(origin_in(&text("\"/some ; place\"")), None);
        assert_eq!(origin_in(&format!("{}[url \"x\"]\n", text("/a"))), None);
        assert_eq!(origin_in(&format!("{}\turl = /b\n", text("/a"))), None);
        assert_eq!(origin_in("[remote \"other\"]\n\turl = /a\n"), None);
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "(.{0,20}\n){0,6}|([0-9a-f]{40} refs/[a-z/]{1,9}\n){0,4}") {
            let _ = parse_packed(&text, "refs/");
            let _ = origin_in(&text);
        }
    }
}
