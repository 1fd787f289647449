//! When a convoy lands, and when it has not after all.

use crate::{Bead, Json, Status};

/// Why a convoy is closed that has landed.
pub const LANDED: &str = "landed";

/// Why an epic is closed that was over with the last of its parts.
pub const PARTS_DONE: &str = "all parts are done";

/// How the beads stand that a convoy tracks, or that an epic has as its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Members {
    /// The number of members.
    pub total: u64,
    /// The number of members that are not closed.
    pub open: u64,
    /// The number of members that are closed as failed.
    pub failed: u64,
}

impl Members {
    /// How many are closed, and not as failed.
    pub fn completed(self) -> u64 {
        self.total.saturating_sub(self.open).saturating_sub(self.failed)
    }

    /// Whether everything is done. Where nothing is tracked there is nothing that could be.
    pub fn are_done(self) -> bool {
        self.total > 0 && self.completed() == self.total
    }
}

/// The state of a convoy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConvoyState {
    /// Planned, and nothing happens: it has to be launched.
    Staged,
    /// Under way.
    Open,
    /// Everything it tracks is done.
    Landed,
    /// A person or an agent closed it.
    Closed,
}

impl ConvoyState {
    /// Where the convoy stands that this bead is.
    pub fn of(bead: &Bead) -> Self {
        match &bead.status {
            Status::Closed if bead.close_reason == LANDED => Self::Landed,
            Status::Closed => Self::Closed,
            Status::Custom(_) if bead.status.as_str().starts_with("staged_") => Self::Staged,
            Status::Open
            | Status::InProgress
            | Status::Hooked
            | Status::Blocked
            | Status::Deferred
            | Status::Pinned
            | Status::Custom(_) => Self::Open,
        }
    }
}

/// A change of a convoy's state that follows from the states of its members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConvoyChange {
    /// It lands.
    Lands,
    /// It has landed, and something of it is not done any more: it is open again.
    Reopens,
}

/// Whether the convoy that this bead is lands when its owner says so, and not by itself.
pub fn is_owned(convoy: &Bead) -> bool {
    let fields = convoy.metadata.as_ref().and_then(Json::fields).unwrap_or_default();
    fields.iter().any(|(name, value)| name == "owned" && value.as_str() == "true")
}

/// Whether a sling made this convoy for its own bookkeeping, and no person asked for it.
pub fn is_bookkeeping(convoy: &Bead) -> bool {
    let fields = convoy.metadata.as_ref().and_then(Json::fields).unwrap_or_default();
    fields.iter().any(|(name, value)| name == "auto" && value.as_str() == "true")
}

/// The change that follows for a convoy from the states of its members now.
///
/// It lands when all members are done, unless its owner lands it. A landed convoy is under way again when a member
/// is not done after all. A convoy that was closed by hand stays closed, and a staged one is not touched.
pub fn convoy_change(state: ConvoyState, is_owned: bool, members: Members) -> Option<ConvoyChange> {
    match state {
        ConvoyState::Open if !is_owned && members.are_done() => Some(ConvoyChange::Lands),
        ConvoyState::Landed if !members.are_done() => Some(ConvoyChange::Reopens),
        ConvoyState::Staged | ConvoyState::Open | ConvoyState::Landed | ConvoyState::Closed => None,
    }
}

/// Why the status of a convoy cannot be set to this by hand; nothing if it can. Only a launch begins a convoy,
/// and a convoy that has begun is not a plan any more. A convoy is never claimed, blocked or deferred, because
/// no agent works on it.
pub fn refuse_convoy_status(state: ConvoyState, to: &Status) -> Option<&'static str> {
    let is_staged = matches!(to, Status::Custom(_)) && to.as_str().starts_with("staged_");
    match (state, to) {
        (ConvoyState::Staged, Status::Open) => Some("it is staged; gt convoy launch begins it"),
        (_, Status::Open | Status::Closed) => None,
        (ConvoyState::Staged, _) if is_staged => None,
        (ConvoyState::Open, _) if is_staged => {
            Some("it is under way; gt convoy pause keeps the rest of it from starting")
        }
        (ConvoyState::Landed | ConvoyState::Closed, _) if is_staged => {
            Some("it is over; stage its beads anew with gt convoy stage")
        }
        _ => Some("a convoy is staged, open or closed; gt convoy pause keeps it from going on"),
    }
}

/// The change that follows for an epic from the states of its parts. It closes with the last of them, if none
/// failed. An epic that closed only for that reason opens again when a part is not done after all.
pub fn epic_change(epic: &Bead, parts: Members) -> Option<ConvoyChange> {
    match &epic.status {
        Status::Closed if epic.close_reason == PARTS_DONE && !parts.are_done() => {
            Some(ConvoyChange::Reopens)
        }
        Status::Open | Status::InProgress | Status::Hooked | Status::Blocked
            if parts.are_done() =>
        {
            Some(ConvoyChange::Lands)
        }
        // A deferred or pinned epic is as a person set it.
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DONE: Members = Members { total: 3, open: 0, failed: 0 };

    #[test]
    fn a_convoy_lands_when_all_it_tracks_is_done_and_nothing_failed() {
        let change = |members| convoy_change(ConvoyState::Open, false, members);
        assert_eq!(change(DONE), Some(ConvoyChange::Lands));
        assert_eq!(change(Members { open: 1, ..DONE }), None);
        assert_eq!(change(Members { failed: 1, ..DONE }), None);
        assert_eq!(change(Members::default()), None, "nothing is tracked");
    }

    #[test]
    fn an_open_convoy_cannot_be_staged_and_a_staged_one_opens_by_launch() {
        use ConvoyState::{Closed, Landed, Open, Staged};
        let staged = Status::parse("staged_ready").unwrap();
        let may = |state, to: &Status| refuse_convoy_status(state, to).is_none();
        for (state, allowed) in [
            (Staged, [false, true, true]),
            (Open, [true, true, false]),
            (Landed, [true, true, false]),
            (Closed, [true, true, false]),
        ] {
            let told = [&Status::Open, &Status::Closed, &staged].map(|to| may(state, to));
            assert_eq!(told, allowed, "{state:?}");
            for to in [Status::InProgress, Status::Hooked, Status::Blocked, Status::Deferred] {
                assert!(!may(state, &to), "{state:?} {to}");
            }
        }
    }

    #[test]
    fn an_owned_staged_or_closed_convoy_does_not_land_by_itself() {
        assert_eq!(convoy_change(ConvoyState::Open, true, DONE), None);
        for state in [ConvoyState::Staged, ConvoyState::Closed, ConvoyState::Landed] {
            assert_eq!(convoy_change(state, false, DONE), None, "{state:?}");
        }
    }

    #[test]
    fn a_landed_convoy_reopens_with_a_member() {
        for owned in [true, false] {
            let change = |state, open| convoy_change(state, owned, Members { open, ..DONE });
            assert_eq!(change(ConvoyState::Landed, 1), Some(ConvoyChange::Reopens));
            assert_eq!(change(ConvoyState::Landed, 0), None);
            assert_eq!(change(ConvoyState::Closed, 1), None, "closed by hand");
        }
    }
}
