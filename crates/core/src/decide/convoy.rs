//! The states of a convoy, and the statuses that can be set by hand.

use crate::{Bead, Json, Status};

/// Why a convoy is closed that has landed.
pub const LANDED: &str = "landed";

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
            Status::Custom(_) if bead.status.is_staged() => Self::Staged,
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

/// The metadata field of a convoy whose work lands on a branch of its own first.
pub const INTEGRATION: &str = "integration";

/// The branch to which the integration branch of a convoy is brought at the end: empty for that of each rig, nothing for a
/// convoy without an integration branch.
pub fn integration_base(convoy: &Bead) -> Option<String> {
    convoy.metadata.as_ref().and_then(|metadata| Json::string_field(metadata, INTEGRATION))
}

/// Whether a convoy lands with its last member: its owner does not land it, and no branch has to be brought to its base.
pub fn lands_by_itself(convoy: &Bead) -> bool {
    !is_owned(convoy) && integration_base(convoy).is_none()
}

/// Why the status of a convoy cannot be set to this by hand; nothing if it can. Only a launch begins a convoy,
/// and a convoy that has begun is not a plan any more. A convoy is never claimed, blocked or deferred, because
/// no agent works on it.
pub fn refuse_convoy_status(state: ConvoyState, to: &Status) -> Option<&'static str> {
    let is_staged = to.is_staged();
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
