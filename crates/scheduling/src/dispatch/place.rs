//! Choosing the polecat of a run.

use gt_core::schedule::{Context, Polecat, RunId, TreeState, WorkerPlace, free_polecat_name};
use gt_core::{Rig, RigSlug};
use gt_store::Writer;

use super::SchedulingSnapshot;
use gt_town::Result;

/// The place of a run in a rig with trees: the one that was asked for, else a polecat with a warm tree, else the one
/// that was idle longest and has its tree, else one without, else a new one. Called in the transaction that begins
/// the run, so a name is never given twice.
pub(crate) fn give_place(
    writer: &mut Writer<'_>,
    snapshot: &SchedulingSnapshot,
    rig: &Rig,
    context: &Context,
    host: &str,
    run: &RunId,
) -> Result<WorkerPlace> {
    let known = writer.polecats_of(&rig.slug)?;
    let name = choose(snapshot, rig, context.place.as_ref(), host, &known);
    let place = WorkerPlace::polecat(&rig.slug, &name)?;
    let now = writer.now();
    let polecat = known.into_iter().find(|polecat| polecat.name == name);
    let polecat = polecat.unwrap_or_else(|| unused_polecat(&rig.slug, &name, host, now));
    let moved = polecat.host != host;
    writer.put_polecat(&Polecat {
        // On another machine it would have another tree under the same name.
        tree: if moved { TreeState::Absent } else { polecat.tree },
        host: host.to_owned(),
        updated_at: now,
        last_run: polecat.last_run.or_else(|| Some(run.clone())),
        ..polecat
    })?;
    Ok(place)
}

/// The name of the polecat that a run would be given now.
fn choose(
    snapshot: &SchedulingSnapshot,
    rig: &Rig,
    asked: Option<&WorkerPlace>,
    host: &str,
    known: &[Polecat],
) -> String {
    let is_free = |name: &str| {
        let left = |place: &WorkerPlace| {
            snapshot.occupancy.occupant(place).is_none() && !snapshot.taken.contains(place)
        };
        WorkerPlace::polecat(&rig.slug, name).is_ok_and(|place| left(&place))
    };
    let rests = |is_meant: &dyn Fn(&Polecat) -> bool| {
        // A tree is on the machine where it was made.
        let is_here = |polecat: &&Polecat| polecat.host == host && is_meant(polecat);
        known.iter().filter(is_here).find(|polecat| is_free(&polecat.name))
    };
    let has = |tree: TreeState| move |polecat: &Polecat| polecat.tree == tree;
    // A polecat whose tree could not be made, or was moved away, keeps its name in use.
    let resting = || {
        rests(&Polecat::is_warm)
            .or_else(|| rests(&has(TreeState::Ready)))
            .or_else(|| rests(&has(TreeState::Absent)))
    };
    let asked = asked.and_then(WorkerPlace::polecat_name);
    let name = asked.or_else(|| resting().map(|polecat| polecat.name.as_str()));
    let is_taken = |name: &str| known.iter().any(|polecat| polecat.name == name) || !is_free(name);
    name.map_or_else(|| free_polecat_name(is_taken), ToOwned::to_owned)
}

/// A polecat that has had no run yet.
pub fn unused_polecat(rig: &RigSlug, name: &str, host: &str, now: gt_core::Timestamp) -> Polecat {
    Polecat {
        rig: rig.clone(),
        name: name.to_owned(),
        host: host.to_owned(),
        tree: TreeState::Absent,
        branch: String::new(),
        last_run: None,
        created_at: now,
        updated_at: now,
    }
}
