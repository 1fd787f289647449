//! Work that does not land goes back to its author.

use gt_core::merging::{MergeRequest, OriginAnswer, RequestAction, RequestPurpose};
use gt_core::message::{MessageBody, Severity};
use gt_core::schedule::{ContextOrigin, WorkerPlace};
use gt_core::{Bead, BeadChangeKind, MessageAddress, Sender, Status};
use gt_store::{NewContext, Writer};

use super::integration_repair::schedule_integration_repair_in;
use super::pass::QueueBuilder;
use gt_beads::merge_requests::{RequestNote, act_in};
use gt_beads::messages::escalate_in;
use gt_beads::run_records::{release_in, set_status_in};
use gt_town::{Result, Town};

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
        /// The facts known about it.
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
        let (repairs, town) = (self.repairs_max, self.town);
        let sent = self.town.write(|writer| {
            let note = RequestNote {
                detail: words,
                counts_as_try: true,
                check_run,
                ..RequestNote::default()
            };
            let sent = act_in(writer, &request.id, action, OriginAnswer::Unknown, note)?;
            if let Some(request) = &sent {
                schedule_repair_in(town, writer, request, repairs)?;
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
    town: &Town,
    writer: &mut Writer<'_>,
    request: &MergeRequest,
    repairs_max: u32,
) -> Result<()> {
    if request.purpose == RequestPurpose::Integration && request.tries <= repairs_max {
        return schedule_integration_repair_in(town, writer, request);
    }
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
    // The tree is worth waiting for only while no other run has taken it.
    let has_tree = match run.place.as_ref().and_then(WorkerPlace::polecat_name) {
        Some(name) => {
            let polecat = writer.polecat(&run.rig, name)?;
            polecat.is_some_and(|polecat| polecat.last_run.as_ref() == Some(&run.id))
        }
        None => true,
    };
    let priority = writer.bead(&request.id.bead)?.map_or(context.priority, |bead| bead.priority);
    let repair = NewContext {
        place: run.place.clone().filter(|_| has_tree).or(context.place),
        account: context.account,
        parameters: context.parameters,
        attempts: 0,
        // The pass may be made by the worker of another bead, which has not asked for this.
        enqueued_by: Some(refinery_of(request).to_string()),
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

/// The merge queue as a sender of messages and as the one that schedules repairs.
pub(super) fn refinery_of(request: &MergeRequest) -> MessageAddress {
    MessageAddress::Refinery(request.rig.clone())
}

/// Blocks the bead of a request that does not land, and asks a person.
pub(super) fn ask_person_in(writer: &mut Writer<'_>, request: &MergeRequest) -> Result<()> {
    let id = &request.id;
    let body = MessageBody::parse(&format!(
        "{}. Its work is on {}. {}",
        request.state_reason(),
        request.branch,
        request.next_step()
    ))?;
    let from = Sender::Standing(refinery_of(request));
    escalate_in(writer, from, Some(id.bead.clone()), body, Severity::High)?;
    let is_blocked = |bead: &Bead| bead.status != Status::Closed && !bead.issue_type.is_convoy();
    match writer.bead(&id.bead)?.filter(is_blocked) {
        Some(bead) => {
            set_status_in(writer, &bead.id, Status::Blocked, "", BeadChangeKind::StatusChanged)
        }
        None => Ok(()),
    }
}
