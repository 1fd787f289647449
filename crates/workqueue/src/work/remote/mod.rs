//! A work queue that is elsewhere: the same questions and answers, over HTTP.

mod error;
mod requests;
mod stream;

use std::os::fd::BorrowedFd;
use std::time::Duration;

use form_urlencoded::Serializer;
use gt_api::{
    HeartbeatAnswerDocument, NextAnswerDocument, OverdueDocument, ProjectDocument, ReleaseDocument,
    RunDocument, StaleCheckDocument, SubmissionDocument, WorkDetailsDocument, WorkItemDocument,
    from_json, to_json,
};
use gt_core::work::{
    Cursor, DispatchLogEntry, ItemRef, Project, ProjectRef, RunRef, TokenSecret, WorkFilter,
    WorkItem,
};
use gt_core::{Invalid, RunId, Timestamp, Uid, WebAddress};
use gt_executors::web::{Method, Reply, RequestBody, WebError, WebRequest};

pub use self::error::RemoteError;
pub(super) use self::stream::EventStream;
use super::error::WorkResult;
use super::requests::{
    Heartbeat, ItemChange, ItemDetails, ItemPage, NextRequest, NextWork, NoWork, Overdue,
    Submission, Submitted, TakenItem,
};

/// How long a server may take to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// The same for heartbeats, and for a poller that is about to leave.
const SHORT_ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// The longest time that a server is asked to wait for work, in seconds.
const WAIT_S_MAX: u64 = 60;
/// Longest answer that is read, in bytes.
const ANSWER_BYTES_MAX: usize = 256 * 1024 * 1024;

/// A work queue that is elsewhere.
#[derive(Debug, Clone)]
pub struct Remote {
    address: WebAddress,
    token: Option<TokenSecret>,
    /// In whose name work is submitted where no token says it.
    actor: String,
}

/// A request to a server.
struct RemoteRequest<'a> {
    method: Method,
    /// The path and the query.
    target: &'a str,
    headers: &'a [(&'a str, &'a str)],
    body: Option<String>,
    limit: Duration,
    interrupt: Option<BorrowedFd<'a>>,
}

impl RemoteRequest<'_> {
    fn get(target: &str) -> RemoteRequest<'_> {
        let (method, headers, body) = (Method::Get, &[][..], None);
        RemoteRequest { method, target, headers, body, limit: ANSWER_TIMEOUT, interrupt: None }
    }

    fn with_body(method: Method, target: &str, body: String) -> RemoteRequest<'_> {
        RemoteRequest { method, body: Some(body), ..RemoteRequest::get(target) }
    }
}

impl Remote {
    /// The queue at this address, below which it has `/work` and `/projects`.
    pub fn at(address: WebAddress, token: Option<TokenSecret>, actor: String) -> Self {
        Self { address, token, actor }
    }

    /// Where it is.
    pub fn address(&self) -> &WebAddress {
        &self.address
    }

    /// The token that is shown to the server.
    pub fn token(&self) -> Option<&TokenSecret> {
        self.token.as_ref()
    }

    fn ask(&self, question: &RemoteRequest<'_>) -> WorkResult<Reply> {
        let address = self.below(question.target)?;
        let shown = self.authorization();
        let mut headers = question.headers.to_vec();
        headers.extend(shown.as_deref().map(|shown| ("Authorization", shown)));
        let content = question.body.as_deref();
        let request = WebRequest {
            method: question.method,
            address: &address,
            headers: &headers,
            content: content
                .map(|text| RequestBody { kind: "application/json", body: text.as_bytes() }),
            limit: question.limit,
            interrupt: question.interrupt,
        };
        let reply = request.ask(ANSWER_BYTES_MAX).map_err(|error| {
            if question.method != Method::Get && matches!(error, WebError::Silent { .. }) {
                RemoteError::Unsure(error)
            } else {
                RemoteError::Away(error)
            }
        })?;
        if (200..300).contains(&reply.head.status) {
            return Ok(reply);
        }
        Err(RemoteError::of_reply(&self.address, &reply).into())
    }

    fn below(&self, target: &str) -> Result<WebAddress, Invalid> {
        self.address.below(target)
    }

    fn authorization(&self) -> Option<String> {
        self.token.as_ref().map(|token| format!("Bearer {}", token.reveal()))
    }

    fn read<T>(
        &self,
        reply: &Reply,
        read: impl FnOnce(&str) -> Result<T, String>,
    ) -> WorkResult<T> {
        let text = str::from_utf8(&reply.body).map_err(|error| error.to_string());
        let origin = || self.address.origin();
        let read = text.and_then(read);
        Ok(read.map_err(|why| RemoteError::Senseless { origin: origin(), why })?)
    }

    pub(super) fn submit(&self, submission: Submission) -> WorkResult<Submitted> {
        let Submission { items, key, is_list } = submission;
        // A token names its holder; without one the actor submits.
        let actor = self.token.is_none().then_some(self.actor.as_str());
        let documents = items.iter().map(|item| requests::new_item(item, actor));
        let body = if let ([item], false) = (items.as_slice(), is_list) {
            SubmissionDocument::One(Box::new(requests::new_item(item, actor)))
        } else {
            SubmissionDocument::Many(documents.collect())
        };
        let key = key.map(|key| key.to_string());
        let headers: Vec<(&str, &str)> =
            key.as_deref().map(|key| ("Idempotency-Key", key)).into_iter().collect();
        let question = RemoteRequest::with_body(Method::Post, "/work", to_json(&body));
        let question = RemoteRequest { headers: &headers, ..question };
        let reply = self.ask(&question)?;
        let before = reply.head.field("idempotent-replayed").is_some();
        let items = self.read(&reply, |text| {
            if text.starts_with('[') { read_items(text) } else { Ok(vec![read_item(text)?]) }
        })?;
        Ok(Submitted { items, before })
    }

    pub(super) fn item(&self, reference: &ItemRef) -> WorkResult<ItemDetails> {
        let reply = self.ask(&RemoteRequest::get(&format!("/work/{reference}")))?;
        self.read(&reply, read_details)
    }

    pub(super) fn project(&self, reference: &ProjectRef) -> WorkResult<Project> {
        let reply = self.ask(&RemoteRequest::get(&format!("/projects/{reference}")))?;
        self.read(&reply, |text| sense(from_json::<ProjectDocument>(text)?.try_into()))
    }

    pub(super) fn change(&self, reference: &ItemRef, change: &ItemChange) -> WorkResult<WorkItem> {
        let version = change.precondition.version.map(|version| format!("\"{version}\""));
        let headers: Vec<(&str, &str)> =
            version.as_deref().map(|version| ("If-Match", version)).into_iter().collect();
        let target = format!("/work/{reference}");
        let body = to_json(&requests::item_change(change));
        let question = RemoteRequest::with_body(Method::Patch, &target, body);
        let reply = self.ask(&RemoteRequest { headers: &headers, ..question })?;
        self.read(&reply, read_item)
    }

    pub(super) fn list(
        &self,
        filter: &WorkFilter,
        after: Option<&Cursor>,
        limit: usize,
    ) -> WorkResult<ItemPage> {
        let mut query = Serializer::new(String::new());
        requests::filter_query(&mut query, filter);
        query.append_pair("limit", &limit.to_string());
        if let Some(cursor) = after {
            query.append_pair("cursor", &cursor.to_string());
        }
        let reply = self.ask(&RemoteRequest::get(&format!("/work?{}", query.finish())))?;
        let next = reply.head.field("link").and_then(requests::next_cursor);
        Ok(ItemPage { items: self.read(&reply, read_items)?, next })
    }

    /// Asks once, for at most as long as a server waits.
    pub(super) fn next(
        &self,
        request: &NextRequest,
        wait: Duration,
        interrupt: Option<BorrowedFd<'_>>,
    ) -> WorkResult<NextWork> {
        let wait_s = wait.as_secs().min(WAIT_S_MAX);
        let body = to_json(&requests::next(request, wait_s));
        let target = if request.dispatched { "/work/next?dispatched=true" } else { "/work/next" };
        let question = RemoteRequest::with_body(Method::Post, target, body);
        let limit = ANSWER_TIMEOUT + Duration::from_secs(wait_s);
        let reply = self.ask(&RemoteRequest { limit, interrupt, ..question })?;
        self.read(&reply, read_next)
    }

    pub(super) fn heartbeat(
        &self,
        reference: &ItemRef,
        heartbeat: &Heartbeat,
    ) -> WorkResult<Timestamp> {
        let target = format!("/work/{reference}/heartbeat");
        let body = to_json(&requests::heartbeat(heartbeat));
        let question = RemoteRequest::with_body(Method::Post, &target, body);
        let reply = self.ask(&RemoteRequest { limit: SHORT_ANSWER_TIMEOUT, ..question })?;
        self.read(&reply, |text| Ok(from_json::<HeartbeatAnswerDocument>(text)?.lease_expires_at.0))
    }

    pub(super) fn release(&self, reference: &ItemRef, run: &RunRef) -> WorkResult<WorkItem> {
        let target = format!("/work/{reference}/release");
        let body = to_json(&ReleaseDocument { run_id: run.to_string() });
        let question = RemoteRequest::with_body(Method::Post, &target, body);
        let reply = self.ask(&RemoteRequest { limit: SHORT_ANSWER_TIMEOUT, ..question })?;
        self.read(&reply, read_item)
    }

    pub(super) fn check_overdue(&self) -> WorkResult<Overdue> {
        let body = to_json(&StaleCheckDocument {});
        let question = RemoteRequest::with_body(Method::Post, "/work/stale-check", body);
        self.read(&self.ask(&question)?, read_overdue)
    }
}

/// The fault of a value, as text.
fn sense<T>(read: Result<T, Invalid>) -> Result<T, String> {
    read.map_err(|wrong| wrong.to_string())
}

fn read_item(text: &str) -> Result<WorkItem, String> {
    sense(from_json::<WorkItemDocument>(text)?.try_into())
}

fn read_items(text: &str) -> Result<Vec<WorkItem>, String> {
    let items: Vec<WorkItemDocument> = from_json(text)?;
    items.into_iter().map(|item| sense(item.try_into())).collect()
}

fn read_details(text: &str) -> Result<ItemDetails, String> {
    let details = WorkDetailsDocument::read(text)?;
    let log = details.dispatch_log.into_iter().map(|one| sense(DispatchLogEntry::try_from(one)));
    let depends_on = details.depends_on.iter().map(|id| read_uid("depends_on", id));
    Ok(ItemDetails {
        item: sense(details.item.try_into())?,
        dispatch_log: log.collect::<Result<_, _>>()?,
        depends_on: depends_on.collect::<Result<_, _>>()?,
    })
}

fn read_next(text: &str) -> Result<NextWork, String> {
    let answer: NextAnswerDocument = from_json(text)?;
    let Some(item) = answer.item else {
        let (code, reason) = (answer.code.unwrap_or_default(), answer.reason.unwrap_or_default());
        return Ok(NextWork::Nothing(NoWork::Told { code, reason }));
    };
    let run_uid = read_uid("run_id", answer.run_id.as_deref().unwrap_or_default())?;
    let lease_expires_at = answer.lease_expires_at.ok_or("lease_expires_at is missing")?.0;
    let (item, run) = (sense(item.try_into())?, RunRef::Uid(run_uid));
    Ok(NextWork::Item(Box::new(TakenItem { item, run, run_uid, lease_expires_at })))
}

fn read_overdue(text: &str) -> Result<Overdue, String> {
    let found: OverdueDocument = from_json(text)?;
    let read = |runs: Vec<RunDocument>| -> Result<Vec<RunId>, String> {
        runs.iter().map(|run| sense(RunId::parse(&run.run))).collect()
    };
    let (stale, lost) = (read(found.stale)?, read(found.lost)?);
    Ok(Overdue { stale, lost, due: found.due.map(|due| due.0) })
}

fn read_uid(field: &str, text: &str) -> Result<Uid, String> {
    Uid::parse(text).ok_or_else(|| format!("{field} is no UUID"))
}
