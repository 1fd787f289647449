//! The landed requests of a bead that were undone.

use super::integration_branch::convoy_of_branch;
use super::request::{MergeRequest, MergeRequestId, RequestPurpose, RequestState};

/// The landed revert that undid a request. `landed` has the landed requests of its bead, the oldest first.
///
/// Work of a bead is undone in the order opposite to that in which it landed on a branch: a revert undoes the last work before
/// it that no other revert has undone. Work that landed on the branch of a convoy is undone there, or on the branch to which the
/// convoy has brought it.
pub fn revert_of<'a>(
    landed: &'a [MergeRequest],
    undone: &MergeRequestId,
) -> Option<&'a MergeRequest> {
    let mut works: Vec<&MergeRequest> = Vec::new();
    for request in landed.iter().filter(|request| request.state == RequestState::Landed) {
        if request.purpose != RequestPurpose::Revert {
            works.push(request);
            continue;
        }
        let undoes = |work: &&MergeRequest| {
            let is_brought = is_of_convoy(work) && !is_of_convoy(request);
            work.rig == request.rig && (work.target == request.target || is_brought)
        };
        let Some(at) = works.iter().rposition(undoes) else { continue };
        if works.remove(at).id == *undone {
            return Some(request);
        }
    }
    None
}

/// Whether two requests of a bead may have reached the same branch: directly, or one of them with a convoy.
pub fn may_share_branch(one: &MergeRequest, other: &MergeRequest) -> bool {
    one.rig == other.rig && (one.target == other.target || is_of_convoy(one) || is_of_convoy(other))
}

fn is_of_convoy(request: &MergeRequest) -> bool {
    convoy_of_branch(&request.target).is_some()
}

#[cfg(test)]
mod tests {
    use super::super::request::tests::any_request;
    use super::*;

    #[test]
    fn a_revert_undoes_the_last_work_that_is_not_undone() {
        use RequestPurpose::{Revert, Work};
        let landed = |number: u32, purpose, target: &str| MergeRequest {
            purpose,
            state: RequestState::Landed,
            target: target.to_owned(),
            ..any_request("gt-a", number)
        };
        let all = [
            landed(1, Work, "main"),
            landed(2, Revert, "main"),
            landed(3, Work, "main"),
            landed(4, Work, "release"),
            landed(5, Work, "main"),
            landed(7, Revert, "main"),
            landed(8, Revert, "main"),
            landed(9, Work, "main"),
        ];
        let undone = |number: u32| {
            let id = MergeRequestId { number, ..all[0].id.clone() };
            revert_of(&all, &id).map(|revert| revert.id.number)
        };
        assert_eq!([1, 3, 4, 5, 9].map(undone), [Some(2), Some(8), None, Some(7), None]);
        assert_eq!(undone(6), None);
    }

    #[test]
    fn work_of_a_convoy_is_undone_on_its_branch_or_where_that_was_brought() {
        use RequestPurpose::{Revert, Work};
        let landed = |number: u32, purpose, target: &str| MergeRequest {
            purpose,
            state: RequestState::Landed,
            target: target.to_owned(),
            ..any_request("gt-a", number)
        };
        let all = [
            landed(1, Work, "main"),
            landed(2, Work, "integration/hq-cv-x1y2z"),
            landed(3, Revert, "integration/hq-cv-x1y2z"),
            landed(4, Work, "integration/hq-cv-x1y2z"),
            landed(5, Revert, "main"),
            landed(6, Revert, "main"),
        ];
        let by =
            |number: usize| revert_of(&all, &all[number - 1].id).map(|revert| revert.id.number);
        assert_eq!([by(1), by(2), by(4)], [Some(6), Some(3), Some(5)]);
        assert!(may_share_branch(&all[0], &all[1]));
    }
}
