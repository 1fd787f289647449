//! Whether the wait of a gate is over.

use std::time::Duration;

use crate::time::format_duration;
use crate::{Status, Timestamp};

/// The known state of the object that a gate waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GateFacts {
    /// A person opens it.
    Person,
    /// A time since the gate was made.
    Timer {
        /// When the gate was made.
        made_at: Timestamp,
        /// How long it waits; nothing if the gate does not say.
        length: Option<Duration>,
    },
    /// A bead, with its status; nothing if there is no such bead.
    Bead {
        /// Its name in the gate.
        name: String,
        /// Its status.
        status: Option<Status>,
    },
    /// A run of a workflow.
    WorkflowRun {
        /// `completed`, or how far it is.
        status: String,
        /// How it ended.
        conclusion: String,
    },
    /// A pull request, with its state.
    PullRequest {
        /// `OPEN`, `MERGED` or `CLOSED`.
        state: String,
    },
    /// It could not be found out.
    Unknown(String),
}

/// How a gate stands, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GateVerdict {
    /// The wait is over.
    Resolved(String),
    /// It can never be over by itself; a person must decide.
    Escalated(String),
    /// It goes on.
    Pending(String),
    /// It could not be found out.
    Failed(String),
}

fn to_the_second(duration: Duration) -> Duration {
    Duration::from_secs(duration.as_secs())
}

/// A run of a workflow that a gate may wait for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartedWorkflowRun {
    /// Its number.
    pub number: String,
    /// The name of the workflow.
    pub workflow: String,
    /// The hash of the commit it is about.
    pub commit: String,
    /// When it started.
    pub started_at: Timestamp,
}

/// How near in time a run of another commit must be to the gate, if the gate names no workflow.
const RUN_NEAR_GATE: Duration = Duration::from_mins(5);

/// The run that a gate made at `made_at` waits for, among runs that may be meant: one of the current commit, which begins
/// with `commit`, or else the one that started nearest to the gate. If the gate names a workflow, no other one counts.
pub fn choose_workflow_run<'r>(
    made_at: Timestamp,
    workflow: &str,
    commit: Option<&str>,
    runs: &'r [StartedWorkflowRun],
) -> Option<&'r StartedWorkflowRun> {
    let name = |text: &str| {
        let text = text.strip_suffix(".yml").or_else(|| text.strip_suffix(".yaml")).unwrap_or(text);
        text.to_lowercase()
    };
    let is_current = |run: &StartedWorkflowRun| {
        commit.is_some_and(|commit| !commit.is_empty() && run.commit.starts_with(commit))
    };
    let distance =
        |run: &StartedWorkflowRun| made_at.since(run.started_at).max(run.started_at.since(made_at));
    let is_meant = |run: &&StartedWorkflowRun| match workflow {
        "" => is_current(run) || distance(run) <= RUN_NEAR_GATE,
        workflow => name(&run.workflow) == name(workflow),
    };
    runs.iter().filter(is_meant).min_by_key(|run| (!is_current(run), distance(run)))
}

/// How a gate stands at this time.
pub fn judge_gate(facts: &GateFacts, now: Timestamp) -> GateVerdict {
    match facts {
        GateFacts::Person => GateVerdict::Pending("waits for a person".to_owned()),
        GateFacts::Timer { length: None, .. } => {
            GateVerdict::Failed("the gate does not say how long it waits".to_owned())
        }
        GateFacts::Timer { made_at, length: Some(length) } => {
            let over_at = made_at.plus(*length);
            if over_at <= now {
                let since = format_duration(to_the_second(now.since(over_at)));
                GateVerdict::Resolved(format!("the time was over {since} ago"))
            } else {
                let left = format_duration(to_the_second(over_at.since(now)));
                GateVerdict::Pending(format!("waits {left} more"))
            }
        }
        GateFacts::Bead { name, status: None } => {
            GateVerdict::Escalated(format!("there is no bead {name}"))
        }
        GateFacts::Bead { name, status: Some(Status::Closed) } => {
            GateVerdict::Resolved(format!("{name} is closed"))
        }
        GateFacts::Bead { name, status: Some(status) } => {
            GateVerdict::Pending(format!("{name} is {status}"))
        }
        GateFacts::WorkflowRun { status, conclusion } => {
            match (status.as_str(), conclusion.as_str()) {
                ("completed", "success" | "skipped" | "neutral") => {
                    GateVerdict::Resolved(format!("the workflow run ended: {conclusion}"))
                }
                ("completed", _) => {
                    GateVerdict::Escalated(format!("the workflow run ended: {conclusion}"))
                }
                _ => GateVerdict::Pending(format!("the workflow run is {status}")),
            }
        }
        GateFacts::PullRequest { state } => match state.as_str() {
            "MERGED" => GateVerdict::Resolved("the pull request was merged".to_owned()),
            "CLOSED" => {
                GateVerdict::Escalated("the pull request was closed without a merge".to_owned())
            }
            _ => GateVerdict::Pending("the pull request is open".to_owned()),
        },
        GateFacts::Unknown(why) => GateVerdict::Failed(why.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_gate_ends_its_wait_in_its_own_way() {
        let now = Timestamp::parse("2026-01-02T00:00:00Z").unwrap();
        let timer = |seconds: u64| GateFacts::Timer {
            made_at: now.minus(Duration::from_mins(1)),
            length: Some(Duration::from_secs(seconds)),
        };
        let bead = |status: Option<Status>| GateFacts::Bead { name: "gt-a".to_owned(), status };
        let run = |status: &str, conclusion: &str| GateFacts::WorkflowRun {
            status: status.to_owned(),
            conclusion: conclusion.to_owned(),
        };
        let pull = |state: &str| GateFacts::PullRequest { state: state.to_owned() };
        let word = |facts: &GateFacts| match judge_gate(facts, now) {
            GateVerdict::Resolved(_) => "resolved",
            GateVerdict::Escalated(_) => "escalated",
            GateVerdict::Pending(_) => "pending",
            GateVerdict::Failed(_) => "failed",
        };
        for (facts, expected) in [
            (GateFacts::Person, "pending"),
            (timer(60), "resolved"),
            (timer(61), "pending"),
            (GateFacts::Timer { made_at: now, length: None }, "failed"),
            (bead(Some(Status::Closed)), "resolved"),
            (bead(Some(Status::Open)), "pending"),
            (bead(None), "escalated"),
            (run("completed", "success"), "resolved"),
            (run("completed", "failure"), "escalated"),
            (run("in_progress", ""), "pending"),
            (pull("MERGED"), "resolved"),
            (pull("CLOSED"), "escalated"),
            (pull("OPEN"), "pending"),
            (GateFacts::Unknown("no gh".to_owned()), "failed"),
        ] {
            assert_eq!(word(&facts), expected, "{facts:?}");
        }
    }

    #[test]
    fn a_gate_waits_for_the_run_of_its_workflow_and_commit() {
        let made_at = Timestamp::parse("2026-01-02T00:00:00Z").unwrap();
        let run = |number: &str, workflow: &str, commit: &str, minutes: u64| StartedWorkflowRun {
            number: number.to_owned(),
            workflow: workflow.to_owned(),
            commit: commit.to_owned(),
            started_at: made_at.plus(Duration::from_mins(minutes)),
        };
        let runs = [
            run("1", "Tests", "aaaa", 1),
            run("2", "Release", "aaaa", 9),
            run("3", "Release", "bbbb", 20),
        ];
        let chosen = |workflow: &str, commit: Option<&str>| {
            choose_workflow_run(made_at, workflow, commit, &runs).map(|run| run.number.as_str())
        };
        assert_eq!(chosen("", Some("bb")), Some("3"));
        assert_eq!(chosen("", Some("cc")), Some("1"));
        assert_eq!(chosen("", Some("")), Some("1"));
        assert_eq!(chosen("release.yml", None), Some("2"));
        assert_eq!(chosen("Release", Some("bbbb")), Some("3"));
        assert_eq!(chosen("lint", Some("aaaa")), None);
        assert_eq!(choose_workflow_run(made_at, "", Some("cc"), &runs[1..]), None);
    }
}
