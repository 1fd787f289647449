//! Accepted work whose origin does not answer.

use std::fmt;

use super::run::{LandingState, Run};
use crate::Timestamp;

/// What accepted work waits for when its worker is gone: its origin, which does not answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AwaitedOrigin {
    /// Since when it is known.
    pub since: Timestamp,
    /// What was said instead of an answer, on one line.
    pub why: String,
}

/// How its text begins.
const BEGINNING: &str = "waits for the origin since ";

impl AwaitedOrigin {
    /// Why is told on one line.
    pub fn new(since: Timestamp, why: &str) -> Self {
        let words: Vec<&str> = why.split_whitespace().collect();
        Self { since, why: words.join(" ") }
    }

    fn parse(text: &str) -> Option<Self> {
        let (since, why) = text.strip_prefix(BEGINNING)?.split_once(": ")?;
        Some(Self { since: Timestamp::parse(since).ok()?, why: why.to_owned() })
    }
}

impl fmt::Display for AwaitedOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{BEGINNING}{}: {}", self.since, self.why)
    }
}

impl Run {
    /// What its accepted work waits for, if its worker is gone and its origin does not answer: this stands where the
    /// reason of its end will stand.
    pub fn awaits_origin(&self) -> Option<AwaitedOrigin> {
        let is_intended = self.landing.state == Some(LandingState::Intended);
        (self.state.is_live() && is_intended).then(|| AwaitedOrigin::parse(&self.reason)).flatten()
    }

    /// Whether it has one of the slots that caps count. What only has to be pushed needs no worker, and so no slot.
    pub fn holds_slot(&self) -> bool {
        self.state.is_live() && Self::takes_slot(self.executor) && self.awaits_origin().is_none()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::schedule::{RunId, RunState};
    use crate::{ExecutorKind, RigSlug, Uid};

    fn run(reason: String) -> Run {
        let id = RunId::parse("gt-a#1").unwrap();
        let rig = RigSlug::parse("web").unwrap();
        let (uid, now) = (Uid::from_bytes([0; 16]), Timestamp::from_nanos(0));
        let mut run = Run::begun(id, uid, 1, rig, ExecutorKind::Process, now);
        run.state = RunState::Running;
        run.reason = reason;
        run
    }

    #[test]
    fn only_what_is_on_its_way_waits_for_its_origin() {
        let since = Timestamp::parse("2026-01-02T03:04:05Z").unwrap();
        let awaited = AwaitedOrigin::new(since, "no route\nto host: port 22");
        assert_eq!(
            awaited.to_string(),
            "waits for the origin since 2026-01-02T03:04:05Z: no route to host: port 22"
        );
        let mut run = run(awaited.to_string());
        assert_eq!((run.awaits_origin(), run.holds_slot()), (None, true));
        run.landing.state = Some(LandingState::Intended);
        assert_eq!((run.awaits_origin(), run.holds_slot()), (Some(awaited), false));
        run.state = RunState::Done;
        assert_eq!((run.awaits_origin(), run.holds_slot()), (None, false));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_and_nothing_else(seconds in 0_i64..4_000_000_000, why in ".{0,80}") {
            let since = Timestamp::from_nanos(seconds * 1_000_000_000);
            let awaited = AwaitedOrigin::new(since, &why);
            prop_assert_eq!(AwaitedOrigin::parse(&awaited.to_string()), Some(awaited));
            prop_assert_eq!(AwaitedOrigin::parse(&why), None);
        }
    }
}
