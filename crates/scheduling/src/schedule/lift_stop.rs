//! A bead that the end of its last run has stopped goes on when a person schedules it again.

use gt_core::schedule::{DoneStatus, Run, RunState};
use gt_core::{Bead, EventKind, Sender, Status};
use gt_store::{EventFilter, Writer};

use gt_beads::run_records::release_in;
use gt_town::Result;

/// Opens a bead that the end of its last run has blocked or put off, and takes the questions of its runs off the list: the
/// person who schedules it again has answered them. `false` if nothing of this kind stops it.
pub(super) fn lift_stop_of_run_in(writer: &mut Writer<'_>, bead: &Bead) -> Result<bool> {
    let Some(last) = writer.runs_of(&bead.id)?.into_iter().next() else { return Ok(false) };
    if !is_stopped_by(bead, &last) || is_changed_since(writer, &last)? {
        return Ok(false);
    }
    release_in(writer, &bead.id)?;
    for question in writer.unseen_escalations()? {
        let is_of_worker = matches!(question.from, Sender::Worker(_));
        if is_of_worker && question.bead.as_ref() == Some(&bead.id) {
            writer.message_seen(&question)?;
        }
    }
    Ok(true)
}

/// Whether the status of a bead was changed after the end of this run, by a person for instance.
fn is_changed_since(writer: &Writer<'_>, run: &Run) -> Result<bool> {
    let Some(ended_at) = run.ended_at else { return Ok(false) };
    let filter = EventFilter {
        bead: Some(run.id.bead.clone()),
        kinds: vec![EventKind::StatusChanged],
        ..EventFilter::default()
    };
    let last = writer.latest_events(&filter, 1)?;
    Ok(last.first().is_some_and(|event| event.at > ended_at))
}

/// Whether the status of a bead comes from the end of this run. A date that a person has set is not lifted.
fn is_stopped_by(bead: &Bead, run: &Run) -> bool {
    match (&bead.status, run.state) {
        (Status::Blocked, RunState::Failed | RunState::Lost) => true,
        (Status::Blocked, RunState::Cancelled) => run.said == Some(DoneStatus::Escalated),
        (Status::Deferred, RunState::Cancelled) => {
            run.said == Some(DoneStatus::Deferred) && bead.defer_until.is_none()
        }
        _ => false,
    }
}
