//! Submitting work.

use gt_core::bead::{RequestKey, check_label, check_text};
use gt_core::decide::IdSeed;
use gt_core::work::{ItemRef, NewWork, WorkItem, check_agent};
use gt_core::{Bead, BeadId, DependencyType, EventKind, Invalid, Json, Rig, RigSlug, limits};
use gt_store::Writer;

use super::error::{WorkError, WorkResult};
use super::projects::home_in;
use super::requests::{NewItem, Submission, Submitted};
use super::require_item;
use gt_beads::dependencies::add_edge;
use gt_beads::lookup::edge;
use gt_town::{Actor, Town};

/// Submits work, all of it or none. A request with a name that was made before is not made again.
pub fn submit(town: &Town, submission: Submission) -> WorkResult<Submitted> {
    let Submission { items, key, is_list } = submission;
    let count = items.len();
    if !(1..=limits::WORK_BULK_MAX).contains(&count) {
        let message = format!("submit 1 to {} items at a time, not {count}", limits::WORK_BULK_MAX);
        return Err(WorkError::Invalid { field: "items", message });
    }
    let placed = move |at, error: WorkError| if is_list { error.of_item(at) } else { error };
    let checked = items.into_iter().enumerate();
    let checked = checked.map(|(at, item)| check(item).map_err(|error| placed(at, error)));
    let checked = checked.collect::<WorkResult<Vec<_>>>()?;
    town.submit(move |town, writer| {
        let write = |writer: &mut Writer<'_>| write(town.actor(), writer, &checked, placed);
        match &key {
            None => Ok(Submitted { items: write(writer)?, before: false }),
            Some(key) => once(writer, &checked, key, write),
        }
    })
}

/// An item that says about itself only what can be kept.
struct CheckedItem {
    new: NewItem,
    work: NewWork,
}

/// Refuses a payload that the store or its readers cannot take.
pub(super) fn check_payload(payload: &Json) -> Result<(), Invalid> {
    if gt_records::contains_nul(payload.as_str()) {
        return Err(Invalid::new("the payload contains a NUL character"));
    }
    let most = limits::PAYLOAD_DEPTH_MAX;
    if payload.depth() > most {
        return Err(Invalid(format!("the payload is nested more than {most} levels deep")));
    }
    Ok(())
}

fn check(new: NewItem) -> WorkResult<CheckedItem> {
    let work = NewWork::check(&new.kind, &new.description);
    let work = work.map_err(|(field, error)| WorkError::invalid(field, &error))?;
    if let Some(agent) = &new.agent {
        check_agent(agent).map_err(|error| WorkError::invalid("assigned_agent", &error))?;
    }
    if let Some(creator) = &new.created_by {
        let checked = check_label("creator", creator);
        checked.map_err(|error| WorkError::invalid("created_by", &error))?;
    }
    check_text("notes", &new.notes).map_err(|error| WorkError::invalid("notes", &error))?;
    if let Some(payload) = &new.payload {
        check_payload(payload).map_err(|error| WorkError::invalid("payload", &error))?;
    }
    if new.depends_on.len() > limits::WORK_DEPENDENCIES_MAX {
        let most = limits::WORK_DEPENDENCIES_MAX;
        let why = Invalid(format!("an item depends on at most {most} others"));
        return Err(WorkError::invalid("depends_on", &why));
    }
    Ok(CheckedItem { new, work })
}

fn once(
    writer: &mut Writer<'_>,
    checked: &[CheckedItem],
    key: &RequestKey,
    write: impl Fn(&mut Writer<'_>) -> WorkResult<Vec<WorkItem>>,
) -> WorkResult<Submitted> {
    let fingerprint = fingerprint(checked);
    if let Some((first, before)) = writer.request_made(key)? {
        if before != fingerprint {
            let message = format!(
                "a request named {key} made {first}, and asked for something else; give this one another name"
            );
            return Err(WorkError::Invalid { field: "idempotency_key", message });
        }
        let mut items = Vec::new();
        for at in 0..checked.len() {
            if let Some(bead) = writer.bead_of_request(&key.nth(at))? {
                items.push(require_item(writer, &bead.into())?);
            }
        }
        return Ok(Submitted { items, before: true });
    }
    let items = write(writer)?;
    for (at, item) in items.iter().enumerate() {
        writer.remember_request_for(&key.nth(at), &item.bead, &fingerprint)?;
    }
    Ok(Submitted { items, before: false })
}

/// Tells different submissions apart; the same in every version of this program.
fn fingerprint(checked: &[CheckedItem]) -> String {
    // Something that is empty is not the same as nothing.
    let optional =
        |value: Option<String>| value.map_or_else(String::new, |value| format!("={value}"));
    let mut said: Vec<String> = Vec::new();
    for CheckedItem { new, .. } in checked {
        said.extend([
            optional(new.project.as_ref().map(ToString::to_string)),
            optional(new.payload.as_ref().map(ToString::to_string)),
            optional(new.agent.clone()),
            optional(new.created_by.clone()),
            new.kind.clone(),
            new.description.clone(),
            new.priority.to_string(),
            new.notes.clone(),
            new.depends_on.len().to_string(),
        ]);
        said.extend(new.depends_on.iter().map(ToString::to_string));
    }
    RequestKey::fingerprint(&said)
}

/// Writes them; `placed` says of which item something is wrong.
fn write(
    actor: &Actor,
    writer: &mut Writer<'_>,
    checked: &[CheckedItem],
    placed: impl Fn(usize, WorkError) -> WorkError,
) -> WorkResult<Vec<WorkItem>> {
    let mut home: Option<(&NewItem, Rig)> = None;
    let mut items = Vec::with_capacity(checked.len());
    for (at, item) in checked.iter().enumerate() {
        let rig = match &home {
            Some((before, rig)) if before.project == item.new.project => rig.clone(),
            _ => home_in(writer, item.new.project.as_ref()).map_err(|error| placed(at, error))?,
        };
        let written = write_one(actor, writer, item, &rig, at);
        items.push(written.map_err(|error| placed(at, error))?);
        home = Some((&item.new, rig));
    }
    Ok(items)
}

fn write_one(
    actor: &Actor,
    writer: &mut Writer<'_>,
    CheckedItem { new, work }: &CheckedItem,
    rig: &Rig,
    at: usize,
) -> WorkResult<WorkItem> {
    let now = writer.now();
    let creator = new.created_by.as_deref().unwrap_or(&actor.name);
    // Items that are submitted together may have the same text.
    let drawn_by = format!("{creator} {at}");
    let seed = IdSeed {
        title: work.title.as_str(),
        description: &work.description,
        creator: &drawn_by,
        at: now,
    };
    let id = writer.free_id(&rig.prefix, &seed)?;
    let one_line = work.description == work.title.as_str();
    let bead = Bead {
        rig: Some(rig.slug.clone()),
        // A bead without a description shows its title.
        description: if one_line { String::new() } else { work.description.clone() },
        notes: new.notes.clone(),
        priority: new.priority.of_bead(),
        issue_type: work.kind.clone(),
        assignee: new.agent.clone().unwrap_or_default(),
        owner: actor.owner.clone(),
        created_by: creator.to_owned(),
        metadata: new.payload.clone(),
        ..Bead::new(id, work.title.clone(), now)
    };
    writer.insert_bead(&bead, EventKind::Created)?;
    if !new.depends_on.is_empty() {
        for target in &new.depends_on {
            let target = target_in(writer, target)?;
            let edge = edge(writer, &bead.id, &target, DependencyType::Blocks);
            add_edge(writer, &edge, true)?;
        }
        return require_item(writer, &bead.id.into());
    }
    let project = (rig.slug.as_str() != RigSlug::INBOX).then_some(rig.uid);
    Ok(WorkItem::of(bead, project, None))
}

/// The bead that an item depends on; it must exist.
fn target_in(writer: &Writer<'_>, reference: &ItemRef) -> WorkResult<BeadId> {
    let found = match reference {
        ItemRef::Uid(uid) => writer.bead_by_uid(uid)?,
        ItemRef::Bead(bead) => writer.bead_exists(bead)?.then(|| bead.clone()),
    };
    found.ok_or_else(|| WorkError::Invalid {
        field: "depends_on",
        message: format!("there is no work item {reference}"),
    })
}
