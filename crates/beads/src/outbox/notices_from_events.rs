//! The news for people, taken from the events of a transaction, so that no change can forget it.

use std::time::Duration;

use gt_core::cost::Spent;
use gt_core::event::{
    ConvoyTotals, HostChange, MessageDetails, ParkBegun, ParkEnded, TreeDeadline,
};
use gt_core::schedule::{ContextOrigin, RunState};
use gt_core::settings::Layers;
use gt_core::time::format_duration;
use gt_core::{EventPayload, NewEvent};
use gt_store::{Reader, Writer};

use super::{NewNotice, notify_in};
use crate::convoys::send_to_watchers;
use gt_town::Result;
use gt_town::settings::layers_over;

/// Writes a notice for every change of this transaction that needs a person. `files` are the layers of settings below
/// the store's.
pub fn write_event_notices(writer: &mut Writer<'_>, files: &Layers) -> Result<()> {
    let events = writer.recorded();
    // A run that failed and is tried again needs no person; one that was the last closes its bead.
    let closes = |failed: &NewEvent| {
        let closed = |event: &NewEvent| {
            matches!(event.payload, EventPayload::Closed(_)) && event.bead == failed.bead
        };
        events.iter().any(closed)
    };
    let is_told =
        |event: &NewEvent| !matches!(event.payload, EventPayload::RunFailed(_)) || closes(event);
    let mut news: Vec<(&'static str, NewEvent)> = Vec::new();
    for event in events.iter().filter(|event| is_told(event)) {
        let kind = match kind_of(event) {
            None if has_recovered(writer, event)? => Some("recovered"),
            kind => kind,
        };
        news.extend(kind.map(|kind| (kind, event.clone())));
    }
    if news.is_empty() {
        return Ok(());
    }
    let settings = layers_over(files, writer)?;
    for (kind, event) in &news {
        let spent = spent(writer, event)?;
        let notice = NewNotice {
            key: format!("{kind}:{}", subject(event)),
            kind,
            bead: event.bead.as_ref(),
            rig: event.rig.as_ref(),
            run: event.run.as_ref(),
            message: message(kind, event, &spent),
            details: event.payload.to_json()?,
            spent,
        };
        if matches!(event.payload, EventPayload::ConvoyLanded(_))
            && let Some(convoy) =
                event.bead.as_ref().map(|id| writer.bead(id)).transpose()?.flatten()
        {
            send_to_watchers(writer, &convoy, &notice.message)?;
        }
        notify_in(writer, &settings, &notice)?;
    }
    Ok(())
}

/// The usage of work that has ended: of the run, of all runs of a bead that is over, or of a convoy.
fn spent(reader: &Reader<'_>, event: &NewEvent) -> Result<Spent> {
    Ok(match (&event.payload, &event.bead, &event.run) {
        (EventPayload::ConvoyLanded(_), Some(convoy), _) => reader.spent_by_members(convoy)?,
        (EventPayload::OverLimit(_), _, Some(run)) => {
            reader.spent_by_runs(&run.bead, run.epoch..=run.epoch)?
        }
        (
            EventPayload::RunFailed(_) | EventPayload::RunDone(_) | EventPayload::Escalated(_),
            Some(bead),
            _,
        ) => reader.spent_by_runs(bead, 0..=u32::MAX)?,
        _ => Spent::default(),
    })
}

/// The thing that a notice is about. A context and a run are given up once, and a message is sent once; so the key is
/// the same each time.
fn subject(event: &NewEvent) -> String {
    let run = || event.run.as_ref().map(ToString::to_string).unwrap_or_default();
    match &event.payload {
        EventPayload::HelpWanted(message) => message.message.clone(),
        EventPayload::TreeDue(tree) => tree.path.clone(),
        EventPayload::QueueChanged(queue) => {
            let rig = event.rig.as_ref().map(ToString::to_string).unwrap_or_default();
            format!("{rig}/{}:{}:{}", queue.target, queue.red_commit, queue.red_check)
        }
        // A host may be gone more than once, with other runs.
        EventPayload::HostChanged(host) => format!("{}:{}", host.host, host.runs.join(",")),
        // A convoy may open again, and land again.
        EventPayload::ConvoyLanded(totals) => format!("{}:{}", bead_of(event), totals.landing),
        // A worker may be silent more than once, and wait more than once.
        EventPayload::RunSilent(silent) | EventPayload::RunGoesOn(silent) => {
            format!("{}:{}", run(), silent.since)
        }
        EventPayload::RunBlocked(waits) => format!("{}:{}", run(), waits.since),
        EventPayload::CircuitBroken(ended) | EventPayload::Quarantined(ended) => {
            ended.context.clone()
        }
        _ => run(),
    }
}

fn bead_of(event: &NewEvent) -> String {
    event.bead.as_ref().map(ToString::to_string).unwrap_or_default()
}

/// The text of a notice of this kind.
fn message(kind: &str, event: &NewEvent, spent: &Spent) -> String {
    let bead = bead_of(event);
    let run = event.run.as_ref().map(ToString::to_string);
    let because = |why: &str| if why.is_empty() { String::new() } else { format!(": {why}") };
    let cost = if spent.is_nothing() { String::new() } else { format!(" ({spent})") };
    match &event.payload {
        EventPayload::RunFailed(ended) => {
            let why = because(&ended.reason);
            format!("{bead} failed{cost}{why}. Try it again with gt scheduler retry {bead}")
        }
        EventPayload::RunBlocked(waits) => format!(
            "{bead} is blocked{}. gt work show {bead} says more; gt work update {bead} --status in_progress lets {} \
             go on, and --status queued gives it to another",
            because(&waits.why),
            waits.pulled_by
        ),
        EventPayload::RunDone(ended) if kind == "completed" => {
            let agent = ended.pulled_by.as_deref().unwrap_or_default();
            format!("{bead} is completed by {agent}{cost}{}", because(&ended.reason))
        }
        EventPayload::RunDone(_) => {
            let run = run.unwrap_or_default();
            format!("{bead} is done after all ({run}){cost}; it had failed before")
        }
        EventPayload::Parked(ParkBegun { kind, name, reason, until, .. }) => {
            let until = until.map(|until| until.to_string()).unwrap_or_default();
            format!(
                "nothing is started with the {kind} {name} until {until}{}. Put it right, then gt deacon \
                 resume {kind} {name}",
                because(reason)
            )
        }
        EventPayload::Unparked(ParkEnded { kind, name, .. }) => {
            let found_by = run.map(|run| format!("; {run} found out")).unwrap_or_default();
            format!("the {kind} {name} works again{found_by}")
        }
        EventPayload::RunSilent(silent) => format!(
            "{bead} has said nothing since {}. See gt peek {bead}; gt nudge {bead} \"…\" speaks to its worker, and \
             gt run cancel {bead} ends it",
            silent.since
        ),
        EventPayload::RunGoesOn(silent) => {
            format!("{bead} goes on; it had said nothing since {}", silent.since)
        }
        EventPayload::Escalated(_) => format!(
            "{bead} was lost too often{cost} and is not tried again. See gt why {bead}, then gt scheduler \
             retry {bead}"
        ),
        EventPayload::OverLimit(over) => {
            let run = run.unwrap_or_default();
            format!(
                "{run} was over its limit of {} and was ended{cost}; its work is kept. See gt run log {run}, then gt \
                 scheduler retry {bead}",
                over.limit
            )
        }
        EventPayload::HelpWanted(MessageDetails { message, from, subject, severity, .. }) => {
            format!(
                "{} asks for a person ({}): {subject}. Read it with gt mail read {message}",
                if bead.is_empty() { from } else { &bead },
                severity.as_deref().unwrap_or_default(),
            )
        }
        EventPayload::QueueChanged(queue) => {
            let rig = event.rig.as_ref().map(ToString::to_string).unwrap_or_default();
            format!(
                "the check {} fails on {} of {rig} itself, and nothing lands there. Mend it and push, or let the one \
                 request land that mends it: gt mq top <merge request> --fix. gt mq list shows them",
                queue.red_check, queue.target
            )
        }
        EventPayload::HostChanged(host) => host_text(host),
        EventPayload::ConvoyLanded(totals) => landing_text(&bead, totals, &cost),
        EventPayload::TreeDue(TreeDeadline { path, number, until, .. }) => format!(
            "the tree {path} is deleted for good after {until}. Bring it back with gt polecat undelete {number}"
        ),
        EventPayload::CircuitBroken(ended) | EventPayload::Quarantined(ended) => {
            let why = ended.why.as_deref().unwrap_or(&ended.reason);
            format!("{bead} could not be started{}. See gt why {bead}", because(why))
        }
        _ => format!("{bead} could not be started. See gt why {bead}"),
    }
}

/// The text about a host that is gone, or is back.
fn host_text(host: &HostChange) -> String {
    let (name, runs) = (&host.name, host.runs.join(", "));
    if host.new == "gone" {
        return format!(
            "the host {name} is gone. Its runs are lost and start elsewhere, at no cost of an attempt: {runs}. gt host list \
             shows the hosts"
        );
    }
    let saved = match host.saved.as_slice() {
        [] => "none of them had unsaved work".to_owned(),
        saved => format!("the work of {} is saved (gt rescue list)", saved.join(", ")),
    };
    format!("the host {name} is back, and has ended what was left of {runs}; {saved}")
}

/// The text about a convoy that has landed.
fn landing_text(convoy: &str, totals: &ConvoyTotals, cost: &str) -> String {
    let ConvoyTotals { title, members, failed, open, seconds, .. } = totals;
    let rest = match (failed, open) {
        (0, 0) => "none failed".to_owned(),
        (failed, 0) => format!("{failed} failed"),
        (failed, open) => format!("{failed} failed and {open} are open"),
    };
    let done = members.saturating_sub(*failed).saturating_sub(*open);
    let took = format_duration(Duration::from_secs(*seconds));
    format!(
        "{convoy} \"{title}\" has landed after {took}{cost}: {done} of {members} beads are done, {rest}. gt convoy status \
         {convoy} shows them"
    )
}

/// Whether a run has succeeded after an earlier one failed, so that people were told of the failure.
fn has_recovered(reader: &Reader<'_>, event: &NewEvent) -> Result<bool> {
    let Some(run) = event.run.as_ref().filter(|run| run.epoch > 1) else { return Ok(false) };
    if !matches!(event.payload, EventPayload::RunDone(_)) {
        return Ok(false);
    }
    let mut runs = reader.runs_of(&run.bead)?.into_iter();
    let Some(this) = runs.find(|one| one.id == *run) else { return Ok(false) };
    // A run that is tried again by itself needs no person.
    let by_hand =
        reader.context_by_number(this.context)?.is_some_and(|context| match context.origin {
            ContextOrigin::Sling
            | ContextOrigin::Queue
            | ContextOrigin::Retry
            | ContextOrigin::Convoy => true,
            ContextOrigin::Recovery | ContextOrigin::Repair | ContextOrigin::Adopted => false,
        });
    let before = runs.next().map(|before| before.state);
    Ok(by_hand && matches!(before, Some(RunState::Failed | RunState::Lost)))
}

/// The kind of news of an event, if people are told of it.
fn kind_of(event: &NewEvent) -> Option<&'static str> {
    match &event.payload {
        EventPayload::CircuitBroken(_) => Some("circuit-broken"),
        EventPayload::Quarantined(_) => Some("quarantined"),
        EventPayload::Escalated(_) => Some("escalated"),
        EventPayload::OverLimit(_) => Some("over-limit"),
        EventPayload::RunFailed(_) => Some("failed"),
        EventPayload::RunBlocked(_) => Some("blocked"),
        // A user who dispatches work to agents elsewhere has nothing else to hear it by.
        EventPayload::RunDone(ended) if ended.pulled_by.is_some() => Some("completed"),
        EventPayload::HelpWanted(_) => Some("help-wanted"),
        EventPayload::QueueChanged(queue) if !queue.red_commit.is_empty() => Some("target-red"),
        EventPayload::HostChanged(host) if host.new == "gone" && !host.runs.is_empty() => {
            Some("host-gone")
        }
        EventPayload::HostChanged(host) if host.new == "back" => Some("host-back"),
        EventPayload::TreeDue(_) => Some("tree-due"),
        EventPayload::ConvoyLanded(_) => Some("convoy-landed"),
        EventPayload::RunSilent(_) => Some("stalled"),
        EventPayload::RunGoesOn(_) => Some("goes-on"),
        // People are told once that something does not work, however often it is tried, and when it works again; not
        // of limits, which pass by themselves, and not of their own actions.
        EventPayload::Parked(park) if !park.again => Some("parked"),
        EventPayload::Unparked(park) if event.run.is_some() && !park.limit => Some("unparked"),
        _ => None,
    }
}
