//! Histories of hosts with leases: partitions, pauses, wrong clocks and restarts, in random order.
//!
//! One run goes from host to host. The clocks, the network and the steps of each host are simulated; the decisions are the real
//! ones. Two hosts must never both have an agent that can act, except on a host that was paused as a whole.

use std::time::Duration;

use proptest::prelude::*;

use super::{HostMode, HostState, LeaseTimes, WorkerStep};

const HOSTS: usize = 3;
/// How much time passes in one step of the simulation.
const STEP_MS: u64 = 100;
const GRACE: Duration = Duration::from_secs(6);

/// An event of a history.
#[derive(Debug, Clone)]
enum FleetEvent {
    /// The network between a host and the store is cut, or healed.
    Cut(usize, bool),
    /// A host as a whole is paused, or goes on.
    Pause(usize, bool),
    /// The wall clock of a host is set, by seconds.
    SetClock(usize, i64),
    /// The clock of the store is set forward, by seconds.
    SetStore(i64),
    /// A host starts again: its processes are gone.
    Restart(usize),
    /// Time passes, in steps.
    Wait(u64),
}

/// A wrong decision that the histories must find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PlantedFault {
    Nothing,
    /// A host counts the age of its lease by its wall clock.
    TrustsItsOwnClock,
    /// A host that was gone lands its work without asking whether its run is live.
    LandsWhenGone,
}

#[derive(Debug, Clone, Default)]
struct SimulatedHost {
    is_cut: bool,
    is_paused: bool,
    /// It was paused since its agent began: its agent may be alive for a moment when it goes on.
    was_paused: bool,
    wall_skew_ms: i64,
    /// When the last renewal was sent, by the boot-time clock and by the wall clock.
    sent_ms: u64,
    sent_wall_ms: i64,
    /// When it arrived, in seconds of the store's clock.
    seen_at_s: u64,
    /// The epoch of its agent, if that is alive, and whether it is stopped.
    agent: Option<u32>,
    is_stopped: bool,
    /// Since when it has seen each other host's last renewal.
    watched: [(u64, u64); HOSTS],
}

#[derive(Debug)]
struct FleetHistory {
    fault: PlantedFault,
    times: LeaseTimes,
    now_ms: u64,
    store_skew_ms: u64,
    hosts: Vec<SimulatedHost>,
    /// The run in the store: its epoch, and its host.
    run: Option<(u32, usize)>,
    epoch: u32,
    landed: Vec<u32>,
    violation: Option<String>,
}

impl FleetHistory {
    fn new(fault: PlantedFault) -> Self {
        Self {
            fault,
            times: LeaseTimes::of(GRACE),
            now_ms: 1_000_000,
            store_skew_ms: 0,
            hosts: vec![SimulatedHost::default(); HOSTS],
            run: None,
            epoch: 0,
            landed: Vec::new(),
            violation: None,
        }
    }

    fn store_s(&self) -> u64 {
        (self.now_ms + self.store_skew_ms) / 1000
    }

    fn state_of(&self, at: usize) -> HostState {
        let age = Duration::from_secs(self.store_s().saturating_sub(self.hosts[at].seen_at_s));
        HostState::of(HostMode::Active, age, Some(self.times))
    }

    fn apply(&mut self, event: &FleetEvent) {
        match event {
            FleetEvent::Cut(at, is_cut) => self.hosts[*at].is_cut = *is_cut,
            FleetEvent::Pause(at, is_paused) => {
                self.hosts[*at].is_paused = *is_paused;
                self.hosts[*at].was_paused = true;
            }
            FleetEvent::SetClock(at, seconds) => self.hosts[*at].wall_skew_ms += seconds * 1000,
            FleetEvent::SetStore(seconds) => self.store_skew_ms += seconds.unsigned_abs() * 1000,
            FleetEvent::Restart(at) => {
                let before = &self.hosts[*at];
                let seen_at_s = before.seen_at_s;
                self.hosts[*at] = SimulatedHost { seen_at_s, ..SimulatedHost::default() };
            }
            FleetEvent::Wait(steps) => {
                for _ in 0..*steps {
                    self.now_ms += STEP_MS;
                    for at in 0..HOSTS {
                        self.act(at);
                    }
                }
            }
        }
    }

    /// One step of a host: it watches its own agent, renews, judges others, and starts the run.
    fn act(&mut self, at: usize) {
        if self.hosts[at].is_paused {
            return;
        }
        self.watch_agent(at);
        if self.hosts[at].is_cut {
            return;
        }
        let (now, store_s) = (self.now_ms, self.store_s());
        let host = &mut self.hosts[at];
        let is_due =
            now - host.sent_ms >= u64::try_from(self.times.renew_every().as_millis()).unwrap();
        if is_due || host.seen_at_s == 0 {
            host.sent_ms = now;
            host.sent_wall_ms = i64::try_from(now).unwrap() + host.wall_skew_ms;
            host.seen_at_s = store_s;
        }
        self.judge(at);
        // A run that ended without its host is recovered by it, and starts anywhere.
        if self.run.is_some_and(|(epoch, of)| of == at && self.hosts[at].agent != Some(epoch)) {
            self.run = None;
        }
        // A host that was superseded ends its agent.
        let is_stale = |epoch: u32| self.run.is_none_or(|(live, _)| live != epoch);
        if self.hosts[at].agent.is_some_and(is_stale) {
            if self.fault == PlantedFault::LandsWhenGone {
                self.landed.extend(self.hosts[at].agent);
                self.check();
            }
            self.hosts[at].agent = None;
        }
        if self.run.is_none() && self.state_of(at) == HostState::Active {
            self.epoch += 1;
            self.run = Some((self.epoch, at));
            let host = &mut self.hosts[at];
            (host.agent, host.is_stopped, host.was_paused) = (Some(self.epoch), false, false);
            self.check();
        }
    }

    fn watch_agent(&mut self, at: usize) {
        let wall = i64::try_from(self.now_ms).unwrap() + self.hosts[at].wall_skew_ms;
        let host = &mut self.hosts[at];
        let since_sent = match self.fault {
            PlantedFault::TrustsItsOwnClock => u64::try_from(wall - host.sent_wall_ms).unwrap_or(0),
            PlantedFault::Nothing | PlantedFault::LandsWhenGone => self.now_ms - host.sent_ms,
        };
        match self.times.worker_step(Duration::from_millis(since_sent)) {
            WorkerStep::Work => host.is_stopped = false,
            WorkerStep::Stop => host.is_stopped = true,
            // It is stopped and not ended, and lands what it has when it is back.
            WorkerStep::End if self.fault == PlantedFault::LandsWhenGone => host.is_stopped = true,
            WorkerStep::End => host.agent = None,
        }
    }

    fn judge(&mut self, at: usize) {
        for other in (0..HOSTS).filter(|other| *other != at) {
            let seen = self.hosts[other].seen_at_s;
            let watched = &mut self.hosts[at].watched[other];
            if watched.0 != seen || watched.1 == 0 {
                *watched = (seen, self.now_ms);
            }
            let watched = Duration::from_millis(self.now_ms - watched.1);
            let age = Duration::from_secs(self.store_s().saturating_sub(seen));
            if self.run.is_some_and(|(_, of)| of == other) && self.times.is_gone(age, watched) {
                self.run = None;
            }
        }
    }

    /// Never two agents that can act.
    fn check(&mut self) {
        let live = self.hosts.iter().filter(|host| host.agent.is_some() && !host.was_paused);
        if live.count() > 1 {
            self.violation.get_or_insert(format!("two live agents at {}", self.now_ms));
        }
        // The store accepts only the work of the live run.
        if !self.landed.is_empty() {
            self.violation.get_or_insert(format!("stale work landed: {:?}", self.landed));
        }
    }
}

fn events() -> impl Strategy<Value = Vec<FleetEvent>> {
    let at = 0..HOSTS;
    let event = prop_oneof![
        3 => (at.clone(), any::<bool>()).prop_map(|(at, is)| FleetEvent::Cut(at, is)),
        1 => (at.clone(), any::<bool>()).prop_map(|(at, is)| FleetEvent::Pause(at, is)),
        1 => (at.clone(), -4000_i64..4000).prop_map(|(at, by)| FleetEvent::SetClock(at, by)),
        1 => (0_i64..4000).prop_map(FleetEvent::SetStore),
        1 => at.prop_map(FleetEvent::Restart),
        6 => (1_u64..200).prop_map(FleetEvent::Wait),
    ];
    proptest::collection::vec(event, 1..60)
}

/// Whether a fault is found in some of many histories, all from one seed.
fn finds(fault: PlantedFault) -> bool {
    use proptest::strategy::ValueTree as _;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    (0..300).any(|_| {
        let history = events().new_tree(&mut runner).unwrap().current();
        let mut town = FleetHistory::new(fault);
        for event in &history {
            town.apply(event);
        }
        town.violation.is_some()
    })
}

#[test]
fn a_host_that_trusts_its_own_clock_is_found() {
    assert!(finds(PlantedFault::TrustsItsOwnClock));
}

#[test]
fn a_gone_host_that_lands_is_found() {
    assert!(finds(PlantedFault::LandsWhenGone));
}

proptest! {
    #[test]
    fn no_history_has_two_live_agents_and_work_goes_on_after_it(history in events()) {
        let mut town = FleetHistory::new(PlantedFault::Nothing);
        for event in &history {
            town.apply(event);
            prop_assert_eq!(&town.violation, &None);
        }
        // Everything heals, and the run is on a host that is there.
        for at in 0..HOSTS {
            town.apply(&FleetEvent::Cut(at, false));
            town.apply(&FleetEvent::Pause(at, false));
        }
        town.apply(&FleetEvent::Wait(300));
        let (epoch, at) = town.run.expect("it runs somewhere");
        prop_assert_eq!(town.hosts[at].agent, Some(epoch));
        prop_assert!(!town.hosts[at].is_stopped);
        prop_assert_eq!(&town.violation, &None);
    }
}
