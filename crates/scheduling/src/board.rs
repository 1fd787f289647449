//! The board: the first beads of each lane, and why each does not go on.

use std::collections::HashMap;
use std::time::Duration;

use gt_core::board::BoardLane;
use gt_core::decide::WaitReason;
use gt_core::merging::{MergeRequest, RequestState};
use gt_core::schedule::{Context, Run};
use gt_core::{Bead, BeadId, RigSlug, Timestamp};
use gt_store::{BoardFilter, Reader};

use crate::convoy_planning::{TrackedBead, tracked_with_contexts};
use crate::dispatch::{DispatchInputs, SchedulingSnapshot};
use crate::queue::remedy;
use gt_town::{Result, Town};

/// How long a bead stays in the lane of those that landed.
const LANDED_SHOWN_FOR: Duration = Duration::from_hours(7 * 24);

/// The beads that a board is about.
#[derive(Debug, Clone, Default)]
pub struct BoardRequest {
    /// Only those of this rig.
    pub rig: Option<RigSlug>,
    /// Only those that this convoy tracks.
    pub convoy: Option<BeadId>,
    /// The most beads of each lane.
    pub limit: usize,
}

impl BoardRequest {
    fn filter(&self, now: Timestamp) -> BoardFilter {
        BoardFilter {
            rig: self.rig.clone(),
            convoy: self.convoy.clone(),
            now,
            landed_since: now.minus(LANDED_SHOWN_FOR),
            limit: self.limit,
        }
    }
}

/// A lane with its first beads.
#[derive(Debug, Clone)]
pub struct LaneOfBoard {
    /// The lane.
    pub lane: BoardLane,
    /// How many beads it has.
    pub total: u64,
    /// The first of them.
    pub cards: Vec<BoardCard>,
}

/// A bead on the board.
#[derive(Debug, Clone)]
pub struct BoardCard {
    /// The bead.
    pub bead: Bead,
    /// The convoy that tracks it, with its title; the first of several.
    pub convoy: Option<(BeadId, String)>,
    /// Since when it stands in its lane, as far as that is known.
    pub since: Timestamp,
    /// The first reason why it does not go on.
    pub reason: Option<WaitReason>,
    /// The action that ends that.
    pub ends: Option<String>,
    /// Its live run.
    pub run: Option<Run>,
    /// Its merge request: the one that is not over, or the one that landed.
    pub request: Option<MergeRequest>,
}

/// How many beads each lane has.
pub fn board_counts(town: &Town, request: &BoardRequest) -> Result<Vec<(BoardLane, u64)>> {
    let filter = request.filter(town.now());
    town.read(|reader| {
        let count = |lane| Ok((lane, reader.board_count(lane, &filter)?));
        BoardLane::ALL.into_iter().map(count).collect()
    })
}

/// The lanes of the board.
pub fn board(town: &Town, request: &BoardRequest) -> Result<Vec<LaneOfBoard>> {
    let inputs = DispatchInputs::read(town)?;
    town.read(|reader| {
        let now = town.now();
        let snapshot = SchedulingSnapshot::read_for_daemon(reader, &inputs, now)?;
        let filter = request.filter(now);
        let mut lanes = Vec::new();
        for lane in BoardLane::ALL {
            let ids = reader.board_lane(lane, &filter)?;
            lanes.push(LaneOfBoard {
                lane,
                total: reader.board_count(lane, &filter)?,
                cards: cards(reader, &snapshot, lane, &ids)?,
            });
        }
        Ok(lanes)
    })
}

fn cards(
    reader: &Reader<'_>,
    snapshot: &SchedulingSnapshot,
    lane: BoardLane,
    ids: &[BeadId],
) -> Result<Vec<BoardCard>> {
    let convoys = convoys_of(reader, ids)?;
    let mut cards = Vec::new();
    for (one, context) in tracked_with_contexts(reader, snapshot, reader.bead_rows(ids)?)? {
        let mut card = card(lane, one, context.as_ref());
        card.convoy = convoys.get(&card.bead.id).cloned();
        if lane == BoardLane::Landed {
            let requests = reader.merge_requests_of(&card.bead.id)?;
            card.request =
                requests.into_iter().find(|request| request.state == RequestState::Landed);
        }
        cards.push(card);
    }
    Ok(cards)
}

fn card(lane: BoardLane, one: TrackedBead, context: Option<&Context>) -> BoardCard {
    let context = context.filter(|context| context.closed.is_none());
    let TrackedBead { row, run, request, reasons, .. } = one;
    let bead = row.bead;
    let since = match lane {
        BoardLane::Running => run.as_ref().map(|run| run.created_at).or(bead.started_at),
        BoardLane::Review | BoardLane::Queue => request.as_ref().map(|one| one.changed_at),
        BoardLane::Ready => context.map(|context| context.enqueued_at),
        BoardLane::Landed => bead.closed_at,
        BoardLane::Blocked => None,
    };
    let reason = reasons.into_iter().next();
    let ends = reason.as_ref().map(|reason| remedy(reason, &bead, context.is_some()));
    BoardCard {
        since: since.unwrap_or(bead.updated_at),
        convoy: None,
        reason,
        ends,
        run,
        request,
        bead,
    }
}

/// The convoy of each of these beads that has one, with its title.
fn convoys_of(reader: &Reader<'_>, ids: &[BeadId]) -> Result<HashMap<BeadId, (BeadId, String)>> {
    let pairs = reader.convoys_of(ids)?;
    let mut convoys: Vec<BeadId> = pairs.iter().map(|(_, convoy)| convoy.clone()).collect();
    convoys.sort_unstable();
    convoys.dedup();
    let titles = reader.member_rows(&convoys)?.into_iter();
    let titles: HashMap<BeadId, String> =
        titles.map(|row| (row.id, row.title.to_string())).collect();
    let mut found = HashMap::new();
    for (bead, convoy) in pairs {
        let title = titles.get(&convoy).cloned().unwrap_or_default();
        found.entry(bead).or_insert((convoy, title));
    }
    Ok(found)
}
