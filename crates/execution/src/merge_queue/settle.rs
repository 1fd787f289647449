//! Finds the outcome of pushes and builders that have no recorded end.

use gt_core::Outcome;
use gt_core::merging::{
    Candidate, CandidateState, MergeRequest, MergeRequestId, OriginAnswer, RequestAction,
    RequestHold, RequestPurpose, RequestState,
};
use gt_store::Writer;

use super::pass::QueueBuilder;
use gt_beads::beads::{Close, close_in};
use gt_beads::dependencies::hold_outside_dependents_in;
use gt_beads::merge_requests::{RequestNote, act_in};
use gt_beads::run_records::release_in;
use gt_town::Result;
use gt_town::tree_paths::git_failed;

impl QueueBuilder<'_> {
    /// Asks the target, as it was fetched, about every push without a recorded end; puts requests of builders that are gone
    /// back in line; and finds work that others have merged. The caller has the turn at the origin, so no push is under way.
    pub(super) fn settle(&mut self) -> Result<()> {
        // The candidates that are confirmed here were built by other processes, or earlier.
        self.unsigned = None;
        let failed = git_failed(self.rig);
        let target = &self.name.target;
        let landing =
            self.town.read(|reader| Ok(reader.landing_candidates(&self.name.rig, target)?))?;
        for candidate in landing {
            let tip = self.commit(&candidate.tip)?;
            if self.repository.origin_has(target, &tip).map_err(&failed)? {
                self.confirm(&candidate)?;
            } else {
                self.take_back(&candidate, OriginAnswer::Absent, &RequestNote::default())?;
            }
        }
        self.release_dropped()?;
        let mut cut_off = Vec::new();
        let mut due = Vec::new();
        for request in self.line()? {
            match request.state {
                RequestState::Building | RequestState::Checking => cut_off.push(request.id),
                RequestState::Held(RequestHold::Unmerged) if self.is_merged(&request)? => {
                    let landed = request.accepted.clone();
                    self.confirm_merged(&request, &landed)?;
                    self.delete_pushed_branch(&request.id)?;
                }
                RequestState::Held(RequestHold::Unmerged) if self.is_unpushed(&request) => {
                    self.push_branch(&request)?;
                }
                RequestState::Held(RequestHold::Unmerged) => {}
                RequestState::Held(_)
                    if request.retry_at.is_some()
                        && request.waits_until(self.town.now()).is_none() =>
                {
                    due.push(request.id);
                }
                _ => {}
            }
        }
        cut_off.extend(due);
        let note = RequestNote::default();
        self.act(&cut_off, RequestAction::Requeue, OriginAnswer::Unknown, &note)?;
        Ok(())
    }

    /// Puts requests back in line whose candidate was dropped in a transaction of its own, as programs before this one did: the
    /// origin has answered, and nothing else would end their push.
    fn release_dropped(&mut self) -> Result<()> {
        for request in self.line()? {
            let Some(number) = request.candidate.filter(|_| request.state == RequestState::Landing)
            else {
                continue;
            };
            let candidate = self.town.read(|reader| Ok(reader.candidate(number)?))?;
            if candidate.is_some_and(|candidate| candidate.state == CandidateState::Dropped) {
                let (action, origin) = (RequestAction::Requeue, OriginAnswer::Absent);
                self.act(&[request.id], action, origin, &RequestNote::default())?;
            }
        }
        Ok(())
    }

    /// Whether the target has the accepted commit, also if others merged it.
    pub(super) fn is_merged(&self, request: &MergeRequest) -> Result<bool> {
        let accepted = self.commit(&request.accepted)?;
        self.repository.origin_has(&self.name.target, &accepted).map_err(git_failed(self.rig))
    }

    /// Records that the origin has a candidate, and closes the beads of its requests, in one transaction.
    pub(super) fn confirm(&mut self, candidate: &Candidate) -> Result<()> {
        let target = &self.name.target;
        let unsigned = self.unsigned.take().map(|why| format!("its commits are not signed: {why}"));
        let detail = unsigned.unwrap_or_default();
        let landed = self.town.write(|writer| {
            if !writer.end_candidate(candidate.number, CandidateState::Landed)? {
                return Ok(Vec::new());
            }
            let mut landed = Vec::new();
            for part in &candidate.parts {
                landed.extend(land_noted_in(writer, &part.request, target, &part.after, &detail)?);
            }
            Ok(landed)
        })?;
        for request in landed {
            self.drop_kept(&request);
            self.delete_pushed_branch(&request.id)?;
            self.changed.insert(request.id);
        }
        // If this cannot be recorded, the commit is looked at again.
        let tip = self.commit(&candidate.tip)?;
        let _ = self.repository.note_target(self.town, target, &tip);
        let _ = self.repository.drop_candidate(&candidate.base);
        Ok(())
    }

    /// Records that others have merged the work of a request.
    pub(super) fn confirm_merged(&mut self, request: &MergeRequest, commit: &str) -> Result<()> {
        let target = &self.name.target;
        let landed = self.town.write(|writer| land_in(writer, &request.id, target, commit))?;
        self.changed.extend(landed.map(|landed| landed.id));
        Ok(())
    }

    /// Ends the push of a candidate that the origin does not have; its requests are in line again.
    pub(super) fn take_back(
        &mut self,
        candidate: &Candidate,
        origin: OriginAnswer,
        note: &RequestNote,
    ) -> Result<Vec<MergeRequest>> {
        let ids: Vec<MergeRequestId> =
            candidate.parts.iter().map(|part| part.request.clone()).collect();
        let acted = self.town.write(|writer| {
            writer.end_candidate(candidate.number, CandidateState::Dropped)?;
            let mut acted = Vec::new();
            for id in &ids {
                acted.extend(act_in(writer, id, RequestAction::Requeue, origin, note.clone())?);
            }
            Ok(acted)
        })?;
        self.changed.extend(acted.iter().map(|request| request.id.clone()));
        let _ = self.repository.drop_candidate(&candidate.base);
        Ok(acted)
    }
}

/// Records that the target has the work of a request, and closes its bead. The bead of work that was undone is open again.
pub(super) fn land_in(
    writer: &mut Writer<'_>,
    id: &MergeRequestId,
    target: &str,
    commit: &str,
) -> Result<Option<MergeRequest>> {
    land_noted_in(writer, id, target, commit, "")
}

/// The same with something that is to be known about its commits.
fn land_noted_in(
    writer: &mut Writer<'_>,
    id: &MergeRequestId,
    target: &str,
    commit: &str,
    detail: &str,
) -> Result<Option<MergeRequest>> {
    let note = RequestNote { landed: Some(commit.to_owned()), ..RequestNote::words(detail) };
    let landed = act_in(writer, id, RequestAction::Confirm, OriginAnswer::Unknown, note)?;
    let Some(landed) = landed else { return Ok(None) };
    match landed.purpose {
        RequestPurpose::Work => {}
        RequestPurpose::Revert => {
            release_in(writer, &id.bead)?;
            return Ok(Some(landed));
        }
        // The convoy lands when the branches of all its rigs have arrived.
        RequestPurpose::Integration => return Ok(Some(landed)),
    }
    hold_outside_dependents_in(writer, &id.bead, target)?;
    let run = match landed.run() {
        Some(run) => writer.run(&run)?,
        None => None,
    };
    if let Some(run) = &run {
        writer.confirm_landing(run, target, commit)?;
    }
    let short: String = commit.chars().take(12).collect();
    let by = run.map(|run| format!("done by {}, ", run.id)).unwrap_or_default();
    let how = Close {
        reasons: vec![format!("{by}landed on {target} as {short}")],
        outcome: Some(Outcome::Success),
        force: true,
        session: None,
    };
    close_in(writer, &id.bead, &how, 0, None)?;
    Ok(Some(landed))
}
