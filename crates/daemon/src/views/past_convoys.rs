//! Convoys as they were.

use gt_api::{
    ConvoyDocument, ConvoyGraphDocument, ConvoyStatusDocument, ConvoyTimelineDocument,
    LogPlaceDocument, TimelineRowDocument, TimelineSpanDocument, TrackedDocument, UtcTime,
};
use gt_core::event::convoy_replay::TimelineSpan;
use gt_core::{BeadId, Status};

use super::convoy_document;
use gt_beads::convoys::Convoy;
use gt_scheduling::convoy_planning::{ConvoyTimeline, LogPlace, PastConvoy, TrackedState};

/// A convoy as it was, in the form of the present one. Without what events do not tell: waves, estimates, labels and money.
pub fn past_convoy_document(past: &PastConvoy) -> ConvoyStatusDocument {
    let members = past.replay.members();
    let states = TrackedState::ALL.into_iter();
    ConvoyStatusDocument {
        convoy: past_head(past, &members),
        states: states.map(|state| (state.as_str().to_owned(), past.count(state))).collect(),
        waves: Vec::new(),
        critical_path: Vec::new(),
        estimate: None,
        merge_request: past
            .replay
            .work
            .get(&past.convoy.id)
            .and_then(|work| work.request.as_ref())
            .map(|request| request.id.clone()),
        spent: None,
        tracked: members.iter().map(|bead| past_tracked(past, bead)).collect(),
        as_of: Some(place_document(past.place)),
    }
}

/// The drawing of a convoy as it was.
pub fn past_graph_document(past: &PastConvoy) -> ConvoyGraphDocument {
    let (id, title) = (past.convoy.id.to_string(), past.title(&past.convoy.id));
    ConvoyGraphDocument {
        as_of: Some(place_document(past.place)),
        ..ConvoyGraphDocument::of(id, title, &past.graph())
    }
}

/// The time of each bead of a convoy.
pub fn timeline_document(timeline: &ConvoyTimeline) -> ConvoyTimelineDocument {
    let span = |span: &TimelineSpan| TimelineSpanDocument {
        kind: span.kind.as_str().to_owned(),
        from: span.from.into(),
        to: span.to.map(UtcTime),
        run: span.run.clone(),
    };
    let rows = timeline.rows.iter().map(|(bead, title, spans)| TimelineRowDocument {
        bead: bead.to_string(),
        title: title.clone(),
        spans: spans.iter().map(span).collect(),
    });
    ConvoyTimelineDocument {
        id: timeline.convoy.id.to_string(),
        title: timeline.convoy.title.to_string(),
        first: place_document(timeline.log.first),
        last: place_document(timeline.log.last),
        rows: rows.collect(),
    }
}

/// An event's place in the log.
pub fn place_document(place: LogPlace) -> LogPlaceDocument {
    LogPlaceDocument { number: place.number, at: place.at.into() }
}

/// The convoy itself, with the counts of that time.
fn past_head(past: &PastConvoy, members: &[&BeadId]) -> ConvoyDocument {
    let now = convoy_document(&Convoy::of(past.convoy.clone(), None));
    let then = past.replay.replay.beads.get(&past.convoy.id);
    let is_closed = then.is_some_and(|then| then.status == Status::Closed);
    ConvoyDocument {
        title: past.title(&past.convoy.id),
        status: then.map(|then| then.status.to_string()).unwrap_or_default(),
        closed_at: now.closed_at.filter(|_| is_closed),
        close_reason: if is_closed { now.close_reason } else { String::new() },
        completed: past.count(TrackedState::Done),
        failed: members
            .iter()
            .filter(|bead| past.replay.state(bead) == TrackedState::Failed)
            .count() as u64,
        total: members.len() as u64,
        paused: past.replay.is_convoy_paused,
        ..now
    }
}

fn past_tracked(past: &PastConvoy, bead: &BeadId) -> TrackedDocument {
    let known = past.replay.replay.beads.get(bead);
    let work = past.replay.work.get(bead);
    let run = work.and_then(|work| work.run.as_ref());
    let request = work.and_then(|work| work.request.as_ref());
    let blocked_by = past.replay.blocked_by(bead);
    TrackedDocument {
        id: bead.to_string(),
        title: past.title(bead),
        status: known.map(|known| known.status.to_string()).unwrap_or_default(),
        outcome: known.and_then(|known| known.outcome).map(|outcome| outcome.as_str().to_owned()),
        state: past.replay.state(bead).as_str().to_owned(),
        dependency_type: "tracks".to_owned(),
        issue_type: known.map(|known| known.issue_type.to_string()).unwrap_or_default(),
        blocked: !blocked_by.is_empty(),
        assignee: known.map(|known| known.assignee.clone()).unwrap_or_default(),
        labels: Vec::new(),
        worker: run.map(|run| run.agent.clone()).filter(|agent| !agent.is_empty()),
        worker_age: None,
        run: run.map(|run| run.id.clone()),
        merge_request: request.map(|request| request.id.clone()),
        merge_state: request.map(|request| request.state.clone()),
        wave: None,
        place: None,
        blocked_by: blocked_by.into_iter().map(ToString::to_string).collect(),
        reasons: Vec::new(),
        failure: String::new(),
        spent: None,
    }
}
