//! Reviews: decisions and comments of people about a request.

use super::request::{MergeRequest, MergeRequestId};
use crate::schedule::names;
use crate::{Invalid, Timestamp};

names! {
    /// The decision of a review.
    ReviewDecision, "a decision of a review" {
        /// It may land.
        Approved = "approved",
        /// It goes back to its author.
        Rejected = "rejected",
        /// A remark.
        Comment = "comment",
    }
}

/// A decision or a comment of a person about one commit of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Review {
    /// Its number in the town.
    pub number: u64,
    /// The request.
    pub request: MergeRequestId,
    /// The person, or the reviewer with that right.
    pub actor: String,
    /// The decision.
    pub decision: ReviewDecision,
    /// The accepted commit that it is about.
    pub accepted: String,
    /// The base that the commit was compared with.
    pub base: String,
    /// The file that a comment is about; empty for the whole request.
    pub file: String,
    /// The line of the file.
    pub line: Option<u32>,
    /// The words.
    pub body: String,
    /// When it was made.
    pub created_at: Timestamp,
}

/// The approval that counts for a request: its last decision, if that is an approval of this commit from this base.
pub fn approval_of<'r>(request: &MergeRequest, reviews: &'r [Review]) -> Option<&'r Review> {
    let decided = |review: &&Review| {
        review.request == request.id && review.decision != ReviewDecision::Comment
    };
    let last = reviews.iter().filter(decided).max_by_key(|review| review.number)?;
    let is_approval = last.decision == ReviewDecision::Approved
        && last.accepted == request.accepted
        && last.base == request.base;
    is_approval.then_some(last)
}

#[cfg(test)]
mod tests {
    use super::super::request::tests::any_request;
    use super::*;

    #[test]
    fn an_approval_is_for_one_commit_and_can_be_taken_back() {
        let request = any_request("gt-a", 1);
        let review = |number, decision, accepted: &str| Review {
            number,
            request: request.id.clone(),
            actor: "ann".to_owned(),
            decision,
            accepted: accepted.to_owned(),
            base: request.base.clone(),
            file: String::new(),
            line: None,
            body: String::new(),
            created_at: request.created_at,
        };
        let (yes, no) = (ReviewDecision::Approved, ReviewDecision::Rejected);
        let remark = review(3, ReviewDecision::Comment, &request.accepted);
        let good = review(1, yes, &request.accepted);
        assert_eq!(approval_of(&request, &[]), None);
        assert_eq!(approval_of(&request, &[good.clone(), remark]), Some(&good));
        assert_eq!(approval_of(&request, &[good, review(2, no, &request.accepted)]), None);
        assert_eq!(approval_of(&request, &[review(1, yes, "another")]), None);
        let elsewhere = MergeRequest { base: "older".to_owned(), ..request.clone() };
        assert_eq!(approval_of(&elsewhere, &[review(1, yes, &request.accepted)]), None);
    }
}
