//! Work that its worker gives up and that cannot be committed as it is.

use gt_core::Rig;
use gt_core::schedule::{Landing, Rescued, Run};

use super::done::{Fate, Refused};
use super::end::{Words, end};
use super::way::Way;
use crate::trees::save;
use crate::{OperationError, Town, with_causes};

/// Saves what a worker leaves that asks for a person or puts its work off, and ends its run. Whoever is stuck in a conflict
/// must be able to say so, so nothing about the work, or about saving it, keeps the run from ending; and whoever takes
/// it up is told where everything is.
pub(super) fn set_aside(
    town: &Town,
    rig: &Rig,
    run: &Run,
    words: &Words<'_>,
    why: &str,
) -> std::result::Result<Fate, Refused> {
    let fate = match save(town, rig, run) {
        Ok(saved) => fate_of(run, saved, why),
        Err(error) if error.may_pass() => return Err(error.into()),
        // Whoever gets the tree next saves it first, or moves it away.
        Err(error) => Fate::Left { tree: run.workplace.tree.clone(), why: reason_of(&error, why) },
    };
    let left = told(run, &fate);
    let words = Words { left: left.as_deref(), ..*words };
    // Nothing of it is accepted.
    end(town, run, &words, Way::Keep, &Landing::default(), None)?;
    Ok(fate)
}

fn fate_of(run: &Run, saved: Option<Rescued>, why: &str) -> Fate {
    let branch = run.workplace.branch.clone();
    match saved {
        Some(Rescued { reference, commit, left_out, .. }) => {
            Fate::Saved { reference, commit, branch, left_out, why: why.to_owned() }
        }
        // There is no more than what is on the branch.
        None => Fate::Kept { branch, pushed: false },
    }
}

fn reason_of(error: &OperationError, why: &str) -> String {
    let error = with_causes(error);
    if error == why { error } else { format!("{error} ({why})") }
}

/// What a person needs to know to go on from there.
fn told(run: &Run, fate: &Fate) -> Option<String> {
    match fate {
        Fate::Saved { branch, left_out, why, .. } => {
            let without = match left_out.len() {
                0 => String::new(),
                left => format!(" Not saved, and only in {}: {left} files.", run.workplace.tree),
            };
            Some(format!(
                "What was in its tree was not committed ({why}). It is saved as it was: gt rescue show {}. What it \
                 committed before is on {branch}.{without}",
                run.id
            ))
        }
        Fate::Left { tree, why } => {
            Some(format!("What it did could not be saved and stays in {tree}: {why}"))
        }
        Fate::Nothing | Fate::Landed { .. } | Fate::Kept { .. } | Fate::Merging { .. } => None,
    }
}
