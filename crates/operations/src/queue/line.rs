//! Everything that is scheduled, in the order in which it goes, with every reason why it has not gone.

use std::collections::HashMap;

use gt_core::decide::WaitReason;
use gt_core::limits::PAGE_BEADS;
use gt_core::schedule::{Context, SlingParameters};
use gt_core::{BeadId, RigSlug};
use gt_store::{BeadRow, Reader};

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
    fn fault(&mut self, town: &Town, scene: &Scene, queued: &Queued) -> Option<WaitReason> {
        let (row, rig) = (queued.row.as_ref()?, scene.rig(&queued.context.rig)?);
        let parameters = SlingParameters { convoy: None, ..queued.context.parameters.clone() };
        let tried = self.0.entry((rig.slug.clone(), parameters)).or_insert_with(|| {
            let cooked = cook(town, rig, &row.bead, &queued.context.parameters);
            cooked.err().map(|error| error.to_string())
        });
        tried.clone().map(WaitReason::CannotStart)
    }
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
        let mut rows = reader.bead_rows(&ids)?.into_iter().peekable();
        for context in page {
            let row = rows.next_if(|row| row.bead.id == context.bead);
            let reasons = match &row {
                Some(row) => scene.reasons(context, &row.bead, &BeadFacts::of_row(reader, row)?),
                None => Vec::new(),
            };
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
        entry.reasons.extend(kitchen.fault(town, &scene, entry));
        let full = scene.admission(&entry.context);
        if full.is_empty() && entry.reasons.is_empty() {
            scene.suppose_started(&entry.context);
        }
        entry.reasons.extend(full);
    }
    Ok(queued)
}
