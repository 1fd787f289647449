//! Gates: beads that hold others up until something happens outside.

use std::path::PathBuf;
use std::time::Duration;

use gt_core::decide::{GateFacts, GateVerdict, judge_gate};
use gt_core::message::Severity;
use gt_core::{Bead, IssueType, Json, Status};
use gt_executors::hosting::{AwaitedObject, awaited_state};
use gt_store::{BeadFilter, Reader, StatusFilter};

use crate::acting::refuse_worker;
use crate::beads::{Close, close, everything};
use crate::lookup::resolve_in;
use crate::messages::{Escalation, escalate};
use gt_town::{OperationError, Result, Town};

/// Which gates are checked, and what follows.
#[derive(Debug, Clone, Default)]
pub struct GateCheck {
    /// Only gates of this type; `gh` means all that wait for GitHub. All without one.
    pub kind: Option<String>,
    /// At most so many.
    pub limit: usize,
    /// Only say how they stand.
    pub dry_run: bool,
    /// Ask for a person about a gate that cannot open by itself.
    pub escalate: bool,
    /// The checkout whose repository gates of GitHub are about.
    pub checkout: PathBuf,
}

/// A gate that was checked.
#[derive(Debug, Clone)]
pub struct CheckedGate {
    /// The gate.
    pub gate: Bead,
    /// How it stands.
    pub verdict: GateVerdict,
}

/// Every gate, or only those that are not closed.
pub fn gates_filter(all: bool) -> BeadFilter {
    let status = if all { StatusFilter::All } else { StatusFilter::Current };
    BeadFilter { types: vec![IssueType::trusted("gate".to_owned())], status, ..everything() }
}

/// The fields that a gate carries: its type, its name, and how long it waits, in nanoseconds.
pub fn gate_fields(kind: &str, id: &str, length: Option<Duration>) -> Vec<(String, Json)> {
    let mut fields = vec![("await_type".to_owned(), Json::string(kind))];
    if !id.is_empty() {
        fields.push(("await_id".to_owned(), Json::string(id)));
    }
    if let Some(length) = length {
        let nanoseconds = u64::try_from(length.as_nanos()).unwrap_or(u64::MAX);
        fields.push(("timeout".to_owned(), Json::trusted(nanoseconds.to_string())));
    }
    fields
}

/// Looks whether the wait of each open gate is over, and closes those where it is. Gates that a person opens are left out.
pub fn check_gates(town: &Town, check: &GateCheck) -> Result<Vec<CheckedGate>> {
    let mut known = town.read(|reader| {
        let mut known = Vec::new();
        for row in reader.bead_rows(&reader.find(&gates_filter(false))?)? {
            let kind = carried_text(&row.bead, "await_type");
            let is_asked = check.kind.as_deref().is_none_or(|asked| {
                asked == "all" || kind == asked || (asked == "gh" && kind.starts_with("gh:"))
            });
            if is_asked {
                let facts = local_facts(town, reader, &row.bead, &kind)?;
                known.push((row.bead, kind, facts));
            }
        }
        Ok(known)
    })?;
    known.retain(|(_, _, facts)| *facts != Some(GateFacts::Person));
    known.truncate(check.limit);
    let mut checked = Vec::new();
    for (gate, kind, facts) in known {
        // No transaction waits for another program.
        let facts = facts.unwrap_or_else(|| match refuse_worker(town, "asking GitHub") {
            Ok(()) => outside_facts(&gate, &kind, check),
            Err(refused) => GateFacts::Unknown(refused.to_string()),
        });
        let mut verdict = judge_gate(&facts, town.now());
        match &verdict {
            GateVerdict::Resolved(reason) if !check.dry_run => {
                let how = Close { reasons: vec![reason.clone()], ..Close::default() };
                for closed in close(town, &[gate.id.to_string()], &how)? {
                    if let Err(error) = closed {
                        verdict = GateVerdict::Failed(error.to_string());
                    }
                }
            }
            GateVerdict::Escalated(reason) if !check.dry_run && check.escalate => {
                let words =
                    format!("The gate {} \"{}\" does not open: {reason}", gate.id, gate.title);
                let bead = Some(gate.id.to_string());
                escalate(town, None, &Escalation { bead, words, severity: Severity::High })?;
            }
            _ => {}
        }
        checked.push(CheckedGate { gate, verdict });
    }
    Ok(checked)
}

fn carried_text(bead: &Bead, name: &str) -> String {
    let value = bead.carried.iter().find(|(known, _)| known == name).map(|(_, value)| value);
    value.and_then(Json::to_text).unwrap_or_default()
}

/// The facts of a gate that the store knows; nothing for one that another program has to be asked about.
fn local_facts(
    town: &Town,
    reader: &Reader<'_>,
    gate: &Bead,
    kind: &str,
) -> Result<Option<GateFacts>> {
    Ok(Some(match kind {
        "timer" => GateFacts::Timer { made_at: gate.created_at, length: length_of(gate) },
        "bead" => {
            let name = carried_text(gate, "await_id");
            // Other programs write the rig before the bead.
            let bead = name.rsplit_once(':').map_or(name.as_str(), |(_, bead)| bead);
            let status = match resolve_in(town, reader, bead) {
                Ok(id) => reader.bead(&id)?.map(|bead| bead.status),
                Err(OperationError::NoBead(_) | OperationError::Invalid(_)) => None::<Status>,
                Err(error) => return Err(error),
            };
            GateFacts::Bead { name, status }
        }
        _ if kind.starts_with("gh:run") || kind.starts_with("gh:pr") => return Ok(None),
        _ => GateFacts::Person,
    }))
}

/// How long a timer waits: its field in nanoseconds, or its name as a duration.
fn length_of(gate: &Bead) -> Option<Duration> {
    let field = gate.carried.iter().find(|(name, _)| name == "timeout");
    let nanoseconds = field.and_then(|(_, value)| value.as_str().parse::<u64>().ok());
    let named = || gt_core::time::parse_duration(&carried_text(gate, "await_id")).ok();
    nanoseconds.map(Duration::from_nanos).filter(|length| !length.is_zero()).or_else(named)
}

fn outside_facts(gate: &Bead, kind: &str, check: &GateCheck) -> GateFacts {
    let name = carried_text(gate, "await_id");
    let is_run = kind.starts_with("gh:run");
    let object =
        if is_run { AwaitedObject::WorkflowRun(&name) } else { AwaitedObject::PullRequest(&name) };
    match awaited_state(object, &check.checkout) {
        Err(why) => GateFacts::Unknown(why),
        Ok(answer) => {
            let text = |field: &str| answer.string_field(field).unwrap_or_default();
            if is_run {
                GateFacts::WorkflowRun { status: text("status"), conclusion: text("conclusion") }
            } else {
                GateFacts::PullRequest { state: text("state") }
            }
        }
    }
}
