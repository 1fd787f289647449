//! Runtimes and accounts that do not work, usage limits, and what a loss costs, at times that a test sets.

use std::sync::Arc;
use std::time::Duration;

use gt_beads::events;
use gt_core::decide::{LossFacts, WaitReason};
use gt_core::schedule::{ParkSubject, Run, RunEnd, RunId, RunState, Workplace};
use gt_core::{Clock, ExecutorKind, Outcome, RigSlug, Status};
use gt_execution::runs;
use gt_scheduling::accounts::{self, NewAccount};
use gt_scheduling::dispatch::{Dispatcher, MemorySpawner};
use gt_scheduling::needs::Need;
use gt_scheduling::processes::{Alive, ProcessProbe};
use gt_scheduling::recovery::{self, Redispatch, Redispatched};
use gt_scheduling::run_transitions::FinishEffect;
use gt_scheduling::schedule::{SlingOptions, SlingRequest, retry, sling};
use gt_scheduling::{Consequences, queue};
use gt_town::{Actor, EventFilter, Result, Town, rigs, settings};

use crate::scheduling::{bead, shown};
use crate::still_clock::StillClock;

/// A town with the rigs `web` and `api` and the accounts `work` and `lab`.
struct Stage {
    town: Town,
    clock: Arc<StillClock>,
}

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_mins(1);

impl Stage {
    fn new() -> Self {
        let clock = StillClock::at(1_790_000_000_000_000_000);
        let shared: Arc<dyn Clock> = Arc::<StillClock>::clone(&clock);
        let actor = Actor { name: "tester".to_owned(), owner: String::new() };
        let town = Town::in_memory(actor, shared, Arc::new(Consequences)).unwrap();
        for name in ["web", "api"] {
            let executor = ExecutorKind::Process;
            let (repository, branch) = (None, None);
            let rig = rigs::NewRig { name, repository, prefix: Some(name), branch, executor };
            rigs::add(&town, &rig).unwrap();
            settings::set(
                &town,
                &format!("rig.{name}.command"),
                "/bin/true {bead}",
                gt_scheduling::runtimes::check_name,
            )
            .unwrap();
        }
        for handle in ["work", "lab"] {
            let new = NewAccount { handle: handle.to_owned(), ..NewAccount::default() };
            accounts::add(&town, &new).unwrap();
        }
        Self { town, clock }
    }

    fn pass(&self, time: Duration) {
        self.clock.advance(time);
    }

    /// Makes a bead and slings it.
    fn sling(&self, id: &str, flags: SlingOptions) {
        bead(&self.town, id);
        let request =
            SlingRequest { arguments: vec![id.to_owned()], flags, ..SlingRequest::default() };
        sling(&self.town, &request).unwrap();
    }

    /// One cycle; the runs that it started are taken.
    fn cycle(&self) -> Vec<String> {
        let done = Dispatcher::new(&self.town, &MemorySpawner::default()).dispatch().unwrap();
        let started: Vec<RunId> =
            done.dispatched.into_iter().map(|started| started.run.unwrap().id).collect();
        for run in &started {
            gt_scheduling::run_transitions::claim(&self.town, run, &Workplace::default(), None)
                .unwrap();
        }
        started.iter().map(ToString::to_string).collect()
    }

    fn end(&self, run: &str, state: RunState) -> FinishEffect {
        let end = RunEnd::without_status(state, "it was seen");
        gt_scheduling::run_transitions::finish(&self.town, &RunId::parse(run).unwrap(), &end)
            .unwrap()
    }

    /// Slings a bead, and lets its run end after a second.
    fn strike(&self, id: &str, state: RunState) -> FinishEffect {
        self.sling(id, SlingOptions::default());
        self.cycle();
        self.pass(SECOND);
        self.end(&format!("{id}#1"), state)
    }

    fn reasons(&self, id: &str) -> Vec<&'static str> {
        let why = queue::why(&self.town, id).unwrap();
        why.reasons.iter().map(WaitReason::code).collect()
    }

    fn attempts(&self, id: &str) -> u32 {
        queue::why(&self.town, id).unwrap().context.unwrap().attempts
    }

    fn told(&self) -> Vec<String> {
        let all = events::latest(&self.town, &EventFilter::default(), usize::MAX).unwrap();
        let about = ["parked", "limited", "unparked"];
        let kinds = all.iter().map(|event| event.kind.as_str().to_owned());
        kinds.filter(|kind| about.contains(&kind.as_str())).collect()
    }
}

fn on(account: &str) -> SlingOptions {
    SlingOptions { account: Some(account.to_owned()), ..SlingOptions::default() }
}

fn command_of(rig: &str) -> ParkSubject {
    ParkSubject::runtime("", &RigSlug::parse(rig).unwrap())
}

#[test]
fn a_command_that_always_fails_burns_three_beads_and_no_fourth() {
    let stage = Stage::new();
    for id in ["web-1", "web-2", "web-3"] {
        assert_eq!(stage.strike(id, RunState::Failed), FinishEffect::Closed(Outcome::Failed));
    }
    stage.sling("web-4", SlingOptions::default());
    stage.sling("api-1", SlingOptions::default());

    assert_eq!(stage.cycle(), ["api-1#1"]);

    assert_eq!(stage.reasons("web-4"), ["runtime-parked"]);
    assert_eq!(queue::status(&stage.town).unwrap().parked.len(), 1);
    let needs = gt_scheduling::needs::needs_you(&stage.town).unwrap();
    assert!(matches!(&needs[..], [Need::Parked(means, _)] if *means == command_of("web")));
    assert_eq!(stage.told(), ["parked"]);
}

#[test]
fn after_ten_minutes_one_run_tries_it_and_does_not_cost_its_bead_anything() {
    let stage = Stage::new();
    for id in ["web-1", "web-2", "web-3"] {
        stage.strike(id, RunState::Failed);
    }
    for id in ["web-4", "web-5"] {
        stage.sling(id, SlingOptions::default());
    }
    stage.pass(MINUTE * 10);

    // One goes, the other waits for what comes of it.
    assert_eq!(stage.cycle(), ["web-4#1"]);
    assert_eq!(stage.reasons("web-5"), ["runtime-parked"]);
    assert!(stage.cycle().is_empty());

    // It fails as well: the bead is back in line, and all wait again.
    stage.pass(SECOND);
    assert_eq!(stage.end("web-4#1", RunState::Failed), FinishEffect::Rescheduled);
    assert_eq!(stage.attempts("web-4"), 0);
    assert!(stage.cycle().is_empty());
    assert_eq!(stage.told(), ["parked", "parked"]);

    // A person puts it right.
    stage.pass(MINUTE * 10);
    let trial = stage.cycle();
    assert_eq!(trial.len(), 1);
    assert!(stage.cycle().is_empty());
    assert_eq!(stage.end(&trial[0], RunState::Done), FinishEffect::Closed(Outcome::Success));
    assert_eq!(stage.cycle().len(), 1);
    assert_eq!(stage.told(), ["parked", "parked", "unparked"]);
}

#[test]
fn a_trial_that_lasts_lets_the_others_go() {
    let stage = Stage::new();
    for id in ["web-1", "web-2", "web-3"] {
        stage.strike(id, RunState::Failed);
    }
    for id in ["web-4", "web-5"] {
        stage.sling(id, SlingOptions::default());
    }
    stage.pass(MINUTE * 10);
    assert_eq!(stage.cycle(), ["web-4#1"]);
    stage.pass(MINUTE);

    assert_eq!(stage.cycle(), ["web-5#1"]);

    assert_eq!(stage.told(), ["parked", "unparked"]);
    assert!(gt_scheduling::dispatch::parked(&stage.town).unwrap().is_empty());
}

#[test]
fn runs_that_are_lost_at_once_get_their_attempts_back() {
    let stage = Stage::new();
    stage.strike("web-1", RunState::Lost);
    assert_eq!(stage.attempts("web-1"), 1);
    for id in ["web-2", "web-3"] {
        bead(&stage.town, id);
        let arguments = vec![id.to_owned()];
        let request = SlingRequest { arguments, ..SlingRequest::default() };
        // The others are left waiting, so that nothing comes between.
        let contexts = sling(&stage.town, &request).unwrap().contexts;
        let spawner = MemorySpawner::default();
        Dispatcher::new(&stage.town, &spawner).with_only(contexts).dispatch().unwrap();
        gt_scheduling::run_transitions::claim(
            &stage.town,
            &RunId::parse(&format!("{id}#1")).unwrap(),
            &Workplace::default(),
            None,
        )
        .unwrap();
        assert_eq!(stage.end(&format!("{id}#1"), RunState::Lost), FinishEffect::Rescheduled);
    }

    for id in ["web-1", "web-2", "web-3"] {
        assert_eq!(stage.attempts(id), 0, "{id}");
    }
    assert_eq!(stage.reasons("web-1"), ["runtime-parked"]);
}

#[test]
fn a_person_can_end_the_parking() {
    let stage = Stage::new();
    for id in ["web-1", "web-2", "web-3"] {
        stage.strike(id, RunState::Failed);
    }
    stage.sling("web-4", SlingOptions::default());
    assert!(stage.cycle().is_empty());

    assert!(gt_scheduling::dispatch::resume(&stage.town, &command_of("web")).unwrap());
    assert!(!gt_scheduling::dispatch::resume(&stage.town, &command_of("web")).unwrap());

    assert_eq!(stage.cycle(), ["web-4#1"]);
    // It begins anew: one more is no reason to park it.
    stage.pass(SECOND);
    stage.end("web-4#1", RunState::Failed);
    assert!(gt_scheduling::dispatch::parked(&stage.town).unwrap().is_empty());
    let retried = retry(&stage.town, &["web-1".to_owned()], false).unwrap();
    assert!(retried[0].is_ok());
}

#[test]
fn an_account_is_parked_before_the_runtime_that_others_use_too() {
    let stage = Stage::new();
    for id in ["web-1", "web-2", "web-3"] {
        stage.sling(id, on("work"));
        stage.cycle();
        stage.pass(SECOND);
        stage.end(&format!("{id}#1"), RunState::Failed);
    }
    stage.sling("web-4", on("work"));
    stage.sling("web-5", on("lab"));

    assert_eq!(stage.cycle(), ["web-5#1"]);

    assert_eq!(stage.reasons("web-4"), ["account-limited"]);
    // It was not the account.
    stage.pass(SECOND);
    stage.end("web-5#1", RunState::Failed);
    assert_eq!(gt_scheduling::dispatch::parked(&stage.town).unwrap().len(), 2);
}

#[test]
fn a_usage_limit_is_a_schedule_and_not_a_failure() {
    let stage = Stage::new();
    for id in ["web-1", "web-2"] {
        stage.sling(id, on("work"));
    }
    stage.cycle();
    let until = stage.town.now().plus(MINUTE * 90);
    for id in ["web-1#1", "web-2#1"] {
        let run = RunId::parse(id).unwrap();
        let ended = gt_scheduling::run_transitions::limited(
            &stage.town,
            &run,
            until,
            "5-hour limit reached",
        )
        .unwrap();
        assert_eq!(ended, FinishEffect::Rescheduled);
        assert_eq!(
            gt_scheduling::run_transitions::limited(&stage.town, &run, until, "again").unwrap(),
            FinishEffect::Already
        );
    }
    stage.sling("web-3", on("lab"));

    // Others go on; those on the account wait for the time that it said, and have used no attempt.
    assert_eq!(stage.cycle(), ["web-3#1"]);
    for id in ["web-1", "web-2"] {
        let why = queue::why(&stage.town, id).unwrap();
        let expected = format!("account work limited until {until}");
        assert_eq!(why.reasons[0].to_string(), expected);
        assert_eq!(stage.attempts(id), 0);
        assert_eq!(shown(&stage.town, id).row.bead.status, Status::Open);
    }
    assert!(
        gt_scheduling::needs::needs_you(&stage.town).unwrap().is_empty(),
        "no person need do anything"
    );
    assert_eq!(stage.told(), ["limited"]);

    // Then one run tries it, not all at once.
    stage.pass(MINUTE * 90);
    assert_eq!(stage.cycle(), ["web-1#2"]);
    assert!(stage.cycle().is_empty());
    stage.end("web-1#2", RunState::Done);
    assert_eq!(stage.cycle(), ["web-2#2"]);
}

/// A world in which no process is left of anything, and these traces are.
struct Gone(LossFacts);

impl ProcessProbe for Gone {
    fn host(&self) -> &'static str {
        ""
    }

    fn starter_of(&self, _: &Run) -> Alive {
        Alive::No
    }

    fn worker_of(&self, _: &Run) -> Alive {
        Alive::No
    }

    fn end_worker(&self, _: &Run, _: Duration) -> Result<()> {
        Ok(())
    }

    fn traces_of(&self, _: &Run) -> LossFacts {
        self.0
    }
}

#[test]
fn a_machine_or_a_server_that_goes_down_costs_no_attempt_and_parks_nothing() {
    for (traces, reason, attempts) in [
        (LossFacts { rebooted: true, server_gone: true }, "the machine it ran on went down", 0),
        (
            LossFacts { rebooted: false, server_gone: true },
            "the server of its session went down",
            0,
        ),
        (LossFacts::default(), "none of its processes is left, and none said how it ended", 1),
    ] {
        let stage = Stage::new();
        for id in ["web-1", "web-2", "api-1", "api-2"] {
            stage.sling(id, SlingOptions::default());
        }
        stage.cycle();

        let recovered = runs::recover(&stage.town, &Gone(traces)).unwrap();

        assert_eq!(recovered.lost.len(), 4);
        for id in ["web-1", "web-2", "api-1", "api-2"] {
            assert_eq!(stage.attempts(id), attempts, "{reason}");
            assert_eq!(queue::why(&stage.town, id).unwrap().run.unwrap().reason, reason);
        }
        assert!(gt_scheduling::dispatch::parked(&stage.town).unwrap().is_empty());
        // The second time it keeps its distance to the first.
        assert_eq!(stage.cycle().len(), 4);
        runs::recover(&stage.town, &Gone(traces)).unwrap();
        assert_eq!(stage.reasons("web-1"), ["backoff"]);
    }
}

#[test]
fn a_bead_without_attempts_left_needs_a_person_and_gets_new_ones_from_one() {
    let stage = Stage::new();
    stage.sling("web-1", SlingOptions::default());
    for attempt in 1..=3 {
        stage.pass(MINUTE * 10);
        assert_eq!(stage.cycle(), [format!("web-1#{attempt}")]);
        stage.pass(MINUTE * 2);
        let ended = stage.end(&format!("web-1#{attempt}"), RunState::Lost);
        assert_eq!(ended == FinishEffect::Escalated, attempt == 3);
    }
    assert_eq!(stage.reasons("web-1"), ["attempts-used-up"]);
    let needs = gt_scheduling::needs::needs_you(&stage.town).unwrap();
    assert!(matches!(&needs[..], [Need::OutOfAttempts(_, 3)]), "{needs:?}");

    // Recovery has no more for it, unless a person says how many.
    let wish = Redispatch { bead: "web-1".to_owned(), ..Redispatch::default() };
    let done = recovery::redispatch(&stage.town, &wish).unwrap();
    assert!(matches!(done, Redispatched::UsedUp(_, 3)), "{done:?}");

    retry(&stage.town, &["web-1".to_owned()], false).unwrap().remove(0).unwrap();
    assert_eq!(stage.attempts("web-1"), 0);
    assert!(gt_scheduling::needs::needs_you(&stage.town).unwrap().is_empty());
}
