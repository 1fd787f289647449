//! The end of a run whose account or runtime has reached its usage limit.

use gt_core::Timestamp;
use gt_core::decide;
use gt_core::schedule::{Park, ParkSubject, RunEnd, RunId, RunLoss, RunState};

use super::finish::{FinishEffect, finish_in};
use gt_town::{Result, Town};

/// Ends a run whose account (or runtime, if it has no account) has reached its usage limit. Nothing is started with
/// that until then, others go on; the bead is back in line, and has used no attempt.
///
/// `said` is what the agent said about it, in words.
pub fn limited(town: &Town, id: &RunId, until: Timestamp, said: &str) -> Result<FinishEffect> {
    town.write(|writer| {
        let Some(run) = writer.run(id)?.filter(|run| run.state.is_live()) else {
            return Ok(FinishEffect::Already);
        };
        let Some(means) = ParkSubject::of_run(&run).into_iter().next() else {
            return Ok(FinishEffect::Already);
        };
        let known = writer.parks_of(&run)?.into_iter().find(|known| known.means == means);
        let again = known.as_ref().is_some_and(|known| known.trial.as_ref() == Some(id));
        let park = decide::limited(means, until, said, again, writer.now());
        // Of several runs that reach it at once, the first is told of.
        let is_known = known.is_some_and(|known| {
            let until = |park: &Park| park.closed.map(|closed| closed.until);
            known.is_limit() && !again && until(&known) == until(&park)
        });
        if !is_known {
            writer.park(&park, &run, false)?;
        }
        let until = park.closed.map_or(until, |closed| closed.until).floor_to_second();
        let reason = format!("the {} has reached its limit until {until}: {said}", park.means);
        let end = RunEnd { loss: RunLoss::Limit, ..RunEnd::without_status(RunState::Lost, reason) };
        finish_in(writer, town, id, &end)
    })
}
