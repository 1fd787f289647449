//! Sending notices in a process beside the command that wrote them.

use std::path::{Path, PathBuf};

use gt_store::Writer;

use crate::background_helper::start;
use gt_beads::outbox::{NoticeSender, deliver, is_due};
use gt_town::town::{CommitFollower, CommitHook};
use gt_town::{Result, Town};

/// The first argument that makes a program the helper; the town follows.
pub const HELPER: &str = "__deliver-notices";
/// How many notices of a channel the helper sends; there are rarely more than one.
const NOTICES_MAX: usize = 100;

/// Sends notices beside this program as soon as they are committed. The program must call [`run`] when it is started
/// with [`HELPER`].
#[derive(Debug, Clone, Copy, Default)]
pub struct SendNotices;

impl CommitHook for SendNotices {
    fn begin(&self, town: &Town) -> Option<Box<dyn CommitFollower>> {
        Some(Box::new(WrittenNotices { root: town.root().to_owned(), count: 0 }))
    }
}

/// The notices that one write has made.
struct WrittenNotices {
    root: PathBuf,
    count: u64,
}

impl CommitFollower for WrittenNotices {
    fn before_commit(&mut self, writer: &mut Writer<'_>) -> Result<()> {
        self.count += writer.notices_written();
        Ok(())
    }

    fn after_commit(self: Box<Self>) {
        if self.count > 0 {
            deliver_in_background(&self.root);
        }
    }
}

/// Starts a copy of this program that sends due notices, and does not wait for it. The program must call [`run`] when
/// it is started with [`HELPER`]. A helper that cannot start is no failure: the notices are stored, and the next
/// dispatch cycle tries them.
pub fn deliver_in_background(root: &Path) {
    let _ = start(root, HELPER);
}

/// Has due notices sent, if there are any: each cycle does this for notices whose first attempt failed.
pub fn catch_up(town: &Town) -> Result<()> {
    if is_due(town)? {
        deliver_in_background(town.root());
    }
    Ok(())
}

/// Sends due notices in this process, if the town has no directory in which a helper could work.
pub fn deliver_without_directory(town: &Town) -> Result<()> {
    if !town.has_directory() && is_due(town)? {
        deliver(town, &NoticeSender::of(town), NOTICES_MAX)?;
    }
    Ok(())
}

/// The helper: sends the due notices of the town.
pub fn run(town: &Town) -> Result<()> {
    deliver(town, &NoticeSender::of(town), NOTICES_MAX).map(drop)
}
