//! Asking the table of transitions whether an actor may do something to a bead.

use gt_core::decide::{
    LiveRun, TransitionFacts, Verb, VerbActor, VerbDecision, VerbRefusal, decide,
};
use gt_core::schedule::Run;
use gt_core::{Bead, BeadId, Status, Timestamp};
use gt_store::Reader;

use gt_town::{OperationError, Result, Town};

/// The answer of the table, and the live run that it is about.
pub struct BeadDecision {
    pub(crate) ruling: VerbDecision,
    /// The live run of the bead.
    pub run: Option<Run>,
}

/// Refuses a worker a change to data of its own bead when its run is over: such a change comes too late.
pub fn refuse_if_over(
    town: &Town,
    reader: &Reader<'_>,
    id: &BeadId,
    name: &'static str,
) -> Result<()> {
    let Some(acting) = town.acting_run().filter(|acting| acting.bead == *id) else {
        return Ok(());
    };
    let Some(bead) = reader.bead(id)? else { return Ok(()) };
    let speaker = VerbActor { name: &town.actor().name, run: Some(acting) };
    let answer = ask(reader, &bead, &Verb::Edit, speaker, town.now())?;
    let refused = |refusal| OperationError::Refused { verb: name, bead: bead.id.clone(), refusal };
    answer.map(drop).map_err(refused)
}

/// Asks the table.
pub fn ask(
    reader: &Reader<'_>,
    bead: &Bead,
    verb: &Verb,
    speaker: VerbActor<'_>,
    now: Timestamp,
) -> Result<std::result::Result<BeadDecision, VerbRefusal>> {
    let closes = matches!(verb, Verb::Close { .. });
    let blockers = if closes && bead.open_blockers > 0 {
        let facts = reader.blockers(&bead.id)?;
        [facts.open, facts.failed].concat()
    } else {
        Vec::new()
    };
    let run = reader.live_run(&bead.id)?;
    let request = reader.open_merge_request(&bead.id)?;
    let woken = *verb == Verb::Claim
        && bead.status == Status::Deferred
        && bead.defer_until.is_some_and(|at| at <= now);
    let facts = TransitionFacts {
        id: &bead.id,
        status: if woken { &Status::Open } else { &bead.status },
        assignee: &bead.assignee,
        issue_type: &bead.issue_type,
        pinned: bead.pinned,
        is_template: bead.is_template,
        has_open_children: closes && reader.has_open_children(&bead.id)?,
        blockers: &blockers,
        run: run.as_ref().and_then(LiveRun::of),
        request: request.as_ref().map(|request| &request.id),
    };
    let ruling = decide(verb, &facts, speaker);
    Ok(ruling.map(|ruling| BeadDecision { ruling, run }))
}
