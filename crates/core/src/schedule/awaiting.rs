//! Accepted work that its origin does not take yet.

use std::fmt;

use super::run::{LandingState, Run};
use crate::Timestamp;

/// The reason why an origin does not take accepted work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OriginDelay {
    /// It does not answer.
    Unreachable,
    /// The target is checked out there, and the checkout cannot take the work.
    CheckoutInTheWay,
}

impl OriginDelay {
    const ALL: [Self; 2] = [Self::Unreachable, Self::CheckoutInTheWay];

    /// A short name that programs can rely on.
    pub fn code(self) -> &'static str {
        match self {
            Self::Unreachable => "unreachable",
            Self::CheckoutInTheWay => "checkout-in-the-way",
        }
    }

    /// The text of [`AwaitedOrigin`] before the time, and between the time and the words of git.
    fn text(self) -> (&'static str, &'static str) {
        match self {
            Self::Unreachable => ("waits for the origin since ", ": "),
            Self::CheckoutInTheWay => ("is held since ", ": checkout in the way: "),
        }
    }
}

/// The delay of accepted work whose worker is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AwaitedOrigin {
    /// Since when it is known.
    pub since: Timestamp,
    /// The kind of the delay.
    pub delay: OriginDelay,
    /// What was said instead of an answer, on one line.
    pub why: String,
}

impl AwaitedOrigin {
    /// Why is told on one line.
    pub fn new(since: Timestamp, delay: OriginDelay, why: &str) -> Self {
        let words: Vec<&str> = why.split_whitespace().collect();
        Self { since, delay, why: words.join(" ") }
    }

    /// The event that ends the delay, as the end of "it lands by itself when …".
    pub fn ends_when(&self) -> &'static str {
        match self.delay {
            OriginDelay::Unreachable => "the origin answers",
            OriginDelay::CheckoutInTheWay => "the checkout is free",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        OriginDelay::ALL.into_iter().find_map(|delay| {
            let (beginning, middle) = delay.text();
            let (since, why) = text.strip_prefix(beginning)?.split_once(middle)?;
            Some(Self { since: Timestamp::parse(since).ok()?, delay, why: why.to_owned() })
        })
    }
}

impl fmt::Display for AwaitedOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (beginning, middle) = self.delay.text();
        write!(f, "{beginning}{}{middle}{}", self.since, self.why)
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
        let awaited =
            AwaitedOrigin::new(since, OriginDelay::Unreachable, "no route\nto host: port 22");
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

    #[test]
    fn work_that_a_checkout_holds_says_so() {
        let since = Timestamp::parse("2026-01-02T03:04:05Z").unwrap();
        let held =
            AwaitedOrigin::new(since, OriginDelay::CheckoutInTheWay, "a rebase is under way");
        let text = "is held since 2026-01-02T03:04:05Z: checkout in the way: a rebase is under way";
        assert_eq!(held.to_string(), text);
        let mut run = run(held.to_string());
        run.landing.state = Some(LandingState::Intended);
        assert_eq!((run.awaits_origin(), run.holds_slot()), (Some(held), false));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_and_nothing_else(
            seconds in 0_i64..4_000_000_000,
            delay in prop::sample::select(&OriginDelay::ALL[..]),
            why in ".{0,80}",
        ) {
            let since = Timestamp::from_nanos(seconds * 1_000_000_000);
            let awaited = AwaitedOrigin::new(since, delay, &why);
            prop_assert_eq!(AwaitedOrigin::parse(&awaited.to_string()), Some(awaited));
            prop_assert_eq!(AwaitedOrigin::parse(&why), None);
        }
    }
}
