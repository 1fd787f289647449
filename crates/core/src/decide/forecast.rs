//! How long work takes, estimated from past runs, and when a set of beads would be done.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::Duration;

use crate::RigSlug;

/// How long work usually takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunDurations {
    town: Duration,
    rigs: BTreeMap<RigSlug, Duration>,
}

/// A run that has lasted longer than usual is expected to last this part of the usual time longer.
const OVERDUE_DIVISOR: u32 = 10;

impl RunDurations {
    /// The durations of these past runs; none if there are none.
    pub fn of(past: &[(RigSlug, Duration)]) -> Option<Self> {
        let mut rigs: BTreeMap<&RigSlug, Vec<Duration>> = BTreeMap::new();
        for (rig, lasted) in past {
            rigs.entry(rig).or_default().push(*lasted);
        }
        let town = median(past.iter().map(|(_, lasted)| *lasted).collect())?;
        let of_rig = |(rig, past): (&RigSlug, Vec<Duration>)| Some((rig.clone(), median(past)?));
        Some(Self { town, rigs: rigs.into_iter().filter_map(of_rig).collect() })
    }

    /// How long work of this rig usually takes: the median of its own past, or of the town's if it has none.
    pub fn of_rig(&self, rig: Option<&RigSlug>) -> Duration {
        rig.and_then(|rig| self.rigs.get(rig)).copied().unwrap_or(self.town)
    }

    /// How much longer a run of this rig takes that has lasted so long.
    pub fn left(&self, rig: Option<&RigSlug>, age: Duration) -> Duration {
        let usual = self.of_rig(rig);
        usual.saturating_sub(age).max(usual / OVERDUE_DIVISOR)
    }
}

fn median(mut durations: Vec<Duration>) -> Option<Duration> {
    let middle = durations.len() / 2;
    if durations.is_empty() {
        return None;
    }
    let (_, median, _) = durations.select_nth_unstable(middle);
    Some(*median)
}

/// Something that is to be done.
#[derive(Debug, Clone, Default)]
pub struct ForecastJob {
    /// How long it takes; the remaining time, if it is running.
    pub takes: Duration,
    /// Where those stand that it waits for.
    pub waits_for: Vec<usize>,
    /// The rig whose slot it takes; none for a job that no agent works on, such as an epic.
    pub rig: Option<usize>,
    /// It runs already, even if it waits for another job.
    pub is_running: bool,
    /// It does not go on by itself.
    pub is_stuck: bool,
    /// How long it is put off; it does not begin before.
    pub begins_in: Duration,
    /// Of the jobs that can begin, the one with the smaller number goes first.
    pub turn: u64,
}

/// How much can be done at once.
#[derive(Debug, Clone, Default)]
pub struct ForecastLimits {
    /// Altogether; none for no limit.
    pub slots: Option<u32>,
    /// In each rig; none for no limit.
    pub rigs: Vec<Option<u32>>,
}

/// When a set would be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Forecast {
    /// After how long everything is done that goes on by itself.
    pub remaining: Duration,
    /// How many take a slot and are not done then: they are stuck, behind one that is, or wait for each other.
    pub left_out: usize,
}

/// Simulates the set as slots become free: jobs that can begin do so in the order of their turns.
pub fn forecast(jobs: &[ForecastJob], room: &ForecastLimits) -> Forecast {
    let mut play = PaceSimulation::of(jobs, room);
    let (mut now, mut remaining) = (Duration::ZERO, Duration::ZERO);
    loop {
        play.begin_ready_jobs(now);
        let begin = play.put_off.peek().map(|Reverse((at, _))| *at);
        let end = play.ends.peek().map(|Reverse((at, _))| *at);
        if begin.is_some_and(|begin| end.is_none_or(|end| begin < end)) {
            let Some(Reverse((at, job))) = play.put_off.pop() else { break };
            now = now.max(at);
            play.queue(job);
        } else {
            let Some(Reverse((at, job))) = play.ends.pop() else { break };
            (now, remaining) = (at, at);
            play.end(job);
        }
    }
    let left_out = |(at, job): (usize, &ForecastJob)| job.rig.is_some() && !play.is_done[at];
    let left_out = jobs.iter().enumerate().filter(|one| left_out(*one)).count();
    Forecast { remaining, left_out }
}

/// A set that is being gone through.
struct PaceSimulation<'a> {
    jobs: &'a [ForecastJob],
    followers: Vec<Vec<usize>>,
    /// How many jobs each job still waits for.
    left: Vec<usize>,
    is_done: Vec<bool>,
    /// The ends of the running jobs.
    ends: BinaryHeap<Reverse<(Duration, usize)>>,
    /// The jobs that wait for nothing but a time, which is not before its start.
    put_off: BinaryHeap<Reverse<(Duration, usize)>>,
    /// Those that take no slot and can begin.
    free: Vec<usize>,
    /// Those that can begin when there is room, for each rig.
    ready: Vec<BinaryHeap<Reverse<(u64, usize)>>>,
    /// How much room there is: altogether, and in each rig. Below zero if more are at work than there is room for now.
    slots: i64,
    rigs: Vec<i64>,
}

impl<'a> PaceSimulation<'a> {
    fn of(jobs: &'a [ForecastJob], room: &ForecastLimits) -> Self {
        let size = |slots: Option<u32>| slots.map_or(i64::MAX / 2, i64::from);
        let count = jobs.iter().filter_map(|job| job.rig).max().map_or(0, |last| last + 1);
        let mut play = Self {
            jobs,
            followers: followers(jobs),
            left: jobs.iter().map(|job| job.waits_for.len()).collect(),
            is_done: vec![false; jobs.len()],
            ends: BinaryHeap::new(),
            put_off: BinaryHeap::new(),
            free: Vec::new(),
            ready: vec![BinaryHeap::new(); count],
            slots: size(room.slots),
            rigs: (0..count).map(|rig| size(room.rigs.get(rig).copied().flatten())).collect(),
        };
        for (at, job) in jobs.iter().enumerate() {
            if job.is_running {
                play.take(job, Duration::ZERO, at);
            } else {
                play.queue_if_ready(at);
            }
        }
        play
    }

    /// Puts a job where it can begin, or where it waits for its time, if it waits for no other job any more.
    fn queue_if_ready(&mut self, at: usize) {
        let job = &self.jobs[at];
        if self.left[at] > 0 || job.is_stuck || job.is_running {
            return;
        }
        if job.begins_in.is_zero() {
            self.queue(at);
        } else {
            self.put_off.push(Reverse((job.begins_in, at)));
        }
    }

    /// Puts a job where it can begin.
    fn queue(&mut self, at: usize) {
        let job = &self.jobs[at];
        match job.rig {
            None => self.free.push(at),
            Some(rig) => self.ready[rig].push(Reverse((job.turn, at))),
        }
    }

    fn begin_ready_jobs(&mut self, now: Duration) {
        while let Some(at) = self.free.pop() {
            self.take(&self.jobs[at], now, at);
        }
        while self.slots > 0 {
            let with_room = (0..self.ready.len()).filter(|rig| self.rigs[*rig] > 0);
            let first = with_room.filter_map(|rig| Some((self.ready[rig].peek()?.0, rig))).min();
            let Some(((_, at), rig)) = first else { break };
            self.ready[rig].pop();
            self.take(&self.jobs[at], now, at);
        }
    }

    /// Lets a job begin.
    fn take(&mut self, job: &ForecastJob, now: Duration, at: usize) {
        if let Some(rig) = job.rig {
            self.slots -= 1;
            self.rigs[rig] -= 1;
        }
        self.ends.push(Reverse((now.saturating_add(job.takes), at)));
    }

    fn end(&mut self, at: usize) {
        self.is_done[at] = true;
        if let Some(rig) = self.jobs[at].rig {
            self.slots += 1;
            self.rigs[rig] += 1;
        }
        for follower in std::mem::take(&mut self.followers[at]) {
            self.left[follower] -= 1;
            self.queue_if_ready(follower);
        }
    }
}

fn followers(jobs: &[ForecastJob]) -> Vec<Vec<usize>> {
    let mut followers = vec![Vec::new(); jobs.len()];
    for (at, job) in jobs.iter().enumerate() {
        for target in &job.waits_for {
            if let Some(followers) = followers.get_mut(*target) {
                followers.push(at);
            }
        }
    }
    followers
}

/// The longest chain of jobs that must be done one after the other, by the places of those that take a slot.
/// A job that waits for itself is in none.
pub fn critical_path(jobs: &[ForecastJob]) -> Vec<usize> {
    let mut followers = followers(jobs);
    let waits = |job: &ForecastJob| if job.is_running { 0 } else { job.waits_for.len() };
    let mut left: Vec<usize> = jobs.iter().map(waits).collect();
    let mut next: Vec<usize> = (0..jobs.len()).filter(|at| left[*at] == 0).collect();
    // When each could be done at the soonest, and after whom it begins.
    let mut done = vec![(Duration::ZERO, 0_usize); jobs.len()];
    let mut after: Vec<Option<usize>> = vec![None; jobs.len()];
    let mut last: Option<usize> = None;
    while let Some(at) = next.pop() {
        let job = &jobs[at];
        done[at].0 = done[at].0.saturating_add(job.takes);
        done[at].1 += usize::from(job.rig.is_some());
        if last.is_none_or(|last| done[at] > done[last]) {
            last = Some(at);
        }
        for follower in std::mem::take(&mut followers[at]) {
            if jobs[follower].is_running {
                continue;
            }
            if after[follower].is_none() || done[at] > done[follower] {
                (done[follower], after[follower]) = (done[at], Some(at));
            }
            left[follower] -= 1;
            if left[follower] == 0 {
                next.push(follower);
            }
        }
    }
    let mut path: Vec<usize> = std::iter::successors(last, |at| after[*at]).collect();
    path.retain(|at| jobs[*at].rig.is_some());
    path.reverse();
    path
}

#[cfg(test)]
mod tests;
