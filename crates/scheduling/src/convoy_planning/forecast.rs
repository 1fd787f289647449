//! How long a set of beads takes, judged by what was done in the town before.

use std::collections::BTreeMap;
use std::time::Duration;

use gt_core::RigSlug;
use gt_core::decide::{
    ForecastJob, ForecastLimits, MemberRole, RunDurations, StagedMember, critical_path, forecast,
};
use gt_store::Reader;

use gt_town::Result;
use gt_town::scheduler_settings::SchedulerSettings;

/// How many runs of each rig are looked at.
const PAST_RUNS_PER_RIG_MAX: usize = 200;
/// The assumed duration of a bead while no past run is known, so that the longest chain is the one with the most beads.
const DURATION_WITHOUT_PACE: Duration = Duration::from_secs(1);

/// How long a set of beads is expected to take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DurationEstimate {
    /// After how long everything is done that goes on by itself.
    pub remaining: Duration,
    /// How many beads do not go on by themselves, and are not counted.
    pub left_out: usize,
    /// How many are done at once; none for no limit.
    pub slots: Option<u32>,
}

/// The forecast for a set of beads.
#[derive(Debug, Default)]
pub(super) struct SetForecast {
    /// None if nothing was done before, or nothing goes on by itself.
    pub(super) estimate: Option<DurationEstimate>,
    /// The longest chain of what is left, by places.
    pub(super) critical_path: Vec<usize>,
}

/// The facts about a bead besides its dependencies.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct BeadForecastFacts {
    /// The age of its live run, if it has one.
    pub(super) age: Option<Duration>,
    /// It does not go on by itself.
    pub(super) is_stuck: bool,
    /// How long it is put off.
    pub(super) begins_in: Duration,
    /// Where it stands in line.
    pub(super) turn: u64,
}

/// The durations of past runs, if any run has succeeded.
pub(super) fn past_durations(reader: &Reader<'_>) -> Result<Option<RunDurations>> {
    Ok(RunDurations::of(&reader.past_durations(PAST_RUNS_PER_RIG_MAX)?))
}

/// The forecast for these beads, so many of which may be done at once.
pub(super) fn outlook(
    durations: Option<&RunDurations>,
    settings: &SchedulerSettings,
    slots: Option<u32>,
    members: &[StagedMember],
    mark: impl Fn(usize) -> BeadForecastFacts,
) -> SetForecast {
    let mut rigs: BTreeMap<Option<&RigSlug>, usize> = BTreeMap::new();
    let mut room = ForecastLimits { slots, rigs: Vec::new() };
    let mut jobs = Vec::with_capacity(members.len());
    for (at, member) in members.iter().enumerate() {
        let rig = match &member.part {
            MemberRole::Over => {
                jobs.push(ForecastJob::default());
                continue;
            }
            MemberRole::Frame(parts) => {
                let waits_for = member.waits_for.iter().chain(parts).copied().collect();
                jobs.push(ForecastJob { waits_for, ..ForecastJob::default() });
                continue;
            }
            MemberRole::Work(rig) => rig.as_ref().map(|(slug, _)| slug),
        };
        let known = *rigs.entry(rig).or_insert_with(|| {
            room.rigs.push(rig.and_then(|slug| settings.rig_caps.get(slug).copied()));
            room.rigs.len() - 1
        });
        jobs.push(job(durations, member, rig, known, mark(at)));
    }
    let work = jobs.iter().filter(|job| job.rig.is_some()).count();
    let forecast = durations.map(|_| forecast(&jobs, &room));
    let estimate = forecast.filter(|forecast| forecast.left_out < work).map(|forecast| {
        DurationEstimate { remaining: forecast.remaining, left_out: forecast.left_out, slots }
    });
    SetForecast { estimate, critical_path: critical_path(&jobs) }
}

fn job(
    durations: Option<&RunDurations>,
    member: &StagedMember,
    rig: Option<&RigSlug>,
    known: usize,
    mark: BeadForecastFacts,
) -> ForecastJob {
    let takes = match (durations, mark.age) {
        (None, _) => DURATION_WITHOUT_PACE,
        (Some(durations), None) => durations.of_rig(rig),
        (Some(durations), Some(age)) => durations.left(rig, age),
    };
    ForecastJob {
        takes,
        waits_for: member.waits_for.clone(),
        rig: Some(known),
        is_running: mark.age.is_some(),
        is_stuck: mark.is_stuck || !member.gates.is_empty() || rig.is_none(),
        begins_in: mark.begins_in,
        turn: mark.turn,
    }
}
