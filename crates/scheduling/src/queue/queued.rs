//! Everything that is scheduled, in the order in which it goes, with every reason why it has not gone.

use std::collections::HashMap;

use gt_core::decide::WaitReason;
use gt_core::limits::PAGE_BEADS;
use gt_core::schedule::{Context, SlingParameters};
use gt_core::{Bead, BeadId, RigSlug};
use gt_store::{BeadRow, Lane, Reader};

use crate::dispatch::DispatchInputs;
use crate::dispatch::{CycleCaller, SchedulingSnapshot, cook};
use gt_beads::bead_facts::BeadFacts;
use gt_town::scheduler_settings::Overrides;
use gt_town::{Result, Town};

/// A scheduled bead.
#[derive(Debug, Clone)]
pub struct QueuedBead {
    /// Its context.
    pub context: Context,
    /// The bead; none if it is gone.
    pub row: Option<BeadRow>,
    /// Every reason why it does not start; none means that the next cycle starts it.
    pub reasons: Vec<WaitReason>,
}

impl QueuedBead {
    /// Whether only room is missing, or the scheduler as a whole holds it. A context that a cycle will give up counts:
    /// only the cycle decides for good.
    pub fn is_ready(&self) -> bool {
        let given_up = |reason: &WaitReason| matches!(reason, WaitReason::CannotStart(_));
        self.reasons.iter().all(|r| r.is_capacity() || r.is_control() || given_up(r))
    }
}

/// The errors in the formulas of scheduled contexts, each formula tried once.
#[derive(Default)]
struct FormulaErrors(HashMap<(RigSlug, SlingParameters), Option<String>>);

impl FormulaErrors {
    /// Why a cycle would give this one up, if it would.
    fn fault(
        &mut self,
        town: &Town,
        snapshot: &SchedulingSnapshot,
        context: &Context,
        bead: &Bead,
    ) -> Option<WaitReason> {
        let rig = snapshot.rig(&context.rig)?;
        let parameters = SlingParameters { convoy: None, ..context.parameters.clone() };
        let tried = self.0.entry((rig.slug.clone(), parameters)).or_insert_with(|| {
            let cooked = cook(town, rig, bead, &context.parameters);
            cooked.err().map(|error| error.to_string())
        });
        tried.clone().map(WaitReason::CannotStart)
    }

    /// The further reasons that keep a context when it is its turn. A context without any reason counts for those
    /// behind it.
    fn turn(
        &mut self,
        town: &Town,
        snapshot: &mut SchedulingSnapshot,
        context: &Context,
        bead: Option<&Bead>,
        is_kept: bool,
    ) -> Vec<WaitReason> {
        let fault = bead.and_then(|bead| self.fault(town, snapshot, context, bead));
        let full = snapshot.admission(context);
        if full.is_empty() && fault.is_none() && !is_kept {
            snapshot.count_as_started(context);
        }
        fault.into_iter().chain(full).collect()
    }
}

/// The place of a context in line, and its reasons to wait besides the stored ones.
#[derive(Debug, Clone)]
pub(crate) struct QueuedContext {
    /// From 1, among those that could start if there were room.
    pub place: usize,
    /// The reasons from admission, and whether it will be given up.
    pub reasons: Vec<WaitReason>,
}

/// The places of those of these beads that could start if there were room. Beads that cannot start are not looked at,
/// and of the others only their contexts, so it costs little where many wait for something else. `awake` holds the
/// contexts without a stored reason to wait, if they were read already.
pub(crate) fn in_line(
    town: &Town,
    reader: &Reader<'_>,
    mut snapshot: SchedulingSnapshot,
    awake: Option<Vec<Context>>,
    wanted: &HashMap<&BeadId, &Bead>,
) -> Result<HashMap<BeadId, QueuedContext>> {
    let mut found = HashMap::new();
    if wanted.is_empty() {
        return Ok(found);
    }
    let far = snapshot.now.plus(snapshot.control.longest_wait);
    let due = reader.contexts_due(snapshot.now, far)?;
    let mut line = match awake {
        Some(awake) => awake,
        None => reader.contexts_in_line(usize::MAX)?,
    };
    // One that has just woken may still be kept by what no index knows.
    for context in due {
        let is_ready = match reader.bead(&context.bead)? {
            Some(bead) => {
                let facts = BeadFacts::of_bead(reader, &bead)?;
                snapshot.reasons(&context, &bead, &facts).iter().all(WaitReason::is_control)
            }
            None => false,
        };
        if is_ready {
            line.push(context);
        }
    }
    line.retain(|context| snapshot.rig_starts(&Lane::of(context)));
    let order = snapshot.order();
    line.sort_by(|a, b| {
        order.compare(
            &SchedulingSnapshot::place_in_line(a),
            &SchedulingSnapshot::place_in_line(b),
            snapshot.now,
        )
    });
    let is_held = snapshot.control.paused.is_some();
    let mut kitchen = FormulaErrors::default();
    for (at, context) in line.iter().enumerate() {
        if found.len() == wanted.len() {
            break;
        }
        let is_kept = is_held || (context.gated && !snapshot.control.gate_open);
        if let Some(bead) = wanted.get(&context.bead) {
            let reasons = kitchen.turn(town, &mut snapshot, context, Some(bead), is_kept);
            found.insert(context.bead.clone(), QueuedContext { place: at + 1, reasons });
        } else if !is_kept && snapshot.admission(context).is_empty() {
            let bead = reader.bead(&context.bead)?;
            kitchen.turn(town, &mut snapshot, context, bead.as_ref(), is_kept);
        }
    }
    Ok(found)
}

/// Everything that is scheduled, in the order in which it goes.
pub fn list(town: &Town, caller: CycleCaller) -> Result<Vec<QueuedBead>> {
    let inputs = DispatchInputs::read(town)?;
    town.read(|reader| {
        let snapshot =
            SchedulingSnapshot::read(reader, &inputs, &Overrides::default(), caller, town.now())?;
        line(town, reader, snapshot)
    })
}

/// The whole line as a cycle would go through it: an admitted context counts for those behind.
pub(super) fn line(
    town: &Town,
    reader: &Reader<'_>,
    mut snapshot: SchedulingSnapshot,
) -> Result<Vec<QueuedBead>> {
    let mut queued = Vec::new();
    let mut open = reader.open_contexts()?;
    // A context that is being started has a slot, and waits for nothing.
    open.retain(|context| !context.starting);
    for page in open.chunks(PAGE_BEADS) {
        let ids: Vec<BeadId> = page.iter().map(|context| context.bead.clone()).collect();
        let rows = reader.bead_rows(&ids)?;
        let facts = BeadFacts::of_rows(reader, &rows.iter().collect::<Vec<_>>())?;
        let mut rows = rows.into_iter().zip(facts).peekable();
        for context in page {
            let row = rows.next_if(|(row, _)| row.bead.id == context.bead);
            let reasons =
                row.as_ref().map(|(row, facts)| snapshot.reasons(context, &row.bead, facts));
            let (reasons, row) = (reasons.unwrap_or_default(), row.map(|(row, _)| row));
            queued.push(QueuedBead { context: context.clone(), row, reasons });
        }
    }
    let order = snapshot.order();
    queued.sort_by(|a, b| {
        let (a, b) = (
            SchedulingSnapshot::place_in_line(&a.context),
            SchedulingSnapshot::place_in_line(&b.context),
        );
        order.compare(&a, &b, snapshot.now)
    });
    let mut kitchen = FormulaErrors::default();
    for entry in &mut queued {
        if !entry.is_ready() {
            continue;
        }
        let (bead, is_kept) = (entry.row.as_ref().map(|row| &row.bead), !entry.reasons.is_empty());
        let more = kitchen.turn(town, &mut snapshot, &entry.context, bead, is_kept);
        entry.reasons.extend(more);
    }
    Ok(queued)
}
