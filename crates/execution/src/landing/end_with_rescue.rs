//! Work that its worker gives up and that cannot be committed as it is.

use gt_core::Rig;
use gt_core::schedule::{Rescued, Run};

use super::done::{DoneRefusal, WorkDelivery};
use super::end::{AcceptedEnd, EndReport, end};
use crate::trees::save;
use gt_town::{OperationError, Town, with_causes};

/// Saves the work of a worker that asks for a person or defers its bead, and ends its run. A worker that is stuck in
/// a conflict must be able to say so: no fault of the work, or of saving it, keeps the run from ending. The next
/// owner is told where everything is.
pub(super) fn end_with_rescue(
    town: &Town,
    rig: &Rig,
    run: &Run,
    words: &EndReport<'_>,
    why: &str,
) -> std::result::Result<WorkDelivery, DoneRefusal> {
    let delivery = match save(town, rig, run) {
        Ok(saved) => fate_of(run, saved, why),
        Err(error) if error.may_pass() => return Err(error.into()),
        // The next run in this tree saves the work first, or moves the tree away.
        Err(error) => {
            WorkDelivery::Left { tree: run.workplace.tree.clone(), why: reason_of(&error, why) }
        }
    };
    let left = rescue_note(run, &delivery);
    let words = EndReport { left: left.as_deref(), ..*words };
    // Nothing of it is accepted.
    end(town, run, &words, &AcceptedEnd::default())?;
    Ok(delivery)
}

fn fate_of(run: &Run, saved: Option<Rescued>, why: &str) -> WorkDelivery {
    let branch = run.workplace.branch.clone();
    match saved {
        Some(Rescued { reference, commit, left_out, .. }) => {
            WorkDelivery::Saved { reference, commit, branch, left_out, why: why.to_owned() }
        }
        // All the work is on the branch.
        None => WorkDelivery::Kept { branch, pushed: false },
    }
}

fn reason_of(error: &OperationError, why: &str) -> String {
    let error = with_causes(error);
    if error == why { error } else { format!("{error} ({why})") }
}

/// The facts that a person needs to go on from there.
fn rescue_note(run: &Run, delivery: &WorkDelivery) -> Option<String> {
    match delivery {
        WorkDelivery::Saved { branch, left_out, why, .. } => {
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
        WorkDelivery::Left { tree, why } => {
            Some(format!("What it did could not be saved and stays in {tree}: {why}"))
        }
        WorkDelivery::Nothing
        | WorkDelivery::Landed { .. }
        | WorkDelivery::Kept { .. }
        | WorkDelivery::Merging(_) => None,
    }
}
