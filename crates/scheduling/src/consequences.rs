//! Consequences of a transaction within itself: derived from its events, so that no change can forget them.

use gt_core::merging::{MergeRequest, RequestState};
use gt_core::settings::Layers;
use gt_core::{BeadChangeKind, EventKind, NewEvent, RigState, Status, Timestamp};
use gt_store::{Unscheduled, Writer};

use crate::dispatch::{DispatchInputs, SchedulingSnapshot};
use crate::schedule::{feed_in, strays};
use gt_beads::containers::update_containers_in;
use gt_beads::merge_requests::cancel_request_in;
use gt_beads::outbox::write_event_notices;
use gt_town::town::{CommitFollower, CommitHook};
use gt_town::{Result, Town};

/// Carries out the consequences of every change of a town.
#[derive(Debug, Clone, Copy, Default)]
pub struct Consequences;

impl CommitHook for Consequences {
    fn begin(&self, town: &Town) -> Option<Box<dyn CommitFollower>> {
        Some(Box::new(ConsequenceFollower { files: town.file_settings(), now: town.now() }))
    }
}

struct ConsequenceFollower {
    /// The layers of settings below the store's.
    files: Layers,
    now: Timestamp,
}

impl CommitFollower for ConsequenceFollower {
    /// Merge requests whose repair was given up wait for a person or are over. Containers whose members changed close, land or
    /// open again. Beads that opened again in a launched convoy, or whose rig serves again, are scheduled. People are told what
    /// needs them.
    fn before_commit(&mut self, writer: &mut Writer<'_>) -> Result<()> {
        writer.as_consequence(|writer| follow_in(writer, &self.files, self.now))
    }
}

fn follow_in(writer: &mut Writer<'_>, files: &Layers, now: Timestamp) -> Result<()> {
    end_given_up_repairs(writer)?;
    update_containers_in(writer, files)?;
    feed(writer, files, now)?;
    write_event_notices(writer, files)
}

/// A merge request that goes back to its author is repaired, waits for a person, or is over. If its repair is given up by
/// a person, so is the request; if it cannot go on, its bead is blocked.
fn end_given_up_repairs(writer: &mut Writer<'_>) -> Result<()> {
    let given_up = |event: &NewEvent| match event.kind() {
        EventKind::Unscheduled | EventKind::RunCancelled => Some((event.bead.clone()?, true)),
        EventKind::CircuitBroken | EventKind::Quarantined | EventKind::RunLost => {
            Some((event.bead.clone()?, false))
        }
        _ => None,
    };
    let given_up: Vec<_> = writer.recorded().iter().filter_map(given_up).collect();
    for (bead, is_by_person) in given_up {
        let request = writer.open_merge_request(&bead)?;
        let is_back = |request: &MergeRequest| {
            matches!(request.state, RequestState::Conflict | RequestState::Failed)
        };
        if !request.as_ref().is_some_and(is_back)
            || writer.live_run(&bead)?.is_some()
            || writer.open_context(&bead)?.is_some()
        {
            continue;
        }
        let Some(old) = writer.bead(&bead)?.filter(|bead| bead.status == Status::Open) else {
            continue;
        };
        if is_by_person {
            cancel_request_in(writer, &bead, "its repair was cancelled")?;
            continue;
        }
        let mut new = old.clone();
        new.enter(Status::Blocked, writer.now());
        new.updated_at = writer.now().of_change_after(old.updated_at);
        writer.save_bead(&old, &new, BeadChangeKind::StatusChanged)?;
    }
    Ok(())
}

fn feed(writer: &mut Writer<'_>, files: &Layers, now: Timestamp) -> Result<()> {
    let concerns = |event: &&NewEvent| {
        matches!(event.kind(), EventKind::Reopened | EventKind::RigChanged | EventKind::RigAdded)
    };
    let events: Vec<NewEvent> = writer.recorded().iter().filter(concerns).cloned().collect();
    let mut snapshot: Option<SchedulingSnapshot> = None;
    for event in &events {
        let which = match (event.kind(), &event.bead, &event.rig) {
            (EventKind::Reopened, Some(bead), _) => {
                let opened = writer.bead(bead)?;
                let is_convoy = opened.is_some_and(|opened| opened.issue_type.is_convoy());
                if is_convoy { Unscheduled::In(bead) } else { Unscheduled::Bead(bead) }
            }
            (EventKind::RigChanged | EventKind::RigAdded, _, Some(rig)) => {
                let serves =
                    writer.rig(rig.as_str())?.is_some_and(|rig| rig.state != RigState::Docked);
                if !serves {
                    continue;
                }
                Unscheduled::Of(rig)
            }
            _ => continue,
        };
        if writer.unscheduled_members(which)?.is_empty() {
            continue;
        }
        let snapshot = match &mut snapshot {
            Some(snapshot) => snapshot,
            unread => {
                // Whether anything may be scheduled does not depend on this machine.
                let inputs = DispatchInputs { files: files.clone(), ..DispatchInputs::default() };
                unread.insert(SchedulingSnapshot::read_for_daemon(writer, &inputs, now)?)
            }
        };
        let found = strays(writer, snapshot, which)?;
        feed_in(writer, snapshot, &found)?;
    }
    Ok(())
}
