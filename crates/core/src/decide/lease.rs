//! The lease of a host: when others count it as away or gone, and the step of its own workers meanwhile.
//!
//! A host is judged by the store's clock, from the moment at which its last renewal arrived. It judges itself by its own
//! boot-time clock, from the moment at which it sent that renewal, which was before. So its workers have ended before another
//! host may declare them lost, however wrong its wall clock is.

use std::time::Duration;

use crate::Invalid;
use crate::schedule::names;

/// The longest lease.
const LEASE_MAX: Duration = Duration::from_mins(1);
/// The shortest grace: the store counts whole seconds.
const GRACE_MIN: Duration = Duration::from_secs(1);
/// The error of an age that was counted in whole seconds.
const AGE_ERROR: Duration = Duration::from_secs(1);

/// The times of a host's lease, which follow from the setting `host.grace`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseTimes {
    grace: Duration,
}

impl LeaseTimes {
    /// The times with this grace.
    pub fn of(grace: Duration) -> Self {
        Self { grace: grace.max(GRACE_MIN) }
    }

    /// How long a host that was away may be out of sight before its runs are lost.
    pub fn grace(self) -> Duration {
        self.grace
    }

    /// For how long a renewal counts.
    pub fn lease(self) -> Duration {
        self.grace.min(LEASE_MAX)
    }

    /// How often a host renews.
    pub fn renew_every(self) -> Duration {
        self.lease() / 3
    }

    /// The age of the last renewal after which another host may declare the runs of this one lost.
    pub fn gone_after(self) -> Duration {
        self.lease().saturating_add(self.grace).saturating_add(AGE_ERROR)
    }

    /// The step of the workers of a host whose last successful renewal was sent so long ago.
    pub fn worker_step(self, since_sent: Duration) -> WorkerStep {
        if since_sent >= self.grace {
            WorkerStep::End
        } else if since_sent >= self.grace / 3 * 2 {
            WorkerStep::Stop
        } else {
            WorkerStep::Work
        }
    }

    /// Whether a host may be declared gone. `age` is by the store's clock. `watched` is how long the host that judges has
    /// seen no renewal, by its own boot-time clock: a store whose clock is set forward declares no host gone.
    pub fn is_gone(self, age: Duration, watched: Duration) -> bool {
        age >= self.gone_after() && watched >= self.gone_after()
    }
}

/// The step of a worker whose host cannot renew its lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WorkerStep {
    /// It goes on.
    Work,
    /// Its processes are stopped, and continue if the host renews in time.
    Stop,
    /// Its processes are ended, and its tree is kept.
    End,
}

names! {
    /// The mode that people gave a host.
    HostMode, "a mode of a host" {
        /// It takes work.
        Active = "active",
        /// It takes no new work, and its runs finish.
        Draining = "draining",
        /// It does not belong to the town any more.
        Removed = "removed",
    }
}

names! {
    /// The state of a host.
    HostState, "a state of a host" {
        /// It renews its lease and takes work.
        Active = "active",
        /// It renews its lease, and takes no new work.
        Draining = "draining",
        /// Its lease ran out. Its runs are unknown and keep their slots.
        Away = "away",
        /// Its lease ran out long ago. Its runs are lost.
        Gone = "gone",
        /// A person removed it.
        Removed = "removed",
    }
}

impl HostState {
    /// The state of a host in this mode whose last renewal arrived so long ago, by the store's clock. A host without times
    /// runs an older program, which does not stop its workers, so it is never gone.
    pub fn of(mode: HostMode, age: Duration, times: Option<LeaseTimes>) -> Self {
        let lease = times.map_or(LEASE_MAX, LeaseTimes::lease);
        match mode {
            HostMode::Removed => Self::Removed,
            HostMode::Active | HostMode::Draining
                if times.is_some_and(|times| age >= times.gone_after()) =>
            {
                Self::Gone
            }
            HostMode::Active | HostMode::Draining if age >= lease => Self::Away,
            HostMode::Active => Self::Active,
            HostMode::Draining => Self::Draining,
        }
    }

    /// Whether its lease is valid, so that its word about its runs counts.
    pub fn is_present(self) -> bool {
        matches!(self, Self::Active | Self::Draining)
    }
}

/// How far the clock of a host may be from that of the store. No decision about a lease depends on it; a clock that is further off
/// was never set, and would spoil the dates of the whole town.
pub const HOST_CLOCK_DIFFERENCE_MAX: Duration = Duration::from_hours(7 * 24);

#[cfg(test)]
mod histories;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn durations() -> impl Strategy<Value = Duration> {
        (0_u64..4_000_000).prop_map(Duration::from_millis)
    }

    #[test]
    fn the_default_grace_gives_a_lease_of_a_minute() {
        let times = LeaseTimes::of(Duration::from_mins(15));
        assert_eq!(times.lease(), Duration::from_mins(1));
        assert_eq!(times.renew_every(), SECOND * 20);
        assert_eq!(times.gone_after(), SECOND * (16 * 60 + 1));
        for (minutes, step) in [
            (0, WorkerStep::Work),
            (9, WorkerStep::Work),
            (10, WorkerStep::Stop),
            (15, WorkerStep::End),
        ] {
            assert_eq!(times.worker_step(Duration::from_mins(minutes)), step, "{minutes}");
        }
    }

    #[test]
    fn a_host_is_active_then_away_then_gone() {
        let times = Some(LeaseTimes::of(SECOND * 30));
        let state = |mode, age| HostState::of(mode, SECOND * age, times);
        assert_eq!(state(HostMode::Active, 29), HostState::Active);
        assert_eq!(state(HostMode::Draining, 29), HostState::Draining);
        for mode in [HostMode::Active, HostMode::Draining] {
            assert_eq!(state(mode, 30), HostState::Away);
            assert_eq!(state(mode, 60), HostState::Away);
            assert_eq!(state(mode, 61), HostState::Gone);
        }
        assert_eq!(state(HostMode::Removed, 0), HostState::Removed);
        // An older program is never gone.
        let old = |age| HostState::of(HostMode::Active, SECOND * age, None);
        assert_eq!(
            (old(59), old(60), old(u32::MAX)),
            (HostState::Active, HostState::Away, HostState::Away)
        );
    }

    proptest! {
        #[test]
        fn the_workers_of_a_gone_host_have_ended_a_lease_before(
            grace in durations(), sent in durations(), travel in durations(), passed in durations(),
        ) {
            let times = LeaseTimes::of(grace);
            // The store counts whole seconds, so an age may be a second too large.
            let (arrived, now) = (sent + travel, sent + travel + passed);
            let age = Duration::from_secs(now.as_secs() - arrived.as_secs());
            if times.is_gone(age, Duration::MAX) {
                let before = (travel + passed).saturating_sub(times.lease());
                prop_assert_eq!(times.worker_step(before), WorkerStep::End);
            }
        }

        #[test]
        fn a_store_whose_clock_jumps_declares_no_host_gone(
            grace in durations(), age in durations(), watched in durations(),
        ) {
            let times = LeaseTimes::of(grace);
            prop_assert!(!times.is_gone(Duration::MAX, watched) || watched > times.grace());
            prop_assert!(!times.is_gone(age, watched) || age > times.grace());
        }

        #[test]
        fn time_only_moves_a_worker_and_a_host_forward(grace in durations(), one in durations(), more in durations()) {
            let times = LeaseTimes::of(grace);
            prop_assert!(times.worker_step(one) <= times.worker_step(one + more));
            let rank = |age| match HostState::of(HostMode::Active, age, Some(times)) {
                HostState::Active => 0,
                HostState::Away => 1,
                HostState::Gone => 2,
                HostState::Draining | HostState::Removed => 9,
            };
            prop_assert!(rank(one) <= rank(one + more));
            prop_assert!(times.renew_every() < times.lease() && times.lease() <= times.grace());
        }
    }
}
