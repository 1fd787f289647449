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
fn situations(mut each: impl FnMut(&Situation<'_>)) {
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
                    let holder = executor.map(|executor| Holder { run: &run, executor, agent });
                    each(&Situation { status: *status, agent, holder, blockers, pinned });
                }
            }
        }
    }
}

fn wishes(mut each: impl FnMut(&Wish)) {
    let agents = [
        AgentWish::Keep,
        AgentWish::Unassigned,
        AgentWish::Is("steve".to_owned()),
        AgentWish::Is("ann".to_owned()),
    ];
    for status in STATUSES.iter().copied().map(Some).chain([None]) {
        for outcome in OUTCOMES {
            for agent in &agents {
                each(&Wish { status, outcome, agent: agent.clone() });
            }
        }
    }
}

/// The table once more, as the specification has it: a line for each arrow.
fn expected(situation: &Situation<'_>, wish: &Wish) -> Result<&'static str, &'static str> {
    use WorkStatus::{Blocked, Cancelled, Completed, Dispatched, Failed, InProgress, Queued};
    let agent = match &wish.agent {
        AgentWish::Keep => situation.agent,
        AgentWish::Unassigned => "",
        AgentWish::Is(agent) => agent,
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

fn name(answer: &Result<Step, Refusal>) -> Result<&'static str, &'static str> {
    match answer {
        Ok(Step::Nothing) => Ok("nothing"),
        Ok(Step::Assign(_)) => Ok("assign"),
        Ok(Step::Dispatch(_)) => Ok("dispatch"),
        Ok(Step::Start) => Ok("start"),
        Ok(Step::Block) => Ok("block"),
        Ok(Step::Resume) => Ok("resume"),
        Ok(Step::Requeue(_)) => Ok("requeue"),
        Ok(Step::Finish(Outcome::Success)) => Ok("success"),
        Ok(Step::Finish(Outcome::Failed)) => Ok("failed"),
        Ok(Step::Finish(Outcome::Cancelled)) => Ok("finished as cancelled"),
        Ok(Step::Cancel) => Ok("cancel"),
        Err(Refusal::NotAllowed { .. }) => Err("not allowed"),
        Err(Refusal::Supervised { .. }) => Err("supervised"),
        Err(Refusal::BlockedBy(_)) => Err("blocked by"),
        Err(Refusal::Pinned) => Err("pinned"),
        Err(Refusal::HeldBy { .. }) => Err("held"),
        Err(Refusal::NeedsAgent) => Err("agent"),
        Err(Refusal::NeedsOutcome(_) | Refusal::WrongOutcome { .. } | Refusal::OutcomeAlone) => {
            Err("outcome")
        }
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
                Refusal::NotAllowed { from, to } => {
                    assert!(text.contains(to.as_str()), "{text}");
                    for allowed in allowed_from(*from) {
                        assert!(text.contains(allowed.as_str()), "{text}");
                    }
                }
                Refusal::Supervised { .. } => assert!(text.contains("gt run"), "{text}"),
                Refusal::BlockedBy(_) => assert!(text.contains("wq-first"), "{text}"),
                Refusal::HeldBy { .. } => assert!(text.contains("wq-abc#1"), "{text}"),
                Refusal::Pinned => {}
                Refusal::NeedsAgent => assert_eq!(refusal.field(), Some("assigned_agent")),
                Refusal::NeedsOutcome(_) | Refusal::WrongOutcome { .. } | Refusal::OutcomeAlone => {
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
    let situation = Situation {
        status: WorkStatus::Queued,
        agent: "steve",
        holder: None,
        blockers: &[],
        pinned: false,
    };
    let to = |agent| Wish { status: Some(WorkStatus::Dispatched), outcome: None, agent };
    let keep = decide(&situation, &to(AgentWish::Keep));
    assert_eq!(keep, Ok(Step::Dispatch("steve".to_owned())));
    let other = decide(&situation, &to(AgentWish::Is("ann".to_owned())));
    assert_eq!(other, Ok(Step::Dispatch("ann".to_owned())));
    assert_eq!(decide(&situation, &to(AgentWish::Unassigned)), Err(Refusal::NeedsAgent));
}
