//! Error answers: RFC 9457.

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use gt_api::{FieldError, ProblemDocument, to_json};

/// The media type of every error.
pub(crate) const PROBLEM_JSON: HeaderValue = HeaderValue::from_static("application/problem+json");

/// Why a request was not done.
#[derive(Debug, Clone)]
pub(crate) struct RequestProblem {
    pub(crate) status: StatusCode,
    /// The kind of problem, in a word for programs.
    pub(crate) code: &'static str,
    /// The failure, the object it concerns, and the next step.
    pub(crate) detail: String,
    /// The fields that are wrong.
    pub(crate) fields: Vec<FieldError>,
    /// The statuses that are possible instead.
    pub(crate) allowed: Option<Vec<String>>,
    /// The item that the agent has already.
    pub(crate) item: Option<String>,
    /// The run that has the item now.
    pub(crate) run: Option<String>,
    /// The version that the item is at.
    pub(crate) version: Option<String>,
    /// A header that belongs to the answer.
    pub(crate) header: Option<(HeaderName, HeaderValue)>,
    /// The connection cannot be used any more.
    pub(crate) closes: bool,
    /// The cause, which only the log tells.
    pub(crate) cause: Option<String>,
}

impl RequestProblem {
    pub(crate) fn new(
        status: StatusCode,
        code: &'static str,
        detail: impl Into<String>,
    ) -> Box<Self> {
        Box::new(Self {
            status,
            code,
            detail: detail.into(),
            fields: Vec::new(),
            allowed: None,
            item: None,
            run: None,
            version: None,
            header: None,
            closes: false,
            cause: None,
        })
    }

    /// It does not parse.
    pub(crate) fn malformed(detail: impl Into<String>) -> Box<Self> {
        Self::new(StatusCode::BAD_REQUEST, "malformed", detail)
    }

    /// It does not parse, because of this part of it.
    pub(crate) fn malformed_field(field: &str, detail: impl Into<String>) -> Box<Self> {
        let detail = detail.into();
        let mut problem = Self::malformed(format!("{field}: {detail}"));
        problem.fields.push(FieldError { field: field.to_owned(), detail });
        problem
    }

    /// It parses, and these fields are wrong.
    pub(crate) fn invalid(fields: Vec<FieldError>) -> Box<Self> {
        let said: Vec<String> =
            fields.iter().map(|wrong| format!("{}: {}", wrong.field, wrong.detail)).collect();
        let mut problem = Self::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid", said.join("; "));
        problem.fields = fields;
        problem
    }

    /// It parses, and this field is wrong.
    pub(crate) fn invalid_field(field: &str, detail: impl Into<String>) -> Box<Self> {
        Self::invalid(vec![FieldError { field: field.to_owned(), detail: detail.into() }])
    }

    pub(crate) fn not_found(detail: impl Into<String>) -> Box<Self> {
        Self::new(StatusCode::NOT_FOUND, "not-found", detail)
    }

    pub(crate) fn conflict(detail: impl Into<String>) -> Box<Self> {
        Self::new(StatusCode::CONFLICT, "conflict", detail)
    }

    /// Too much at a time; it is worth trying again soon.
    pub(crate) fn busy(detail: impl Into<String>) -> Box<Self> {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "busy", detail)
            .with_header(header::RETRY_AFTER, HeaderValue::from_static("1"))
    }

    /// An internal error. The cause is in the log, not in the answer.
    pub(crate) fn broken(detail: impl Into<String>) -> Box<Self> {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", detail)
    }

    #[must_use]
    pub(crate) fn with_header(
        mut self: Box<Self>,
        name: HeaderName,
        value: HeaderValue,
    ) -> Box<Self> {
        self.header = Some((name, value));
        self
    }

    #[must_use]
    pub(crate) fn with_allowed(mut self: Box<Self>, allowed: Vec<String>) -> Box<Self> {
        self.allowed = Some(allowed);
        self
    }

    #[must_use]
    pub(crate) fn caused_by(mut self: Box<Self>, cause: String) -> Box<Self> {
        self.cause = Some(cause);
        self
    }

    #[must_use]
    pub(crate) fn closing(mut self: Box<Self>) -> Box<Self> {
        self.closes = true;
        self
    }

    /// The answer to the request of this id.
    pub(crate) fn render(&self, request_id: &str) -> Response {
        let document = ProblemDocument {
            r#type: "about:blank".to_owned(),
            title: self.status.canonical_reason().unwrap_or("Error").to_owned(),
            status: self.status.as_u16(),
            detail: self.detail.clone(),
            code: self.code.to_owned(),
            errors: Some(self.fields.clone()).filter(|fields| !fields.is_empty()),
            allowed: self.allowed.clone(),
            item: self.item.clone(),
            run: self.run.clone(),
            version: self.version.clone(),
            request_id: request_id.to_owned(),
        };
        let mut response = Response::new(Body::from(to_json(&document)));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, PROBLEM_JSON);
        if let Some((name, value)) = &self.header {
            headers.insert(name, value.clone());
        }
        if self.closes {
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}

/// A problem on its way to the gate, which knows the request's id and writes it.
#[derive(Debug, Clone)]
pub(crate) struct PendingProblem(pub(crate) Box<RequestProblem>);

impl IntoResponse for PendingProblem {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = self.0.status;
        response.extensions_mut().insert(self);
        response
    }
}

impl From<Box<RequestProblem>> for PendingProblem {
    fn from(problem: Box<RequestProblem>) -> Self {
        Self(problem)
    }
}
