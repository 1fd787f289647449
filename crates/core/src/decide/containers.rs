//! When a convoy, an epic or a molecule is over with its members, and when it opens again.

use super::convoy::{ConvoyState, lands_by_itself};
use crate::{Bead, Outcome, Status};

/// Why an epic is closed that was over with the last of its parts.
pub const PARTS_DONE: &str = "all parts are done";

/// Why a molecule is closed that was over with the last of its steps.
pub const STEPS_DONE: &str = "all steps complete";

/// The states of the beads that a convoy tracks, or that are the parts of an epic or the steps of a molecule.
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

    /// Whether everything is closed, perhaps as failed.
    fn are_closed(self) -> bool {
        self.total > 0 && self.open == 0
    }
}

/// The facts that can keep a container as it is. They are read only for a container that would change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContainerRules {
    /// The setting `epics.auto_close`.
    pub epics_close: bool,
    /// A live run has the container, and says itself when it is over.
    pub is_running: bool,
}

/// A change of a container that follows from the states of its members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContainerChange {
    /// The convoy lands.
    Lands,
    /// The epic or the molecule closes.
    Closes {
        /// The reason that is written down.
        reason: &'static str,
        /// How it ended; nothing said means success.
        outcome: Option<Outcome>,
    },
    /// It was over, and something of it is not done any more: it is open again.
    Reopens,
}

/// The change that follows for a container from the states of its members now; nothing for a bead of another type.
///
/// `less_is_done` says whether a member joined, or one that was done is not done any more. Only then does a container
/// open again: its owner may have landed it before everything was done.
pub fn container_change<E>(
    container: &Bead,
    members: Members,
    less_is_done: bool,
    rules: impl FnOnce() -> Result<ContainerRules, E>,
) -> Result<Option<ContainerChange>, E> {
    let kind = &container.issue_type;
    let change = if kind.is_convoy() {
        convoy_change(ConvoyState::of(container), !lands_by_itself(container), members)
    } else if kind.is_epic() {
        epic_change(container, members)
    } else if kind.is_molecule() {
        molecule_change(container, members)
    } else {
        None
    };
    let change = change.filter(|change| less_is_done || *change != ContainerChange::Reopens);
    let Some(change) = change else { return Ok(None) };
    let follows = if kind.is_epic() {
        rules()?.epics_close
    } else if kind.is_molecule() {
        !rules()?.is_running
    } else {
        true
    };
    Ok(follows.then_some(change))
}

/// The change that follows for a convoy from the states of its members now.
///
/// It lands when all members are done, unless its owner lands it. A landed convoy is under way again when a member
/// is not done after all. A convoy that was closed by hand stays closed, and a staged one is not touched.
pub fn convoy_change(
    state: ConvoyState,
    is_owned: bool,
    members: Members,
) -> Option<ContainerChange> {
    match state {
        ConvoyState::Open if !is_owned && members.are_done() => Some(ContainerChange::Lands),
        ConvoyState::Landed if !members.are_done() => Some(ContainerChange::Reopens),
        ConvoyState::Staged | ConvoyState::Open | ConvoyState::Landed | ConvoyState::Closed => None,
    }
}

/// An epic closes with the last of its parts, if none failed. An epic that closed only for that reason opens again when a
/// part is not done after all.
fn epic_change(epic: &Bead, parts: Members) -> Option<ContainerChange> {
    match &epic.status {
        Status::Closed if epic.close_reason == PARTS_DONE && !parts.are_done() => {
            Some(ContainerChange::Reopens)
        }
        Status::Open | Status::InProgress | Status::Hooked | Status::Blocked
            if parts.are_done() =>
        {
            Some(ContainerChange::Closes { reason: PARTS_DONE, outcome: Some(Outcome::Success) })
        }
        // A deferred or pinned epic is as a person set it.
        _ => None,
    }
}

/// A molecule closes with the last of its steps. A bead that waits for the molecule waits for its steps, so it fails if
/// one of them did. It stays closed when a step opens again.
fn molecule_change(molecule: &Bead, steps: Members) -> Option<ContainerChange> {
    let outcome = (steps.failed > 0).then_some(Outcome::Failed);
    let is_open = molecule.status != Status::Closed && !molecule.is_template;
    (is_open && steps.are_closed())
        .then_some(ContainerChange::Closes { reason: STEPS_DONE, outcome })
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use proptest::prelude::*;

    use super::*;
    use crate::decide::LANDED;
    use crate::{BeadId, IssueType, Json, Timestamp, Title};

    const DONE: Members = Members { total: 3, open: 0, failed: 0 };
    const FREE: ContainerRules = ContainerRules { epics_close: true, is_running: false };

    fn bead(kind: &str, status: Status, close_reason: &str) -> Bead {
        let at = Timestamp::from_nanos(1);
        Bead {
            closed_at: (status == Status::Closed).then_some(at),
            status,
            issue_type: IssueType::parse(kind).unwrap(),
            close_reason: close_reason.to_owned(),
            ..Bead::new(BeadId::parse("gt-a").unwrap(), Title::parse("A container").unwrap(), at)
        }
    }

    fn change_with(
        container: &Bead,
        members: Members,
        less: bool,
        rules: ContainerRules,
    ) -> Option<ContainerChange> {
        let Ok(change) = container_change(container, members, less, || Ok::<_, Infallible>(rules));
        change
    }

    #[test]
    fn a_convoy_lands_when_all_it_tracks_is_done_and_nothing_failed() {
        let change = |members| convoy_change(ConvoyState::Open, false, members);
        assert_eq!(change(DONE), Some(ContainerChange::Lands));
        assert_eq!(change(Members { open: 1, ..DONE }), None);
        assert_eq!(change(Members { failed: 1, ..DONE }), None);
        assert_eq!(change(Members::default()), None, "nothing is tracked");
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
            assert_eq!(change(ConvoyState::Landed, 1), Some(ContainerChange::Reopens));
            assert_eq!(change(ConvoyState::Landed, 0), None);
            assert_eq!(change(ConvoyState::Closed, 1), None, "closed by hand");
        }
    }

    #[test]
    fn a_molecule_is_over_with_its_last_step_and_fails_with_one_of_them() {
        let molecule = |status| bead("molecule", status, "");
        let change = |status, steps| change_with(&molecule(status), steps, false, FREE);
        let closes = |outcome| Some(ContainerChange::Closes { reason: STEPS_DONE, outcome });
        assert_eq!(change(Status::Open, DONE), closes(None));
        assert_eq!(
            change(Status::Deferred, Members { failed: 1, ..DONE }),
            closes(Some(Outcome::Failed))
        );
        assert_eq!(change(Status::Open, Members { open: 1, ..DONE }), None);
        assert_eq!(change(Status::Closed, Members { open: 1, ..DONE }), None);
    }

    fn any_container() -> impl Strategy<Value = Bead> {
        let kinds = prop::sample::select(vec!["convoy", "epic", "molecule", "task"]);
        let statuses = prop::sample::select(vec![
            "open",
            "in_progress",
            "hooked",
            "blocked",
            "deferred",
            "pinned",
            "closed",
            "staged_ready",
        ]);
        let reasons = prop::sample::select(vec![LANDED, PARTS_DONE, STEPS_DONE, "given up"]);
        (kinds, statuses, reasons, any::<bool>()).prop_map(|(kind, status, reason, owned)| {
            let status = Status::parse(status).unwrap();
            let reason = if status == Status::Closed { reason } else { "" };
            let metadata = owned.then(|| Json::parse(r#"{"owned":true}"#).unwrap());
            Bead { metadata, ..bead(kind, status, reason) }
        })
    }

    /// The container after a change, as the verbs write it.
    fn after(container: &Bead, change: ContainerChange) -> Bead {
        let (status, reason, outcome) = match change {
            ContainerChange::Lands => (Status::Closed, LANDED, Some(Outcome::Success)),
            ContainerChange::Closes { reason, outcome } => (Status::Closed, reason, outcome),
            ContainerChange::Reopens => (Status::Open, "", None),
        };
        let close_reason = reason.to_owned();
        Bead { status, close_reason, outcome, ..container.clone() }
    }

    proptest! {
        /// A container closes only without open members, opens only with
        /// one that is not done, and does not change twice.
        #[test]
        fn a_container_changes_once_and_only_for_its_members(
            container in any_container(),
            completed in 0_u64..4,
            open in 0_u64..4,
            failed in 0_u64..4,
            less_is_done: bool,
            epics_close: bool,
            is_running: bool,
        ) {
            let members = Members { total: completed + open + failed, open, failed };
            let rules = ContainerRules { epics_close, is_running };
            let change = change_with(&container, members, less_is_done, rules);
            let Some(change) = change else { return Ok(()) };
            let is_over = container.status == Status::Closed;
            match change {
                ContainerChange::Lands => {
                    prop_assert!(container.issue_type.is_convoy() && lands_by_itself(&container));
                    prop_assert!(!is_over && members.are_done());
                }
                ContainerChange::Closes { outcome, .. } => {
                    prop_assert!(!is_over && members.total > 0 && members.open == 0);
                    prop_assert_eq!(outcome == Some(Outcome::Failed), members.failed > 0);
                    let is_epic = container.issue_type.is_epic();
                    prop_assert!((is_epic && epics_close) || (!is_epic && !is_running));
                }
                ContainerChange::Reopens => {
                    prop_assert!(is_over && less_is_done && !members.are_done());
                }
            }
            let changed = after(&container, change);
            prop_assert_eq!(change_with(&changed, members, less_is_done, rules), None);
        }
    }
}
