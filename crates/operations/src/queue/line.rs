//! Everything that is scheduled, in the order in which it goes, with every reason why it has not gone.

use gt_core::BeadId;
use gt_core::decide::WaitReason;
use gt_core::limits::PAGE_BEADS;
use gt_core::schedule::Context;
use gt_store::{BeadRow, Reader};

use crate::beads::BeadFacts;
use crate::dispatch::{Caller, Overrides, Scene};
use crate::settings::file_layers;
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
    /// Whether only room is missing, or the scheduler as a whole holds it.
    pub fn is_ready(&self) -> bool {
        self.reasons.iter().all(|reason| reason.is_capacity() || reason.is_control())
    }
}

/// Everything that is scheduled, in the order in which it goes.
pub fn list(town: &Town, caller: Caller) -> Result<Vec<Queued>> {
    let files = file_layers(town)?;
    town.read(|reader| {
        let scene = town.scene(reader, &files, &Overrides::default(), caller)?;
        line(reader, scene)
    })
}

/// The whole line as a cycle would go through it: whoever is admitted counts for those behind.
pub(super) fn line(reader: &Reader<'_>, mut scene: Scene) -> Result<Vec<Queued>> {
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
    for entry in &mut queued {
        if !entry.is_ready() {
            continue;
        }
        let full = scene.admission(&entry.context);
        if full.is_empty() && entry.reasons.is_empty() {
            scene.suppose_started(&entry.context);
        }
        entry.reasons.extend(full);
    }
    Ok(queued)
}
