//! The list, the status, the explanation, the dry run, the run and agents that ask for work agree on what is eligible and on
//! the reason, in random towns.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use gt_beads::beads::{self, BeadChanges, NewBead};
use gt_beads::convoys;
use gt_beads::dependencies;
use gt_core::decide::{MachineFacts, MachineLoad, MachineMemory, WaitReason};
use gt_core::schedule::{RunEnd, RunId, RunState, Workplace};
use gt_core::work::Lease;
use gt_core::{
    Clock, DependencyType, ExecutorKind, IssueType, Priority, RigState, Status, Timestamp,
};
use gt_scheduling::accounts::{self, NewAccount};
use gt_scheduling::convoy_planning::TrackedState;
use gt_scheduling::dispatch::{CycleCaller, Dispatcher, MemorySpawner, next_due};
use gt_scheduling::processes::ProcessProbe as _;
use gt_scheduling::schedule::{SlingOptions, SlingRequest, sling};
use gt_scheduling::{Consequences, queue};
use gt_town::{Actor, Town, rigs, settings};
use gt_workqueue::work;
use proptest::prelude::*;

use crate::still_clock::StillClock;

/// The event that happened to a bead after it was scheduled.
#[derive(Debug, Clone, Copy)]
enum Fortune {
    Nothing,
    Blocked,
    DeferredFor(u64),
    ParentDeferredFor(u64),
    Assigned,
    Claimed,
    Pinned,
    NotSlingable,
    Urgent,
    Closed,
    /// A convoy that tracks it is paused.
    ConvoyPaused,
    /// A convoy that tracks it has a cap of one run.
    ConvoyCapped,
    /// Another bead of its rig is staged and not scheduled.
    OtherStaged,
}

#[derive(Debug, Clone)]
struct Plan {
    rig: usize,
    priority: u8,
    queued: bool,
    forced: bool,
    /// Whether a worker was named: of those only one runs at a time.
    place: Option<bool>,
    /// The account that was named.
    account: Option<usize>,
    /// It is done by an agent that takes much memory.
    heavy: bool,
    /// The first start fails, so that the next one waits.
    fails: bool,
    fortune: Fortune,
}

#[derive(Debug, Clone)]
struct Scenario {
    max_polecats: i64,
    queue_max_polecats: i64,
    rig_cap: i64,
    fifo: bool,
    queue_enabled: bool,
    paused: bool,
    /// The command of a rig has not worked for a while: it is parked, or about to be tried.
    sick: Option<u64>,
    limits: Limits,
    batch: u32,
    /// How long the town is left alone before the first look.
    idle: u64,
    /// So many of the beads are there before a first cycle.
    first: usize,
    plans: Vec<Plan>,
}

/// The limits on starts besides slots.
#[derive(Debug, Clone)]
struct Limits {
    /// Most starts in an hour: in the town, and in the rig `web`.
    runs_per_hour: (u32, u32),
    /// The free memory of 16 GB.
    memory_mb: u64,
    /// How busy the one core is, in hundredths; one that has two to do is too busy.
    load: u64,
    /// Most runs on each account.
    accounts: [u32; ACCOUNTS.len()],
    /// Which of them is the default.
    default_account: Option<usize>,
    /// Whether others are used while that has no room.
    spread: bool,
}

const ACCOUNTS: [&str; 3] = ["home", "lab", "work"];
const RIGS: [&str; 5] = ["web", "api", "parked", "docked", "asked"];

fn fortune() -> impl Strategy<Value = Fortune> {
    prop_oneof![
        4 => Just(Fortune::Nothing),
        1 => Just(Fortune::Blocked),
        1 => (1_u64..100).prop_map(Fortune::DeferredFor),
        1 => (1_u64..100).prop_map(Fortune::ParentDeferredFor),
        1 => Just(Fortune::Assigned),
        1 => Just(Fortune::Claimed),
        1 => Just(Fortune::Pinned),
        1 => Just(Fortune::NotSlingable),
        1 => Just(Fortune::Urgent),
        1 => Just(Fortune::Closed),
        1 => Just(Fortune::ConvoyPaused),
        1 => Just(Fortune::ConvoyCapped),
        1 => Just(Fortune::OtherStaged),
    ]
}

fn plan() -> impl Strategy<Value = Plan> {
    let rig = prop_oneof![4 => 0_usize..2, 1 => 2_usize..5];
    let place = prop_oneof![3 => Just(None), 1 => Just(Some(true)), 1 => Just(Some(false))];
    let flags = (
        any::<bool>(),
        prop::bool::weighted(0.2),
        prop::bool::weighted(0.2),
        prop::bool::weighted(0.3),
    );
    let account = prop::option::weighted(0.3, 0..ACCOUNTS.len());
    (rig, 0_u8..5, place, account, flags, fortune()).prop_map(
        |(rig, priority, place, account, flags, fortune)| {
            let (queued, forced, fails, heavy) = flags;
            Plan { rig, priority, queued, forced, place, account, heavy, fails, fortune }
        },
    )
}

fn limits() -> impl Strategy<Value = Limits> {
    let budget = || prop_oneof![2 => Just(0_u32), 1 => 1_u32..6];
    let accounts = prop::array::uniform3(prop_oneof![2 => Just(0_u32), 1 => 1_u32..3]);
    let default = prop::option::of(0..ACCOUNTS.len());
    // Nothing of a floor of 800 MB is left, or room for a few heavy ones, or for all.
    let memory = prop_oneof![1 => Just(500_u64), 2 => 900_u64..4000, 2 => Just(15_000_u64)];
    let load = prop_oneof![3 => Just(50_u64), 1 => 150_u64..300];
    (budget(), budget(), memory, load, accounts, default, any::<bool>()).prop_map(
        |(town, web, memory_mb, load, accounts, default_account, spread)| {
            let runs_per_hour = (town, web);
            Limits { runs_per_hour, memory_mb, load, accounts, default_account, spread }
        },
    )
}

fn scenarios() -> impl Strategy<Value = Scenario> {
    let caps = (
        prop_oneof![Just(-1_i64), Just(1), Just(3), Just(20)],
        prop_oneof![Just(0_i64), Just(1), Just(4)],
        prop_oneof![Just(0_i64), Just(1), Just(2)],
    );
    let flags = (any::<bool>(), any::<bool>(), prop::bool::weighted(0.1));
    let sick = prop_oneof![2 => Just(None), 1 => (0_u64..1000).prop_map(Some)];
    let numbers = (0_u32..4, 0_u64..400, 0_usize..6, sick);
    (caps, flags, numbers, limits(), prop::collection::vec(plan(), 1..14)).prop_map(
        |(
            (max_polecats, queue_max_polecats, rig_cap),
            flags,
            (batch, idle, first, sick),
            limits,
            plans,
        )| {
            let (fifo, queue_enabled, paused) = flags;
            Scenario {
                max_polecats,
                queue_max_polecats,
                rig_cap,
                fifo,
                queue_enabled,
                paused,
                sick,
                limits,
                batch,
                idle,
                first,
                plans,
            }
        },
    )
}

fn id(number: usize, plan: &Plan) -> String {
    format!("{}-{number}", RIGS[plan.rig])
}

/// Makes and schedules a bead, and lets happen to it what happens.
fn live_through(town: &Town, number: usize, plan: &Plan) {
    let id = id(number, plan);
    let new = NewBead {
        title: id.clone(),
        id: Some(id.clone()),
        priority: Priority::new(plan.priority.into()).unwrap(),
        ..NewBead::default()
    };
    beads::create(town, &new, false).unwrap();
    let mut arguments = vec![id.clone()];
    // Agents that ask for work are not named.
    if let Some(polecat) = plan.place.filter(|polecat| !(*polecat && RIGS[plan.rig] == "asked")) {
        let place = if polecat { "nux" } else { "crew/ann" };
        arguments.push(format!("{}/{place}", RIGS[plan.rig]));
    }
    let flags = SlingOptions {
        force: plan.forced,
        no_convoy: true,
        account: plan.account.map(|at| ACCOUNTS[at].to_owned()),
        runtime: plan.heavy.then(|| "claude".to_owned()),
        ..SlingOptions::default()
    };
    let request = SlingRequest { arguments, flags, queue: plan.queued, ..SlingRequest::default() };
    sling(town, &request).unwrap();
    let other = |suffix: &str| {
        let name = format!("{id}-{suffix}");
        let new = NewBead { title: name.clone(), id: Some(name.clone()), ..NewBead::default() };
        beads::create(town, &new, false).unwrap();
        name
    };
    let until = |seconds: u64| Some(town.now().plus(Duration::from_secs(seconds)));
    let link = |target: &str, kind: DependencyType| {
        dependencies::add(town, &id, target, &kind, false).unwrap();
    };
    let change = |changes: BeadChanges| {
        beads::update(town, std::slice::from_ref(&id), &changes).unwrap().remove(0).unwrap();
    };
    let convoy = || {
        let convoy = format!("hq-cv-{number}");
        let new = NewBead {
            title: convoy.clone(),
            id: Some(convoy.clone()),
            issue_type: Some(IssueType::trusted("convoy".to_owned())),
            ..NewBead::default()
        };
        beads::create(town, &new, false).unwrap();
        dependencies::add(town, &convoy, &id, &DependencyType::Tracks, false).unwrap();
        convoy
    };
    match plan.fortune {
        Fortune::Nothing => {}
        Fortune::ConvoyPaused => {
            convoys::pause(town, &convoy()).unwrap();
        }
        Fortune::ConvoyCapped => {
            convoys::cap(town, &convoy(), 1).unwrap();
        }
        Fortune::OtherStaged => {
            let inputs = vec![other("staged")];
            let request = gt_scheduling::convoy_planning::StageRequest {
                inputs,
                ..gt_scheduling::convoy_planning::StageRequest::default()
            };
            gt_scheduling::convoy_planning::stage(town, &request, &|_, _| false).unwrap();
        }
        Fortune::Blocked => link(&other("blocker"), DependencyType::Blocks),
        Fortune::DeferredFor(seconds) => {
            beads::defer(town, &[id], until(seconds), None).unwrap();
        }
        Fortune::ParentDeferredFor(seconds) => {
            let parent = other("parent");
            link(&parent, DependencyType::ParentChild);
            beads::defer(town, &[parent], until(seconds), None).unwrap();
        }
        Fortune::Assigned => {
            change(BeadChanges { assignee: Some("bob".to_owned()), ..BeadChanges::default() });
        }
        Fortune::Claimed => change(BeadChanges { claim: true, ..BeadChanges::default() }),
        Fortune::Pinned => {
            change(BeadChanges { status: Some(Status::Pinned), ..BeadChanges::default() });
        }
        Fortune::NotSlingable => {
            let issue_type = Some(IssueType::trusted("decision".to_owned()));
            change(BeadChanges { issue_type, ..BeadChanges::default() });
        }
        Fortune::Urgent => {
            change(BeadChanges { priority: Priority::new(0).ok(), ..BeadChanges::default() });
        }
        Fortune::Closed => {
            let how = beads::Close { force: true, ..beads::Close::default() };
            beads::close(town, &[id], &how).unwrap();
        }
    }
}

/// The runs of three beads in a row come to nothing at once.
fn fall_sick(town: &Town) {
    for number in 1..=3 {
        let id = format!("web-sick{number}");
        let new = NewBead { title: id.clone(), id: Some(id.clone()), ..NewBead::default() };
        beads::create(town, &new, false).unwrap();
        let request = SlingRequest { arguments: vec![id.clone()], ..SlingRequest::default() };
        sling(town, &request).unwrap();
        Dispatcher::new(town, &MemorySpawner::default()).dispatch().unwrap();
        let run = RunId::parse(&format!("{id}#1")).unwrap();
        gt_scheduling::run_transitions::claim(town, &run, &Workplace::default(), None).unwrap();
        let end = RunEnd::without_status(RunState::Failed, "exit status 1");
        gt_scheduling::run_transitions::finish(town, &run, &end).unwrap();
    }
}

/// This machine: what runs on it is weighed.
fn host(town: &Town) -> String {
    gt_scheduling::processes::LocalProcesses::of(town).unwrap().host().to_owned()
}

fn build(scenario: &Scenario) -> (Town, Arc<StillClock>) {
    let clock = StillClock::at(1_000_000_000_000_000_000);
    let actor = Actor { name: "tester".to_owned(), owner: String::new() };
    let shared: Arc<dyn Clock> = Arc::<StillClock>::clone(&clock);
    let limits = &scenario.limits;
    let machine = MachineFacts {
        memory: Some(MachineMemory { total_mb: 16_000, available_mb: limits.memory_mb }),
        load: Some(MachineLoad { hundredths: limits.load, cores: 1 }),
        disk: None,
    };
    let town = Town::in_memory(actor, shared, Arc::new(Consequences))
        .unwrap()
        .with_machine(Arc::new(machine));
    for (handle, max_runs) in ACCOUNTS.iter().zip(limits.accounts) {
        let handle = (*handle).to_owned();
        accounts::add(&town, &NewAccount { handle, max_runs, ..NewAccount::default() }).unwrap();
    }
    if let Some(at) = limits.default_account {
        accounts::set_default(&town, Some(ACCOUNTS[at])).unwrap();
    }
    for name in RIGS {
        let executor = if name == "asked" { ExecutorKind::Pull } else { ExecutorKind::Process };
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
    if let Some(since) = scenario.sick {
        fall_sick(&town);
        clock.0.fetch_add(i64::try_from(since).unwrap() * 1_000_000_000, Ordering::Relaxed);
    }
    for (name, value) in [
        ("scheduler.max_polecats", scenario.max_polecats.to_string()),
        ("queue.max_polecats", scenario.queue_max_polecats.to_string()),
        ("rig.web.max_polecats", scenario.rig_cap.to_string()),
        ("scheduler.order", if scenario.fifo { "fifo" } else { "priority" }.to_owned()),
        ("queue.enabled", scenario.queue_enabled.to_string()),
        ("budget.runs_per_hour", limits.runs_per_hour.0.to_string()),
        ("rig.web.budget.runs_per_hour", limits.runs_per_hour.1.to_string()),
        ("guard.load_per_core", "2".to_owned()),
        ("accounts.spread", limits.spread.to_string()),
    ] {
        settings::set(&town, name, &value, gt_scheduling::runtimes::check_name).unwrap();
    }
    let first = scenario.first.min(scenario.plans.len());
    let spawner = MemorySpawner::default();
    for (number, plan) in scenario.plans.iter().enumerate().take(first) {
        live_through(&town, number, plan);
        if plan.fails {
            spawner.refuse(&id(number, plan), "no such program");
        }
    }
    // Some run from now on, and some wait for another try.
    let host = host(&town);
    let first_cycle = Dispatcher::new(&town, &spawner).with_starter("", &host);
    first_cycle.with_limit(2).dispatch().unwrap();
    for (number, plan) in scenario.plans.iter().enumerate().skip(first) {
        live_through(&town, number, plan);
    }
    for (name, state) in [("parked", RigState::Parked), ("docked", RigState::Docked)] {
        rigs::set_state(&town, name, &[RigState::Active], state).unwrap();
    }
    if scenario.paused {
        queue::pause(&town).unwrap();
    }
    let idle = i64::try_from(scenario.idle).unwrap() * 1_000_000_000;
    clock.0.fetch_add(idle, Ordering::Relaxed);
    (town, clock)
}

/// The daemon sees the same queue as a person, and the gate; the room follows from that.
fn check_gate(
    scenario: &Scenario,
    by_hand: &[queue::QueuedBead],
    town: &Town,
) -> Result<(), TestCaseError> {
    let by_daemon = queue::list(town, CycleCaller::Daemon).unwrap();
    prop_assert_eq!(by_daemon.len(), by_hand.len());
    let lasting = |entry: &queue::QueuedBead| {
        let reasons = entry.reasons.iter().filter(|reason| !reason.is_capacity());
        reasons.cloned().collect::<Vec<_>>()
    };
    for (hand, daemon) in by_hand.iter().zip(&by_daemon) {
        prop_assert_eq!(&hand.context, &daemon.context);
        let mut expected = lasting(hand);
        prop_assert!(!expected.contains(&WaitReason::QueueGate));
        let running = |reason: &WaitReason| {
            matches!(
                reason,
                WaitReason::Running(_) | WaitReason::StartInProgress(_) | WaitReason::WithCrew(..)
            )
        };
        if daemon.context.gated && !scenario.queue_enabled && !expected.iter().any(running) {
            expected.push(WaitReason::QueueGate);
        }
        prop_assert_eq!(lasting(daemon), expected);
    }
    Ok(())
}

/// The picture of a convoy that tracks everything says what the list and `why` say, and its numbers are those of the overview.
fn check_picture(scenario: &Scenario, town: &Town) -> Result<(), TestCaseError> {
    let convoy = "hq-cv-all".to_owned();
    let new = NewBead {
        title: convoy.clone(),
        id: Some(convoy.clone()),
        issue_type: Some(IssueType::trusted("convoy".to_owned())),
        ..NewBead::default()
    };
    beads::create(town, &new, false).unwrap();
    for (number, plan) in scenario.plans.iter().enumerate() {
        let tracks = DependencyType::Tracks;
        dependencies::add(town, &convoy, &id(number, plan), &tracks, false).unwrap();
    }
    let picture = gt_scheduling::convoy_planning::status(town, &convoy).unwrap();
    let list = queue::list(town, CycleCaller::Daemon).unwrap();
    let ready = list.iter().filter(|entry| entry.is_ready());
    let line: Vec<_> = ready.map(|entry| entry.context.bead.clone()).collect();
    for one in &picture.tracked {
        let bead = &one.row.bead;
        let place = line.iter().position(|waiting| *waiting == bead.id).map(|at| at + 1);
        prop_assert_eq!(one.place, place, "{:#?}", one);
        let is_live = matches!(one.state, TrackedState::Running | TrackedState::Starting);
        if is_live || bead.status == Status::Closed {
            prop_assert!(one.reasons.is_empty());
            continue;
        }
        let why = queue::why(town, bead.id.as_str()).unwrap();
        prop_assert_eq!(&one.reasons, &why.reasons, "{}", bead.id);
        prop_assert_eq!(one.place, why.outlook.map(|outlook| outlook.position));
    }
    let (overviews, _) = gt_scheduling::convoy_planning::overview(town, usize::MAX).unwrap();
    if let Some(one) = overviews.iter().find(|one| one.convoy.bead.id.as_str() == convoy) {
        let live = picture.count(TrackedState::Running) + picture.count(TrackedState::Starting);
        let queued = picture.count(TrackedState::Queued);
        let blocked = picture.count(TrackedState::Blocked);
        prop_assert_eq!((one.running, one.queued, one.blocked), (live, queued, blocked));
    }
    Ok(())
}

/// Agents that ask for work are given exactly what the explanation says waits for an agent, in the order of the queue; what is
/// assigned to an agent is given to that agent alone.
fn check_next(scenario: &Scenario, town: &Town) -> Result<(), TestCaseError> {
    let asked = scenario.plans.iter().enumerate().filter(|(_, plan)| RIGS[plan.rig] == "asked");
    let names = asked.flat_map(|(number, plan)| {
        let name = id(number, plan);
        let others = ["blocker", "parent", "staged"].map(|suffix| format!("{name}-{suffix}"));
        std::iter::once(name).chain(others)
    });
    let (mut for_any, mut for_bob) = (Vec::new(), Vec::new());
    for name in names {
        // Not every bead has others beside it.
        let Ok(why) = queue::why(town, &name) else { continue };
        let bob = WaitReason::AssignedTo("bob".to_owned());
        let mut reasons = why.reasons;
        // An agent that asks opens the gate of the queue.
        reasons.retain(|reason| *reason != WaitReason::QueueGate);
        let place = (why.bead.priority, why.bead.created_at, why.bead.id.to_string());
        if reasons == [WaitReason::WaitsForPullAgent] {
            for_any.push(place);
        } else if reasons == [bob, WaitReason::WaitsForPullAgent] {
            for_bob.push(place);
        }
    }
    let ask = |agent: &str| {
        let request = work::NextRequest {
            agent: agent.to_owned(),
            kinds: Vec::new(),
            project: None,
            dispatched: false,
            lease: Lease::default(),
        };
        match work::next(town, request).unwrap() {
            work::NextWork::Item(taken) => Some(taken.item.bead.to_string()),
            work::NextWork::Nothing(_) => None,
        }
    };
    let in_order = |mut places: Vec<(Priority, Timestamp, String)>| {
        places.sort();
        places.into_iter().map(|(.., id)| id).collect::<Vec<String>>()
    };
    let given: Vec<String> = (0..).map_while(|number| ask(&format!("eve{number}"))).collect();
    prop_assert_eq!(given, in_order(for_any));
    prop_assert_eq!(ask("bob"), in_order(for_bob).first().cloned());
    Ok(())
}

fn check(scenario: &Scenario, caller: CycleCaller) -> Result<(), TestCaseError> {
    let (town, _) = build(scenario);
    check_picture(scenario, &town)?;
    let list = queue::list(&town, caller).unwrap();
    let status = queue::status(&town).unwrap();
    prop_assert_eq!(status.queued, list.len() as u64);
    let ready = list.iter().filter(|entry| entry.is_ready()).count() as u64;
    prop_assert_eq!(status.ready, ready, "{:#?}", list);

    check_gate(scenario, &queue::list(&town, CycleCaller::Hand).unwrap(), &town)?;
    if caller == CycleCaller::Daemon {
        for entry in &list {
            let why = queue::why(&town, entry.context.bead.as_str()).unwrap();
            prop_assert_eq!(&why.reasons, &entry.reasons);
        }
    }
    let startable: Vec<_> = list.iter().filter(|entry| entry.reasons.is_empty()).collect();
    let startable: Vec<_> = startable.iter().map(|entry| entry.context.bead.clone()).collect();
    let spawner = MemorySpawner::default();
    let host = host(&town);
    let cycle = |limit: u32, dry_run: bool| {
        let dispatcher = Dispatcher::new(&town, &spawner).with_caller(caller);
        let dispatcher = dispatcher.with_starter("", &host);
        dispatcher.with_limit(limit).with_dry_run(dry_run).dispatch().unwrap()
    };
    let beads = |done: &gt_scheduling::dispatch::DispatchResult| {
        done.dispatched.iter().map(|started| started.bead.clone()).collect::<Vec<_>>()
    };
    prop_assert_eq!(&beads(&cycle(0, true)), &startable);
    let some = if scenario.batch == 0 { startable.len() } else { scenario.batch as usize };
    let some = &startable[..some.min(startable.len())];
    let dry = cycle(scenario.batch, true);
    prop_assert_eq!(&beads(&dry), &some);
    prop_assert!(spawner.asked().is_empty());
    let done = cycle(scenario.batch, false);
    prop_assert_eq!(&beads(&done), &some);
    prop_assert!(done.errors.is_empty(), "{:?}", done.errors);
    prop_assert_eq!((done.queued, done.skipped, done.gated), (dry.queued, dry.skipped, dry.gated));
    prop_assert_eq!(done.reason, dry.reason);
    let after = queue::status(&town).unwrap();
    prop_assert!(after.live >= status.live);
    check_next(scenario, &town)
}

/// A start that time makes possible happens at the named moment, or later, and never before.
fn check_due(scenario: &Scenario) -> Result<(), TestCaseError> {
    let (town, clock) = build(scenario);
    let spawner = MemorySpawner::default();
    let host = host(&town);
    let daemon = Dispatcher::new(&town, &spawner).with_caller(CycleCaller::Daemon);
    daemon.with_starter("", &host).dispatch().unwrap();
    let now = town.now();
    let due = next_due(&town).unwrap();
    let last = due.map_or(now.plus(Duration::from_hours(48)), |due| {
        Timestamp::from_nanos(due.as_nanos() - 1)
    });
    for part in 1..=4 {
        let step = (last.as_nanos() - now.as_nanos()).max(0) / 4 * part;
        clock.0.store(now.as_nanos() + step, Ordering::Relaxed);
        let list = queue::list(&town, CycleCaller::Daemon).unwrap();
        let early = list.iter().find(|entry| entry.reasons.is_empty());
        prop_assert!(early.is_none(), "{early:#?} before {due:?}");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn beads_listed_without_a_reason_are_those_that_start(scenario in scenarios(), by_hand: bool) {
        check(&scenario, if by_hand { CycleCaller::Hand } else { CycleCaller::Daemon })?;
    }

    #[test]
    fn nothing_starts_by_time_alone_before_its_moment(scenario in scenarios()) {
        check_due(&scenario)?;
    }
}
