//! Ending the processes of a run.

use std::time::{Duration, Instant};

use gt_core::schedule::{Run, RunId};
use gt_executors::runs::{
    AskResult, Liveness, RunFiles, ask_to_cancel, end_orphan, holders, unattended,
};

use gt_town::{OperationError, Result};

/// How long processes may take to be gone, beyond the grace they get to end by themselves.
const GONE_TIME_LIMIT: Duration = Duration::from_secs(30);
/// The pause between two looks whether they are gone.
const GONE_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Ends every process of the run with these files and waits until none is left.
pub(crate) fn end_processes(files: &RunFiles, run: &Run, grace: Duration) -> Result<()> {
    let failed = |source| OperationError::File {
        action: "end the processes of the run with the lock",
        path: files.lock_path(),
        source,
    };
    let began = Instant::now();
    let limit = grace.saturating_mul(2).saturating_add(GONE_TIME_LIMIT);
    let mut told = false;
    loop {
        match files.liveness().map_err(failed)? {
            Liveness::Held => {}
            Liveness::Free => return Ok(()),
            Liveness::NeverTaken => {
                return Err(OperationError::rejected(unreadable(files, &run.id)));
            }
        }
        if !told {
            told = ask_to_cancel(files).map_err(failed)? == AskResult::Told;
        }
        if !told {
            // Either it is about to listen, or it is dead and its agent is not.
            end_orphan(files, grace).map_err(failed)?;
        } else if unattended(files).map_err(failed)?.is_some() {
            // It was killed before it could do what it was told.
            told = false;
            continue;
        }
        if began.elapsed() > limit {
            return Err(OperationError::rejected(does_not_end(files, &run.id)));
        }
        std::thread::sleep(GONE_POLL_INTERVAL);
    }
}

fn does_not_end(files: &RunFiles, id: &RunId) -> String {
    let holders: Vec<String> = holders(files).iter().map(ToString::to_string).collect();
    let who = match holders.as_slice() {
        [] => "a process that is not yours holds".to_owned(),
        [one] => format!("process {one} holds"),
        several => format!("the processes {} hold", several.join(", ")),
    };
    format!(
        "something of {id} does not end: {who} {}; end it by hand and cancel {id} again, or gt run cancel {id} \
         --force leaves it alone",
        files.lock_path().display()
    )
}

/// The advice for a run whose lock was removed.
pub fn unreadable(files: &RunFiles, id: &RunId) -> String {
    format!(
        "cannot tell whether a process of {id} is alive: {} is missing or cannot be read; look for its \
         processes (their environment has GT_RUN={id}), end them, and then gt run cancel {id} --force",
        files.lock_path().display()
    )
}
