//! Agents that pull: the next item, and heartbeats.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::Response;
use gt_api::{
    HeartbeatAnswerDocument, HeartbeatDocument, NextAnswerDocument, NextDocument, OverdueDocument,
    ReleaseDocument, StaleCheckDocument, WorkItemDocument,
};
use gt_core::Json;
use gt_core::work::{Lease, ProjectRef, RunRef, work_type};
use gt_workqueue::work::{self, Heartbeat, NextRequest, NextWork, NoWork, TakenItem};
use tokio::time::Instant;

use super::work::reference;
use crate::answer::{self, in_body, json};
use crate::auth::RequestCaller;
use crate::body::{BodyFields, ChangeRequest};
use crate::metrics::GaugeGuard;
use crate::middleware::LONG_POLL_MAX;
use crate::problem::{PendingProblem, RequestProblem};
use crate::query::QueryParameters;
use crate::service::{RoomKind, Service};

/// Ask for the next thing to do
///
/// The most urgent item that fits and can be done now is in progress from then on, and the agent's for as long as its lease
/// holds: a heartbeat renews it, and what is not renewed is queued again. If there is nothing, `wait_s` waits for it.
#[utoipa::path(
    post,
    path = "/work/next",
    tag = "agents",
    params(("dispatched" = Option<bool>, Query, description = "Only what was dispatched to this agent")),
    request_body = NextDocument,
    responses(
        (status = 200, description = "An item, or null and why.", body = NextAnswerDocument),
        (status = 403, description = "The token is that of another agent."),
        (status = 409, description = "The agent has something in progress."),
    )
)]
pub(super) async fn next(
    mut query: QueryParameters,
    ChangeRequest { service, caller, body }: ChangeRequest,
) -> Result<Response, PendingProblem> {
    let dispatched = query.take("dispatched")?;
    query.finish(&["dispatched"])?;
    let dispatched = match dispatched.as_deref() {
        None | Some("false") => false,
        Some("true") => true,
        Some(_) => {
            let detail = "this must be true or false";
            return Err(RequestProblem::malformed_field("dispatched", detail).into());
        }
    };
    let (request, wait) = next_request(&body, dispatched)?;
    let _place = service.rooms.enter(RoomKind::Waiting)?;
    let until = Instant::now() + wait;
    let wanted = request.kinds.iter().map(|kind| kind.as_str().to_owned()).collect();
    let line = service.lines.join((wanted, request.project.as_ref().map(ToString::to_string)));
    let mut chances = service.news.chances();
    // First, so that nothing that happens during the look is missed.
    let mut seen = *chances.borrow_and_update();
    let mut nothing = match ask_for_work(&service, &caller, &request).await? {
        NextWork::Item(taken) => return Ok(given(&taken)),
        NextWork::Nothing(nothing) => nothing,
    };
    let mut ended = std::pin::pin!(service.keys.ended(&service, &caller));
    let _waiting = GaugeGuard::new(Arc::clone(&service.metrics), |metrics| &metrics.waiting);
    loop {
        let may_be_more = tokio::select! {
            biased;
            problem = &mut ended => return Err(problem.into()),
            () = service.stopping.cancelled() => false,
            () = tokio::time::sleep_until(until) => false,
            changed = chances.changed() => changed.is_ok(),
        };
        if !may_be_more {
            let answer = NextAnswerDocument::nothing(nothing.code(), nothing.to_string());
            return Ok(json(StatusCode::OK, &answer));
        }
        seen = (*chances.borrow_and_update()).max(seen);
        let Some(_turn) = line.turn(seen).await else { continue };
        match ask_for_work(&service, &caller, &request).await? {
            NextWork::Item(taken) => return Ok(given(&taken)),
            NextWork::Nothing(none) => {
                // Work that is meant for others is a reason of its own: what is not for this agent may be for the next.
                if none == NoWork::Empty {
                    line.found_nothing(seen);
                }
                nothing = none;
            }
        }
    }
}

async fn ask_for_work(
    service: &Service,
    caller: &RequestCaller,
    request: &NextRequest,
) -> Result<NextWork, Box<RequestProblem>> {
    let asked = request.clone();
    service.change(caller, move |town| work::next(town, asked).map_err(in_body)).await
}

fn given(taken: &TakenItem) -> Response {
    let TakenItem { item, run_uid, lease_expires_at, .. } = taken;
    json(StatusCode::OK, &NextAnswerDocument::taken(item, *run_uid, *lease_expires_at))
}

fn next_request(
    body: &Json,
    dispatched: bool,
) -> Result<(NextRequest, Duration), Box<RequestProblem>> {
    let mut fields = BodyFields::of(body, "")?;
    let agent = fields.required("agent");
    let mut kinds = Vec::new();
    for kind in fields.texts("types") {
        kinds.extend(fields.read("types", work_type(&kind)));
    }
    let project = fields.text("project_id");
    let project = project.and_then(|id| fields.read("project_id", ProjectRef::parse(&id)));
    let lease = lease(&mut fields).unwrap_or_default();
    let wait = match fields.integer("wait_s") {
        None => Duration::ZERO,
        Some(seconds) => u64::try_from(seconds)
            .map(Duration::from_secs)
            .ok()
            .filter(|wait| *wait <= LONG_POLL_MAX)
            .unwrap_or_else(|| {
                let most = LONG_POLL_MAX.as_secs();
                fields.wrong("wait_s", format!("{seconds} seconds are not between 0 and {most}"));
                Duration::ZERO
            }),
    };
    fields.check()?;
    Ok((NextRequest { agent, kinds, project, dispatched, lease }, wait))
}

fn lease(fields: &mut BodyFields) -> Option<Lease> {
    let seconds = fields.integer("lease_s")?;
    fields.read("lease_s", Lease::of_seconds(seconds))
}

/// The run that a heartbeat is for; nothing if that is missing or wrong, which `fields` knows then.
fn run(fields: &mut BodyFields) -> Option<RunRef> {
    let run = fields.required("run_id");
    if run.is_empty() { None } else { fields.read("run_id", RunRef::parse(&run)) }
}

fn run_is_missing() -> Box<RequestProblem> {
    RequestProblem::invalid_field("run_id", "this is required")
}

/// Say that an item is still being done
#[utoipa::path(
    post,
    path = "/work/{id}/heartbeat",
    tag = "agents",
    params(("id" = String, Path, format = "uuid", description = "A UUID, or the id of the bead")),
    request_body = HeartbeatDocument,
    responses(
        (status = 200, description = "Until when it is the agent's now.", body = HeartbeatAnswerDocument),
        (status = 409, description = "It is not the agent's any more: stop."),
    )
)]
pub(super) async fn heartbeat(
    Path(id): Path<String>,
    ChangeRequest { service, caller, body }: ChangeRequest,
) -> Result<Response, PendingProblem> {
    let reference = reference(&id)?;
    let mut fields = BodyFields::of(&body, "")?;
    let run = run(&mut fields);
    let lease = lease(&mut fields);
    let adopts = fields.flag("adopt");
    fields.check()?;
    let run = run.ok_or_else(run_is_missing)?;
    let beat = Heartbeat { run, lease, adopts };
    let until =
        service.change(&caller, move |town| work::heartbeat(town, &reference, beat)).await?;
    Ok(json(StatusCode::OK, &HeartbeatAnswerDocument { lease_expires_at: until.into() }))
}

/// Give an item back
///
/// The item that an agent has in this run is queued again for any agent, and the run is cancelled. For agents that are
/// asked to stop: the next one need not wait for the end of the lease.
#[utoipa::path(
    post,
    path = "/work/{id}/release",
    tag = "agents",
    params(("id" = String, Path, format = "uuid", description = "A UUID, or the id of the bead")),
    request_body = ReleaseDocument,
    responses(
        (status = 200, description = "The item as it is now.", body = WorkItemDocument),
        (status = 409, description = "It is not the agent's any more."),
    )
)]
pub(super) async fn release(
    Path(id): Path<String>,
    ChangeRequest { service, caller, body }: ChangeRequest,
) -> Result<Response, PendingProblem> {
    let reference = reference(&id)?;
    let mut fields = BodyFields::of(&body, "")?;
    let run = run(&mut fields);
    fields.check()?;
    let run = run.ok_or_else(run_is_missing)?;
    let given = service.change(&caller, move |town| work::release(town, &reference, run)).await?;
    Ok(answer::item(StatusCode::OK, &given))
}

/// Look after work whose agents say nothing any more
///
/// Blocks what has no lease and has been silent for too long, and queues again what leases have ended for. The server does
/// the same by itself.
#[utoipa::path(
    post,
    path = "/work/stale-check",
    tag = "work",
    request_body = StaleCheckDocument,
    responses(
        (status = 200, description = "What was found.", body = OverdueDocument),
    )
)]
pub(super) async fn stale_check(
    ChangeRequest { service, caller, body }: ChangeRequest,
) -> Result<Response, PendingProblem> {
    BodyFields::of(&body, "")?.check()?;
    let found = service.change(&caller, work::check_overdue).await?;
    Ok(json(StatusCode::OK, &OverdueDocument::of(&found.stale, &found.lost, found.due)))
}
