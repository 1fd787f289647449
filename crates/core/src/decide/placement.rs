//! Placement: which hosts may start a run, and which of them should.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::lease::HostState;
use crate::schedule::{host_identity as identity, is_host_named};
use crate::{BeadId, RigSlug};

/// The facts about a host that placement needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostFacts {
    /// Its name and identity, as runs name it.
    pub host: String,
    /// Its state.
    pub state: HostState,
    /// Its labels.
    pub labels: BTreeSet<String>,
    /// The most live runs on it; nothing for no limit.
    pub cap: Option<u32>,
    /// The rigs that it works on; none for all.
    pub rigs: BTreeSet<String>,
    /// The runtimes that it can start; nothing if it does not say.
    pub runtimes: Option<BTreeSet<String>>,
    /// The rigs of which it has a tree that waits for a run.
    pub warm: BTreeSet<RigSlug>,
    /// Whether its daemon is at work, so that it starts work by itself.
    pub has_daemon: bool,
    /// Whether it has too little memory left.
    pub is_short_of_memory: bool,
}

impl HostFacts {
    /// Its name, for people.
    pub fn name(&self) -> &str {
        self.host.rsplit_once('/').map_or(&self.host, |(name, _)| name)
    }
}

/// The hosts of a town, as seen by one of them. A town whose store is not shared has none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fleet {
    /// The host that decides, as runs name it.
    pub here: String,
    /// Every host but the removed ones.
    pub hosts: Vec<HostFacts>,
    /// The labels that rigs ask for.
    pub rig_labels: BTreeMap<RigSlug, BTreeSet<String>>,
    /// The host that alone works on a rig.
    pub rig_hosts: BTreeMap<RigSlug, String>,
    /// The beads of which a host may have processes of a run that is over, with the identity of that host.
    pub left_runs: Vec<(BeadId, String)>,
}

/// The needs of a run.
#[derive(Debug, Clone, Copy)]
pub struct PlacementNeeds<'a> {
    /// Its bead, if that is known.
    pub bead: Option<&'a BeadId>,
    /// Its rig.
    pub rig: &'a RigSlug,
    /// The host that a person asked for.
    pub host: Option<&'a str>,
    /// Its runtime; empty for a command, nothing if any would do.
    pub runtime: Option<&'a str>,
}

/// Why a host does not start a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostRefusal {
    /// It is not active.
    State(HostState),
    /// Another host was asked for.
    NotAskedFor(String),
    /// Only another host works on the rig.
    NotOfRig(RigSlug, String),
    /// It does not work on the rig.
    OtherRigs(RigSlug),
    /// It has no such label.
    NoLabel(String),
    /// It has no such runtime.
    NoRuntime(String),
    /// Another host has not ended an earlier run of the bead yet.
    EarlierRun(String),
    /// So many runs are live on it, which is its cap.
    Full(u32),
    /// It has too little memory.
    Memory,
}

/// The name in `name/identity`, which is what people know of a host.
fn name_of(host: &str) -> &str {
    host.split('/').next().unwrap_or(host)
}

impl fmt::Display for HostRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::State(state) => write!(f, "is {}", state.as_str()),
            Self::NotAskedFor(host) => write!(f, "is not {}, which was asked for", name_of(host)),
            Self::NotOfRig(_, host) => {
                write!(f, "is not {}, which alone works on the rig", name_of(host))
            }
            Self::OtherRigs(rig) => write!(f, "does not work on the rig {rig}"),
            Self::NoLabel(label) => write!(f, "has no label {label}"),
            Self::NoRuntime(runtime) => write!(f, "has no {runtime}"),
            Self::EarlierRun(host) => {
                write!(f, "waits until {host} has ended an earlier run of it")
            }
            Self::Full(cap) => write!(f, "has {cap} live runs, which is its cap"),
            Self::Memory => write!(f, "has too little memory left"),
        }
    }
}

/// The answer of each host of a town to a run that it might start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacementAnswer {
    /// The host that decides.
    pub here: String,
    /// The name of each host with its refusal; nothing if it would start the run.
    pub hosts: Vec<(String, Option<HostRefusal>)>,
}

impl PlacementAnswer {
    /// The hosts that would start the run.
    pub fn willing(&self) -> Vec<&str> {
        let willing = self.hosts.iter().filter(|(_, refusal)| refusal.is_none());
        willing.map(|(name, _)| name.as_str()).collect()
    }

    /// The rig, if hosts refuse because another one alone works on it.
    pub fn pinned_rig(&self) -> Option<&RigSlug> {
        self.hosts.iter().find_map(|(_, refusal)| match refusal {
            Some(HostRefusal::NotOfRig(rig, _)) => Some(rig),
            _ => None,
        })
    }
}

impl fmt::Display for PlacementAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let refused = self.hosts.iter().filter_map(|(name, refusal)| {
            refusal.as_ref().map(|refusal| format!("{name} {refusal}"))
        });
        let refused = refused.collect::<Vec<_>>().join("; ");
        match self.willing().as_slice() {
            [] => write!(f, "no host can run it: {refused}"),
            willing => write!(f, "starts on {}, not here: {refused}", willing.join(" or ")),
        }
    }
}

impl Fleet {
    /// Why a host does not start a run, the most lasting reason first; `live` runs are on it.
    pub fn refusal(
        &self,
        host: &HostFacts,
        needs: &PlacementNeeds<'_>,
        live: u32,
    ) -> Option<HostRefusal> {
        if !matches!(host.state, HostState::Active) {
            return Some(HostRefusal::State(host.state));
        }
        if let Some(asked) = needs.host.filter(|asked| !is_host_named(&host.host, asked)) {
            return Some(HostRefusal::NotAskedFor(asked.to_owned()));
        }
        let of_rig = self.rig_hosts.get(needs.rig);
        if let Some(only) = of_rig.filter(|only| !is_host_named(&host.host, only)) {
            return Some(HostRefusal::NotOfRig(needs.rig.clone(), only.clone()));
        }
        if !host.rigs.is_empty() && !host.rigs.contains(needs.rig.as_str()) {
            return Some(HostRefusal::OtherRigs(needs.rig.clone()));
        }
        let labels = self.rig_labels.get(needs.rig).into_iter().flatten();
        if let Some(label) = labels.into_iter().find(|label| !host.labels.contains(*label)) {
            return Some(HostRefusal::NoLabel(label.clone()));
        }
        if let (Some(runtime), Some(known)) = (needs.runtime, &host.runtimes)
            && !runtime.is_empty()
            && !known.contains(runtime)
        {
            return Some(HostRefusal::NoRuntime(runtime.to_owned()));
        }
        if let Some(other) = self.holder_of_earlier_run(host, needs) {
            return Some(HostRefusal::EarlierRun(other.name().to_owned()));
        }
        if let Some(cap) = host.cap.filter(|cap| live >= *cap) {
            return Some(HostRefusal::Full(cap));
        }
        // A machine that is full of other things must not stop the town for good.
        (host.is_short_of_memory && live > 0).then_some(HostRefusal::Memory)
    }

    /// Another host that may have processes of an earlier run of the bead. On one and the same host the lock of that run is in
    /// the way. A host that is gone has ended its workers.
    fn holder_of_earlier_run(
        &self,
        host: &HostFacts,
        needs: &PlacementNeeds<'_>,
    ) -> Option<&HostFacts> {
        let left = self.left_runs.iter().filter(|(bead, _)| needs.bead == Some(bead));
        let mut left = left.filter(|(_, other)| identity(&host.host) != other);
        left.find_map(|(_, other)| {
            let holder = self.hosts.iter().find(|facts| identity(&facts.host) == other)?;
            let may_live = match holder.state {
                HostState::Active | HostState::Draining | HostState::Away => true,
                HostState::Gone | HostState::Removed => false,
            };
            may_live.then_some(holder)
        })
    }

    /// The answer of every host; nothing if this host would start the run.
    pub fn place(
        &self,
        needs: &PlacementNeeds<'_>,
        live: impl Fn(&str) -> u32,
    ) -> Option<PlacementAnswer> {
        let answer = |host: &HostFacts| self.refusal(host, needs, live(&host.host));
        let here = self.hosts.iter().find(|host| is_host_named(&host.host, identity(&self.here)));
        // A host that the store does not know has not renewed its lease yet.
        if here.is_some_and(|here| answer(here).is_none()) {
            return None;
        }
        let mut hosts: Vec<(String, Option<HostRefusal>)> =
            self.hosts.iter().map(|host| (host.name().to_owned(), answer(host))).collect();
        if here.is_none() {
            let name = self.here.rsplit_once('/').map_or(self.here.as_str(), |(name, _)| name);
            hosts.push((name.to_owned(), Some(HostRefusal::State(HostState::Away))));
        }
        Some(PlacementAnswer { here: self.here.clone(), hosts })
    }

    /// The host with a daemon that should start a run, if it is another one than this: it has a warm tree of the rig, or fewer
    /// live runs. This host leaves it the first try.
    pub fn preferred(
        &self,
        needs: &PlacementNeeds<'_>,
        live: impl Fn(&str) -> u32,
    ) -> Option<&HostFacts> {
        let willing = self.hosts.iter().filter(|host| {
            let is_here = identity(&host.host) == identity(&self.here);
            (host.has_daemon || is_here) && self.refusal(host, needs, live(&host.host)).is_none()
        });
        let best = willing.min_by_key(|host| {
            let is_cold = !host.warm.contains(needs.rig);
            (is_cold, share(live(&host.host), host.cap), host.host.clone())
        })?;
        (identity(&best.host) != identity(&self.here)).then_some(best)
    }
}

/// How full a host is. One without a cap counts as one with room for a hundred.
fn share(live: u32, cap: Option<u32>) -> u64 {
    u64::from(live) * 1_000_000 / u64::from(cap.unwrap_or(100).max(1))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rig(name: &str) -> RigSlug {
        RigSlug::parse(name).unwrap()
    }

    fn names(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn host(name: &str) -> HostFacts {
        HostFacts {
            host: format!("{name}/id-{name}"),
            state: HostState::Active,
            labels: BTreeSet::new(),
            cap: None,
            rigs: BTreeSet::new(),
            runtimes: Some(names(&["claude"])),
            warm: BTreeSet::new(),
            has_daemon: true,
            is_short_of_memory: false,
        }
    }

    fn fleet(hosts: Vec<HostFacts>) -> Fleet {
        Fleet { here: "a/id-a".to_owned(), hosts, ..Fleet::default() }
    }

    #[test]
    fn every_host_says_why_it_does_not_start_a_run() {
        let web = rig("web");
        let needs = PlacementNeeds { bead: None, rig: &web, host: None, runtime: Some("codex") };
        let with_codex = |name| HostFacts { runtimes: Some(names(&["codex"])), ..host(name) };
        let fleet = fleet(vec![
            host("a"),
            HostFacts { state: HostState::Draining, ..with_codex("b") },
            HostFacts { cap: Some(2), ..with_codex("c") },
            HostFacts { rigs: names(&["api"]), ..with_codex("d") },
        ]);
        let answer = fleet.place(&needs, |_| 2).unwrap();
        assert_eq!(
            answer.to_string(),
            "no host can run it: a has no codex; b is draining; c has 2 live runs, which is its cap; d does not work on \
             the rig web"
        );
        let answer = fleet.place(&needs, |_| 1).unwrap();
        assert_eq!(answer.willing(), ["c"]);
        assert!(answer.to_string().starts_with("starts on c, not here: a has no codex"));
        // A command needs no runtime.
        let needs = PlacementNeeds { runtime: Some(""), ..needs };
        assert_eq!(fleet.place(&needs, |_| 0), None);
    }

    #[test]
    fn labels_pins_and_a_host_that_was_asked_for_are_kept_to() {
        let web = rig("web");
        let needs = PlacementNeeds { bead: None, rig: &web, host: None, runtime: None };
        let mut fleet =
            fleet(vec![host("a"), HostFacts { labels: names(&["gpu", "linux"]), ..host("b") }]);
        let refusal = |fleet: &Fleet, needs: &PlacementNeeds<'_>| {
            fleet.place(needs, |_| 0).map(|answer| answer.hosts[0].1.clone().unwrap())
        };
        assert_eq!(refusal(&fleet, &needs), None);
        for asked in ["b", "id-b", "b/id-b"] {
            let needs = PlacementNeeds { host: Some(asked), ..needs };
            assert_eq!(refusal(&fleet, &needs), Some(HostRefusal::NotAskedFor(asked.to_owned())));
        }
        fleet.rig_labels.insert(web.clone(), names(&["linux"]));
        assert_eq!(refusal(&fleet, &needs), Some(HostRefusal::NoLabel("linux".to_owned())));
        fleet.rig_hosts.insert(web.clone(), "b/id-b".to_owned());
        let not_of_rig = HostRefusal::NotOfRig(web.clone(), "b/id-b".to_owned());
        assert_eq!(not_of_rig.to_string(), "is not b, which alone works on the rig");
        assert_eq!(refusal(&fleet, &needs), Some(not_of_rig));
        // A host that has not renewed its lease starts nothing.
        fleet.hosts.remove(0);
        let answer = fleet.place(&needs, |_| 0).unwrap();
        assert_eq!(answer.hosts[1], ("a".to_owned(), Some(HostRefusal::State(HostState::Away))));
    }

    #[test]
    fn a_bead_waits_for_the_host_that_has_not_ended_an_earlier_run() {
        let (web, bead) = (rig("web"), BeadId::trusted("web-1".to_owned()));
        let needs = PlacementNeeds { bead: Some(&bead), rig: &web, host: None, runtime: None };
        let other = BeadId::trusted("web-2".to_owned());
        for (state, waits) in [
            (HostState::Active, true),
            (HostState::Draining, true),
            (HostState::Away, true),
            (HostState::Gone, false),
            (HostState::Removed, false),
        ] {
            let mut fleet = fleet(vec![host("a"), HostFacts { state, ..host("b") }]);
            assert_eq!(fleet.place(&needs, |_| 0), None);
            fleet.left_runs = vec![(other.clone(), "id-b".to_owned())];
            assert_eq!(fleet.place(&needs, |_| 0), None);
            fleet.left_runs.push((bead.clone(), "id-b".to_owned()));
            let answer = fleet.place(&needs, |_| 0);
            let refusal = answer.map(|answer| answer.hosts[0].1.clone().unwrap());
            let expected = waits.then(|| HostRefusal::EarlierRun("b".to_owned()));
            assert_eq!(refusal, expected, "{state:?}");
            // The lock of the earlier run is in the way there.
            fleet.left_runs = vec![(bead.clone(), "id-a".to_owned())];
            assert_eq!(fleet.place(&needs, |_| 0), None);
        }
    }

    #[test]
    fn a_warm_tree_goes_before_fewer_runs_and_a_host_without_daemon_waits_for_no_other() {
        let web = rig("web");
        let needs = PlacementNeeds { bead: None, rig: &web, host: None, runtime: None };
        let mut fleet = fleet(vec![host("a"), host("b"), host("c")]);
        let live =
            |counts: [u32; 3]| move |host: &str| counts[usize::from(host.as_bytes()[0] - b'a')];
        let preferred = |fleet: &Fleet, counts| {
            fleet.preferred(&needs, live(counts)).map(|host| host.name().to_owned())
        };
        assert_eq!(preferred(&fleet, [0, 0, 0]), None);
        assert_eq!(preferred(&fleet, [2, 1, 0]), Some("c".to_owned()));
        fleet.hosts[1].warm.insert(web.clone());
        assert_eq!(preferred(&fleet, [0, 5, 0]), Some("b".to_owned()));
        fleet.hosts[1].has_daemon = false;
        fleet.hosts[2].has_daemon = false;
        assert_eq!(preferred(&fleet, [9, 0, 0]), None);
    }

    proptest! {
        #[test]
        fn no_preferred_host_refuses_and_all_hosts_agree(
            states in proptest::collection::vec((0_usize..5, 0_u32..4, proptest::option::of(0_u32..4), any::<bool>()), 1..5),
        ) {
            let web = rig("web");
            let needs = PlacementNeeds { bead: None, rig: &web, host: None, runtime: None };
            let live: Vec<u32> = states.iter().map(|(_, live, ..)| *live).collect();
            let hosts = states.iter().enumerate().map(|(at, (state, _, cap, has_daemon))| HostFacts {
                state: HostState::ALL[*state],
                cap: *cap,
                has_daemon: *has_daemon,
                ..host(&((b'a' + u8::try_from(at).unwrap()) as char).to_string())
            });
            let hosts: Vec<HostFacts> = hosts.collect();
            let live_on = |host: &str| live[usize::from(host.as_bytes()[0] - b'a')];
            let mut choices = BTreeSet::new();
            for here in hosts.iter().filter(|host| host.has_daemon) {
                let fleet = Fleet { here: here.host.clone(), hosts: hosts.clone(), ..Fleet::default() };
                let is_willing = fleet.place(&needs, live_on).is_none();
                let chosen = match fleet.preferred(&needs, live_on) {
                    Some(other) => {
                        prop_assert!(fleet.refusal(other, &needs, live_on(&other.host)).is_none());
                        other.host.clone()
                    }
                    None if is_willing => here.host.clone(),
                    None => continue,
                };
                choices.insert(chosen);
            }
            prop_assert!(choices.len() <= 1, "{choices:?}");
        }
    }
}
