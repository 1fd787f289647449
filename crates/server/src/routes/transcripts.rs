//! `GET /api/v1/runs/{id}/transcript`: what an agent did and said.

use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::unfold;
use gt_api::{TranscriptEventDocument, to_json};
use gt_core::schedule::RunId;
use gt_execution::runs::RunTranscript;
use gt_town::Town;
use gt_transcripts::TranscriptEvent;
use tokio::sync::OwnedSemaphorePermit;

use crate::auth::RequestCaller;
use crate::problem::{PendingProblem, RequestProblem};
use crate::query::QueryParameters;
use crate::service::{RoomKind, SharedService};

/// How often the output of a run is read for new events.
const OUTPUT_POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Show what the agent of a run did and said
///
/// One event on each line, oldest first. The stream ends with the events so far; with `follow`, when the run ends, when the
/// server stops, and when the token that was shown is revoked or expires.
#[utoipa::path(
    get,
    path = "/api/v1/runs/{id}/transcript",
    tag = "runs",
    params(
        ("id" = String, Path, description = "A run such as gt-abc%232, or a bead for its live or last one"),
        ("follow" = Option<bool>, Query, description = "Whether to send new events until the run ends"),
    ),
    responses(
        (status = 200, description = "The events, each a line of JSON.", body = TranscriptEventDocument, content_type = "application/x-ndjson"),
        (status = 400, description = "A parameter is wrong."),
        (status = 404, description = "There is no such run."),
        (status = 409, description = "The output of the run is not here."),
        (status = 503, description = "There are too many listeners."),
    )
)]
pub(super) async fn transcript(
    State(service): State<SharedService>,
    Extension(caller): Extension<RequestCaller>,
    Path(id): Path<String>,
    mut query: QueryParameters,
) -> Result<Response, PendingProblem> {
    let follow = match query.take("follow")?.as_deref() {
        None | Some("false") => false,
        Some("true") => true,
        Some(other) => {
            let detail = format!("\"{other}\" is neither true nor false");
            return Err(RequestProblem::malformed_field("follow", detail).into());
        }
    };
    query.finish(&["follow"])?;
    let place = if follow { Some(service.rooms.enter(RoomKind::Listener)?) } else { None };
    let open = move |town: &Town| {
        let run = gt_beads::run_records::resolve(town, &id)
            .map_err(|error| RequestProblem::not_found(error.to_string()))?;
        let transcript = RunTranscript::of(town, &run)?;
        Ok::<_, Box<RequestProblem>>((run.id, transcript))
    };
    let (run, transcript) = service.ask(open).await?;
    let reader = TranscriptReader {
        service: Arc::clone(&service),
        run,
        transcript: Some(transcript),
        follow,
        _place: place,
    };
    let (keys, whose) = (Arc::clone(&service), caller.clone());
    let ended = Box::pin(async move { keys.keys.ended(&keys, &whose).await });
    let stream = unfold((reader, ended), |(mut reader, mut ended)| async {
        let stopping = reader.service.stopping.clone();
        let events = tokio::select! {
            biased;
            _ = &mut ended => return None,
            () = stopping.cancelled() => return None,
            events = reader.next() => events?,
        };
        Some((Ok::<_, std::convert::Infallible>(events), (reader, ended)))
    });
    let headers = [
        (header::CONTENT_TYPE, "application/x-ndjson"),
        (header::CACHE_CONTROL, "no-store"),
        // A proxy that collects answers before it passes them on would keep the events to itself.
        (header::HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    Ok((headers, Body::from_stream(stream.fuse())).into_response())
}

/// Reads the events of one run for one client.
struct TranscriptReader {
    service: SharedService,
    run: RunId,
    /// Nothing once the last event was read.
    transcript: Option<RunTranscript>,
    follow: bool,
    _place: Option<OwnedSemaphorePermit>,
}

impl TranscriptReader {
    /// The next lines; nothing when it is over. A failure ends the stream: its head was sent already.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            let mut transcript = self.transcript.take()?;
            let (run, follow) = (self.run.clone(), self.follow);
            let read = move |town: &Town| {
                // The store is asked before the file is read, so that no event before the end is missed.
                let is_live = follow && is_live(town, &run)?;
                let events = match transcript.read()? {
                    Some(events) => events,
                    None if is_live => Vec::new(),
                    None => return Ok((transcript.finish(), None)),
                };
                Ok::<_, Box<RequestProblem>>((events, Some(transcript)))
            };
            let (events, transcript) = self.service.ask(read).await.ok()?;
            self.transcript = transcript;
            if !events.is_empty() {
                return Some(lines_of(&events));
            }
            self.transcript.as_ref()?;
            tokio::time::sleep(OUTPUT_POLL_INTERVAL).await;
        }
    }
}

fn is_live(town: &Town, run: &RunId) -> Result<bool, Box<RequestProblem>> {
    let run = town.read(|reader| Ok(reader.run(run)?))?;
    Ok(run.is_some_and(|run| run.state.is_live()))
}

fn lines_of(events: &[TranscriptEvent]) -> Bytes {
    let mut lines = String::new();
    for event in events {
        lines.push_str(&to_json(&TranscriptEventDocument::from(event)));
        lines.push('\n');
    }
    lines.into()
}
