//! Numbers for monitoring the server, in the text format of Prometheus.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The upper bounds of the buckets that durations are counted in, in seconds.
const BUCKETS: [(f64, &str); 12] = [
    (0.001, "0.001"),
    (0.0025, "0.0025"),
    (0.005, "0.005"),
    (0.01, "0.01"),
    (0.025, "0.025"),
    (0.05, "0.05"),
    (0.1, "0.1"),
    (0.25, "0.25"),
    (0.5, "0.5"),
    (1.0, "1"),
    (5.0, "5"),
    (30.0, "30"),
];

/// The name under which requests are counted that no route is for, so that clients cannot make names up.
pub(crate) const NO_ROUTE: &str = "none";

#[derive(Debug, Default)]
struct Durations {
    buckets: [u64; BUCKETS.len()],
    count: u64,
    seconds: f64,
}

/// The requests of one route.
#[derive(Debug, Default)]
struct Requests {
    by_status: BTreeMap<(&'static str, u16), u64>,
    durations: Durations,
}

/// The counters.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    requests: Mutex<BTreeMap<String, Requests>>,
    /// Requests that are being answered.
    pub(crate) in_flight: AtomicI64,
    /// Open connections.
    pub(crate) connections: AtomicI64,
    /// Connections that were refused because there were too many.
    pub(crate) refused: AtomicU64,
    /// Listeners to the events.
    pub(crate) listeners: AtomicI64,
    /// Requests that wait for work.
    pub(crate) waiting: AtomicI64,
    /// Lines of the access log that the writer could not take.
    pub(crate) unlogged: AtomicU64,
    /// Times that a listener had to read the store because it was behind.
    pub(crate) catch_ups: AtomicU64,
}

/// The methods that are counted by name; a client may send any word.
fn known_method(method: &str) -> &'static str {
    match method {
        "GET" => "GET",
        "HEAD" => "HEAD",
        "POST" => "POST",
        "PATCH" => "PATCH",
        "PUT" => "PUT",
        "DELETE" => "DELETE",
        "OPTIONS" => "OPTIONS",
        _ => "OTHER",
    }
}

impl Metrics {
    /// One more request was answered.
    pub(crate) fn answered(&self, route: &str, method: &str, status: u16, time: Duration) {
        let mut routes = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        // Nearly always it is known.
        if !routes.contains_key(route) {
            routes.insert(route.to_owned(), Requests::default());
        }
        let Some(Requests { by_status, durations }) = routes.get_mut(route) else { return };
        *by_status.entry((known_method(method), status)).or_default() += 1;
        let seconds = time.as_secs_f64();
        durations.count += 1;
        durations.seconds += seconds;
        for (bucket, (bound, _)) in durations.buckets.iter_mut().zip(BUCKETS) {
            *bucket += u64::from(seconds <= bound);
        }
    }

    /// All of it, as text. `last_event` is the number of the last event that was seen.
    pub(crate) fn render(&self, last_event: u64) -> String {
        let mut out = String::new();
        let routes = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        begin(&mut out, "gt_http_requests_total", "counter", "Requests that were answered.");
        for (route, requests) in &*routes {
            for ((method, status), count) in &requests.by_status {
                let _ = writeln!(
                    out,
                    "gt_http_requests_total{{route=\"{route}\",method=\"{method}\",status=\"{status}\"}} {count}"
                );
            }
        }
        let name = "gt_http_request_duration_seconds";
        begin(&mut out, name, "histogram", "How long answers took.");
        for (route, Requests { durations, .. }) in &*routes {
            for (count, (_, bound)) in durations.buckets.iter().zip(BUCKETS) {
                let _ = writeln!(out, "{name}_bucket{{route=\"{route}\",le=\"{bound}\"}} {count}");
            }
            let (count, seconds) = (durations.count, durations.seconds);
            let _ = writeln!(out, "{name}_bucket{{route=\"{route}\",le=\"+Inf\"}} {count}");
            let _ = writeln!(out, "{name}_sum{{route=\"{route}\"}} {seconds}");
            let _ = writeln!(out, "{name}_count{{route=\"{route}\"}} {count}");
        }
        drop(routes);
        for (name, help, value) in [
            ("gt_http_requests_in_flight", "Requests that are being answered.", &self.in_flight),
            ("gt_http_connections", "Open connections.", &self.connections),
            ("gt_http_event_listeners", "Listeners to the events.", &self.listeners),
            ("gt_http_waiting_for_work", "Requests that wait for work.", &self.waiting),
        ] {
            begin(&mut out, name, "gauge", help);
            let _ = writeln!(out, "{name} {}", value.load(Ordering::Relaxed));
        }
        for (name, help, value) in [
            (
                "gt_http_connections_refused_total",
                "Connections refused because there were too many.",
                &self.refused,
            ),
            (
                "gt_http_log_lines_dropped_total",
                "Lines of the access log that the writer could not take in time.",
                &self.unlogged,
            ),
            (
                "gt_http_event_catch_ups_total",
                "Times that a listener was behind and read the store.",
                &self.catch_ups,
            ),
        ] {
            begin(&mut out, name, "counter", help);
            let _ = writeln!(out, "{name} {}", value.load(Ordering::Relaxed));
        }
        begin(&mut out, "gt_last_event_number", "gauge", "The last event that was seen.");
        let _ = writeln!(out, "gt_last_event_number {last_event}");
        out
    }
}

/// Begins a metric.
pub(crate) fn begin(out: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

/// Counts something for as long as it lives.
#[derive(Debug)]
pub(crate) struct GaugeGuard<M: std::ops::Deref<Target = Metrics>>(M, fn(&Metrics) -> &AtomicI64);

impl<M: std::ops::Deref<Target = Metrics>> GaugeGuard<M> {
    pub(crate) fn new(metrics: M, which: fn(&Metrics) -> &AtomicI64) -> Self {
        which(&metrics).fetch_add(1, Ordering::Relaxed);
        Self(metrics, which)
    }
}

impl<M: std::ops::Deref<Target = Metrics>> Drop for GaugeGuard<M> {
    fn drop(&mut self) {
        (self.1)(&self.0).fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_by_route_and_in_buckets() {
        let metrics = Metrics::default();
        metrics.answered("/work", "POST", 201, Duration::from_millis(2));
        metrics.answered("/work", "BREW", 405, Duration::from_mins(1));
        let text = metrics.render(7);
        for line in [
            "gt_http_requests_total{route=\"/work\",method=\"POST\",status=\"201\"} 1",
            "gt_http_requests_total{route=\"/work\",method=\"OTHER\",status=\"405\"} 1",
            "gt_http_request_duration_seconds_bucket{route=\"/work\",le=\"0.001\"} 0",
            "gt_http_request_duration_seconds_bucket{route=\"/work\",le=\"0.0025\"} 1",
            "gt_http_request_duration_seconds_bucket{route=\"/work\",le=\"+Inf\"} 2",
            "gt_last_event_number 7",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
    }

    #[test]
    fn a_gauge_goes_down_when_its_guard_is_dropped() {
        let metrics = Metrics::default();
        let counted = GaugeGuard::new(&metrics, |metrics| &metrics.listeners);
        assert_eq!(metrics.listeners.load(Ordering::Relaxed), 1);
        drop(counted);
        assert_eq!(metrics.listeners.load(Ordering::Relaxed), 0);
    }
}
