//! Reviews that became required while a request was in line: by its rig, its bead, a convoy, or a protected path.

use gt_core::merging::{MergeMethod, MergeRequest, RequestState};
use gt_executors::git::Commit;

use super::pass::QueueBuilder;
use crate::checks::protected_among;
use gt_beads::review_rules::is_review_required;
use gt_town::Result;
use gt_town::settings::{file_layers, layers_over};
use gt_town::tree_paths::git_failed;

impl QueueBuilder<'_> {
    /// Marks those of the requests that need a review by now, and did not when they were made. `true` if there are any.
    pub(super) fn require_reviews(&mut self, requests: &[MergeRequest]) -> Result<bool> {
        let unreviewed: Vec<&MergeRequest> =
            requests.iter().filter(|request| may_need_review(request)).collect();
        if unreviewed.is_empty() {
            return Ok(false);
        }
        let files = file_layers(self.town)?;
        let mut needed = Vec::new();
        for request in unreviewed {
            let is_asked = self.town.read(|reader| {
                let of_rig = layers_over(&files, reader)?.rig_review(&self.name.rig)?;
                Ok(of_rig == "required" || is_review_required(reader, &request.id.bead, None)?)
            })?;
            if is_asked || self.touches_protected_paths(request)? {
                needed.push(request.id.clone());
            }
        }
        if needed.is_empty() {
            return Ok(false);
        }
        self.town.write(|writer| {
            for id in &needed {
                let current = writer.merge_request(id)?.filter(may_need_review);
                if let Some(current) = current {
                    let reviewed = MergeRequest { review: true, ..current.clone() };
                    writer.save_merge_request(current.state, &reviewed)?;
                }
            }
            Ok(())
        })?;
        self.changed.extend(needed);
        Ok(true)
    }

    fn touches_protected_paths(&self, request: &MergeRequest) -> Result<bool> {
        let Some(base) = Commit::parse(&request.base) else { return Ok(false) };
        let accepted = self.commit(&request.accepted)?;
        // A commit that another host has is judged there.
        if !self.repository.has(&accepted).map_err(git_failed(self.rig))? {
            return Ok(false);
        }
        let changed = || self.repository.changed_paths(&base, &accepted);
        Ok(!protected_among(self.town, self.rig, changed)?.is_empty())
    }
}

/// Whether a request would land without a review. The people who merge a pull request review it, and work that lands at once
/// was accepted so.
fn may_need_review(request: &MergeRequest) -> bool {
    let is_in_line = matches!(
        request.state,
        RequestState::Queued | RequestState::Building | RequestState::Checking
    );
    is_in_line && !request.review && request.method == MergeMethod::Queue
}
