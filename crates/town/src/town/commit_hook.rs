//! Work that the layers above add to every transaction of a town.

use gt_store::Writer;

use super::Town;
use crate::Result;

/// Adds work to every write of a town. [`Town::open`] and its siblings ask for the hook that carries out the
/// consequences of a change, so no program can write without it.
pub trait CommitHook: Send + Sync {
    /// Starts to follow one write. `None` if this hook has nothing to do for it.
    fn begin(&self, town: &Town) -> Option<Box<dyn CommitFollower>>;
}

/// Without consequences, for tests of the layers below those that have some.
impl CommitHook for () {
    fn begin(&self, _town: &Town) -> Option<Box<dyn CommitFollower>> {
        None
    }
}

/// Follows one write of a town.
pub trait CommitFollower: Send {
    /// Runs at the end of the transaction, inside it, once for each job that the transaction carries out.
    fn before_commit(&mut self, writer: &mut Writer<'_>) -> Result<()>;

    /// Runs after the commit; not after a rehearsal or a failure.
    fn after_commit(self: Box<Self>) {}
}

/// The followers of one write, in the order in which their hooks were given to the town.
pub(super) struct Followers(Vec<Box<dyn CommitFollower>>);

impl Followers {
    pub(super) fn begin(town: &Town) -> Self {
        Self(town.commit_hooks.iter().filter_map(|hook| hook.begin(town)).collect())
    }

    pub(super) fn before_commit(&mut self, writer: &mut Writer<'_>) -> Result<()> {
        self.0.iter_mut().try_for_each(|follower| follower.before_commit(writer))
    }

    pub(super) fn after_commit(self) {
        self.0.into_iter().for_each(CommitFollower::after_commit);
    }
}
