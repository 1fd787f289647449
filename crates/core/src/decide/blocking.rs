//! Whether one dependency holds a bead up right now.

use crate::bead::{Bead, DependencyType, Gate, Outcome, Status};

/// The facts about a dependency's target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetFacts {
    /// Its status.
    pub status: Status,
    /// How it ended, if it did.
    pub outcome: Option<Outcome>,
}

/// The facts about the children of a dependency's target. Pinned children do not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ChildrenFacts {
    /// There is a child that is not done: open, or closed as failed.
    pub any_unsatisfied: bool,
    /// There is a child that is done: closed, and not as failed.
    pub any_satisfied: bool,
}

impl TargetFacts {
    /// The facts about this bead.
    pub fn of(bead: &Bead) -> Self {
        Self { status: bead.status.clone(), outcome: bead.outcome }
    }

    /// Pinned beads are references: they are never in the way, and never count as done.
    fn is_pinned(&self) -> bool {
        self.status == Status::Pinned
    }

    /// Whether this is how `bead` stands.
    pub fn describe(&self, bead: &Bead) -> bool {
        self.status == bead.status && self.outcome == bead.outcome
    }

    /// Over, and not as a failure. A close without outcome is a success.
    pub fn is_satisfied(&self) -> bool {
        self.status == Status::Closed && self.outcome != Some(Outcome::Failed)
    }
}

impl ChildrenFacts {
    /// These facts with one more child.
    #[must_use]
    pub fn with(mut self, child: &TargetFacts) -> Self {
        if !child.is_pinned() {
            self.any_satisfied |= child.is_satisfied();
            self.any_unsatisfied |= !child.is_satisfied();
        }
        self
    }
}

/// Whether an edge of this `kind` blocks, given its target (none if it does not exist) and, for
/// `waits-for`, the target's children. `children` is asked only when the answer depends on them.
///
/// `blocks` and `waits-for` are satisfied by a close that did not fail, `conditional-blocks` by any
/// close. Absent and pinned targets never block. A `waits-for` with children also waits for all of
/// them (gate `any-children`: for one), whichever is later.
pub fn edge_blocks(
    kind: &DependencyType,
    gate: Gate,
    target: Option<&TargetFacts>,
    children: impl FnOnce() -> ChildrenFacts,
) -> bool {
    let Some(target) = target else { return false };
    if target.is_pinned() {
        return false;
    }
    match kind {
        DependencyType::Blocks => !target.is_satisfied(),
        DependencyType::ConditionalBlocks => target.status != Status::Closed,
        DependencyType::WaitsFor => {
            !target.is_satisfied() || {
                let children = children();
                match gate {
                    Gate::AllChildren => children.any_unsatisfied,
                    Gate::AnyChildren => children.any_unsatisfied && !children.any_satisfied,
                }
            }
        }
        DependencyType::ParentChild | DependencyType::Tracks | DependencyType::Other(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(status: Status, outcome: Option<Outcome>) -> TargetFacts {
        TargetFacts { status, outcome }
    }

    fn blocks(kind: &DependencyType, target: &TargetFacts) -> bool {
        edge_blocks(kind, Gate::AllChildren, Some(target), ChildrenFacts::default)
    }

    #[test]
    fn only_a_close_that_did_not_fail_satisfies_blocks_and_waits_for() {
        for kind in [DependencyType::Blocks, DependencyType::WaitsFor] {
            assert!(blocks(&kind, &target(Status::Open, None)));
            assert!(blocks(&kind, &target(Status::Hooked, None)));
            assert!(blocks(&kind, &target(Status::Deferred, None)));
            assert!(blocks(&kind, &target(Status::Closed, Some(Outcome::Failed))));
            assert!(!blocks(&kind, &target(Status::Closed, None)));
            assert!(!blocks(&kind, &target(Status::Closed, Some(Outcome::Success))));
            assert!(!blocks(&kind, &target(Status::Closed, Some(Outcome::Cancelled))));
        }
    }

    #[test]
    fn any_close_satisfies_conditional_blocks() {
        let kind = DependencyType::ConditionalBlocks;
        assert!(blocks(&kind, &target(Status::InProgress, None)));
        assert!(!blocks(&kind, &target(Status::Closed, Some(Outcome::Failed))));
    }

    #[test]
    fn pinned_and_absent_targets_never_block() {
        for kind in DependencyType::BLOCKING {
            assert!(!blocks(&kind, &target(Status::Pinned, None)));
            assert!(!edge_blocks(&kind, Gate::AllChildren, None, ChildrenFacts::default));
        }
    }

    #[test]
    fn other_types_never_block() {
        for name in ["parent-child", "tracks", "related", "discovered-from", "anything"] {
            let kind = DependencyType::parse(name).unwrap();
            assert!(!blocks(&kind, &target(Status::Open, None)));
        }
    }

    #[test]
    fn waits_for_also_waits_for_the_children_of_its_target() {
        let done = target(Status::Closed, None);
        let open = target(Status::Open, None);
        let failed = target(Status::Closed, Some(Outcome::Failed));
        let pinned = target(Status::Pinned, None);
        let waits = |gate, children: &[&TargetFacts]| {
            let facts = children.iter().fold(ChildrenFacts::default(), |f, child| f.with(child));
            edge_blocks(&DependencyType::WaitsFor, gate, Some(&done), || facts)
        };
        assert!(!waits(Gate::AllChildren, &[]));
        assert!(waits(Gate::AllChildren, &[&done, &open]));
        assert!(waits(Gate::AllChildren, &[&done, &failed]));
        assert!(!waits(Gate::AllChildren, &[&done, &pinned]));
        assert!(!waits(Gate::AnyChildren, &[&done, &open]));
        assert!(waits(Gate::AnyChildren, &[&open, &failed]));
        assert!(!waits(Gate::AnyChildren, &[]));
    }
}
