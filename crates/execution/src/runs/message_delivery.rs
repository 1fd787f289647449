//! Delivering nudges to workers that have a session.

use std::collections::HashSet;
use std::time::Duration;

use gt_core::schedule::{Run, RunState, WorkerPlace};
use gt_core::{ExecutorKind, Message, MessageAddress};
use gt_executors::runs::{RunFiles, supervisor_at_work};
use gt_executors::tmux::{Capture, Confirmation, Pasted, Tmux, TmuxError};
use gt_store::Reader;

use super::session_server;
use gt_beads::messages::delivered;
use gt_scheduling::processes::{LocalProcesses, ProcessProbe as _};
use gt_scheduling::runtimes;
use gt_town::{Result, Town};

/// How long a session may take to show typed text.
const SHOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// How many nudges one pass reads.
const NUDGES_MAX: usize = 100;

/// The state of the delivery of a nudge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NudgeDelivery {
    /// It was typed into this session, which shows it.
    Session(String),
    /// It waits for its recipient to look, for this reason.
    Waits(String),
}

/// Types a nudge into the session of its receiver, if that has one and can read it there. It is delivered only if the
/// session shows it; else it waits, and is tried again.
pub fn deliver(town: &Town, message: &Message) -> Result<NudgeDelivery> {
    let waits = |why: &str| Ok(NudgeDelivery::Waits(why.to_owned()));
    let Some(run) = town.read(|reader| worker_for(reader, &message.to))? else {
        return waits("no worker is there now");
    };
    if run.executor != ExecutorKind::Tmux {
        return waits("its worker has no session");
    }
    if !run.is_on(LocalProcesses::of(town)?.host()) {
        return Ok(NudgeDelivery::Waits(format!("its worker is on {}", run.host_name())));
    }
    // A runtime that cannot be read is reported by the commands that need it.
    if !runtimes::named(town, &run.runtime).is_ok_and(|runtime| runtime.is_interactive) {
        return waits("its worker takes nothing while it works");
    }
    let files = RunFiles::of(&town.runs_directory(), &run.id.to_string());
    match type_into(town, &files, message) {
        Ok(TypingResult::Shown(session)) => {
            delivered(town, message.id)?;
            Ok(NudgeDelivery::Session(session))
        }
        Ok(TypingResult::Not(why)) => waits(why),
        Err(error) => Ok(NudgeDelivery::Waits(error.to_string())),
    }
}

/// Tries again to deliver the nudges that no session has shown yet. Says how many were delivered.
pub fn deliver_waiting(town: &Town) -> Result<usize> {
    let waiting = town.read(|reader| Ok(reader.undelivered_nudges(NUDGES_MAX)?))?;
    let mut count = 0;
    let mut stuck: HashSet<&MessageAddress> = HashSet::new();
    for message in &waiting {
        // A receiver that cannot be given one cannot be given the next, and the order is kept.
        if stuck.contains(&message.to) {
            continue;
        }
        match deliver(town, message)? {
            NudgeDelivery::Session(_) => count += 1,
            NudgeDelivery::Waits(_) => {
                stuck.insert(&message.to);
            }
        }
    }
    Ok(count)
}

/// The run whose worker gets messages to this address.
fn worker_for(reader: &Reader<'_>, to: &MessageAddress) -> Result<Option<Run>> {
    let at_place = |place: &WorkerPlace| -> Result<Option<Run>> {
        let live = reader.live_runs()?;
        Ok(live.into_iter().find(|run| run.place.as_ref() == Some(place)))
    };
    let run = match to {
        MessageAddress::Work(bead) => reader.live_run(bead)?,
        MessageAddress::Place(place) => at_place(place)?,
        MessageAddress::Mayor
        | MessageAddress::Deacon
        | MessageAddress::Witness(_)
        | MessageAddress::Refinery(_) => None,
    };
    Ok(run.filter(|run| run.state != RunState::Starting))
}

/// The outcome of typing.
enum TypingResult {
    /// This session shows it.
    Shown(String),
    /// It was not typed, or not shown, for this reason.
    Not(&'static str),
}

fn type_into(
    town: &Town,
    files: &RunFiles,
    message: &Message,
) -> std::result::Result<TypingResult, TmuxError> {
    // Its holder keeps the keyboard for as long as it takes: its prompt, another message, or a fresh session.
    let Some(_keyboard) = files.try_keyboard()? else {
        return Ok(TypingResult::Not("another process is typing there"));
    };
    // Only the pane of the supervisor is typed into, and only while that has an agent: a shell that a person has
    // opened beside it, or in its place, is another pane.
    let Some(supervisor) = supervisor_at_work(files)? else {
        return Ok(TypingResult::Not("its worker is not there right now"));
    };
    let tmux = Tmux::of_town(&session_server(town));
    let Some(pane) = tmux.pane_of(supervisor)? else {
        return Ok(TypingResult::Not("its worker has no session"));
    };
    let mark = message.mark();
    let times = |screen: &str| screen.matches(&mark).count();
    let before = times(&tmux.capture_pane(&pane, Capture::Visible)?);
    let is_shown = |screen: &str| times(screen) > before;
    let confirmation = Confirmation {
        before_enter: Some(&is_shown),
        after_enter: &|_| true,
        limit: SHOWN_TIMEOUT,
    };
    let pasted = tmux.paste_into(&pane, message.spoken().as_bytes(), &confirmation)?;
    Ok(match pasted {
        Pasted::Confirmed => TypingResult::Shown(pane.session().to_owned()),
        Pasted::Unconfirmed { .. } => TypingResult::Not("its session does not show it"),
    })
}
