//! Consequences of a transaction within itself: derived from its events, so that no change can forget them.

use gt_core::settings::Layers;
use gt_core::{EventKind, NewEvent, RigState, Timestamp};
use gt_store::{Unscheduled, Writer};

use crate::dispatch::{CycleCaller, DispatchInputs, SchedulingSnapshot};
use crate::schedule::{feed_in, strays};
use gt_beads::containers::settle_in;
use gt_beads::outbox::write_event_notices;
use gt_town::scheduler_settings::Overrides;
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
    /// Containers whose members changed close, land or open again; beads that opened again in a launched convoy, or whose
    /// rig serves again, are scheduled; people are told what needs them.
    fn before_commit(&mut self, writer: &mut Writer<'_>) -> Result<()> {
        writer.as_consequence(|writer| follow_in(writer, &self.files, self.now))
    }
}

fn follow_in(writer: &mut Writer<'_>, files: &Layers, now: Timestamp) -> Result<()> {
    settle_in(writer, files)?;
    feed(writer, files, now)?;
    write_event_notices(writer, files)
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
                unread.insert(SchedulingSnapshot::read(
                    writer,
                    &inputs,
                    &Overrides::default(),
                    CycleCaller::Daemon,
                    now,
                )?)
            }
        };
        let found = strays(writer, snapshot, which)?;
        feed_in(writer, snapshot, &found)?;
    }
    Ok(())
}
