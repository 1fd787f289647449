//! The telemetry of the agents of a run.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use gt_core::cost::{TokenCounts, UsageRecord, UsageSource};
use gt_core::runtime::Runtime;
use gt_core::schedule::{Money, RunId};
use gt_core::work::RunToken;
use gt_executors::process::{has_variable, inherited_variable};
use gt_executors::telemetry::{ATTRIBUTES_VARIABLE, TelemetryReceiver};

/// Variables by which a person sends the telemetry of agents somewhere else.
const OWN_COLLECTOR: [&str; 2] =
    ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT"];

/// Everything that the agents of a run have sent.
pub(super) struct RunTelemetry {
    /// Nothing if it could not be started: the output of agents tells their usage too.
    receiver: Option<TelemetryReceiver>,
    counts: Mutex<TelemetryCounts>,
}

#[derive(Default)]
struct TelemetryCounts {
    session: u32,
    /// The records that were counted: a sender that gets no answer sends them again.
    seen: HashSet<u64>,
    sums: BTreeMap<(u32, String), (TokenCounts, Option<Money>)>,
    unreadable: u64,
    of_other_runs: u64,
    refused: u64,
}

impl RunTelemetry {
    /// Begins to receive from those who know the token of the run.
    pub(super) fn start(run: &RunId, token: &RunToken) -> Self {
        Self {
            receiver: TelemetryReceiver::start(token.reveal(), run.to_string()).ok(),
            counts: Mutex::new(TelemetryCounts::default()),
        }
    }

    /// The variables for an agent of a session that begins. There are none if its runtime sends nothing, or if a person sends it
    /// somewhere else.
    pub(super) fn begin_session(
        &self,
        session: u32,
        runtime: &Runtime,
        environment: &[(String, String)],
    ) -> Vec<(String, String)> {
        self.collect().session = session;
        let is_own =
            |name: &&str| has_variable(name) || environment.iter().any(|(known, _)| known == name);
        match &self.receiver {
            Some(receiver)
                if !runtime.telemetry.is_empty() && !OWN_COLLECTOR.iter().any(is_own) =>
            {
                let mut variables = runtime.telemetry.clone();
                let own = environment.iter().find(|(name, _)| name == ATTRIBUTES_VARIABLE);
                let own = own.map(|(_, value)| value.clone());
                let attributes = own.or_else(|| inherited_variable(ATTRIBUTES_VARIABLE));
                variables.extend(receiver.environment(&attributes.unwrap_or_default()));
                variables
            }
            _ => Vec::new(),
        }
    }

    /// The messages that were received so far.
    pub(super) fn records(&self) -> Vec<UsageRecord> {
        let counts = self.collect();
        let record = |((session, model), (tokens, cost)): (
            &(u32, String),
            &(TokenCounts, Option<Money>),
        )| {
            UsageRecord {
                session: *session,
                model: model.clone(),
                source: UsageSource::Telemetry,
                tokens: *tokens,
                reported: *cost,
                priced: None,
            }
        };
        counts.sums.iter().map(record).collect()
    }

    /// The faults in messages, for people.
    pub(super) fn problems(&self) -> Vec<String> {
        let counts = self.collect();
        let refused = format!("{} telemetry messages were not from the run", counts.refused);
        let of_other_runs = format!(
            "{} telemetry records named another run and do not count",
            counts.of_other_runs
        );
        let unreadable = format!("{} telemetry records could not be read", counts.unreadable);
        let mut problems = Vec::new();
        problems.extend((counts.refused > 0).then_some(refused));
        problems.extend((counts.of_other_runs > 0).then_some(of_other_runs));
        problems.extend((counts.unreadable > 0).then_some(unreadable));
        problems
    }

    /// Counts what has arrived.
    fn collect(&self) -> MutexGuard<'_, TelemetryCounts> {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(receiver) = &self.receiver else { return counts };
        let received = receiver.take();
        counts.unreadable += received.unreadable;
        counts.of_other_runs += received.of_other_runs;
        counts.refused += received.refused;
        let session = counts.session;
        for request in received.requests {
            if !counts.seen.insert(request.identity) {
                continue;
            }
            let (tokens, cost) = counts.sums.entry((session, request.model)).or_default();
            *tokens = tokens.plus(request.tokens);
            *cost = Money::sum(cost.iter().copied().chain(request.cost));
        }
        counts
    }
}
