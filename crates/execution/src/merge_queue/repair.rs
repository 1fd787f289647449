//! Work that does not land goes back to its author.

use gt_core::merging::{MergeRequest, OriginAnswer, RequestAction};
use gt_core::message::{MessageBody, Severity};
use gt_core::schedule::ContextOrigin;
use gt_core::{EventKind, MessageAddress, Sender, Status};
use gt_store::{NewContext, Writer};

use super::pass::QueueBuilder;
use gt_beads::merge_requests::{RequestNote, act_in};
use gt_beads::messages::escalate_in;
use gt_beads::run_records::release_in;
use gt_town::Result;

/// Why a request goes back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RepairCause {
    /// It does not apply to the target.
    Conflict {
        /// The files.
        paths: Vec<String>,
        /// The tip of the target.
        tip: String,
    },
    /// A check fails with it, and passes without it.
    Check {
        /// The check.
        name: String,
        /// What is known about it.
        words: String,
        /// The run of the check.
        check_run: u64,
    },
}

impl QueueBuilder<'_> {
    /// Sends a request back to its author: a repair run is scheduled, or a person is asked.
    pub(super) fn send_back(&mut self, request: &MergeRequest, cause: &RepairCause) -> Result<()> {
        let (action, words, check_run) = match cause {
            RepairCause::Conflict { paths, tip } => {
                let tip: String = tip.chars().take(12).collect();
                let words = format!("{} (on {tip})", paths.join(", "));
                (RequestAction::MeetConflict, words, None)
            }
            RepairCause::Check { name, words, check_run } => {
                (RequestAction::FailCheck, format!("{name}: {words}"), Some(*check_run))
            }
        };
        let repairs = self.repairs_max;
        let sent = self.town.write(|writer| {
            let note = RequestNote {
                detail: words,
                counts_as_try: true,
                check_run,
                ..RequestNote::default()
            };
            let sent = act_in(writer, &request.id, action, OriginAnswer::Unknown, note)?;
            if let Some(request) = &sent {
                schedule_repair_in(writer, request, repairs)?;
            }
            Ok(sent)
        })?;
        self.changed.extend(sent.map(|request| request.id));
        Ok(())
    }
}

/// Schedules a repair run for a request in `conflict` or `failed`; asks a person if its repairs are used up, or if no run made
/// it.
pub(super) fn schedule_repair_in(
    writer: &mut Writer<'_>,
    request: &MergeRequest,
    repairs_max: u32,
) -> Result<()> {
    let run = match request.run() {
        Some(run) => writer.run(&run)?,
        None => None,
    };
    let context = match &run {
        Some(run) => writer.context_by_number(run.context)?,
        None => None,
    };
    let Some((run, context)) = run.zip(context).filter(|_| request.tries <= repairs_max) else {
        return ask_person_in(writer, request);
    };
    release_in(writer, &request.id.bead)?;
    let priority = writer.bead(&request.id.bead)?.map_or(context.priority, |bead| bead.priority);
    let repair = NewContext {
        place: run.place.clone().or(context.place),
        account: context.account,
        parameters: context.parameters,
        attempts: 0,
        ..NewContext::plain(
            request.id.bead.clone(),
            request.rig.clone(),
            priority,
            ContextOrigin::Repair,
        )
    };
    writer.insert_contexts(vec![repair])?;
    Ok(())
}

/// Blocks the bead of a request that does not land, and asks a person.
pub(super) fn ask_person_in(writer: &mut Writer<'_>, request: &MergeRequest) -> Result<()> {
    let id = &request.id;
    let body = MessageBody::parse(&format!(
        "{}. Its work is on {}. {}",
        request.standing(),
        request.branch,
        request.next_step()
    ))?;
    let from = Sender::Standing(MessageAddress::Refinery(request.rig.clone()));
    escalate_in(writer, from, Some(id.bead.clone()), body, Severity::High)?;
    let Some(old) = writer.bead(&id.bead)?.filter(|bead| bead.status != Status::Closed) else {
        return Ok(());
    };
    let mut new = old.clone();
    new.assignee = String::new();
    new.enter(Status::Blocked, writer.now());
    new.updated_at = writer.now().max(old.updated_at);
    writer.save_bead(&old, &new, EventKind::StatusChanged)?;
    Ok(())
}
