//! From the words of a command to the beads they mean.

use std::collections::HashMap;
use std::fmt;

use gt_core::schedule::WorkerPlace;
use gt_core::work::WorkFilter;
use gt_core::{Bead, BeadId, DependencyType, ExecutorKind, Rig, RigSlug};
use gt_store::{BeadRow, Reader};

use super::request::SlingRequest;
use gt_beads::lookup::resolve_in;
use gt_town::{OperationError, Result, Town};

/// The target of work, if one was named.
#[derive(Debug, Clone)]
pub(super) enum SlingTarget {
    /// To any worker of the rig.
    Rig(Rig),
    /// To this one, in this rig.
    Place(Rig, WorkerPlace),
    /// To an agent that asks for work, in the bead's own rig.
    Agent(WorkerPlace),
}

impl SlingTarget {
    pub(super) fn rig(&self) -> Option<&Rig> {
        match self {
            Self::Rig(rig) | Self::Place(rig, _) => Some(rig),
            Self::Agent(_) => None,
        }
    }

    pub(super) fn place(&self) -> Option<&WorkerPlace> {
        match self {
            Self::Rig(_) => None,
            Self::Place(_, place) | Self::Agent(place) => Some(place),
        }
    }
}

impl fmt::Display for SlingTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rig(rig) => rig.slug.fmt(f),
            Self::Place(_, place) | Self::Agent(place) => place.fmt(f),
        }
    }
}

/// The request, as far as the words alone tell.
#[derive(Debug)]
pub(super) struct SlingWords {
    pub(super) formula: Option<String>,
    pub(super) inputs: Vec<String>,
    pub(super) target: Option<SlingTarget>,
}

impl SlingWords {
    /// Beads alone.
    pub(super) fn of_beads(inputs: &[String]) -> Self {
        Self { formula: None, inputs: inputs.to_vec(), target: None }
    }
}

/// The lines of a list of beads: one each, without blanks and what follows a `#` at the beginning of a word.
pub fn read_list(text: &str) -> Vec<String> {
    let line = |line: &str| {
        let words = line.split_whitespace().take_while(|word| !word.starts_with('#'));
        words.map(str::to_owned).collect::<Vec<_>>()
    };
    text.lines().flat_map(line).collect()
}

/// Tells apart the formula, the beads and the target. The last argument is a target if one of that name
/// exists.
pub(super) fn words(reader: &Reader<'_>, request: &SlingRequest) -> Result<SlingWords> {
    let mut arguments = request.arguments.clone();
    let mut formula = request.flags.formula.clone();
    let on_formula = !request.on.is_empty();
    if on_formula && formula.is_none() {
        if arguments.is_empty() {
            return Err(OperationError::rejected(
                "--on needs a formula: gt sling <formula> --on <bead>",
            ));
        }
        formula = Some(arguments.remove(0));
    }
    let alone = usize::from(!on_formula);
    let last = arguments.last().filter(|_| arguments.len() > alone);
    let target = match last {
        Some(last) => target(reader, last)?,
        None => None,
    };
    if target.is_some() {
        arguments.pop();
    }
    let inputs = if on_formula {
        if let Some(extra) = arguments.first() {
            return Err(unknown_target(reader, extra)?);
        }
        request.on.clone()
    } else {
        arguments
    };
    if inputs.is_empty() {
        return Err(OperationError::rejected("name at least one bead"));
    }
    Ok(SlingWords { formula, inputs, target })
}

fn unknown_target(reader: &Reader<'_>, name: &str) -> Result<OperationError> {
    let known = reader.rigs()?.into_iter().map(|rig| rig.slug.to_string()).collect();
    Ok(OperationError::NoRig { name: name.to_owned(), known })
}

/// The target of this name, if it is one.
fn target(reader: &Reader<'_>, name: &str) -> Result<Option<SlingTarget>> {
    if let Some(rig) = reader.rig(name)? {
        return Ok(Some(SlingTarget::Rig(rig)));
    }
    let Some((slug, rest)) = name.split_once('/') else { return agent(reader, name) };
    let Some(rig) = reader.rig(slug)? else { return Err(unknown_target(reader, slug)?) };
    let slug: &RigSlug = &rig.slug;
    let place = match rest.split('/').collect::<Vec<_>>().as_slice() {
        ["crew", name] => WorkerPlace::crew(slug, name)?,
        [name] if rig.executor == ExecutorKind::Pull => WorkerPlace::agent(name)?,
        ["polecats", name] | [name] => WorkerPlace::polecat(slug, name)?,
        _ => {
            return Err(OperationError::rejected(format!(
                "\"{}\" is not a target; use <rig>, <rig>/<name> or <rig>/crew/<name>",
                name.escape_debug()
            )));
        }
    };
    if rig.executor == ExecutorKind::Pull && place.polecat_name().is_some() {
        return Err(OperationError::rejected(format!(
            "the rig {slug} has agents that ask for work, and no polecats; use {slug} or {slug}/<agent> instead of {}",
            name.escape_debug()
        )));
    }
    Ok(Some(SlingTarget::Place(rig, place)))
}

/// The agent of this name, if one has ever had work.
fn agent(reader: &Reader<'_>, name: &str) -> Result<Option<SlingTarget>> {
    let Ok(place) = WorkerPlace::agent(name) else { return Ok(None) };
    let filter = WorkFilter {
        agent: Some(name.to_owned()),
        executor: Some(ExecutorKind::Pull),
        ..WorkFilter::default()
    };
    let is_known = !reader.work_items(&filter, None, 1)?.is_empty();
    Ok(is_known.then_some(SlingTarget::Agent(place)))
}

/// The beads that a bead stands for.
#[derive(Debug)]
pub enum ExpandedBead {
    /// The bead itself.
    Bead(Box<Bead>),
    /// Everything below it.
    Epic(Box<Bead>, Vec<BeadId>),
    /// Everything it tracks.
    Convoy(Box<Bead>, Vec<BeadId>),
}

/// The meaning of an input.
pub fn meaning(town: &Town, reader: &Reader<'_>, input: &str) -> Result<ExpandedBead> {
    let id = resolve_in(town, reader, input).map_err(|error| match error {
        OperationError::NoBead(name) if is_formula_name(&name) => OperationError::rejected(
            format!("{name} is not a bead; to apply a formula write gt sling {name} --on <bead>"),
        ),
        other => other,
    })?;
    let bead = reader.bead(&id)?.ok_or_else(|| OperationError::NoBead(input.to_owned()))?;
    unfold(reader, bead)
}

/// The beads that inputs name in full: together, because one by one takes a server long.
pub(super) fn named(reader: &Reader<'_>, inputs: &[String]) -> Result<HashMap<BeadId, BeadRow>> {
    let ids: Vec<BeadId> = inputs.iter().filter_map(|input| BeadId::parse(input).ok()).collect();
    let rows = reader.bead_rows(&ids)?.into_iter();
    Ok(rows.map(|row| (row.bead.id.clone(), row)).collect())
}

/// The beads that a bead stands for.
pub(super) fn unfold(reader: &Reader<'_>, bead: Bead) -> Result<ExpandedBead> {
    if bead.issue_type.is_epic() {
        let mut parts: Vec<BeadId> = reader.children_below(&bead.id)?.into_iter().collect();
        parts.sort_by(BeadId::natural_order);
        return Ok(ExpandedBead::Epic(Box::new(bead), parts));
    }
    if bead.issue_type.is_convoy() {
        let edges = reader.edges_from(&bead.id)?.into_iter();
        let tracked = edges.filter(|edge| edge.kind == DependencyType::Tracks);
        let tracked = tracked.map(|edge| edge.target).collect();
        return Ok(ExpandedBead::Convoy(Box::new(bead), tracked));
    }
    Ok(ExpandedBead::Bead(Box::new(bead)))
}

fn is_formula_name(name: &str) -> bool {
    name.starts_with("mol-")
}
