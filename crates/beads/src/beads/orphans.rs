//! Beads that commits mention and that are still open.

use std::collections::BTreeMap;
use std::path::Path;

use gt_core::decide::rewrite_ids;
use gt_core::{Bead, BeadId, Status};
use gt_executors::git::{self, CommitMessage};

use crate::acting::refuse_worker;
use gt_town::{OperationError, Result, Town, with_causes};

/// How many commits are read, the latest first.
const COMMITS_READ: u32 = 10_000;

/// A bead that a commit mentions, although it is not closed.
#[derive(Debug, Clone)]
pub struct Orphan {
    /// The bead.
    pub bead: Bead,
    /// The latest commit that mentions it.
    pub commit: CommitMessage,
}

/// The beads that are open or in progress and that commits of the current branch around this directory mention, by their ids.
pub fn orphans(town: &Town, directory: &Path) -> Result<Vec<Orphan>> {
    refuse_worker(town, "bd orphans")?;
    let failed = |error: git::GitError| OperationError::rejected(with_causes(&error));
    let Some(checkout) = git::checkout_around(directory).map_err(failed)? else {
        return Err(OperationError::rejected(format!(
            "{} is in no git repository",
            directory.display()
        )));
    };
    let commits = git::commit_messages(&checkout, COMMITS_READ).map_err(failed)?;
    let mut spoken_of: BTreeMap<BeadId, CommitMessage> = BTreeMap::new();
    for commit in commits {
        // Nothing is rewritten: only the ids are looked at.
        let found = std::cell::RefCell::new(Vec::new());
        rewrite_ids(&commit.message, |word| {
            found.borrow_mut().extend(BeadId::parse(word).ok());
            None
        });
        for id in found.into_inner() {
            spoken_of.entry(id).or_insert_with(|| commit.clone());
        }
    }
    town.read(|reader| {
        let mut orphans = Vec::new();
        let there = reader.existing(spoken_of.keys())?;
        for (id, commit) in spoken_of.into_iter().filter(|(id, _)| there.contains(id)) {
            let bead = reader.bead(&id)?;
            let is_open = |bead: &Bead| {
                matches!(bead.status, Status::Open | Status::InProgress | Status::Hooked)
            };
            if let Some(bead) = bead.filter(is_open) {
                orphans.push(Orphan { bead, commit });
            }
        }
        Ok(orphans)
    })
}
