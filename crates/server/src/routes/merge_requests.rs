//! Merge requests: what they are, how they got there, and what they change.

use axum::extract::{OriginalUri, Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use gt_api::{
    FailedCheckDocument, MergeRequestDocument, MergeRequestStoryDocument, RequestDiffDocument,
};
use gt_core::merging::{MergeRequest, MergeRequestId, RequestHold, RequestState};
use gt_daemon::views;
use gt_execution::merge_queue::{self, LineEntry, RequestFilter};
use gt_town::{Town, rigs};

use crate::answer::json;
use crate::problem::{PendingProblem, RequestProblem};
use crate::query::QueryParameters;
use crate::service::SharedService;

use super::work::next_page;

/// The most requests of a page, and how many there are if nothing is said.
const LIMIT_MAX: u64 = 1000;
const LIMIT_DEFAULT: u64 = 100;
/// The most bytes of a change that are sent.
const DIFF_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Everything that a list can be asked for.
const PARAMETERS: &[&str] = &["rig", "state", "limit", "cursor"];

/// The name of a request in an address.
pub(super) fn request_id(text: &str) -> Result<MergeRequestId, Box<RequestProblem>> {
    MergeRequestId::parse(text)
        .map_err(|wrong| RequestProblem::malformed_field("id", wrong.to_string()))
}

/// The request of this name.
pub(super) fn existing(
    town: &Town,
    id: &MergeRequestId,
) -> Result<MergeRequest, Box<RequestProblem>> {
    let found = town.read(|reader| Ok(reader.merge_request(id)?))?;
    found.ok_or_else(|| RequestProblem::not_found(format!("there is no merge request {id}")))
}

/// The document of a request as it is now.
pub(super) fn document_of(
    town: &Town,
    request: &MergeRequest,
) -> Result<MergeRequestDocument, Box<RequestProblem>> {
    let bead = town.read(|reader| Ok(reader.bead(&request.id.bead)?))?;
    let title = bead.map(|bead| bead.title.to_string()).unwrap_or_default();
    Ok(MergeRequestDocument::new(request, &title, None))
}

/// List merge requests
///
/// The newest first. Those that wait for their turn have their place in line.
#[utoipa::path(
    get,
    path = "/api/v1/merge-requests",
    tag = "merge requests",
    params(
        ("rig" = Option<String>, Query, description = "Only those of this rig"),
        ("state" = Option<String>, Query, pattern = "^(open|queued|building|checking|landing|landed|review|conflict|failed|held|cancelled|superseded)$", description = "Only those in this state; open for all that are not over"),
        ("limit" = Option<u64>, Query, minimum = 1, maximum = 1000, description = "At most so many, 1 to 1000, 100 unless said; the header Link says where the next page is"),
        ("cursor" = Option<u64>, Query, minimum = 1, maximum = 9_223_372_036_854_775_807_i64, description = "Where to go on, from Link"),
    ),
    responses(
        (status = 200, description = "The requests.", body = Vec<MergeRequestDocument>),
        (status = 400, description = "A parameter is wrong."),
        (status = 404, description = "There is no such rig."),
    )
)]
pub(super) async fn list(
    State(service): State<SharedService>,
    OriginalUri(uri): OriginalUri,
    mut query: QueryParameters,
) -> Result<Response, PendingProblem> {
    let limit = match query.take_number("limit")? {
        None => LIMIT_DEFAULT,
        Some(limit @ 1..=LIMIT_MAX) => limit,
        Some(other) => {
            let detail = format!("{other} is not between 1 and {LIMIT_MAX}");
            return Err(RequestProblem::malformed_field("limit", detail).into());
        }
    };
    let limit = usize::try_from(limit).unwrap_or(1);
    let before = query.take_number("cursor")?;
    let rig = query.take("rig")?;
    let state = query.take("state")?;
    if let Some(state) = &state {
        check_state(state)?;
    }
    query.finish(PARAMETERS)?;
    let read = move |town: &Town| {
        let rig = rig.map(|name| town.read(|reader| gt_town::rig_names::require(reader, &name)));
        let filter = RequestFilter { rig: rig.transpose()?.map(|rig| rig.slug), state };
        merge_queue::requests(town, before, &filter, limit)
    };
    let entries = service.ask(read).await?;
    let documents: Vec<MergeRequestDocument> = entries
        .iter()
        .map(|LineEntry { request, title, position }| {
            MergeRequestDocument::new(request, title, *position)
        })
        .collect();
    let page = json(StatusCode::OK, &documents);
    match entries.last().filter(|_| entries.len() == limit) {
        Some(last) => {
            let link = next_page(&uri, last.request.position);
            Ok(([(header::LINK, link)], page).into_response())
        }
        None => Ok(page),
    }
}

fn check_state(name: &str) -> Result<(), Box<RequestProblem>> {
    let held = if name == "held" { RequestHold::Paused.as_str() } else { "" };
    if name == "open" {
        return Ok(());
    }
    RequestState::parse(name, held)
        .map(drop)
        .map_err(|wrong| RequestProblem::malformed_field("state", wrong.to_string()))
}

/// Show how a merge request got where it is
#[utoipa::path(
    get,
    path = "/api/v1/merge-requests/{id}",
    tag = "merge requests",
    params(("id" = String, Path, pattern = "^.+@[1-9][0-9]*$", description = "A merge request such as gt-abc@1")),
    responses((status = 200, description = "The request, its candidate and its reviews.", body = MergeRequestStoryDocument))
)]
pub(super) async fn get(
    State(service): State<SharedService>,
    Path(id): Path<String>,
) -> Result<Response, PendingProblem> {
    let id = request_id(&id)?;
    let read = move |town: &Town| {
        existing(town, &id)?;
        let story = merge_queue::story(town, &id.to_string())?;
        let checks = rigs::checks(town, &story.request.rig)?;
        Ok::<_, Box<RequestProblem>>((story, checks))
    };
    let (story, rig_checks) = service.ask(read).await?;
    let story = MergeRequestStoryDocument {
        rig_checks: rig_checks.into_iter().map(|check| check.name).collect(),
        ..views::story_document(&story)
    };
    Ok(json(StatusCode::OK, &story))
}

/// Show the output of the check that failed with a merge request
#[utoipa::path(
    get,
    path = "/api/v1/merge-requests/{id}/log",
    tag = "merge requests",
    params(("id" = String, Path, pattern = "^.+@[1-9][0-9]*$", description = "A merge request such as gt-abc@1")),
    responses((status = 200, description = "The check and its output.", body = FailedCheckDocument))
)]
pub(super) async fn log(
    State(service): State<SharedService>,
    Path(id): Path<String>,
) -> Result<Response, PendingProblem> {
    let id = request_id(&id)?;
    let read = move |town: &Town| {
        existing(town, &id)?;
        let found = merge_queue::failed_check(town, &id.to_string())?;
        found.ok_or_else(|| RequestProblem::not_found(format!("no check has failed with {id}")))
    };
    let (run, output) = service.ask(read).await?;
    let document = FailedCheckDocument {
        check: run.name,
        commit: run.commit,
        exit_code: run.exit_code.map(i64::from),
        log: run.log,
        output,
    };
    Ok(json(StatusCode::OK, &document))
}

/// Show the change of a merge request
#[utoipa::path(
    get,
    path = "/api/v1/merge-requests/{id}/diff",
    tag = "merge requests",
    params(("id" = String, Path, pattern = "^.+@[1-9][0-9]*$", description = "A merge request such as gt-abc@1")),
    responses(
        (status = 200, description = "The change.", body = RequestDiffDocument),
        (status = 409, description = "Its commits are not here."),
    )
)]
pub(super) async fn diff(
    State(service): State<SharedService>,
    Path(id): Path<String>,
) -> Result<Response, PendingProblem> {
    let id = request_id(&id)?;
    let read = move |town: &Town| {
        let request = existing(town, &id)?;
        let size = merge_queue::change_size(town, &request)?;
        let change = merge_queue::change(town, &request)?;
        Ok::<_, Box<RequestProblem>>((request, size, change))
    };
    let (request, size, change) = service.ask(read).await?;
    let shown = &change[..change.len().min(DIFF_BYTES_MAX)];
    let document = RequestDiffDocument {
        request: request.id.to_string(),
        base: request.base,
        commit: request.accepted,
        files: size.files,
        insertions: size.insertions,
        deletions: size.deletions,
        paths: size.paths,
        diff: String::from_utf8_lossy(shown).into_owned(),
        truncated: shown.len() < change.len(),
    };
    Ok(json(StatusCode::OK, &document))
}
