//! Merge queues, and what is done to the requests in them.

use axum::Extension;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use gt_api::{
    DecisionReasonDocument, MergeQueueDocument, MergeRequestDocument, QueueBranchDocument,
    QueuePauseDocument, TopDocument,
};
use gt_core::merging::MergeRequest;
use gt_daemon::{daemon, views};
use gt_execution::merge_queue::{self, MergeQueueRow};
use gt_town::{OperationError, Town};

use super::merge_requests::{document_of, existing, request_id};
use crate::answer::json;
use crate::auth::RequestCaller;
use crate::body::{BodyFields, ChangeRequest};
use crate::problem::{PendingProblem, RequestProblem};
use crate::query::QueryParameters;
use crate::service::SharedService;

/// The longest name of a branch.
const BRANCH_BYTES_MAX: usize = 250;

/// Does something to a request in the name of the caller; answers with the request as it is now.
pub(super) async fn act(
    service: &SharedService,
    caller: &RequestCaller,
    id: &str,
    action: impl FnOnce(&Town, &str) -> Result<MergeRequest, OperationError> + Send + 'static,
) -> Result<Response, PendingProblem> {
    let id = request_id(id)?;
    let act = move |town: &Town| {
        existing(town, &id)?;
        let request = action(town, &id.to_string())?;
        let absence = daemon::absence_for_request(town, &request)?;
        Ok::<_, Box<RequestProblem>>(MergeRequestDocument {
            daemon_absence: views::absence_document(absence),
            ..document_of(town, &request)?
        })
    };
    let document = service.change(caller, act).await?;
    Ok(json(StatusCode::OK, &document))
}

/// Try a merge request again now
#[utoipa::path(
    post,
    path = "/api/v1/merge-requests/{id}/retry",
    tag = "merge requests",
    params(("id" = String, Path, pattern = "^.+@[1-9][0-9]*$", description = "A merge request such as gt-abc@1")),
    responses(
        (status = 200, description = "It is in line again.", body = MergeRequestDocument),
        (status = 409, description = "It is in line, being pushed, being repaired, or over."),
    )
)]
pub(super) async fn retry(
    State(service): State<SharedService>,
    Extension(caller): Extension<RequestCaller>,
    Path(id): Path<String>,
) -> Result<Response, PendingProblem> {
    act(&service, &caller, &id, merge_queue::retry).await
}

/// Give a merge request up
///
/// Its bead is open again, and its branch stays.
#[utoipa::path(
    post,
    path = "/api/v1/merge-requests/{id}/cancel",
    tag = "merge requests",
    params(("id" = String, Path, pattern = "^.+@[1-9][0-9]*$", description = "A merge request such as gt-abc@1")),
    responses(
        (status = 200, description = "It is cancelled.", body = MergeRequestDocument),
        (status = 409, description = "It is being pushed, or over."),
    )
)]
pub(super) async fn cancel(
    State(service): State<SharedService>,
    Extension(caller): Extension<RequestCaller>,
    Path(id): Path<String>,
) -> Result<Response, PendingProblem> {
    act(&service, &caller, &id, merge_queue::cancel_request).await
}

/// Put a merge request before all others
#[utoipa::path(
    post,
    path = "/api/v1/merge-requests/{id}/top",
    tag = "merge requests",
    params(("id" = String, Path, pattern = "^.+@[1-9][0-9]*$", description = "A merge request such as gt-abc@1")),
    request_body = TopDocument,
    responses(
        (status = 200, description = "It goes before all others.", body = MergeRequestDocument),
        (status = 409, description = "It is over."),
    )
)]
pub(super) async fn top(
    Path(id): Path<String>,
    ChangeRequest { service, caller, body }: ChangeRequest,
) -> Result<Response, PendingProblem> {
    let mut fields = BodyFields::of(&body, "")?;
    let fix = fields.flag("fix");
    fields.check()?;
    act(&service, &caller, &id, move |town, id| merge_queue::put_on_top(town, id, fix)).await
}

/// Close the bead of work that people have merged, or do not want merged
#[utoipa::path(
    post,
    path = "/api/v1/merge-requests/{id}/close",
    tag = "merge requests",
    params(("id" = String, Path, pattern = "^.+@[1-9][0-9]*$", description = "A merge request such as gt-abc@1")),
    request_body = DecisionReasonDocument,
    responses(
        (status = 200, description = "It is over, and its bead is closed.", body = MergeRequestDocument),
        (status = 409, description = "It was not pushed to be merged by people."),
    )
)]
pub(super) async fn close(
    Path(id): Path<String>,
    ChangeRequest { service, caller, body }: ChangeRequest,
) -> Result<Response, PendingProblem> {
    let mut fields = BodyFields::of(&body, "")?;
    let why = fields.required_words("message");
    fields.check()?;
    act(&service, &caller, &id, move |town, id| merge_queue::close_unmerged(town, id, &why)).await
}

/// List the merge queues
#[utoipa::path(
    get,
    path = "/api/v1/queues",
    tag = "merge requests",
    responses(
        (status = 200, description = "Every queue that there ever was a request in.", body = Vec<MergeQueueDocument>),
        (status = 400, description = "There are no parameters."),
    )
)]
pub(super) async fn list(
    State(service): State<SharedService>,
    query: QueryParameters,
) -> Result<Response, PendingProblem> {
    query.finish(&[])?;
    let (_, queues) = service.ask(merge_queue::line).await?;
    let documents: Vec<MergeQueueDocument> = queues.into_iter().map(queue_document).collect();
    Ok(json(StatusCode::OK, &documents))
}

fn queue_document(queue: MergeQueueRow) -> MergeQueueDocument {
    let (red_check, red_commit) = queue.red.map(|red| (red.check, red.commit)).unzip();
    MergeQueueDocument {
        rig: queue.rig.to_string(),
        target: queue.target,
        paused: queue.paused.is_some(),
        paused_by: queue.paused.map(|(_, by)| by),
        red_check,
        red_commit,
    }
}

/// Let nothing land on a branch until it is resumed
#[utoipa::path(
    post,
    path = "/api/v1/queues/{rig}/pause",
    tag = "merge requests",
    params(("rig" = String, Path, description = "The rig")),
    request_body = QueueBranchDocument,
    responses(
        (status = 200, description = "It is paused.", body = QueuePauseDocument),
        (status = 404, description = "There is no such rig."),
        (status = 409, description = "The rig has no merge queue."),
    )
)]
pub(super) async fn pause(
    Path(rig): Path<String>,
    ChangeRequest { service, caller, body }: ChangeRequest,
) -> Result<Response, PendingProblem> {
    set_pause(&service, &caller, rig, &body, true).await
}

/// Let work land on a branch again
#[utoipa::path(
    post,
    path = "/api/v1/queues/{rig}/resume",
    tag = "merge requests",
    params(("rig" = String, Path, description = "The rig")),
    request_body = QueueBranchDocument,
    responses(
        (status = 200, description = "It goes on.", body = QueuePauseDocument),
        (status = 404, description = "There is no such rig."),
        (status = 409, description = "The rig has no merge queue."),
    )
)]
pub(super) async fn resume(
    Path(rig): Path<String>,
    ChangeRequest { service, caller, body }: ChangeRequest,
) -> Result<Response, PendingProblem> {
    set_pause(&service, &caller, rig, &body, false).await
}

async fn set_pause(
    service: &SharedService,
    caller: &RequestCaller,
    rig: String,
    body: &gt_core::Json,
    paused: bool,
) -> Result<Response, PendingProblem> {
    let mut fields = BodyFields::of(body, "")?;
    let branch = fields.text("branch");
    let is_branch = |name: &str| {
        (1..=BRANCH_BYTES_MAX).contains(&name.len()) && !name.chars().any(char::is_control)
    };
    if branch.as_deref().is_some_and(|branch| !is_branch(branch)) {
        fields.wrong("branch", "this is no name of a branch");
    }
    fields.check()?;
    let change = move |town: &Town| {
        let rig = town.read(|reader| gt_town::rig_names::require(reader, &rig))?;
        let target = branch.unwrap_or_else(|| rig.default_branch.clone());
        let changed = merge_queue::pause(town, &rig.slug, &target, paused)?;
        let rig = rig.slug.to_string();
        Ok::<_, Box<RequestProblem>>(QueuePauseDocument { rig, target, paused, changed })
    };
    let document = service.change(caller, change).await?;
    Ok(json(StatusCode::OK, &document))
}
