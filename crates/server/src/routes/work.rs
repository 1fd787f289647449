//! Work items.

use std::fmt::Display;

use axum::Extension;
use axum::body::Body;
use axum::extract::{OriginalUri, Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse as _, Response};
use futures_util::StreamExt as _;
use futures_util::stream::unfold;
use gt_api::{
    FieldError, ReasonDocument, SubmissionDocument, SubmittedDocument, UtcTime, WhyDocument,
    WorkChangeDocument, WorkDetailsDocument, WorkItemDocument, to_json,
};
use gt_beads::beads::FieldEdit;
use gt_core::bead::RequestKey;
use gt_core::work::{
    Cursor, ItemRef, ProjectRef, RunRef, Version, WorkFilter, WorkItem, WorkPriority, WorkStatus,
    work_type,
};
use gt_core::{ExecutorKind, Json, Outcome, Timestamp};
use gt_town::Town;
use gt_workqueue::work::{
    self, ItemChange, ItemPage, MissingKind, NewItem, Precondition, Submission, WorkError,
};

use crate::answer::{self, REPLAYED, if_match, in_body, is_known, json, located};
use crate::auth::RequestCaller;
use crate::body::{BodyFields, ChangeRequest};
use crate::problem::{PendingProblem, RequestProblem};
use crate::query::QueryParameters;
use crate::service::SharedService;

/// The header with the name of a request that may be repeated.
const IDEMPOTENCY_KEY: &str = "idempotency-key";
/// The most items that are submitted at once.
pub(super) const ITEMS_MAX: usize = 1000;
/// The most items of a page.
const LIMIT_MAX: u64 = 1000;
/// How many items are read at a time when all of them are wanted.
const PAGE_ITEMS: usize = 256;
/// Everything that a list can be asked for.
const PARAMETERS: &[&str] = &[
    "status",
    "agent",
    "project_id",
    "since",
    "type",
    "created_by",
    "q",
    "executor",
    "limit",
    "cursor",
];

pub(super) fn reference(text: &str) -> Result<ItemRef, Box<RequestProblem>> {
    ItemRef::parse(text).map_err(|wrong| RequestProblem::malformed_field("id", wrong.to_string()))
}

/// Submit work
///
/// One item, or a list of items: all of them or none. They are queued. With an `Idempotency-Key`, repeating the request does
/// no harm.
#[utoipa::path(
    post,
    path = "/work",
    tag = "work",
    params(("Idempotency-Key" = Option<String>, Header, min_length = 1, max_length = 200, description = "A name for the request, so that it can be repeated")),
    request_body = SubmissionDocument,
    responses(
        (status = 201, description = "Queued: one item, or a list of them.", body = SubmittedDocument),
        (status = 409, description = "It cannot be done as things stand."),
        (status = 413, description = "That is too much at once."),
    )
)]
pub(super) async fn submit(
    headers: HeaderMap,
    ChangeRequest { service, caller, body }: ChangeRequest,
) -> Result<Response, PendingProblem> {
    let key = idempotency_key(&headers)?;
    let (items, is_list) = submission(&body)?;
    let submission = Submission { items, key, is_list };
    let done = service
        .change(&caller, move |town| work::submit(town, submission).map_err(in_body))
        .await?;
    let mut response = match (is_list, done.items.first()) {
        (false, Some(item)) => {
            located(answer::item(StatusCode::CREATED, item), &format!("/work/{}", item.uid))
        }
        _ => json(StatusCode::CREATED, &SubmittedDocument::Many(documents(&done.items))),
    };
    if done.before {
        response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    }
    Ok(response)
}

fn idempotency_key(headers: &HeaderMap) -> Result<Option<RequestKey>, Box<RequestProblem>> {
    let Some(key) = headers.get(IDEMPOTENCY_KEY) else { return Ok(None) };
    let key = RequestKey::parse(key.to_str().unwrap_or_default());
    key.map(Some)
        .map_err(|wrong| RequestProblem::malformed_field("Idempotency-Key", wrong.to_string()))
}

/// The items of a body, and whether they were sent as a list.
fn submission(body: &Json) -> Result<(Vec<NewItem>, bool), Box<RequestProblem>> {
    let Some(elements) = body.elements() else {
        let (item, wrong) = new_item(body, "")?;
        return if wrong.is_empty() {
            Ok((vec![item], false))
        } else {
            Err(RequestProblem::invalid(wrong))
        };
    };
    if elements.is_empty() || elements.len() > ITEMS_MAX {
        let detail = format!("a list has 1 to {ITEMS_MAX} items, not {}", elements.len());
        return Err(RequestProblem::invalid_field("body", detail));
    }
    let mut items = Vec::with_capacity(elements.len());
    let mut wrong = Vec::new();
    for (at, element) in elements.iter().enumerate() {
        let (item, its) = new_item(element, &format!("{at}."))?;
        items.push(item);
        wrong.extend(its);
    }
    if wrong.is_empty() { Ok((items, true)) } else { Err(RequestProblem::invalid(wrong)) }
}

fn new_item(json: &Json, place: &str) -> Result<(NewItem, Vec<FieldError>), Box<RequestProblem>> {
    let mut fields = BodyFields::of(json, place)?;
    let mut item = NewItem {
        kind: fields.required("type"),
        description: fields.required("description"),
        payload: fields.any("payload"),
        agent: fields.text("assigned_agent"),
        created_by: fields.text("created_by"),
        notes: fields.text("notes").unwrap_or_default(),
        ..NewItem::default()
    };
    if let Some(number) = fields.integer("priority") {
        item.priority = fields.read("priority", WorkPriority::new(number)).unwrap_or_default();
    }
    if let Some(id) = fields.text("project_id") {
        item.project = fields.read("project_id", ProjectRef::parse(&id));
    }
    for id in fields.texts("depends_on") {
        item.depends_on.extend(fields.read("depends_on", ItemRef::parse(&id)));
    }
    Ok((item, fields.finish()))
}

/// List work
///
/// Most urgent first, then oldest first; with `since` oldest first. Without `limit`, all of it.
#[utoipa::path(
    get,
    path = "/work",
    tag = "work",
    params(
        ("status" = Option<String>, Query, pattern = "^(queued|dispatched|in_progress|blocked|completed|failed|cancelled)(,(queued|dispatched|in_progress|blocked|completed|failed|cancelled))*$", description = "Only those that stand like this; several are separated by commas"),
        ("agent" = Option<String>, Query, description = "Only what this agent has, or is to have"),
        ("project_id" = Option<String>, Query, format = "uuid", description = "Only what belongs to this project"),
        ("since" = Option<String>, Query, format = DateTime, description = "Only what was created after this (RFC 3339); with statuses that are an end, what ended after this"),
        ("type" = Option<String>, Query, min_length = 1, max_length = 50, description = "Only this kind of work"),
        ("created_by" = Option<String>, Query, description = "Only what this one submitted"),
        ("q" = Option<String>, Query, description = "Only those with this in their description"),
        ("executor" = Option<String>, Query, pattern = "^(pull|none|tmux|process|ssh)$", description = "Only what is carried out like this: pull, none, tmux, process or ssh"),
        ("limit" = Option<u64>, Query, minimum = 1, maximum = 1000, description = "At most so many, 1 to 1000; the header Link says where the next page is"),
        ("cursor" = Option<String>, Query, pattern = "^([0-9a-f]{2})+$", description = "Where to go on, from Link"),
    ),
    responses(
        (status = 200, description = "The items.", body = Vec<WorkItemDocument>),
        (status = 400, description = "A parameter is wrong."),
        (status = 404, description = "There is no such project."),
    )
)]
pub(super) async fn list(
    State(service): State<SharedService>,
    Extension(caller): Extension<RequestCaller>,
    OriginalUri(uri): OriginalUri,
    mut query: QueryParameters,
) -> Result<Response, PendingProblem> {
    let limit = match query.take_number("limit")? {
        None => None,
        Some(limit @ 1..=LIMIT_MAX) => Some(usize::try_from(limit).unwrap_or(PAGE_ITEMS)),
        Some(other) => {
            let detail = format!("{other} is not between 1 and {LIMIT_MAX}");
            return Err(RequestProblem::malformed_field("limit", detail).into());
        }
    };
    let cursor = query.take("cursor")?;
    let cursor = cursor.map(|text| Cursor::parse(&text)).transpose();
    let cursor =
        cursor.map_err(|wrong| RequestProblem::malformed_field("cursor", wrong.to_string()))?;
    let (filter, project) = filter(&mut query)?;
    query.finish(PARAMETERS)?;
    let read = move |town: &Town| {
        let mut filter = filter;
        if let Some(project) = project {
            filter.project = Some(work::project(town, &project)?.rig);
        }
        if let Some(cursor) = &cursor {
            let fits = cursor.position_in(&filter);
            fits.map_err(|wrong| RequestProblem::malformed_field("cursor", wrong.to_string()))?;
        }
        let page = work::list(town, &filter, cursor.as_ref(), limit.unwrap_or(PAGE_ITEMS))?;
        Ok::<_, Box<RequestProblem>>((filter, page))
    };
    let (filter, page) = service.ask(read).await?;
    let listing = match (limit, &page.next) {
        (None, Some(_)) => Listing::new(service, caller, filter, page),
        (Some(_), Some(next)) => {
            let link = next_page(&uri, next);
            let page = json(StatusCode::OK, &documents(&page.items));
            return Ok(([(header::LINK, link)], page).into_response());
        }
        (_, None) => return Ok(json(StatusCode::OK, &documents(&page.items))),
    };
    Ok(listing.into_response())
}

fn filter(
    query: &mut QueryParameters,
) -> Result<(WorkFilter, Option<ProjectRef>), Box<RequestProblem>> {
    fn read<T>(
        query: &mut QueryParameters,
        name: &str,
        read: impl Fn(&str) -> Result<T, gt_core::Invalid>,
    ) -> Result<Option<T>, Box<RequestProblem>> {
        let text = query.take(name)?;
        text.map(|text| {
            read(&text).map_err(|wrong| RequestProblem::malformed_field(name, wrong.to_string()))
        })
        .transpose()
    }
    let statuses =
        |text: &str| text.split(',').map(WorkStatus::parse).collect::<Result<Vec<_>, _>>();
    let filter = WorkFilter {
        statuses: read(query, "status", statuses)?.unwrap_or_default(),
        agent: query.take("agent")?,
        project: None,
        since: read(query, "since", Timestamp::parse)?,
        kind: read(query, "type", work_type)?,
        created_by: query.take("created_by")?,
        text: query.take("q")?.filter(|text| !text.is_empty()),
        executor: read(query, "executor", ExecutorKind::parse)?,
    };
    Ok((filter, read(query, "project_id", ProjectRef::parse)?))
}

fn documents(items: &[WorkItem]) -> Vec<WorkItemDocument> {
    items.iter().map(WorkItemDocument::from).collect()
}

/// Where the next page is: the same question, with another cursor.
pub(super) fn next_page(uri: &Uri, cursor: impl Display) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    for (name, value) in form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes()) {
        if name != "cursor" {
            query.append_pair(&name, &value);
        }
    }
    let query = query.append_pair("cursor", &cursor.to_string()).finish();
    format!("<{}?{query}>; rel=\"next\"", uri.path())
}

/// A list that is too long to be held in memory: it is read page by page, as fast as the client takes it.
struct Listing {
    service: SharedService,
    caller: RequestCaller,
    filter: WorkFilter,
    next: Option<Cursor>,
    first: Option<Vec<WorkItem>>,
}

impl Listing {
    fn new(
        service: SharedService,
        caller: RequestCaller,
        filter: WorkFilter,
        page: ItemPage,
    ) -> Self {
        Self { service, caller, filter, next: page.next, first: Some(page.items) }
    }

    fn into_response(self) -> Response {
        let stream = unfold(Some(self), |listing| async {
            let mut listing = listing?;
            match listing.part().await {
                Ok((text, is_last)) => Some((Ok(text), (!is_last).then_some(listing))),
                // The client sees that the list has no end.
                Err(problem) => Some((Err(std::io::Error::other(problem.detail)), None)),
            }
        });
        // The compressor asks once more after the end.
        let mut response = Response::new(Body::from_stream(stream.fuse()));
        let json = HeaderValue::from_static("application/json");
        response.headers_mut().insert(header::CONTENT_TYPE, json);
        response
    }

    /// The next part of the list, and whether it is the last one.
    async fn part(&mut self) -> Result<(String, bool), Box<RequestProblem>> {
        let (mut text, items) = match (self.first.take(), self.next.take()) {
            (Some(items), next) => {
                self.next = next;
                ("[".to_owned(), items)
            }
            (None, cursor) => {
                self.service.keys.confirm(&self.service, &self.caller).await?;
                let filter = self.filter.clone();
                let read =
                    move |town: &Town| work::list(town, &filter, cursor.as_ref(), PAGE_ITEMS);
                let page = self.service.ask(read).await?;
                self.next = page.next;
                let comma = if page.items.is_empty() { "" } else { "," };
                (comma.to_owned(), page.items)
            }
        };
        let texts: Vec<String> = documents(&items).iter().map(to_json).collect();
        text.push_str(&texts.join(","));
        let is_last = self.next.is_none();
        if is_last {
            text.push(']');
        }
        Ok((text, is_last))
    }
}

/// Get an item with its dispatch log
#[utoipa::path(
    get,
    path = "/work/{id}",
    tag = "work",
    params(
        ("id" = String, Path, format = "uuid", description = "A UUID, or the id of the bead"),
        ("If-None-Match" = Option<String>, Header, description = "The ETag that is known already"),
    ),
    responses(
        (status = 200, description = "The item.", body = WorkDetailsDocument, headers(("ETag" = String, description = "The version"))),
        (status = 304, description = "It is as it was."),
    )
)]
pub(super) async fn get(
    State(service): State<SharedService>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, PendingProblem> {
    let reference = reference(&id)?;
    let found = service.look_up(move |town| work::item(town, &reference)).await?;
    let version = found.item.version();
    let mut response = if is_known(&headers, version) {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        let details = WorkDetailsDocument::of(&found.item, &found.dispatch_log, &found.depends_on);
        json(StatusCode::OK, &details)
    };
    response.headers_mut().insert(header::ETAG, answer::etag(version));
    Ok(response)
}

/// Change an item
///
/// Moves it (queued → dispatched → in progress → completed, failed or blocked), reports on it, or corrects it. Without
/// `run_id` or `If-Match` this concerns the agent that has it now. The status that it has already changes nothing, and its notes are
/// taken.
#[utoipa::path(
    patch,
    path = "/work/{id}",
    tag = "work",
    params(
        ("id" = String, Path, format = "uuid", description = "A UUID, or the id of the bead"),
        ("If-Match" = Option<String>, Header, pattern = "^(\\*|\"[0-9a-f]{16}\")$", description = "Refuse this unless the item still has this ETag"),
    ),
    request_body = WorkChangeDocument,
    responses(
        (status = 200, description = "The item as it is now.", body = WorkItemDocument),
        (status = 409, description = "That is not possible from here; `allowed` says what is."),
    )
)]
pub(super) async fn change(
    Path(id): Path<String>,
    headers: HeaderMap,
    ChangeRequest { service, caller, body }: ChangeRequest,
) -> Result<Response, PendingProblem> {
    let reference = reference(&id)?;
    let version = if_match(&headers)?;
    let change = item_change(&body, version)?;
    let changed = service
        .change(&caller, move |town| {
            work::change(town, &reference, change).map_err(|error| match error {
                WorkError::NotFound { what: MissingKind::Project, .. } => in_body(error),
                other => other.into(),
            })
        })
        .await?;
    Ok(answer::item(StatusCode::OK, &changed))
}

fn item_change(body: &Json, version: Option<Version>) -> Result<ItemChange, Box<RequestProblem>> {
    let mut fields = BodyFields::of(body, "")?;
    let mut change = ItemChange {
        kind: fields.text("type"),
        description: fields.text("description"),
        ..ItemChange::default()
    };
    change.notes = match fields.clearable("notes") {
        None => None,
        Some(None) => Some(String::new()),
        Some(Some(json)) => fields.text_in("notes", &json),
    };
    if let Some(status) = fields.text("status") {
        change.status = fields.read("status", WorkStatus::parse(&status));
    }
    if let Some(outcome) = fields.text("outcome") {
        change.outcome = fields.read("outcome", Outcome::parse(&outcome));
    }
    if let Some(number) = fields.integer("priority") {
        change.priority = fields.read("priority", WorkPriority::new(number));
    }
    change.agent = match fields.clearable("assigned_agent") {
        None => FieldEdit::Keep,
        Some(None) => FieldEdit::Clear,
        Some(Some(json)) => {
            fields.text_in("assigned_agent", &json).map_or(FieldEdit::Keep, FieldEdit::Set)
        }
    };
    change.payload = match fields.clearable("payload") {
        None => FieldEdit::Keep,
        Some(None) => FieldEdit::Clear,
        Some(Some(json)) => FieldEdit::Set(json),
    };
    change.project = match fields.clearable("project_id") {
        None => FieldEdit::Keep,
        Some(None) => FieldEdit::Clear,
        Some(Some(json)) => fields
            .text_in("project_id", &json)
            .and_then(|id| fields.read("project_id", ProjectRef::parse(&id)))
            .map_or(FieldEdit::Keep, FieldEdit::Set),
    };
    let run = fields.text("run_id").and_then(|id| fields.read("run_id", RunRef::parse(&id)));
    change.precondition = Precondition { run, version };
    fields.check()?;
    Ok(change)
}

/// Cancel an item
///
/// The same as changing its status to cancelled: possible while it is queued or dispatched, and the same once more.
#[utoipa::path(
    delete,
    path = "/work/{id}",
    tag = "work",
    params(
        ("id" = String, Path, format = "uuid", description = "A UUID, or the id of the bead"),
        ("If-Match" = Option<String>, Header, pattern = "^(\\*|\"[0-9a-f]{16}\")$", description = "Refuse this unless the item still has this ETag"),
    ),
    responses(
        (status = 204, description = "It is cancelled."),
        (status = 409, description = "That is not possible from here."),
    )
)]
pub(super) async fn cancel(
    State(service): State<SharedService>,
    Extension(caller): Extension<RequestCaller>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, PendingProblem> {
    let reference = reference(&id)?;
    let precondition = Precondition { run: None, version: if_match(&headers)? };
    service.change(&caller, move |town| work::cancel(town, &reference, precondition)).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Say why an item is where it is
#[utoipa::path(
    get,
    path = "/work/{id}/why",
    tag = "work",
    params(("id" = String, Path, format = "uuid", description = "A UUID, or the id of the bead")),
    responses(
        (status = 200, description = "The reasons.", body = WhyDocument),
    )
)]
pub(super) async fn why(
    State(service): State<SharedService>,
    Path(id): Path<String>,
) -> Result<Response, PendingProblem> {
    let reference = reference(&id)?;
    let found = service.ask(move |town| work::why(town, &reference)).await?;
    let reasons = found.reasons.into_iter().map(|reason| ReasonDocument {
        code: reason.code.to_owned(),
        reason: reason.reason,
        remedy: reason.remedy,
        until: reason.until.map(UtcTime),
    });
    let why = WhyDocument {
        id: found.item.uid.to_string(),
        bead: found.item.bead.to_string(),
        status: found.item.status.into(),
        reasons: reasons.collect(),
    };
    Ok(json(StatusCode::OK, &why))
}
