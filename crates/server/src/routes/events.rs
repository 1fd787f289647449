//! `GET /events`: what happens, as it happens.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt as _;
use futures_util::stream::unfold;
use gt_beads::events::{EventFollower, last_number};
use gt_town::EventFilter;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use super::about::unreadable;
use crate::auth::RequestCaller;
use crate::event_broadcast::EventFrame;
use crate::metrics::{GaugeGuard, Metrics};
use crate::problem::{PendingProblem, RequestProblem};
use crate::query::QueryParameters;
use crate::service::{RoomKind, SharedService};

/// The header with the last event that a listener has seen.
const LAST_EVENT_ID: &str = "last-event-id";
/// The beginning of a stream: the milliseconds after which a client connects again, and a comment.
const HELLO: &[u8] = b"retry: 2000\n: listening\n\n";
/// The comment that is sent when there are no events.
const KEEP_ALIVE: &[u8] = b": still here\n\n";
/// How many bytes go out together.
const TOGETHER_BYTES_MAX: usize = 64 * 1024;

/// Events, as they happen.
///
/// Each event has the number of the event log as its id; a client that comes back with `Last-Event-ID` (browsers do by
/// themselves) or `?since=` goes on where it was, and nothing is skipped or comes twice. If what comes after that
/// number is not kept any more, an event `truncated` says so first. The stream ends when the server stops, and when the
/// token that was shown is revoked or expires.
#[utoipa::path(
    get,
    path = "/events",
    tag = "events",
    params(
        ("since" = Option<u64>, Query, description = "The number of the last event that was seen; 0 for all that are kept"),
        ("Last-Event-ID" = Option<u64>, Header, description = "The same; it goes before `since`"),
    ),
    responses(
        (status = 200, description = "Server-sent events.", content_type = "text/event-stream"),
        (status = 400, description = "That is no number."),
        (status = 503, description = "There are too many listeners."),
    )
)]
pub(super) async fn events(
    State(service): State<SharedService>,
    Extension(caller): Extension<RequestCaller>,
    headers: HeaderMap,
    query: QueryParameters,
) -> Result<Response, PendingProblem> {
    stream(service, caller, &headers, query).await
}

/// Events of the town, as they happen
///
/// The same stream as `/events`, for the views of a town.
#[utoipa::path(
    get,
    path = "/api/v1/events",
    tag = "events",
    params(
        ("since" = Option<u64>, Query, description = "The number of the last event that was seen; 0 for all that are kept"),
        ("Last-Event-ID" = Option<u64>, Header, description = "The same; it goes before `since`"),
    ),
    responses(
        (status = 200, description = "Server-sent events.", content_type = "text/event-stream"),
        (status = 400, description = "That is no number."),
        (status = 503, description = "There are too many listeners."),
    )
)]
pub(super) async fn town_events(
    State(service): State<SharedService>,
    Extension(caller): Extension<RequestCaller>,
    headers: HeaderMap,
    query: QueryParameters,
) -> Result<Response, PendingProblem> {
    stream(service, caller, &headers, query).await
}

async fn stream(
    service: SharedService,
    caller: RequestCaller,
    headers: &HeaderMap,
    mut query: QueryParameters,
) -> Result<Response, PendingProblem> {
    let since = query.take("since")?;
    query.finish(&["since"])?;
    let named = headers.get(LAST_EVENT_ID).map(|value| value.to_str().unwrap_or("?"));
    let cursor = match (named, since) {
        (Some(number), _) => Some(number_of("Last-Event-ID", number)?),
        (None, Some(number)) => Some(number_of("since", &number)?),
        (None, None) => None,
    };
    let place = service.rooms.enter(RoomKind::Listener)?;
    // First, so that what happens while the past is read is not missed.
    let frames = service.news.listen();
    let now = service.ask(|town| last_number(town).map_err(|_| unreadable())).await?;
    let listener = EventStreamClient {
        _place: place,
        _counted: GaugeGuard::new(Arc::clone(&service.metrics), |metrics| &metrics.listeners),
        frames,
        // An event that the reader of the log has not come to yet is past all the same.
        cursor: cursor.unwrap_or(now),
        is_behind: cursor.is_some(),
        greeted: false,
        service,
    };
    let (keys, whose) = (Arc::clone(&listener.service), caller.clone());
    let ended = Box::pin(async move { keys.keys.ended(&keys, &whose).await });
    let stream = unfold((listener, caller, ended), |(mut listener, caller, mut ended)| async {
        let heard = tokio::select! {
            biased;
            _ = &mut ended => return None,
            heard = listener.next() => heard?,
        };
        let service = &listener.service;
        if service.keys.confirm(service, &caller).await.is_err() {
            return None;
        }
        Some((Ok::<_, std::convert::Infallible>(heard), (listener, caller, ended)))
    });
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-store"),
        // A proxy that collects answers before it passes them on would keep the news to itself.
        (header::HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    Ok((headers, Body::from_stream(stream.fuse())).into_response())
}

fn number_of(field: &str, text: &str) -> Result<u64, Box<RequestProblem>> {
    text.trim().parse().map_err(|_| {
        RequestProblem::malformed_field(
            field,
            "this is the number of an event, such as the id of one that was sent",
        )
    })
}

/// A client that listens.
struct EventStreamClient {
    service: SharedService,
    frames: Receiver<EventFrame>,
    /// The number of the last event that was sent.
    cursor: u64,
    /// There is more in the store than what will come by itself.
    is_behind: bool,
    greeted: bool,
    _place: OwnedSemaphorePermit,
    _counted: GaugeGuard<Arc<Metrics>>,
}

impl EventStreamClient {
    /// The next bytes to send; nothing when it is over.
    async fn next(&mut self) -> Option<Bytes> {
        if !std::mem::replace(&mut self.greeted, true) {
            return Some(Bytes::from_static(HELLO));
        }
        let stopping = self.service.stopping.clone();
        loop {
            if self.is_behind {
                let read = tokio::select! {
                    biased;
                    () = stopping.cancelled() => return None,
                    read = self.catch_up() => read,
                };
                match read {
                    // The client comes back and goes on where it was.
                    Err(_) => return None,
                    Ok(None) => self.is_behind = false,
                    Ok(Some(text)) => return Some(text),
                }
                continue;
            }
            tokio::select! {
                biased;
                () = stopping.cancelled() => return None,
                heard = self.frames.recv() => {
                    if let Some(text) = self.hear(heard)? {
                        return Some(text);
                    }
                }
                () = tokio::time::sleep(self.service.limits.keep_alive) => {
                    return Some(Bytes::from_static(KEEP_ALIVE));
                }
            }
        }
    }

    /// Takes a frame. Nothing if the log is not read any more; nothing to send if it was known, or if the store must
    /// be asked first.
    #[expect(clippy::option_option, reason = "over, nothing yet, and something are three things")]
    fn hear(&mut self, heard: Result<EventFrame, RecvError>) -> Option<Option<Bytes>> {
        match heard {
            Err(RecvError::Closed) => None,
            Err(RecvError::Lagged(_)) => {
                self.is_behind = true;
                Some(None)
            }
            Ok(frame) if frame.number <= self.cursor => Some(None),
            // Numbers have no gaps: what is missing here is in the store.
            Ok(frame) if frame.number > self.cursor + 1 => {
                self.is_behind = true;
                Some(None)
            }
            Ok(frame) => {
                self.cursor = frame.number;
                let Ok(second) = self.frames.try_recv() else { return Some(Some(frame.text)) };
                let mut text = BytesMut::from(&frame.text[..]);
                let mut following = Ok(second);
                while let Ok(frame) = following
                    && frame.number == self.cursor + 1
                {
                    self.cursor = frame.number;
                    text.extend_from_slice(&frame.text);
                    if text.len() >= TOGETHER_BYTES_MAX {
                        return Some(Some(text.freeze()));
                    }
                    following = self.frames.try_recv();
                }
                // The end of this loop means no more frames, or frames to find in the store.
                self.is_behind = self.service.news.reached() > self.cursor;
                Some(Some(text.freeze()))
            }
        }
    }

    /// Reads what comes next from the store. Nothing if that is all there is.
    async fn catch_up(&mut self) -> Result<Option<Bytes>, Box<RequestProblem>> {
        let from = self.cursor;
        let (events, last) = self
            .service
            .ask(move |town| {
                let events = EventFollower::after(from, EventFilter::default()).next(town);
                events.and_then(|events| Ok((events, last_number(town)?))).map_err(|_| unreadable())
            })
            .await?;
        self.service.metrics.catch_ups.fetch_add(1, Ordering::Relaxed);
        let mut text = BytesMut::new();
        let oldest = events.first().map_or(last + 1, |event| event.number);
        // Numbers have no gaps, so a gap is what is not kept any more; and what has not happened yet is of another store.
        if oldest != from + 1 {
            let told = format!(
                "event: truncated\ndata: {{\"since\":{from},\"oldest\":{oldest},\"last\":{last}}}\n\n"
            );
            text.extend_from_slice(told.as_bytes());
            self.cursor = oldest.saturating_sub(1).min(last);
        }
        for event in &events {
            text.extend_from_slice(&EventFrame::of(event).text);
            self.cursor = event.number;
        }
        Ok(if text.is_empty() { None } else { Some(text.freeze()) })
    }
}
