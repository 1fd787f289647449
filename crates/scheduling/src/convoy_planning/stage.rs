//! Staging: what would happen, and what is wrong, before anything does.

use std::collections::{BTreeSet, HashMap, HashSet};

use gt_core::decide::{
    ConvoyState, MemberRole, StageFacts, StagePlan, StagedMember, outline, stage as plan,
};
use gt_core::limits::PAGE_BEADS;
use gt_core::rig::RigState;
use gt_core::schedule::Merge;
use gt_core::{
    Bead, BeadChangeKind, BeadId, DependencyType, ExecutorKind, IssueType, Json, Rig, RigSlug,
    Status,
};
use gt_store::{BeadRow, MemberRow, Reader, StatusFilter, Writer};

use super::forecast::{BeadForecastFacts, DurationEstimate, outlook, past_durations};
use crate::schedule::{ExpandedBead, agent_problem, meaning, no_parts};
use gt_beads::convoys::{ConvoyRules, ConvoyToMake, find, make};
use gt_beads::dependencies::waits_of;
use gt_town::scheduler_settings::SchedulerSettings;
use gt_town::settings::layers_in;
use gt_town::{OperationError, Result, Town};

/// A request to stage a convoy.
#[derive(Debug, Clone, Default)]
pub struct StageRequest {
    /// An epic, a convoy, or a list of beads.
    pub inputs: Vec<String>,
    /// The title of the convoy.
    pub title: Option<String>,
    /// The user who stages it lands it.
    pub owned: bool,
    /// How its work is merged.
    pub merge: Option<Merge>,
    /// The branch that it begins from and lands on.
    pub base_branch: Option<String>,
    /// A person has to approve its work before it lands.
    pub review: bool,
}

/// A set that was looked at, and staged if nothing is wrong with it.
#[derive(Debug)]
pub struct Staged {
    /// The convoy; none if something is wrong, and nothing was written.
    pub convoy: Option<BeadId>,
    /// Where the convoy stands, or `error`.
    pub status: &'static str,
    /// It is staged already.
    pub restaged: bool,
    /// The beads that it did not track before, if it was staged before.
    pub added: Vec<BeadId>,
    /// The beads that it tracked before and does not any more.
    pub removed: Vec<BeadId>,
    /// The beads, by the places that the plan speaks of.
    pub beads: Vec<MemberRow>,
    /// Where those stand that each of them waits for.
    pub waits_for: Vec<Vec<usize>>,
    /// How it would go.
    pub plan: StagePlan,
    /// How long it would take; none if nothing was done before by which that could be told.
    pub estimate: Option<DurationEstimate>,
    /// The beads as an outline: the place of each, and how deep it stands.
    pub outline: Vec<(usize, usize)>,
}

const READY: &str = "staged_ready";
const WARNINGS: &str = "staged_warnings";
/// The metadata key of the epic that a convoy was staged from.
const FROM: &str = "staged_from";

/// The meaning of the words of a request.
struct StageSet {
    /// The epic it is below.
    epic: Option<Bead>,
    /// The convoy it is staged as already.
    convoy: Option<Bead>,
    beads: Vec<BeadId>,
}

/// The result of a look at a set.
struct StageLook {
    set: StageSet,
    tracked: Vec<BeadId>,
    staged: Staged,
    /// The last thing that had happened.
    as_of: u64,
}

/// Whether the repository of a rig is known not to have a branch. Repositories are known above the scheduler.
pub type LacksBranch<'a> = &'a dyn Fn(&Rig, &str) -> bool;

/// Looks at a set of beads and stages it as a convoy; if something is wrong, nothing is written.
pub fn stage(town: &Town, request: &StageRequest, lacks_branch: LacksBranch<'_>) -> Result<Staged> {
    stage_telling(town, request, lacks_branch, &mut |_, _| {})
}

/// Looks at a set of beads as [`stage`] does, and writes nothing.
pub fn preview(
    town: &Town,
    request: &StageRequest,
    lacks_branch: LacksBranch<'_>,
) -> Result<Staged> {
    let problems = RigProblems::read(town, request, lacks_branch)?;
    let look = |reader: &Reader<'_>| look(town, reader, &request.inputs, &problems, &mut |_, _| {});
    let mut staged = town.read(look)?.staged;
    if !staged.plan.has_errors() {
        staged.status = if staged.plan.findings.is_empty() { READY } else { WARNINGS };
    }
    Ok(staged)
}

/// The same as [`stage`], and tells how far it is: how many beads were looked at, of how many.
pub fn stage_telling(
    town: &Town,
    request: &StageRequest,
    lacks_branch: LacksBranch<'_>,
    tell: &mut dyn FnMut(usize, usize),
) -> Result<Staged> {
    let problems = RigProblems::read(town, request, lacks_branch)?;
    // A large set is looked at outside the transaction, so that no writer waits; changes since then are looked at once
    // more.
    let looked = town.read(|reader| look(town, reader, &request.inputs, &problems, tell))?;
    if looked.staged.plan.has_errors() {
        return Ok(looked.staged);
    }
    town.write(|writer| {
        let is_fresh = writer.last_event_number()? == looked.as_of;
        let looked =
            if is_fresh { looked } else { look(town, writer, &request.inputs, &problems, tell)? };
        let StageLook { set, tracked, mut staged, .. } = looked;
        if staged.plan.has_errors() {
            return Ok(staged);
        }
        staged.status = if staged.plan.findings.is_empty() { READY } else { WARNINGS };
        if let Some(convoy) = &set.convoy {
            restage(writer, convoy, &tracked, &mut staged)?;
        } else {
            let convoy = begin(town, writer, request, &set, &tracked, staged.status)?;
            staged.convoy = Some(convoy);
        }
        Ok(staged)
    })
}

fn look(
    town: &Town,
    reader: &Reader<'_>,
    inputs: &[String],
    problems: &RigProblems,
    tell: &mut dyn FnMut(usize, usize),
) -> Result<StageLook> {
    let set = set_of(town, reader, inputs)?;
    let mut rows = Vec::with_capacity(set.beads.len());
    for page in set.beads.chunks(PAGE_BEADS) {
        rows.extend(reader.member_rows(page)?);
        tell(rows.len(), set.beads.len());
    }
    let (facts, settings) = facts(town, reader, &rows, &set, problems.clone())?;
    let durations = past_durations(reader)?;
    let room = settings.max_polecats;
    let outlook = outlook(durations.as_ref(), &settings, room, &facts.members, |_| {
        BeadForecastFacts::default()
    });
    let (plan, tracked) = (plan(&facts), tracked(&facts));
    let staged = Staged {
        convoy: None,
        status: "error",
        restaged: set.convoy.is_some(),
        added: Vec::new(),
        removed: Vec::new(),
        waits_for: facts.members.into_iter().map(|member| member.waits_for).collect(),
        plan,
        estimate: outlook.estimate,
        outline: outline(&parents(&rows, &places(&rows))),
        beads: rows,
    };
    Ok(StageLook { set, tracked, staged, as_of: reader.last_event_number()? })
}

/// The beads that the convoy is to track: those that have to be done, or were.
fn tracked(facts: &StageFacts) -> Vec<BeadId> {
    let is_tracked = |member: &&StagedMember| !matches!(member.part, MemberRole::Frame(_));
    facts.members.iter().filter(is_tracked).map(|member| member.id.clone()).collect()
}

fn set_of(town: &Town, reader: &Reader<'_>, inputs: &[String]) -> Result<StageSet> {
    let mut beads = Vec::new();
    let mut seen = BTreeSet::new();
    let alone = inputs.len() == 1;
    for input in inputs {
        let refused = |what: &str, bead: &Bead| {
            Err(OperationError::rejected(format!(
                "{} is {what}, which is staged by itself; name it alone, or name only tasks",
                bead.id
            )))
        };
        match meaning(town, reader, input)? {
            ExpandedBead::Bead(bead) => {
                if seen.insert(bead.id.clone()) {
                    beads.push(bead.id.clone());
                }
            }
            ExpandedBead::Epic(bead, _) if !alone => return refused("an epic", &bead),
            ExpandedBead::Convoy(bead, _) if !alone => return refused("a convoy", &bead),
            ExpandedBead::Epic(bead, parts) => {
                if parts.is_empty() {
                    return Err(no_parts(&bead));
                }
                let convoy = staged_from(reader, &bead.id)?;
                return Ok(StageSet { epic: Some(*bead), convoy, beads: parts });
            }
            ExpandedBead::Convoy(bead, parts) => {
                if ConvoyState::of(&bead) != ConvoyState::Staged {
                    return Err(OperationError::rejected(format!(
                        "{} is {}, and only what has not begun can be staged; gt convoy status {} shows how far it is",
                        bead.id, bead.status, bead.id
                    )));
                }
                let from = bead.metadata.as_ref().and_then(|kept| kept.string_field(FROM));
                // Beads that were added to its epic since belong to it as well.
                if let Some(Ok(ExpandedBead::Epic(epic, parts))) =
                    from.map(|epic| meaning(town, reader, &epic))
                {
                    return Ok(StageSet { epic: Some(*epic), convoy: Some(*bead), beads: parts });
                }
                if parts.is_empty() {
                    return Err(OperationError::rejected(format!(
                        "{} tracks nothing, so there is nothing to stage",
                        bead.id
                    )));
                }
                return Ok(StageSet { epic: None, convoy: Some(*bead), beads: parts });
            }
        }
    }
    if beads.is_empty() {
        return Err(OperationError::rejected("name an epic, a convoy or at least one bead"));
    }
    Ok(StageSet { epic: None, convoy: None, beads })
}

/// The convoy that an epic is staged as.
fn staged_from(reader: &Reader<'_>, epic: &BeadId) -> Result<Option<Bead>> {
    let staged = [READY, WARNINGS].map(Status::parse).into_iter().collect::<Result<Vec<_>, _>>()?;
    for convoy in find(reader, StatusFilter::OneOf(staged))? {
        let Some(bead) = reader.bead(&convoy)? else { continue };
        let from = bead.metadata.as_ref().and_then(|kept| kept.string_field(FROM));
        if from.as_deref() == Some(epic.as_str()) {
            return Ok(Some(bead));
        }
    }
    Ok(None)
}

fn facts(
    town: &Town,
    reader: &Reader<'_>,
    rows: &[MemberRow],
    set: &StageSet,
    RigProblems { missing_branches, missing_agents }: RigProblems,
) -> Result<(StageFacts, SchedulerSettings)> {
    let rigs: HashMap<RigSlug, Rig> =
        reader.rigs()?.into_iter().map(|rig| (rig.slug.clone(), rig)).collect();
    let places = places(rows);
    let mut members = members(rows, &places, |slug| rigs.get(slug));
    let parents = parents(rows, &places);
    let mut elsewhere = Vec::new();
    for page in rows.chunks(PAGE_BEADS) {
        let ids: Vec<BeadId> = page.iter().map(|member_row| member_row.id.clone()).collect();
        for (bead, target) in reader.edges_that_block(&ids)? {
            link(&mut members, &places, &bead, &target);
        }
        // A child outside the set is no gate of its own: its parent is. A frame leads to its parts anyway.
        for (bead, child) in reader.awaited_children(&ids)? {
            let Some(at) = places.get(&bead) else { continue };
            let Some(place) = places.get(&child) else {
                elsewhere.push((bead, vec![child]));
                continue;
            };
            let parent = parents[*place].map(|parent| &members[parent].part);
            if !matches!(parent, Some(MemberRole::Frame(_))) {
                members[*at].awaited_children.push(*place);
            }
        }
    }
    let outside = outside(reader, &members, &places, elsewhere)?;
    let settings = SchedulerSettings::of(&layers_in(town.root(), reader)?)?;
    let is_epic = set.epic.is_some();
    let cap = settings.max_polecats;
    let facts = StageFacts { members, is_epic, cap, outside, missing_branches, missing_agents };
    Ok((facts, settings))
}

/// The beads outside the set that members wait for besides their gates, which `found` begins with. Includes the beads
/// that those wait for, directly or behind others.
fn outside(
    reader: &Reader<'_>,
    members: &[StagedMember],
    places: &HashMap<&BeadId, usize>,
    mut found: Vec<(BeadId, Vec<BeadId>)>,
) -> Result<Vec<(BeadId, Vec<BeadId>)>> {
    let children = found.iter().flat_map(|(_, children)| children);
    let gates = members.iter().flat_map(|member| &member.gates).chain(children);
    let mut next: Vec<BeadId> = gates.filter(|gate| !places.contains_key(gate)).cloned().collect();
    let mut seen: HashSet<BeadId> = next.iter().cloned().collect();
    while let Some(id) = next.pop() {
        let waits = waits_of(reader, &id)?;
        for behind in waits.iter().filter(|id| !places.contains_key(id)) {
            if seen.insert(behind.clone()) {
                next.push(behind.clone());
            }
        }
        found.push((id, waits));
    }
    Ok(found)
}

/// The facts about a bead that decide its relations to others.
pub(super) trait OutlineFacts {
    fn id(&self) -> &BeadId;
    fn status(&self) -> &Status;
    fn issue_type(&self) -> &IssueType;
    fn rig(&self) -> Option<&RigSlug>;
    fn parent(&self) -> Option<&BeadId>;
}

impl OutlineFacts for MemberRow {
    fn id(&self) -> &BeadId {
        &self.id
    }

    fn status(&self) -> &Status {
        &self.status
    }

    fn issue_type(&self) -> &IssueType {
        &self.issue_type
    }

    fn rig(&self) -> Option<&RigSlug> {
        self.rig.as_ref()
    }

    fn parent(&self) -> Option<&BeadId> {
        self.parent.as_ref()
    }
}

impl OutlineFacts for BeadRow {
    fn id(&self) -> &BeadId {
        &self.bead.id
    }

    fn status(&self) -> &Status {
        &self.bead.status
    }

    fn issue_type(&self) -> &IssueType {
        &self.bead.issue_type
    }

    fn rig(&self) -> Option<&RigSlug> {
        self.bead.rig.as_ref()
    }

    fn parent(&self) -> Option<&BeadId> {
        self.parent()
    }
}

/// Where in the list each stands.
pub(super) fn places<B: OutlineFacts>(beads: &[B]) -> HashMap<&BeadId, usize> {
    beads.iter().enumerate().map(|(at, bead)| (bead.id(), at)).collect()
}

/// The relations of these beads to each other, before blockers are added.
pub(super) fn members<'r, B: OutlineFacts>(
    beads: &[B],
    places: &HashMap<&BeadId, usize>,
    rig: impl Fn(&RigSlug) -> Option<&'r Rig>,
) -> Vec<StagedMember> {
    let member = |bead: &B| member(bead, bead.rig().and_then(&rig));
    let mut members: Vec<StagedMember> = beads.iter().map(member).collect();
    for (at, parent) in parents(beads, places).into_iter().enumerate() {
        if let Some(parent) = parent
            && let MemberRole::Frame(parts) = &mut members[parent].part
        {
            parts.push(at);
        }
    }
    members
}

/// Lets one of them wait for another, or for something else.
pub(super) fn link(
    members: &mut [StagedMember],
    places: &HashMap<&BeadId, usize>,
    bead: &BeadId,
    target: &BeadId,
) {
    let Some(at) = places.get(bead).copied() else { return };
    match places.get(target).copied() {
        // A failed blocker is over, and has to be done again all the same.
        Some(place) if members[place].part != MemberRole::Over => members[at].waits_for.push(place),
        _ => members[at].gates.push(target.clone()),
    }
}

fn member(bead: &impl OutlineFacts, rig: Option<&Rig>) -> StagedMember {
    let executor = rig.map_or(ExecutorKind::Process, |rig| rig.executor);
    let part = if *bead.status() == Status::Closed {
        MemberRole::Over
    } else if bead.issue_type().is_slingable(executor) {
        MemberRole::Work(rig.map(|rig| (rig.slug.clone(), rig.state)))
    } else {
        MemberRole::Frame(Vec::new())
    };
    StagedMember {
        id: bead.id().clone(),
        part,
        waits_for: Vec::new(),
        awaited_children: Vec::new(),
        gates: Vec::new(),
    }
}

/// Where in the list the parent of each stands, if it is there.
fn parents<B: OutlineFacts>(beads: &[B], places: &HashMap<&BeadId, usize>) -> Vec<Option<usize>> {
    let parent = |bead: &B| bead.parent().and_then(|parent| places.get(parent).copied());
    beads.iter().map(parent).collect()
}

/// The problems of the rigs of a town that only files and repositories show: read before the transaction.
#[derive(Clone)]
struct RigProblems {
    missing_branches: Vec<(RigSlug, String)>,
    missing_agents: Vec<(RigSlug, String)>,
}

impl RigProblems {
    fn read(town: &Town, request: &StageRequest, lacks_branch: LacksBranch<'_>) -> Result<Self> {
        let rigs = town.read(|reader| Ok(reader.rigs()?))?;
        let active = || rigs.iter().filter(|rig| rig.state == RigState::Active);
        let branch = request.base_branch.as_ref();
        let missing_branches = branch.map_or_else(Vec::new, |branch| {
            let missing = active().filter(|rig| lacks_branch(rig, branch));
            missing.map(|rig| (rig.slug.clone(), branch.clone())).collect()
        });
        let settings = town.scheduler_settings()?;
        let problem = |rig: &Rig| Some((rig.slug.clone(), agent_problem(town, &settings, rig)?));
        let missing_agents = active().filter_map(problem).collect();
        Ok(Self { missing_branches, missing_agents })
    }
}

fn begin(
    town: &Town,
    writer: &mut Writer<'_>,
    request: &StageRequest,
    set: &StageSet,
    tracked: &[BeadId],
    status: &str,
) -> Result<BeadId> {
    let rules = ConvoyRules {
        owned: request.owned,
        merge: request.merge,
        base_branch: request.base_branch.as_deref(),
        review: request.review,
        integration: None,
    };
    let mut metadata = rules.metadata();
    if let Some(epic) = &set.epic {
        metadata.push((FROM.to_owned(), Json::string(epic.id.as_str())));
    }
    let of_epic = set.epic.as_ref().map(|epic| epic.title.to_string());
    let title = request.title.clone().or(of_epic);
    let title = title.unwrap_or_else(|| match tracked.len() {
        1 => "1 bead".to_owned(),
        many => format!("{many} beads"),
    });
    let status = Status::parse(status)?;
    make(town, writer, &ConvoyToMake { title: &title, metadata, beads: tracked, status })
}

/// Brings a convoy that is staged up to date; its other metadata stays.
fn restage(
    writer: &mut Writer<'_>,
    convoy: &Bead,
    tracked: &[BeadId],
    staged: &mut Staged,
) -> Result<()> {
    let edges = writer.edges_from(&convoy.id)?.into_iter();
    let before: Vec<_> = edges.filter(|edge| edge.kind == DependencyType::Tracks).collect();
    let known: BTreeSet<&BeadId> = before.iter().map(|edge| &edge.target).collect();
    let wanted: BTreeSet<&BeadId> = tracked.iter().collect();
    staged.added = tracked.iter().filter(|bead| !known.contains(bead)).cloned().collect();
    for edge in before.iter().filter(|edge| !wanted.contains(&edge.target)) {
        writer.remove_dependency(edge, true)?;
        staged.removed.push(edge.target.clone());
    }
    writer.track(&convoy.id, &staged.added)?;
    let mut now = Bead { status: Status::parse(staged.status)?, ..convoy.clone() };
    now.updated_at = writer.now().of_change_after(convoy.updated_at);
    if now.status != convoy.status {
        writer.save_bead(convoy, &now, BeadChangeKind::StatusChanged)?;
    }
    staged.restaged = true;
    staged.convoy = Some(convoy.id.clone());
    Ok(())
}
