//! Changing an item, as far as the table of statuses allows.

use gt_core::bead::check_text;
use gt_core::schedule::{Run, RunEnd, RunState};
use gt_core::work::{
    AgentChange, ItemHolder, ItemRef, NewWork, RunRef, WorkChange, WorkFacts, WorkItem, WorkStatus,
    WorkStep, check_agent, decide, work_title, work_type,
};
use gt_core::{Bead, BeadChangeKind, BeadId, ExecutorKind, Invalid, Outcome, RigState, Status};
use gt_store::Writer;

use super::error::{Conflict, WorkError, WorkResult};
use super::heartbeat::held_in;
use super::projects::home_in;
use super::requests::{ItemChange, Precondition};
use super::submit::check_payload;
use super::{refuse_other, require_item};
use gt_beads::beads::{Close, FieldEdit, close_in};
use gt_beads::run_records::{cancel_in, release_in};
use gt_scheduling::dispatch::{begin_in, give_in};
use gt_scheduling::run_transitions::finish_in;
use gt_town::{OperationError, Town};

/// Changes an item, or says why not: fields first, then where it stands, in one transaction.
pub fn change(town: &Town, reference: &ItemRef, change: ItemChange) -> WorkResult<WorkItem> {
    check(&change)?;
    let reference = reference.clone();
    town.submit(move |town, writer| change_in(town, writer, &reference, &change))
}

/// Cancels an item that no agent has begun.
pub fn cancel(
    town: &Town,
    reference: &ItemRef,
    precondition: Precondition,
) -> WorkResult<WorkItem> {
    let status = Some(WorkStatus::Cancelled);
    change(town, reference, ItemChange { status, precondition, ..ItemChange::default() })
}

/// Refuses what can never be.
fn check(change: &ItemChange) -> WorkResult<()> {
    let invalid = |field| move |error: Invalid| WorkError::invalid(field, &error);
    if let Some(notes) = &change.notes {
        check_text("notes", notes).map_err(invalid("notes"))?;
    }
    if let FieldEdit::Set(agent) = &change.agent {
        check_agent(agent).map_err(invalid("assigned_agent"))?;
    }
    if let Some(kind) = &change.kind {
        work_type(kind).map_err(invalid("type"))?;
    }
    if let Some(description) = &change.description {
        work_title(description).map_err(invalid("description"))?;
    }
    if let FieldEdit::Set(payload) = &change.payload {
        check_payload(payload).map_err(invalid("payload"))?;
    }
    Ok(())
}

fn change_in(
    town: &Town,
    writer: &mut Writer<'_>,
    reference: &ItemRef,
    change: &ItemChange,
) -> WorkResult<WorkItem> {
    let item = require_item(writer, reference)?;
    let Precondition { run, version } = &change.precondition;
    let live = match run {
        Some(named) if repeats(writer, &item, named, change)? => None,
        Some(named) => Some(held_in(writer, &item, named)?),
        None => writer.live_run(&item.bead)?,
    };
    let holder = live.as_ref().map(|run| run.agent.as_str()).or(item.agent.as_deref());
    refuse_other_agents(town, holder, change)?;
    let current = item.version();
    if version.is_some_and(|version| version != current) {
        return Err(Conflict::StaleVersion { bead: item.bead, current }.into());
    }
    let bead = bead_in(writer, &item.bead)?;
    let step = ask(writer, &item, &bead, live.as_ref(), change)?;
    let bead = edit(writer, &bead, live.as_ref(), change, &step)?;
    let said = change.notes.as_deref().unwrap_or_default();
    perform(town, writer, &bead, live, &step, said)?;
    require_item(writer, &item.bead.into())
}

/// Whether this asks again for the status that the item has since this very run ended: the answer to the first request may
/// have been lost.
fn repeats(
    writer: &Writer<'_>,
    item: &WorkItem,
    named: &RunRef,
    change: &ItemChange,
) -> WorkResult<bool> {
    if change.status != Some(item.status) || writer.live_run(&item.bead)?.is_some() {
        return Ok(false);
    }
    let last = writer.runs_of(&item.bead)?.into_iter().max_by_key(|run| run.id.epoch);
    Ok(last.is_some_and(|run| named.is(&run.id, run.uid)))
}

/// Refuses what concerns the work of another agent, if the caller may act for one only. That one may take what has no agent.
fn refuse_other_agents(town: &Town, holder: Option<&str>, change: &ItemChange) -> WorkResult<()> {
    let Some(only) = town.only_agent() else { return Ok(()) };
    if let FieldEdit::Set(agent) = &change.agent {
        refuse_other(town, agent, || format!("{agent} is to get it"))?;
    }
    let takes = change.status == Some(WorkStatus::Dispatched)
        && matches!(&change.agent, FieldEdit::Set(agent) if agent == only);
    match holder {
        Some(agent) => refuse_other(town, agent, || format!("{agent} has it")),
        None if takes => Ok(()),
        None => refuse_other(town, "", || format!("it was not dispatched to {only}")),
    }
}

fn bead_in(writer: &Writer<'_>, id: &BeadId) -> WorkResult<Bead> {
    Ok(writer.bead(id)?.ok_or_else(|| OperationError::NoBead(id.to_string()))?)
}

/// Asks the table.
fn ask(
    writer: &Writer<'_>,
    item: &WorkItem,
    bead: &Bead,
    live: Option<&Run>,
    change: &ItemChange,
) -> WorkResult<WorkStep> {
    let agent = match &change.agent {
        FieldEdit::Keep => AgentChange::Keep,
        FieldEdit::Clear => AgentChange::Unassigned,
        FieldEdit::Set(agent) => AgentChange::Is(agent.clone()),
    };
    let wish = WorkChange { status: change.status, outcome: change.outcome, agent };
    let blockers = if bead.open_blockers > 0 {
        let facts = writer.blockers(&bead.id)?;
        [facts.open, facts.failed].concat()
    } else {
        Vec::new()
    };
    let situation = WorkFacts {
        status: item.status,
        agent: &bead.assignee,
        holder: live.map(|run| ItemHolder {
            run: &run.id,
            executor: run.executor,
            agent: &run.agent,
        }),
        blockers: &blockers,
        pinned: bead.pinned || bead.status == Status::Pinned,
    };
    decide(&situation, &wish).map_err(|refusal| WorkError::refused(&bead.id, item.status, refusal))
}

/// Changes what has nothing to do with where the item stands.
fn edit(
    writer: &mut Writer<'_>,
    old: &Bead,
    live: Option<&Run>,
    change: &ItemChange,
    step: &WorkStep,
) -> WorkResult<Bead> {
    let mut new = old.clone();
    if let Some(notes) = &change.notes {
        new.notes.clone_from(notes);
    }
    if let Some(priority) = change.priority {
        new.priority = priority.of_bead();
    }
    let kind = change.kind.as_deref().unwrap_or(old.issue_type.as_str());
    if let Some(description) = &change.description {
        let work = NewWork::check(kind, description);
        let work = work.map_err(|(field, error)| WorkError::invalid(field, &error))?;
        new.description = work.description;
        new.title = work.title;
    }
    if let Some(kind) = &change.kind {
        new.issue_type = work_type(kind).map_err(|error| WorkError::invalid("type", &error))?;
    }
    match &change.payload {
        FieldEdit::Keep => {}
        FieldEdit::Clear => new.metadata = None,
        FieldEdit::Set(payload) => new.metadata = Some(payload.clone()),
    }
    let project = match &change.project {
        FieldEdit::Keep => None,
        FieldEdit::Clear => Some(home_in(writer, None)?),
        FieldEdit::Set(reference) => Some(home_in(writer, Some(reference))?),
    };
    if let Some(rig) = project.filter(|rig| Some(&rig.slug) != old.rig.as_ref()) {
        if let Some(run) = live {
            return Err(Conflict::Running { run: run.id.clone() }.into());
        }
        new.rig = Some(rig.slug);
    }
    if let WorkStep::Assign(agent) = step {
        new.assignee.clone_from(agent);
    }
    if new != *old {
        new.updated_at = writer.now().of_change_after(old.updated_at);
        writer.save_bead(old, &new, BeadChangeKind::Updated)?;
    }
    Ok(new)
}

/// Does what the table said.
fn perform(
    town: &Town,
    writer: &mut Writer<'_>,
    bead: &Bead,
    live: Option<Run>,
    step: &WorkStep,
    said: &str,
) -> WorkResult<()> {
    match step {
        WorkStep::Nothing | WorkStep::Assign(_) => Ok(()),
        WorkStep::Dispatch(agent) => dispatch(writer, bead, live.as_ref(), agent),
        WorkStep::Start => match live {
            Some(run) if run.executor == ExecutorKind::Pull => {
                refuse_busy(writer, &run.agent)?;
                begin_in(writer, &run, bead, None)?;
                Ok(())
            }
            Some(run) => {
                writer.claim_run(&run, &run.workplace)?;
                enter_in(writer, bead, Status::InProgress)
            }
            None => enter_in(writer, bead, Status::InProgress),
        },
        WorkStep::Block => {
            if let Some(run) = &live {
                writer.block_run(run, said, false)?;
            }
            enter_in(writer, bead, Status::Blocked)
        }
        WorkStep::Resume => {
            if let Some(run) = &live {
                if run.executor == ExecutorKind::Pull {
                    refuse_busy(writer, &run.agent)?;
                }
                writer.unblock_run(run)?;
            }
            enter_in(writer, bead, Status::InProgress)
        }
        WorkStep::Requeue(agent) => {
            match &live {
                Some(run) => cancel_in(writer, run)?,
                None => release_in(writer, &bead.id)?,
            }
            if agent.is_empty() {
                return Ok(());
            }
            let old = bead_in(writer, &bead.id)?;
            let new = Bead { assignee: agent.clone(), ..old.clone() };
            writer.save_bead(&old, &new, BeadChangeKind::Updated)?;
            Ok(())
        }
        WorkStep::Finish(outcome) => finish(town, writer, bead, live.as_ref(), *outcome, said),
        WorkStep::Cancel => {
            if let Some(run) = &live {
                cancel_in(writer, run)?;
            }
            let reason = format!("cancelled by {}", writer.actor());
            close(writer, &bead.id, Outcome::Cancelled, reason)
        }
    }
}

fn dispatch(
    writer: &mut Writer<'_>,
    bead: &Bead,
    live: Option<&Run>,
    agent: &str,
) -> WorkResult<()> {
    if let Some(slug) = &bead.rig
        && let Some(rig) = writer.rig(slug.as_str())?
        && rig.state != RigState::Active
    {
        return Err(Conflict::RigClosed { rig: rig.slug, state: rig.state }.into());
    }
    let Some(run) = live else {
        give_in(writer, bead, agent)?;
        return Ok(());
    };
    cancel_in(writer, run)?;
    let bead = bead_in(writer, &bead.id)?;
    give_in(writer, &bead, agent)?;
    Ok(())
}

/// Ends an item as its agent says.
fn finish(
    town: &Town,
    writer: &mut Writer<'_>,
    bead: &Bead,
    live: Option<&Run>,
    outcome: Outcome,
    said: &str,
) -> WorkResult<()> {
    let state = match outcome {
        Outcome::Success => RunState::Done,
        Outcome::Failed => RunState::Failed,
        Outcome::Cancelled => RunState::Cancelled,
    };
    let who = live.map_or_else(|| writer.actor().to_owned(), |run| run.agent.clone());
    let reason = match said.lines().map(str::trim).find(|line| !line.is_empty()) {
        Some(line) => line.to_owned(),
        None => format!("{who} says so"),
    };
    match live {
        Some(run) => {
            finish_in(writer, town, &run.id, &RunEnd::without_status(state, reason))?;
            Ok(())
        }
        None => close(writer, &bead.id, outcome, reason),
    }
}

fn close(
    writer: &mut Writer<'_>,
    bead: &BeadId,
    outcome: Outcome,
    reason: String,
) -> WorkResult<()> {
    let how = Close { reasons: vec![reason], outcome: Some(outcome), force: true, session: None };
    close_in(writer, bead, &how, 0, None)?;
    Ok(())
}

fn enter_in(writer: &mut Writer<'_>, bead: &Bead, status: Status) -> WorkResult<()> {
    let mut new = bead.clone();
    new.enter(status, writer.now());
    new.updated_at = writer.now().of_change_after(bead.updated_at);
    writer.save_bead(bead, &new, BeadChangeKind::StatusChanged)?;
    Ok(())
}

/// One item in progress for each agent.
fn refuse_busy(writer: &Writer<'_>, agent: &str) -> WorkResult<()> {
    let Some(run) = writer.run_of_agent(agent)? else { return Ok(()) };
    let bead = run.id.bead;
    let item = require_item(writer, &bead.clone().into())?.uid;
    Err(Conflict::AgentBusy { agent: agent.to_owned(), item, bead }.into())
}
