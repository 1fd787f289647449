//! Contexts: scheduled dispatches.

use std::fmt;

use super::parameters::SlingParameters;
use super::place::WorkerPlace;
use super::run::Run;
use crate::words::base36;
use crate::{BeadId, Invalid, Priority, RigSlug, Timestamp};

/// The name under which a context is shown as a bead, such as `hq-ctx-0001f`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContextId(String);

impl ContextId {
    /// The prefix of every such name.
    pub const PREFIX: &str = "hq-ctx-";

    /// The name of the context with this number.
    pub fn of_number(number: u64) -> Self {
        Self(format!("{}{}", Self::PREFIX, base36(number, 5)))
    }

    /// Wraps text that was such a name when it was stored.
    pub fn trusted(text: String) -> Self {
        Self(text)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ContextId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

macro_rules! names {
    ($(#[$doc:meta])* $kind:ident, $what:literal { $($(#[$variant_doc:meta])* $variant:ident = $name:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $kind {
            $($(#[$variant_doc])* $variant,)*
        }

        impl $kind {
            /// Every one.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The name.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// The one of this name.
            pub fn parse(text: &str) -> Result<Self, Invalid> {
                match text {
                    $($name => Ok(Self::$variant),)*
                    other => Err(Invalid(format!(concat!("\"{}\" is not ", $what), other.escape_debug()))),
                }
            }
        }
    };
}
pub(crate) use names;

names! {
    /// Why a context was closed.
    CloseReason, "a reason to close a context" {
        /// A worker has it.
        Dispatched = "dispatched",
        /// A person or an agent took it out of the queue.
        Cleared = "cleared",
        /// It could not be started too often.
        CircuitBroken = "circuit-broken",
        /// It came damaged from elsewhere.
        InvalidContext = "invalid-context",
        /// Its bead was over, or gone, before it could start.
        StaleWorkBead = "stale-work-bead",
        /// It can never start as it is.
        Quarantined = "quarantined",
    }
}

names! {
    /// The origin of a context.
    ContextOrigin, "an origin of a context" {
        /// `gt sling`.
        Sling = "sling",
        /// `gt queue`, or `gt sling --queue`.
        Queue = "queue",
        /// `gt scheduler retry`.
        Retry = "retry",
        /// The run before it was lost, or failed and may be tried again.
        Recovery = "recovery",
        /// An open convoy tracks it, and it was not scheduled.
        Convoy = "convoy",
        /// Its merge request does not land as it is, and the work goes on where it stopped.
        Repair = "repair",
        /// The block or labels of an older queue.
        Adopted = "adopted",
    }
}

/// How a context ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextClosed {
    /// The time.
    pub at: Timestamp,
    /// The actor.
    pub by: String,
    /// The reason.
    pub reason: CloseReason,
}

/// One scheduled dispatch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Context {
    /// Its place in line, given in the transaction that scheduled it.
    pub number: u64,
    /// The name it is shown under.
    pub id: ContextId,
    /// The bead to work on.
    pub bead: BeadId,
    /// The rig.
    pub rig: RigSlug,
    /// The worker, if one was named.
    pub place: Option<WorkerPlace>,
    /// The account, if one was named.
    pub account: Option<String>,
    /// It waits for a cycle by hand or for the queue to be enabled.
    pub gated: bool,
    /// It was forced, although another has the bead.
    pub forced: bool,
    /// The bead's priority.
    pub priority: Priority,
    /// Its origin.
    pub origin: ContextOrigin,
    /// The parameters of the dispatch.
    pub parameters: SlingParameters,
    /// When it was scheduled; only shown.
    pub enqueued_at: Timestamp,
    /// The actor that scheduled it.
    pub enqueued_by: String,
    /// Since when it counts as waiting.
    pub waiting_since: Timestamp,
    /// Not to be started before this, after a start that failed or a run that was lost.
    pub next_attempt_at: Option<Timestamp>,
    /// How many starts failed in a row.
    pub failures: u32,
    /// Why the last one did; empty if none.
    pub last_failure: String,
    /// How many runs the bead has had for this schedule.
    pub attempts: u32,
    /// A run of it is being started.
    pub starting: bool,
    /// The convoys of its bead that have a cap, while it is open.
    pub convoys: Vec<BeadId>,
    /// How it ended; nothing while it is open.
    pub closed: Option<ContextClosed>,
}

impl Context {
    /// Whether a person reviews the work of a run of it without a merge request: outside of a repository there is none.
    pub fn is_reviewed_by_hand(&self, run: &Run) -> bool {
        let is_outside = run.workplace.tree.is_empty();
        self.parameters.review_only || (self.parameters.review && is_outside)
    }

    /// Whether the work of a run of it that is done waits for such a review. Work of a run that became a merge request does
    /// not, also after a person has cancelled or reverted that.
    pub fn waits_for_review_by_hand(&self, run: &Run) -> bool {
        self.is_reviewed_by_hand(run) && !run.has_work()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_contexts_are_short_and_different() {
        assert_eq!(ContextId::of_number(1).as_str(), "hq-ctx-00001");
        assert_eq!(ContextId::of_number(37).as_str(), "hq-ctx-00011");
        assert_eq!(ContextId::of_number(u64::MAX).as_str(), "hq-ctx-3w5e11264sgsf");
    }

    #[test]
    fn every_reason_and_origin_has_a_name_that_leads_back() {
        for reason in CloseReason::ALL {
            assert_eq!(CloseReason::parse(reason.as_str()), Ok(*reason));
        }
        for origin in ContextOrigin::ALL {
            assert_eq!(ContextOrigin::parse(origin.as_str()), Ok(*origin));
        }
        assert!(CloseReason::parse("bored").is_err());
    }
}
