//! Who watches over the trees that stand ready.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use gt_executors::git::{Tree, Vigil};

/// A vigil over each tree that stands ready, so that a run that gets one begins without a look at every file of it.
#[derive(Debug, Default)]
pub(crate) struct Vigils(Mutex<HashMap<PathBuf, Vigil>>);

impl Vigils {
    /// Watches over these trees, and over no others. One that was disturbed is looked at anew.
    pub(crate) fn keep(&self, trees: &[Tree]) {
        let is_kept = |path: &Path, vigil: &Vigil| {
            let tree = trees.iter().find(|tree| tree.path() == path);
            tree.and_then(Tree::head_in_files).is_some_and(|head| vigil.holds(&head))
        };
        self.all().retain(|path, vigil| is_kept(path, vigil));
        for tree in trees {
            // Whoever starts a run does not wait until all files were looked at.
            let is_known = self.all().contains_key(tree.path());
            if !is_known && let Some(vigil) = Vigil::begin(tree) {
                self.all().insert(tree.path().to_owned(), vigil);
            }
        }
    }

    /// The vigil over a tree that somebody is given, with which it ends.
    pub(crate) fn take(&self, tree: &Path) -> Option<Vigil> {
        self.all().remove(tree)
    }

    fn all(&self) -> MutexGuard<'_, HashMap<PathBuf, Vigil>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
