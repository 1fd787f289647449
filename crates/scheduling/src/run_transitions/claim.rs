//! A worker claims its run.

use gt_core::schedule::{CloseReason, Context, Polecat, Run, RunId, RunState, Workplace};
use gt_core::work::RunToken;
use gt_core::{Bead, BeadChangeKind, Status};

use crate::host_lease::renew_if_due;
use gt_town::{OperationError, Result, Town};

/// The answer to a supervisor that claims a run.
#[derive(Debug, Clone)]
pub enum Claim {
    /// The run is claimed: this is its work.
    Granted(Box<ClaimedRun>),
    /// The claim is refused, for this reason, and nothing may be started.
    Refused(String),
}

/// The work of a run.
#[derive(Debug, Clone)]
pub struct ClaimedRun {
    /// The run.
    pub run: Run,
    /// The bead it works on.
    pub bead: Bead,
    /// How it was scheduled.
    pub context: Context,
    /// The token that proves to be its worker. Only the environment of its agent has it.
    pub token: RunToken,
}

/// Moves a run from `starting` to `running` and closes its context, by compare and swap. Of all supervisors ever
/// started for it, and of all processes that give it up, exactly one succeeds. Only then may the agent be executed.
/// A polecat that is given becomes the run's.
pub fn claim(
    town: &Town,
    id: &RunId,
    place: &Workplace,
    polecat: Option<&Polecat>,
) -> Result<Claim> {
    // Time may have passed since the run was written: after the grace of an old lease another host may take it for lost.
    renew_if_due(town)?;
    let token = new_token()?;
    town.write(|writer| {
        let Some(run) = writer.run(id)? else {
            return Ok(Claim::Refused(format!("there is no run {id}")));
        };
        if run.state != RunState::Starting {
            return Ok(Claim::Refused(format!("{id} is {}", run.state.as_str())));
        }
        let (Some(context), Some(bead)) =
            (writer.context_by_number(run.context)?, writer.bead(&id.bead)?)
        else {
            return Ok(Claim::Refused(format!("what {id} was to work on is gone")));
        };
        if !writer.claim_run(&run, place)? {
            return Ok(Claim::Refused(format!("{id} is not starting any more")));
        }
        writer.set_run_token(id, &token.hash())?;
        if let Some(polecat) = polecat {
            writer.put_polecat(polecat)?;
        }
        if context.closed.is_none() {
            writer.close_context(&context, CloseReason::Dispatched, "")?;
        }
        let mut taken = bead.clone();
        taken.enter(Status::InProgress, writer.now());
        taken.updated_at = writer.now().of_change_after(bead.updated_at);
        writer.save_bead(&bead, &taken, BeadChangeKind::StatusChanged)?;
        let workplace = place.clone();
        let run =
            Run { state: RunState::Running, running_at: Some(writer.now()), workplace, ..run };
        Ok(Claim::Granted(Box::new(ClaimedRun { run, bead: taken, context, token })))
    })
}

fn new_token() -> Result<RunToken> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| {
        OperationError::rejected(format!("the system has no random numbers for a run: {error}"))
    })?;
    Ok(RunToken::from_random(bytes))
}
