//! Whether the wait of a gate is over.

use std::time::Duration;

use crate::time::format_duration;
use crate::{Status, Timestamp};

/// What is known of the thing that a gate waits for.
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
}
