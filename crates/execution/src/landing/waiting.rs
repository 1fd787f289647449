//! Accepted work that its origin does not take yet.

use gt_core::schedule::{AwaitedOrigin, OriginDelay, Run};

use gt_town::{Result, Town};

/// Records that the work of a run whose worker is gone waits for its origin, and why. The waiting time counts from
/// the first record.
pub(crate) fn note_waiting(town: &Town, run: &Run, delay: OriginDelay, why: &str) -> Result<()> {
    let before = run.awaits_origin();
    let since = before.as_ref().map_or_else(|| town.now(), |before| before.since);
    let awaited = AwaitedOrigin::new(since, delay, why);
    if before.as_ref() == Some(&awaited) {
        return Ok(());
    }
    town.write(|writer| Ok(writer.await_origin(run, &awaited)?))
}
