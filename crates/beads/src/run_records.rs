//! The rows of runs as other operations find, end and release them. Nothing here touches a process.

use gt_core::schedule::{CloseReason, Run, RunEnd, RunId, RunState};
use gt_core::{BeadChangeKind, BeadId, ExecutorKind, Status};
use gt_store::{Reader, Writer};

use crate::lookup::resolve_in;
use gt_town::{OperationError, Result, Town};

/// The run that `input` means: `gt-abc#3`, or a bead, whose live or last run it is.
pub fn resolve(town: &Town, input: &str) -> Result<Run> {
    town.read(|reader| resolve_run(town, reader, input))
}

/// Like [`resolve`], as a part of something larger.
pub fn resolve_run(town: &Town, reader: &Reader<'_>, input: &str) -> Result<Run> {
    if let Ok(id) = RunId::parse(input)
        && let Some(run) = reader.run(&id)?
    {
        return Ok(run);
    }
    let numbered = input.rsplit_once('#');
    let numbered = numbered.and_then(|(bead, number)| Some((bead, number, number.parse().ok()?)));
    let (bead, epoch) = match numbered {
        None => (input, None),
        Some((bead, number, epoch)) if number == u32::to_string(&epoch) => (bead, Some(epoch)),
        Some((bead, number, epoch)) => {
            return Err(OperationError::rejected(format!(
                "{bead}#{number} is not a run; the number of a run has no zero and no sign in front: {bead}#{epoch}"
            )));
        }
    };
    let bead = resolve_in(town, reader, bead)?;
    let runs = reader.runs_of(&bead)?;
    let found = runs.into_iter().find(|run| epoch.is_none_or(|epoch| run.id.epoch == epoch));
    found.ok_or_else(|| match epoch {
        Some(epoch) => OperationError::rejected(format!(
            "{bead} has no run {epoch}; gt run list {bead} shows those it has"
        )),
        None => OperationError::rejected(format!(
            "{bead} has no run; gt why {bead} says what it waits for"
        )),
    })
}

/// Ends a run in the store: the bead is open, and later reports of the run are refused.
pub fn cancel_in(writer: &mut Writer<'_>, run: &Run) -> Result<()> {
    let by = writer.actor().to_owned();
    if !writer.end_run(run, &cancelled(), &by)? {
        return Ok(());
    }
    let has_processes = match run.executor {
        ExecutorKind::Tmux | ExecutorKind::Process => run.state != RunState::Starting,
        ExecutorKind::Ssh | ExecutorKind::Pull | ExecutorKind::None => false,
    };
    if has_processes {
        // They may be on another host than this one. No other host starts the bead before its host has ended them.
        writer.leave_run_to_its_host(run)?;
    }
    release_in(writer, &run.id.bead)?;
    if let Some(context) = writer.context_by_number(run.context)?.filter(|c| c.closed.is_none()) {
        writer.close_context(&context, CloseReason::Dispatched, "")?;
    }
    Ok(())
}

fn cancelled() -> RunEnd {
    RunEnd::without_status(RunState::Cancelled, "it was cancelled")
}

/// Opens the bead of a run that is over without having finished it: it has no assignee any more.
pub fn release_in(writer: &mut Writer<'_>, id: &BeadId) -> Result<()> {
    release_as(writer, id, BeadChangeKind::StatusChanged)
}

/// The same, recorded as an event of this kind.
pub fn release_as(writer: &mut Writer<'_>, id: &BeadId, kind: BeadChangeKind) -> Result<()> {
    if writer.bead(id)?.is_none_or(|bead| bead.status == Status::Closed) {
        return Ok(());
    }
    set_status_in(writer, id, Status::Open, "", kind)
}

/// Gives a bead a status and an assignee, which is empty for none, because of what became of its work.
pub fn set_status_in(
    writer: &mut Writer<'_>,
    id: &BeadId,
    status: Status,
    assignee: &str,
    kind: BeadChangeKind,
) -> Result<()> {
    let Some(old) = writer.bead(id)? else { return Ok(()) };
    let mut new = old.clone();
    assignee.clone_into(&mut new.assignee);
    new.enter(status, writer.now());
    new.updated_at = writer.now().of_change_after(old.updated_at);
    writer.save_bead(&old, &new, kind)?;
    Ok(())
}

/// Takes a bead that was closed out of the line, if it waits there.
pub(crate) fn close_context_of(writer: &mut Writer<'_>, id: &BeadId) -> Result<()> {
    if let Some(context) = writer.open_context(id)? {
        writer.close_context(&context, CloseReason::StaleWorkBead, "its bead was closed")?;
    }
    Ok(())
}
