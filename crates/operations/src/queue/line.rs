//! Everything that is scheduled, in the order in which it goes, with every reason why it has not gone.

use std::collections::HashMap;

use gt_core::decide::WaitReason;
use gt_core::limits::PAGE_BEADS;
use gt_core::schedule::{Context, SlingParameters};
use gt_core::{Bead, BeadId, RigSlug};
use gt_store::{BeadRow, Lane, Reader};

use crate::beads::BeadFacts;
use crate::dispatch::{Caller, Overrides, Scene, cook};
use crate::{Result, Town};

/// A scheduled bead.
#[derive(Debug, Clone)]
pub struct Queued {
    /// Its context.
    pub context: Context,
    /// The bead; none if it is gone.
    pub row: Option<BeadRow>,
    /// Every reason why it does not start; none means that the next cycle starts it.
    pub reasons: Vec<WaitReason>,
}

impl Queued {
    /// Whether only room is missing, or the scheduler as a whole holds it. What a cycle will give up counts:
    /// only the cycle finds out for good.
    pub fn is_ready(&self) -> bool {
        let given_up = |reason: &WaitReason| matches!(reason, WaitReason::CannotStart(_));
        self.reasons.iter().all(|r| r.is_capacity() || r.is_control() || given_up(r))
    }
}

/// What is wrong with the formulas of what is scheduled, each tried once.
#[derive(Default)]
struct Kitchen(HashMap<(RigSlug, SlingParameters), Option<String>>);

impl Kitchen {
    /// Why a cycle would give this one up, if it would.
    fn fault(
        &mut self,
        town: &Town,
        scene: &Scene,
        context: &Context,
        bead: &Bead,
    ) -> Option<WaitReason> {
        let rig = scene.rig(&context.rig)?;
        let parameters = SlingParameters { convoy: None, ..context.parameters.clone() };
        let tried = self.0.entry((rig.slug.clone(), parameters)).or_insert_with(|| {
            let cooked = cook(town, rig, bead, &context.parameters);
            cooked.err().map(|error| error.to_string())
        });
        tried.clone().map(WaitReason::CannotStart)
    }

    /// What keeps a context besides what it was kept by already, when it is its turn; one that nothing keeps counts for
    /// those behind it.
    fn turn(
        &mut self,
        town: &Town,
        scene: &mut Scene,
        context: &Context,
        bead: Option<&Bead>,
        is_kept: bool,
    ) -> Vec<WaitReason> {
        let fault = bead.and_then(|bead| self.fault(town, scene, context, bead));
        let full = scene.admission(context);
        if full.is_empty() && fault.is_none() && !is_kept {
            scene.suppose_started(context);
        }
        fault.into_iter().chain(full).collect()
    }
}

/// Where somebody stands in line, and what keeps them there besides what is written down.
#[derive(Debug, Clone)]
pub(crate) struct InLine {
    /// From 1, among those that could start if there were room.
    pub(crate) place: usize,
    /// What admission says, and whether it will be given up.
    pub(crate) reasons: Vec<WaitReason>,
}

/// Where those of these beads stand that could start if there were room. What cannot start is not looked at, and of the
/// others no more than their contexts, so it costs little where many wait for something else. `awake` is what nothing written
/// down keeps, if it was read already.
pub(crate) fn in_line(
    town: &Town,
    reader: &Reader<'_>,
    mut scene: Scene,
    awake: Option<Vec<Context>>,
    wanted: &HashMap<&BeadId, &Bead>,
) -> Result<HashMap<BeadId, InLine>> {
    let mut found = HashMap::new();
    if wanted.is_empty() {
        return Ok(found);
    }
    let far = scene.now.plus(scene.control.longest_wait);
    let due = reader.contexts_due(scene.now, far)?;
    let mut line = match awake {
        Some(awake) => awake,
        None => reader.awake_contexts()?,
    };
    // One that has just woken may still be kept by what no index knows.
    for context in due {
        let is_ready = match reader.bead(&context.bead)? {
            Some(bead) => {
                let facts = BeadFacts::of_bead(reader, &bead)?;
                scene.reasons(&context, &bead, &facts).iter().all(WaitReason::is_control)
            }
            None => false,
        };
        if is_ready {
            line.push(context);
        }
    }
    line.retain(|context| scene.rig_starts(&Lane::of(context)));
    let order = scene.order();
    line.sort_by(|a, b| {
        order.compare(&Scene::place_in_line(a), &Scene::place_in_line(b), scene.now)
    });
    let is_held = scene.control.paused.is_some();
    let mut kitchen = Kitchen::default();
    for (at, context) in line.iter().enumerate() {
        if found.len() == wanted.len() {
            break;
        }
        let is_kept = is_held || (context.gated && !scene.control.gate_open);
        if let Some(bead) = wanted.get(&context.bead) {
            let reasons = kitchen.turn(town, &mut scene, context, Some(bead), is_kept);
            found.insert(context.bead.clone(), InLine { place: at + 1, reasons });
        } else if !is_kept && scene.admission(context).is_empty() {
            let bead = reader.bead(&context.bead)?;
            kitchen.turn(town, &mut scene, context, bead.as_ref(), is_kept);
        }
    }
    Ok(found)
}

/// Everything that is scheduled, in the order in which it goes.
pub fn list(town: &Town, caller: Caller) -> Result<Vec<Queued>> {
    let around = town.surroundings()?;
    town.read(|reader| {
        let scene = town.scene(reader, &around, &Overrides::default(), caller)?;
        line(town, reader, scene)
    })
}

/// The whole line as a cycle would go through it: whoever is admitted counts for those behind.
pub(super) fn line(town: &Town, reader: &Reader<'_>, mut scene: Scene) -> Result<Vec<Queued>> {
    let mut queued = Vec::new();
    let mut open = reader.open_contexts()?;
    // Whoever is being started has a slot, and waits for nothing.
    open.retain(|context| !context.starting);
    for page in open.chunks(PAGE_BEADS) {
        let ids: Vec<BeadId> = page.iter().map(|context| context.bead.clone()).collect();
        let rows = reader.bead_rows(&ids)?;
        let facts = BeadFacts::of_rows(reader, &rows.iter().collect::<Vec<_>>())?;
        let mut rows = rows.into_iter().zip(facts).peekable();
        for context in page {
            let row = rows.next_if(|(row, _)| row.bead.id == context.bead);
            let reasons = row.as_ref().map(|(row, facts)| scene.reasons(context, &row.bead, facts));
            let (reasons, row) = (reasons.unwrap_or_default(), row.map(|(row, _)| row));
            queued.push(Queued { context: context.clone(), row, reasons });
        }
    }
    let order = scene.order();
    queued.sort_by(|a, b| {
        let (a, b) = (Scene::place_in_line(&a.context), Scene::place_in_line(&b.context));
        order.compare(&a, &b, scene.now)
    });
    let mut kitchen = Kitchen::default();
    for entry in &mut queued {
        if !entry.is_ready() {
            continue;
        }
        let (bead, is_kept) = (entry.row.as_ref().map(|row| &row.bead), !entry.reasons.is_empty());
        let more = kitchen.turn(town, &mut scene, &entry.context, bead, is_kept);
        entry.reasons.extend(more);
    }
    Ok(queued)
}
