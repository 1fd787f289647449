//! A fresh session for the same run: same tree, same branch, same attempt.

use gt_core::decide::{SessionNews, sessions_in_vain};
use gt_core::message::{HANDOVER, MessageBody, MessageKind, NewMessage, Severity};
use gt_core::schedule::{Run, RunId, RunLimit, RunState};
use gt_core::{Event, EventKind, EventPayload, ExecutorKind, Message, MessageAddress, Sender};
use gt_executors::runs::{AskResult, RunFiles, ask_to_hand_over, has_listener};
use gt_store::{EventFilter, Reader};

use crate::runs::head_of;
use gt_beads::acting::chosen_run;
use gt_beads::messages::{MessageParty, escalate_in, needs_you_in, send_in, subject};
use gt_scheduling::processes::{LocalProcesses, ProcessProbe as _};
use gt_town::settings::{file_layers, layers_over};
use gt_town::{OperationError, Result, Town};

/// A note for the next session.
#[derive(Debug, Clone, Default)]
pub struct HandoffNote {
    /// The subject, in a line.
    pub subject: Option<String>,
    /// The text.
    pub body: String,
}

/// The outcome of handing a run over.
#[derive(Debug, Clone)]
pub struct HandedOff {
    /// The run.
    pub run: RunId,
    /// The limit that the run is over: then it ends, and no fresh session begins.
    pub over_limit: Option<RunLimit>,
    /// The note for the next session, or for the next run, if there is one.
    pub note: Option<Message>,
}

/// Ends the session of a worker's own run, or of the run that was asked for, and has a fresh one go on with it. The
/// note is stored before the supervisor is told. The caller is `role` if the environment says so.
pub fn hand_off(
    town: &Town,
    role: Option<&str>,
    asked: Option<&str>,
    note: &HandoffNote,
) -> Result<HandedOff> {
    let about = note.subject.as_deref().map(str::trim).filter(|about| !about.is_empty());
    let title = about.map_or_else(|| HANDOVER.to_owned(), |about| format!("{HANDOVER}: {about}"));
    let title = subject(&title)?;
    let body = MessageBody::parse(&note.body)?;
    let run = town.read(|reader| running(town, reader, asked))?;
    let files = reachable(town, &run)?;
    if !has_listener(&files).map_err(|source| control_failed(&files, source))? {
        return Err(no_supervisor(&run, None));
    }
    refuse_without_progress(town, &run)?;
    let note = if about.is_none() && body.is_empty() {
        None
    } else {
        Some(town.write(|writer| {
            let run = running(town, writer, asked)?;
            let party = MessageParty::of(town, writer, role)?;
            let to = MessageAddress::Work(run.id.bead.clone());
            if matches!(party, MessageParty::Worker(_)) {
                // The session has used the earlier notes, and leaves its own now.
                for earlier in writer.unseen_messages(&to, usize::MAX)? {
                    if earlier.is_handover() {
                        writer.message_seen(&earlier)?;
                    }
                }
            }
            let note = NewMessage {
                kind: MessageKind::Mail,
                from: party.sender(town),
                bead: Some(run.id.bead),
                to,
                subject: Some(title.clone()),
                body: body.clone(),
                topic: None,
                reply_to: None,
            };
            send_in(writer, note)
        })?)
    };
    if begin_fresh_session(town, &run.id)? {
        return Ok(HandedOff { run: run.id, over_limit: run.over_limit, note });
    }
    Err(no_supervisor(&run, note.as_ref()))
}

/// Refuses a handoff after several sessions without progress, which would go on for ever at a cost. A person is asked
/// instead, once.
fn refuse_without_progress(town: &Town, run: &Run) -> Result<()> {
    let files = file_layers(town)?;
    let (limit, rig, events) = town.read(|reader| {
        let limit = layers_over(&files, reader)?.worker_max_handoffs()?;
        let limit = usize::try_from(limit).unwrap_or(0);
        let filter = EventFilter {
            bead: Some(run.id.bead.clone()),
            kinds: vec![EventKind::HandedOver, EventKind::StepDone],
            ..EventFilter::default()
        };
        let events = if limit == 0 { Vec::new() } else { reader.latest_events(&filter, limit)? };
        Ok((limit, reader.rig(run.rig.as_str())?, events))
    })?;
    let own = run.id.to_string();
    let is_own = |event: &&Event| event.run.as_deref() == Some(own.as_str());
    let news: Vec<SessionNews> = events
        .iter()
        .rev()
        .filter(is_own)
        .map(|event| match event.details() {
            EventPayload::HandedOver(begun) => SessionNews::Begun(begun.head),
            _ => SessionNews::StepDone,
        })
        .collect();
    let head = rig.map(|rig| head_of(town, &rig, run)).unwrap_or_default();
    if limit == 0 || sessions_in_vain(&news, &head) < limit {
        return Ok(());
    }
    let (id, bead) = (&run.id, &run.id.bead);
    let what = format!("{id} was handed over {limit} times without a commit or a step done");
    town.write(|writer| {
        let asks = needs_you_in(writer, Some(bead))?;
        if asks.iter().any(|message| message.body.as_str().starts_with(&what)) {
            return Ok(());
        }
        let body = MessageBody::parse(&format!(
            "{what}, and is not handed over any more. Look at it with gt run log {bead}; gt run cancel {bead} ends it"
        ))?;
        let from = Sender::Worker(id.clone());
        escalate_in(writer, from, Some(bead.clone()), body, Severity::High)?;
        Ok(())
    })?;
    Err(OperationError::rejected(format!(
        "{what}, so a fresh session would do nothing either, and a person is asked; commit what you have, or say what you \
         need with gt done --status escalated -m \"…\""
    )))
}

/// Asks the supervisor of a run for a fresh session; `false` if it has none.
pub fn begin_fresh_session(town: &Town, run: &RunId) -> Result<bool> {
    let files = RunFiles::of(&town.runs_directory(), &run.to_string());
    let asked = ask_to_hand_over(&files).map_err(|source| control_failed(&files, source))?;
    Ok(asked == AskResult::Told)
}

/// The chosen run, if an agent works on it.
fn running(town: &Town, reader: &Reader<'_>, asked: Option<&str>) -> Result<Run> {
    let run = chosen_run(town, reader, asked)?;
    let id = &run.id;
    if run.state.is_live() && !run.executor.takes_slot() {
        return Err(OperationError::rejected(format!(
            "{id} has no session of ours, so there is none to begin afresh; leave a comment with bd comments add {} \"…\"",
            id.bead
        )));
    }
    if run.state.is_live() && run.executor == ExecutorKind::Ssh {
        return Err(OperationError::rejected(format!(
            "{id} was started over ssh by an earlier gt, where a run has one session; leave a comment with bd comments add {} \"…\"",
            id.bead
        )));
    }
    match run.state {
        RunState::Running | RunState::Blocked => Ok(run),
        RunState::Starting => Err(OperationError::rejected(format!(
            "{id} has not begun yet; there is nothing to hand over"
        ))),
        RunState::Done | RunState::Failed | RunState::Lost | RunState::Cancelled => {
            Err(OperationError::rejected(format!(
                "{id} is {}; only a live run can be handed over, and gt run list shows those",
                run.state.as_str()
            )))
        }
    }
}

/// The files of a run whose supervisor is on this machine.
fn reachable(town: &Town, run: &Run) -> Result<RunFiles> {
    let id = &run.id;
    if !run.is_on(LocalProcesses::of(town)?.host()) {
        return Err(OperationError::rejected(format!(
            "{id} is on {}, in another directory of this town; hand it over there",
            run.host_name()
        )));
    }
    Ok(RunFiles::of(&town.runs_directory(), &id.to_string()))
}

fn no_supervisor(run: &Run, note: Option<&Message>) -> OperationError {
    let kept = note.map(|note| format!("; your note is kept as {}", note.id)).unwrap_or_default();
    OperationError::rejected(format!(
        "{0} has no supervisor that can begin a fresh session: its agent has just ended, or its supervisor is gone; \
         see gt run show {0}{kept}",
        run.id
    ))
}

fn control_failed(files: &RunFiles, source: std::io::Error) -> OperationError {
    OperationError::File {
        action: "speak to the supervisor at",
        path: files.control_path(),
        source,
    }
}
