//! The line: the contexts that would start next, found without looking at those that cannot.

use std::collections::VecDeque;

use gt_core::schedule::Context;
use gt_store::{Lane, Reader};

use super::snapshot::SchedulingSnapshot;
use gt_town::Result;

/// How many contexts of a lane are fetched first, and at most at once. Most cycles want few of one lane; a cycle that
/// wants more wants many.
const PAGE_FIRST: usize = 4;
const PAGE_MAX: usize = 128;

/// Contexts that no stored reason keeps, merged from their lanes in the order in which they go. Within a lane that is
/// the order of their numbers, in every order of the scheduler.
pub(crate) struct MergedLanes {
    lanes: Vec<LaneCursor>,
}

struct LaneCursor {
    /// Nothing for those that were handed over instead of fetched.
    lane: Option<Lane>,
    waiting: VecDeque<Context>,
    reached: u64,
    /// How many are fetched next; none once there are no more.
    page: usize,
}

impl MergedLanes {
    /// The line as it is now. Contexts whose date has passed, but which are not woken yet, are in it too.
    pub(crate) fn open(reader: &Reader<'_>, snapshot: &SchedulingSnapshot) -> Result<Self> {
        let lanes = reader.lanes()?.into_iter().filter(|lane| snapshot.has_candidates(lane));
        let mut lanes: Vec<LaneCursor> = lanes
            .map(|lane| LaneCursor {
                lane: Some(lane),
                waiting: VecDeque::new(),
                reached: 0,
                page: PAGE_FIRST,
            })
            .collect();
        let far = snapshot.now.plus(snapshot.control.longest_wait);
        let due = reader.contexts_due(snapshot.now, far)?;
        if !due.is_empty() {
            lanes.extend(Self::of(snapshot, due).lanes);
        }
        Ok(Self { lanes })
    }

    /// A line of these alone.
    pub(crate) fn of(snapshot: &SchedulingSnapshot, mut contexts: Vec<Context>) -> Self {
        let order = snapshot.order();
        contexts.sort_by(|a, b| {
            order.compare(
                &SchedulingSnapshot::place_in_line(a),
                &SchedulingSnapshot::place_in_line(b),
                snapshot.now,
            )
        });
        Self {
            lanes: vec![LaneCursor { lane: None, waiting: contexts.into(), reached: 0, page: 0 }],
        }
    }

    /// The next context in line, before any cap is checked.
    pub(crate) fn next(
        &mut self,
        reader: &Reader<'_>,
        snapshot: &SchedulingSnapshot,
    ) -> Result<Option<Context>> {
        // A lane that has become full since the line was opened stays full until the cycle ends.
        self.lanes
            .retain(|cursor| cursor.lane.as_ref().is_none_or(|lane| snapshot.has_candidates(lane)));
        for cursor in &mut self.lanes {
            cursor.fill(reader)?;
        }
        let place =
            |cursor: &LaneCursor| cursor.waiting.front().map(SchedulingSnapshot::place_in_line);
        let order = snapshot.order();
        let first = self
            .lanes
            .iter()
            .enumerate()
            .filter_map(|(at, cursor)| Some((at, place(cursor)?)))
            .min_by(|(_, a), (_, b)| order.compare(a, b, snapshot.now));
        Ok(first.and_then(|(at, _)| self.lanes[at].waiting.pop_front()))
    }
}

impl LaneCursor {
    fn fill(&mut self, reader: &Reader<'_>) -> Result<()> {
        let Some(lane) = self.lane.as_ref().filter(|_| self.waiting.is_empty() && self.page > 0)
        else {
            return Ok(());
        };
        let page = reader.lane_after(lane, self.reached, self.page)?;
        self.page = if page.len() < self.page { 0 } else { PAGE_MAX.min(self.page * 4) };
        self.reached = page.last().map_or(self.reached, |context| context.number);
        self.waiting = page.into();
        Ok(())
    }
}
