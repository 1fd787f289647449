//! What the index of a tree says, read without git.
//!
//! `git status` takes longer than most of what stands between a bead and its worker. In nearly every tree that is used
//! again it finds nothing, and nothing is what can be seen by looking: every file is as the index remembers it, the
//! index is that of the commit, and there are no other files. Whatever is not as simple as that is left to git.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{self, DirEntry, File, Metadata};
use std::io::Read as _;
use std::num::NonZero;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::thread;

/// A file that changed within this time of the writing of the index may have changed after it unseen: clocks of file
/// systems have ticks.
const TICK_NS: i128 = 20_000_000;

/// How many files are worth a thread that looks at them: whoever waits for a start or for an end waits for this.
const WORTH_A_THREAD: usize = 500;

const FIXED_LEN: usize = 62;
const HASH_LEN: usize = 20;
/// The modes that git knows files by.
const LINK: u32 = 0o120_000;
const FILE: u32 = 0o100_644;
const EXECUTABLE: u32 = 0o100_755;

/// A file as the index remembers it. Of every number it has the low half.
#[derive(Debug, PartialEq, Eq)]
struct Entry<'i> {
    changed: (u32, u32),
    modified: (u32, u32),
    inode: u32,
    mode: u32,
    owner: u32,
    group: u32,
    size: u32,
    path: &'i [u8],
}

/// What a folder has that git knows, by name.
type Folder<'e, 'i> = HashMap<&'i [u8], &'e Entry<'i>>;

/// What an index says that has nothing out of the ordinary.
#[derive(Debug, PartialEq, Eq)]
struct Index<'i> {
    entries: Vec<Entry<'i>>,
    /// The hash of the tree that it is, if it remembers.
    tree: Option<String>,
}

/// What is to be seen in a tree.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Sight {
    /// The hash of what is staged, which is that of `HEAD` if nothing is changed.
    pub(super) tree: String,
    /// What else is there, as paths from the top. Git knows whether it is ignored.
    pub(super) others: Vec<PathBuf>,
}

/// Looks at the files of a tree; nothing if only git can say how they are.
pub(super) fn look(tree: &Path, git_directory: &Path) -> Option<Sight> {
    let mut file = File::open(git_directory.join("index")).ok()?;
    let written = modified_at(&file.metadata().ok()?);
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).ok()?;
    let index = parse(&bytes)?;
    let folders = folders(&index.entries);
    let all: Vec<_> = folders.iter().collect();
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let parts = (index.entries.len() / WORTH_A_THREAD).clamp(1, cores);
    let look = |some: &[_]| look_into(some, tree, written, &folders);
    let others = thread::scope(|scope| {
        let chunks: Vec<_> = all.chunks(all.len().div_ceil(parts)).collect();
        let (mine, theirs) = chunks.split_first()?;
        let theirs: Vec<_> = theirs.iter().map(|some| scope.spawn(|| look(some))).collect();
        let mut others = look(mine)?;
        for part in theirs {
            others.extend(part.join().ok()??);
        }
        Some(others)
    })?;
    Some(Sight { tree: index.tree?, others })
}

/// The folders of a tree that have files git knows, and those around them; nothing if only git can say.
pub(super) fn folders_of(git_directory: &Path) -> Option<Vec<PathBuf>> {
    let bytes = fs::read(git_directory.join("index")).ok()?;
    let index = parse(&bytes)?;
    let folders = folders(&index.entries);
    Some(folders.keys().map(|folder| PathBuf::from(OsStr::from_bytes(folder))).collect())
}

/// Looks at the files of some folders; what is there that git does not know, or nothing if only git can say.
fn look_into(
    some: &[(&&[u8], &Folder<'_, '_>)],
    tree: &Path,
    written: i128,
    folders: &HashMap<&[u8], Folder<'_, '_>>,
) -> Option<Vec<PathBuf>> {
    let mut others = Vec::new();
    for (folder, known) in some {
        let mut found_count = 0;
        for found in fs::read_dir(tree.join(OsStr::from_bytes(folder))).ok()? {
            let found = found.ok()?;
            if is_as_remembered(&found, known, written)? {
                found_count += 1;
                continue;
            }
            let path = join(folder, found.file_name().as_bytes());
            if folders.contains_key(path.as_slice()) {
                // Behind a link the files may be all right, and yet none of the tree.
                if !found.file_type().ok()?.is_dir() {
                    return None;
                }
            } else if path != b".git" {
                others.push(PathBuf::from(OsStr::from_bytes(&path)));
            }
        }
        if found_count != known.len() {
            return None;
        }
    }
    Some(others)
}

/// Everything that has a file, and everything around that.
fn folders<'e, 'i>(entries: &'e [Entry<'i>]) -> HashMap<&'i [u8], Folder<'e, 'i>> {
    let mut folders: HashMap<&[u8], Folder<'_, '_>> = HashMap::new();
    folders.entry(b"").or_default();
    for entry in entries {
        let (mut folder, name) = split(entry.path);
        let is_new = !folders.contains_key(folder);
        folders.entry(folder).or_default().insert(name, entry);
        while is_new && !folder.is_empty() {
            (folder, _) = split(folder);
            folders.entry(folder).or_default();
        }
    }
    folders
}

/// Whether something in a folder is a file that the index knows; nothing if that has changed, or may have.
fn is_as_remembered(found: &DirEntry, known: &Folder<'_, '_>, written: i128) -> Option<bool> {
    let Some(entry) = known.get(found.file_name().as_bytes()) else { return Some(false) };
    let metadata = found.metadata().ok()?;
    let is_link = metadata.file_type().is_symlink();
    if !is_link && !metadata.is_file() {
        return None;
    }
    let is_executable = !is_link && metadata.mode() & 0o100 != 0;
    let seen = Entry {
        changed: (low(metadata.ctime()), low(metadata.ctime_nsec())),
        modified: (low(metadata.mtime()), low(metadata.mtime_nsec())),
        inode: low(metadata.ino().cast_signed()),
        mode: match (is_link, is_executable) {
            (true, _) => LINK,
            (false, true) => EXECUTABLE,
            (false, false) => FILE,
        },
        owner: metadata.uid(),
        group: metadata.gid(),
        size: low(metadata.size().cast_signed()),
        path: entry.path,
    };
    (seen == **entry && modified_at(&metadata) + TICK_NS < written).then_some(true)
}

fn modified_at(metadata: &Metadata) -> i128 {
    i128::from(metadata.mtime()) * 1_000_000_000 + i128::from(metadata.mtime_nsec())
}

/// The low half of a number.
fn low(number: i64) -> u32 {
    let [a, b, c, d, ..] = number.to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}

/// The folder and the name of a path.
fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(slash) => (&path[..slash], &path[slash + 1..]),
        None => (b"", path),
    }
}

fn join(folder: &[u8], name: &[u8]) -> Vec<u8> {
    if folder.is_empty() { name.to_vec() } else { [folder, b"/", name].concat() }
}

/// Reads an index of version 2 or 3 with hashes of twenty bytes; nothing if it has anything that is not a plain file, or
/// says more than its entries and the tree that they are.
fn parse(bytes: &[u8]) -> Option<Index<'_>> {
    let mut rest = bytes.strip_prefix(b"DIRC")?;
    let version = number(&mut rest)?;
    let count = number(&mut rest)?;
    if !(2..=3).contains(&version) {
        return None;
    }
    let mut entries = Vec::new();
    for _ in 0..count {
        let (entry, length) = parse_entry(rest)?;
        // Git keeps them in order; what is not so was not read right.
        if entries.last().is_some_and(|last: &Entry<'_>| last.path >= entry.path) {
            return None;
        }
        entries.push(entry);
        rest = rest.get(length..)?;
    }
    let mut extensions = rest.get(..rest.len().checked_sub(HASH_LEN)?)?;
    let mut tree = None;
    while !extensions.is_empty() {
        let name = take(&mut extensions, 4)?;
        let length = number(&mut extensions)?;
        let content = take(&mut extensions, usize::try_from(length).ok()?)?;
        match name {
            b"TREE" => tree = parse_tree(content),
            // What begins with a small letter changes the meaning of the rest.
            [b'A'..=b'Z', ..] => {}
            _ => return None,
        }
    }
    Some(Index { entries, tree })
}

/// An entry, and how long it is.
fn parse_entry(bytes: &[u8]) -> Option<(Entry<'_>, usize)> {
    let mut rest = bytes;
    let [changed, changed_ns, modified, modified_ns] = numbers(&mut rest)?;
    let [_device, inode, mode, owner, group, size] = numbers(&mut rest)?;
    take(&mut rest, HASH_LEN)?;
    let flags = take(&mut rest, 2)?;
    // All bits but those of the length: assumed unchanged, more flags follow, a side of a conflict.
    if flags[0] & 0xf0 != 0 || ![FILE, EXECUTABLE, LINK].contains(&mode) {
        return None;
    }
    let length = rest.iter().position(|byte| *byte == 0)?;
    let path = &rest[..length];
    let entry = Entry {
        changed: (changed, changed_ns),
        modified: (modified, modified_ns),
        inode,
        mode,
        owner,
        group,
        size,
        path,
    };
    Some((entry, (FIXED_LEN + length + 8) / 8 * 8))
}

/// The hash of the whole, if it is remembered: the first of the trees.
fn parse_tree(content: &[u8]) -> Option<String> {
    let rest = content.strip_prefix(b"\0")?;
    let end = rest.iter().position(|byte| *byte == b'\n')?;
    // The number of entries is below zero when the tree has to be computed again.
    if rest[..end].starts_with(b"-") {
        return None;
    }
    let hash = rest.get(end + 1..)?.get(..HASH_LEN)?;
    let digit = |half: u8| char::from_digit(u32::from(half), 16);
    hash.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

fn take<'b>(bytes: &mut &'b [u8], length: usize) -> Option<&'b [u8]> {
    let (taken, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(taken)
}

fn number(bytes: &mut &[u8]) -> Option<u32> {
    take(bytes, 4)?.try_into().ok().map(u32::from_be_bytes)
}

fn numbers<const COUNT: usize>(bytes: &mut &[u8]) -> Option<[u32; COUNT]> {
    let mut all = [0; COUNT];
    for each in &mut all {
        *each = number(bytes)?;
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use std::time::Duration;

    use proptest::prelude::*;
    use tempfile::TempDir;

    use super::super::call::Call;
    use super::*;

    fn git(directory: &Path, arguments: &[&str]) -> String {
        let call = Call::within(directory, "test").args(arguments.iter().copied());
        let call = call.env("GIT_AUTHOR_NAME", "nux").env("GIT_AUTHOR_EMAIL", "nux@gt");
        let call = call.env("GIT_COMMITTER_NAME", "nux").env("GIT_COMMITTER_EMAIL", "nux@gt");
        String::from_utf8(call.done().unwrap()).unwrap().trim().to_owned()
    }

    /// A repository with everything an index remembers of files, all of them older than the index.
    fn repository() -> TempDir {
        let place = tempfile::tempdir().unwrap();
        let root = place.path();
        git(root, &["init", "--quiet"]);
        for (name, text) in [("a", "1"), ("folder/b", "2"), ("folder/deep/c", "3"), ("run", "4")] {
            fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
            fs::write(root.join(name), text).unwrap();
        }
        fs::set_permissions(root.join("run"), fs::Permissions::from_mode(0o755)).unwrap();
        symlink("a", root.join("link")).unwrap();
        fs::write(root.join(".gitignore"), "target/\n").unwrap();
        git(root, &["add", "--all"]);
        git(root, &["commit", "--quiet", "--message", "All"]);
        // They have just been made, and an index is trusted that was written a good while later.
        date_index(root, Duration::from_mins(1));
        place
    }

    /// Has the index be written so long after the last file.
    fn date_index(root: &Path, after: Duration) {
        let index = File::options().write(true).open(root.join(".git/index")).unwrap();
        let last = fs::metadata(root.join(".gitignore")).unwrap().modified().unwrap();
        index.set_modified(last + after).unwrap();
    }

    fn seen(place: &TempDir) -> Option<Sight> {
        look(place.path(), &place.path().join(".git"))
    }

    #[test]
    fn a_clean_tree_is_that_of_its_commit() {
        let place = repository();
        let tree = git(place.path(), &["rev-parse", "HEAD^{tree}"]);
        assert_eq!(seen(&place), Some(Sight { tree, others: vec![] }));
    }

    #[test]
    fn what_the_index_does_not_know_is_named() {
        let place = repository();
        fs::create_dir_all(place.path().join("target/debug")).unwrap();
        fs::write(place.path().join("folder/deep/new"), "").unwrap();
        let mut others = seen(&place).unwrap().others;
        others.sort();
        assert_eq!(others, [PathBuf::from("folder/deep/new"), PathBuf::from("target")]);
    }

    #[test]
    fn every_change_of_a_known_file_is_left_to_git() {
        type Change = fn(&Path);
        let changes: [(&str, Change); 9] = [
            ("another text of the same length and age", |root| {
                let age = fs::metadata(root.join("a")).unwrap().modified().unwrap();
                fs::write(root.join("a"), "9").unwrap();
                let file = File::options().write(true).open(root.join("a")).unwrap();
                file.set_modified(age).unwrap();
            }),
            ("a file that is gone", |root| fs::remove_file(root.join("folder/deep/c")).unwrap()),
            ("a folder that is gone", |root| fs::remove_dir_all(root.join("folder")).unwrap()),
            ("a file that can be executed", |root| {
                fs::set_permissions(root.join("a"), fs::Permissions::from_mode(0o755)).unwrap();
            }),
            ("a link in the place of a file", |root| {
                fs::remove_file(root.join("a")).unwrap();
                symlink("run", root.join("a")).unwrap();
            }),
            ("a link in the place of a folder", |root| {
                fs::rename(root.join("folder"), root.join("target")).unwrap();
                symlink("target", root.join("folder")).unwrap();
            }),
            ("a link to somewhere else", |root| {
                fs::remove_file(root.join("link")).unwrap();
                symlink("b", root.join("link")).unwrap();
            }),
            ("a file that is assumed to be unchanged", |root| {
                git(root, &["update-index", "--assume-unchanged", "a"]);
            }),
            ("a repository inside", |root| {
                let hash = "1".repeat(40);
                git(root, &["update-index", "--add", "--cacheinfo", &format!("160000,{hash},sub")]);
            }),
        ];
        for (what, change) in changes {
            let place = repository();
            change(place.path());
            assert_eq!(seen(&place), None, "{what}");
        }
    }

    #[test]
    fn what_is_staged_is_not_the_tree_of_the_commit() {
        let place = repository();
        let tree = git(place.path(), &["rev-parse", "HEAD^{tree}"]);
        git(place.path(), &["rm", "--quiet", "--cached", "a"]);
        assert!(seen(&place).is_none_or(|sight| sight.tree != tree));
    }

    #[test]
    fn an_index_that_is_not_newer_than_its_files_is_not_trusted() {
        let place = repository();
        date_index(place.path(), Duration::from_millis(10));
        assert_eq!(seen(&place), None);
    }

    proptest! {
        #[test]
        fn no_index_makes_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            parse(&bytes);
            parse(&[b"DIRC\0\0\0\x02\0\0\0\x01".as_slice(), &bytes].concat());
        }
    }
}
