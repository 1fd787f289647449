//! A work queue that is elsewhere: the same questions and answers, over HTTP.

mod error;
mod requests;
mod stream;

use std::os::fd::BorrowedFd;
use std::time::Duration;

use form_urlencoded::Serializer;
use gt_core::work::{
    Cursor, ItemRef, Lease, Project, ProjectRef, RunRef, TokenSecret, WorkFilter, WorkItem,
};
use gt_core::{Invalid, Timestamp, WebAddress};
use gt_executors::web::{Content, Method, Reply, Request, WebError};
use gt_records::{
    NextAnswer, RecordError, read_lease_answer, read_next_answer, read_overdue_answer,
    read_project, read_work_details, read_work_item, read_work_items,
};

pub use self::error::RemoteError;
pub(super) use self::stream::EventStream;
use super::error::WorkResult;
use super::requests::{
    Heartbeat, ItemChange, ItemDetails, ItemPage, Next, NextRequest, NoWork, Overdue, Submission,
    Submitted, Taken,
};

/// How long a server may take to answer.
const ANSWER_MAX: Duration = Duration::from_secs(30);
/// The same for word that somebody is still at work, and for whoever is about to leave.
const SHORT_MAX: Duration = Duration::from_secs(10);
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

/// What is asked of a server.
struct Question<'a> {
    method: Method,
    /// The path and the query.
    target: &'a str,
    headers: &'a [(&'a str, &'a str)],
    body: Option<String>,
    limit: Duration,
    interrupt: Option<BorrowedFd<'a>>,
}

impl Question<'_> {
    fn get(target: &str) -> Question<'_> {
        let (method, headers, body) = (Method::Get, &[][..], None);
        Question { method, target, headers, body, limit: ANSWER_MAX, interrupt: None }
    }

    fn with_body(method: Method, target: &str, body: String) -> Question<'_> {
        Question { method, body: Some(body), ..Question::get(target) }
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

    /// What is shown there.
    pub fn token(&self) -> Option<&TokenSecret> {
        self.token.as_ref()
    }

    fn ask(&self, question: &Question<'_>) -> WorkResult<Reply> {
        let address = self.below(question.target)?;
        let shown = self.authorization();
        let mut headers = question.headers.to_vec();
        headers.extend(shown.as_deref().map(|shown| ("Authorization", shown)));
        let content = question.body.as_deref();
        let request = Request {
            method: question.method,
            address: &address,
            headers: &headers,
            content: content
                .map(|text| Content { kind: "application/json", body: text.as_bytes() }),
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
        read: impl FnOnce(&str) -> Result<T, RecordError>,
    ) -> WorkResult<T> {
        let text = str::from_utf8(&reply.body).map_err(|error| error.to_string());
        let read = text.and_then(|text| read(text).map_err(|error| error.to_string()));
        let origin = || self.address.origin();
        Ok(read.map_err(|why| RemoteError::Senseless { origin: origin(), why })?)
    }

    pub(super) fn submit(&self, submission: Submission) -> WorkResult<Submitted> {
        let Submission { items, key, is_list } = submission;
        let texts = items.iter().map(|item| {
            // Whoever shows a token is who the token says.
            let actor = self.token.is_none().then_some(self.actor.as_str());
            requests::new_item_json(item, actor)
        });
        let is_one = !is_list && items.len() == 1;
        let texts = texts.collect::<Vec<_>>().join(",");
        let body = if is_one { texts } else { format!("[{texts}]") };
        let key = key.map(|key| key.to_string());
        let headers: Vec<(&str, &str)> =
            key.as_deref().map(|key| ("Idempotency-Key", key)).into_iter().collect();
        let question =
            Question { headers: &headers, ..Question::with_body(Method::Post, "/work", body) };
        let reply = self.ask(&question)?;
        let before = reply.head.field("idempotent-replayed").is_some();
        let items = self.read(&reply, |text| {
            if text.starts_with('[') {
                read_work_items(text)
            } else {
                Ok(vec![read_work_item(text)?])
            }
        })?;
        Ok(Submitted { items, before })
    }

    pub(super) fn item(&self, reference: &ItemRef) -> WorkResult<ItemDetails> {
        let reply = self.ask(&Question::get(&format!("/work/{reference}")))?;
        let (item, dispatch_log, depends_on) = self.read(&reply, read_work_details)?;
        Ok(ItemDetails { item, dispatch_log, depends_on })
    }

    pub(super) fn project(&self, reference: &ProjectRef) -> WorkResult<Project> {
        let reply = self.ask(&Question::get(&format!("/projects/{reference}")))?;
        self.read(&reply, read_project)
    }

    pub(super) fn change(&self, reference: &ItemRef, change: &ItemChange) -> WorkResult<WorkItem> {
        let version = change.precondition.version.map(|version| format!("\"{version}\""));
        let headers: Vec<(&str, &str)> =
            version.as_deref().map(|version| ("If-Match", version)).into_iter().collect();
        let target = format!("/work/{reference}");
        let body = requests::change_json(change);
        let question = Question::with_body(Method::Patch, &target, body);
        let reply = self.ask(&Question { headers: &headers, ..question })?;
        self.read(&reply, read_work_item)
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
        let reply = self.ask(&Question::get(&format!("/work?{}", query.finish())))?;
        let next = reply.head.field("link").and_then(requests::next_cursor);
        Ok(ItemPage { items: self.read(&reply, read_work_items)?, next })
    }

    /// Asks once, for at most as long as a server waits.
    pub(super) fn next(
        &self,
        request: &NextRequest,
        wait: Duration,
        interrupt: Option<BorrowedFd<'_>>,
    ) -> WorkResult<Next> {
        let wait_s = wait.as_secs().min(WAIT_S_MAX);
        let body = requests::next_json(request, wait_s);
        let target = if request.dispatched { "/work/next?dispatched=true" } else { "/work/next" };
        let question = Question::with_body(Method::Post, target, body);
        let limit = ANSWER_MAX + Duration::from_secs(wait_s);
        let reply = self.ask(&Question { limit, interrupt, ..question })?;
        Ok(match self.read(&reply, read_next_answer)? {
            NextAnswer::Nothing { code, reason } => Next::Nothing(NoWork::Told { code, reason }),
            NextAnswer::Item { item, run, lease_expires_at } => {
                let run_name = RunRef::Uid(run);
                let item = *item;
                Next::Item(Box::new(Taken { item, run: run_name, run_uid: run, lease_expires_at }))
            }
        })
    }

    pub(super) fn heartbeat(
        &self,
        reference: &ItemRef,
        heartbeat: &Heartbeat,
    ) -> WorkResult<Timestamp> {
        let target = format!("/work/{reference}/heartbeat");
        let body = requests::heartbeat_json(&heartbeat.run, heartbeat.lease, heartbeat.adopts);
        let question = Question::with_body(Method::Post, &target, body);
        let reply = self.ask(&Question { limit: SHORT_MAX, ..question })?;
        self.read(&reply, read_lease_answer)
    }

    pub(super) fn release(&self, reference: &ItemRef, run: &RunRef) -> WorkResult<WorkItem> {
        let target = format!("/work/{reference}/release");
        let body = requests::heartbeat_json(run, None::<Lease>, false);
        let question = Question::with_body(Method::Post, &target, body);
        let reply = self.ask(&Question { limit: SHORT_MAX, ..question })?;
        self.read(&reply, read_work_item)
    }

    pub(super) fn check_overdue(&self) -> WorkResult<Overdue> {
        let question = Question::with_body(Method::Post, "/work/stale-check", "{}".to_owned());
        let found = self.read(&self.ask(&question)?, read_overdue_answer)?;
        Ok(Overdue { stale: found.stale, lost: found.lost, due: found.due })
    }
}
