//! The receiver of telemetry, which has one thread.

use std::net::SocketAddr;

use axum::Router;
use axum::body::Bytes;
use axum::routing::post;
use gt_executors::telemetry::TelemetryReceiver;

use super::client::ask_all;
use crate::BenchmarkResult;
use crate::lab::Lab;
use crate::measure::{Arm, alternate, median};
use crate::report::ReportRow;

/// The connections, as of agents that work at once.
const CONNECTIONS: u32 = 16;
/// The messages of one connection in one round.
const MESSAGES_EACH: u32 = 500;
/// The least messages in a second.
const SPEED_MIN: f64 = 1000.0;
/// The secret of the receiver.
const SECRET: &str = "0123456789abcdef";

/// Messages with one request to a model each, against a bare server with one thread that reads the body. Counts the messages
/// that got an answer and were not counted.
pub(crate) fn run(lab: &Lab) -> BenchmarkResult<Vec<ReportRow>> {
    let receiver = TelemetryReceiver::start(SECRET.to_owned(), "we-1#1".to_owned())?;
    let variables = receiver.environment("");
    let endpoint = variables.iter().find(|(name, _)| name == "OTEL_EXPORTER_OTLP_ENDPOINT");
    let (_, endpoint) = endpoint.ok_or("the receiver does not say where it is")?;
    let ours: SocketAddr = endpoint.trim_start_matches("http://").parse()?;
    let bare = bare_server()?;
    let mut lost = 0_u64;
    let ours_arm: Arm<'_> = Box::new(|| {
        let time = ask_all(ours, CONNECTIONS, MESSAGES_EACH, message, |_| Ok(()))?;
        let arrived = receiver.take().requests.len() as u64;
        lost += u64::from(CONNECTIONS * MESSAGES_EACH).saturating_sub(arrived);
        Ok(time)
    });
    let bare_arm: Arm<'_> =
        Box::new(|| ask_all(bare, CONNECTIONS, MESSAGES_EACH, message, |_| Ok(())));
    let times = alternate(lab.scale.long_rounds, [ours_arm, bare_arm])?;
    let (time, baseline) = (median(&times[0]), median(&times[1]));
    let messages = CONNECTIONS * MESSAGES_EACH;
    let name = format!(
        "telemetry: OTLP messages with one request each, {CONNECTIONS} connections, one thread, {lost} lost; against a \
         bare server with one thread that reads the body"
    );
    let row = ReportRow::speeds(name, messages, time, baseline, None);
    let speed = f64::from(messages) / time.as_secs_f64();
    let target = format!("≥ {SPEED_MIN:.0}/s, none lost");
    let met = Some(lost == 0 && speed >= SPEED_MIN);
    Ok(vec![ReportRow { target, met, ..row }])
}

/// A message as Claude Code sends it, different each time.
fn message(connection: u32, number: u32) -> Vec<u8> {
    let attribute = |key: &str, kind: &str, value: &str| {
        format!(r#"{{"key":"{key}","value":{{"{kind}":"{value}"}}}}"#)
    };
    let attributes = [
        attribute("event.name", "stringValue", "api_request"),
        attribute("session.id", "stringValue", &format!("session-{connection}")),
        attribute("model", "stringValue", "claude-sonnet-4-5"),
        attribute("input_tokens", "intValue", &number.to_string()),
        attribute("output_tokens", "intValue", "812"),
        attribute("cache_read_tokens", "intValue", "48211"),
        attribute("cost_usd", "stringValue", "0.0213"),
        attribute("duration_ms", "intValue", "5210"),
    ]
    .join(",");
    let time = u64::from(connection) * 1_000_000 + u64::from(number);
    let body = format!(
        r#"{{"resourceLogs":[{{"resource":{{"attributes":[]}},"scopeLogs":[{{"logRecords":[{{"timeUnixNano":"{time}","body":{{"stringValue":"claude_code.api_request"}},"attributes":[{attributes}]}}]}}]}}]}}"#
    );
    let length = body.len();
    format!(
        "POST /v1/logs HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {SECRET}\r\ncontent-type: \
         application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

/// A server with one thread that reads bodies. It ends with the program.
fn bare_server() -> BenchmarkResult<SocketAddr> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    std::thread::spawn(move || {
        runtime.block_on(async {
            let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
            let routes = Router::new().route("/v1/logs", post(take));
            let _ = axum::serve(listener, routes).await;
        });
    });
    Ok(address)
}

async fn take(body: Bytes) -> &'static str {
    if body.is_empty() { "" } else { "{}" }
}
