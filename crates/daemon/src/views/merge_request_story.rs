//! How a merge request got where it is.

use gt_api::{
    CandidateCheckDocument, CandidateDocument, MergeRequestDocument, MergeRequestStoryDocument,
    ReviewDocument, ShownCommentDocument,
};

use gt_execution::merge_queue::RequestStory;

/// The document of the story of a request, without the checks that its rig has now.
pub fn story_document(story: &RequestStory) -> MergeRequestStoryDocument {
    let checks = story.checks.iter().map(|(check, run)| {
        CandidateCheckDocument::new(&check.name, check.check_run, check.cached, run.as_ref())
    });
    let candidate = story.candidate.as_ref();
    MergeRequestStoryDocument {
        request: MergeRequestDocument {
            next: story.next_step(),
            ..MergeRequestDocument::new(&story.request, &story.title, None)
        },
        undone_by: story.undone_by.as_ref().map(ToString::to_string),
        candidate: candidate.map(|candidate| CandidateDocument::new(candidate, checks.collect())),
        reviews: story.reviews.iter().map(ReviewDocument::from).collect(),
        rig_checks: Vec::new(),
        waits_for: story.pull_request_waits_for.clone(),
        comments: story.pull_request_texts.iter().map(ShownCommentDocument::from).collect(),
        tokens: story.spent.known_tokens(),
        cost: story.spent.known_cost().map(|cost| cost.to_string()),
    }
}
