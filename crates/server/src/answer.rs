//! The results of operations, as HTTP.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use gt_api::{WorkItemDocument, to_json};
use gt_core::work::{Version, WorkItem};
use gt_town::{OperationError, StoreError, with_causes};
use gt_workqueue::work::{Conflict, MissingKind, WorkError};

use crate::problem::RequestProblem;

/// The header that says that an answer was given before.
pub(crate) const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

/// A document with this status.
pub(crate) fn json(status: StatusCode, document: &impl serde::Serialize) -> Response {
    let mut response = Response::new(Body::from(to_json(document)));
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

/// A work item and the version that it is at.
pub(crate) fn item(status: StatusCode, item: &WorkItem) -> Response {
    let mut response = json(status, &WorkItemDocument::from(item));
    response.headers_mut().insert(header::ETAG, etag(item.version()));
    response
}

/// The version of an item as a header.
pub(crate) fn etag(version: Version) -> HeaderValue {
    HeaderValue::from_str(&format!("\"{version}\"")).unwrap_or(HeaderValue::from_static("\"\""))
}

/// Adds where something is.
pub(crate) fn located(mut response: Response, path: &str) -> Response {
    if let Ok(path) = HeaderValue::from_str(path) {
        response.headers_mut().insert(header::LOCATION, path);
    }
    response
}

/// The version that the client wants to change, if it names one.
pub(crate) fn if_match(headers: &HeaderMap) -> Result<Option<Version>, Box<RequestProblem>> {
    let Some(given) = headers.get(header::IF_MATCH) else { return Ok(None) };
    let given = given.to_str().unwrap_or("?").trim();
    if given == "*" {
        return Ok(None);
    }
    let version = given.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    let version = version.and_then(|version| Version::parse(version).ok());
    version.map(Some).ok_or_else(|| {
        RequestProblem::malformed_field(
            "If-Match",
            "this must be one ETag, as the item was read with, or *",
        )
    })
}

/// Whether the client has this version already.
pub(crate) fn is_known(headers: &HeaderMap, version: Version) -> bool {
    let etag = format!("\"{version}\"");
    let given = headers.get(header::IF_NONE_MATCH).and_then(|given| given.to_str().ok());
    given.is_some_and(|given| {
        given.split(',').map(str::trim).any(|one| {
            // Weak or strong makes no difference to a reader.
            one == "*" || one.strip_prefix("W/").unwrap_or(one) == etag
        })
    })
}

impl From<WorkError> for Box<RequestProblem> {
    fn from(error: WorkError) -> Self {
        let detail = error.to_string();
        match error {
            WorkError::NotFound { .. } => RequestProblem::not_found(detail),
            WorkError::Invalid { field, message } => RequestProblem::invalid_field(field, message),
            WorkError::InvalidItem { at, field, message } => {
                RequestProblem::invalid_field(&format!("{at}.{field}"), message)
            }
            WorkError::NotForAgent { .. } => {
                RequestProblem::new(StatusCode::FORBIDDEN, "forbidden", detail)
            }
            WorkError::Conflict(conflict) => conflicting(&conflict),
            WorkError::Operation(error) => error.into(),
            // This server is the queue; nothing that it does is done elsewhere.
            WorkError::Remote(_) => {
                RequestProblem::broken("the queue is elsewhere").caused_by(detail)
            }
        }
    }
}

fn conflicting(conflict: &Conflict) -> Box<RequestProblem> {
    let mut problem = RequestProblem::conflict(conflict.to_string());
    problem.code = conflict.code();
    if let Some(allowed) = conflict.allowed() {
        problem = problem.with_allowed(allowed.iter().map(ToString::to_string).collect());
    }
    match conflict {
        Conflict::AgentBusy { item, .. } => {
            problem.item = Some(item.to_string());
            problem
        }
        Conflict::StaleRun { live: Some(live), .. } => {
            problem.run = Some(live.to_string());
            problem
        }
        Conflict::StaleVersion { current, .. } => {
            problem.version = Some(current.to_string());
            problem
        }
        Conflict::Refused { .. }
        | Conflict::StaleRun { live: None, .. }
        | Conflict::RigClosed { .. }
        | Conflict::Running { .. }
        | Conflict::NotInProgress { .. }
        | Conflict::Leased { .. } => problem,
    }
}

impl From<OperationError> for Box<RequestProblem> {
    fn from(error: OperationError) -> Self {
        if error.may_pass() {
            return RequestProblem::busy("the store cannot be used at the moment; try again")
                .caused_by(with_causes(&error));
        }
        match error {
            OperationError::NoBead(_) | OperationError::NoRig { .. } => {
                RequestProblem::not_found(error.to_string())
            }
            OperationError::Invalid(wrong) => {
                RequestProblem::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid", wrong.to_string())
            }
            OperationError::Store(StoreError::Unsettled(_)) => RequestProblem::busy(
                "the database went away while this was being done, and whether it was done is not known; ask for the \
                 state, or repeat it with the same Idempotency-Key",
            )
            .caused_by(with_causes(&error)),
            // Names of files and hosts belong only in the log.
            OperationError::Store(_)
            | OperationError::File { .. }
            | OperationError::Process(_)
            | OperationError::Database { .. } => {
                RequestProblem::broken("the store could not do this; the log of the server says more")
                    .caused_by(with_causes(&error))
            }
            other => RequestProblem::conflict(with_causes(&other)),
        }
    }
}

/// A name in the body of a request that is not found is a wrong field, not a wrong address.
pub(crate) fn in_body(error: WorkError) -> Box<RequestProblem> {
    let field = match &error {
        WorkError::NotFound { what: MissingKind::Project, .. } => "project_id",
        WorkError::NotFound { what: MissingKind::Item, .. } => "depends_on",
        // Here it is a header.
        WorkError::Invalid { field: "idempotency_key", message } => {
            return RequestProblem::invalid_field("Idempotency-Key", message.clone());
        }
        _ => return error.into(),
    };
    RequestProblem::invalid_field(field, error.to_string())
}
