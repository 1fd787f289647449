//! Bringing an accepted commit to a branch of the origin.

use gt_core::Rig;
use gt_core::schedule::{LandingState, Run};
use gt_executors::git::{Commit, Push, Rebased, Repository};

use crate::trees::{git_failed, signature_of};
use crate::{Result, Town};

/// What came of an attempt to land.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Landed {
    /// The branch has it, as this commit.
    There(Commit),
    /// Others have changed the same lines since the run began.
    Conflict(Vec<String>),
    /// The origin does not want it.
    Rejected(String),
    /// The origin cannot be reached.
    Unreachable(String),
}

/// How often somebody else may be faster.
const RACES_MAX: u32 = 20;

/// Puts `commit` on top of the branch as it is now and pushes it; when somebody else was faster, again. Every commit
/// that is about to be pushed is written down first.
pub(super) fn land(
    town: &Town,
    rig: &Rig,
    run: &Run,
    repository: &Repository,
    commit: &Commit,
    branch: &str,
) -> Result<Landed> {
    let failed = git_failed(rig);
    for _ in 0..RACES_MAX {
        if let Err(error) = repository.fetch() {
            return match error {
                gt_executors::git::GitError::Unreachable { message, .. } => {
                    Ok(Landed::Unreachable(message))
                }
                other => Err(failed(other)),
            };
        }
        let tip = repository.tip(branch).map_err(&failed)?;
        let ready = match &tip {
            None => commit.clone(),
            Some(tip) => {
                if repository.is_ancestor(commit, tip).map_err(&failed)? {
                    return Ok(Landed::There(tip.clone()));
                }
                match repository.rebase_onto(commit, tip, &signature_of(run)).map_err(&failed)? {
                    Rebased::Clean(ready) => ready,
                    Rebased::Conflict(paths) => {
                        let paths = paths.iter().map(|path| path.display().to_string());
                        return Ok(Landed::Conflict(paths.collect()));
                    }
                }
            }
        };
        if tip.as_ref() == Some(&ready) {
            // Everything in it was there already.
            return Ok(Landed::There(ready));
        }
        town.write(|writer| {
            Ok(writer.set_landing(run, LandingState::Intended, ready.as_str())?)
        })?;
        match repository.push(&ready, branch, tip.as_ref()).map_err(&failed)? {
            Push::Done => return Ok(Landed::There(ready)),
            Push::LostRace => {}
            Push::Rejected(why) => return Ok(Landed::Rejected(why)),
            Push::Unreachable(why) => return Ok(Landed::Unreachable(why)),
        }
    }
    Ok(Landed::Unreachable(format!("somebody else was faster {RACES_MAX} times")))
}
