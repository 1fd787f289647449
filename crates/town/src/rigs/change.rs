//! Changes to an existing rig.

use gt_core::hosting::TrackedPullRequest;
use gt_core::merging::{MergeRequest, RequestHold, RequestState};
use gt_core::settings::rig_settings;
use gt_core::similar_names::closest;
use gt_core::{ExecutorKind, Invalid, Rig, RigSlug, Title};
use gt_executors::git;
use gt_store::{Reader, Writer};

use super::require;
use crate::{OperationError, Result, Town};

/// One thing about a rig that can be changed, and what it is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RigChange {
    /// How its runs are carried out.
    Executor(ExecutorKind),
    /// Its title.
    Title(Title),
    /// The branch that work begins from and lands on.
    Branch(String),
}

/// The names of the changes that are no settings.
const CHANGES: [&str; 3] = ["executor", "title", "branch"];

impl RigChange {
    /// Checks what a person gave.
    pub fn parse(key: &str, value: &str) -> std::result::Result<Self, Invalid> {
        Ok(match key {
            "executor" => match ExecutorKind::parse(value)? {
                kind @ (ExecutorKind::Tmux | ExecutorKind::Process) => Self::Executor(kind),
                kind @ (ExecutorKind::Ssh | ExecutorKind::Pull | ExecutorKind::None) => {
                    kind.refuse_removed()?;
                    return Err(Invalid(format!(
                        "a rig that is there cannot become one of the executor {value}; use tmux or process, or add \
                         another rig"
                    )));
                }
            },
            "title" => Self::Title(Title::parse(value)?),
            "branch" | "default-branch" | "default_branch" => Self::Branch(branch_name(value)?),
            other => {
                let known: Vec<&str> = CHANGES.into_iter().chain(rig_settings()).collect();
                let hint = closest(other, known.iter().copied());
                let hint = hint.map(|name| format!("; did you mean {name}?")).unwrap_or_default();
                return Err(Invalid(format!(
                    "a rig has no \"{}\"{hint} (it has: {})",
                    other.chars().take(60).collect::<String>().escape_debug(),
                    known.join(", ")
                )));
            }
        })
    }
}

/// The name of a branch, as far as it can be checked without its repository.
pub fn branch_name(text: &str) -> std::result::Result<String, Invalid> {
    let is_name = git::is_branch_name(text).map_err(|error| Invalid(error.to_string()))?;
    if is_name {
        return Ok(text.to_owned());
    }
    let shown: String = text.chars().take(60).collect();
    Err(Invalid(format!("\"{}\" is not the name of a branch", shown.escape_debug())))
}

/// Changes one thing about a rig; says whether that changed anything. How its runs are carried out stays as it is while
/// one of them is live.
pub fn change(town: &Town, name: &str, change: &RigChange) -> Result<(Rig, bool)> {
    let mut is_renamed = false;
    if let RigChange::Branch(branch) = change {
        let rig = town.read(|reader| require(reader, name))?;
        if !rig.repo.is_empty() && rig.default_branch != *branch {
            let known = check_branch(&rig.slug, &rig.repo, branch)?;
            is_renamed = !known.is_empty() && !known.contains(&rig.default_branch);
        }
    }
    town.write(|writer| {
        let rig = require(writer, name)?;
        let new = match change {
            RigChange::Executor(executor) => {
                let new = Rig { executor: *executor, ..rig.clone() };
                check_executor(writer, &rig, &new)?;
                new
            }
            RigChange::Title(title) => Rig { title: title.as_str().to_owned(), ..rig.clone() },
            RigChange::Branch(branch) => {
                if rig.repo.is_empty() {
                    return Err(OperationError::rejected(format!(
                        "the rig {} has no repository, so nothing of it is on a branch",
                        rig.slug
                    )));
                }
                Rig { default_branch: branch.clone(), ..rig.clone() }
            }
        };
        if new == rig {
            return Ok((rig, false));
        }
        writer.change_rig(&rig, &new)?;
        if is_renamed {
            move_requests(writer, &rig, &new.default_branch)?;
        }
        Ok((require(writer, rig.slug.as_str())?, true))
    })
}

/// Lets the merge requests for the branch of a rig land on another one, because the origin has the old branch no longer. The
/// builder moves those that it has, once it finds that the old branch is gone.
fn move_requests(writer: &mut Writer<'_>, rig: &Rig, branch: &str) -> Result<()> {
    let old = rig.default_branch.as_str();
    for request in writer.merge_line(&rig.slug, old)? {
        move_request_in(writer, &request, branch)?;
    }
    let paused = writer.merge_queue(&rig.slug, old)?.and_then(|queue| queue.paused);
    if let Some((_, by)) = paused {
        writer.pause_queue(&rig.slug, branch, Some(&by))?;
    }
    Ok(())
}

/// Lets a merge request land on another branch; says whether it does. One that a builder has stays.
pub fn move_request_in(
    writer: &mut Writer<'_>,
    request: &MergeRequest,
    branch: &str,
) -> Result<bool> {
    let is_gone = RequestState::Held(RequestHold::TargetGone);
    let (state, retry_at) = match request.state {
        RequestState::Building | RequestState::Checking | RequestState::Landing => {
            return Ok(false);
        }
        state if state == is_gone => (RequestState::Queued, None),
        state => (state, request.retry_at),
    };
    let detail = if state == request.state { request.detail.clone() } else { String::new() };
    let target = branch.to_owned();
    let moved = MergeRequest { target, state, retry_at, detail, ..request.clone() };
    writer.save_merge_request(request.state, &moved)?;
    // The base of its pull request may be right now, although nothing has changed on the service.
    if let Some(pull) = writer.pull_request(&request.id.bead, &request.pull_request.branch)? {
        let unseen = TrackedPullRequest { fingerprint: String::new(), ..pull };
        writer.save_pull_request(&unseen)?;
    }
    Ok(true)
}

/// Refuses a branch that the origin of a rig does not have. An origin that does not answer, or has no branch at all, refuses
/// nothing. Returns the branches that are known.
pub(super) fn check_branch(rig: &RigSlug, origin: &str, branch: &str) -> Result<Vec<String>> {
    let Ok(known) = git::branches(origin) else { return Ok(Vec::new()) };
    if known.is_empty() || known.iter().any(|name| name == branch) {
        return Ok(known);
    }
    let meant = closest(branch, known.iter().map(String::as_str));
    let meant = meant.map(|name| format!("; did you mean {name}?")).unwrap_or_default();
    Err(OperationError::rejected(format!(
        "the origin of the rig {rig} has no branch {branch}{meant}; make it there first with git push origin \
         HEAD:refs/heads/{branch}"
    )))
}

/// A run that began with one executor is not looked for with another.
fn check_executor(reader: &Reader<'_>, rig: &Rig, new: &Rig) -> Result<()> {
    if rig.executor == new.executor {
        return Ok(());
    }
    let (slug, executor) = (&rig.slug, rig.executor);
    if matches!(executor, ExecutorKind::Pull | ExecutorKind::None) {
        return Err(OperationError::rejected(format!(
            "the work of the rig {slug} is taken by others (executor {}), and that stays so; add another rig",
            executor.as_str()
        )));
    }
    match reader.live_runs()?.into_iter().find(|run| run.rig == *slug) {
        Some(run) => Err(OperationError::rejected(format!(
            "{} is running in the rig {slug}; wait for it (gt rig park {slug} keeps others from starting), or end it \
             with gt run cancel {}",
            run.id, run.id
        ))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_change_is_refused_with_the_valid_ones() {
        for (key, value, says) in [
            ("prefix", "x", "executor, title, branch, merge, review"),
            ("reviews", "x", "did you mean review?"),
            ("executor", "pull", "add another rig"),
            ("executor", "ssh", "gt host add <machine> --ssh <machine>"),
            ("executor", "spaceship", "is not an executor"),
            ("title", "", "title"),
            ("branch", "-x", "is not the name of a branch"),
            ("branch", "a b", "is not the name of a branch"),
        ] {
            let said = RigChange::parse(key, value).unwrap_err().to_string();
            assert!(said.contains(says), "{key} {value}: {said}");
        }
        assert_eq!(
            RigChange::parse("default-branch", "release/2"),
            Ok(RigChange::Branch("release/2".to_owned()))
        );
    }
}
