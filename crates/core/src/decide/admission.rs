//! The one door to a slot: whether every cap in force admits another run.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::budget::{Budget, BudgetLimit, BudgetScope};
use super::guard::{DiskGuard, LoadGuard, MemoryGuard};
use super::parking::ParkHold;
use super::placement::{Fleet, PlacementNeeds};
use super::readiness::WaitReason;
use crate::schedule::{ParkSubject, ParkSubjectKind, Reserve, RunId, WorkerPlace, host_identity};
use crate::{BeadId, ExecutorKind, RigSlug};

/// A cap that is in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cap {
    /// The cap of the town.
    Town(u32),
    /// On work that was queued by hand, in direct mode.
    Queue(u32),
    /// The cap of a rig.
    Rig(RigSlug, u32),
    /// The cap of an account.
    Account(String, u32),
    /// The cap of a runtime.
    Runtime(String, u32),
    /// The cap of a convoy.
    Convoy(BeadId, u32),
}

impl Cap {
    /// The number.
    pub fn limit(&self) -> u32 {
        match self {
            Self::Town(limit)
            | Self::Queue(limit)
            | Self::Rig(_, limit)
            | Self::Account(_, limit)
            | Self::Runtime(_, limit)
            | Self::Convoy(_, limit) => *limit,
        }
    }
}

impl fmt::Display for Cap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Town(limit) => write!(f, "the town's cap of {limit}"),
            Self::Queue(limit) => write!(f, "the queue's cap of {limit}"),
            Self::Rig(rig, limit) => write!(f, "the cap of {limit} of the rig {rig}"),
            Self::Account(handle, limit) => {
                write!(f, "the cap of {limit} of the account {handle}")
            }
            Self::Runtime(name, limit) => write!(f, "the cap of {limit} of the runtime {name}"),
            Self::Convoy(convoy, limit) => {
                write!(f, "the cap of {limit} of the convoy {convoy}")
            }
        }
    }
}

/// The cap on merge requests that wait for a review: beyond it, rigs that require reviews begin nothing new.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReviewCap {
    /// So many may wait.
    pub limit: u32,
    /// So many wait now.
    pub waiting: u32,
    /// The rigs whose work needs a review.
    pub rigs: BTreeSet<RigSlug>,
}

/// Every cap there is. A cap that is absent does not limit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Caps {
    /// Most live runs in the town (deferred mode).
    pub town: Option<u32>,
    /// Queued work starts while fewer runs than this are live (direct mode).
    pub queue: Option<u32>,
    /// Most live runs in each rig.
    pub rigs: BTreeMap<RigSlug, u32>,
    /// The rigs that only another host works on, and that host.
    pub elsewhere: BTreeMap<RigSlug, String>,
    /// The hosts of the town, if its store is shared.
    pub fleet: Option<Fleet>,
    /// Most live runs for each account.
    pub accounts: BTreeMap<String, u32>,
    /// Most live runs with each runtime.
    pub runtimes: BTreeMap<String, u32>,
    /// Most live runs of the beads of each convoy.
    pub convoys: BTreeMap<BeadId, u32>,
    /// The runtimes and accounts that are parked, and how each is held now.
    pub parked: Vec<(ParkSubject, ParkHold)>,
    /// The budgets in force.
    pub budgets: Vec<Budget>,
    /// The merge requests that wait for a review.
    pub review: Option<ReviewCap>,
    /// How much memory must be left on this machine.
    pub memory: Option<MemoryGuard>,
    /// How busy this machine may be.
    pub load: Option<LoadGuard>,
    /// How much room must be left on the disk of this machine.
    pub disk: Option<DiskGuard>,
}

impl Caps {
    /// The parked runtimes and accounts that one run may try, if this is that run.
    pub fn tried_by<'a>(
        &'a self,
        ask: &'a AdmissionRequest<'_>,
    ) -> impl Iterator<Item = &'a ParkSubject> {
        let takes_part = ask.executor.takes_slot();
        let once =
            self.parked.iter().filter(move |(_, hold)| takes_part && *hold == ParkHold::Once);
        once.map(|(means, _)| means).filter(|means| ask.needs(means))
    }

    /// Counts one more admitted run. It becomes the trial of each parked thing that may be tried once, and is
    /// charged to the budgets.
    pub fn note_start(&mut self, ask: &AdmissionRequest<'_>, run: &RunId) {
        if !ask.executor.takes_slot() {
            return;
        }
        for budget in &mut self.budgets {
            if ask.is_under(&budget.set) {
                budget.note_start(&ask.reserve);
            }
        }
        for (means, hold) in &mut self.parked {
            if *hold == ParkHold::Once && ask.needs(means) {
                *hold = ParkHold::Trial(run.clone());
            }
        }
    }
}

/// A request to admit one more run.
#[derive(Debug, Clone, Copy)]
pub struct AdmissionRequest<'a> {
    /// Its rig.
    pub rig: &'a RigSlug,
    /// Carried out like this.
    pub executor: ExecutorKind,
    /// By this worker, if one was named.
    pub place: Option<&'a WorkerPlace>,
    /// Its account, if any.
    pub account: Option<&'a str>,
    /// Through the queue's gate.
    pub gated: bool,
    /// With this runtime; empty for the rig's own command, nothing if any would do.
    pub runtime: Option<&'a str>,
    /// Of the bead of these convoys, those that have a cap.
    pub convoys: &'a [BeadId],
    /// Of this bead; nothing if any would do.
    pub bead: Option<&'a BeadId>,
    /// The convoys that track it and have a budget.
    pub budget_convoys: &'a [BeadId],
    /// Whether it begins work, and does not resume or repair work that was begun. The cap on waiting reviews holds up
    /// nothing else.
    pub is_new_work: bool,
    /// The megabytes that it will take of this machine beyond what can be measured already; nothing if it runs on another.
    pub here: Option<u64>,
    /// The share of the budgets that it is expected to need.
    pub reserve: Reserve,
    /// The host that it runs on, or would run on, as runs name it.
    pub on_host: &'a str,
    /// The host that a person asked for.
    pub asked_host: Option<&'a str>,
}

impl AdmissionRequest<'_> {
    fn needs(&self, means: &ParkSubject) -> bool {
        means.serves(self.rig, self.runtime, self.account)
    }

    /// Its needs of a host.
    pub fn placement(&self) -> PlacementNeeds<'_> {
        let Self { bead, rig, runtime, asked_host: host, .. } = *self;
        PlacementNeeds { bead, rig, host, runtime }
    }

    /// Whether a budget is for this run.
    fn is_under(&self, budget: &BudgetLimit) -> bool {
        match &budget.scope {
            BudgetScope::Bead(bead) => self.bead == Some(bead),
            BudgetScope::Convoy(convoy) => self.budget_convoys.contains(convoy),
            BudgetScope::All | BudgetScope::Rig(_) | BudgetScope::Account(_) => {
                budget.covers(self.rig, self.account)
            }
        }
    }
}

/// The live runs, counted by the keys of the caps. Every one counts, however it was started: memory and rate limits
/// are shared.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Occupancy {
    town: u32,
    rigs: BTreeMap<RigSlug, u32>,
    accounts: BTreeMap<String, u32>,
    /// By the name of their runtime.
    runtimes: BTreeMap<String, u32>,
    convoys: BTreeMap<BeadId, u32>,
    places: BTreeMap<WorkerPlace, RunId>,
    /// By the host that they are on.
    hosts: BTreeMap<String, u32>,
    /// Those on this machine.
    here: u32,
    /// The megabytes that started runs will still take and that cannot be measured yet.
    pledged_mb: u64,
}

impl Occupancy {
    /// So many live runs that take a slot, in all.
    pub fn live(&self) -> u32 {
        self.town
    }

    /// So many live runs in this rig.
    pub fn live_in(&self, rig: &RigSlug) -> u32 {
        self.rigs.get(rig).copied().unwrap_or(0)
    }

    /// So many live runs with something that runs are carried out with.
    pub fn live_with(&self, means: &ParkSubject) -> u32 {
        let counts = match means.kind {
            ParkSubjectKind::Account => &self.accounts,
            ParkSubjectKind::Runtime => &self.runtimes,
        };
        counts.get(&means.name).copied().unwrap_or(0)
    }

    /// So many live runs are on this host.
    pub fn live_on(&self, host: &str) -> u32 {
        self.hosts.get(host_identity(host)).copied().unwrap_or(0)
    }

    /// So many megabytes those will take of it that cannot be measured yet.
    pub fn pledged_mb(&self) -> u64 {
        self.pledged_mb
    }

    /// Counts live runs like the one asked for.
    pub fn add(&mut self, ask: &AdmissionRequest<'_>, runs: u32) {
        if !ask.executor.takes_slot() {
            return;
        }
        let more = |count: &mut u32| *count = count.saturating_add(runs);
        more(&mut self.town);
        more(self.rigs.entry(ask.rig.clone()).or_default());
        if let Some(account) = ask.account {
            more(self.accounts.entry(account.to_owned()).or_default());
        }
        if let Some(runtime) = ask.runtime {
            more(self.runtimes.entry(ParkSubject::runtime(runtime, ask.rig).name).or_default());
        }
        more(self.hosts.entry(host_identity(ask.on_host).to_owned()).or_default());
        for convoy in ask.convoys {
            more(self.convoys.entry(convoy.clone()).or_default());
        }
        if let Some(memory_mb) = ask.here {
            more(&mut self.here);
            let pledged = memory_mb.saturating_mul(runs.into());
            self.pledged_mb = self.pledged_mb.saturating_add(pledged);
        }
    }

    /// Notes which run is at a named place.
    pub fn occupy(&mut self, place: WorkerPlace, run: RunId) {
        self.places.insert(place, run);
    }

    /// The run that has a place.
    pub fn occupant(&self, place: &WorkerPlace) -> Option<&RunId> {
        self.places.get(place)
    }
}

/// Every reason why the caps do not admit one more run; none means that it may start.
///
/// People and agents that ask for work themselves take no slot and are always admitted.
pub fn admit(caps: &Caps, occupancy: &Occupancy, ask: &AdmissionRequest<'_>) -> Vec<WaitReason> {
    let mut reasons = Vec::new();
    if !ask.executor.takes_slot() {
        return reasons;
    }
    let mut check = |cap: Option<Cap>, live: u32| {
        reasons.extend(cap.filter(|cap| live >= cap.limit()).map(WaitReason::NoSlot));
    };
    check(caps.town.map(Cap::Town), occupancy.town);
    if ask.gated {
        check(caps.queue.map(Cap::Queue), occupancy.town);
    }
    let of_rig = caps.rigs.get(ask.rig).map(|limit| Cap::Rig(ask.rig.clone(), *limit));
    check(of_rig, occupancy.live_in(ask.rig));
    if let Some(account) = ask.account {
        let cap = caps.accounts.get(account).map(|limit| Cap::Account(account.to_owned(), *limit));
        check(cap, occupancy.live_with(&ParkSubject::account(account)));
    }
    if let Some(name) = ask.runtime {
        let cap = caps.runtimes.get(name).map(|limit| Cap::Runtime(name.to_owned(), *limit));
        check(cap, occupancy.live_with(&ParkSubject::runtime(name, ask.rig)));
    }
    for convoy in ask.convoys {
        let cap = caps.convoys.get(convoy).map(|limit| Cap::Convoy(convoy.clone(), *limit));
        check(cap, occupancy.convoys.get(convoy).copied().unwrap_or(0));
    }
    if let Some(fleet) = &caps.fleet {
        let answer = fleet.place(&ask.placement(), |host| occupancy.live_on(host));
        reasons.extend(answer.map(|answer| WaitReason::Placement(Box::new(answer))));
    } else if let Some(host) = caps.elsewhere.get(ask.rig) {
        reasons.push(WaitReason::OtherHost(ask.rig.clone(), host.clone()));
    }
    if let Some((place, run)) = ask.place.and_then(|place| occupancy.places.get_key_value(place)) {
        reasons.push(WaitReason::OnePerAgent(place.clone(), run.clone()));
    }
    for (means, hold) in caps.parked.iter().filter(|(means, _)| ask.needs(means)) {
        let name = means.name.clone();
        match (hold, means.kind) {
            (ParkHold::Once, _) => {}
            (ParkHold::Ramp(most, _), _) if occupancy.live_with(means) < *most => {}
            (hold, ParkSubjectKind::Runtime) => {
                reasons.push(WaitReason::RuntimeParked(name, hold.clone()));
            }
            (hold, ParkSubjectKind::Account) => {
                reasons.push(WaitReason::AccountLimited(name, hold.clone()));
            }
        }
    }
    let review = caps.review.as_ref().filter(|cap| ask.is_new_work && cap.rigs.contains(ask.rig));
    if let Some(cap) = review.filter(|cap| cap.waiting >= cap.limit) {
        let (waiting, limit) = (cap.waiting, cap.limit);
        reasons.push(WaitReason::ReviewsWaiting { waiting, limit });
    }
    let own = caps.budgets.iter().filter(|budget| ask.is_under(&budget.set));
    let spent = own.filter_map(|budget| budget.refusal(&ask.reserve));
    reasons.extend(spent.map(WaitReason::Budget));
    if ask.here.is_some() {
        let short = caps.disk.filter(DiskGuard::is_shut);
        reasons.extend(short.map(|guard| WaitReason::Disk {
            available_mb: guard.available_mb,
            wanted_mb: guard.wanted_mb(),
        }));
    }
    // A machine that is full of other things must not stop the town for good.
    if ask.here.is_some() && occupancy.here > 0 {
        let short = caps.memory.filter(|guard| guard.is_shut(occupancy.pledged_mb));
        reasons.extend(short.map(|guard| {
            let available_mb = guard.available_mb.saturating_sub(occupancy.pledged_mb);
            WaitReason::Memory { available_mb, wanted_mb: guard.wanted_mb() }
        }));
        reasons.extend(caps.load.filter(LoadGuard::is_shut).map(WaitReason::Load));
    }
    reasons
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    fn rig(name: &str) -> RigSlug {
        RigSlug::parse(name).unwrap()
    }

    fn ask(rig: &RigSlug) -> AdmissionRequest<'_> {
        let executor = ExecutorKind::Process;
        AdmissionRequest {
            rig,
            executor,
            place: None,
            account: None,
            gated: false,
            runtime: Some(""),
            convoys: &[],
            bead: None,
            budget_convoys: &[],
            is_new_work: true,
            here: None,
            reserve: Reserve::default(),
            on_host: "",
            asked_host: None,
        }
    }

    fn convoy(id: &str) -> BeadId {
        BeadId::parse(id).unwrap()
    }

    #[test]
    fn a_rig_of_another_host_starts_nothing_here() {
        let (web, api) = (rig("web"), rig("api"));
        let elsewhere = BTreeMap::from([(web.clone(), "builder/0a1b".to_owned())]);
        let caps = Caps { elsewhere, ..Caps::default() };
        let reasons = admit(&caps, &Occupancy::default(), &ask(&web));
        assert_eq!(reasons, [WaitReason::OtherHost(web, "builder/0a1b".to_owned())]);
        assert!(admit(&caps, &Occupancy::default(), &ask(&api)).is_empty());
    }

    #[test]
    fn a_draining_host_and_a_full_host_start_nothing() {
        use crate::decide::{HostFacts, HostState};
        let web = rig("web");
        let facts = |state| HostFacts {
            host: "a/id".to_owned(),
            state,
            labels: BTreeSet::new(),
            cap: Some(1),
            rigs: BTreeSet::new(),
            runtimes: None,
            warm: BTreeSet::new(),
            has_daemon: true,
            is_short_of_memory: false,
        };
        let caps = |state| {
            let fleet =
                Fleet { here: "a/id".into(), hosts: vec![facts(state)], ..Fleet::default() };
            Caps { fleet: Some(fleet), ..Caps::default() }
        };
        let ask = AdmissionRequest { on_host: "a/id", ..ask(&web) };
        let mut occupancy = Occupancy::default();
        assert_eq!(admit(&caps(HostState::Active), &occupancy, &ask), []);
        for state in [HostState::Draining, HostState::Away, HostState::Removed] {
            let reasons = admit(&caps(state), &occupancy, &ask);
            assert!(matches!(reasons.as_slice(), [WaitReason::Placement(_)]), "{reasons:?}");
        }
        occupancy.add(&ask, 1);
        let reasons = admit(&caps(HostState::Active), &occupancy, &ask);
        assert_eq!(
            reasons[0].to_string(),
            "no host can run it: a has 1 live runs, which is its cap"
        );
        // The host of the rig does not start it either, if it is draining, or is no host of the town.
        for (name, expected) in [
            ("b", "no host can run it: a is not b, which alone works on the rig; b is draining"),
            ("c", "no host can run it: a is not c, which alone works on the rig; b is draining"),
        ] {
            let mut caps = caps(HostState::Active);
            caps.elsewhere = BTreeMap::from([(web.clone(), name.to_owned())]);
            if let Some(fleet) = &mut caps.fleet {
                fleet.rig_hosts.clone_from(&caps.elsewhere);
                fleet
                    .hosts
                    .push(HostFacts { host: "b/other".into(), ..facts(HostState::Draining) });
            }
            let reasons = admit(&caps, &Occupancy::default(), &ask);
            assert_eq!(reasons.iter().map(ToString::to_string).collect::<Vec<_>>(), [expected]);
        }
        // People take no slot of a host.
        let person = AdmissionRequest { executor: ExecutorKind::None, ..ask };
        assert_eq!(admit(&caps(HostState::Removed), &occupancy, &person), []);
    }

    #[test]
    fn every_cap_in_force_is_named() {
        let (web, api) = (rig("web"), rig("api"));
        let caps = Caps {
            town: Some(2),
            queue: Some(1),
            rigs: [(web.clone(), 1)].into(),
            accounts: [("work".to_owned(), 1)].into(),
            runtimes: [("codex".to_owned(), 1)].into(),
            convoys: [(convoy("hq-cv-a"), 1), (convoy("hq-cv-b"), 3)].into(),
            ..Caps::default()
        };
        let convoys = [convoy("hq-cv-a"), convoy("hq-cv-b")];
        let place = WorkerPlace::polecat(&web, "nux").unwrap();
        let full = AdmissionRequest {
            gated: true,
            account: Some("work"),
            place: Some(&place),
            runtime: Some("codex"),
            convoys: &convoys,
            ..ask(&web)
        };
        let mut occupancy = Occupancy::default();
        assert_eq!(admit(&caps, &occupancy, &full), []);
        occupancy.add(&full, 1);
        occupancy.add(&ask(&api), 1);
        let run = RunId { bead: BeadId::parse("web-1").unwrap(), epoch: 1 };
        occupancy.occupy(place.clone(), run.clone());
        let reasons = admit(&caps, &occupancy, &full);
        assert_eq!(
            reasons,
            [
                WaitReason::NoSlot(Cap::Town(2)),
                WaitReason::NoSlot(Cap::Queue(1)),
                WaitReason::NoSlot(Cap::Rig(web.clone(), 1)),
                WaitReason::NoSlot(Cap::Account("work".into(), 1)),
                WaitReason::NoSlot(Cap::Runtime("codex".into(), 1)),
                WaitReason::NoSlot(Cap::Convoy(convoy("hq-cv-a"), 1)),
                WaitReason::OnePerAgent(place.clone(), run),
            ]
        );
        let person = AdmissionRequest { executor: ExecutorKind::None, ..full };
        assert_eq!(admit(&caps, &occupancy, &person), []);
    }

    #[test]
    fn parked_means_admit_no_run_and_then_one() {
        let (web, api) = (rig("web"), rig("api"));
        let until = ParkHold::Until(crate::Timestamp::from_nanos(9));
        let mut caps = Caps {
            parked: vec![
                (ParkSubject::runtime("", &web), until.clone()),
                (ParkSubject::account("work"), ParkHold::Once),
            ],
            ..Caps::default()
        };
        let occupancy = Occupancy::default();
        let command = WaitReason::RuntimeParked("web/command".to_owned(), until);
        assert_eq!(admit(&caps, &occupancy, &ask(&web)), [command]);
        // Another runtime, another rig and people go on; a lane is asked without a runtime.
        let claude = AdmissionRequest { runtime: Some("claude"), ..ask(&web) };
        let person = AdmissionRequest { executor: ExecutorKind::None, ..ask(&web) };
        let lane = AdmissionRequest { runtime: None, ..ask(&web) };
        for free in [claude, ask(&api), person, lane] {
            assert_eq!(admit(&caps, &occupancy, &free), []);
        }
        let work = AdmissionRequest { account: Some("work"), ..ask(&api) };
        assert_eq!(admit(&caps, &occupancy, &work), []);
        assert_eq!(caps.tried_by(&work).collect::<Vec<_>>(), [&ParkSubject::account("work")]);

        let run = RunId { bead: BeadId::parse("api-1").unwrap(), epoch: 1 };
        caps.note_start(&work, &run);

        let trial = WaitReason::AccountLimited("work".to_owned(), ParkHold::Trial(run));
        assert_eq!(admit(&caps, &occupancy, &work), [trial]);
        assert_eq!(caps.tried_by(&work).count(), 0);
    }

    #[test]
    fn after_a_limit_as_many_go_as_the_ramp_lets() {
        let web = rig("web");
        let hold = ParkHold::Ramp(2, crate::Timestamp::from_nanos(9));
        let caps =
            Caps { parked: vec![(ParkSubject::account("work"), hold.clone())], ..Caps::default() };
        let work = AdmissionRequest { account: Some("work"), ..ask(&web) };
        let mut occupancy = Occupancy::default();
        for _ in 0..2 {
            assert_eq!(admit(&caps, &occupancy, &work), []);
            occupancy.add(&work, 1);
            occupancy.add(&ask(&web), 1);
        }
        let reason = WaitReason::AccountLimited("work".to_owned(), hold);
        assert_eq!(admit(&caps, &occupancy, &work), [reason]);
        assert_eq!(admit(&caps, &occupancy, &ask(&web)), []);
    }

    #[test]
    fn a_budget_that_is_spent_holds_up_its_rig_and_says_until_when() {
        let (web, api) = (rig("web"), rig("api"));
        let now = crate::Timestamp::from_nanos(0);
        let kind = crate::decide::BudgetKind::RunsPerHour;
        let scope = crate::decide::BudgetScope::Rig(web.clone());
        let budget = Budget::new(BudgetLimit { kind, scope, limit: 1 }, &[], 0, now);
        let mut caps = Caps { budgets: vec![budget], ..Caps::default() };
        let occupancy = Occupancy::default();
        assert_eq!(admit(&caps, &occupancy, &ask(&web)), []);

        caps.note_start(&ask(&web), &RunId { bead: BeadId::parse("web-1").unwrap(), epoch: 1 });

        let reasons = admit(&caps, &occupancy, &ask(&web));
        let [reason] = reasons.as_slice() else { panic!("{reasons:?}") };
        assert_eq!(
            (reason.code(), reason.until()),
            ("budget", Some(now.plus(Duration::from_hours(1))))
        );
        assert_eq!(admit(&caps, &occupancy, &ask(&api)), []);
        let person = AdmissionRequest { executor: ExecutorKind::None, ..ask(&web) };
        assert_eq!(admit(&caps, &occupancy, &person), []);
    }

    #[test]
    fn a_budget_of_a_bead_or_a_convoy_holds_up_its_own_work_only() {
        let web = rig("web");
        let (bead, other, convoy) = (convoy("web-1"), convoy("web-2"), convoy("hq-cv-a"));
        let budget = |scope| {
            let kind = crate::decide::BudgetKind::CostInAll;
            let now = crate::Timestamp::from_nanos(0);
            Budget::new(BudgetLimit { kind, scope, limit: 10 }, &[(now, 10)], 0, now)
        };
        let caps = Caps {
            budgets: vec![
                budget(BudgetScope::Bead(bead.clone())),
                budget(BudgetScope::Convoy(convoy.clone())),
            ],
            ..Caps::default()
        };
        let convoys = [convoy];
        let of_bead = AdmissionRequest { bead: Some(&bead), ..ask(&web) };
        let of_other = AdmissionRequest { bead: Some(&other), ..ask(&web) };
        let member = AdmissionRequest { budget_convoys: &convoys, ..of_other };
        let settings = |ask: &AdmissionRequest<'_>| -> Vec<String> {
            let reasons = admit(&caps, &Occupancy::default(), ask);
            reasons
                .iter()
                .map(|reason| match reason {
                    WaitReason::Budget(budget) => budget.set.setting(),
                    other => panic!("{other}"),
                })
                .collect()
        };
        assert_eq!(settings(&of_bead), ["budget.bead_cost"]);
        assert_eq!(settings(&member), ["budget.convoy_cost"]);
        // Another bead, and a lane, which is asked without a bead.
        assert_eq!((settings(&of_other), settings(&ask(&web))), (vec![], vec![]));
    }

    #[test]
    fn too_many_waiting_reviews_hold_up_new_work_of_reviewed_rigs_only() {
        let (web, api) = (rig("web"), rig("api"));
        let cap = |waiting| ReviewCap { limit: 2, waiting, rigs: [web.clone()].into() };
        let caps = |waiting| Caps { review: Some(cap(waiting)), ..Caps::default() };
        let occupancy = Occupancy::default();
        assert_eq!(admit(&caps(1), &occupancy, &ask(&web)), []);
        let reasons = admit(&caps(2), &occupancy, &ask(&web));
        assert_eq!(reasons, [WaitReason::ReviewsWaiting { waiting: 2, limit: 2 }]);
        assert!(reasons.iter().all(|reason| reason.is_capacity() && !reason.passes_by_itself()));
        let repair = AdmissionRequest { is_new_work: false, ..ask(&web) };
        let person = AdmissionRequest { executor: ExecutorKind::None, ..ask(&web) };
        for free in [repair, person, ask(&api)] {
            assert_eq!(admit(&caps(3), &occupancy, &free), []);
        }
    }

    #[test]
    fn without_memory_nothing_starts_here_unless_nothing_runs_here() {
        let web = rig("web");
        let memory = crate::decide::MachineMemory { total_mb: 10_000, available_mb: 1_500 };
        let floor = crate::decide::MemoryFloor { percent: 5, mb: 256 };
        let caps = Caps { memory: Some(MemoryGuard::new(memory, floor, false)), ..Caps::default() };
        let here = AdmissionRequest { here: Some(1_024), ..ask(&web) };
        let mut occupancy = Occupancy::default();
        assert_eq!(admit(&caps, &occupancy, &here), []);
        occupancy.add(&here, 1);
        let short = WaitReason::Memory { available_mb: 476, wanted_mb: 500 };
        assert_eq!(admit(&caps, &occupancy, &here), [short]);
        // Another machine has memory of its own.
        assert_eq!(admit(&caps, &occupancy, &ask(&web)), []);
    }

    proptest! {
        #[test]
        fn the_guards_never_stop_a_machine_on_which_nothing_runs(
            total_mb in 0_u64..1 << 30, available_mb in 0_u64..1 << 30, estimate in 0_u64..10_000,
            hundredths in any::<u32>(), runs in 0_u32..5,
        ) {
            let web = rig("web");
            let memory = crate::decide::MachineMemory { total_mb, available_mb };
            let floor = crate::decide::MemoryFloor { percent: 5, mb: 256 };
            let load = crate::decide::MachineLoad { hundredths: hundredths.into(), cores: 2 };
            let caps = Caps {
                memory: Some(MemoryGuard::new(memory, floor, false)),
                load: LoadGuard::new(load, 150, false),
                ..Caps::default()
            };
            let mut occupancy = Occupancy::default();
            occupancy.add(&ask(&web), 3);
            let here = AdmissionRequest { here: Some(estimate), ..ask(&web) };
            prop_assert_eq!(admit(&caps, &occupancy, &here), []);
            occupancy.add(&here, runs);
            for reason in admit(&caps, &occupancy, &here) {
                prop_assert!(runs > 0 && reason.is_capacity() && reason.passes_by_itself());
            }
        }

        #[test]
        fn runs_admitted_one_by_one_never_exceed_a_cap(
            town in proptest::option::of(0_u32..6), queue in proptest::option::of(0_u32..6),
            of_rig in proptest::option::of(0_u32..4),
            review in proptest::option::of((1_u32..4, 0_u32..5)),
            asks in proptest::collection::vec(
                (0_usize..2, any::<bool>(), any::<bool>(), any::<bool>()), 0..30,
            ),
        ) {
            let rigs = [rig("web"), rig("api")];
            let caps = Caps {
                town,
                queue,
                rigs: of_rig.map(|limit| (rigs[0].clone(), limit)).into_iter().collect(),
                accounts: [("work".to_owned(), 2)].into(),
                review: review.map(|(limit, waiting)| ReviewCap {
                    limit,
                    waiting,
                    rigs: [rigs[1].clone()].into(),
                }),
                ..Caps::default()
            };
            let is_review_full = review.is_some_and(|(limit, waiting)| waiting >= limit);
            let mut occupancy = Occupancy::default();
            let mut work = 0;
            for (at, gated, with_account, is_new_work) in asks {
                let account = with_account.then_some("work");
                let ask = AdmissionRequest { account, gated, is_new_work, ..ask(&rigs[at]) };
                let is_held_for_review = at == 1 && is_new_work && is_review_full;
                if admit(&caps, &occupancy, &ask).is_empty() {
                    prop_assert!(!is_held_for_review);
                    occupancy.add(&ask, 1);
                    work += u32::from(with_account);
                } else {
                    // A cap that is in force is reached, or it would have been admitted.
                    let full = town.is_some_and(|cap| occupancy.live() >= cap)
                        || (gated && queue.is_some_and(|cap| occupancy.live() >= cap))
                        || (at == 0 && of_rig.is_some_and(|cap| occupancy.live_in(&rigs[0]) >= cap))
                        || (with_account && work >= 2)
                        || is_held_for_review;
                    prop_assert!(full);
                }
            }
            prop_assert!(town.is_none_or(|cap| occupancy.live() <= cap));
            prop_assert!(of_rig.is_none_or(|cap| occupancy.live_in(&rigs[0]) <= cap));
            prop_assert!(work <= 2);
        }
    }
}
