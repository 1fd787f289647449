//! Events of a remote queue, as they happen.

use std::time::{Duration, Instant};

use gt_api::{EventDocument, HealthDocument, from_json};
use gt_core::BeadId;
use gt_core::server_events::{ServerEvent, ServerEvents};
use gt_executors::web::{AnswerStream, Listening, Method, StreamPart, WebRequest};

use super::{ANSWER_BYTES_MAX, ANSWER_TIMEOUT, Remote, RemoteError, RemoteRequest};
use crate::work::error::WorkResult;
use crate::work::watch::SeenChanges;

/// How long a server may say nothing at all. It says something every fifteen seconds, and the network may be slow.
const SILENCE_MAX: Duration = Duration::from_mins(1);

/// The event log of a server. After a lost connection it continues after the last event that it received.
#[derive(Debug)]
pub(in crate::work) struct EventStream {
    remote: Remote,
    /// The number of the last event.
    reached: u64,
    connection: Option<EventConnection>,
}

#[derive(Debug)]
struct EventConnection {
    stream: Box<AnswerStream>,
    events: ServerEvents,
    heard_at: Instant,
}

impl EventStream {
    /// From now on.
    pub(in crate::work) fn from_now(remote: &Remote) -> WorkResult<Self> {
        let reply = remote.ask(&RemoteRequest::get("/health"))?;
        let health: HealthDocument = remote.read(&reply, from_json)?;
        Ok(Self { remote: remote.clone(), reached: health.last_event, connection: None })
    }

    /// Waits until something has happened, but no longer than this. After an error the caller may call it again.
    pub(in crate::work) fn next_within(&mut self, limit: Duration) -> WorkResult<SeenChanges> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.connect()?,
        };
        let bytes = match connection.stream.next_within(limit).map_err(RemoteError::Away)? {
            StreamPart::End => return Ok(SeenChanges::default()),
            StreamPart::Nothing if connection.heard_at.elapsed() >= SILENCE_MAX => {
                return Ok(SeenChanges::default());
            }
            StreamPart::Nothing => Vec::new(),
            StreamPart::Bytes(bytes) => {
                connection.heard_at = Instant::now();
                bytes
            }
        };
        let mut seen = SeenChanges::default();
        for event in connection.events.feed(&bytes) {
            self.hear(&event, &mut seen);
        }
        self.connection = Some(connection);
        Ok(seen)
    }

    fn hear(&mut self, event: &ServerEvent, seen: &mut SeenChanges) {
        if event.kind == "truncated" {
            seen.missed = true;
        }
        if let Ok(number) = event.id.parse() {
            self.reached = number;
        }
        // An event of a later version that is not understood is about nothing that is known here.
        let about = from_json::<EventDocument>(&event.data).ok().and_then(|event| event.issue_id);
        if let Some(Ok(bead)) = about.as_deref().map(BeadId::parse) {
            seen.add(bead);
        }
    }

    fn connect(&self) -> WorkResult<EventConnection> {
        let address = self.remote.below("/events")?;
        let reached = self.reached.to_string();
        let shown = self.remote.authorization();
        let mut headers = vec![("Last-Event-ID", reached.as_str())];
        headers.extend(shown.as_deref().map(|shown| ("Authorization", shown)));
        let request = WebRequest {
            method: Method::Get,
            address: &address,
            headers: &headers,
            content: None,
            limit: ANSWER_TIMEOUT,
            interrupt: None,
        };
        match request.listen(ANSWER_BYTES_MAX).map_err(RemoteError::Away)? {
            Listening::Refused(reply) => {
                Err(RemoteError::of_reply(&self.remote.address, &reply).into())
            }
            Listening::Begun(stream) => Ok(EventConnection {
                stream,
                events: ServerEvents::default(),
                heard_at: Instant::now(),
            }),
        }
    }
}

impl SeenChanges {
    /// Each bead once.
    pub(in crate::work) fn add(&mut self, bead: BeadId) {
        if !self.changed.contains(&bead) {
            self.changed.push(bead);
        }
    }
}
