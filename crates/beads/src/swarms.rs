//! Swarms: molecules that stand for the work on an epic, for the agent that coordinates it.

use std::collections::HashMap;

use gt_core::decide::waves;
use gt_core::{Bead, BeadId, DependencyType, IssueType, Json, Status};
use gt_store::{BeadFilter, Reader, StatusFilter, Writer};

use crate::beads::{NewBead, create_in};
use crate::lookup::{edge, require};
use gt_town::{OperationError, Result, Town};

/// The kind of molecule that a swarm is.
const SWARM: &str = "swarm";

/// The parts of an epic in the order in which they can be worked on.
#[derive(Debug, Clone)]
pub struct SwarmPlan {
    /// The epic.
    pub epic: Bead,
    /// Its direct parts.
    pub parts: Vec<Bead>,
    /// The parts that can be worked on at once, one list after the other.
    pub waves: Vec<Vec<BeadId>>,
    /// Problems to look at, in sentences.
    pub warnings: Vec<String>,
    /// Parts that wait for each other in a circle, and so for ever.
    pub stuck: Vec<BeadId>,
}

impl SwarmPlan {
    /// The most parts that can be worked on at once.
    pub fn widest(&self) -> u64 {
        self.waves.iter().map(Vec::len).max().unwrap_or(0) as u64
    }

    /// How many parts are closed.
    pub fn closed(&self) -> u64 {
        self.parts.iter().filter(|part| part.status == Status::Closed).count() as u64
    }

    /// How many parts are in progress.
    pub fn active(&self) -> u64 {
        let is_active = |part: &&Bead| matches!(part.status, Status::InProgress | Status::Hooked);
        self.parts.iter().filter(is_active).count() as u64
    }
}

/// A swarm that was made.
#[derive(Debug, Clone)]
pub struct CreatedSwarm {
    /// The molecule.
    pub swarm: Bead,
    /// The epic it is for, with its parts.
    pub plan: SwarmPlan,
}

/// A swarm, with the epic it is for; none if that is gone.
pub type ListedSwarm = (Bead, Option<SwarmPlan>);

/// The plan of an epic, or of the epic of a swarm.
pub fn swarm_plan(town: &Town, input: &str) -> Result<SwarmPlan> {
    town.read(|reader| {
        let bead = require(town, reader, input)?;
        let epic = epic_of(reader, &bead)?.unwrap_or(bead);
        plan_of(reader, epic)
    })
}

/// Makes a swarm for an epic. A bead that is none becomes the only part of a new epic. An epic has one open swarm, unless
/// `again` says so.
pub fn create_swarm(
    town: &Town,
    input: &str,
    coordinator: &str,
    again: bool,
) -> Result<CreatedSwarm> {
    town.write(|writer| {
        let bead = require(town, writer, input)?;
        let is_container = matches!(bead.issue_type.as_str(), "epic" | "molecule");
        let epic = if is_container { bead } else { wrapped(town, writer, &bead)? };
        if !again && let Some(swarm) = open_swarm(writer, &epic.id)? {
            return Err(OperationError::rejected(format!(
                "swarm already exists: {swarm} is for {}; --force makes another",
                epic.id
            )));
        }
        let plan = plan_of(writer, epic)?;
        if !plan.stuck.is_empty() {
            let names: Vec<&str> = plan.stuck.iter().map(BeadId::as_str).collect();
            return Err(OperationError::rejected(format!(
                "{} wait for each other; bd dep cycles shows how",
                names.join(", ")
            )));
        }
        let new = NewBead {
            title: clipped("Swarm: ", plan.epic.title.as_str()),
            description: format!("The work on {}", plan.epic.id),
            issue_type: Some(IssueType::trusted("molecule".to_owned())),
            priority: plan.epic.priority,
            assignee: coordinator.to_owned(),
            carried: vec![("mol_type".to_owned(), Json::string(SWARM))],
            ..NewBead::default()
        };
        let swarm = create_in(town, writer, &new)?.bead;
        let link = edge(writer, &swarm.id, &plan.epic.id, DependencyType::trusted("relates-to"));
        writer.put_dependency(&link, true)?;
        Ok(CreatedSwarm { swarm, plan })
    })
}

/// The swarms that are not closed.
pub fn swarms(town: &Town) -> Result<Vec<ListedSwarm>> {
    town.read(|reader| {
        let mut found = Vec::new();
        for row in reader.bead_rows(&reader.find(&open_molecules())?)? {
            if is_swarm(&row.bead) {
                let epic = epic_of(reader, &row.bead)?;
                let plan = epic.map(|epic| plan_of(reader, epic)).transpose()?;
                found.push((row.bead, plan));
            }
        }
        Ok(found)
    })
}

fn open_molecules() -> BeadFilter {
    let types = vec![IssueType::trusted("molecule".to_owned())];
    BeadFilter { types, status: StatusFilter::Current, ..BeadFilter::everything() }
}

fn is_swarm(bead: &Bead) -> bool {
    let kind = bead.carried.iter().find(|(name, _)| name == "mol_type");
    kind.and_then(|(_, value)| value.to_text()).as_deref() == Some(SWARM)
}

/// A title of a legal length.
fn clipped(start: &str, title: &str) -> String {
    start.chars().chain(title.chars()).take(200).collect()
}

/// The epic that a swarm is for; nothing for any other bead.
fn epic_of(reader: &Reader<'_>, swarm: &Bead) -> Result<Option<Bead>> {
    if !is_swarm(swarm) {
        return Ok(None);
    }
    let edges = reader.edges_from(&swarm.id)?;
    let epic = edges.into_iter().find(|edge| edge.kind.as_str() == "relates-to");
    Ok(match epic {
        Some(edge) => reader.bead(&edge.target)?,
        None => None,
    })
}

fn open_swarm(reader: &Reader<'_>, epic: &BeadId) -> Result<Option<BeadId>> {
    for edge in reader.edges_to(epic)? {
        let bead = reader.bead(&edge.issue)?;
        if bead.is_some_and(|bead| is_swarm(&bead) && bead.status != Status::Closed) {
            return Ok(Some(edge.issue));
        }
    }
    Ok(None)
}

/// A new epic with this bead as its only part.
fn wrapped(town: &Town, writer: &mut Writer<'_>, bead: &Bead) -> Result<Bead> {
    let new = NewBead {
        title: clipped("Epic: ", bead.title.as_str()),
        issue_type: Some(IssueType::trusted("epic".to_owned())),
        priority: bead.priority,
        ..NewBead::default()
    };
    let epic = create_in(town, writer, &new)?.bead;
    let link = edge(writer, &bead.id, &epic.id, DependencyType::ParentChild);
    crate::dependencies::add_edge(writer, &link, true)?;
    Ok(epic)
}

fn plan_of(reader: &Reader<'_>, epic: Bead) -> Result<SwarmPlan> {
    let mut ids = reader.children(&epic.id)?;
    ids.sort_by(BeadId::natural_order);
    let parts: Vec<Bead> = reader.bead_rows(&ids)?.into_iter().map(|row| row.bead).collect();
    let places: HashMap<&BeadId, usize> =
        parts.iter().enumerate().map(|(place, part)| (&part.id, place)).collect();
    let mut warnings = Vec::new();
    let mut waits_for = Vec::with_capacity(parts.len());
    for part in &parts {
        let mut inside = Vec::new();
        for edge in reader.edges_from(&part.id)?.into_iter().filter(|edge| edge.kind.can_block()) {
            match places.get(&edge.target) {
                Some(place) => inside.push(*place),
                None => warnings.push(format!(
                    "{} waits for {}, which is no part of {}",
                    part.id, edge.target, epic.id
                )),
            }
        }
        waits_for.push(inside);
    }
    if parts.is_empty() {
        warnings.push(format!("{} has no parts", epic.id));
    }
    let placed = waves(&waits_for);
    let reached: Vec<bool> = {
        let mut reached = vec![false; parts.len()];
        placed.iter().flatten().for_each(|place| reached[*place] = true);
        reached
    };
    let stuck = parts.iter().zip(&reached).filter(|(_, is_reached)| !**is_reached);
    let stuck = stuck.map(|(part, _)| part.id.clone()).collect();
    let named = |wave: Vec<usize>| wave.iter().map(|place| parts[*place].id.clone()).collect();
    let waves = placed.into_iter().map(named).collect();
    Ok(SwarmPlan { epic, parts, waves, warnings, stuck })
}
