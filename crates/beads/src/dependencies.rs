//! Edges between beads: what may depend on what.

mod integration_wait;

use std::collections::{HashMap, HashSet};

use gt_core::bead::{Dependency, DependencyType, Gate};
use gt_core::decide::{
    TargetFacts, WaitEdge, cycles as find_cycles, find_path, find_path_to, shown_path, waits,
};
use gt_core::{Bead, BeadId, Status};
use gt_store::{BeadFilter, DependencyChange, Reader, StatusFilter, Writer};

use integration_wait::hold_late_dependent_in;
pub use integration_wait::hold_outside_dependents_in;

use crate::lookup::{
    NamedRecord, edge, resolve_in, resolve_shown_in, resolve_target, shown_id, target_name,
    tracking_edge,
};
use crate::transition_check::refuse_if_over;
use gt_town::{OperationError, Result, Town};

/// The result of adding an edge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Added {
    /// The bead that depends.
    pub issue: BeadId,
    /// The bead it depends on.
    pub target: BeadId,
    /// The type of the dependency.
    pub kind: DependencyType,
    /// Whether it was there already.
    pub already: bool,
    /// Whether the target exists; one that does not blocks from the day it appears.
    pub target_exists: bool,
}

/// Makes `issue` depend on `target`. The same edge once more is fine; `retype` changes the type of an
/// edge that is there.
pub fn add(
    town: &Town,
    issue: &str,
    target: &str,
    kind: &DependencyType,
    retype: bool,
) -> Result<Added> {
    town.write(|writer| add_in(town, writer, issue, target, kind, retype))
}

pub(crate) fn add_in(
    town: &Town,
    writer: &mut Writer<'_>,
    issue: &str,
    target: &str,
    kind: &DependencyType,
    retype: bool,
) -> Result<Added> {
    let issue = resolve_in(town, writer, issue)?;
    refuse_if_over(town, writer, &issue, "link")?;
    let target = resolve_target(town, writer, target)?;
    put_in(writer, issue, target, kind, retype)
}

/// Makes `issue` depend on `target`, whose ids are known.
pub(crate) fn put_in(
    writer: &mut Writer<'_>,
    issue: BeadId,
    target: BeadId,
    kind: &DependencyType,
    retype: bool,
) -> Result<Added> {
    check_levels(writer, &issue, &target, kind)?;
    let old = writer.edge(&issue, &target)?;
    let already = old.as_ref().is_some_and(|old| old.kind == *kind);
    if !already {
        let new = match old {
            None => edge(writer, &issue, &target, kind.clone()),
            Some(old) if retype => Dependency { kind: kind.clone(), ..old },
            Some(old) => {
                return Err(OperationError::rejected(format!(
                    "{issue} already depends on {target} as {}; remove that first with bd dep \
                     remove {issue} {target}, or use --retype",
                    old.kind
                )));
            }
        };
        add_edge(writer, &new, true)?;
        writer.touch_bead(&issue)?;
    }
    let target_exists = writer.bead_exists(&target)?;
    Ok(Added { issue, target, kind: kind.clone(), already, target_exists })
}

/// A dependency to add, and where it was asked for.
#[derive(Debug, Clone)]
pub struct WantedDependency {
    /// Where, such as `edges.jsonl:3`.
    pub place: String,
    /// The bead that depends.
    pub issue: String,
    /// The bead it depends on.
    pub target: String,
    /// The type of the dependency.
    pub kind: DependencyType,
}

/// Adds every one of these dependencies, or none.
pub fn add_all(town: &Town, wanted: &[WantedDependency], retype: bool) -> Result<Vec<Added>> {
    town.write(|writer| {
        let mut added = Vec::with_capacity(wanted.len());
        for WantedDependency { place, issue, target, kind } in wanted {
            let one = add_in(town, writer, issue, target, kind, retype);
            added.push(one.map_err(|error| error.at(place))?);
        }
        Ok(added)
    })
}

/// Removes the edge between two beads, if it is there (and, where a type is given, of that type).
pub fn remove(
    town: &Town,
    issue: &str,
    target: &str,
    kind: Option<&DependencyType>,
) -> Result<(BeadId, BeadId, bool)> {
    town.write(|writer| remove_in(town, writer, issue, target, kind))
}

pub(crate) fn remove_in(
    town: &Town,
    writer: &mut Writer<'_>,
    issue: &str,
    target: &str,
    kind: Option<&DependencyType>,
) -> Result<(BeadId, BeadId, bool)> {
    let issue = resolve_in(town, writer, issue)?;
    refuse_if_over(town, writer, &issue, "unlink")?;
    let target = match resolve_in(town, writer, target) {
        // An edge may point to a bead that does not exist, by the name it came with.
        Err(OperationError::NoBead(name)) => {
            let as_written = BeadId::trusted(name.clone());
            match writer.edge(&issue, &as_written)? {
                Some(_) => as_written,
                None => target_name(target).ok_or(OperationError::NoBead(name))?,
            }
        }
        resolved => resolved?,
    };
    let found = writer.edge(&issue, &target)?;
    let removed = found.filter(|edge| kind.is_none_or(|kind| edge.kind == *kind));
    if let Some(edge) = &removed {
        writer.remove_dependency(edge, true)?;
        writer.touch_bead(&issue)?;
    }
    Ok((issue, target, removed.is_some()))
}

/// Relates two beads to each other, or ends that; neither waits for the other.
pub fn relate(town: &Town, one: &str, other: &str, related: bool) -> Result<(BeadId, BeadId)> {
    town.write(|writer| {
        let one = resolve_in(town, writer, one)?;
        let other = resolve_in(town, writer, other)?;
        if one == other {
            return Err(OperationError::rejected(format!("{one} cannot be related to itself")));
        }
        let kind = DependencyType::trusted("relates-to");
        for (from, to) in [(&one, &other), (&other, &one)] {
            refuse_if_over(town, writer, from, "link")?;
            match writer.edge(from, to)? {
                Some(old) if !related && old.kind == kind => {
                    writer.remove_dependency(&old, true)?;
                    writer.touch_bead(from)?;
                }
                None if related => {
                    put_in(writer, from.clone(), to.clone(), &kind, false)?;
                }
                _ => {}
            }
        }
        Ok((one, other))
    })
}

/// Adds an edge after the checks that no edge may fail: not to itself, no circle, and nothing waits
/// for what it is a part of.
pub fn add_edge(
    writer: &mut Writer<'_>,
    edge: &Dependency,
    announce: bool,
) -> Result<DependencyChange> {
    let (issue, target) = (&edge.issue, &edge.target);
    if issue == target {
        return Err(OperationError::rejected(format!("{issue} cannot depend on itself")));
    }
    if edge.kind.can_block() {
        let above = writer.parent_edges_above(issue)?;
        if above.iter().any(|(_, parent)| parent == target) {
            return Err(OperationError::rejected(format!(
                "{issue} is a part of {target} and cannot wait for it"
            )));
        }
        // Without an edge to it, and as a part of nothing, no circle leads back to the issue.
        if writer.is_waited_for(issue)? || !writer.parents(issue)?.is_empty() {
            check_no_deadlock(writer, edge)?;
        }
    }
    if edge.kind == DependencyType::ParentChild {
        let has_children = writer.has_children(issue)?;
        let waits_for = writer.blocking_targets(issue)?;
        // A new bead has neither: its place in a deep tree costs nothing.
        if has_children || !waits_for.is_empty() {
            let above = writer.parent_edges_above(target)?;
            check_acyclic(edge, &above)?;
            let above: HashSet<&BeadId> = above.iter().map(|(_, parent)| parent).collect();
            if let Some(waited) = waits_for.iter().find(|id| *id == target || above.contains(id)) {
                return Err(OperationError::rejected(format!(
                    "{issue} waits for {waited} and cannot become a part of it"
                )));
            }
            check_part(writer, issue, target)?;
        }
    }
    let is_convoy = |reader: &Reader<'_>, id: &BeadId| -> Result<bool> {
        Ok(reader.bead(id)?.is_some_and(|bead| bead.issue_type.is_convoy()))
    };
    if edge.kind == DependencyType::Tracks
        && is_convoy(writer, issue)?
        && is_convoy(writer, target)?
    {
        return Err(OperationError::rejected(format!(
            "{issue} cannot track {target}: convoys do not travel in others"
        )));
    }
    let change = writer.put_dependency(edge, announce)?;
    if edge.kind.can_block() {
        hold_late_dependent_in(writer, issue, target)?;
    }
    Ok(change)
}

/// The beads that a bead waits for: the targets of its edges and the parts that those edges stand for.
pub fn waits_of(reader: &Reader<'_>, id: &BeadId) -> Result<Vec<BeadId>> {
    let edges = reader.edges_from(id)?.into_iter();
    let edges: Vec<WaitEdge<BeadId>> =
        edges.map(|edge| (edge.kind.clone(), edge.gate(), edge.target)).collect();
    // A bead that is over waits for no children any more.
    let is_over = || -> Result<bool> {
        Ok(reader.bead(id)?.is_none_or(|bead| bead.status == Status::Closed))
    };
    waits(&edges, reader.unfinished_parts(id)?, |target| {
        Ok(if is_over()? { Vec::new() } else { reader.unfinished_children(target)? })
    })
}

/// Refuses an edge that makes beads wait for each other, through any number of edges and parts.
fn check_no_deadlock(reader: &Reader<'_>, edge: &Dependency) -> Result<()> {
    let (issue, target) = (&edge.issue, &edge.target);
    let onward = reader.waited_for_edges(target)?;
    check_acyclic(edge, &onward)?;
    // Where no edge on the way stands for parts, the edges are all there is.
    let mut reached: Vec<BeadId> = onward.into_iter().map(|(_, target)| target).collect();
    reached.push(target.clone());
    if edge.kind != DependencyType::WaitsFor && !reader.any_waits_for_parts(&reached)? {
        return Ok(());
    }
    let new = [(edge.kind.clone(), edge.gate(), target.clone())];
    let first = waits(&new, Vec::new(), |target| {
        Ok::<_, OperationError>(reader.unfinished_children(target)?)
    })?;
    // The search begins with the new edge alone, which nothing has followed yet.
    let path = find_path(&None, &Some(issue.clone()), |at: &Option<BeadId>| {
        let next = match at {
            None => first.clone(),
            Some(id) => waits_of(reader, id)?,
        };
        Ok::<_, OperationError>(next.into_iter().map(Some).collect())
    })?;
    let Some(path) = path else { return Ok(()) };
    let mut circle = vec![issue.clone()];
    circle.extend(path.into_iter().flatten());
    Err(OperationError::Cycle { issue: issue.clone(), target: target.clone(), path: circle })
}

/// Refuses to make `part` a part of `whole` if it waits for a bead that then waits for `part`.
fn check_part(reader: &Reader<'_>, part: &BeadId, whole: &BeadId) -> Result<()> {
    let is_open = |bead: &Bead| !TargetFacts::of(bead).is_satisfied();
    if !reader.bead(part)?.as_ref().is_some_and(is_open) {
        return Ok(());
    }
    let awaits_parts = |edge: &Dependency| {
        edge.kind == DependencyType::WaitsFor && edge.gate() == Gate::AllChildren
    };
    let mut waiting = HashSet::new();
    for edge in reader.edges_to(whole)?.into_iter().filter(awaits_parts) {
        if reader.bead(&edge.issue)?.as_ref().is_some_and(is_open) {
            waiting.insert(edge.issue);
        }
    }
    if reader.bead(whole)?.is_some_and(|bead| bead.issue_type.is_epic()) {
        waiting.insert(whole.clone());
    }
    if waiting.is_empty() {
        return Ok(());
    }
    let path = find_path_to(part, |id| waiting.contains(id), |id| waits_of(reader, id))?;
    let Some(path) = path else { return Ok(()) };
    let path: Vec<BeadId> = path.into_iter().chain([part.clone()]).collect();
    Err(OperationError::rejected(format!(
        "{part} cannot become a part of {whole}: that would be a cycle ({})",
        shown_path(&path)
    )))
}

/// Refuses an edge from whose target the `existing` ones lead back to it.
fn check_acyclic(edge: &Dependency, existing: &[(BeadId, BeadId)]) -> Result<()> {
    let mut targets: HashMap<&BeadId, Vec<BeadId>> = HashMap::new();
    for (issue, target) in existing {
        targets.entry(issue).or_default().push(target.clone());
    }
    let next =
        |id: &BeadId| -> Result<Vec<BeadId>> { Ok(targets.get(id).cloned().unwrap_or_default()) };
    match find_path(&edge.target, &edge.issue, next)? {
        None => Ok(()),
        Some(path) => {
            let mut circle = vec![edge.issue.clone()];
            circle.extend(path);
            let (issue, target) = (edge.issue.clone(), edge.target.clone());
            Err(OperationError::Cycle { issue, target, path: circle })
        }
    }
}

/// Epics and what is not an epic cannot block each other: an epic is done when its parts are.
pub(crate) fn check_levels(
    reader: &Reader<'_>,
    issue: &BeadId,
    target: &BeadId,
    kind: &DependencyType,
) -> Result<()> {
    if *kind != DependencyType::Blocks {
        return Ok(());
    }
    let (Some(issue), Some(target)) = (reader.bead(issue)?, reader.bead(target)?) else {
        return Ok(());
    };
    match (issue.issue_type.is_epic(), target.issue_type.is_epic()) {
        (true, false) => Err(OperationError::rejected(format!(
            "epics can only block other epics, not tasks: {} is an epic, {} is not; use --type \
             waits-for",
            issue.id, target.id
        ))),
        (false, true) => Err(OperationError::rejected(format!(
            "tasks can only block other tasks, not epics: {} is an epic, {} is not; use --type \
             waits-for",
            target.id, issue.id
        ))),
        _ => Ok(()),
    }
}

/// Which way to look along edges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EdgeDirection {
    /// At what a bead depends on.
    #[default]
    Down,
    /// At what depends on it.
    Up,
}

/// An edge and the bead at its other end, if that exists.
pub type Neighbour = (Dependency, Option<Bead>);

/// The edges of a bead, with the beads at their other ends where those exist.
pub fn neighbours(
    town: &Town,
    input: &str,
    look: EdgeDirection,
    kind: Option<&DependencyType>,
) -> Result<(BeadId, Vec<Neighbour>)> {
    town.read(|reader| {
        let (id, edges) = match resolve_shown_in(town, reader, input)? {
            NamedRecord::Bead(id) => {
                let edges = edges(reader, &id, look)?;
                (id, edges)
            }
            NamedRecord::Context(context) => {
                let edges = match look {
                    EdgeDirection::Down => vec![tracking_edge(&context)],
                    EdgeDirection::Up => Vec::new(),
                };
                (shown_id(&context), edges)
            }
        };
        let mut found = Vec::new();
        for edge in edges {
            if kind.is_none_or(|kind| edge.kind == *kind) {
                let other = reader.bead(other_bead(&edge, look))?;
                found.push((edge, other));
            }
        }
        Ok((id, found))
    })
}

fn edges(reader: &Reader<'_>, id: &BeadId, look: EdgeDirection) -> Result<Vec<Dependency>> {
    Ok(match look {
        EdgeDirection::Down => reader.edges_from(id)?,
        EdgeDirection::Up => reader.edges_to(id)?,
    })
}

fn other_bead(edge: &Dependency, look: EdgeDirection) -> &BeadId {
    match look {
        EdgeDirection::Down => &edge.target,
        EdgeDirection::Up => &edge.issue,
    }
}

/// A bead in a dependency tree.
#[derive(Debug, Clone)]
pub struct TreeNode {
    /// The bead.
    pub bead: Bead,
    /// How far from the root.
    pub depth: usize,
    /// The bead above it in this tree; the root has none.
    pub above: Option<BeadId>,
    /// The edge to the bead above it.
    pub kind: Option<DependencyType>,
    /// Whether its own branch was shown elsewhere or is deeper than asked for.
    pub truncated: bool,
}

/// Everything reachable from a bead, depth first. A bead that is reached twice is expanded once.
pub fn tree(
    town: &Town,
    input: &str,
    look: EdgeDirection,
    depth_max: usize,
) -> Result<Vec<TreeNode>> {
    town.read(|reader| {
        let root = resolve_in(town, reader, input)?;
        let mut walk = TreeWalk { look, depth_max, ..TreeWalk::default() };
        walk.go_down(reader, root)?;
        Ok(walk.nodes)
    })
}

/// The trees of all beads that are not closed, each with the beads it depends on. A tree begins at a bead that no other
/// one depends on, or anywhere in a circle.
pub fn forest(town: &Town, depth_max: usize) -> Result<Vec<TreeNode>> {
    let current = BeadFilter { status: StatusFilter::Current, ..BeadFilter::everything() };
    town.read(|reader| {
        let ids = reader.find(&current)?;
        let mut needed = HashSet::new();
        for id in &ids {
            let edges = edges(reader, id, EdgeDirection::Down)?;
            needed.extend(edges.into_iter().filter(belongs_to_tree).map(|edge| edge.target));
        }
        let (inner, roots): (Vec<_>, Vec<_>) = ids.into_iter().partition(|id| needed.contains(id));
        let mut walk = TreeWalk { depth_max, ..TreeWalk::default() };
        for id in roots.into_iter().chain(inner) {
            if !walk.expanded.contains(&id) {
                walk.go_down(reader, id)?;
            }
        }
        Ok(walk.nodes)
    })
}

fn belongs_to_tree(edge: &Dependency) -> bool {
    edge.kind.as_str() != "relates-to"
}

/// The nodes of one tree or of several; a bead that is reached twice is expanded once.
#[derive(Default)]
struct TreeWalk {
    look: EdgeDirection,
    depth_max: usize,
    expanded: HashSet<BeadId>,
    nodes: Vec<TreeNode>,
}

impl TreeWalk {
    /// Adds the tree that begins at `root`.
    fn go_down(&mut self, reader: &Reader<'_>, root: BeadId) -> Result<()> {
        let mut waiting = vec![(root, 0, None, None)];
        while let Some((id, depth, above, kind)) = waiting.pop() {
            let Some(bead) = reader.bead(&id)? else {
                continue;
            };
            let first_visit = self.expanded.insert(id.clone());
            let mut below = edges(reader, &id, self.look)?;
            below.retain(belongs_to_tree);
            let truncated = !below.is_empty() && (!first_visit || depth >= self.depth_max);
            self.nodes.push(TreeNode { bead, depth, above, kind, truncated });
            if first_visit && depth < self.depth_max {
                for edge in below.into_iter().rev() {
                    let next = other_bead(&edge, self.look).clone();
                    waiting.push((next, depth + 1, Some(id.clone()), Some(edge.kind)));
                }
            }
        }
        Ok(())
    }
}

/// One circle of blocking dependencies per tangle. Commands refuse to make one; this looks anyway.
pub fn cycles(town: &Town) -> Result<Vec<Vec<Bead>>> {
    town.read(|reader| {
        let bead = |id: BeadId| reader.bead(&id).transpose();
        let circle = |ids: Vec<BeadId>| -> Result<Vec<Bead>> {
            Ok(ids.into_iter().filter_map(bead).collect::<Result<_, _>>()?)
        };
        BlockingGraph::read_with_parts(reader)?.circles().into_iter().map(circle).collect()
    })
}

/// All blocking dependencies, in as little memory as they need.
#[derive(Default)]
pub(crate) struct BlockingGraph {
    names: Vec<BeadId>,
    numbers: HashMap<BeadId, usize>,
    edges: Vec<Vec<usize>>,
}

impl BlockingGraph {
    pub(crate) fn read(reader: &Reader<'_>) -> Result<Self> {
        let mut tangle = Self::default();
        reader.for_each_blocking_edge(|issue, target| {
            let (from, to) = (tangle.number(issue), tangle.number(target));
            tangle.edges[from].push(to);
        })?;
        Ok(tangle)
    }

    /// The same with the parts that beads wait for through their parents: a circle in it is a deadlock.
    pub(crate) fn read_with_parts(reader: &Reader<'_>) -> Result<Self> {
        let mut tangle = Self::read(reader)?;
        reader.for_each_awaited_part(|issue, part| {
            let (from, to) = (tangle.number(issue), tangle.number(part));
            tangle.edges[from].push(to);
        })?;
        Ok(tangle)
    }

    fn number(&mut self, id: BeadId) -> usize {
        if let Some(number) = self.numbers.get(&id) {
            return *number;
        }
        self.names.push(id.clone());
        self.numbers.insert(id, self.edges.len());
        self.edges.push(Vec::new());
        self.edges.len() - 1
    }

    /// One circle per tangle, as a path whose last bead depends on its first.
    pub(crate) fn circles(&self) -> Vec<Vec<BeadId>> {
        let name = |at: usize| self.names[at].clone();
        let circles = find_cycles(&self.edges).into_iter();
        circles.map(|circle| circle.into_iter().map(name).collect()).collect()
    }
}
