//! The landed requests of a bead that were undone.

use super::request::{MergeRequest, MergeRequestId, RequestPurpose, RequestState};

/// The landed revert that undid a request. `landed` has the landed requests of its bead, the oldest first.
///
/// Work of a bead is undone in the order opposite to that in which it landed on a branch: a revert undoes the last work before
/// it that no other revert has undone.
pub fn revert_of<'a>(
    landed: &'a [MergeRequest],
    undone: &MergeRequestId,
) -> Option<&'a MergeRequest> {
    let request = landed.iter().find(|request| request.id == *undone)?;
    let mut later = 0_u32;
    for other in landed.iter().filter(|other| {
        other.id.number > undone.number
            && other.state == RequestState::Landed
            && (&other.rig, &other.target) == (&request.rig, &request.target)
    }) {
        match other.purpose {
            RequestPurpose::Work | RequestPurpose::Integration => later += 1,
            RequestPurpose::Revert if later == 0 => return Some(other),
            RequestPurpose::Revert => later -= 1,
        }
    }
    None
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
}
