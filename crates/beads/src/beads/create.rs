//! Making a bead.

use std::path::Path;

use gt_core::bead::{Direction, NewDependency, RequestKey, Title, Uid, check_label, check_text};
use gt_core::decide::IdSeed;
use gt_core::schedule::labels::is_derived;
use gt_core::{
    Bead, BeadId, Carried, DependencyType, EventKind, IssueType, Json, Prefix, Priority, Rig,
    RigSlug, Status, Timestamp,
};
use gt_store::{Reader, Writer};

use super::types::check_type;
use crate::dependencies::{add_edge, check_levels};
use crate::lookup::{edge, resolve_target};
use crate::lookup::{require, resolve_in};
use crate::notes::refuse_derived;
use crate::transition_check::refuse_if_over;
use gt_town::{OperationError, Result, Town};

/// A bead to be made.
#[derive(Debug, Clone, Default)]
pub struct NewBead {
    /// Its title.
    pub title: String,
    /// The work to do.
    pub description: String,
    /// How it is to be done.
    pub design: String,
    /// How to tell that it is done.
    pub acceptance_criteria: String,
    /// Anything else.
    pub notes: String,
    /// Its type; a task if nothing is said.
    pub issue_type: Option<IssueType>,
    /// Refuse a type that neither the program nor the setting `types.custom` knows.
    pub check_type: bool,
    /// How urgent it is.
    pub priority: Priority,
    /// Its assignee.
    pub assignee: String,
    /// Its labels.
    pub labels: Vec<String>,
    /// Its id, if it may not be chosen.
    pub id: Option<String>,
    /// Accept an id whose prefix is not registered.
    pub force: bool,
    /// The bead it is a part of.
    pub parent: Option<String>,
    /// Do not take over the parent's labels.
    pub no_inherit_labels: bool,
    /// Its links to other beads.
    pub links: Vec<NewDependency>,
    /// The rig it belongs to.
    pub rig: Option<String>,
    /// Machinery that may be purged.
    pub ephemeral: bool,
    /// Kept without history.
    pub no_history: bool,
    /// Its name in another system.
    pub external_ref: Option<String>,
    /// How long it should take.
    pub estimated_minutes: Option<u32>,
    /// When it should be finished.
    pub due_at: Option<Timestamp>,
    /// Not to be worked on before this.
    pub defer_until: Option<Timestamp>,
    /// Anything, as JSON.
    pub metadata: Option<Json>,
    /// Fields that mean nothing to us.
    pub carried: Carried,
}

/// A bead that was made.
#[derive(Debug, Clone)]
pub struct Created {
    /// The bead.
    pub bead: Bead,
    /// Its labels.
    pub labels: Vec<String>,
    /// The linked beads that do not exist; such a bead blocks from the day it appears.
    pub missing: Vec<BeadId>,
}

/// The result of a request that may have been made before.
#[derive(Debug, Clone)]
pub enum CreateResult {
    /// It was not: this is its bead.
    Made(Created),
    /// It was: this is the bead it made then, as it is now.
    MadeBefore(Created),
}

/// Makes a bead, with its labels, its parent and its links, or nothing at all. A dry run says what a
/// run would say, and makes nothing.
pub fn create(town: &Town, new: &NewBead, dry_run: bool) -> Result<Created> {
    town.write_or_rehearse(dry_run, |writer| create_in(town, writer, new))
}

/// Like [`create`], for a caller that cannot know whether it has asked before, and therefore names its
/// request: the first of that name makes the bead, every other finds it.
pub fn create_once(
    town: &Town,
    key: &RequestKey,
    new: &NewBead,
    dry_run: bool,
) -> Result<CreateResult> {
    town.write_or_rehearse(dry_run, |writer| {
        let before = match writer.bead_of_request(key)? {
            Some(id) => writer.bead(&id)?,
            None => None,
        };
        if let Some(bead) = before {
            let labels = writer.labels(&bead)?;
            return Ok(CreateResult::MadeBefore(Created { bead, labels, missing: Vec::new() }));
        }
        let created = create_in(town, writer, new)?;
        writer.remember_request(key, &created.bead.id)?;
        Ok(CreateResult::Made(created))
    })
}

/// Like [`create`], as a part of a larger transaction.
pub fn create_in(town: &Town, writer: &mut Writer<'_>, new: &NewBead) -> Result<Created> {
    let BeadToCreate { mut bead, id, labels, parent } = plan(town, writer, new, writer.now())?;
    bead.id = match (id, &parent) {
        (Some(id), _) => id,
        (None, Some(parent)) if parent.has_room_for_child() => writer.next_child_id(parent)?,
        (None, _) => bead.id,
    };
    bead.uid = Uid::of_bead(&bead.id, bead.created_at);
    writer.insert_bead(&bead, EventKind::Created)?;
    for label in &labels {
        writer.add_label(&bead, label, false)?;
    }
    if let Some(parent) = parent {
        add_edge(writer, &edge(writer, &bead.id, &parent, DependencyType::ParentChild), false)?;
    }
    let mut missing = Vec::new();
    for link in &new.links {
        let other = match link.direction {
            Direction::DependsOn => resolve_target(town, writer, &link.other)?,
            Direction::DependedOnBy => {
                let other = resolve_in(town, writer, &link.other)?;
                refuse_if_over(town, writer, &other, "link")?;
                other
            }
        };
        if !writer.bead_exists(&other)? {
            missing.push(other.clone());
        }
        let (issue, target) = match link.direction {
            Direction::DependsOn => (&bead.id, &other),
            Direction::DependedOnBy => (&other, &bead.id),
        };
        check_levels(writer, issue, target, &link.kind)?;
        let mut link_edge = edge(writer, issue, target, link.kind.clone());
        link_edge.metadata.clone_from(&link.metadata);
        add_edge(writer, &link_edge, true)?;
        if link.direction == Direction::DependedOnBy {
            writer.touch_bead(&other)?;
        }
    }
    let bead = writer.bead(&bead.id)?.unwrap_or(bead);
    Ok(Created { bead, labels, missing })
}

/// The bead that will be made, before its id is certain.
struct BeadToCreate {
    /// With the id it would get if it has no parent and none was asked for.
    bead: Bead,
    /// The id that was asked for.
    id: Option<BeadId>,
    labels: Vec<String>,
    parent: Option<BeadId>,
}

fn plan(town: &Town, reader: &Reader<'_>, new: &NewBead, now: Timestamp) -> Result<BeadToCreate> {
    if new.id.is_some() && new.parent.is_some() {
        return Err(OperationError::rejected("give either an id or a parent, not both"));
    }
    let title = Title::parse(&new.title)?;
    check_texts(new)?;
    let parent = new.parent.as_ref().map(|input| require(town, reader, input)).transpose()?;
    let asked = new.id.as_deref().map(BeadId::parse).transpose()?;
    let (rig, prefix) = home(town, reader, new, parent.as_ref(), asked.as_ref())?;
    if let Some(id) = &asked {
        check_asked_id(reader, id, new.force)?;
    }
    let issue_type = new.issue_type.clone().unwrap_or_default();
    if new.check_type {
        check_type(reader, &issue_type, rig.as_ref())?;
    }
    let ephemeral = new.ephemeral || issue_type.is_infrastructure();
    if ephemeral && new.no_history {
        return Err(OperationError::rejected("a bead is either ephemeral or kept without history"));
    }
    let creator = &town.actor().name;
    let seed = IdSeed { title: title.as_str(), description: &new.description, creator, at: now };
    let pool = if ephemeral { Prefix::trusted(format!("{prefix}-wisp")) } else { prefix };
    let drawn = match &asked {
        Some(id) => id.clone(),
        None => reader.free_id(&pool, &seed)?,
    };
    let deferred = new.defer_until.is_some_and(|until| until > now);
    let mut labels = new.labels.clone();
    labels.iter().try_for_each(|label| refuse_derived(label))?;
    if let (Some(parent), false) = (&parent, new.no_inherit_labels) {
        // Where the parent stands with the scheduler says nothing about its parts.
        labels.extend(reader.labels(parent)?.into_iter().filter(|label| !is_derived(label)));
    }
    let mut seen = std::collections::HashSet::new();
    labels.retain(|label| seen.insert(label.clone()));
    labels.iter().try_for_each(|label| check_label("label", label))?;
    let bead = Bead {
        rig,
        description: new.description.clone(),
        design: new.design.clone(),
        acceptance_criteria: new.acceptance_criteria.clone(),
        notes: new.notes.clone(),
        status: if deferred { Status::Deferred } else { Status::Open },
        priority: new.priority,
        issue_type,
        assignee: new.assignee.clone(),
        owner: town.actor().owner.clone(),
        estimated_minutes: new.estimated_minutes,
        created_by: creator.clone(),
        due_at: new.due_at,
        defer_until: new.defer_until,
        external_ref: new.external_ref.clone(),
        metadata: new.metadata.clone(),
        ephemeral,
        no_history: new.no_history,
        carried: new.carried.clone(),
        ..Bead::new(drawn, title, now)
    };
    Ok(BeadToCreate { bead, id: asked, labels, parent: parent.map(|parent| parent.id) })
}

fn check_texts(new: &NewBead) -> Result<()> {
    check_text("description", &new.description)?;
    check_text("design", &new.design)?;
    check_text("acceptance criteria", &new.acceptance_criteria)?;
    check_text("notes", &new.notes)?;
    check_text("external reference", new.external_ref.as_deref().unwrap_or_default())?;
    if !new.assignee.is_empty() {
        check_label("assignee", &new.assignee)?;
    }
    Ok(())
}

/// The rig of a new bead and the prefix of its id: what was asked for, else the parent's, else that of
/// the working directory, else the only rig, else the town's own.
fn home(
    town: &Town,
    reader: &Reader<'_>,
    new: &NewBead,
    parent: Option<&Bead>,
    asked: Option<&BeadId>,
) -> Result<(Option<RigSlug>, Prefix)> {
    let rigs = reader.rigs()?;
    if let Some(name) = &new.rig {
        let rig = named_rig(town, &rigs, name)?;
        return Ok((Some(rig.slug), rig.prefix));
    }
    if let Some(id) = asked {
        return Ok((reader.rig_of_id(id)?, Prefix::trusted(id.guessed_prefix().to_owned())));
    }
    if let Some(parent) = parent {
        let prefix = Prefix::trusted(parent.id.guessed_prefix().to_owned());
        return Ok((parent.rig.clone(), prefix));
    }
    let only = || {
        let mut own = rigs.iter().filter(|rig| rig.slug != RigSlug::inbox());
        own.next().filter(|_| own.next().is_none()).cloned()
    };
    Ok(match town.rig_here(&rigs).or_else(only) {
        Some(rig) => (Some(rig.slug), rig.prefix),
        None => (None, Prefix::town()),
    })
}

/// The rig that a person names: by its name, its prefix or, as other implementations do, its directory.
pub(super) fn named_rig(town: &Town, rigs: &[Rig], name: &str) -> Result<Rig> {
    let named = |rig: &&Rig| rig.slug.as_str() == name || rig.prefix.as_str() == name;
    let by_path = || name.contains('/').then(|| town.rig_at(rigs, Path::new(name))).flatten();
    rigs.iter().find(named).cloned().or_else(by_path).ok_or_else(|| OperationError::NoRig {
        name: name.to_owned(),
        known: rigs.iter().map(|rig| rig.slug.to_string()).collect(),
    })
}

fn check_asked_id(reader: &Reader<'_>, id: &BeadId, force: bool) -> Result<()> {
    if reader.context(id.as_str())?.is_some() {
        return Err(OperationError::rejected(format!("{id} is the name of a sling context")));
    }
    let rigs = reader.rigs()?;
    let prefixes = rigs.iter().map(|rig| rig.prefix.as_str()).chain([Prefix::TOWN]);
    let known: Vec<&str> = prefixes.collect();
    if !force && !known.iter().any(|prefix| id.has_prefix(prefix)) {
        return Err(OperationError::rejected(format!(
            "{id} has none of the known prefixes ({}); use --force to create it anyway",
            known.join(", ")
        )));
    }
    Ok(())
}
