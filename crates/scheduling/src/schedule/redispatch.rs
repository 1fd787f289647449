//! Scheduling a bead again without a new request: recovery's way through the checks of a sling.

use gt_core::Bead;
use gt_core::schedule::{Context, ContextOrigin, SlingParameters};
use gt_store::{NewContext, Writer};

use super::check::{self, ScheduleVerdict};
use super::expand::SlingTarget;
use super::request::SlingOptions;
use crate::dispatch::{DEFAULT_FORMULA, SchedulingSnapshot};
use gt_town::{OperationError, Result};

/// Schedules a bead as it was scheduled last, or as a plain sling would, in `rig` if one is named. It is checked as a
/// sling is, and never forced.
pub(crate) fn redispatch_in(
    writer: &mut Writer<'_>,
    snapshot: &SchedulingSnapshot,
    bead: &Bead,
    rig: Option<&str>,
    latest: Option<&Context>,
    attempts: u32,
) -> Result<Context> {
    let named = match (rig, latest) {
        (Some(name), _) => Some(writer.rig(name)?.ok_or_else(|| unknown_rig(snapshot, name))?),
        (None, Some(latest)) => snapshot.rig(&latest.rig).cloned(),
        (None, None) => None,
    };
    let place = latest.filter(|_| rig.is_none()).and_then(|latest| latest.place.clone());
    let target = named.map(|rig| match place {
        Some(place) => SlingTarget::Place(rig, place),
        None => SlingTarget::Rig(rig),
    });
    // A bead that was forced to a rig before may go there again.
    let was_forced = rig.is_none() && latest.is_some_and(|latest| latest.forced);
    let flags = SlingOptions { force: was_forced, ..SlingOptions::default() };
    let rig = check::rig(snapshot, bead, target.as_ref(), &flags)?;
    let never = SlingOptions::default();
    let rig = match check::check_bead(snapshot, bead, rig, target.as_ref(), (None, None), &never)? {
        ScheduleVerdict::Go(rig) => rig,
        ScheduleVerdict::Nothing(why) => return Err(OperationError::rejected(why)),
    };
    let parameters = latest.map_or_else(
        || SlingParameters {
            formula: Some(DEFAULT_FORMULA.to_owned()),
            ..SlingParameters::default()
        },
        |latest| latest.parameters.clone(),
    );
    let new = NewContext {
        place: target.as_ref().and_then(SlingTarget::place).cloned(),
        account: latest.and_then(|latest| latest.account.clone()),
        parameters,
        attempts,
        ..NewContext::plain(
            bead.id.clone(),
            rig.slug.clone(),
            bead.priority,
            ContextOrigin::Recovery,
        )
    };
    let made = writer.insert_contexts(vec![new])?.into_iter().next();
    made.ok_or_else(|| OperationError::rejected("nothing was scheduled"))
}

fn unknown_rig(snapshot: &SchedulingSnapshot, name: &str) -> OperationError {
    let mut known: Vec<&str> = snapshot.rigs().map(|rig| rig.slug.as_str()).collect();
    known.sort_unstable();
    OperationError::rejected(format!(
        "there is no rig \"{}\"; known rigs: {}",
        name.escape_debug(),
        known.join(", ")
    ))
}
