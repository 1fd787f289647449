//! When nothing is started with a runtime or an account for a while, and how that ends.
//!
//! A worker that comes to nothing at once says little about its bead and much about its runtime or account: a
//! program that is missing, a key that was revoked. One such run may be the bead's fault; three beads in a row are not.

use std::fmt;
use std::time::Duration;

use crate::schedule::{ClosedPeriod, Park, ParkSubject, Run, RunEnd, RunId, RunLoss, RunState};
use crate::{BeadId, Timestamp};

/// So many failed beads in a row park the runtime or account of their runs.
pub const STRIKES_MAX: usize = 3;
/// A run that came to nothing within this time counts.
pub const STRIKE_WITHIN: Duration = Duration::from_mins(1);
/// So long nothing is started.
pub const PARK_TIME: Duration = Duration::from_mins(10);
/// A usage limit is believed to last at least so long, even if the clocks say less.
pub const USAGE_LIMIT_MIN: Duration = Duration::from_secs(5);
/// One that was met again by the run that tried whether it is over is believed to last at least so long.
pub const LIMIT_AGAIN_MIN: Duration = Duration::from_mins(1);
/// After a usage limit has passed, the number of runs that may be live at once doubles this often.
pub const RAMP_STEP: Duration = Duration::from_mins(1);
/// So often it doubles before there is no limit any more.
const RAMP_STEPS: u32 = 5;
/// A usage limit is never believed to last longer; vendors have limits for a week.
pub const LIMIT_MAX: Duration = Duration::from_hours(8 * 24);

/// The evidence that the end of a run gives about its runtime or account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunEvidence {
    /// It works.
    Works,
    /// It may not work: the run came to nothing at once.
    Strike,
    /// The run says nothing about it.
    Nothing,
}

/// The evidence that the end of a run gives about its runtime or account.
pub fn run_evidence(run: &Run, end: &RunEnd, now: Timestamp) -> RunEvidence {
    let takes_part = run.executor.takes_slot();
    let Some(running_at) = run.running_at.filter(|_| takes_part) else {
        return RunEvidence::Nothing;
    };
    match (end.state, end.loss) {
        (RunState::Done, _) => RunEvidence::Works,
        // Its worker has worked until it asked for a person or put the work off.
        (RunState::Cancelled, _) if run.said.is_some() => RunEvidence::Works,
        (RunState::Lost, RunLoss::Host | RunLoss::Session | RunLoss::Limit | RunLoss::Budget)
        | (RunState::Cancelled | RunState::Starting | RunState::Running | RunState::Blocked, _) => {
            RunEvidence::Nothing
        }
        // It came to its end in order, without having done anything: that is a question of its bead.
        (RunState::Failed, _) if end.exit_code == Some(0) => RunEvidence::Nothing,
        (RunState::Failed, _) | (RunState::Lost, RunLoss::Agent) => {
            if end.committed {
                RunEvidence::Works
            } else if now < running_at {
                // The clock was set back, so the duration is unknown.
                RunEvidence::Nothing
            } else if now.since(running_at) < STRIKE_WITHIN {
                RunEvidence::Strike
            } else {
                RunEvidence::Works
            }
        }
    }
}

/// The cause of a run that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FailureCause {
    /// The bead, as far as is known.
    Bead,
    /// The runtime or account: this run has made that certain.
    Established,
    /// The runtime or account: that was certain before this run ended.
    Known,
}

/// A change of the park of a runtime or account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ParkChange {
    /// It stays as it is.
    Keep,
    /// Nothing is held against it any more.
    Clear,
    /// Its usage limit has passed, and more and more is started with it.
    Ramp,
    /// It is suspected, and nothing more.
    Suspect(Park),
    /// Nothing is started with it for a while.
    Close {
        /// The park as it is now.
        park: Park,
        /// It was tried and does not work yet, so people need not be told again.
        again: bool,
    },
}

/// The change that the end of a run makes to the park of its runtime or account, and the cause of a failure.
///
/// `may_close` is false if something narrower has just been parked for the same run: then that is tried first, and one
/// thing is told to people.
pub fn after_run(
    park: Option<&Park>,
    means: &ParkSubject,
    run: &RunId,
    testimony: RunEvidence,
    may_close: bool,
    why: &str,
    now: Timestamp,
) -> (ParkChange, FailureCause) {
    let is_trial = park.is_some_and(|park| park.trial.as_ref() == Some(run));
    let is_closed = park.is_some_and(|park| park.closed.is_some());
    let is_ramping = park.is_some_and(|park| park.ramp_since.is_some());
    match testimony {
        RunEvidence::Nothing => (ParkChange::Keep, FailureCause::Bead),
        RunEvidence::Works if park.is_none() => (ParkChange::Keep, FailureCause::Bead),
        // While more and more is started, only another usage limit changes anything.
        RunEvidence::Works | RunEvidence::Strike if is_ramping => {
            (ParkChange::Keep, FailureCause::Bead)
        }
        // A run that began before the parking says nothing about the present.
        RunEvidence::Works if is_closed && !is_trial => (ParkChange::Keep, FailureCause::Bead),
        RunEvidence::Works if park.is_some_and(Park::is_limit) => {
            (ParkChange::Ramp, FailureCause::Bead)
        }
        RunEvidence::Works => (ParkChange::Clear, FailureCause::Bead),
        RunEvidence::Strike if is_closed && !is_trial => (ParkChange::Keep, FailureCause::Known),
        RunEvidence::Strike => {
            let before = park.map(|park| park.strikes.as_slice()).unwrap_or_default();
            let strikes = beads_in_a_row(before, &run.bead);
            let closes = is_closed || (may_close && strikes.len() >= STRIKES_MAX);
            if !closes && strikes == before {
                return (ParkChange::Keep, FailureCause::Bead);
            }
            let closed = closes.then(|| ClosedPeriod { since: now, until: now.plus(PARK_TIME) });
            let reason = why.to_owned();
            let means = means.clone();
            let park = Park { means, strikes, closed, reason, trial: None, ramp_since: None };
            if !closes {
                return (ParkChange::Suspect(park), FailureCause::Bead);
            }
            let again = is_closed && !before.is_empty();
            let blame = if is_closed { FailureCause::Known } else { FailureCause::Established };
            (ParkChange::Close { park, again }, blame)
        }
    }
}

/// The beads in a row, with one more. A bead that comes again is no other bead.
fn beads_in_a_row(before: &[BeadId], bead: &BeadId) -> Vec<BeadId> {
    let mut strikes = before.to_vec();
    if !strikes.contains(bead) {
        strikes.push(bead.clone());
        let surplus = strikes.len().saturating_sub(STRIKES_MAX);
        strikes.drain(..surplus);
    }
    strikes
}

/// The park of a runtime or account that has reached its usage limit; `again` if a run tried whether that is
/// over, and it was not.
pub fn limited(
    means: ParkSubject,
    until: Timestamp,
    said: &str,
    again: bool,
    now: Timestamp,
) -> Park {
    let least = if again { LIMIT_AGAIN_MIN } else { USAGE_LIMIT_MIN };
    let until = until.max(now.plus(least)).min(now.plus(LIMIT_MAX));
    let closed = Some(ClosedPeriod { since: now, until });
    let reason = said.to_owned();
    Park { means, strikes: Vec::new(), closed, reason, trial: None, ramp_since: None }
}

/// Since when the run that tried something has shown that it works, given that it has by now.
pub fn proven_at(trial: &Run, now: Timestamp) -> Timestamp {
    trial.running_at.map_or(now, |at| at.plus(STRIKE_WITHIN).min(now))
}

/// How something that is parked is held now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ParkHold {
    /// Nothing starts before then.
    Until(Timestamp),
    /// One run may start, to try it.
    Once,
    /// This run tries it; the others wait for its result. One that has no run yet has the number 0.
    Trial(RunId),
    /// A usage limit has passed: this many runs may be live at once now, and more from that moment on.
    Ramp(u32, Timestamp),
}

impl fmt::Display for ParkHold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Until(until) => write!(f, "until {until}"),
            Self::Once => write!(f, "until one run has tried it"),
            Self::Trial(run) if run.epoch == 0 => write!(f, "until {} has tried it", run.bead),
            Self::Trial(run) => write!(f, "until {run} has tried it"),
            Self::Ramp(most, next) => {
                write!(f, "to {most} at once while ramping up, next at {next}")
            }
        }
    }
}

/// How something is held now; nothing if everything may start. `trial` is the run that tries it, if that is live.
///
/// A run that has lasted longer than those that count has shown that it works. A time to wait that is longer than it
/// ever was comes of a clock that was set back, and is over.
pub fn hold(park: &Park, trial: Option<&Run>, now: Timestamp) -> Option<ParkHold> {
    let ClosedPeriod { since, until } = park.closed?;
    if now < until && now >= since {
        return Some(ParkHold::Until(until));
    }
    if let Some(since) = park.ramp_since {
        return ramp(since, now);
    }
    let Some(trial) = trial else { return Some(ParkHold::Once) };
    let works = trial.running_at.is_some_and(|at| now.since(at) >= STRIKE_WITHIN);
    if !works {
        return Some(ParkHold::Trial(trial.id.clone()));
    }
    if park.is_limit() { ramp(proven_at(trial, now), now) } else { None }
}

/// How many may be live at once some time after a usage limit has turned out to be over: two at first, then twice as many
/// each time that those before have lasted a while, and soon any number. Thirty that waited for the same reset would
/// reach the next limit at once.
pub fn ramp(since: Timestamp, now: Timestamp) -> Option<ParkHold> {
    // If the clock was set back far, no run waits longer than it would have without that.
    if since > now.plus(RAMP_STEP) {
        return None;
    }
    let passed = now.since(since).as_nanos() / RAMP_STEP.as_nanos();
    let steps = u32::try_from(passed).ok().filter(|steps| *steps < RAMP_STEPS)?;
    Some(ParkHold::Ramp(2 << steps, since.plus(RAMP_STEP * (steps + 1))))
}

#[cfg(test)]
mod tests;
