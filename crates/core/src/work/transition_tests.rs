//! The whole table: status × target × with and without each field × with a run of each executor.

use super::*;

const STATUSES: &[WorkStatus] = WorkStatus::ALL;
const EXECUTORS: [Option<ExecutorKind>; 6] = [
    None,
    Some(ExecutorKind::Tmux),
    Some(ExecutorKind::Process),
    Some(ExecutorKind::Ssh),
    Some(ExecutorKind::Pull),
    Some(ExecutorKind::None),
];
const OUTCOMES: [Option<Outcome>; 4] =
    [None, Some(Outcome::Success), Some(Outcome::Failed), Some(Outcome::Cancelled)];

fn run() -> RunId {
    RunId::parse("wq-abc#1").unwrap()
}

/// The situations that there can be: an agent that works or waits to begin has the item in a run, or by hand.
fn situations(mut each: impl FnMut(&WorkFacts<'_>)) {
    let (run, blocker) = (run(), [BeadId::parse("wq-first").unwrap()]);
    for status in STATUSES {
        for executor in EXECUTORS {
            for agent in ["", "steve"] {
                for (blockers, pinned) in
                    [(&blocker[..0], false), (&blocker[..], false), (&[], true)]
                {
                    let is_held = matches!(
                        status,
                        WorkStatus::Dispatched | WorkStatus::InProgress | WorkStatus::Blocked
                    );
                    if executor.is_some() && (!is_held || agent.is_empty()) {
                        continue;
                    }
                    let holder = executor.map(|executor| ItemHolder { run: &run, executor, agent });
                    each(&WorkFacts { status: *status, agent, holder, blockers, pinned });
                }
            }
        }
    }
}

fn wishes(mut each: impl FnMut(&WorkChange)) {
    let agents = [
        AgentChange::Keep,
        AgentChange::Unassigned,
        AgentChange::Is("steve".to_owned()),
        AgentChange::Is("ann".to_owned()),
    ];
    for status in STATUSES.iter().copied().map(Some).chain([None]) {
        for outcome in OUTCOMES {
            for agent in &agents {
                each(&WorkChange { status, outcome, agent: agent.clone() });
            }
        }
    }
}

/// The table once more, as the specification has it: a line for each arrow.
fn expected(situation: &WorkFacts<'_>, wish: &WorkChange) -> Result<&'static str, &'static str> {
    use WorkStatus::{Blocked, Cancelled, Completed, Dispatched, Failed, InProgress, Queued};
    let agent = match &wish.agent {
        AgentChange::Keep => situation.agent,
        AgentChange::Unassigned => "",
        AgentChange::Is(agent) => agent,
    };
    let changes = agent != situation.agent;
    let executor = situation.holder.map(|holder| holder.executor);
    let ours =
        matches!(executor, Some(ExecutorKind::Tmux | ExecutorKind::Process | ExecutorKind::Ssh));
    let is_other = wish.status.is_some_and(|to| to != situation.status);
    if ours && (is_other || changes) {
        return Err("supervised");
    }
    // The status that it has already changes nothing; its outcome may be said once more.
    let is_repeated = wish.status == Some(situation.status) && situation.status != Dispatched;
    let Some(to) = wish.status.filter(|_| !is_repeated) else {
        let outcome = wish
            .outcome
            .filter(|outcome| !is_repeated || situation.status.outcome() != Some(*outcome));
        return match (outcome, changes, executor) {
            (Some(_), _, _) => Err("outcome"),
            (None, false, _) => Ok("nothing"),
            (None, true, Some(_)) => Err("held"),
            (None, true, None) if situation.status.is_terminal() => Err("not allowed"),
            (None, true, None) => Ok("assign"),
        };
    };
    let step = match (situation.status, to) {
        (Queued | Dispatched, Dispatched) => "dispatch",
        (Queued | Dispatched, Cancelled) => "cancel",
        (Dispatched | Blocked, Queued) => "requeue",
        (Dispatched, InProgress) => "start",
        (Blocked, InProgress) => "resume",
        (InProgress, Blocked) => "block",
        (InProgress, Completed) => "success",
        (InProgress | Blocked, Failed) => "failed",
        _ => return Err("not allowed"),
    };
    let outcome_fits = match to {
        Completed => wish.outcome == Some(Outcome::Success),
        Failed => wish.outcome == Some(Outcome::Failed),
        Cancelled => matches!(wish.outcome, None | Some(Outcome::Cancelled)),
        Queued | Dispatched | InProgress | Blocked => wish.outcome.is_none(),
    };
    if !outcome_fits {
        return Err("outcome");
    }
    match step {
        "dispatch" if agent.is_empty() => Err("agent"),
        "dispatch" if situation.status == Dispatched && executor.is_some() && !changes => {
            Ok("nothing")
        }
        "dispatch" if situation.pinned => Err("pinned"),
        "dispatch" if !situation.blockers.is_empty() => Err("blocked by"),
        "start" | "resume" | "block" | "success" | "failed" if changes && executor.is_some() => {
            Err("held")
        }
        step => Ok(step),
    }
}

fn name(answer: &Result<WorkStep, WorkRefusal>) -> Result<&'static str, &'static str> {
    match answer {
        Ok(WorkStep::Nothing) => Ok("nothing"),
        Ok(WorkStep::Assign(_)) => Ok("assign"),
        Ok(WorkStep::Dispatch(_)) => Ok("dispatch"),
        Ok(WorkStep::Start) => Ok("start"),
        Ok(WorkStep::Block) => Ok("block"),
        Ok(WorkStep::Resume) => Ok("resume"),
        Ok(WorkStep::Requeue(_)) => Ok("requeue"),
        Ok(WorkStep::Finish(Outcome::Success)) => Ok("success"),
        Ok(WorkStep::Finish(Outcome::Failed)) => Ok("failed"),
        Ok(WorkStep::Finish(Outcome::Cancelled)) => Ok("finished as cancelled"),
        Ok(WorkStep::Cancel) => Ok("cancel"),
        Err(WorkRefusal::NotAllowed { .. }) => Err("not allowed"),
        Err(WorkRefusal::Supervised { .. }) => Err("supervised"),
        Err(WorkRefusal::BlockedBy(_)) => Err("blocked by"),
        Err(WorkRefusal::Pinned) => Err("pinned"),
        Err(WorkRefusal::HeldBy { .. }) => Err("held"),
        Err(WorkRefusal::NeedsAgent) => Err("agent"),
        Err(
            WorkRefusal::NeedsOutcome(_)
            | WorkRefusal::WrongOutcome { .. }
            | WorkRefusal::OutcomeAlone,
        ) => Err("outcome"),
    }
}

#[test]
fn every_wish_in_every_situation_is_answered_as_the_specification_says() {
    let mut count = 0;
    situations(|situation| {
        wishes(|wish| {
            let answer = decide(situation, wish);
            assert_eq!(name(&answer), expected(situation, wish), "{situation:?}\n{wish:?}");
            count += 1;
        });
    });
    assert!(count > 5_000, "{count}");
}

#[test]
fn a_refusal_says_what_is_allowed_from_here_or_which_field_is_wrong() {
    situations(|situation| {
        wishes(|wish| {
            let Err(refusal) = decide(situation, wish) else { return };
            let text = refusal.to_string();
            match &refusal {
                WorkRefusal::NotAllowed { from, to } => {
                    assert!(text.contains(to.as_str()), "{text}");
                    for allowed in allowed_from(*from) {
                        assert!(text.contains(allowed.as_str()), "{text}");
                    }
                }
                WorkRefusal::Supervised { .. } => assert!(text.contains("gt run"), "{text}"),
                WorkRefusal::BlockedBy(_) => assert!(text.contains("wq-first"), "{text}"),
                WorkRefusal::HeldBy { .. } => assert!(text.contains("wq-abc#1"), "{text}"),
                WorkRefusal::Pinned => {}
                WorkRefusal::NeedsAgent => assert_eq!(refusal.field(), Some("assigned_agent")),
                WorkRefusal::NeedsOutcome(_)
                | WorkRefusal::WrongOutcome { .. }
                | WorkRefusal::OutcomeAlone => {
                    assert_eq!(refusal.field(), Some("outcome"));
                }
            }
        });
    });
}

#[test]
fn nothing_leads_out_of_an_end_and_every_end_can_be_reached() {
    for status in STATUSES {
        assert_eq!(allowed_from(*status).is_empty(), status.is_terminal(), "{status}");
    }
    let mut reached = vec![WorkStatus::Queued];
    let mut at = 0;
    while let Some(status) = reached.get(at).copied() {
        let new = allowed_from(status).iter().filter(|next| !reached.contains(next)).copied();
        let new: Vec<WorkStatus> = new.collect();
        reached.extend(new);
        at += 1;
    }
    assert_eq!(reached.len(), STATUSES.len());
}

#[test]
fn a_queued_item_keeps_the_agent_it_was_submitted_for_unless_another_is_named() {
    let situation = WorkFacts {
        status: WorkStatus::Queued,
        agent: "steve",
        holder: None,
        blockers: &[],
        pinned: false,
    };
    let to = |agent| WorkChange { status: Some(WorkStatus::Dispatched), outcome: None, agent };
    let keep = decide(&situation, &to(AgentChange::Keep));
    assert_eq!(keep, Ok(WorkStep::Dispatch("steve".to_owned())));
    let other = decide(&situation, &to(AgentChange::Is("ann".to_owned())));
    assert_eq!(other, Ok(WorkStep::Dispatch("ann".to_owned())));
    assert_eq!(decide(&situation, &to(AgentChange::Unassigned)), Err(WorkRefusal::NeedsAgent));
}
