//! Which polecat gets a run.

use gt_core::rig::RigState;
use gt_core::schedule::{
    Context, Polecat, RunId, TreeState, WorkerPlace, free_polecat_name, session_name,
};
use gt_core::{ExecutorKind, Rig, RigSlug};
use gt_store::{Reader, Writer};

use super::has_trees;
use super::warm::is_warm;
use crate::Result;
use crate::dispatch::Scene;

/// The place of a run in a rig with trees: the one that was asked for, else a polecat whose tree was made ready ahead,
/// else the one that rested longest and has its tree, else one without, else a new one. Called in the transaction that begins the run, so a name is never given twice.
pub(crate) fn give_place(
    writer: &mut Writer<'_>,
    scene: &Scene,
    rig: &Rig,
    context: &Context,
    host: &str,
    run: &RunId,
) -> Result<WorkerPlace> {
    let known = writer.polecats_of(&rig.slug)?;
    let name = choose(scene, rig, context.place.as_ref(), host, &known);
    let place = WorkerPlace::polecat(&rig.slug, &name)?;
    let now = writer.now();
    let polecat = known.into_iter().find(|polecat| polecat.name == name);
    let polecat = polecat.unwrap_or_else(|| unused(&rig.slug, &name, host, now));
    let moved = polecat.host != host;
    writer.put_polecat(&Polecat {
        // Elsewhere it would have another tree under the same name.
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
    scene: &Scene,
    rig: &Rig,
    asked: Option<&WorkerPlace>,
    host: &str,
    known: &[Polecat],
) -> String {
    let is_free = |name: &str| {
        let left = |place: &WorkerPlace| {
            scene.occupancy.occupant(place).is_none() && !scene.taken.contains(place)
        };
        WorkerPlace::polecat(&rig.slug, name).is_ok_and(|place| left(&place))
    };
    let rests = |is_meant: &dyn Fn(&Polecat) -> bool| {
        // A tree is where it was made.
        let is_here = |polecat: &&Polecat| polecat.host == host && is_meant(polecat);
        known.iter().filter(is_here).find(|polecat| is_free(&polecat.name))
    };
    let has = |tree: TreeState| move |polecat: &Polecat| polecat.tree == tree;
    // One whose tree could not be made, or was moved away, keeps its name in use.
    let resting = || {
        rests(&is_warm)
            .or_else(|| rests(&has(TreeState::Ready)))
            .or_else(|| rests(&has(TreeState::Absent)))
    };
    let asked = asked.and_then(WorkerPlace::polecat_name);
    let name = asked.or_else(|| resting().map(|polecat| polecat.name.as_str()));
    let is_taken = |name: &str| known.iter().any(|polecat| polecat.name == name) || !is_free(name);
    name.map_or_else(|| free_polecat_name(is_taken), ToOwned::to_owned)
}

/// The session that a run in this rig would have if it began now; nothing if it would have none, or nobody could begin one.
pub(crate) fn expected_session(
    reader: &Reader<'_>,
    scene: &Scene,
    rig: &Rig,
    asked: Option<&WorkerPlace>,
) -> Result<Option<String>> {
    let is_begun = has_trees(rig) && rig.executor == ExecutorKind::Tmux;
    if !is_begun || rig.state != RigState::Active || asked.and_then(WorkerPlace::executor).is_some()
    {
        return Ok(None);
    }
    let known = reader.polecats_of(&rig.slug)?;
    let name = choose(scene, rig, asked, scene.host(), &known);
    Ok(Some(session_name(&rig.prefix, &name)))
}

/// A polecat that nobody has had yet.
pub(super) fn unused(rig: &RigSlug, name: &str, host: &str, now: gt_core::Timestamp) -> Polecat {
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
