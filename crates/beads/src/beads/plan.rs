//! Making many beads at once from a file.

use gt_core::plan::{BeadReference, Plan, Planned, PlannedEdge};
use gt_core::{BeadChangeKind, Invalid, Json, Timestamp};
use gt_store::Writer;

use super::create::{Created, NewBead, create_in};
use crate::dependencies::{Added, put_in};
use crate::lookup::resolve_in;
use crate::lookup::resolve_target;
use crate::transition_check::refuse_if_over;
use gt_town::{OperationError, Result, Town};

/// The options for every bead of a plan.
#[derive(Debug, Clone, Default)]
pub struct PlanOptions {
    /// The rig they belong to.
    pub rig: Option<String>,
    /// Accept ids whose prefix is not registered.
    pub force: bool,
    /// Do not take over the labels of parents.
    pub no_inherit_labels: bool,
    /// All of them are ephemeral, so that they may be purged.
    pub ephemeral: bool,
    /// Say what would be made, and make nothing.
    pub dry_run: bool,
}

/// The beads made from a plan.
#[derive(Debug, Clone)]
pub struct CreatedPlan {
    /// The beads, in the order of the plan.
    pub beads: Vec<Created>,
    /// The dependencies besides those to parents.
    pub dependencies: Vec<Added>,
}

/// Makes every bead of a plan with all its dependencies, or nothing at all.
pub fn create_all(town: &Town, plan: &Plan, options: &PlanOptions) -> Result<CreatedPlan> {
    town.write_or_rehearse(options.dry_run, |writer| {
        let beads = plan.beads();
        let mut made: Vec<Option<Created>> = beads.iter().map(|_| None).collect();
        for index in plan.parents_first() {
            let bead = &beads[*index];
            let parent = match &bead.parent {
                None => None,
                Some(BeadReference::Existing(input)) => Some(input.clone()),
                Some(BeadReference::Planned(at)) => {
                    // Parents come first, so this one is made.
                    made[*at].as_ref().map(|parent| parent.bead.id.to_string())
                }
            };
            let created = new_bead(bead, parent, options, writer.now())
                .and_then(|new| create_in(town, writer, &new));
            made[*index] = Some(created.map_err(|error| error.at(&bead.draft.place))?);
        }
        let mut made: Vec<Created> = made.into_iter().flatten().collect();
        let edges = plan.edges();
        let mut dependencies: Vec<Option<Added>> = edges.iter().map(|_| None).collect();
        for index in plan.dependents_first() {
            let edge = &edges[*index];
            let added = link(town, writer, &made, edge);
            dependencies[*index] = Some(added.map_err(|error| error.at(&edge.place))?);
        }
        let dependencies = dependencies.into_iter().flatten().collect();
        for (index, bead) in beads.iter().enumerate() {
            let done = complete(writer, &made, index, bead);
            made[index].bead = done.map_err(|error| error.at(&bead.draft.place))?;
        }
        Ok(CreatedPlan { beads: made, dependencies })
    })
}

fn new_bead(
    planned: &Planned,
    parent: Option<String>,
    options: &PlanOptions,
    now: Timestamp,
) -> Result<NewBead> {
    let draft = &planned.draft;
    let instant = |text: &Option<String>| -> Result<Option<Timestamp>, Invalid> {
        text.as_deref().map(|text| Timestamp::parse_relative(text, now)).transpose()
    };
    let assignee = if draft.assign_last { String::new() } else { draft.assignee.clone() };
    Ok(NewBead {
        title: draft.title.clone(),
        description: draft.description.clone(),
        design: draft.design.clone(),
        acceptance_criteria: draft.acceptance_criteria.clone(),
        notes: draft.notes.clone(),
        issue_type: draft.issue_type.clone(),
        check_type: true,
        priority: draft.priority,
        assignee,
        labels: draft.labels.clone(),
        id: draft.id.clone(),
        force: options.force,
        parent,
        no_inherit_labels: options.no_inherit_labels,
        links: Vec::new(),
        rig: options.rig.clone(),
        ephemeral: draft.ephemeral || options.ephemeral,
        no_history: false,
        external_ref: draft.external_ref.clone(),
        estimated_minutes: draft.estimated_minutes,
        due_at: instant(&draft.due)?,
        defer_until: instant(&draft.defer)?,
        metadata: draft.metadata.clone(),
        carried: Vec::new(),
    })
}

/// Makes a dependency between beads that may be new.
fn link(
    town: &Town,
    writer: &mut Writer<'_>,
    made: &[Created],
    edge: &PlannedEdge,
) -> Result<Added> {
    let issue = match &edge.issue {
        BeadReference::Planned(at) => made[*at].bead.id.clone(),
        BeadReference::Existing(input) => {
            let issue = resolve_in(town, writer, input)?;
            refuse_if_over(town, writer, &issue, "link")?;
            issue
        }
    };
    let target = match &edge.target {
        BeadReference::Planned(at) => made[*at].bead.id.clone(),
        BeadReference::Existing(input) => resolve_target(town, writer, input)?,
    };
    put_in(writer, issue, target, &edge.kind, false)
}

/// Does what had to wait until every bead of the plan has its id.
fn complete(
    writer: &mut Writer<'_>,
    made: &[Created],
    index: usize,
    planned: &Planned,
) -> Result<gt_core::Bead> {
    let id = &made[index].bead.id;
    let old = writer.bead(id)?.ok_or_else(|| OperationError::NoBead(id.to_string()))?;
    let mut new = old.clone();
    for (field, at) in &planned.metadata_refs {
        let metadata = new.metadata.take().unwrap_or_else(|| Json::object(&[]));
        new.metadata = Some(metadata.with(field, &Json::string(made[*at].bead.id.as_str())));
    }
    if planned.draft.assign_last && !planned.draft.assignee.is_empty() {
        gt_core::bead::check_label("assignee", &planned.draft.assignee)?;
        new.assignee.clone_from(&planned.draft.assignee);
    }
    writer.save_bead(&old, &new, BeadChangeKind::Updated)?;
    Ok(new)
}
