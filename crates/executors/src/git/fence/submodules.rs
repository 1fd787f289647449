//! The settings of submodules: a git that fetches also fetches in them, and each is a repository with settings of its own.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// The mode of a submodule in the index.
const SUBMODULE: &[u8] = b"160000 ";
/// How deep submodules are looked for.
const DEPTH_MAX: usize = 32;

/// The options that lead git to each submodule, checked out or not, of the repository where git works with `options`. `ask` gives
/// what git prints.
pub(super) fn submodules_of(
    options: &[OsString],
    ask: &impl Fn(&[OsString], &[&str]) -> Vec<u8>,
) -> Vec<[OsString; 2]> {
    let mut found = SubmoduleSearch { ask, repositories: BTreeSet::new(), trees: BTreeSet::new() };
    found.add_below(options, DEPTH_MAX);
    let SubmoduleSearch { repositories, trees, .. } = found;
    let at = |option: &str, place: PathBuf| [OsString::from(option), OsString::from(place)];
    let repositories = repositories.into_iter().map(|place| at("--git-dir", place));
    repositories.chain(trees.into_iter().map(|tree| at("-C", tree))).collect()
}

struct SubmoduleSearch<'a, Ask> {
    ask: &'a Ask,
    /// The repositories that the one above has for its submodules.
    repositories: BTreeSet<PathBuf>,
    /// Submodules that are checked out. Their repositories may be anywhere.
    trees: BTreeSet<PathBuf>,
}

impl<Ask: Fn(&[OsString], &[&str]) -> Vec<u8>> SubmoduleSearch<'_, Ask> {
    fn add_below(&mut self, options: &[OsString], depth: usize) {
        let Some(depth) = depth.checked_sub(1) else { return };
        let place = |words: &[&str]| {
            let printed = (self.ask)(options, words);
            let path = printed.strip_suffix(b"\n").unwrap_or(&printed);
            (!path.is_empty()).then(|| PathBuf::from(OsStr::from_bytes(path)))
        };
        let Some(own) = place(&["rev-parse", "--absolute-git-dir"]) else { return };
        let top = place(&["rev-parse", "--show-toplevel"]);
        self.add_repositories(&own.join("modules"), depth);
        let Some(top) = top else { return };
        let (own, tree) = (own.as_os_str(), top.as_os_str());
        let option = OsStr::new;
        let here = [option("-C"), tree, option("--git-dir"), own, option("--work-tree"), tree];
        let staged = (self.ask)(&here.map(OsStr::to_owned), &["ls-files", "--stage", "-z"]);
        for entry in staged.split(|byte| *byte == 0) {
            let Some(rest) = entry.strip_prefix(SUBMODULE) else { continue };
            let Some(tab) = rest.iter().position(|byte| *byte == b'\t') else { continue };
            let tree = top.join(OsStr::from_bytes(&rest[tab + 1..]));
            if tree.join(".git").exists() && self.trees.insert(tree.clone()) {
                self.add_below(&[OsString::from("-C"), OsString::from(tree)], depth);
            }
        }
    }

    /// Names of submodules may contain slashes, and each repository has those of its own submodules.
    fn add_repositories(&mut self, directory: &Path, depth: usize) {
        let Some(depth) = depth.checked_sub(1) else { return };
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        for path in entries.map(|entry| entry.path()).filter(|path| path.is_dir()) {
            if path.join("HEAD").exists() {
                self.add_repositories(&path.join("modules"), depth);
                self.repositories.insert(path);
            } else {
                self.add_repositories(&path, depth);
            }
        }
    }
}
