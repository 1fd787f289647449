//! Receives the telemetry of one agent: OTLP over HTTP as JSON, on the loopback address.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::routing::post;
use gt_core::cost::{RUN_ATTRIBUTE, RequestUsage, usage_in_logs};
use tokio::sync::oneshot;

/// The largest message. Agents send their records in small batches.
const BODY_BYTES_MAX: usize = 4 << 20;

/// The variable with the attributes that a sender puts on each record.
pub const ATTRIBUTES_VARIABLE: &str = "OTEL_RESOURCE_ATTRIBUTES";

/// The messages that have arrived since the last look.
#[derive(Debug, Default)]
pub struct ReceivedTelemetry {
    /// The requests that the agent made to its model.
    pub requests: Vec<RequestUsage>,
    /// Records whose numbers cannot be read, and messages that cannot.
    pub unreadable: u64,
    /// Records that name another run.
    pub of_other_runs: u64,
    /// Messages without the right secret.
    pub refused: u64,
}

/// A receiver for one agent. It ends when it is dropped.
#[derive(Debug)]
pub struct TelemetryReceiver {
    address: SocketAddr,
    secret: String,
    run: String,
    received: Arc<Mutex<ReceivedTelemetry>>,
    stop: Option<oneshot::Sender<()>>,
    server: Option<JoinHandle<()>>,
}

#[derive(Clone)]
struct ReceiverState {
    secret: Arc<str>,
    run: Arc<str>,
    received: Arc<Mutex<ReceivedTelemetry>>,
}

impl TelemetryReceiver {
    /// Begins to receive what the agent of a run sends with this secret.
    pub fn start(secret: String, run: String) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let received = Arc::new(Mutex::new(ReceivedTelemetry::default()));
        let state = ReceiverState {
            secret: secret.as_str().into(),
            run: run.as_str().into(),
            received: received.clone(),
        };
        let (stop, stopped) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let server = std::thread::Builder::new().name("telemetry".to_owned()).spawn(move || {
            runtime.block_on(async {
                let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
                let server = axum::serve(listener, routes(state)).into_future();
                // An agent may keep its connection open, so its end is not waited for.
                tokio::select! {
                    _ = server => {}
                    _ = stopped => {}
                }
            });
        })?;
        Ok(Self { address, secret, run, received, stop: Some(stop), server: Some(server) })
    }

    /// The variables that lead an agent here. `attributes` are those that a person puts on its records.
    pub fn environment(&self, attributes: &str) -> Vec<(String, String)> {
        let is_ours = |item: &str| item.split('=').next().map(str::trim) == Some(RUN_ATTRIBUTE);
        // The run comes last, and instead of the run that this process may itself belong to.
        let kept = attributes.split(',').filter(|item| !item.trim().is_empty() && !is_ours(item));
        let ours = format!("{RUN_ATTRIBUTE}={}", self.run);
        let attributes: Vec<&str> = kept.chain([ours.as_str()]).collect();
        vec![
            (ATTRIBUTES_VARIABLE.to_owned(), attributes.join(",")),
            ("OTEL_EXPORTER_OTLP_ENDPOINT".to_owned(), format!("http://{}", self.address)),
            ("OTEL_EXPORTER_OTLP_PROTOCOL".to_owned(), "http/json".to_owned()),
            (
                "OTEL_EXPORTER_OTLP_HEADERS".to_owned(),
                format!("Authorization=Bearer {}", self.secret),
            ),
        ]
    }

    /// The messages that have arrived since the last call.
    pub fn take(&self) -> ReceivedTelemetry {
        std::mem::take(&mut *lock(&self.received))
    }
}

impl Drop for TelemetryReceiver {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(server) = self.server.take() {
            let _ = server.join();
        }
    }
}

fn lock(received: &Mutex<ReceivedTelemetry>) -> MutexGuard<'_, ReceivedTelemetry> {
    received.lock().unwrap_or_else(PoisonError::into_inner)
}

fn routes(state: ReceiverState) -> Router {
    Router::new()
        .route("/v1/logs", post(take_logs))
        // Nothing in these is needed, and a sender that is refused would try again.
        .route("/v1/metrics", post(take_nothing))
        .route("/v1/traces", post(take_nothing))
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .with_state(state)
}

async fn take_nothing() -> &'static str {
    "{}"
}

async fn take_logs(
    State(state): State<ReceiverState>,
    headers: HeaderMap,
    body: Bytes,
) -> (StatusCode, &'static str) {
    let said = headers.get(header::AUTHORIZATION).map(HeaderValue::as_bytes);
    let mut received = lock(&state.received);
    if said != Some(format!("Bearer {}", state.secret).as_bytes()) {
        received.refused += 1;
        return (StatusCode::UNAUTHORIZED, "{}");
    }
    let Ok(usage) = usage_in_logs(&body, &state.run) else {
        received.unreadable += 1;
        return (StatusCode::BAD_REQUEST, "{}");
    };
    received.requests.extend(usage.requests);
    received.unreadable += usage.unreadable;
    received.of_other_runs += usage.of_other_runs;
    (StatusCode::OK, "{}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_attributes_of_a_person_stay_and_name_no_other_run() {
        let receiver = TelemetryReceiver::start("secret".to_owned(), "we-1#2".to_owned()).unwrap();
        for (given, expected) in [
            ("", "gt.run=we-1#2"),
            ("team=web, gt.run=up-7#1,place=here", "team=web,place=here,gt.run=we-1#2"),
            (" ,", "gt.run=we-1#2"),
        ] {
            let variables = receiver.environment(given);
            let attributes = variables.iter().find(|(name, _)| name == ATTRIBUTES_VARIABLE);
            assert_eq!(attributes.unwrap().1, expected);
        }
    }
}
