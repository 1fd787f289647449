//! The status table: status × actor × verb, for beads without a live run.

use crate::{BeadId, IssueType, Status};

/// What somebody wants to do to a bead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verb {
    /// Take it, if nobody else has it.
    Claim,
    /// Give it this status by hand. Closing and reopening this way are the same as by name, but
    /// closing asks for no permission.
    SetStatus(Status),
    /// Close it.
    Close {
        /// Past every guard except the one for templates.
        force: bool,
    },
    /// Open it again.
    Reopen,
}

/// What the table looks at.
#[derive(Debug, Clone)]
pub struct Standing<'a> {
    /// The bead's status; a deferred bead whose date has passed stands as open.
    pub status: &'a Status,
    /// Who has it; empty for nobody.
    pub assignee: &'a str,
    /// Its type.
    pub issue_type: &'a IssueType,
    /// Whether it is a fixed reference.
    pub pinned: bool,
    /// Whether it is a pattern for other beads.
    pub is_template: bool,
    /// Whether it has a child that is not closed.
    pub has_open_children: bool,
    /// What blocks it now.
    pub blockers: &'a [BeadId],
}

/// What happens to the bead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transition {
    /// It is that way already.
    Nothing,
    /// It is the actor's now.
    Claimed,
    /// It has this status now, which is not `closed`.
    Status(Status),
    /// It is over, possibly once more: a new close replaces the old one's reason and outcome.
    Closed,
    /// It is open again.
    Reopened,
}

/// Why a verb is refused. The text names no bead; whoever shows it adds which.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Another has it.
    #[error("issue already claimed by {0}")]
    ClaimedBy(String),
    /// Its status does not allow a claim.
    #[error("issue not claimable: status {0}")]
    NotClaimable(Status),
    /// A closed bead must be reopened first.
    #[error("it is closed; open it again first with bd reopen")]
    Closed,
    /// It is a pattern for others.
    #[error("it is a template, and templates are never closed")]
    Template,
    /// It is a fixed reference.
    #[error("it is pinned (use --force to override)")]
    Pinned,
    /// It has open children.
    #[error("it is an epic with open children (use --force to override)")]
    OpenChildren,
    /// Something must be done first.
    #[error("blocked by open issues [{}] (use --force to override)", list(.0))]
    Blocked(Vec<BeadId>),
}

fn list(ids: &[BeadId]) -> String {
    ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// What `verb` does to a bead that stands like this, when `actor` says it.
pub fn decide(verb: &Verb, standing: &Standing<'_>, actor: &str) -> Result<Transition, Refusal> {
    let current = standing.status;
    match verb {
        Verb::Claim => match current {
            Status::Open if standing.assignee.is_empty() || standing.assignee == actor => {
                Ok(Transition::Claimed)
            }
            Status::InProgress if standing.assignee == actor => Ok(Transition::Nothing),
            Status::Open | Status::InProgress | Status::Hooked if !standing.assignee.is_empty() => {
                Err(Refusal::ClaimedBy(standing.assignee.to_owned()))
            }
            other => Err(Refusal::NotClaimable(other.clone())),
        },
        Verb::SetStatus(wanted) => match (current, wanted) {
            (_, Status::Closed) if standing.is_template => Err(Refusal::Template),
            (Status::Closed, Status::Closed) => Ok(Transition::Nothing),
            (_, Status::Closed) => Ok(Transition::Closed),
            (Status::Closed, Status::Open) => Ok(Transition::Reopened),
            (Status::Closed, _) => Err(Refusal::Closed),
            (current, wanted) if current == wanted => Ok(Transition::Nothing),
            (_, wanted) => Ok(Transition::Status(wanted.clone())),
        },
        Verb::Close { force } => {
            if standing.is_template {
                return Err(Refusal::Template);
            }
            if *force || *current == Status::Closed {
                return Ok(Transition::Closed);
            }
            if standing.pinned || *current == Status::Pinned {
                return Err(Refusal::Pinned);
            }
            if standing.issue_type.is_epic() && standing.has_open_children {
                return Err(Refusal::OpenChildren);
            }
            if !standing.blockers.is_empty() {
                return Err(Refusal::Blocked(standing.blockers.to_vec()));
            }
            Ok(Transition::Closed)
        }
        Verb::Reopen => match current {
            Status::Open => Ok(Transition::Nothing),
            Status::Closed => Ok(Transition::Reopened),
            _ => Ok(Transition::Status(Status::Open)),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn standing<'a>(status: &'a Status, assignee: &'a str, kind: &'a IssueType) -> Standing<'a> {
        Standing {
            status,
            assignee,
            issue_type: kind,
            pinned: false,
            is_template: false,
            has_open_children: false,
            blockers: &[],
        }
    }

    #[test]
    fn a_claim_is_a_compare_and_swap() {
        let task = IssueType::default();
        let claim = |status: &Status, assignee: &str| {
            decide(&Verb::Claim, &standing(status, assignee, &task), "me")
        };
        assert_eq!(claim(&Status::Open, ""), Ok(Transition::Claimed));
        assert_eq!(claim(&Status::Open, "me"), Ok(Transition::Claimed));
        assert_eq!(claim(&Status::InProgress, "me"), Ok(Transition::Nothing));
        assert_eq!(claim(&Status::Open, "you"), Err(Refusal::ClaimedBy("you".into())));
        assert_eq!(claim(&Status::InProgress, "you"), Err(Refusal::ClaimedBy("you".into())));
        for status in [Status::Closed, Status::Pinned, Status::Blocked, Status::Deferred] {
            assert_eq!(claim(&status, ""), Err(Refusal::NotClaimable(status.clone())));
        }
    }

    #[test]
    fn closing_has_guards_that_force_overrides() {
        let (task, epic) = (IssueType::default(), IssueType::parse("epic").unwrap());
        let blockers = [BeadId::parse("gt-a").unwrap()];
        let guarded = [
            Standing { pinned: true, ..standing(&Status::Open, "", &task) },
            standing(&Status::Pinned, "", &task),
            Standing { has_open_children: true, ..standing(&Status::Open, "", &epic) },
            Standing { blockers: &blockers, ..standing(&Status::Open, "", &task) },
        ];
        for standing in &guarded {
            assert!(decide(&Verb::Close { force: false }, standing, "me").is_err());
            let forced = decide(&Verb::Close { force: true }, standing, "me");
            assert_eq!(forced, Ok(Transition::Closed));
        }
        let template = Standing { is_template: true, ..standing(&Status::Open, "", &task) };
        for verb in [Verb::Close { force: true }, Verb::SetStatus(Status::Closed)] {
            assert_eq!(decide(&verb, &template, "me"), Err(Refusal::Template));
        }
    }

    #[test]
    fn open_children_hold_up_only_epics() {
        let task = IssueType::default();
        let parent = Standing { has_open_children: true, ..standing(&Status::Open, "", &task) };
        let closed = decide(&Verb::Close { force: false }, &parent, "me");
        assert_eq!(closed, Ok(Transition::Closed));
    }

    #[test]
    fn only_reopening_leads_out_of_closed() {
        let task = IssueType::default();
        let closed = standing(&Status::Closed, "", &task);
        for wanted in Status::BUILT_IN {
            let answer = decide(&Verb::SetStatus(wanted.clone()), &closed, "me");
            match wanted {
                Status::Closed => assert_eq!(answer, Ok(Transition::Nothing)),
                Status::Open => assert_eq!(answer, Ok(Transition::Reopened)),
                _ => assert_eq!(answer, Err(Refusal::Closed)),
            }
        }
        assert_eq!(decide(&Verb::Close { force: false }, &closed, "me"), Ok(Transition::Closed));
    }
}
