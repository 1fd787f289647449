//! Beads that are to be made together: the drafts of a file, and the beads that its names stand for.

mod markdown;
mod names;

pub use markdown::parse_markdown;

use crate::decide::cycles;
use crate::{DependencyType, Invalid, IssueType, Json, Priority, Title};

use names::Names;

/// Something a file says, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedText {
    /// Where, such as `plan.md:12`.
    pub place: String,
    /// The text.
    pub text: String,
}

/// A reference of a file to a bead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BeadName {
    /// A bead of the same file.
    Planned(String),
    /// A bead that exists.
    Existing(String),
    /// A bead of the same file if one is called so, else one that exists.
    Either(String),
}

/// A bead as a file describes it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Draft {
    /// Where it is described, such as `plan.md:12`.
    pub place: String,
    /// The name that other beads in the file use for it.
    pub key: Option<String>,
    /// Its title.
    pub title: String,
    /// The task, in full.
    pub description: String,
    /// The design of the solution.
    pub design: String,
    /// The criteria by which the work is accepted.
    pub acceptance_criteria: String,
    /// Anything else.
    pub notes: String,
    /// The priority.
    pub priority: Priority,
    /// Its type; a task if nothing is said.
    pub issue_type: Option<IssueType>,
    /// The assignee; empty if there is none.
    pub assignee: String,
    /// Give it to them only when everything else is made.
    pub assign_last: bool,
    /// Its labels.
    pub labels: Vec<String>,
    /// Its id, if it may not be chosen.
    pub id: Option<String>,
    /// The bead it is a part of.
    pub parent: Option<BeadName>,
    /// Its links, as `--deps` has them; several may stand in one text, separated by commas.
    pub links: Vec<PlacedText>,
    /// Its name in another system.
    pub external_ref: Option<String>,
    /// The estimated time.
    pub estimated_minutes: Option<u32>,
    /// When it should be finished, as a person writes it.
    pub due: Option<String>,
    /// Not to be worked on before this, as a person writes it.
    pub defer: Option<String>,
    /// Machinery that may be purged.
    pub ephemeral: bool,
    /// Anything, as JSON.
    pub metadata: Option<Json>,
    /// Metadata fields that are to hold the id of another bead of the file.
    pub metadata_refs: Vec<(String, String)>,
}

/// A dependency that a file lists apart from the beads: `from` depends on `to`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DraftEdge {
    /// Its place in the file.
    pub place: String,
    /// The bead that depends.
    pub from: BeadName,
    /// The other bead.
    pub to: BeadName,
    /// The type of the dependency.
    pub kind: DependencyType,
}

/// How the beads of a file name each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlanNaming {
    /// By their keys, which are unique, or their ids.
    Keys,
    /// By their titles, which need not be, or their ids.
    Titles,
}

/// A bead, once it is known which one is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BeadReference {
    /// One of the plan, by its place in it.
    Planned(usize),
    /// One that exists, by the name the file uses.
    Existing(String),
}

/// A bead to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planned {
    /// The bead as the file has it.
    pub draft: Draft,
    /// The bead it is a part of.
    pub parent: Option<BeadReference>,
    /// Metadata fields that are to hold the id of the bead at this place of the plan.
    pub metadata_refs: Vec<(String, usize)>,
}

/// A dependency to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedEdge {
    /// Its place in the file.
    pub place: String,
    /// The bead that depends.
    pub issue: BeadReference,
    /// The bead that it depends on.
    pub target: BeadReference,
    /// The type of the dependency.
    pub kind: DependencyType,
}

/// Beads to be made together, and their dependencies. Every name in it is known, no bead is a part of
/// itself, and none waits for itself through others of the plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    beads: Vec<Planned>,
    edges: Vec<PlannedEdge>,
    parents_first: Vec<usize>,
    dependents_first: Vec<usize>,
}

impl Plan {
    /// Resolves every name, and refuses a plan that cannot be made.
    pub fn new(
        source: &str,
        drafts: Vec<Draft>,
        edges: Vec<DraftEdge>,
        naming: PlanNaming,
    ) -> Result<Self, Invalid> {
        if drafts.is_empty() {
            return Err(Invalid(format!("{source}: there is no bead in it")));
        }
        for draft in &drafts {
            Title::parse(&draft.title).map_err(|invalid| at(&draft.place, &invalid))?;
        }
        let names = Names::of(&drafts, naming)?;
        let mut found = Vec::new();
        for (index, draft) in drafts.iter().enumerate() {
            for link in &draft.links {
                found.extend(names.links(index, link)?);
            }
        }
        for edge in edges {
            let place = edge.place;
            let issue = names.reference(&place, &edge.from)?;
            let target = names.reference(&place, &edge.to)?;
            found.push(PlannedEdge { place, issue, target, kind: edge.kind });
        }
        let mut beads = Vec::with_capacity(drafts.len());
        for draft in &drafts {
            let place = &draft.place;
            let parent = draft.parent.as_ref().map(|name| names.reference(place, name));
            let pointer =
                |(field, key): &(String, String)| Ok((field.clone(), names.planned(place, key)?));
            let metadata_refs = draft.metadata_refs.iter().map(pointer);
            beads.push((parent.transpose()?, metadata_refs.collect::<Result<Vec<_>, Invalid>>()?));
        }
        let beads: Vec<Planned> = drafts
            .into_iter()
            .zip(beads)
            .map(|(draft, (parent, metadata_refs))| Planned { draft, parent, metadata_refs })
            .collect();
        refuse_circles(source, &beads, &found)?;
        let parents_first = parents_first(&beads);
        let dependents_first = dependents_first(beads.len(), &found);
        Ok(Self { beads, edges: found, parents_first, dependents_first })
    }

    /// The beads, in the order of the file.
    pub fn beads(&self) -> &[Planned] {
        &self.beads
    }

    /// The dependencies besides those to parents.
    pub fn edges(&self) -> &[PlannedEdge] {
        &self.edges
    }

    /// The places of the dependencies in an order in which a bead is waited for before it waits itself.
    /// The caller that adds them looks for cycles behind the bead that is waited for; in this order there is
    /// nothing behind it yet, and a long chain costs no more than a short one.
    pub fn dependents_first(&self) -> &[usize] {
        &self.dependents_first
    }

    /// The places of the beads in an order in which every parent comes before its parts.
    pub fn parents_first(&self) -> &[usize] {
        &self.parents_first
    }
}

/// The same problem, with its place.
fn at(place: &str, Invalid(problem): &Invalid) -> Invalid {
    Invalid(format!("{place}: {problem}"))
}

/// The name of a bead of the plan in messages.
fn shown(draft: &Draft) -> String {
    let name = draft.key.as_deref().unwrap_or(&draft.title);
    format!("\"{}\"", name.escape_debug())
}

fn planned_parent(bead: &Planned) -> Option<usize> {
    match bead.parent {
        Some(BeadReference::Planned(parent)) => Some(parent),
        Some(BeadReference::Existing(_)) | None => None,
    }
}

fn refuse_circles(source: &str, beads: &[Planned], edges: &[PlannedEdge]) -> Result<(), Invalid> {
    let parents: Vec<Vec<usize>> =
        beads.iter().map(|bead| planned_parent(bead).into_iter().collect()).collect();
    let mut waits = vec![Vec::new(); beads.len()];
    for edge in edges {
        if let (BeadReference::Planned(issue), BeadReference::Planned(target)) =
            (&edge.issue, &edge.target)
        {
            if issue == target {
                let name = shown(&beads[*issue].draft);
                return Err(Invalid(format!("{}: {name} cannot depend on itself", edge.place)));
            }
            if edge.kind.can_block() {
                waits[*issue].push(*target);
            }
        }
    }
    for (graph, what) in [(parents, "parts of each other"), (waits, "a cycle of dependencies")] {
        if let Some(circle) = cycles(&graph).first() {
            let mut path: Vec<String> = circle.iter().map(|at| shown(&beads[*at].draft)).collect();
            path.extend(path.first().cloned());
            return Err(Invalid(format!("{source}: {what}: {}", path.join(" → "))));
        }
    }
    Ok(())
}

/// Only for plans without circles of parents.
fn parents_first(beads: &[Planned]) -> Vec<usize> {
    let mut order = Vec::with_capacity(beads.len());
    let mut done = vec![false; beads.len()];
    for start in 0..beads.len() {
        let mut family = Vec::new();
        let mut next = Some(start);
        while let Some(index) = next.filter(|index| !done[*index]) {
            done[index] = true;
            family.push(index);
            next = planned_parent(&beads[index]);
        }
        order.extend(family.into_iter().rev());
    }
    order
}

/// Only for plans without circles of dependencies.
fn dependents_first(beads: usize, edges: &[PlannedEdge]) -> Vec<usize> {
    let mut waits = vec![Vec::new(); beads];
    let mut waited_for = vec![0_usize; beads];
    for edge in edges.iter().filter(|edge| edge.kind.can_block()) {
        if let (BeadReference::Planned(issue), BeadReference::Planned(target)) =
            (&edge.issue, &edge.target)
        {
            waits[*issue].push(*target);
            waited_for[*target] += 1;
        }
    }
    let mut rank = vec![0; beads];
    let mut next = 1;
    let mut free: Vec<usize> = (0..beads).filter(|bead| waited_for[*bead] == 0).collect();
    while let Some(bead) = free.pop() {
        rank[bead] = next;
        next += 1;
        for target in &waits[bead] {
            waited_for[*target] -= 1;
            if waited_for[*target] == 0 {
                free.push(*target);
            }
        }
    }
    let rank_of = |edge: &usize| match edges[*edge].issue {
        BeadReference::Existing(_) => 0,
        BeadReference::Planned(bead) => rank[bead],
    };
    let mut order: Vec<usize> = (0..edges.len()).collect();
    order.sort_by_key(rank_of);
    order
}

#[cfg(test)]
mod tests;
