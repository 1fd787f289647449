//! A fleet at work, without processes: hosts with leases, and live runs on them. For measurements.

use gt_core::schedule::{CloseReason, ContextOrigin, Run, RunState, Workplace};
use gt_core::{BeadChangeKind, BeadId, ExecutorKind, RigSlug, Status, Uid};
use gt_store::{Authorship, HostDeclaration, HostRow, NewContext, StoreError, Writer};
use gt_town::{OperationError, Result, Town};

/// The host of this number.
pub fn host_of_number(number: u32) -> HostRow {
    HostRow {
        id: format!("h{number}"),
        name: format!("host{number}"),
        machine: format!("m{number}"),
        path: "/town".to_owned(),
        incarnation: "1".to_owned(),
    }
}

/// Renews the leases of hosts.
pub fn renew_hosts(town: &Town, hosts: &[HostRow], declaration: &HostDeclaration) -> Result<()> {
    write(town, |writer| {
        hosts.iter().try_for_each(|host| writer.renew_host(host, declaration, true))
    })
}

/// Schedules beads of a rig, and has the first `live` of them running, each on the host that `host_of` names for its number.
pub fn schedule_with_live_runs(
    town: &Town,
    rig: &RigSlug,
    beads: &[BeadId],
    live: usize,
    host_of: impl Fn(usize) -> String,
) -> Result<()> {
    write(town, |writer| {
        let new = beads.iter().map(|id| {
            let priority = gt_core::Priority::default();
            NewContext::plain(id.clone(), rig.clone(), priority, ContextOrigin::Sling)
        });
        let contexts = writer.insert_contexts(new.collect())?;
        for (number, context) in contexts.iter().take(live).enumerate() {
            let begun = Run::begun(
                writer.next_run_id(&context.bead)?,
                Uid::fresh(),
                context.number,
                context.rig.clone(),
                ExecutorKind::Process,
                writer.now(),
            );
            let agent = format!("{rig}/process-{number}");
            let run = Run { agent, host: host_of(number), ..begun };
            writer.insert_run(&run)?;
            writer.claim_run(&run, &Workplace::default())?;
            writer.close_context(context, CloseReason::Dispatched, "")?;
            if let Some(old) = writer.bead(&context.bead)? {
                let (status, assignee) = (Status::InProgress, run.agent.clone());
                let new = gt_core::Bead { status, assignee, ..old.clone() };
                writer.save_bead(&old, &new, BeadChangeKind::StatusChanged)?;
            }
        }
        Ok(())
    })?;
    let runs = town.read(|reader| Ok::<_, OperationError>(reader.live_runs()?))?;
    let running = runs.iter().filter(|run| run.state == RunState::Running).count();
    if running == live {
        return Ok(());
    }
    Err(OperationError::rejected(format!("{running} of {live} runs are live")))
}

/// Writes to the store of a town without the consequences of a commit.
pub(crate) fn write<T>(
    town: &Town,
    work: impl FnOnce(&mut Writer<'_>) -> std::result::Result<T, StoreError>,
) -> Result<T> {
    let by = Authorship { actor: "person".to_owned(), at: town.now(), worker: None };
    Ok(town.store().write(&by, work)?)
}
