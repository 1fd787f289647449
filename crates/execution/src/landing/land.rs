//! Bringing an accepted commit to a branch of the origin.

use std::time::Duration;

use gt_core::Rig;
use gt_core::schedule::{DoneStatus, Landing, LandingState, Run};
use gt_executors::git::{
    CheckoutInTheWay, Commit, GitError, OriginTurn, PUSH_TIME_MAX, Push, Rebased, Repository,
    WorkToRebase,
};

use super::checkout::{forget_candidate, landing_name};
use super::delivery_mode::DeliveryMode;
use crate::trees::{look_at_target, note_target};
use gt_town::tree_paths::{git_failed, signature_of};
use gt_town::{Result, Town};

/// The outcome of an attempt to land.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum LandResult {
    /// The branch has it, as this commit.
    There(Commit),
    /// Others have changed the same lines since the run began.
    Conflict {
        /// In these files.
        paths: Vec<String>,
        /// Where the run began, if the origin has taken that back.
        since: Option<Commit>,
        /// Whether the work has merges.
        has_merges: bool,
    },
    /// The origin has no such branch any more. The person who deleted it does not look there.
    Gone,
    /// It cannot be delivered as it is, for this reason.
    Rejected(String),
    /// The origin cannot be reached, so it is not known whether it has the work. It is on its way until that is
    /// known.
    Unreachable(String),
    /// The origin answers, and this obstacle is in the way. The work is on its way until that is gone.
    Stuck(String),
    /// The branch is checked out on this machine, and the checkout cannot take the work. It is on its way until it
    /// can.
    Held(CheckoutInTheWay),
    /// The run has ended meanwhile, and no more of its work leaves the town.
    Over,
}

/// Whether the origin has an earlier push.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum OriginCheck {
    /// As this commit.
    Yes(Commit),
    /// It has not.
    No,
    /// It does not answer.
    Unknown(String),
}

/// How often pushes from other machines may come first. Each time, the work of another run has landed.
const RACES_MAX: u32 = 100;

/// The pauses after a push that found the branch of the origin locked by another push. After the last of them, the
/// landing is stuck.
const PUSH_RETRY_DELAYS: [Duration; 2] = [Duration::from_millis(250), Duration::from_secs(1)];

/// Whether a landing waits for others that land in the same repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LandingWait {
    /// As long as that takes.
    Waits,
    /// Asks again with the next pass: for a caller that keeps the whole town going.
    Never,
}

/// Accepted work, and its destination.
#[derive(Debug)]
pub(super) struct AcceptedWork<'a> {
    pub(super) town: &'a Town,
    pub(super) rig: &'a Rig,
    pub(super) run: &'a Run,
    pub(super) said: DoneStatus,
    pub(super) way: DeliveryMode,
    pub(super) accepted: &'a Commit,
    pub(super) branch: &'a str,
    pub(super) repository: &'a Repository,
}

impl AcceptedWork<'_> {
    /// Puts the commit on top of the branch as it is now and pushes it; again when another push came first. Every
    /// commit that is about to be pushed is recorded first, while the run is live.
    ///
    /// Without patience, it does nothing while another process lands there.
    pub(super) fn land(&self, patience: LandingWait) -> Result<LandResult> {
        let turn = match patience {
            LandingWait::Waits => self.repository.turn().map(Some),
            LandingWait::Never => self.repository.turn_if_free(),
        };
        match turn.map_err(git_failed(self.rig))? {
            Some(turn) => self.land_in(&turn),
            None => Ok(LandResult::Unreachable("another run is landing there".to_owned())),
        }
    }

    fn land_in(&self, _turn: &OriginTurn) -> Result<LandResult> {
        let failed = git_failed(self.rig);
        let mut is_accepted = self.run.landing.accepted == self.accepted.as_str();
        match self.arrived()? {
            OriginCheck::Yes(commit) => return Ok(LandResult::There(commit)),
            OriginCheck::No => {}
            OriginCheck::Unknown(why) => return self.leave_for_later(is_accepted, why),
        }
        self.look_at_target();
        let mut tip = self.repository.tip(self.branch).map_err(&failed)?;
        let mut pauses = PUSH_RETRY_DELAYS.iter();
        for _ in 0..RACES_MAX {
            let ready = match &tip {
                None if self.way == DeliveryMode::Land => {
                    self.give_up()?;
                    return Ok(LandResult::Gone);
                }
                None => self.accepted.clone(),
                Some(tip) => match self.rebase(tip)? {
                    Rebased::Clean(ready) => ready,
                    Rebased::Conflict { paths, since, has_merges } => {
                        self.give_up()?;
                        let paths = paths.iter().map(|path| path.display().to_string()).collect();
                        return Ok(LandResult::Conflict { paths, since, has_merges });
                    }
                },
            };
            if !self.intend(is_accepted, &ready)? {
                return Ok(LandResult::Over);
            }
            is_accepted = true;
            if tip.as_ref() == Some(&ready) {
                // Everything in it was there already.
                return Ok(LandResult::There(ready));
            }
            let name = landing_name(self.run);
            let push =
                self.repository.deliver(&ready, self.branch, tip.as_ref(), &name, PUSH_TIME_MAX);
            let why = match push.map_err(&failed)? {
                Push::Done => return self.confirm(ready),
                Push::LostRace(why) => why,
                Push::Rejected(why) => {
                    return self.reject(format!("the origin does not take it: {why}"));
                }
                Push::Incomplete(why) => {
                    return self.reject(format!(
                        "what git-lfs keeps for it cannot be brought to the origin: {why}"
                    ));
                }
                Push::Unable(why) => return Ok(LandResult::Stuck(why)),
                Push::Unreachable(why) => return Ok(LandResult::Unreachable(why)),
                Push::Held(held) => return Ok(LandResult::Held(held)),
            };
            if let Some(why) = self.fetch()? {
                return Ok(LandResult::Unreachable(why));
            }
            self.look_at_target();
            let before = tip;
            tip = self.repository.tip(self.branch).map_err(&failed)?;
            if tip != before {
                pauses = PUSH_RETRY_DELAYS.iter();
            } else if let Some(pause) = pauses.next() {
                std::thread::sleep(*pause);
            } else {
                return Ok(self.stuck(&why));
            }
        }
        Ok(self.stuck(&format!("another push came first {RACES_MAX} times")))
    }

    /// Looks for commits that were pushed past gt. A landing does not wait for that: the next one looks again.
    fn look_at_target(&self) {
        if self.way == DeliveryMode::Land {
            let _ = look_at_target(self.town, self.rig, self.repository, self.branch);
        }
    }

    /// Asks the origin of the rig whether it has the pushed commit. Only its answer counts.
    fn confirm(&self, pushed: Commit) -> Result<LandResult> {
        if let Some(why) = self.fetch()? {
            return Ok(LandResult::Unreachable(why));
        }
        let has = self.repository.origin_has(self.branch, &pushed).map_err(git_failed(self.rig))?;
        if !has {
            return Ok(self.stuck(&format!("it took {pushed} and does not have it")));
        }
        // If this cannot be recorded, the commit is checked again.
        let _ = note_target(self.town, self.rig, self.branch, &pushed);
        Ok(LandResult::There(pushed))
    }

    fn stuck(&self, why: &str) -> LandResult {
        LandResult::Stuck(format!("the origin does not move {}: {why}", self.branch))
    }

    fn reject(&self, why: String) -> Result<LandResult> {
        self.give_up()?;
        Ok(LandResult::Rejected(why))
    }

    /// Asks the origin whether it has the commit of an earlier push.
    pub(super) fn arrived(&self) -> Result<OriginCheck> {
        let failed = git_failed(self.rig);
        if let Some(why) = self.fetch()? {
            return Ok(OriginCheck::Unknown(why));
        }
        let Landing { accepted, commit, .. } = &self.run.landing;
        let pushed = Commit::parse(commit).filter(|_| accepted == self.accepted.as_str());
        Ok(match pushed {
            Some(pushed)
                if self.repository.origin_has(self.branch, &pushed).map_err(&failed)? =>
            {
                OriginCheck::Yes(pushed)
            }
            _ => OriginCheck::No,
        })
    }

    /// Records that nothing is on its way any more.
    pub(super) fn give_up(&self) -> Result<()> {
        self.town.write(|writer| Ok(writer.give_up_landing(self.run)?))?;
        forget_candidate(self.repository, self.run, self.branch);
        Ok(())
    }

    /// Records accepted work that cannot be pushed now; a later pass pushes it when its worker is gone.
    fn leave_for_later(&self, is_accepted: bool, why: String) -> Result<LandResult> {
        let is_intended = is_accepted && self.run.landing.state == Some(LandingState::Intended);
        if is_intended || self.intend(is_accepted, self.accepted)? {
            return Ok(LandResult::Unreachable(why));
        }
        Ok(LandResult::Over)
    }

    /// `false` if the run has ended.
    fn intend(&self, is_accepted: bool, ready: &Commit) -> Result<bool> {
        let landing = Landing {
            accepted: self.accepted.to_string(),
            state: Some(LandingState::Intended),
            commit: ready.to_string(),
        };
        self.town.write(|writer| {
            Ok(if is_accepted {
                writer.intend_landing(self.run, ready.as_str())?
            } else {
                writer.accept_work(self.run, self.said, &landing)?
            })
        })
    }

    fn rebase(&self, tip: &Commit) -> Result<Rebased> {
        let failed = git_failed(self.rig);
        let base = Commit::parse(&self.run.workplace.base_commit);
        let work = WorkToRebase { commit: self.accepted, base: base.as_ref() };
        self.repository.rebase_onto(work, tip, &signature_of(self.run)).map_err(&failed)
    }

    /// Why the origin does not answer, if it does not.
    fn fetch(&self) -> Result<Option<String>> {
        match self.repository.fetch() {
            Ok(()) => Ok(None),
            Err(GitError::Unreachable { message, .. }) => Ok(Some(message)),
            Err(other) => Err(git_failed(self.rig)(other)),
        }
    }
}
