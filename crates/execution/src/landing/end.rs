//! The end of a run by the report of its worker.

use gt_core::merging::{MergeMethod, MergeRequest, Review, ReviewDecision};
use gt_core::message::{MessageBody, Severity};
use gt_core::schedule::{DoneStatus, Run, RunEnd, RunState};
use gt_core::{BeadChangeKind, Sender, Status};
use gt_store::Writer;

use super::delivery_mode::DeliveryMode;
use super::done::DoneRefusal;
use crate::merge_queue::{AcceptedSubmission, submit_in};
use gt_beads::messages::escalate_in;
use gt_beads::run_records::set_status_in;
use gt_scheduling::run_transitions::{FinishEffect, end_run_in, finish_with_reason_in};
use gt_town::{Result, Town};

/// The report at the end of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EndReport<'a> {
    /// How it ends.
    pub(super) said: DoneStatus,
    /// The message of its worker.
    pub(super) message: Option<&'a str>,
    /// The worker says that the work needed no change.
    pub(super) no_changes: bool,
    /// The place of work that could not be committed.
    pub(super) left: Option<&'a str>,
}

impl EndReport<'_> {
    /// Why the work needed no change, if the worker says so.
    fn why_unchanged(&self) -> Option<&str> {
        self.message.filter(|_| self.no_changes)
    }

    fn end(&self) -> RunEnd {
        match self.said {
            DoneStatus::Completed => match self.why_unchanged() {
                Some(why) => RunEnd::without_status(
                    RunState::Done,
                    format!("its worker said that nothing had to change: {why}"),
                ),
                None => RunEnd::without_status(RunState::Done, "its worker said that it is done"),
            },
            DoneStatus::Escalated => {
                RunEnd::without_status(RunState::Cancelled, "its worker asks for a person")
            }
            DoneStatus::Deferred => {
                // No message is sent about it, so this is where the words are found.
                let words = self.message.and_then(|message| message.lines().next());
                let words: Vec<&str> = words.into_iter().chain(self.left).collect();
                let colon = if words.is_empty() { "" } else { ": " };
                let reason = format!("its worker put it off{colon}{}", words.join("; "));
                RunEnd::without_status(RunState::Cancelled, reason)
            }
        }
    }
}

/// Accepted work, and where it goes.
#[derive(Debug, Clone, Copy)]
pub(super) struct AcceptedEnd<'a> {
    /// The accepted commit; empty for none.
    pub(super) accepted: &'a str,
    /// The commit after which everything in it is its own.
    pub(super) base: &'a str,
    /// Where it goes.
    pub(super) mode: DeliveryMode,
    /// Whether a person has to approve it.
    pub(super) review: bool,
}

impl Default for AcceptedEnd<'_> {
    fn default() -> Self {
        Self::kept("")
    }
}

impl<'a> AcceptedEnd<'a> {
    /// A commit that stays on its branch.
    pub(super) fn kept(accepted: &'a str) -> Self {
        Self { accepted, base: "", mode: DeliveryMode::Keep, review: false }
    }
}

/// Ends the run, and makes the merge request of its work, in one transaction. The bead of a request stays in progress until
/// that has landed; without a request, it is over.
pub(super) fn end(
    town: &Town,
    run: &Run,
    words: &EndReport<'_>,
    work: &AcceptedEnd<'_>,
) -> std::result::Result<Option<MergeRequest>, DoneRefusal> {
    let AcceptedEnd { accepted, base, mode, review } = *work;
    let ended = town.write(|writer| {
        if !writer.accept_work(run, words.said, accepted)? {
            return Ok(None);
        }
        let (method, is_unmerged) = match mode {
            DeliveryMode::Keep => {
                return Ok(close(writer, town, run, words)?.then_some(None));
            }
            DeliveryMode::PushBranch => (MergeMethod::Queue, true),
            DeliveryMode::Submit(method) => (method, false),
        };
        if end_run_in(writer, run, &words.end(), &run.agent)?.is_none() {
            return Ok(None);
        }
        let submission = AcceptedSubmission { run, accepted, base, method, review, is_unmerged };
        let request = submit_in(writer, &submission)?;
        if let Some(why) = words.why_unchanged() {
            // The same work once more: a person who reviews it sees why.
            let review = Review {
                number: 0,
                request: request.id.clone(),
                actor: run.agent.clone(),
                decision: ReviewDecision::Comment,
                accepted: request.accepted.clone(),
                base: request.base.clone(),
                file: String::new(),
                line: None,
                body: why.to_owned(),
                created_at: writer.now(),
            };
            writer.insert_review(review, &request.rig)?;
        }
        Ok(Some(Some(request)))
    })?;
    ended.ok_or_else(|| DoneRefusal::Work(format!("{} has ended meanwhile; stop here", run.id)))
}

/// Ends a run as its worker reported, and updates its bead. `false` if it has ended already.
fn close(writer: &mut Writer<'_>, town: &Town, run: &Run, words: &EndReport<'_>) -> Result<bool> {
    let end = words.end();
    match words.said {
        DoneStatus::Completed => {
            let why = words.why_unchanged();
            let why = why.map(|why| format!("done by {} without a change: {why}", run.id));
            Ok(finish_with_reason_in(writer, town, &run.id, &end, why)? != FinishEffect::Already)
        }
        DoneStatus::Escalated | DoneStatus::Deferred => {
            let run = &Run { said: Some(words.said), ..run.clone() };
            if end_run_in(writer, run, &end, &run.agent)?.is_none() {
                return Ok(false);
            }
            if words.said == DoneStatus::Escalated {
                ask_for_person(writer, run, words)?;
                set_status_in(
                    writer,
                    &run.id.bead,
                    Status::Blocked,
                    "",
                    BeadChangeKind::StatusChanged,
                )?;
            } else {
                set_status_in(
                    writer,
                    &run.id.bead,
                    Status::Deferred,
                    "",
                    BeadChangeKind::StatusChanged,
                )?;
            }
            Ok(true)
        }
    }
}

/// Ends a run whose agent reported nothing and did nothing: another one would do the same, so a person is asked. The
/// agent's last output is all that is known.
pub(crate) fn end_empty_handed(town: &Town, run: &Run, end: &RunEnd, last: &str) -> Result<bool> {
    town.write(|writer| {
        if end_run_in(writer, run, end, "")?.is_none() {
            return Ok(false);
        }
        let said = if last.is_empty() {
            "It printed nothing.".to_owned()
        } else {
            format!("The last line that it printed: {last}")
        };
        let bead = &run.id.bead;
        let body = MessageBody::parse(&format!(
            "{} ended with exit status 0, without gt done and without a change. {said}\n\nIts output: gt run log {}. Then \
             close it (bd close {bead}), or change what it says and start it again (gt sling {bead})",
            run.id, run.id
        ))?;
        let from = Sender::Worker(run.id.clone());
        escalate_in(writer, from, Some(bead.clone()), body, Severity::High)?;
        set_status_in(writer, &run.id.bead, Status::Blocked, "", BeadChangeKind::StatusChanged)?;
        Ok(true)
    })
}

/// Escalates for the worker. Its message for the history of the branch is the best description that is known.
fn ask_for_person(writer: &mut Writer<'_>, run: &Run, words: &EndReport<'_>) -> Result<()> {
    let branch = &run.workplace.branch;
    let said = match words.message {
        Some(message) => message.to_owned(),
        None if branch.is_empty() || words.left.is_some() => {
            format!("{} cannot go on without a person", run.id)
        }
        None => format!("{} cannot go on without a person; what it did is on {branch}", run.id),
    };
    let body = match words.left {
        // If a message has no room for both, the worker's own words count.
        Some(left) => MessageBody::parse(&format!("{said}\n\n{left}"))
            .or_else(|_| MessageBody::parse(&said))?,
        None => MessageBody::parse(&said)?,
    };
    let from = Sender::Worker(run.id.clone());
    escalate_in(writer, from, Some(run.id.bead.clone()), body, Severity::High)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use gt_beads::beads::{NewBead, create};
    use gt_core::schedule::{RunId, Workplace};
    use gt_core::{ExecutorKind, Prefix, Rig, RigSlug};
    use gt_scheduling::Consequences;
    use gt_scheduling::dispatch::{Dispatcher, MemorySpawner, parked};
    use gt_scheduling::run_transitions::{claim, finish};
    use gt_scheduling::schedule::{SlingRequest, sling};
    use gt_town::{Actor, SystemClock, settings};

    use super::*;

    /// A town with the rig `web`, whose work lands on a branch.
    fn town() -> Town {
        let actor = Actor { name: "tester".to_owned(), owner: String::new() };
        let town = Town::in_memory(actor, Arc::new(SystemClock), Arc::new(Consequences)).unwrap();
        let (slug, prefix) = (RigSlug::parse("web").unwrap(), Prefix::parse("web").unwrap());
        let plain = Rig::new(slug, "web", prefix, "web", town.now());
        let rig = Rig { repo: "/nowhere".to_owned(), executor: ExecutorKind::Process, ..plain };
        town.write(|writer| Ok(writer.insert_rig(&rig)?)).unwrap();
        let check = gt_scheduling::runtimes::check_name;
        settings::set(&town, "rig.web.command", "/bin/true {bead}", check).unwrap();
        town
    }

    /// A run of a new bead that its worker has taken.
    fn running(town: &Town, id: &str) -> Run {
        let new = NewBead { title: id.to_owned(), id: Some(id.to_owned()), ..NewBead::default() };
        create(town, &new, false).unwrap();
        let arguments = vec![id.to_owned()];
        sling(town, &SlingRequest { arguments, ..SlingRequest::default() }).unwrap();
        Dispatcher::new(town, &MemorySpawner::default()).dispatch().unwrap();
        let run = RunId::parse(&format!("{id}#1")).unwrap();
        claim(town, &run, &Workplace::default(), None).unwrap();
        town.read(|reader| Ok(reader.run(&run)?)).unwrap().unwrap()
    }

    fn fail(town: &Town, id: &str) {
        let run = running(town, id);
        finish(town, &run.id, &RunEnd::without_status(RunState::Failed, "it was seen")).unwrap();
    }

    #[test]
    fn a_run_that_ends_by_the_report_of_its_worker_ends_a_row_of_failures() {
        for said in [DoneStatus::Completed, DoneStatus::Escalated, DoneStatus::Deferred] {
            let town = town();
            fail(&town, "web-1");
            fail(&town, "web-2");
            let run = running(&town, "web-3");
            let words = EndReport { said, message: None, no_changes: false, left: None };
            let accepted = "c0ffee42".repeat(5);
            let mode = match said {
                DoneStatus::Completed => DeliveryMode::Submit(MergeMethod::Queue),
                DoneStatus::Escalated | DoneStatus::Deferred => DeliveryMode::Keep,
            };
            let work = AcceptedEnd { accepted: &accepted, base: "", mode, review: false };
            assert!(end(&town, &run, &words, &work).is_ok());
            fail(&town, "web-4");
            assert!(parked(&town).unwrap().is_empty(), "{said:?}");
            fail(&town, "web-5");
            fail(&town, "web-6");
            assert_eq!(parked(&town).unwrap().len(), 1, "{said:?}");
        }
    }
}
