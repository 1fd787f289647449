//! What follows from a transaction within itself: found out from its events, so that no change can forget it.

use gt_core::settings::Layers;
use gt_core::{EventKind, NewEvent, RigState, Timestamp};
use gt_store::{Unscheduled, Writer};

use crate::Result;
use crate::dispatch::{Caller, Overrides, Scene, Surroundings};
use crate::outbox::tell_news;
use crate::schedule::{feed_in, strays};

/// Does what follows: a convoy or an epic that something has joined or left lands, or is open again; what is open again in a
/// convoy that is under way, and what a rig was in the way of, is scheduled; and people are told what needs them. `files` are
/// the layers of settings below the store's.
pub(crate) fn follow(writer: &mut Writer<'_>, files: &Layers, now: Timestamp) -> Result<()> {
    writer.as_consequence(|writer| follow_in(writer, files, now))
}

fn follow_in(writer: &mut Writer<'_>, files: &Layers, now: Timestamp) -> Result<()> {
    for (container, joined) in writer.take_recounted() {
        if let Some(tally) = writer.convoy_tally(&container)? {
            writer.settle_convoy(&tally, joined)?;
        }
    }
    feed(writer, files, now)?;
    tell_news(writer, files)
}

fn feed(writer: &mut Writer<'_>, files: &Layers, now: Timestamp) -> Result<()> {
    let concerns = |event: &&NewEvent| {
        matches!(event.kind, EventKind::Reopened | EventKind::RigChanged | EventKind::RigAdded)
    };
    let events: Vec<NewEvent> = writer.recorded().iter().filter(concerns).cloned().collect();
    let mut scene: Option<Scene> = None;
    for event in &events {
        let which = match (&event.kind, &event.bead, &event.rig) {
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
        let scene = match &mut scene {
            Some(scene) => scene,
            unread => {
                // Whether anything may be scheduled does not depend on this machine.
                let around = Surroundings { files: files.clone(), ..Surroundings::default() };
                unread.insert(Scene::read(
                    writer,
                    &around,
                    &Overrides::default(),
                    Caller::Daemon,
                    now,
                )?)
            }
        };
        let found = strays(writer, scene, which)?;
        feed_in(writer, scene, &found)?;
    }
    Ok(())
}
