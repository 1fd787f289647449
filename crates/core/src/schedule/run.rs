//! Runs: attempts of workers.

use std::fmt;

use super::context::names;
use super::place::WorkerPlace;
use super::usage::{Reserve, Usage};
use crate::work::Lease;
use crate::{BeadId, ExecutorKind, Invalid, Json, RigSlug, Timestamp, Uid};

/// The name of a run: `<bead>#<epoch>`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId {
    /// The bead.
    pub bead: BeadId,
    /// Which attempt, from 1. A later one fences an earlier one off.
    pub epoch: u32,
}

impl RunId {
    /// Reads `gt-abc#3`.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let invalid = || {
            let shown = text.chars().take(60).collect::<String>();
            Invalid(format!("\"{}\" is not a run; runs look like gt-abc#3", shown.escape_debug()))
        };
        let (bead, epoch) = text.rsplit_once('#').ok_or_else(invalid)?;
        // A run has one name: no sign, and no zero in front.
        let plain = epoch.starts_with(|digit: char| matches!(digit, '1'..='9'));
        let epoch = epoch.parse::<u32>().ok().filter(|_| plain);
        Ok(Self { bead: BeadId::parse(bead)?, epoch: epoch.ok_or_else(invalid)? })
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.bead, self.epoch)
    }
}

names! {
    /// The state of a run.
    RunState, "a state of a run" {
        /// It has its slot; its worker has not taken it yet.
        Starting = "starting",
        /// Its worker is at it.
        Running = "running",
        /// Its worker waits for something outside.
        Blocked = "blocked",
        /// It ended well.
        Done = "done",
        /// It ended badly.
        Failed = "failed",
        /// It ended without saying how.
        Lost = "lost",
        /// A person or an agent ended it.
        Cancelled = "cancelled",
    }
}

impl RunState {
    /// Whether it still holds its bead and its slot.
    pub fn is_live(self) -> bool {
        match self {
            Self::Starting | Self::Running | Self::Blocked => true,
            Self::Done | Self::Failed | Self::Lost | Self::Cancelled => false,
        }
    }
}

names! {
    /// The cause of a lost run.
    RunLoss, "something that takes a run" {
        /// Its agent died, or left without saying how it ended.
        Agent = "agent",
        /// The machine went down, and everything on it.
        Host = "host",
        /// The server of its session went down, and every session with it.
        Session = "session",
        /// Its account, or its runtime, had reached its usage limit.
        Limit = "limit",
        /// It was over a limit of its own, and was ended.
        Budget = "budget",
    }
}

names! {
    /// A limit of a single run.
    RunLimit, "a limit of a run" {
        /// How long it may take.
        Time = "time",
        /// Its maximum cost.
        Cost = "cost",
        /// How many tokens it may use.
        Tokens = "tokens",
    }
}

impl RunLimit {
    /// The name of its setting.
    pub fn setting(self) -> &'static str {
        match self {
            Self::Time => "budget.run_time",
            Self::Cost => "budget.run_cost",
            Self::Tokens => "budget.run_tokens",
        }
    }
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunEnd {
    /// The final state.
    pub state: RunState,
    /// The exit code of its worker, if it had one.
    pub exit_code: Option<i32>,
    /// The signal that ended its worker, if one did.
    pub exit_signal: Option<i32>,
    /// The reason, in words.
    pub reason: String,
    /// The cause, if it was lost.
    pub loss: RunLoss,
    /// Whether it left a commit: then its runtime and account work.
    pub committed: bool,
}

impl RunEnd {
    /// An end without an exit status. Nothing is known of a commit, and if it is a loss, the agent is to blame.
    pub fn without_status(state: RunState, reason: impl Into<String>) -> Self {
        Self {
            state,
            exit_code: None,
            exit_signal: None,
            reason: reason.into(),
            loss: RunLoss::Agent,
            committed: false,
        }
    }
}

names! {
    /// The worker's own report at the end of its work.
    DoneStatus, "a way to be done" {
        /// The work is done.
        Completed = "completed",
        /// A person is needed.
        Escalated = "escalated",
        /// The work is put off.
        Deferred = "deferred",
    }
}

/// The place where a run works.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Workplace {
    /// The session that its worker has, if it has one.
    pub session: String,
    /// Its tree, below the town; empty for none.
    pub tree: String,
    /// The branch it works on.
    pub branch: String,
    /// The branch it began from and lands on.
    pub base: String,
    /// The commit it began from.
    pub base_commit: String,
}

/// The landing of the work of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Landing {
    /// The commit that was accepted; empty for none.
    pub accepted: String,
    /// The commit of the target branch that has it; empty before that.
    pub commit: String,
}

/// One attempt of one worker at one bead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// Its name.
    pub id: RunId,
    /// Its alias for clients that want a UUID.
    pub uid: Uid,
    /// The number of the context it came from.
    pub context: u64,
    /// The rig it runs in.
    pub rig: RigSlug,
    /// Its executor.
    pub executor: ExecutorKind,
    /// The preset of its worker; empty for the rig's own command.
    pub runtime: String,
    /// The agent that works on it.
    pub agent: String,
    /// The named place it occupies, if it does.
    pub place: Option<WorkerPlace>,
    /// The machine it runs on: its name and, after a slash, its unique id.
    pub host: String,
    /// The account it is charged to; empty for none.
    pub account: String,
    /// The place where it works.
    pub workplace: Workplace,
    /// It counts towards the cap of queued work.
    pub gated: bool,
    /// Its state.
    pub state: RunState,
    /// The lock of the process that starts it.
    pub starter: String,
    /// The recipe it follows; empty for none.
    pub formula: String,
    /// The cooked recipe, a JSON object.
    pub steps: Json,
    /// When it was begun.
    pub created_at: Timestamp,
    /// The actor that began it.
    pub created_by: String,
    /// When its worker claimed it.
    pub running_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// The actor that ended it; empty if it ended by itself.
    pub ended_by: String,
    /// The exit code of its worker.
    pub exit_code: Option<i32>,
    /// The signal that ended its worker.
    pub exit_signal: Option<i32>,
    /// The reason of its end.
    pub reason: String,
    /// When its worker printed something last, if people were told that it is silent.
    pub silent_since: Option<Timestamp>,
    /// Its worker's report at the end.
    pub said: Option<DoneStatus>,
    /// The landing of its work.
    pub landing: Landing,
    /// Its usage, as far as it is known.
    pub usage: Usage,
    /// How long its agent has it without another word, if it asked for it.
    pub lease: Option<Lease>,
    /// When the lease ends.
    pub lease_expires_at: Option<Timestamp>,
    /// The limit of its own that it was over, if it was asked to hand over for that.
    pub over_limit: Option<RunLimit>,
    /// The share of the budgets that its start reserved.
    pub reserved: Reserve,
}

impl Run {
    /// A run that was begun just now: it has its slot, and nothing else is known of it yet.
    pub fn begun(
        id: RunId,
        uid: Uid,
        context: u64,
        rig: RigSlug,
        executor: ExecutorKind,
        created_at: Timestamp,
    ) -> Self {
        Self {
            id,
            uid,
            context,
            rig,
            executor,
            runtime: String::new(),
            agent: String::new(),
            place: None,
            host: String::new(),
            account: String::new(),
            workplace: Workplace::default(),
            gated: false,
            state: RunState::Starting,
            starter: String::new(),
            formula: String::new(),
            steps: Json::object(&[]),
            created_at,
            created_by: String::new(),
            running_at: None,
            ended_at: None,
            ended_by: String::new(),
            exit_code: None,
            exit_signal: None,
            reason: String::new(),
            silent_since: None,
            said: None,
            landing: Landing::default(),
            usage: Usage::default(),
            lease: None,
            lease_expires_at: None,
            over_limit: None,
            reserved: Reserve::default(),
        }
    }

    /// Its state for people. A run whose worker never began has not failed at anything.
    pub fn state_name(&self) -> &'static str {
        let has_begun = self.running_at.is_some() || !self.executor.takes_slot();
        if self.state == RunState::Failed && !has_begun {
            "not started"
        } else {
            self.state.as_str()
        }
    }

    /// Whether it has one of the slots that caps count.
    pub fn holds_slot(&self) -> bool {
        self.state.is_live() && self.executor.takes_slot()
    }

    /// Whether a commit of its own was accepted, and not only the one that it began from.
    pub fn has_work(&self) -> bool {
        let accepted = &self.landing.accepted;
        !accepted.is_empty() && *accepted != self.workplace.base_commit
    }

    /// The sentence about it for people: the reason of its end, or the wait of a live run.
    pub fn explanation(&self) -> String {
        self.silence().map_or_else(|| self.reason.clone(), |silence| silence.to_string())
    }

    /// Whether it runs on this machine. Names do not count if there is more: they change, and need not differ.
    pub fn is_on(&self, host: &str) -> bool {
        host_identity(&self.host) == host_identity(host)
    }

    /// The name of the machine it runs on, for people.
    pub fn host_name(&self) -> &str {
        self.host.rsplit_once('/').map_or(&self.host, |(name, _)| name)
    }
}

/// The identity in the name that runs give their host: `<machine>/<identity>`.
pub fn host_identity(host: &str) -> &str {
    host.rsplit_once('/').map_or(host, |(_, identity)| identity)
}

/// Whether `name` means `host`: it has the same identity, or it is only the name of the machine.
pub fn is_host_named(host: &str, name: &str) -> bool {
    let machine = host.rsplit_once('/').map_or(host, |(machine, _)| machine);
    host_identity(host) == host_identity(name) || machine == name
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_host_is_named_by_its_identity_or_by_its_machine() {
        let host = "builder/0a1b";
        for name in ["builder/0a1b", "0a1b", "builder", "renamed/0a1b"] {
            assert!(is_host_named(host, name), "{name}");
        }
        for name in ["builder/ffff", "build", "0a1", "builder/", "other"] {
            assert!(!is_host_named(host, name), "{name}");
        }
    }

    #[test]
    fn a_run_is_named_by_bead_and_epoch() {
        let run = RunId::parse("gt-a#b#3").unwrap();
        assert_eq!((run.bead.as_str(), run.epoch), ("gt-a#b", 3));
        assert_eq!(run.to_string(), "gt-a#b#3");
        for wrong in
            ["gt-a", "gt-a#", "gt-a#0", "gt-a#03", "gt-a#x", "gt-a#-1", "gt-a#+1", "#3", "gt#3", ""]
        {
            assert!(RunId::parse(wrong).is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in ".{0,60}") {
            let _ = RunId::parse(&text);
        }
    }
}
