//! Gates: beads that hold others up until something happens outside.

use std::path::PathBuf;
use std::time::Duration;

use gt_core::decide::{
    GateFacts, GateVerdict, StartedWorkflowRun, choose_workflow_run, judge_gate,
};
use gt_core::message::Severity;
use gt_core::{Bead, BeadId, IssueType, Json, Status, Timestamp};
use gt_executors::git;
use gt_executors::hosting::{AwaitedObject, awaited_state, latest_workflow_runs};
use gt_store::{BeadFilter, Reader, StatusFilter};

use crate::acting::refuse_worker;
use crate::beads::{BeadChanges, Close, ClosedBead, close, update, update_in};
use crate::lookup::{require, resolve_in};
use crate::messages::{Escalation, escalate};
use gt_town::{OperationError, Result, Town};

/// The field with the name of the thing that a gate waits for.
const AWAITED: &str = "await_id";
/// The field with the addresses that wait for a gate.
const WAITERS: &str = "waiters";

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
    BeadFilter {
        types: vec![IssueType::trusted("gate".to_owned())],
        status,
        ..BeadFilter::everything()
    }
}

/// The fields that a gate carries: its type, its name, and how long it waits, in nanoseconds.
pub fn gate_fields(kind: &str, id: &str, length: Option<Duration>) -> Vec<(String, Json)> {
    let mut fields = vec![("await_type".to_owned(), Json::string(kind))];
    if !id.is_empty() {
        fields.push((AWAITED.to_owned(), Json::string(id)));
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

/// Enters an address among those that wait for a gate, in its field `waiters`. Says whether it was not there yet.
pub fn add_waiter(town: &Town, gate: &str, waiter: &str) -> Result<(BeadId, bool)> {
    if waiter.trim().is_empty() {
        return Err(OperationError::rejected("the address that waits cannot be empty"));
    }
    town.write(|writer| {
        let gate = required_gate(town, writer, gate)?;
        let field = gate.carried.iter().find(|(name, _)| name == WAITERS);
        let mut waiters = field.and_then(|(_, value)| value.elements()).unwrap_or_default();
        if waiters.iter().any(|known| known.to_text().as_deref() == Some(waiter)) {
            return Ok((gate.id, false));
        }
        waiters.push(Json::string(waiter));
        let carried = vec![(WAITERS, Some(Json::array(&waiters)))];
        let changes = BeadChanges { carried, ..BeadChanges::default() };
        Ok((update_in(town, writer, gate.id.as_str(), &changes)?, true))
    })
}

/// Closes gates. If one of the names means no gate, none is closed.
pub fn resolve_gates(
    town: &Town,
    inputs: &[String],
    how: &Close,
) -> Result<Vec<Result<ClosedBead>>> {
    let gates = town.read(|reader| {
        let found = inputs.iter().map(|input| required_gate(town, reader, input));
        found.map(|gate| Ok(gate?.id.to_string())).collect::<Result<Vec<_>>>()
    })?;
    close(town, &gates, how)
}

fn required_gate(town: &Town, reader: &Reader<'_>, input: &str) -> Result<Bead> {
    let gate = require(town, reader, input)?;
    if gate.issue_type.as_str() != "gate" {
        return Err(OperationError::rejected(format!(
            "{} is a {}, not a gate; bd gate list shows gates",
            gate.id, gate.issue_type
        )));
    }
    Ok(gate)
}

/// Which workflow runs gates may wait for.
#[derive(Debug, Clone, Default)]
pub struct GateDiscovery {
    /// Only runs of this branch.
    pub branch: Option<String>,
    /// At most so many runs are looked at.
    pub limit: usize,
    /// Only runs that started in this time before now.
    pub age_max: Duration,
    /// Only say which runs they are.
    pub dry_run: bool,
    /// The checkout whose repository the gates are about.
    pub checkout: PathBuf,
}

/// The gates that wait for a workflow run without its number, and the run of each that was found. Unless it is a dry run,
/// its number is written into the gate.
pub fn discover_runs(
    town: &Town,
    wanted: &GateDiscovery,
) -> Result<Vec<(BeadId, Option<StartedWorkflowRun>)>> {
    refuse_worker(town, "asking GitHub")?;
    let mut gates = town.read(|reader| {
        let rows = reader.bead_rows(&reader.find(&gates_filter(false))?)?;
        Ok(rows.into_iter().map(|row| row.bead).collect::<Vec<_>>())
    })?;
    let is_number = |name: &str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
    gates.retain(|gate| {
        carried_text(gate, "await_type") == "gh:run" && !is_number(&carried_text(gate, AWAITED))
    });
    if gates.is_empty() {
        return Ok(Vec::new());
    }
    let answer = latest_workflow_runs(&wanted.checkout, wanted.branch.as_deref(), wanted.limit);
    let answer = answer.map_err(OperationError::rejected)?;
    let now = town.now();
    let mut runs: Vec<StartedWorkflowRun> = answer.iter().filter_map(started_run).collect();
    runs.retain(|run| now.since(run.started_at) <= wanted.age_max);
    let latest = git::commit_messages(&wanted.checkout, 1).unwrap_or_default();
    let commit = latest.first().map(|latest| latest.commit.as_str());
    let mut found = Vec::with_capacity(gates.len());
    for gate in gates {
        let workflow = carried_text(&gate, AWAITED);
        let run = choose_workflow_run(gate.created_at, &workflow, commit, &runs).cloned();
        if let Some(run) = run.as_ref().filter(|_| !wanted.dry_run) {
            let carried = vec![(AWAITED, Some(Json::string(&run.number)))];
            let changes = BeadChanges { carried, ..BeadChanges::default() };
            for updated in update(town, &[gate.id.to_string()], &changes)? {
                updated?;
            }
        }
        found.push((gate.id, run));
    }
    Ok(found)
}

fn started_run(answer: &Json) -> Option<StartedWorkflowRun> {
    let fields = answer.fields()?;
    let number = fields.iter().find(|(name, _)| name == "databaseId")?.1.as_str().to_owned();
    let text = |field: &str| answer.string_field(field).unwrap_or_default();
    Some(StartedWorkflowRun {
        number,
        workflow: text("workflowName"),
        commit: text("headSha"),
        started_at: Timestamp::parse(&text("createdAt")).ok()?,
    })
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
            let name = carried_text(gate, AWAITED);
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
    let named = || gt_core::time::parse_duration(&carried_text(gate, AWAITED)).ok();
    nanoseconds.map(Duration::from_nanos).filter(|length| !length.is_zero()).or_else(named)
}

fn outside_facts(gate: &Bead, kind: &str, check: &GateCheck) -> GateFacts {
    let name = carried_text(gate, AWAITED);
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
