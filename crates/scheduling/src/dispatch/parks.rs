//! Runtimes and accounts that are parked: no run is started with them for a while.

use gt_core::decide::{
    FailureCause, ParkChange, ParkHold, RunEvidence, STRIKES_MAX, after_run, proven_at,
    run_evidence,
};
use gt_core::schedule::{ContextOrigin, Park, ParkSubject, Run, RunEnd};
use gt_store::Writer;

use super::SchedulingSnapshot;
use crate::dispatch::DispatchInputs;
use gt_town::{Result, Town};

/// Judges the runtime and account of a run by its end, in the transaction that records the end, and returns the
/// blame.
pub(crate) fn record_run_evidence(
    writer: &mut Writer<'_>,
    run: &Run,
    end: &RunEnd,
) -> Result<FailureCause> {
    let now = writer.now();
    let said = run_evidence(run, end, now);
    if said == RunEvidence::Nothing {
        return Ok(FailureCause::Bead);
    }
    let parks = writer.parks_of(run)?;
    if parks.is_empty() && said == RunEvidence::Works {
        return Ok(FailureCause::Bead);
    }
    let why = format!(
        "the runs of {STRIKES_MAX} beads in a row came to nothing at once; of {}: {}",
        run.id, end.reason
    );
    let (mut blame, mut may_close) = (FailureCause::Bead, true);
    for means in ParkSubject::of_run(run) {
        let park = parks.iter().find(|park| park.means == means);
        let (change, found) = after_run(park, &means, &run.id, said, may_close, &why, now);
        blame = blame.max(found);
        match change {
            ParkChange::Keep => {}
            ParkChange::Clear => {
                if let Some(park) = park {
                    writer.clear_park(park, Some(run))?;
                }
            }
            ParkChange::Ramp => {
                if let Some(park) = park {
                    writer.set_ramp(park, proven_at(run, now), Some(run))?;
                }
            }
            ParkChange::Suspect(park) => writer.suspect(&park)?,
            ParkChange::Close { park, again } => {
                may_close = false;
                writer.park(&park, run, again)?;
                if found == FailureCause::Established {
                    forgive(writer, &park, run)?;
                }
            }
        }
    }
    Ok(blame)
}

/// Gives attempts back to beads whose runs were lost before the fault of the runtime or account was known.
fn forgive(writer: &mut Writer<'_>, park: &Park, run: &Run) -> Result<()> {
    for bead in park.strikes.iter().filter(|bead| **bead != run.id.bead) {
        let redispatched = writer.open_context(bead)?;
        let redispatched = redispatched
            .filter(|context| context.origin == ContextOrigin::Recovery && context.attempts > 0);
        if let Some(context) = redispatched.filter(|context| !context.starting) {
            writer.forgive_attempt(&context)?;
        }
    }
    Ok(())
}

/// Records in the transaction that starts a run which parked means it tries, and which ones are released because
/// their trial has lasted.
pub(crate) fn note_start(
    writer: &mut Writer<'_>,
    snapshot: &mut SchedulingSnapshot,
    run: &Run,
) -> Result<()> {
    if snapshot.parks.is_empty() {
        return Ok(());
    }
    for means in snapshot.caps.tried_by(&snapshot.ask_of(run, &[], &[])) {
        writer.set_trial(means, &run.id)?;
    }
    note_ramps(writer, snapshot, run)?;
    let needed = ParkSubject::of_run(run);
    let (lasted, kept) =
        std::mem::take(&mut snapshot.parks).into_iter().partition(|park: &Park| {
            let is_held = snapshot.caps.parked.iter().any(|(means, _)| *means == park.means);
            park.closed.is_some() && !is_held && needed.contains(&park.means)
        });
    snapshot.parks = kept;
    let lasted: Vec<Park> = lasted;
    for park in lasted {
        let trial = park.trial.as_ref().map(|trial| writer.run(trial)).transpose()?.flatten();
        writer.clear_park(&park, trial.as_ref())?;
    }
    Ok(())
}

/// Records since when the number of starts with the means of this run grows, if only its trial run knows: that run
/// may end before the ramp does.
fn note_ramps(writer: &mut Writer<'_>, snapshot: &mut SchedulingSnapshot, run: &Run) -> Result<()> {
    let needed = ParkSubject::of_run(run);
    let ramps = |means: &ParkSubject| {
        let held = snapshot.caps.parked.iter().find(|(held, _)| held == means);
        matches!(held, Some((_, ParkHold::Ramp(..))))
    };
    let begun: Vec<usize> = (0..snapshot.parks.len())
        .filter(|at| {
            let park = &snapshot.parks[*at];
            park.ramp_since.is_none() && needed.contains(&park.means) && ramps(&park.means)
        })
        .collect();
    for at in begun {
        let park = &snapshot.parks[at];
        let trial = park.trial.as_ref().and_then(|trial| snapshot.run_of(&trial.bead)).cloned();
        let since = trial.as_ref().map_or(snapshot.now, |trial| proven_at(trial, snapshot.now));
        writer.set_ramp(park, since, trial.as_ref())?;
        snapshot.parks[at].ramp_since = Some(since);
    }
    Ok(())
}

/// Something that is parked.
#[derive(Debug, Clone)]
pub struct Parked {
    /// The recorded park, with the reason for it.
    pub park: Park,
    /// Its present hold.
    pub hold: ParkHold,
}

/// All parked runtimes and accounts.
pub fn parked(town: &Town) -> Result<Vec<Parked>> {
    let inputs = DispatchInputs::read(town)?;
    town.read(|reader| {
        Ok(SchedulingSnapshot::read_for_daemon(reader, &inputs, town.now())?.parked())
    })
}

/// Releases a parked runtime or account. `false` if it was not parked.
pub fn resume(town: &Town, means: &ParkSubject) -> Result<bool> {
    town.write(|writer| forget(writer, means))
}

/// Like [`resume`], inside a larger transaction.
pub fn forget(writer: &mut Writer<'_>, means: &ParkSubject) -> Result<bool> {
    let Some(park) = writer.parks()?.into_iter().find(|park| park.means == *means) else {
        return Ok(false);
    };
    writer.clear_park(&park, None)?;
    Ok(park.closed.is_some())
}
