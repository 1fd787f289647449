//! Which writes a worker may make.
//!
//! A worker changes its own bead, the beads below it and the beads that it created. It writes comments and messages. Every
//! other write needs a right that the setting `worker.rights` grants. The store asks here before it commits, so that a
//! command cannot forget to ask.

use std::fmt;

use crate::schedule::{Run, RunState, names};
use crate::{EventKind, Invalid, NewEvent, RunId};

names! {
    /// A kind of write that a worker does not need for its own work.
    Right, "a right; write worker, operator, or a list of beads, queue, reviews, rigs, settings, accounts, tokens and store" {
        /// Change and delete beads of others.
        Beads = "beads",
        /// Schedule work, start, cancel and retry runs, and change convoys, trees and pauses.
        Queue = "queue",
        /// Approve, reject and comment on merge requests of others.
        Reviews = "reviews",
        /// Add, change and remove rigs.
        Rigs = "rigs",
        /// Change settings and definitions of runtimes.
        Settings = "settings",
        /// Add, change and remove accounts.
        Accounts = "accounts",
        /// Make and revoke tokens.
        Tokens = "tokens",
        /// Back up, restore, compact and purge the store.
        Store = "store",
    }
}

/// The rights of workers beyond their own work.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkerRights(Vec<Right>);

impl WorkerRights {
    /// Reads `worker`, `operator`, or names of rights that are separated by commas or blanks.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let mut granted = Vec::new();
        for name in text.split([',', ' ']).filter(|name| !name.is_empty()) {
            match name {
                "worker" => {}
                "operator" => granted.extend(Right::ALL),
                other => granted.push(Right::parse(other)?),
            }
        }
        Ok(Self(Right::ALL.iter().filter(|right| granted.contains(right)).copied().collect()))
    }

    /// Whether this right is granted.
    pub fn allow(&self, right: Right) -> bool {
        self.0.contains(&right)
    }
}

impl fmt::Display for WorkerRights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("worker");
        }
        if self.0.len() == Right::ALL.len() {
            return f.write_str("operator");
        }
        let names: Vec<&str> = self.0.iter().map(|right| right.as_str()).collect();
        f.write_str(&names.join(","))
    }
}

/// How a process proves to be the worker of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkerProof {
    /// Its token is that of the run, or the run began before there were tokens.
    Valid,
    /// Its token is not that of the run.
    Wrong,
    /// The worker has no token.
    Missing,
}

/// Whether changes by the worker of `id` are accepted; an error is the sentence for it. `run` is the run of that name, and `live`
/// the live run of its bead.
pub fn admit_worker(
    id: &RunId,
    run: Option<&Run>,
    live: Option<&Run>,
    evidence: WorkerProof,
) -> Result<(), Invalid> {
    let Some(run) = run else {
        return Err(Invalid(format!(
            "GT_RUN says that you are the worker of {id}, but this town has no such run; if you are not, unset GT_RUN"
        )));
    };
    let stop = "stop working: leave everything as it is, and end your session";
    if !run.state.is_live() {
        return Err(Invalid(match live {
            Some(live) => format!(
                "{id} is over, and {} has {} now as {}; nothing that you do counts any more, so {stop}",
                live.agent, id.bead, live.id
            ),
            None => format!(
                "{id} {}; nothing that you do counts any more, so {stop}",
                how_it_ended(run)
            ),
        }));
    }
    match evidence {
        WorkerProof::Valid => {}
        WorkerProof::Missing => {
            return Err(Invalid(format!(
                "GT_RUN says that you are the worker of {id}, but GT_RUN_TOKEN, which proves it, is missing; keep \
                 GT_SOCKET of the worker's environment, or act as a person from a shell outside of it"
            )));
        }
        WorkerProof::Wrong => {
            return Err(Invalid(format!(
                "GT_RUN says that you are the worker of {id}, but GT_RUN_TOKEN is not the token of that run; {stop}"
            )));
        }
    }
    if !run.ended_by.is_empty() {
        return Err(Invalid(format!(
            "{id} is being cancelled by {}; nothing that you do counts any more, so {stop}",
            run.ended_by
        )));
    }
    Ok(())
}

fn how_it_ended(run: &Run) -> String {
    let by = if run.ended_by.is_empty() { String::new() } else { format!(" by {}", run.ended_by) };
    match run.state {
        RunState::Done => "is done already".to_owned(),
        RunState::Cancelled => format!("was cancelled{by}"),
        RunState::Failed | RunState::Lost => {
            let why =
                if run.reason.is_empty() { String::new() } else { format!(": {}", run.reason) };
            format!("has ended as {}{why}", run.state.as_str())
        }
        RunState::Starting | RunState::Running | RunState::Blocked => "is live".to_owned(),
    }
}

/// The sentence for a check that wants to write. It runs code that no person has read yet.
pub fn check_refused(check: &str) -> String {
    format!(
        "a check may only read, and this is a command of the check {check}; let its exit status say what it found, and \
         give a test that needs a town one of its own (gt install <directory>, with GT_CHECK and GT_RUN unset)"
    )
}

/// The sentence for a worker that lacks a right.
pub fn right_refused(own: &RunId, right: Right, change: &str) -> String {
    let name = right.as_str();
    format!(
        "{change} is not allowed to the worker of {own}, which changes its own bead, beads below it and beads that it \
         created; ask for it with gt escalate {} \"…\", or let a person allow it to all workers: gt config set \
         worker.rights {name}",
        own.bead
    )
}

/// How the bead of a write is related to the worker that writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BeadRelation {
    /// The bead that the worker works on.
    Own,
    /// A bead below the worker's own, or one that a run of the worker's bead created.
    Offspring,
    /// Any other bead, or none.
    Stranger,
}

/// The right that an event needs, if a worker makes it happen; nothing if every worker may. `kinship` is that of the
/// event's bead before the transaction.
pub fn right_needed(own: &RunId, event: &NewEvent, kinship: BeadRelation) -> Option<Right> {
    let is_own_run = event.run.as_ref() == Some(own);
    let unless = |allowed: bool, right: Right| (!allowed).then_some(right);
    let is_kin = kinship != BeadRelation::Stranger;
    match event.kind() {
        // Events of a worker's own work, and consequences that the store computes.
        EventKind::Created
        | EventKind::Commented
        | EventKind::Unblocked
        | EventKind::ConvoyLanded
        | EventKind::MessageSent
        | EventKind::MessageDelivered
        | EventKind::MessageSeen
        | EventKind::HelpWanted => None,
        EventKind::Updated
        | EventKind::StatusChanged
        | EventKind::Claimed
        | EventKind::Closed
        | EventKind::Reopened
        | EventKind::LabelAdded
        | EventKind::LabelRemoved
        | EventKind::DependencyAdded
        | EventKind::DependencyRemoved
        | EventKind::DependencyChanged => unless(is_kin, Right::Beads),
        // A worker that deletes its own bead would delete the record of its run.
        EventKind::Deleted => unless(kinship == BeadRelation::Offspring, Right::Beads),
        EventKind::Imported => Some(Right::Beads),
        // A bead that is closed leaves the queue, and its run ends.
        EventKind::Unscheduled
        | EventKind::RunCancelled
        | EventKind::RunDone
        | EventKind::RunFailed => unless(is_kin || is_own_run, Right::Queue),
        EventKind::Dispatched
        | EventKind::HandedOver
        | EventKind::RunSilent
        | EventKind::RunGoesOn
        | EventKind::RunBlocked
        | EventKind::RunUnblocked
        | EventKind::RunLost
        | EventKind::RunUsed
        | EventKind::WorkAccepted
        | EventKind::Landed
        | EventKind::Rescued
        | EventKind::Escalated
        | EventKind::OverLimit
        | EventKind::StepDone => unless(is_own_run, Right::Queue),
        EventKind::Scheduled
        | EventKind::RetryNow
        | EventKind::CircuitBroken
        | EventKind::Quarantined
        | EventKind::RunStarting
        | EventKind::StartFailed
        | EventKind::TreeMoved
        | EventKind::TreeRestored
        | EventKind::TreeDue
        | EventKind::TreePurged
        | EventKind::Paused
        | EventKind::Resumed
        | EventKind::Parked
        | EventKind::Limited
        | EventKind::Unparked
        | EventKind::HookReleased
        | EventKind::HostChanged
        | EventKind::RequestOpened
        | EventKind::RequestChanged
        | EventKind::QueueChanged => Some(Right::Queue),
        EventKind::Reviewed => Some(Right::Reviews),
        EventKind::RigAdded | EventKind::RigChanged | EventKind::RigRemoved => Some(Right::Rigs),
        EventKind::SettingChanged => Some(Right::Settings),
        EventKind::AccountChanged => Some(Right::Accounts),
        EventKind::TokenChanged => Some(Right::Tokens),
        EventKind::MessagesPurged | EventKind::EventsPurged | EventKind::Other(_) => {
            Some(Right::Store)
        }
    }
}

/// The right that a write to a table needs, if a worker makes it; nothing for the tables whose writes are judged by their
/// events. A table that is not listed needs the right of the store, so that a new table is closed to workers.
pub fn table_right(table: &str) -> Option<Right> {
    match table {
        "beads" | "prefixes" | "labels" | "dependencies" | "comments" | "events" | "counters"
        | "runs" | "run_steps" | "run_beads" | "contexts" | "messages" | "outbox" | "convoys"
        | "requests" | "merge_requests" | "reviews" => None,
        "rigs" => Some(Right::Rigs),
        "settings" => Some(Right::Settings),
        "accounts" => Some(Right::Accounts),
        "tokens" => Some(Right::Tokens),
        "scheduler"
        | "parks"
        | "guards"
        | "estimates"
        | "polecats"
        | "trash"
        | "rescues"
        | "hosts"
        | "left_runs"
        | "candidates"
        | "candidate_requests"
        | "candidate_checks"
        | "merge_queues"
        | "check_runs"
        | "pull_requests"
        | "pull_request_tips"
        | "pull_request_repairs"
        | "pull_request_texts" => Some(Right::Queue),
        _ => Some(Right::Store),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;
    use crate::{BeadId, EventPayload, Json};

    fn run(bead: &str, epoch: u32) -> RunId {
        RunId { bead: BeadId::trusted(bead.to_owned()), epoch }
    }

    fn event(kind: &EventKind, run: Option<RunId>) -> NewEvent {
        let bead = run.as_ref().map(|run| run.bead.clone());
        let (kind, json) = (kind.as_str().to_owned(), Json::object(&[]));
        NewEvent { bead, rig: None, run, payload: EventPayload::Other { kind, json } }
    }

    #[test]
    fn rights_are_read_and_written_alike() {
        for (text, written) in [
            ("worker", "worker"),
            ("", "worker"),
            ("operator", "operator"),
            ("queue, beads", "beads,queue"),
            ("worker,store", "store"),
            ("beads,queue,reviews,rigs,settings,accounts,tokens,store", "operator"),
        ] {
            let rights = WorkerRights::parse(text).unwrap();
            assert_eq!(rights.to_string(), written);
            assert_eq!(WorkerRights::parse(written).unwrap(), rights);
        }
        assert!(WorkerRights::parse("everything").unwrap_err().0.contains("operator"));
    }

    #[test]
    fn worker_changes_kin_and_nothing_else() {
        let own = run("we-1", 2);
        let needed = |kind: EventKind, kinship| right_needed(&own, &event(&kind, None), kinship);
        for kind in [EventKind::Closed, EventKind::Updated, EventKind::Reopened, EventKind::Claimed]
        {
            assert_eq!(needed(kind.clone(), BeadRelation::Own), None, "{kind}");
            assert_eq!(needed(kind.clone(), BeadRelation::Offspring), None, "{kind}");
            assert_eq!(needed(kind.clone(), BeadRelation::Stranger), Some(Right::Beads), "{kind}");
        }
        assert_eq!(needed(EventKind::Deleted, BeadRelation::Own), Some(Right::Beads));
        assert_eq!(needed(EventKind::Deleted, BeadRelation::Offspring), None);
        assert_eq!(needed(EventKind::Scheduled, BeadRelation::Own), Some(Right::Queue));
        assert_eq!(needed(EventKind::Created, BeadRelation::Stranger), None);
        assert_eq!(needed(EventKind::Commented, BeadRelation::Stranger), None);

        let step = |of: RunId| {
            right_needed(&own, &event(&EventKind::StepDone, Some(of)), BeadRelation::Own)
        };
        assert_eq!(step(own.clone()), None);
        assert_eq!(step(run("we-1", 1)), Some(Right::Queue));
    }

    #[test]
    fn unknown_tables_and_events_are_closed() {
        assert_eq!(table_right("inventions"), Some(Right::Store));
        assert_eq!(table_right("settings"), Some(Right::Settings));
        let unknown = event(&EventKind::Other("later".to_owned()), None);
        assert_eq!(right_needed(&run("a-1", 1), &unknown, BeadRelation::Own), Some(Right::Store));
    }

    fn kinships() -> impl Strategy<Value = BeadRelation> {
        select(vec![BeadRelation::Own, BeadRelation::Offspring, BeadRelation::Stranger])
    }

    proptest! {
        #[test]
        fn an_operator_may_do_everything(
            kind in select(EventKind::ALL), kinship in kinships(), own_run: bool,
        ) {
            let own = run("we-1", 1);
            let event = event(&kind, own_run.then(|| own.clone()));
            let needed = right_needed(&own, &event, kinship);
            prop_assert!(needed.is_none_or(|right| WorkerRights(Right::ALL.to_vec()).allow(right)));
        }

        #[test]
        fn a_stranger_gets_no_more_than_kin(kind in select(EventKind::ALL), own_run: bool) {
            let own = run("we-1", 1);
            let event = event(&kind, own_run.then(|| own.clone()));
            let stranger = right_needed(&own, &event, BeadRelation::Stranger);
            if stranger.is_none() {
                prop_assert_eq!(right_needed(&own, &event, BeadRelation::Own), None);
                prop_assert_eq!(right_needed(&own, &event, BeadRelation::Offspring), None);
            }
        }

        #[test]
        fn another_run_gives_no_more_than_the_own(
            kind in select(EventKind::ALL), kinship in kinships(), epoch in 2_u32..9,
        ) {
            let own = run("we-1", 1);
            if right_needed(&own, &event(&kind, Some(run("we-2", epoch))), kinship).is_none() {
                let allowed = right_needed(&own, &event(&kind, Some(own.clone())), kinship);
                prop_assert_eq!(allowed, None);
            }
        }

        #[test]
        fn exactly_the_listed_rights_are_granted(rights in proptest::collection::vec(select(Right::ALL), 0..5)) {
            let names: Vec<&str> = rights.iter().map(|right| right.as_str()).collect();
            let parsed = WorkerRights::parse(&names.join(",")).unwrap();
            for right in Right::ALL {
                prop_assert_eq!(parsed.allow(*right), rights.contains(right));
            }
        }
    }
}
