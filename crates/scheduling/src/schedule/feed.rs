//! Scheduling beads that an open convoy tracks and that are not scheduled: the one way in for all callers that find
//! them.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use gt_core::decide::{WaitReason, is_stranded};
use gt_core::schedule::{Context, ContextOrigin, SlingParameters};
use gt_core::{Bead, BeadId};
use gt_store::{NewContext, Reader, Unscheduled, Writer};

use super::check::{self, ScheduleVerdict};
use super::request::SlingOptions;
use super::resolve_request::merging_of;
use crate::dispatch::{DEFAULT_FORMULA, SchedulingSnapshot};
use gt_town::{OperationError, Result};

/// A bead that an open convoy tracks and that is not scheduled.
#[derive(Debug, Clone)]
pub(crate) struct UnscheduledMember {
    /// The first of its convoys.
    pub convoy: BeadId,
    pub bead: Bead,
    /// Why it does not start.
    pub reasons: Vec<WaitReason>,
}

impl UnscheduledMember {
    /// Whether a caller that finds it schedules it.
    pub(crate) fn is_stranded(&self) -> bool {
        is_stranded(&self.reasons)
    }

    /// Whether it would start if it were scheduled.
    pub(crate) fn is_ready(&self) -> bool {
        self.reasons == [WaitReason::NotScheduled]
    }
}

/// Finds those beads. Each is told once, with the first of its convoys.
pub(crate) fn strays(
    reader: &Reader<'_>,
    snapshot: &SchedulingSnapshot,
    which: Unscheduled<'_>,
) -> Result<Vec<UnscheduledMember>> {
    let mut first: HashMap<BeadId, BeadId> = HashMap::new();
    let mut order = Vec::new();
    for (convoy, bead) in reader.unscheduled_members(which)? {
        if let Entry::Vacant(vacant) = first.entry(bead) {
            order.push(vacant.key().clone());
            vacant.insert(convoy);
        }
    }
    let mut strays = Vec::with_capacity(order.len());
    for row in reader.bead_rows(&order)? {
        let Some(convoy) = first.remove(&row.bead.id) else { continue };
        let reasons = snapshot.reasons_unscheduled(reader, &row.bead, None)?;
        strays.push(UnscheduledMember { convoy, bead: row.bead, reasons });
    }
    Ok(strays)
}

/// The result of feeding.
#[derive(Debug, Default)]
pub(crate) struct FeedResult {
    /// The beads that are scheduled now.
    pub scheduled: Vec<Context>,
    /// The beads that were refused, and why.
    pub refused: Vec<(BeadId, OperationError)>,
}

/// Schedules those of them that are stranded, as they were scheduled last, or as their convoy says. Each is checked as
/// a sling is, and never forced. A second caller finds a context and does nothing.
pub(crate) fn feed_in(
    writer: &mut Writer<'_>,
    snapshot: &SchedulingSnapshot,
    strays: &[UnscheduledMember],
) -> Result<FeedResult> {
    let mut fed = FeedResult::default();
    let mut convoys: HashMap<&BeadId, SlingParameters> = HashMap::new();
    let mut new = Vec::new();
    for UnscheduledMember { convoy, bead, .. } in strays.iter().filter(|stray| stray.is_stranded())
    {
        let rig = match check::rig(snapshot, bead, None, &SlingOptions::default()).and_then(|rig| {
            check::check_bead(snapshot, bead, rig, None, (None, None), &SlingOptions::default())
        }) {
            Ok(ScheduleVerdict::Go(rig)) => rig,
            Ok(ScheduleVerdict::Nothing(_)) => continue,
            Err(error @ OperationError::Store(_)) => return Err(error),
            Err(error) => {
                fed.refused.push((bead.id.clone(), error));
                continue;
            }
        };
        let latest = writer.latest_context(&bead.id)?;
        let parameters = match (&latest, convoys.entry(convoy)) {
            (Some(latest), _) => latest.parameters.clone(),
            (None, Entry::Occupied(known)) => known.get().clone(),
            (None, Entry::Vacant(unknown)) => unknown.insert(said_by(writer, convoy)?).clone(),
        };
        new.push(NewContext {
            account: latest.and_then(|latest| latest.account),
            parameters: SlingParameters { convoy: Some(convoy.clone()), ..parameters },
            ..NewContext::plain(
                bead.id.clone(),
                rig.slug.clone(),
                bead.priority,
                ContextOrigin::Convoy,
            )
        });
    }
    if !new.is_empty() {
        fed.scheduled = writer.insert_contexts(new)?;
    }
    Ok(fed)
}

/// How a convoy wants the work of its beads done.
fn said_by(reader: &Reader<'_>, convoy: &BeadId) -> Result<SlingParameters> {
    let (merge, base_branch) = match reader.bead(convoy)? {
        Some(convoy) => merging_of(&convoy)?,
        None => (None, None),
    };
    Ok(SlingParameters {
        formula: Some(DEFAULT_FORMULA.to_owned()),
        merge,
        base_branch,
        ..SlingParameters::default()
    })
}
