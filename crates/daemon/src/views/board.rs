//! The board as a document.

use std::collections::HashMap;

use gt_api::{
    BoardCardDocument, BoardDocument, BoardLaneDocument, CardConvoyDocument, CardReasonDocument,
    CardRequestDocument, CardRunDocument, UtcTime,
};
use gt_core::decide::WaitReason;
use gt_core::merging::MergeRequestId;

use gt_execution::merge_queue;
use gt_scheduling::board::{BoardCard, BoardRequest, LaneOfBoard, board};
use gt_town::{Result, Town};

/// The lanes of the board, with the places of merge requests in line.
pub fn board_document(town: &Town, request: &BoardRequest) -> Result<BoardDocument> {
    let lanes = board(town, request)?;
    let (line, _) = merge_queue::line(town)?;
    let places: HashMap<MergeRequestId, u64> =
        line.into_iter().filter_map(|entry| Some((entry.request.id, entry.position?))).collect();
    let lanes = lanes.into_iter().map(|LaneOfBoard { lane, total, cards }| BoardLaneDocument {
        lane: lane.as_str().to_owned(),
        total,
        items: cards.into_iter().map(|card| card_document(card, &places)).collect(),
    });
    Ok(BoardDocument { lanes: lanes.collect() })
}

fn card_document(card: BoardCard, places: &HashMap<MergeRequestId, u64>) -> BoardCardDocument {
    let BoardCard { bead, convoy, since, reason, ends, run, request } = card;
    BoardCardDocument {
        bead: bead.id.to_string(),
        title: bead.title.to_string(),
        rig: bead.rig.map(|rig| rig.to_string()),
        convoy: convoy.map(|(id, title)| CardConvoyDocument { id: id.to_string(), title }),
        priority: bead.priority.number(),
        issue_type: bead.issue_type.to_string(),
        since: since.into(),
        reason: reason.as_ref().map(reason_document),
        ends,
        run: run.map(|run| CardRunDocument {
            id: run.id.to_string(),
            agent: run.agent,
            state: run.state.as_str().to_owned(),
            silent_since: run.silent_since.map(Into::into),
        }),
        request: request.map(|request| CardRequestDocument {
            position: places.get(&request.id).copied(),
            id: request.id.to_string(),
            state: request.state.as_str().to_owned(),
            landed: Some(request.landed).filter(|commit| !commit.is_empty()),
        }),
    }
}

fn reason_document(reason: &WaitReason) -> CardReasonDocument {
    CardReasonDocument {
        code: reason.code().to_owned(),
        text: reason.to_string(),
        until: reason.until().map(UtcTime),
    }
}
