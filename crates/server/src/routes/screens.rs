//! The screens of workers, the wall of all of them, and their keyboards.

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use futures_util::stream::{BoxStream, once, pending, select_all, unfold};
use futures_util::{FutureExt as _, StreamExt as _};
use gt_api::{KeyStrokesDocument, KeysTypedDocument, ScreenDocument, TileProblemDocument, to_json};
use gt_beads::messages::{self, MessageToSend};
use gt_core::schedule::Run;
use gt_execution::runs::message_delivery::{NudgeDelivery, deliver};
use gt_execution::runs::{KeyStrokes, KeysTyped, NamedKey, type_keys};
use gt_town::Town;

use crate::answer::json;
use crate::auth::RequestCaller;
use crate::body::{BodyFields, ChangeRequest};
use crate::problem::{PendingProblem, RequestProblem};
use crate::query::QueryParameters;
use crate::screens::{ScreenForm, ScreenViewer, Screens, keyboard_taken};
use crate::service::{RoomKind, SharedService};

/// How many tiles a wall has at most.
const TILES_MAX: usize = 64;
/// The beginning of a stream: the milliseconds after which a client connects again, and a comment.
const HELLO: &[u8] = b"retry: 2000\n: looking\n\n";
/// The comment that is sent when nothing changes.
const KEEP_ALIVE: &[u8] = b": still here\n\n";

/// Look at the screen of a worker
///
/// An event `screen` with the whole screen as styled text comes first and after each change, at most ten in a second; frames that
/// a client is too slow for are left out. A worker without a screen shows the last lines of its transcript. After the last
/// frame of a run nothing more comes. The stream ends with the server and with the login.
#[utoipa::path(
    get,
    path = "/api/v1/runs/{id}/screen",
    tag = "screens",
    params(("id" = String, Path, description = "A run such as gt-abc%232, or a bead for its live or last one")),
    responses(
        (status = 200, description = "Server-sent events, each with a screen.", body = ScreenDocument, content_type = "text/event-stream"),
        (status = 400, description = "There are no parameters."),
        (status = 404, description = "There is no such run."),
        (status = 409, description = "The output of the run is not here."),
        (status = 503, description = "Too many screens are open."),
    )
)]
pub(super) async fn screen(
    State(service): State<SharedService>,
    Extension(caller): Extension<RequestCaller>,
    Path(id): Path<String>,
    query: QueryParameters,
) -> Result<Response, PendingProblem> {
    query.finish(&[])?;
    let places = (service.rooms.enter(RoomKind::Listener)?, service.screens.enter(&caller)?);
    let run = service.ask(move |town| find(town, &id)).await?;
    let viewer = Screens::watch(&service, run, ScreenForm::Whole).await?;
    // A browser would ask again for the screen of a run that is over.
    Ok(stream(service, caller, places, frames_of(viewer).chain(pending()).boxed()))
}

/// Look at the screens of many workers
///
/// An event `tile` with the bottom of a screen comes first and after each change, at most two in a second for each run. Ask only for
/// tiles that are in sight: nothing is rendered that no client looks at. A run that cannot be shown sends a `problem` once.
#[utoipa::path(
    get,
    path = "/api/v1/wall",
    tag = "screens",
    params(("runs" = String, Query, description = "Runs or beads, separated by commas, at most 64")),
    responses(
        (status = 200, description = "Server-sent events, each with a tile.", body = ScreenDocument, content_type = "text/event-stream"),
        (status = 400, description = "A parameter is wrong."),
        (status = 503, description = "Too many screens are open."),
    )
)]
pub(super) async fn wall(
    State(service): State<SharedService>,
    Extension(caller): Extension<RequestCaller>,
    mut query: QueryParameters,
) -> Result<Response, PendingProblem> {
    let named = query.take("runs")?.unwrap_or_default();
    query.finish(&["runs"])?;
    let mut named: Vec<String> =
        named.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect();
    named.sort();
    named.dedup();
    if named.is_empty() || named.len() > TILES_MAX {
        let detail = format!("name 1 to {TILES_MAX} runs, separated by commas");
        return Err(RequestProblem::malformed_field("runs", detail).into());
    }
    let places = (service.rooms.enter(RoomKind::Listener)?, service.screens.enter(&caller)?);
    let mut tiles: Vec<BoxStream<'static, Bytes>> = Vec::new();
    for id in named {
        let asked = id.clone();
        let found = service.ask(move |town| find(town, &asked)).await;
        let looked = match found {
            Ok(run) => Screens::watch(&service, run, ScreenForm::Tile).await,
            Err(problem) => Err(problem),
        };
        tiles.push(match looked {
            Ok(viewer) => frames_of(viewer),
            Err(problem) => {
                let document = TileProblemDocument { run: id, problem: problem.detail.clone() };
                let text = format!("event: tile\ndata: {}\n\n", to_json(&document));
                once(async move { Bytes::from(text) }).boxed()
            }
        });
    }
    // A wall whose runs are all over stays open: a browser would ask for it again and again.
    let tiles = select_all(tiles).chain(pending()).boxed();
    Ok(stream(service, caller, places, tiles))
}

/// Type into the session of a worker
///
/// One client at a time has the keyboard of a run. A worker without a screen gets a text as a message, as `gt nudge` sends it.
#[utoipa::path(
    post,
    path = "/api/v1/runs/{id}/keys",
    tag = "screens",
    params(("id" = String, Path, description = "A run such as gt-abc%232, or a bead for its live one")),
    request_body = KeyStrokesDocument,
    responses(
        (status = 200, description = "The worker has it.", body = KeysTypedDocument),
        (status = 409, description = "Another client types there, or there is nothing to type into."),
    )
)]
pub(super) async fn keys(
    Path(id): Path<String>,
    ChangeRequest { service, caller, body }: ChangeRequest,
) -> Result<Response, PendingProblem> {
    let mut fields = BodyFields::of(&body, "")?;
    let (text, key) = (fields.text("text"), fields.text("key"));
    let strokes = match (text, key) {
        (Some(text), None) => fields.read("text", KeyStrokes::text(text)),
        (None, Some(key)) => fields.read("key", NamedKey::parse(&key)).map(KeyStrokes::Key),
        _ => {
            fields.wrong("text", "give either text or key");
            None
        }
    };
    fields.check()?;
    let Some(strokes) = strokes else {
        return Err(RequestProblem::malformed_field("text", "give either text or key").into());
    };
    let run = service.ask(move |town| find(town, &id)).await?;
    service.screens.take_keyboard(&run.id, &caller)?;
    let typed = service.change(&caller, move |town| type_or_nudge(town, &run, &strokes)).await?;
    Ok(json(StatusCode::OK, &typed))
}

fn type_or_nudge(
    town: &Town,
    run: &Run,
    strokes: &KeyStrokes,
) -> Result<KeysTypedDocument, Box<RequestProblem>> {
    let typed = |how: &str, detail: String| KeysTypedDocument {
        run: run.id.to_string(),
        how: how.to_owned(),
        detail,
    };
    match (type_keys(town, run, strokes)?, strokes) {
        (KeysTyped::Session(session), _) => Ok(typed("typed", session)),
        (KeysTyped::Taken, _) => {
            Err(keyboard_taken(&format!("another process types into {}", run.id)))
        }
        (KeysTyped::NoScreen, KeyStrokes::Text(text)) => {
            let letter = MessageToSend { subject: None, body: text.clone(), nudge: true };
            let message = messages::send(town, None, run.id.bead.as_ref(), &letter)?;
            let detail = match deliver(town, &message)? {
                NudgeDelivery::Session(session) => format!("{} is in {session}", message.id),
                NudgeDelivery::Waits(why) => format!("{} waits: {why}", message.id),
            };
            Ok(typed("nudged", detail))
        }
        (KeysTyped::NoScreen, KeyStrokes::Key(_)) => Err(RequestProblem::conflict(format!(
            "the worker of {} has no screen, so that there are no keys; send a text",
            run.id
        ))),
    }
}

fn find(town: &Town, id: &str) -> Result<Run, Box<RequestProblem>> {
    gt_beads::run_records::resolve(town, id)
        .map_err(|error| RequestProblem::not_found(error.to_string()))
}

fn frames_of(viewer: ScreenViewer) -> BoxStream<'static, Bytes> {
    unfold(viewer, |mut viewer| async { viewer.next().await.map(|frame| (frame, viewer)) }).boxed()
}

/// The frames as an answer that goes on until they end, the server stops or the login ends.
fn stream(
    service: SharedService,
    caller: RequestCaller,
    places: impl Send + 'static,
    frames: BoxStream<'static, Bytes>,
) -> Response {
    let (keys, whose) = (Arc::clone(&service), caller.clone());
    let ended = async move { keys.keys.ended(&keys, &whose).await }.boxed();
    let hello = once(async { Bytes::from_static(HELLO) });
    let state = (hello.chain(frames).boxed(), ended, service, caller, places);
    let sent = unfold(state, |(mut frames, mut ended, service, caller, places)| async move {
        let frame = tokio::select! {
            biased;
            _ = &mut ended => return None,
            () = service.stopping.cancelled() => return None,
            frame = frames.next() => frame?,
            () = tokio::time::sleep(service.limits.keep_alive) => Bytes::from_static(KEEP_ALIVE),
        };
        // Nothing is sent after the end of the login, even if its end was not heard of yet.
        service.keys.confirm(&service, &caller).await.ok()?;
        Some((Ok::<_, std::convert::Infallible>(frame), (frames, ended, service, caller, places)))
    });
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-store"),
        // A proxy that collects answers before it passes them on would keep the frames to itself.
        (header::HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    (headers, Body::from_stream(sent.fuse())).into_response()
}
