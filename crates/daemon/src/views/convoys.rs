//! Convoys as documents.

use std::time::Duration;

use gt_api::{
    ConvoyDocument, ConvoyStatusDocument, EstimateDocument, ReasonTextDocument, SpentDocument,
    TrackedDocument, UtcTime, WaveDocument,
};
use gt_core::Timestamp;
use gt_core::schedule::Run;
use gt_core::time::format_duration;

use crate::daemon;
use gt_beads::convoys::Convoy;
use gt_scheduling::convoy_planning::{ConvoyStatus, DurationEstimate, TrackedBead, TrackedState};
use gt_scheduling::queue;
use gt_town::{Result, Town};

/// Reads a convoy. Without a daemon nothing starts, so no estimate would be true.
pub fn current_convoy(town: &Town, id: &str) -> Result<ConvoyStatus> {
    let mut convoy_status = gt_scheduling::convoy_planning::status(town, id)?;
    if convoy_status.estimate.is_some() && daemon::absence(town, &queue::status(town)?)?.is_some() {
        convoy_status.estimate = None;
    }
    Ok(convoy_status)
}

/// A convoy by itself.
pub fn convoy_document(convoy: &Convoy) -> ConvoyDocument {
    let (bead, is_owned, paused) = (&convoy.bead, convoy.is_owned(), convoy.paused.as_ref());
    ConvoyDocument {
        id: bead.id.to_string(),
        title: bead.title.to_string(),
        status: bead.status.to_string(),
        owned: is_owned,
        lifecycle: if is_owned { "caller-managed" } else { "system-managed" }.to_owned(),
        merge_strategy: convoy.metadata_text("merge").unwrap_or_default(),
        base_branch: convoy.metadata_text("base_branch").unwrap_or_default(),
        review: convoy.requires_review(),
        integration: convoy.is_integrated(),
        close_reason: bead.close_reason.clone(),
        created_at: bead.created_at.into(),
        closed_at: bead.closed_at.map(UtcTime),
        completed: convoy.members.completed(),
        failed: convoy.members.failed,
        total: convoy.members.total,
        landings: convoy.landings,
        owner: bead.owner.clone(),
        cap: convoy.cap.into(),
        paused: paused.is_some(),
        paused_by: paused.map(|pause| pause.by.clone()),
        paused_at: paused.map(|pause| pause.at.into()),
        watchers: texts(convoy.watchers()),
    }
}

/// A convoy and everything that it tracks.
pub fn convoy_status_document(convoy_status: &ConvoyStatus) -> ConvoyStatusDocument {
    let ids =
        |places: &[usize]| texts(places.iter().map(|at| &convoy_status.tracked[*at].row.bead.id));
    let states = TrackedState::ALL.into_iter();
    let waves = convoy_status.waves.iter().enumerate();
    ConvoyStatusDocument {
        convoy: convoy_document(&convoy_status.convoy),
        states: states
            .map(|state| (state.as_str().to_owned(), convoy_status.count(state)))
            .collect(),
        waves: waves
            .map(|(at, wave)| WaveDocument { number: at as u64 + 1, beads: ids(wave) })
            .collect(),
        critical_path: ids(&convoy_status.critical_path),
        estimate: convoy_status
            .estimate
            .as_ref()
            .map(|estimate| estimate_document(estimate, convoy_status.eta())),
        merge_request: convoy_status.request.as_ref().map(|request| request.id.to_string()),
        spent: SpentDocument::of(&convoy_status.spent),
        tracked: convoy_status
            .tracked
            .iter()
            .map(|one| tracked(one, convoy_status.as_of))
            .collect(),
        as_of: None,
    }
}

/// How long something takes.
pub fn estimate_document(estimate: &DurationEstimate, eta: Option<Timestamp>) -> EstimateDocument {
    EstimateDocument {
        eta: eta.map(|eta| eta.floor_to_second().into()),
        remaining_seconds: estimate.remaining.as_secs(),
        left_out: estimate.left_out as u64,
    }
}

fn tracked(one: &TrackedBead, now: Timestamp) -> TrackedDocument {
    let (bead, run) = (&one.row.bead, one.run.as_ref());
    TrackedDocument {
        id: bead.id.to_string(),
        title: bead.title.to_string(),
        status: bead.status.to_string(),
        outcome: bead.outcome.map(|outcome| outcome.as_str().to_owned()),
        state: one.state.as_str().to_owned(),
        dependency_type: "tracks".to_owned(),
        issue_type: bead.issue_type.to_string(),
        blocked: bead.open_blockers > 0,
        assignee: bead.assignee.clone(),
        labels: one.row.labels.clone(),
        worker: run.map(|run| run.agent.clone()),
        worker_age: run.map(|run| lasted(run, now)),
        run: run.map(|run| run.id.to_string()),
        merge_request: one.request.as_ref().map(|request| request.id.to_string()),
        merge_state: one.merge_state().map(str::to_owned),
        wave: one.wave.map(|wave| wave as u64),
        place: one.place.map(|place| place as u64),
        blocked_by: texts(&one.blocked_by),
        reasons: one.reasons.iter().map(ReasonTextDocument::from).collect(),
        failure: one.failure.clone(),
        spent: SpentDocument::of(&one.spent),
    }
}

/// How long a run has lasted, or did: `4m10s`.
pub fn lasted(run: &Run, now: Timestamp) -> String {
    let from = run.running_at.unwrap_or(run.created_at);
    let time = run.ended_at.unwrap_or(now).since(from);
    format_duration(Duration::from_secs(time.as_secs()))
}

fn texts<T: ToString>(things: impl IntoIterator<Item = T>) -> Vec<String> {
    things.into_iter().map(|thing| thing.to_string()).collect()
}
