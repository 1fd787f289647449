//! Why a bead is not running, completely and in order.

use gt_core::decide::{BudgetEnd, Cap, ConvoyState, WaitReason};
use gt_core::merging::MergeRequest;
use gt_core::schedule::{Context, ContextId, Run, RunState, StepProgress};
use gt_core::{Bead, BeadId, DependencyType, Message, Outcome, RigSlug, Status};
use gt_store::Reader;

use super::queued::line;
use crate::dispatch::DispatchInputs;
use crate::dispatch::SchedulingSnapshot;
use crate::needs::{Need, needs_of};
use gt_beads::bead_facts::BeadFacts;
use gt_beads::lookup::require;
use gt_beads::merge_requests::landed_request_in;
use gt_beads::messages::needs_you_in;
use gt_beads::request_repairs::repair_of;
use gt_beads::steps::progress_in;
use gt_town::{Result, Town};

/// The whole answer to "why is it not running?".
#[derive(Debug, Clone)]
pub struct WhyAnswer {
    /// The bead.
    pub bead: Bead,
    /// The convoys that track it, by their ids.
    pub convoys: Vec<Bead>,
    /// How it is scheduled, or last was.
    pub context: Option<Context>,
    /// Its live run, or the last one.
    pub run: Option<Run>,
    /// Every reason now, the most telling first; none if the next cycle starts it.
    pub reasons: Vec<WaitReason>,
    /// The remedies: a sentence for each reason, in the same order.
    pub remedies: Vec<String>,
    /// The beads that it waits for one after the other, the root cause last; empty if no other bead holds it.
    pub causes: Vec<WaitCause>,
    /// Where it stands in line, if it does.
    pub outlook: Option<QueuePosition>,
    /// The live runs that hold the slots it waits for.
    pub holders: Vec<Run>,
    /// How many runs it may have before a person is asked.
    pub max_attempts: u32,
    /// How many steps of its live or last run are done.
    pub progress: Option<StepProgress>,
    /// The facts about its live run that need a person.
    pub needs: Vec<Need>,
    /// Messages that ask for a person because of it.
    pub needs_you: Vec<Message>,
    /// The last merge request that brought its work to a target branch.
    pub landed: Option<MergeRequest>,
}

/// A bead that another one waits for.
#[derive(Debug, Clone)]
pub struct WaitCause {
    /// The bead.
    pub bead: Bead,
    /// Why it is not done, the most telling first; none if the next cycle starts it.
    pub reasons: Vec<WaitReason>,
    /// The remedy for the first reason; empty if there is none.
    pub remedy: String,
}

/// The answer in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhyHeadline {
    /// A worker has it.
    Running,
    /// Its worker is done and gone, and what it did has not landed.
    Landing,
    /// A worker is about to have it.
    Starting,
    /// The next cycle starts it.
    Next,
    /// It is scheduled or a convoy under way, and something keeps it.
    Waiting,
    /// It is not scheduled.
    Idle,
    /// It is closed.
    Over,
}

impl WhyHeadline {
    /// A short name that programs can rely on.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Landing => "landing",
            Self::Starting => "starting",
            Self::Next => "next",
            Self::Waiting => "waiting",
            Self::Idle => "idle",
            Self::Over => "over",
        }
    }
}

impl WhyAnswer {
    /// The answer in a word.
    pub fn headline(&self) -> WhyHeadline {
        let open = self.context.as_ref().is_some_and(|context| context.closed.is_none());
        match &self.run {
            Some(run) if run.state == RunState::Starting => WhyHeadline::Starting,
            Some(run) if run.state.is_live() => WhyHeadline::Running,
            _ if self.bead.status == Status::Closed => WhyHeadline::Over,
            _ if self.reasons.iter().any(|reason| matches!(reason, WaitReason::Merging(_))) => {
                WhyHeadline::Landing
            }
            _ if self.reasons.iter().any(|reason| matches!(reason, WaitReason::MembersOpen(_))) => {
                WhyHeadline::Waiting
            }
            _ if open && self.reasons.is_empty() => WhyHeadline::Next,
            _ if open => WhyHeadline::Waiting,
            _ => WhyHeadline::Idle,
        }
    }
}

/// A place in line.
#[derive(Debug, Clone)]
pub struct QueuePosition {
    /// From 1; among those that could start if there were room.
    pub position: usize,
    /// How many stand in line.
    pub of: usize,
    /// The next ones before it, nearest last; at most ten.
    pub ahead: Vec<BeadId>,
}

const AHEAD_SHOWN: usize = 10;

/// Why the bead that `input` means is not running.
pub fn why(town: &Town, input: &str) -> Result<WhyAnswer> {
    let inputs = DispatchInputs::read(town)?;
    let mut why = town.read(|reader| {
        let bead = match scheduled_as(reader, input)? {
            Some(bead) => bead,
            None => require(town, reader, input)?,
        };
        let snapshot = SchedulingSnapshot::read_for_daemon(reader, &inputs, town.now())?;
        let BeadSchedulingState { context, run, is_open, reasons, outlook } =
            scheduling_state(town, reader, &snapshot, &bead)?;
        let causes = causes(town, reader, &snapshot, &bead, &reasons)?;
        let convoys = convoys_of(reader, &bead.id)?;
        let docked = reasons.iter().find_map(|reason| match reason {
            WaitReason::RigDocked(rig) => Some(rig.clone()),
            _ => None,
        });
        let remedies = reasons.iter().map(|reason| match (reason, &docked) {
            (WaitReason::NotScheduled | WaitReason::ConvoyStaged(_), Some(rig)) => {
                Ok(after_undocking(reason, &bead, rig, &convoys))
            }
            (reason, _) => remedy_in(reader, reason, &bead, is_open),
        });
        let remedies = remedies.collect::<Result<Vec<String>>>()?;
        let holders = holders(&reasons, &snapshot);
        let max_attempts = snapshot.settings.max_attempts;
        let progress = run.as_ref().map(|run| progress_in(reader, run)).transpose()?.flatten();
        let needs_you = needs_you_in(reader, Some(&bead.id))?;
        let landed = landed_request_in(reader, &bead.id)?;
        Ok(WhyAnswer {
            bead,
            convoys,
            context,
            run,
            reasons,
            remedies,
            causes,
            outlook,
            holders,
            max_attempts,
            progress,
            needs: Vec::new(),
            needs_you,
            landed,
        })
    })?;
    // Files and processes are checked after the transaction, so that it stays short.
    if let Some(run) = &why.run {
        why.needs = needs_of(town, run)?;
    }
    Ok(why)
}

/// How a bead stands: how it is scheduled, its last run, and everything that keeps it.
struct BeadSchedulingState {
    context: Option<Context>,
    run: Option<Run>,
    is_open: bool,
    reasons: Vec<WaitReason>,
    outlook: Option<QueuePosition>,
}

fn scheduling_state(
    town: &Town,
    reader: &Reader<'_>,
    snapshot: &SchedulingSnapshot,
    bead: &Bead,
) -> Result<BeadSchedulingState> {
    let context = reader.latest_context(&bead.id)?;
    let run = reader.runs_of(&bead.id)?.into_iter().next();
    let is_open = context.as_ref().is_some_and(|context| context.closed.is_none());
    let is_live = run.as_ref().is_some_and(|run| run.state.is_live());
    let scheduled = context.as_ref().filter(|_| is_open && !is_live);
    let (mut reasons, outlook) = if let Some(context) = scheduled {
        let facts = BeadFacts::of_bead(reader, bead)?;
        let own = snapshot.reasons(context, bead, &facts);
        // A bead that cannot start anyway stands in no line that would have to be walked.
        if own.iter().all(WaitReason::is_control) {
            in_line(town, reader, snapshot.clone(), bead)?
        } else {
            (own, None)
        }
    } else {
        let staged = reader.staged_convoys_of(std::slice::from_ref(&bead.id))?.remove(&bead.id);
        let reasons = snapshot.reasons_unscheduled(reader, bead, staged.as_ref())?;
        (with_open_members(reader, bead, reasons)?, None)
    };
    let merging = reasons.iter().find_map(|reason| match reason {
        WaitReason::Merging(request) => Some(request.rig.clone()),
        _ => None,
    });
    let elsewhere = merging.and_then(|rig| snapshot.caps.elsewhere.get_key_value(&rig));
    reasons.extend(elsewhere.map(|(rig, host)| WaitReason::OtherHost(rig.clone(), host.clone())));
    Ok(BeadSchedulingState { context, run, is_open, reasons, outlook })
}

/// The same reasons, where a convoy under way waits for its beads: it is no work that is dispatched itself.
fn with_open_members(
    reader: &Reader<'_>,
    bead: &Bead,
    mut reasons: Vec<WaitReason>,
) -> Result<Vec<WaitReason>> {
    if !bead.issue_type.is_convoy() || ConvoyState::of(bead) != ConvoyState::Open {
        return Ok(reasons);
    }
    for reason in &mut reasons {
        if matches!(reason, WaitReason::NotSlingable(_)) {
            let open = reader.open_members(&bead.id)?;
            if !open.is_empty() {
                *reason =
                    WaitReason::MembersOpen(open.into_iter().map(|member| member.bead).collect());
            }
        }
    }
    Ok(reasons)
}

/// How many beads of a chain are followed at most. Dependencies have no cycles, so this only bounds the work.
const CAUSES_MAX: usize = 100;

/// Follows what a bead waits for from blocker to blocker, up to the one that waits for no other bead.
fn causes(
    town: &Town,
    reader: &Reader<'_>,
    snapshot: &SchedulingSnapshot,
    bead: &Bead,
    reasons: &[WaitReason],
) -> Result<Vec<WaitCause>> {
    let mut chain: Vec<WaitCause> = Vec::new();
    let mut next = blocker_in(reasons);
    while let Some(id) = next.take() {
        let is_known = id == bead.id || chain.iter().any(|cause| cause.bead.id == id);
        if is_known || chain.len() == CAUSES_MAX {
            break;
        }
        let Some(blocker) = reader.bead(&id)? else { break };
        let BeadSchedulingState { is_open, reasons, .. } =
            scheduling_state(town, reader, snapshot, &blocker)?;
        next = blocker_in(&reasons);
        let remedy = reasons.first().map(|reason| remedy_in(reader, reason, &blocker, is_open));
        let remedy = remedy.transpose()?;
        chain.push(WaitCause { bead: blocker, reasons, remedy: remedy.unwrap_or_default() });
    }
    Ok(chain)
}

/// The first bead that these reasons name as a blocker. One that failed comes first: nothing but a person moves it.
fn blocker_in(reasons: &[WaitReason]) -> Option<BeadId> {
    let failed = reasons.iter().find_map(|reason| match reason {
        WaitReason::BlockerFailed(ids) => ids.first(),
        _ => None,
    });
    let open = || {
        reasons.iter().find_map(|reason| match reason {
            WaitReason::BlockedBy(ids) | WaitReason::MembersOpen(ids) => ids.first(),
            _ => None,
        })
    };
    failed.or_else(open).cloned()
}

/// The bead of the context of this name, if it is the name of one.
fn scheduled_as(reader: &Reader<'_>, input: &str) -> Result<Option<Bead>> {
    let name = input.trim();
    if !name.starts_with(ContextId::PREFIX) {
        return Ok(None);
    }
    match reader.context(name)? {
        Some(context) => Ok(reader.bead(&context.bead)?),
        None => Ok(None),
    }
}

/// Where a scheduled bead stands, by the same walk that lists and dispatches.
fn in_line(
    town: &Town,
    reader: &Reader<'_>,
    snapshot: SchedulingSnapshot,
    bead: &Bead,
) -> Result<(Vec<WaitReason>, Option<QueuePosition>)> {
    let line = line(town, reader, snapshot)?;
    let ready: Vec<&BeadId> =
        line.iter().filter(|queued| queued.is_ready()).map(|queued| &queued.context.bead).collect();
    let outlook = ready.iter().position(|id| **id == bead.id).map(|at| QueuePosition {
        position: at + 1,
        of: ready.len(),
        ahead: ready[at.saturating_sub(AHEAD_SHOWN)..at].iter().map(|id| (*id).clone()).collect(),
    });
    let own = line.into_iter().find(|queued| queued.context.bead == bead.id);
    Ok((own.map(|queued| queued.reasons).unwrap_or_default(), outlook))
}

/// The convoys that track a bead, in any state.
fn convoys_of(reader: &Reader<'_>, bead: &BeadId) -> Result<Vec<Bead>> {
    let mut found = Vec::new();
    for edge in reader.edges_to(bead)? {
        if edge.kind == DependencyType::Tracks {
            found.extend(reader.bead(&edge.issue)?.filter(|bead| bead.issue_type.is_convoy()));
        }
    }
    Ok(found)
}

/// The step that schedules a bead whose rig is docked: scheduling is refused until then, and an open convoy does it by
/// itself.
fn after_undocking(reason: &WaitReason, bead: &Bead, rig: &RigSlug, convoys: &[Bead]) -> String {
    let open = convoys.iter().find(|convoy| convoy.status == Status::Open);
    match (reason, open) {
        (WaitReason::ConvoyStaged(convoy), _) => {
            format!("gt rig undock {rig}, then gt convoy launch {convoy}")
        }
        (_, Some(convoy)) => {
            format!(
                "gt rig undock {rig} schedules it, because the open convoy {} tracks it",
                convoy.id
            )
        }
        (_, None) => format!("gt rig undock {rig}, then gt sling {}", bead.id),
    }
}

/// The live runs behind the caps that are reached.
fn holders(reasons: &[WaitReason], snapshot: &SchedulingSnapshot) -> Vec<Run> {
    let holds = |run: &&Run| {
        run.holds_slot()
            && reasons.iter().any(|reason| match reason {
                WaitReason::NoSlot(Cap::Town(_) | Cap::Queue(_)) => true,
                WaitReason::NoSlot(Cap::Rig(rig, _)) => run.rig == *rig,
                WaitReason::NoSlot(Cap::Account(handle, _)) => run.account == *handle,
                WaitReason::NoSlot(Cap::Runtime(name, _)) => run.runtime == *name,
                WaitReason::NoSlot(Cap::Convoy(convoy, _)) => snapshot.is_run_of(run, convoy),
                WaitReason::OnePerAgent(_, id) => run.id == *id,
                _ => false,
            })
    };
    let mut holders: Vec<Run> = snapshot.live_runs().filter(holds).cloned().collect();
    holders.sort_by(|a, b| a.created_at.cmp(&b.created_at).then_with(|| a.id.cmp(&b.id)));
    holders
}

/// The step that removes a reason. Work that was sent back and has a repair needs no person.
fn remedy_in(
    reader: &Reader<'_>,
    reason: &WaitReason,
    bead: &Bead,
    scheduled: bool,
) -> Result<String> {
    let repair = match reason {
        WaitReason::Merging(request) => repair_of(reader, request)?,
        _ => String::new(),
    };
    Ok(if repair.is_empty() { remedy(reason, bead, scheduled) } else { repair })
}

/// The same for a caller that does not know of repairs.
pub(crate) fn remedy(reason: &WaitReason, bead: &Bead, scheduled: bool) -> String {
    let id = &bead.id;
    let goes = if scheduled { "it starts" } else { "that is over" };
    match reason {
        WaitReason::BlockedBy(ids) => format!("{goes} when {} closed", are(ids)),
        WaitReason::BlockerFailed(ids) => format!(
            "retry what failed with gt scheduler retry {}, or waive it by closing it again",
            ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
        ),
        WaitReason::DeferredUntil(_) | WaitReason::ParentDeferred(..) => {
            format!("{goes} by itself when that time has come")
        }
        WaitReason::Backoff(_) => {
            format!("it starts by itself then; gt scheduler retry {id} --now starts it sooner")
        }
        WaitReason::Deferred => format!("bd undefer {id}"),
        WaitReason::Status(Status::Closed) if bead.outcome == Some(Outcome::Failed) => {
            format!("gt scheduler retry {id} opens it and tries again")
        }
        WaitReason::Status(Status::Closed) => format!("bd reopen {id} opens it again"),
        WaitReason::Status(_) | WaitReason::Pinned => format!("bd update {id} --status open"),
        WaitReason::MembersOpen(_) => {
            format!("it goes on by itself; gt convoy status {id} says what each of them waits for")
        }
        WaitReason::NotSlingable(kind)
            if kind.is_convoy() && ConvoyState::of(bead) == ConvoyState::Open =>
        {
            format!("gt convoy status {id} says what it waits for")
        }
        WaitReason::NotSlingable(kind) if kind.is_epic() || kind.is_convoy() => {
            format!("gt sling {id} schedules the beads that it is made of")
        }
        WaitReason::NotWork(_) | WaitReason::NotSlingable(_) => {
            format!("give it another type with bd update {id} --type task, or sling its parts")
        }
        WaitReason::Ephemeral => "machinery is not dispatched".to_owned(),
        WaitReason::Running(run) => format!("gt run log {run} -f follows it"),
        WaitReason::StartInProgress(_) => "its worker is being started".to_owned(),
        WaitReason::WithCrew(who, run) => {
            format!("{who} closes it with bd close {id}, or gt run cancel {run} takes it back")
        }
        // A scheduled bead is not scheduled again, not even with `--force`.
        WaitReason::ClaimedByHand(_) if scheduled => {
            format!("bd update {id} --status open releases it")
        }
        WaitReason::AssignedTo(_) if scheduled => {
            format!("bd update {id} --assignee \"\" releases it")
        }
        WaitReason::ClaimedByHand(_) => {
            format!("bd update {id} --status open releases it, or gt sling {id} --force takes it")
        }
        WaitReason::AssignedTo(_) => {
            format!("bd update {id} --assignee \"\" releases it, or gt sling {id} --force takes it")
        }
        WaitReason::TownLevel => format!("bd update {id} --rig <rig> moves it to a rig"),
        WaitReason::ConvoyStaged(convoy) => format!("gt convoy launch {convoy}"),
        WaitReason::ConvoyPaused(convoy, ..) => format!("gt convoy resume {convoy}"),
        WaitReason::NotScheduled | WaitReason::Cleared(_) | WaitReason::RunCancelled(_) => {
            format!("gt sling {id}")
        }
        WaitReason::CircuitBroken(_)
        | WaitReason::Quarantined(_)
        | WaitReason::AttemptsUsedUp(_) => format!("gt scheduler retry {id}"),
        WaitReason::OverLimit(run, limit) => format!(
            "see what it did with gt run log {run}; gt scheduler retry {id} goes on, gt config set {} <limit> allows more",
            limit.setting()
        ),
        WaitReason::Review => {
            format!("look at it, then bd close {id}, or gt sling {id} for another round")
        }
        WaitReason::Escalated(_) => {
            format!(
                "see what it needs with gt why {id}, then bd update {id} --status open and gt sling {id}"
            )
        }
        WaitReason::PutOff(_) if bead.status == Status::Deferred => {
            format!("bd undefer {id} when its time has come, then gt sling {id}")
        }
        WaitReason::PutOff(_) => format!("gt sling {id}"),
        WaitReason::Merging(request) => request.next_step(),
        WaitReason::CannotStart(_) => {
            format!("put that right, or gt scheduler clear --bead {id}; the next cycle gives it up")
        }
        WaitReason::RigGone(rig) => format!("gt rig add {rig}, or sling it elsewhere"),
        WaitReason::RigParked(rig) => format!("gt rig unpark {rig}"),
        WaitReason::ExecutorRemoved(rig) => format!(
            "gt store migrate postgres://…, then gt host add <machine> --ssh <machine> with the machine of the rig; or gt rig set \
             {rig} executor process"
        ),
        WaitReason::RigDocked(rig) => format!("gt rig undock {rig}"),
        WaitReason::RigCannotRun(rig) => {
            format!("gt config set rig.{rig}.command '<program> {{bead}}'")
        }
        WaitReason::OtherHost(rig, _) => format!(
            "it goes on there; gt config unset rig.{rig}.host lets every host work on the rig"
        ),
        WaitReason::Placement(answer) if answer.willing().is_empty() => match answer.pinned_rig() {
            Some(rig) => format!(
                "gt host list shows the hosts; gt config unset rig.{rig}.host lets every host work on the rig"
            ),
            None => "gt host list shows the hosts; give one what is missing, or gt host resume one that is draining".to_owned(),
        },
        WaitReason::Placement(_) => "it starts there by itself".to_owned(),
        WaitReason::PreferredHost(..) => "it starts there, or here after that".to_owned(),
        WaitReason::Paused(..) => "gt scheduler resume".to_owned(),
        WaitReason::QueueGate => {
            "gt queue run starts it; gt config set queue.enabled true lets the daemon do it"
                .to_owned()
        }
        WaitReason::WaitsForPullAgent => "it starts when an agent asks for work".to_owned(),
        WaitReason::OnePerAgent(place, run) => {
            format!("it starts after {}, or sling it to another than {place}", run.bead)
        }
        WaitReason::RuntimeParked(name, _) => {
            format!("it starts by itself; gt deacon resume runtime {name} ends it sooner")
        }
        WaitReason::AccountLimited(handle, _) => {
            format!("it starts by itself; gt config account resume {handle} ends it sooner")
        }
        WaitReason::Budget(budget) => {
            let raise = format!("gt config set {} <n>", budget.set.setting());
            match budget.end() {
                BudgetEnd::At(_) => {
                    format!("it starts by itself when that time has come; {raise} changes the budget")
                }
                BudgetEnd::LiveRun => {
                    format!("it starts by itself when a run has ended; {raise} changes the budget")
                }
                BudgetEnd::Raised => format!("{raise} raises the budget, 0 lifts it; a run under way goes on to its own limits"),
            }
        }
        WaitReason::ReviewsWaiting { .. } => {
            "gt review lists what waits; gt config set review.max <n> lets more wait, 0 any number"
                .to_owned()
        }
        WaitReason::Memory { .. } => {
            "it starts by itself when there is clearly more; gt config set guard.memory_min_mb <n> and \
             guard.memory_min_percent <n> change how much must be left"
                .to_owned()
        }
        WaitReason::Disk { .. } => {
            "it starts by itself when there is room: the oldest logs of ended runs are removed first; gt doctor shows what takes \
             the room, gt polecat purge empties the trash, and gt config set guard.disk_min_mb <n> changes how much must be free"
                .to_owned()
        }
        WaitReason::Load(_) => {
            "it starts by itself when this machine is less busy; gt config set guard.load_per_core <n> \
             changes how busy it may be"
                .to_owned()
        }
        WaitReason::NoSlot(cap) => {
            let setting = match cap {
                Cap::Town(_) => "scheduler.max_polecats".to_owned(),
                Cap::Queue(_) => "queue.max_polecats".to_owned(),
                Cap::Rig(rig, _) => format!("rig.{rig}.max_polecats"),
                Cap::Convoy(convoy, _) => {
                    return format!(
                        "it starts when one of the runs that hold the slots ends; gt convoy cap {convoy} <n> changes \
                         the cap"
                    );
                }
                Cap::Account(handle, _) => {
                    return format!(
                        "it starts when one of the runs that hold the slots ends; the cap is that of the \
                         account {handle}"
                    );
                }
                Cap::Runtime(name, _) => {
                    return format!(
                        "it starts when one of the runs that hold the slots ends; gt config agent set {name} \
                         max_runs <n> changes the cap"
                    );
                }
            };
            format!(
                "it starts when one of the runs that hold the slots ends; gt config set {setting} <n> \
                 changes the cap"
            )
        }
    }
}

fn are(ids: &[BeadId]) -> String {
    let names = ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    if ids.len() == 1 { format!("{names} is") } else { format!("{names} are") }
}
