//! Watching over a tree that stands ready.
//!
//! To look at every file of a tree is what takes longest between the end of a run and the next one. Where nothing has
//! happened since somebody looked, nobody need look again, and the kernel tells whether something has.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use super::commit::Commit;
use super::tree::Tree;

/// How many folders of a tree are watched at most: programs of a user share a number of watches.
const MOST_FOLDERS: usize = 1_000;

/// A tree that was clean, and the means to know that it still is.
#[derive(Debug)]
pub struct Vigil {
    tree: Tree,
    base: Commit,
    stamps: Stamps,
    watch: watch::Watch,
}

/// What is no file of the tree, and must be what it was: the directory itself, and its index.
#[derive(Debug, PartialEq, Eq)]
struct Stamps {
    directory: (u64, u64),
    index: (u64, u64, i64, i64),
}

impl Stamps {
    fn of(tree: &Path, git_directory: &Path) -> Option<Self> {
        let directory = fs::symlink_metadata(tree).ok()?;
        let index = fs::metadata(git_directory.join("index")).ok()?;
        Some(Self {
            directory: (directory.dev(), directory.ino()),
            index: (index.ino(), index.size(), index.mtime(), index.mtime_nsec()),
        })
    }
}

impl Vigil {
    /// Begins to watch over a tree; nothing if it cannot be seen at once that it is clean, or it is too large to be watched.
    pub fn begin(tree: &Tree) -> Option<Self> {
        let base = tree.head_in_files()?;
        let git_directory = tree.git_directory().ok()?;
        let stamps = Stamps::of(tree.path(), &git_directory)?;
        let folders = super::index::folders_of(&git_directory)?;
        if folders.len() > MOST_FOLDERS {
            return None;
        }
        let watch = watch::Watch::new(folders.iter().map(|folder| tree.path().join(folder)))?;
        // What happens from now on is told, so that nothing gets lost between the look and the watch.
        let is_clean = tree.is_seen_at(&base, &git_directory).unwrap_or(false);
        is_clean.then_some(Self { tree: tree.clone(), base, stamps, watch })
    }

    /// Whether the tree was clean at this commit when it was looked at, and nobody has touched it since.
    pub fn holds(&self, base: &Commit) -> bool {
        let stamps = || Stamps::of(self.tree.path(), &self.tree.git_directory().ok()?);
        self.base == *base && stamps().as_ref() == Some(&self.stamps) && self.watch.is_quiet()
    }
}

#[cfg(target_os = "linux")]
mod watch {
    use std::os::fd::OwnedFd;
    use std::path::PathBuf;

    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::fs::inotify::{CreateFlags, WatchFlags, add_watch, init};

    /// What the kernel has to tell of some folders. Nobody takes it, so that it stays told.
    #[derive(Debug)]
    pub(super) struct Watch(OwnedFd);

    impl Watch {
        /// Watches all of these; nothing if it cannot.
        pub(super) fn new(folders: impl Iterator<Item = PathBuf>) -> Option<Self> {
            let watch = init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok()?;
            let content = WatchFlags::MODIFY | WatchFlags::ATTRIB | WatchFlags::MOVE;
            let names = WatchFlags::CREATE | WatchFlags::DELETE;
            let itself = WatchFlags::DELETE_SELF | WatchFlags::MOVE_SELF;
            let only = WatchFlags::ONLYDIR | WatchFlags::DONT_FOLLOW;
            for folder in folders {
                add_watch(&watch, folder, content | names | itself | only).ok()?;
            }
            Some(Self(watch))
        }

        /// Whether nothing was told.
        pub(super) fn is_quiet(&self) -> bool {
            let mut watched = [PollFd::new(&self.0, PollFlags::IN)];
            poll(&mut watched, Some(&Timespec::default())) == Ok(0)
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod watch {
    use std::path::PathBuf;

    /// Nobody tells here what happens to files, so that there is none.
    #[derive(Debug)]
    pub(super) enum Watch {}

    impl Watch {
        pub(super) fn new(_folders: impl Iterator<Item = PathBuf>) -> Option<Self> {
            None
        }

        pub(super) fn is_quiet(&self) -> bool {
            match *self {}
        }
    }
}
