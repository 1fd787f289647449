//! A preview of a launch: the order of the beads, the gates that hold parts of the set up, and the errors in it.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use super::graph::{cycles, shown_path};
use crate::rig::RigState;
use crate::{BeadId, RigSlug};

/// One bead of a set that is to be launched together.
#[derive(Debug, Clone)]
pub struct StagedMember {
    /// Its id.
    pub id: BeadId,
    /// Its part in the set.
    pub part: MemberRole,
    /// Where in the set those stand that it waits for and that are not over.
    pub waits_for: Vec<usize>,
    /// Where in the set the unfinished children stand that it waits for through a `waits-for` on their parent.
    pub awaited_children: Vec<usize>,
    /// Those it waits for that are neither in the set nor over.
    pub gates: Vec<BeadId>,
}

/// The part of a bead in the set that it belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemberRole {
    /// It is over, and nothing is to be done.
    Over,
    /// No agent works on the bead itself: it is over when these members are.
    Frame(Vec<usize>),
    /// An agent must do it, in this rig, if it has one.
    Work(Option<(RigSlug, RigState)>),
}

/// The other facts that staging needs.
#[derive(Debug, Clone, Default)]
pub struct StageFacts {
    /// The members, each once.
    pub members: Vec<StagedMember>,
    /// The set is everything below an epic, so its parts were planned to belong together.
    pub is_epic: bool,
    /// How many workers there may be at once, if that is limited.
    pub cap: Option<u32>,
    /// The beads outside the set that members wait for besides their gates, with the beads that those wait for.
    pub outside: Vec<(BeadId, Vec<BeadId>)>,
    /// Rigs whose repository does not have the branch that the work is to land on.
    pub missing_branches: Vec<(RigSlug, String)>,
    /// Rigs whose agent cannot be started on this machine, with the problem.
    pub missing_agents: Vec<(RigSlug, String)>,
}

/// The category of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FindingCategory {
    /// Beads wait for each other.
    Cycle,
    /// The rig in which a bead is to be done is unknown.
    NoRig,
    /// A bead of an epic has nothing to do with the others.
    Orphan,
    /// A rig starts nothing.
    BlockedRig,
    /// The work is in several rigs.
    CrossRig,
    /// More could be done at once than there is room for.
    Capacity,
    /// The branch to land on is not there.
    MissingBranch,
    /// The agent of a rig cannot be started.
    MissingAgent,
    /// Something outside the set has to be done first.
    Gated,
}

impl FindingCategory {
    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Cycle => "cycle",
            Self::NoRig => "no-rig",
            Self::Orphan => "orphan",
            Self::BlockedRig => "blocked-rig",
            Self::CrossRig => "cross-rig",
            Self::Capacity => "capacity",
            Self::MissingBranch => "missing-branch",
            Self::MissingAgent => "missing-agent",
            Self::Gated => "gated",
        }
    }

    /// Whether nothing may be launched that has it; all others are warnings.
    pub const fn is_error(self) -> bool {
        match self {
            Self::Cycle | Self::NoRig => true,
            Self::Orphan
            | Self::BlockedRig
            | Self::CrossRig
            | Self::Capacity
            | Self::MissingBranch
            | Self::MissingAgent
            | Self::Gated => false,
        }
    }

    /// Whether a launch goes on only if it is forced: a part of the plan cannot be carried out as it stands. Beads of a
    /// parked rig do not start and beads of a docked rig are left out; without its branch no work can begin. Force does not
    /// start an agent that is not there: the launch refuses it, as a sling does. The other warnings tell how the work will
    /// go, and it goes.
    pub const fn needs_force(self) -> bool {
        match self {
            Self::BlockedRig | Self::MissingBranch => true,
            Self::Cycle
            | Self::NoRig
            | Self::Orphan
            | Self::CrossRig
            | Self::Capacity
            | Self::MissingAgent
            | Self::Gated => false,
        }
    }
}

impl fmt::Display for FindingCategory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Something that is wrong with a set, or worth knowing before it is launched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StagingFinding {
    /// The category.
    pub category: FindingCategory,
    /// The beads that it is about.
    pub beads: Vec<BeadId>,
    /// The finding in words.
    pub message: String,
    /// A change that would help.
    pub suggested_fix: Option<String>,
}

/// The place of a bead that waits for something outside its set, and for what.
pub type GatedMember = (usize, Vec<BeadId>);

/// The preview of a launch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StagePlan {
    /// The errors and warnings, errors first.
    pub findings: Vec<StagingFinding>,
    /// The waves, one after the other, by places in the set; the members of a wave can run at once. Members that
    /// are over, in a cycle, behind a cycle or gated are in no wave.
    pub waves: Vec<Vec<usize>>,
    /// The members that wait for something outside the set, directly or behind another member, with what they wait for.
    pub gated: Vec<GatedMember>,
}

impl StagePlan {
    /// Whether nothing may be launched.
    pub fn has_errors(&self) -> bool {
        self.findings.iter().any(|finding| finding.category.is_error())
    }

    /// The warnings that a launch has to override.
    pub fn to_override(&self) -> impl Iterator<Item = &StagingFinding> {
        self.findings.iter().filter(|finding| finding.category.needs_force())
    }
}

/// Plans how a set would go.
pub fn stage(facts: &StageFacts) -> StagePlan {
    let graph = MemberGraph::of(&facts.members);
    let (waves, gated) = graph.order(&facts.members);
    let mut findings = graph.cycles(&facts.members, &facts.outside);
    findings.extend(without_rig(&facts.members));
    if facts.is_epic {
        findings.extend(orphans(&facts.members, &graph));
    }
    findings.extend(blocked_rigs(&facts.members));
    findings.extend(cross_rig(&facts.members));
    findings.extend(crowded(&facts.members, &waves, facts.cap));
    findings.extend(
        facts.missing_branches.iter().map(|(rig, branch)| missing_branch(facts, rig, branch)),
    );
    findings.extend(
        facts.missing_agents.iter().filter_map(|(rig, why)| missing_agent(facts, rig, why)),
    );
    findings.extend(gates(&facts.members));
    StagePlan { findings, waves, gated }
}

/// The waits of members for members, by places in the set.
struct MemberGraph {
    edges: Vec<Vec<usize>>,
}

impl MemberGraph {
    fn of(members: &[StagedMember]) -> Self {
        let is_over =
            |at: &usize| members.get(*at).is_none_or(|member| member.part == MemberRole::Over);
        let edges = members.iter().map(|member| {
            let parts: &[usize] = match &member.part {
                MemberRole::Over => return Vec::new(),
                MemberRole::Frame(parts) => parts,
                MemberRole::Work(_) => &[],
            };
            let targets = member.waits_for.iter().chain(&member.awaited_children).chain(parts);
            let mut targets: Vec<usize> = targets.copied().filter(|at| !is_over(at)).collect();
            targets.sort_unstable();
            targets.dedup();
            targets
        });
        Self { edges: edges.collect() }
    }

    /// Puts work into waves, and names the members that wait for something outside.
    fn order(&self, members: &[StagedMember]) -> (Vec<Vec<usize>>, Vec<GatedMember>) {
        let mut followers = vec![Vec::new(); self.edges.len()];
        for (at, targets) in self.edges.iter().enumerate() {
            for target in targets {
                followers[*target].push(at);
            }
        }
        let mut left: Vec<usize> = self.edges.iter().map(Vec::len).collect();
        let mut wave = vec![0; members.len()];
        let mut gated_by: Vec<Vec<BeadId>> =
            members.iter().map(|member| member.gates.clone()).collect();
        let mut next: Vec<usize> = (0..members.len()).filter(|at| left[*at] == 0).collect();
        let (mut waves, mut gated) = (Vec::<Vec<usize>>::new(), Vec::new());
        while let Some(at) = next.pop() {
            let is_work = matches!(members[at].part, MemberRole::Work(_));
            let is_gated = !gated_by[at].is_empty() && members[at].part != MemberRole::Over;
            if is_work && is_gated {
                gated.push((at, gated_by[at].clone()));
            } else if is_work {
                if waves.len() <= wave[at] {
                    waves.resize_with(wave[at] + 1, Vec::new);
                }
                waves[wave[at]].push(at);
            }
            for follower in std::mem::take(&mut followers[at]) {
                // A frame takes no time of its own.
                wave[follower] = wave[follower].max(wave[at] + usize::from(is_work));
                if is_gated {
                    gated_by[follower].push(members[at].id.clone());
                }
                left[follower] -= 1;
                if left[follower] == 0 {
                    next.push(follower);
                }
            }
        }
        for wave in &mut waves {
            wave.sort_unstable();
        }
        gated.sort_unstable_by_key(|(at, _)| *at);
        (waves, gated)
    }

    /// The cycles that members are in, also those that lead through beads outside the set.
    fn cycles(
        &self,
        members: &[StagedMember],
        outside: &[(BeadId, Vec<BeadId>)],
    ) -> Vec<StagingFinding> {
        let mut ids: Vec<&BeadId> = members.iter().map(|member| &member.id).collect();
        let mut places: HashMap<&BeadId, usize> =
            ids.iter().enumerate().map(|(at, id)| (*id, at)).collect();
        for (id, _) in outside {
            places.entry(id).or_insert_with(|| {
                ids.push(id);
                ids.len() - 1
            });
        }
        let placed = |beads: &[BeadId]| -> Vec<usize> {
            beads.iter().filter_map(|bead| places.get(bead).copied()).collect()
        };
        let inside = self.edges.iter().zip(members).map(|(edges, member)| {
            let gates =
                if member.part == MemberRole::Over { Vec::new() } else { placed(&member.gates) };
            edges.iter().copied().chain(gates).collect()
        });
        let mut edges: Vec<Vec<usize>> = inside.collect();
        edges.resize_with(ids.len(), Vec::new);
        for (id, waits) in outside {
            edges[places[id]].extend(placed(waits));
        }
        let found = cycles(&edges).into_iter();
        let of_members = found.filter(|path| path.iter().any(|at| *at < members.len()));
        let finding = |path: Vec<usize>| {
            let beads: Vec<BeadId> = path.iter().map(|at| ids[*at].clone()).collect();
            // An edge that a person made, and not one from a frame to its parts.
            let next = |at: usize| path[(at + 1) % path.len()];
            let is_drawn = |at: &usize| {
                let member = members.get(path[*at]);
                member.is_some_and(|member| member.waits_for.contains(&next(*at)))
            };
            let drawn = (0..path.len()).rev().find(is_drawn);
            StagingFinding {
                category: FindingCategory::Cycle,
                message: format!("they wait for each other: {}", round(&beads)),
                suggested_fix: drawn
                    .map(|at| format!("bd dep remove {} {}", ids[path[at]], ids[next(at)])),
                beads,
            }
        };
        of_members.map(finding).collect()
    }
}

/// How many beads are named in a sentence before it says how many more there are.
const NAMED_BEADS_MAX: usize = 8;

/// A path that comes back to where it began.
fn round(beads: &[BeadId]) -> String {
    let closed: Vec<BeadId> = beads.iter().chain(beads.first()).cloned().collect();
    shown_path(&closed)
}

/// Some beads by name.
fn named(beads: &[BeadId]) -> String {
    let names: Vec<&str> = beads.iter().take(NAMED_BEADS_MAX).map(BeadId::as_str).collect();
    match beads.len().saturating_sub(NAMED_BEADS_MAX) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}

/// One or several.
fn count(number: usize, one: &str, several: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {several}") }
}

/// Everything that has to be done, with its rig.
fn work(
    members: &[StagedMember],
) -> impl Iterator<Item = (&StagedMember, Option<&(RigSlug, RigState)>)> {
    members.iter().filter_map(|member| match &member.part {
        MemberRole::Work(rig) => Some((member, rig.as_ref())),
        MemberRole::Over | MemberRole::Frame(_) => None,
    })
}

fn without_rig(members: &[StagedMember]) -> Option<StagingFinding> {
    let homeless = work(members).filter(|(_, rig)| rig.is_none());
    let beads: Vec<BeadId> = homeless.map(|(member, _)| member.id.clone()).collect();
    let first = beads.first()?;
    Some(StagingFinding {
        category: FindingCategory::NoRig,
        message: format!("no rig does {}: {}", count(beads.len(), "bead", "beads"), named(&beads)),
        suggested_fix: Some(format!(
            "bd update {first} --rig <rig> moves it to a rig; gt rig add makes one"
        )),
        beads,
    })
}

fn orphans(members: &[StagedMember], graph: &MemberGraph) -> Option<StagingFinding> {
    if work(members).count() < 2 {
        return None;
    }
    let mut is_awaited = vec![false; members.len()];
    graph.edges.iter().flatten().for_each(|target| is_awaited[*target] = true);
    let is_alone = |at: usize, member: &StagedMember| {
        matches!(member.part, MemberRole::Work(_))
            && graph.edges[at].is_empty()
            && member.gates.is_empty()
            && !is_awaited[at]
    };
    let alone = members.iter().enumerate().filter(|(at, member)| is_alone(*at, member));
    let beads: Vec<BeadId> = alone.map(|(_, member)| member.id.clone()).collect();
    if beads.is_empty() {
        return None;
    }
    Some(StagingFinding {
        category: FindingCategory::Orphan,
        message: format!(
            "{} neither for anything nor does anything wait for {}: {}",
            count(beads.len(), "bead waits", "beads wait"),
            if beads.len() == 1 { "it" } else { "them" },
            named(&beads)
        ),
        suggested_fix: Some("bd dep add <bead> <what it needs>, if there is an order".to_owned()),
        beads,
    })
}

/// The work of each rig.
fn by_rig(members: &[StagedMember]) -> BTreeMap<&RigSlug, (RigState, Vec<BeadId>)> {
    let mut rigs: BTreeMap<&RigSlug, (RigState, Vec<BeadId>)> = BTreeMap::new();
    for (member, rig) in work(members) {
        if let Some((slug, state)) = rig {
            rigs.entry(slug).or_insert((*state, Vec::new())).1.push(member.id.clone());
        }
    }
    rigs
}

fn blocked_rigs(members: &[StagedMember]) -> Vec<StagingFinding> {
    let finding = |(slug, (state, beads)): (&RigSlug, (RigState, Vec<BeadId>))| {
        let (is, remedy) = match state {
            RigState::Active => return None,
            RigState::Parked => ("parked, and nothing starts there", "unpark"),
            RigState::Docked => ("docked, and its beads are left out", "undock"),
        };
        Some(StagingFinding {
            category: FindingCategory::BlockedRig,
            message: format!("the rig {slug} is {is}: {}", named(&beads)),
            suggested_fix: Some(format!("gt rig {remedy} {slug}")),
            beads,
        })
    };
    by_rig(members).into_iter().filter_map(finding).collect()
}

fn cross_rig(members: &[StagedMember]) -> Option<StagingFinding> {
    let rigs = by_rig(members);
    if rigs.len() < 2 {
        return None;
    }
    let said: Vec<String> =
        rigs.iter().map(|(slug, (_, beads))| format!("{slug} ({})", beads.len())).collect();
    // The first of the largest rigs; beads in the other rigs are the unexpected ones.
    let mut home = None;
    for (slug, (_, beads)) in &rigs {
        if home.is_none_or(|(_, most)| beads.len() > most) {
            home = Some((*slug, beads.len()));
        }
    }
    let elsewhere = rigs.iter().filter(|(slug, _)| Some(**slug) != home.map(|(slug, _)| slug));
    let mut beads: Vec<BeadId> = elsewhere.flat_map(|(_, (_, beads))| beads.clone()).collect();
    beads.sort();
    Some(StagingFinding {
        category: FindingCategory::CrossRig,
        message: format!("it is work for {} rigs: {}", rigs.len(), said.join(", ")),
        suggested_fix: None,
        beads,
    })
}

fn crowded(
    members: &[StagedMember],
    waves: &[Vec<usize>],
    cap: Option<u32>,
) -> Option<StagingFinding> {
    let cap = usize::try_from(cap?).ok()?;
    let widest = waves.iter().enumerate().max_by_key(|(at, wave)| (wave.len(), usize::MAX - at))?;
    let (at, wave) = widest;
    if wave.len() <= cap {
        return None;
    }
    Some(StagingFinding {
        category: FindingCategory::Capacity,
        message: format!(
            "wave {} has {} beads, and there is room for {}: the others wait for a slot",
            at + 1,
            wave.len(),
            count(cap, "worker", "workers")
        ),
        suggested_fix: Some("gt config set scheduler.max_polecats <n>".to_owned()),
        beads: wave.iter().map(|at| members[*at].id.clone()).collect(),
    })
}

fn missing_branch(facts: &StageFacts, rig: &RigSlug, branch: &str) -> StagingFinding {
    let beads = by_rig(&facts.members).remove(rig).map(|(_, beads)| beads).unwrap_or_default();
    StagingFinding {
        category: FindingCategory::MissingBranch,
        message: format!("the repository of the rig {rig} has no branch {branch}"),
        suggested_fix: Some(format!(
            "make the branch {branch} at the origin, or choose another with --base-branch"
        )),
        beads,
    }
}

fn missing_agent(facts: &StageFacts, rig: &RigSlug, why: &str) -> Option<StagingFinding> {
    let (_, beads) = by_rig(&facts.members).remove(rig)?;
    Some(StagingFinding {
        category: FindingCategory::MissingAgent,
        message: format!("the rig {rig} starts nothing: {why}"),
        suggested_fix: Some(format!(
            "install it, or gt config set rig.{rig}.runtime <name>; gt config agent list shows the agents"
        )),
        beads,
    })
}

/// One finding for each bead outside that something waits for.
fn gates(members: &[StagedMember]) -> Vec<StagingFinding> {
    let mut waiting: BTreeMap<&BeadId, Vec<BeadId>> = BTreeMap::new();
    for (member, _) in work(members) {
        for gate in &member.gates {
            waiting.entry(gate).or_default().push(member.id.clone());
        }
    }
    let finding = |(gate, beads): (&BeadId, Vec<BeadId>)| {
        // Only failed work is over and has to be done all the same.
        let has_failed = members.iter().any(|member| member.id == *gate);
        let (message, fix) = if has_failed {
            (
                format!("{gate} failed and has to be done first for {}", named(&beads)),
                format!("gt scheduler retry {gate}"),
            )
        } else {
            (
                format!("{gate} is not part of it and has to be done first for {}", named(&beads)),
                format!("add {gate} to it, or see to it that it gets done: gt why {gate}"),
            )
        };
        StagingFinding {
            category: FindingCategory::Gated,
            message,
            suggested_fix: Some(fix),
            beads,
        }
    };
    waiting.into_iter().map(finding).collect()
}

#[cfg(test)]
mod tests;
