//! Accepted work that its origin does not take yet.

use std::fmt;

use super::run::{LandingState, Run};
use crate::{Invalid, Timestamp};

/// The reason why an origin does not take accepted work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OriginDelay {
    /// It does not answer.
    Unreachable,
    /// The target is checked out there, and the checkout cannot take the work.
    CheckoutInTheWay,
}

impl OriginDelay {
    /// Reads [`Self::code`].
    pub fn parse(code: &str) -> Result<Self, Invalid> {
        [Self::Unreachable, Self::CheckoutInTheWay]
            .into_iter()
            .find(|delay| delay.code() == code)
            .ok_or_else(|| Invalid(format!("\"{code}\" is not a delay of an origin")))
    }

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
    /// When the delay became known.
    pub since: Timestamp,
    /// The kind of the delay.
    pub delay: OriginDelay,
    /// The text that came instead of an answer, on one line.
    pub why: String,
}

impl AwaitedOrigin {
    /// A delay; the reason is put on one line.
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
}

impl fmt::Display for AwaitedOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (beginning, middle) = self.delay.text();
        write!(f, "{beginning}{}{middle}{}", self.since, self.why)
    }
}

impl Run {
    /// The delay of its accepted work, if its worker is gone and its origin does not take the work yet.
    pub fn awaits_origin(&self) -> Option<AwaitedOrigin> {
        let is_intended = self.landing.state == Some(LandingState::Intended);
        let (delay, since) = self.origin_delay.filter(|_| self.state.is_live() && is_intended)?;
        Some(AwaitedOrigin { since, delay, why: self.reason.clone() })
    }

    /// Whether it has one of the slots that caps count. A run that only has to be pushed needs no worker, and so
    /// no slot.
    pub fn holds_slot(&self) -> bool {
        self.state.is_live() && self.executor.takes_slot() && self.awaits_origin().is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::{RunId, RunState};
    use crate::{ExecutorKind, RigSlug, Uid};

    fn run(awaited: &AwaitedOrigin) -> Run {
        let id = RunId::parse("gt-a#1").unwrap();
        let rig = RigSlug::parse("web").unwrap();
        let (uid, now) = (Uid::from_bytes([0; 16]), Timestamp::from_nanos(0));
        let mut run = Run::begun(id, uid, 1, rig, ExecutorKind::Process, now);
        run.state = RunState::Running;
        run.origin_delay = Some((awaited.delay, awaited.since));
        run.reason.clone_from(&awaited.why);
        run
    }

    #[test]
    fn only_a_live_run_with_an_intended_landing_awaits_its_origin() {
        let since = Timestamp::parse("2026-01-02T03:04:05Z").unwrap();
        let awaited =
            AwaitedOrigin::new(since, OriginDelay::Unreachable, "no route\nto host: port 22");
        let text = "waits for the origin since 2026-01-02T03:04:05Z: no route to host: port 22";
        assert_eq!(awaited.to_string(), text);
        let mut run = run(&awaited);
        assert_eq!((run.awaits_origin(), run.holds_slot()), (None, true));
        run.landing.state = Some(LandingState::Intended);
        assert_eq!((run.awaits_origin(), run.holds_slot()), (Some(awaited), false));
        assert_eq!(run.explanation(), text);
        run.state = RunState::Done;
        assert_eq!((run.awaits_origin(), run.holds_slot()), (None, false));
    }

    #[test]
    fn a_checkout_in_the_way_is_named() {
        let since = Timestamp::parse("2026-01-02T03:04:05Z").unwrap();
        let held =
            AwaitedOrigin::new(since, OriginDelay::CheckoutInTheWay, "a rebase is under way");
        let text = "is held since 2026-01-02T03:04:05Z: checkout in the way: a rebase is under way";
        assert_eq!(held.to_string(), text);
        let mut run = run(&held);
        run.landing.state = Some(LandingState::Intended);
        assert_eq!((run.awaits_origin(), run.holds_slot()), (Some(held), false));
    }

    #[test]
    fn codes_of_delays_are_read_back() {
        for delay in [OriginDelay::Unreachable, OriginDelay::CheckoutInTheWay] {
            assert_eq!(OriginDelay::parse(delay.code()), Ok(delay));
        }
        assert!(OriginDelay::parse("later").is_err());
    }
}
