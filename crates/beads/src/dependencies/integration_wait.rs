//! Beads outside of a convoy with an integration branch wait for the convoy, and not for its members alone.

use std::collections::BTreeSet;

use gt_core::bead::Carried;
use gt_core::decide::integration_base;
use gt_core::merging::RequestState;
use gt_core::merging::{convoy_of_branch, integration_branch};
use gt_core::{BeadId, Dependency, DependencyType, Status};
use gt_store::Writer;

use super::add_edge;
use gt_town::Result;

/// Lets the beads that wait for a member wait for its convoy too, where the member lands on the integration branch of the
/// convoy: their own base does not have its work before. Beads of the convoy, and beads that its open members wait for, go
/// on.
pub fn hold_outside_dependents_in(
    writer: &mut Writer<'_>,
    member: &BeadId,
    target: &str,
) -> Result<()> {
    hold_in(writer, member, target, None)
}

/// The same for one bead that is made to wait for a member which has landed on an integration branch before.
pub(super) fn hold_late_dependent_in(
    writer: &mut Writer<'_>,
    issue: &BeadId,
    member: &BeadId,
) -> Result<()> {
    if writer.bead(member)?.is_none_or(|member| member.status != Status::Closed) {
        return Ok(());
    }
    for request in writer.merge_requests_of(member)? {
        let is_integrated = convoy_of_branch(&request.target).is_some();
        if is_integrated && request.state == RequestState::Landed {
            hold_in(writer, member, &request.target, Some(issue))?;
        }
    }
    Ok(())
}

fn hold_in(
    writer: &mut Writer<'_>,
    member: &BeadId,
    target: &str,
    only: Option<&BeadId>,
) -> Result<()> {
    let edges = writer.edges_to(member)?;
    let convoys = edges.iter().filter(|edge| edge.kind == DependencyType::Tracks);
    for convoy in convoys.map(|edge| &edge.issue) {
        let is_integrated = writer.bead(convoy)?.is_some_and(|bead| {
            bead.status != Status::Closed
                && integration_base(&bead).is_some()
                && integration_branch(&bead.id) == target
        });
        if !is_integrated {
            continue;
        }
        let inside = needed_beads(writer, convoy)?;
        let waiting = edges
            .iter()
            .filter(|edge| edge.kind.can_block() && only.is_none_or(|only| edge.issue == *only));
        for issue in waiting.map(|edge| &edge.issue).filter(|issue| !inside.contains(issue)) {
            hold(writer, issue, convoy)?;
        }
    }
    Ok(())
}

/// The members of a convoy, and everything that its open members wait for.
fn needed_beads(writer: &Writer<'_>, convoy: &BeadId) -> Result<BTreeSet<BeadId>> {
    let edges = writer.edges_from(convoy)?.into_iter();
    let tracked = edges.filter(|edge| edge.kind == DependencyType::Tracks);
    let mut needed: BTreeSet<BeadId> = tracked.map(|edge| edge.target).collect();
    let mut left: Vec<BeadId> = needed.iter().cloned().collect();
    while let Some(bead) = left.pop() {
        if writer.bead(&bead)?.is_none_or(|bead| bead.status == Status::Closed) {
            continue;
        }
        for target in writer.blocking_targets(&bead)? {
            if needed.insert(target.clone()) {
                left.push(target);
            }
        }
    }
    Ok(needed)
}

fn hold(writer: &mut Writer<'_>, issue: &BeadId, convoy: &BeadId) -> Result<()> {
    let is_over = writer.bead(issue)?.is_none_or(|bead| bead.status == Status::Closed);
    if is_over || writer.edges_from(issue)?.iter().any(|edge| edge.target == *convoy) {
        return Ok(());
    }
    let edge = Dependency {
        issue: issue.clone(),
        target: convoy.clone(),
        kind: DependencyType::Blocks,
        created_at: writer.now(),
        created_by: writer.actor().to_owned(),
        metadata: String::new(),
        thread_id: String::new(),
        carried: Carried::default(),
    };
    match add_edge(writer, &edge, true) {
        Err(error) if error.is_of_store() => Err(error),
        // A circle would hold it up for ever; it goes on as before.
        Ok(_) | Err(_) => Ok(()),
    }
}
