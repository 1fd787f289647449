//! The runtimes and accounts that runs need, and the reasons why one does not work now.

use std::fmt;

use super::context::names;
use super::run::{Run, RunId};
use crate::{BeadId, Invalid, RigSlug, Timestamp};

names! {
    /// The kind of thing that runs need.
    ParkSubjectKind, "something that can be parked" {
        /// The preset of a worker, or the rig's own command.
        Runtime = "runtime",
        /// The account that runs are charged to.
        Account = "account",
    }
}

/// The name of the rig's own command: the rig, and this.
const COMMAND: &str = "/command";

/// Something that runs are carried out with, and that may stop working for all of them at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParkSubject {
    /// The kind.
    pub kind: ParkSubjectKind,
    /// The name.
    pub name: String,
}

impl ParkSubject {
    /// The runtime of this name. Without one it is the rig's own command, which no other rig uses.
    pub fn runtime(named: &str, rig: &RigSlug) -> Self {
        let name = if named.is_empty() { format!("{rig}{COMMAND}") } else { named.to_owned() };
        Self { kind: ParkSubjectKind::Runtime, name }
    }

    /// The account of this name.
    pub fn account(handle: &str) -> Self {
        Self { kind: ParkSubjectKind::Account, name: handle.to_owned() }
    }

    /// The runtime and account of a run, the narrower first.
    pub fn of_run(run: &Run) -> Vec<Self> {
        let account = Some(&run.account).filter(|account| !account.is_empty());
        let account = account.map(|account| Self::account(account));
        account.into_iter().chain([Self::runtime(&run.runtime, &run.rig)]).collect()
    }

    /// Whether a run in this rig with this runtime (empty for the rig's own command) and account is carried out
    /// with it. Nothing for a runtime that is not known: then it is not.
    pub fn serves(&self, rig: &RigSlug, runtime: Option<&str>, account: Option<&str>) -> bool {
        match self.kind {
            ParkSubjectKind::Account => account == Some(self.name.as_str()),
            ParkSubjectKind::Runtime => runtime.is_some_and(|runtime| {
                if runtime.is_empty() {
                    self.name.strip_suffix(COMMAND) == Some(rig.as_str())
                } else {
                    self.name == runtime
                }
            }),
        }
    }
}

impl fmt::Display for ParkSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind.as_str(), self.name)
    }
}

/// From when to when nothing is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClosedPeriod {
    /// Since then.
    pub since: Timestamp,
    /// Until then.
    pub until: Timestamp,
}

/// The reasons why a runtime or account is suspected or parked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Park {
    /// The runtime or account.
    pub means: ParkSubject,
    /// The beads in a row whose runs came to nothing at once, oldest first. None if it was parked because of a
    /// usage limit.
    pub strikes: Vec<BeadId>,
    /// When nothing is started with it; nothing as long as it is only suspected.
    pub closed: Option<ClosedPeriod>,
    /// The reason, in words.
    pub reason: String,
    /// The run that tries whether it works again.
    pub trial: Option<RunId>,
    /// Since when more and more is started with it, because its usage limit has passed.
    pub ramp_since: Option<Timestamp>,
}

impl Park {
    /// Whether it waits for a usage limit to pass, and nothing is wrong with it.
    pub fn is_limit(&self) -> bool {
        self.closed.is_some() && self.strikes.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_of_a_rig_is_its_own_and_a_runtime_is_shared() {
        let [web, api] = ["web", "api"].map(|rig| RigSlug::parse(rig).unwrap());
        let command = ParkSubject::runtime("", &web);
        assert_eq!(command.to_string(), "runtime web/command");
        assert!(command.serves(&web, Some(""), None));
        assert!(!command.serves(&api, Some(""), None));
        assert!(!command.serves(&web, Some("claude"), None));
        let claude = ParkSubject::runtime("claude", &web);
        assert!(claude.serves(&api, Some("claude"), Some("work")));
        assert!(!claude.serves(&api, None, Some("claude")));
    }

    #[test]
    fn an_account_serves_every_run_charged_to_it() {
        let web = RigSlug::parse("web").unwrap();
        let work = ParkSubject::account("work");
        assert!(work.serves(&web, None, Some("work")));
        assert!(!work.serves(&web, Some("work"), Some("lab")));
        assert!(!work.serves(&web, Some("work"), None));
    }
}
