//! Runtimes and accounts that nothing is started with for a while.

use gt_core::Timestamp;
use gt_core::decide::{
    self, Blame, Hold, ParkChange, STRIKES_MAX, Testimony, after_run, proven_at, testimony,
};
use gt_core::schedule::{Loss, Means, Origin, Park, Run, RunEnd, RunId, RunState};
use gt_store::Writer;

use crate::dispatch::{Caller, Overrides, Scene};
use crate::runs::{Finished, finish_in};
use crate::{Result, Town};

/// Hears what the end of a run says about what it was carried out with, in the transaction that writes the end, and
/// says who is to blame for it.
pub(crate) fn testify(writer: &mut Writer<'_>, run: &Run, end: &RunEnd) -> Result<Blame> {
    let now = writer.now();
    let said = testimony(run, end, now);
    if said == Testimony::Nothing {
        return Ok(Blame::Bead);
    }
    let parks = writer.parks_of(run)?;
    if parks.is_empty() && said == Testimony::Works {
        return Ok(Blame::Bead);
    }
    let why = format!(
        "the runs of {STRIKES_MAX} beads in a row came to nothing at once; of {}: {}",
        run.id, end.reason
    );
    let (mut blame, mut may_close) = (Blame::Bead, true);
    for means in Means::of_run(run) {
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
                if found == Blame::Established {
                    forgive(writer, &park, run)?;
                }
            }
        }
    }
    Ok(blame)
}

/// Gives those back their attempts whose runs were lost before it was known that they could not help it.
fn forgive(writer: &mut Writer<'_>, park: &Park, run: &Run) -> Result<()> {
    for bead in park.strikes.iter().filter(|bead| **bead != run.id.bead) {
        let redispatched = writer.open_context(bead)?;
        let redispatched = redispatched
            .filter(|context| context.origin == Origin::Recovery && context.attempts > 0);
        if let Some(context) = redispatched.filter(|context| !context.starting) {
            writer.forgive_attempt(&context)?;
        }
    }
    Ok(())
}

/// Notes in the transaction that starts a run what it tries, and what is not parked any more because the run that
/// tried it has lasted.
pub(crate) fn note_start(writer: &mut Writer<'_>, scene: &mut Scene, run: &Run) -> Result<()> {
    if scene.parks.is_empty() {
        return Ok(());
    }
    for means in scene.caps.tried_by(&scene.ask_of(run, &[])) {
        writer.set_trial(means, &run.id)?;
    }
    note_ramps(writer, scene, run)?;
    let needed = Means::of_run(run);
    let (lasted, kept) = std::mem::take(&mut scene.parks).into_iter().partition(|park: &Park| {
        let is_held = scene.caps.parked.iter().any(|(means, _)| *means == park.means);
        park.closed.is_some() && !is_held && needed.contains(&park.means)
    });
    scene.parks = kept;
    let lasted: Vec<Park> = lasted;
    for park in lasted {
        let trial = park.trial.as_ref().map(|trial| writer.run(trial)).transpose()?.flatten();
        writer.clear_park(&park, trial.as_ref())?;
    }
    Ok(())
}

/// Writes down since when more and more is started with what this run needs, if the run that tried it is the only one to
/// know: it may end before the ramp does.
fn note_ramps(writer: &mut Writer<'_>, scene: &mut Scene, run: &Run) -> Result<()> {
    let needed = Means::of_run(run);
    let ramps = |means: &Means| {
        let held = scene.caps.parked.iter().find(|(held, _)| held == means);
        matches!(held, Some((_, Hold::Ramp(..))))
    };
    let begun: Vec<usize> = (0..scene.parks.len())
        .filter(|at| {
            let park = &scene.parks[*at];
            park.ramp_since.is_none() && needed.contains(&park.means) && ramps(&park.means)
        })
        .collect();
    for at in begun {
        let park = &scene.parks[at];
        let trial = park.trial.as_ref().and_then(|trial| scene.run_of(&trial.bead)).cloned();
        let since = trial.as_ref().map_or(scene.now, |trial| proven_at(trial, scene.now));
        writer.set_ramp(park, since, trial.as_ref())?;
        scene.parks[at].ramp_since = Some(since);
    }
    Ok(())
}

/// Ends a run whose account (or runtime, if it has no account) has reached its usage limit. Nothing is started with
/// that until then, others go on; the bead is back in line, and has used no attempt.
///
/// `said` is what the agent said about it, in words.
pub fn limited(town: &Town, id: &RunId, until: Timestamp, said: &str) -> Result<Finished> {
    town.write(|writer| {
        let Some(run) = writer.run(id)?.filter(|run| run.state.is_live()) else {
            return Ok(Finished::Already);
        };
        let Some(means) = Means::of_run(&run).into_iter().next() else {
            return Ok(Finished::Already);
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
        let until = park.closed.map_or(until, |closed| closed.until);
        let reason = format!("the {} has reached its limit until {until}: {said}", park.means);
        let end = RunEnd { loss: Loss::Limit, ..RunEnd::without_status(RunState::Lost, reason) };
        finish_in(writer, town, id, &end, None)
    })
}

/// Something that is parked.
#[derive(Debug, Clone)]
pub struct Parked {
    /// What is held against it.
    pub park: Park,
    /// How it is held now.
    pub hold: Hold,
}

/// Everything that is parked.
pub fn parked(town: &Town) -> Result<Vec<Parked>> {
    let around = town.surroundings()?;
    town.read(|reader| {
        Ok(town.scene(reader, &around, &Overrides::default(), Caller::Daemon)?.parked())
    })
}

/// Ends the parking of something. `false` if nothing was held against it.
pub fn resume(town: &Town, means: &Means) -> Result<bool> {
    town.write(|writer| forget(writer, means))
}

/// Like [`resume`], as a part of something larger.
pub(crate) fn forget(writer: &mut Writer<'_>, means: &Means) -> Result<bool> {
    let Some(park) = writer.parks()?.into_iter().find(|park| park.means == *means) else {
        return Ok(false);
    };
    writer.clear_park(&park, None)?;
    Ok(park.closed.is_some())
}
