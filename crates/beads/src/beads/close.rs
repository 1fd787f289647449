//! Ending a bead, and opening it again.

use gt_core::bead::check_text;
use gt_core::decide::Verb;
use gt_core::schedule::{Run, RunEnd, RunId, RunState};
use gt_core::{Bead, BeadChangeKind, BeadId, Json, Outcome, Status};
use gt_store::Writer;

use super::contexts::clear;
use super::status::{AppliedVerb, apply, apply_with_end, finish};
use crate::containers::update_containers_in;
use crate::lookup::{resolve_in, resolve_shown_id_in};
use crate::run_records::close_context_of;
use gt_town::{OperationError, Result, Town};

/// How beads are to be closed.
#[derive(Debug, Clone, Default)]
pub struct Close {
    /// Why; the last one serves for every further bead.
    pub reasons: Vec<String>,
    /// How it ended; nothing said means success.
    pub outcome: Option<Outcome>,
    /// Past the guards.
    pub force: bool,
    /// The session of the agent that closes.
    pub session: Option<String>,
}

impl Close {
    /// Refuses reasons that a bead cannot keep.
    pub fn check(&self) -> Result<()> {
        self.reasons.iter().try_for_each(|reason| Ok(check_text("reason", reason)?))
    }

    fn reason_of(&self, at: usize) -> &str {
        self.reasons.get(at).or(self.reasons.last()).map_or(DEFAULT_REASON, String::as_str)
    }

    /// How a run ends whose worker closes its bead like this.
    fn end_of_run(&self, at: usize) -> RunEnd {
        let state = match self.outcome {
            None | Some(Outcome::Success) => RunState::Done,
            Some(Outcome::Failed) => RunState::Failed,
            Some(Outcome::Cancelled) => RunState::Cancelled,
        };
        RunEnd::without_status(state, self.reason_of(at))
    }
}

/// A bead that was closed.
#[derive(Debug, Clone)]
pub struct ClosedBead {
    /// The bead.
    pub bead: Bead,
    /// The beads that became ready by it.
    pub unblocked: Vec<BeadId>,
    /// The molecules that ended with it.
    pub also_closed: Vec<BeadId>,
    /// The run that was cancelled for it in the store. The caller ends its processes.
    pub cancelled: Option<Run>,
}

const DEFAULT_REASON: &str = "Closed";

/// Closes each bead, or says why not. A context is taken out of the queue. If one of the names means no bead, nothing is closed.
pub fn close(town: &Town, inputs: &[String], how: &Close) -> Result<Vec<Result<ClosedBead>>> {
    how.check()?;
    let ids = town.read(|reader| {
        let resolved = inputs.iter().map(|input| resolve_shown_id_in(town, reader, input));
        resolved.collect::<Result<Vec<_>>>()
    })?;
    let (acting, files) = (town.acting_run(), town.file_settings());
    town.write_each(ids.iter().enumerate(), |writer, (at, id)| {
        let waiting = dependents_waiting(writer, id)?;
        let mut closed = close_in(writer, id, how, at, acting)?;
        // Here and not only before the commit, because the caller is told of it.
        let changed = update_containers_in(writer, &files)?.into_iter();
        let molecules = changed.filter(|container| container.issue_type.is_molecule());
        closed.also_closed = molecules.map(|molecule| molecule.id).collect();
        for id in waiting {
            if writer.bead(&id)?.is_some_and(|bead| bead.open_blockers == 0) {
                closed.unblocked.push(id);
            }
        }
        Ok(closed)
    })
}

/// Closes one bead or clears one context, the one at place `at` among those that are closed together. A run
/// that is cancelled for it still has processes to be ended. What follows for other beads is not in the answer.
pub fn close_in(
    writer: &mut Writer<'_>,
    id: &BeadId,
    how: &Close,
    at: usize,
    acting: Option<&RunId>,
) -> Result<ClosedBead> {
    let Some(bead) = writer.bead(id)? else {
        let context = writer.context(id.as_str())?;
        let context = context.ok_or_else(|| OperationError::NoBead(id.to_string()))?;
        let why = how.reasons.get(at).or(how.reasons.last());
        return clear(writer, &context, why.map_or("", String::as_str));
    };
    let verb = Verb::Close { force: how.force };
    let end = how.end_of_run(at);
    let AppliedVerb { old, mut new, kind, ended, cancelled } =
        apply_with_end(writer, &bead, &verb, "close", acting, &end)?;
    finish(&mut new, how.reason_of(at), how.outcome.or(ended.then_some(Outcome::Success)));
    if let Some(session) = &how.session {
        new.carried.retain(|(key, _)| key != "closed_by_session");
        new.carried.push(("closed_by_session".to_owned(), Json::string(session)));
    }
    new.updated_at = writer.now().of_change_after(old.updated_at);
    writer.save_bead(&old, &new, kind.unwrap_or(BeadChangeKind::Closed))?;
    close_context_of(writer, id)?;
    Ok(ClosedBead { bead: new, unblocked: Vec::new(), also_closed: Vec::new(), cancelled })
}

/// Open beads that a close of `id` may unblock: what waits for it or for its parents' parts.
fn dependents_waiting(writer: &Writer<'_>, id: &BeadId) -> Result<Vec<BeadId>> {
    let mut found = Vec::new();
    for target in std::iter::once(id.clone()).chain(writer.parents(id)?) {
        for edge in writer.edges_to(&target)? {
            let waits = edge.kind.can_block() && !found.contains(&edge.issue);
            let Some(bead) = (if waits { writer.bead(&edge.issue)? } else { None }) else {
                continue;
            };
            if bead.open_blockers > 0 && bead.status != Status::Closed {
                found.push(edge.issue);
            }
        }
    }
    Ok(found)
}

/// Opens each bead again, or says why not. `false` for one that is open already.
pub fn reopen(
    town: &Town,
    inputs: &[String],
    reason: Option<&str>,
) -> Result<Vec<Result<(Bead, bool)>>> {
    town.write_each(inputs, |writer, input| reopen_in(town, writer, input, reason))
}

/// Like [`reopen`], as a part of a larger transaction. `false` if the bead is open already.
pub fn reopen_in(
    town: &Town,
    writer: &mut Writer<'_>,
    input: &str,
    reason: Option<&str>,
) -> Result<(Bead, bool)> {
    let id = resolve_in(town, writer, input)?;
    let old = writer.bead(&id)?.ok_or_else(|| OperationError::NoBead(input.to_owned()))?;
    let applied = apply(writer, &old, &Verb::Reopen, "reopen", town.acting_run())?;
    let (mut new, Some(kind)) = (applied.new, applied.kind) else {
        return Ok((old, false));
    };
    new.defer_until = None;
    new.updated_at = writer.now().of_change_after(old.updated_at);
    writer.save_bead(&old, &new, kind)?;
    if let Some(reason) = reason {
        check_text("reason", reason)?;
        crate::notes::add_in(writer, &new, &format!("Reopened: {reason}"))?;
    }
    Ok((new, true))
}
