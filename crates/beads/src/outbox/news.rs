//! The news for people, taken from the events of a transaction, so that no change can forget it.

use std::time::Duration;

use gt_core::schedule::{Origin, RunState};
use gt_core::settings::Layers;
use gt_core::time::format_duration;
use gt_core::{EventKind, Json, NewEvent};
use gt_store::{Reader, Writer};

use super::{NewNotice, notify_in};
use crate::convoys::tell_watchers;
use gt_town::Result;
use gt_town::settings::layers_over;

/// Writes a notice for every change of this transaction that needs a person. `files` are the layers of settings below
/// the store's.
pub fn tell_news(writer: &mut Writer<'_>, files: &Layers) -> Result<()> {
    let events = writer.recorded();
    // A run that failed and is tried again needs no person; one that was the last closes its bead.
    let closes = |failed: &NewEvent| {
        let closed =
            |event: &NewEvent| event.kind == EventKind::Closed && event.bead == failed.bead;
        events.iter().any(closed)
    };
    let is_told = |event: &NewEvent| event.kind != EventKind::RunFailed || closes(event);
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
        let kind = *kind;
        let said = |field: &str| event.payload.string_field(field).unwrap_or_default();
        let number = |field: &str| {
            let fields = event.payload.fields().unwrap_or_default();
            let value = fields.into_iter().find(|(name, _)| name == field);
            value.map(|(_, value)| value.to_string()).unwrap_or_default()
        };
        let bead = event.bead.as_ref().map(ToString::to_string).unwrap_or_default();
        let run = event.run.as_ref().map(ToString::to_string);
        // A context and a run are given up once, and a message is sent once; so the key is the same each time.
        let about = match event.kind {
            EventKind::HelpWanted => said("message"),
            EventKind::TreeDue => said("path"),
            // A convoy may open again, and land again.
            EventKind::ConvoyLanded => format!("{bead}:{}", number("landing")),
            // A worker may be silent more than once, and wait more than once.
            EventKind::RunSilent | EventKind::RunGoesOn | EventKind::RunBlocked => {
                format!("{}:{}", run.clone().unwrap_or_default(), said("since"))
            }
            _ => run.clone().unwrap_or_else(|| said("context")),
        };
        let why = [said("why"), said("reason")].into_iter().find(|text| !text.is_empty());
        let why = why.map(|why| format!(": {why}")).unwrap_or_default();
        let message = match event.kind {
            EventKind::RunFailed => {
                format!("{bead} failed{why}. Try it again with gt scheduler retry {bead}")
            }
            EventKind::RunBlocked => format!(
                "{bead} is blocked{why}. gt work show {bead} says more; gt work update {bead} --status in_progress lets {} \
                 go on, and --status queued gives it to another",
                said("pulled_by")
            ),
            EventKind::RunDone if kind == "completed" => {
                format!("{bead} is completed by {}{why}", said("pulled_by"))
            }
            EventKind::Parked => {
                let (kind, name) = (said("kind"), said("name"));
                format!(
                    "nothing is started with the {kind} {name} until {}{why}. Put it right, then gt deacon \
                     resume {kind} {name}",
                    said("until")
                )
            }
            EventKind::Unparked => {
                format!(
                    "the {} {} works again{}",
                    said("kind"),
                    said("name"),
                    found_by(run.as_ref())
                )
            }
            EventKind::RunSilent => format!(
                "{bead} has said nothing since {}. See gt peek {bead}; gt nudge {bead} \"…\" speaks to its worker, and \
                 gt run cancel {bead} ends it",
                said("since")
            ),
            EventKind::RunGoesOn => {
                format!("{bead} goes on; it had said nothing since {}", said("since"))
            }
            EventKind::Escalated => format!(
                "{bead} was lost too often and is not tried again. See gt why {bead}, then gt scheduler \
                 retry {bead}"
            ),
            EventKind::HelpWanted => format!(
                "{} asks for a person ({}): {}. Read it with gt mail read {}",
                if bead.is_empty() { said("from") } else { bead },
                said("severity"),
                said("subject"),
                said("message")
            ),
            EventKind::ConvoyLanded => landing_text(&bead, event),
            EventKind::RunDone => format!(
                "{bead} is done after all ({}); it had failed before",
                run.clone().unwrap_or_default()
            ),
            EventKind::TreeDue => {
                let number = said("number");
                format!(
                    "the tree {} is deleted for good after {}. Bring it back with gt polecat undelete {number}",
                    said("path"),
                    said("until")
                )
            }
            _ => format!("{bead} could not be started{why}. See gt why {bead}"),
        };
        let notice = NewNotice {
            key: format!("{kind}:{about}"),
            kind,
            bead: event.bead.as_ref(),
            rig: event.rig.as_ref(),
            run: event.run.as_ref(),
            message,
            details: Json::object(&event.payload.fields().unwrap_or_default()),
        };
        if event.kind == EventKind::ConvoyLanded
            && let Some(convoy) =
                event.bead.as_ref().map(|id| writer.bead(id)).transpose()?.flatten()
        {
            tell_watchers(writer, &convoy, &notice.message)?;
        }
        notify_in(writer, &settings, &notice)?;
    }
    Ok(())
}

/// The text about a convoy that has landed.
fn landing_text(convoy: &str, event: &NewEvent) -> String {
    let fields = event.payload.fields().unwrap_or_default();
    let number = |name: &str| -> u64 {
        let value = fields.iter().find(|(field, _)| field == name);
        value.and_then(|(_, value)| value.as_str().parse().ok()).unwrap_or(0)
    };
    let (members, failed, open) = (number("members"), number("failed"), number("open"));
    let rest = match (failed, open) {
        (0, 0) => "none failed".to_owned(),
        (failed, 0) => format!("{failed} failed"),
        (failed, open) => format!("{failed} failed and {open} are open"),
    };
    let done = members.saturating_sub(failed).saturating_sub(open);
    let title = event.payload.string_field("title").unwrap_or_default();
    let took = format_duration(Duration::from_secs(number("seconds")));
    format!(
        "{convoy} \"{title}\" has landed after {took}: {done} of {members} beads are done, {rest}. gt convoy status \
         {convoy} shows them"
    )
}

/// Whether a run has succeeded after an earlier one failed, so that people were told of the failure.
fn has_recovered(reader: &Reader<'_>, event: &NewEvent) -> Result<bool> {
    let Some(run) = event.run.as_ref().filter(|run| run.epoch > 1) else { return Ok(false) };
    if event.kind != EventKind::RunDone {
        return Ok(false);
    }
    let mut runs = reader.runs_of(&run.bead)?.into_iter();
    let Some(this) = runs.find(|one| one.id == *run) else { return Ok(false) };
    // A run that is tried again by itself needs no person.
    let by_hand =
        reader.context_by_number(this.context)?.is_some_and(|context| match context.origin {
            Origin::Sling | Origin::Queue | Origin::Retry | Origin::Convoy => true,
            Origin::Recovery | Origin::Adopted => false,
        });
    let before = runs.next().map(|before| before.state);
    Ok(by_hand && matches!(before, Some(RunState::Failed | RunState::Lost)))
}

/// The kind of news of an event, if people are told of it.
fn kind_of(event: &NewEvent) -> Option<&'static str> {
    match event.kind {
        EventKind::CircuitBroken => Some("circuit-broken"),
        EventKind::Quarantined => Some("quarantined"),
        EventKind::Escalated => Some("escalated"),
        EventKind::RunFailed => Some("failed"),
        EventKind::RunBlocked => Some("blocked"),
        // A user who dispatches work to agents elsewhere has nothing else to hear it by.
        EventKind::RunDone if has(event, "pulled_by") => Some("completed"),
        EventKind::HelpWanted => Some("help-wanted"),
        EventKind::TreeDue => Some("tree-due"),
        EventKind::ConvoyLanded => Some("convoy-landed"),
        EventKind::RunSilent => Some("stalled"),
        EventKind::RunGoesOn => Some("goes-on"),
        // People are told once that something does not work, however often it is tried, and when it works again; not
        // of limits, which pass by themselves, and not of their own actions.
        EventKind::Parked if !has(event, "again") => Some("parked"),
        EventKind::Unparked if event.run.is_some() && !has(event, "limit") => Some("unparked"),
        _ => None,
    }
}

fn has(event: &NewEvent, field: &str) -> bool {
    event.payload.fields().is_some_and(|fields| fields.iter().any(|(name, _)| name == field))
}

fn found_by(run: Option<&String>) -> String {
    run.map(|run| format!("; {run} found out")).unwrap_or_default()
}
