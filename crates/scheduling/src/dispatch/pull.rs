//! Runs of agents that ask for work, or are given it. They take none of the town's slots. Each agent has one item in
//! progress at a time: the caller checks it in the same transaction, and an index enforces it.

use gt_core::schedule::{CloseReason, Run, RunState};
use gt_core::work::Lease;
use gt_core::{Bead, BeadChangeKind, ExecutorKind, RigSlug, Status, Uid};
use gt_store::{Offered, Writer};

use gt_town::{OperationError, Result};

/// Gives an open bead to an agent, who has not picked it up yet.
pub fn give_in(writer: &mut Writer<'_>, bead: &Bead, agent: &str) -> Result<Run> {
    let context = writer.open_context(&bead.id)?;
    let number = context.as_ref().map_or(0, |context| context.number);
    let id = writer.next_run_id(&bead.id)?;
    let uid = Uid::of_run(&id, writer.now());
    let rig = bead.rig.clone().unwrap_or_else(RigSlug::inbox);
    let run = Run {
        agent: agent.to_owned(),
        created_by: writer.actor().to_owned(),
        ..Run::begun(id, uid, number, rig, ExecutorKind::Pull, writer.now())
    };
    writer.insert_run(&run)?;
    if let Some(context) = context {
        writer.close_context(&context, CloseReason::Dispatched, "")?;
    }
    let mut hooked = bead.clone();
    agent.clone_into(&mut hooked.assignee);
    hooked.enter(Status::Hooked, writer.now());
    hooked.updated_at = writer.now().of_change_after(bead.updated_at);
    writer.save_bead(bead, &hooked, BeadChangeKind::StatusChanged)?;
    Ok(run)
}

/// The agent of a run picks its bead up.
pub fn begin_in(
    writer: &mut Writer<'_>,
    run: &Run,
    bead: &Bead,
    lease: Option<Lease>,
) -> Result<(Run, Bead)> {
    let run = Run {
        state: RunState::Running,
        running_at: Some(writer.now()),
        lease,
        lease_expires_at: lease.map(|lease| lease.ends(writer.lease_now())),
        ..run.clone()
    };
    if !writer.begin_given(&run)? {
        return Err(OperationError::rejected(format!("{} is not starting any more", run.id)));
    }
    if let Some(context) = writer.open_context(&bead.id)? {
        writer.close_context(&context, CloseReason::Dispatched, "")?;
    }
    let taken = taken(writer, bead, &run.agent);
    writer.save_bead(bead, &taken, BeadChangeKind::StatusChanged)?;
    Ok((run, taken))
}

/// An agent takes what it was offered in this very transaction.
pub fn take_in(
    writer: &mut Writer<'_>,
    offered: &Offered,
    agent: &str,
    lease: Lease,
) -> Result<(Run, Bead)> {
    let bead = &offered.bead;
    if let Some(given) = &offered.given {
        let run = writer.run(given)?.ok_or_else(|| OperationError::NoBead(given.to_string()))?;
        return begin_in(writer, &run, bead, Some(lease));
    }
    let id = offered.next_run.clone();
    let uid = Uid::of_run(&id, writer.now());
    let rig = bead.rig.clone().unwrap_or_else(RigSlug::inbox);
    let context = offered.context.unwrap_or(0);
    let run = Run {
        agent: agent.to_owned(),
        created_by: writer.actor().to_owned(),
        state: RunState::Running,
        running_at: Some(writer.now()),
        lease: Some(lease),
        lease_expires_at: Some(lease.ends(writer.lease_now())),
        ..Run::begun(id, uid, context, rig, ExecutorKind::Pull, writer.now())
    };
    let taken = taken(writer, bead, agent);
    writer.take_offered(&run, bead, &taken)?;
    if let Some(number) = offered.context
        && let Some(context) = writer.context_by_number(number)?
    {
        writer.close_context(&context, CloseReason::Dispatched, "")?;
    }
    Ok((run, taken))
}

fn taken(writer: &Writer<'_>, bead: &Bead, agent: &str) -> Bead {
    let mut taken = bead.clone();
    agent.clone_into(&mut taken.assignee);
    taken.enter(Status::InProgress, writer.now());
    taken.updated_at = writer.now().of_change_after(bead.updated_at);
    taken
}
