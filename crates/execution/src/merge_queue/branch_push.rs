//! Requests that people merge: their branch goes to the origin under its own name.

use std::time::Duration;

use gt_core::merging::{MergeRequest, OriginAnswer, RequestAction, RequestHold, RequestState};
use gt_executors::git::Push;

use super::land::PUSH_TIME_MAX;
use super::pass::QueueBuilder;
use gt_beads::merge_requests::RequestNote;
use gt_town::Result;
use gt_town::tree_paths::git_failed;

/// The delay before a branch that the origin did not take is pushed again.
const BRANCH_RETRY_DELAY: Duration = Duration::from_mins(1);

impl QueueBuilder<'_> {
    /// Whether the branch of a request that people merge has not been pushed yet, and is due.
    pub(super) fn is_unpushed(&self, request: &MergeRequest) -> bool {
        request.state == RequestState::Held(RequestHold::Unmerged)
            && request.retry_at.is_some()
            && request.waits_until(self.town.now()).is_none()
    }

    /// Pushes the branch of a request, if the origin does not have its commit there. The caller has the turn at the origin.
    pub(super) fn push_branch(&mut self, request: &MergeRequest) -> Result<()> {
        let failed = git_failed(self.rig);
        let accepted = self.commit(&request.accepted)?;
        let before = self.repository.tip(&request.branch).map_err(&failed)?;
        let push = if before.as_ref() == Some(&accepted) {
            Push::Done
        } else {
            let name = request.id.to_string();
            let (branch, before) = (request.branch.as_str(), before.as_ref());
            self.repository
                .deliver(&accepted, branch, before, &name, PUSH_TIME_MAX)
                .map_err(&failed)?
        };
        let problem = match push {
            Push::Done => None,
            Push::LostRace(why)
            | Push::Unable(why)
            | Push::Incomplete(why)
            | Push::Unreachable(why) => Some(why),
            Push::Rejected(why) => Some(why.to_string()),
            Push::Held(obstacle) => Some(obstacle.to_string()),
        };
        let note = RequestNote {
            retry_at: problem.is_some().then(|| self.town.now().plus(BRANCH_RETRY_DELAY)),
            detail: problem
                .map(|why| format!("{} is not at the origin yet: {why}", request.branch))
                .unwrap_or_default(),
            ..RequestNote::default()
        };
        let hold = RequestAction::Hold(RequestHold::Unmerged);
        self.act(std::slice::from_ref(&request.id), hold, OriginAnswer::Unknown, &note)?;
        Ok(())
    }
}
