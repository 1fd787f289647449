//! Runs on other machines, seen by processes other than their supervisors.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use gt_core::schedule::Run;
use gt_executors::background::{detach, nameless_file};
use gt_executors::runs::{AskResult, Liveness, RunFiles, ask_to_cancel};
use gt_executors::ssh::RemoteRunRecord;

use super::Alive;
use gt_town::{OperationError, Result};

/// Another machine that a run was sent to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteLocation {
    /// As ssh calls it.
    pub machine: String,
    /// Why it cannot be reached, if it could not when it was last tried.
    pub away: Option<String>,
}

/// Whether a process of a claimed run on another machine is alive. Only its supervisor here can tell, while it
/// reaches that machine. The supervisor itself records that nothing is left.
pub fn alive(files: &RunFiles, run: &Run) -> Alive {
    match files.liveness() {
        Ok(Liveness::Held) if unreachable(files).is_none() => Alive::Yes,
        Ok(Liveness::Free | Liveness::NeverTaken) if !run.state.is_live() => Alive::No,
        Ok(Liveness::NeverTaken) if run.running_at.is_none() => Alive::No,
        Ok(Liveness::Held | Liveness::Free | Liveness::NeverTaken) | Err(_) => Alive::Unknown,
    }
}

/// Why the machine of a run cannot be reached, if it could not when it was last tried.
pub fn unreachable(files: &RunFiles) -> Option<String> {
    fs::read_to_string(files.unreachable_path()).ok().filter(|why| !why.is_empty())
}

/// Where a run with these files was sent, if it was sent anywhere.
pub fn elsewhere(files: &RunFiles) -> Option<RemoteLocation> {
    let posting = RemoteRunRecord::read(files).ok().flatten()?;
    Some(RemoteLocation { machine: posting.site.host, away: unreachable(files) })
}

/// Starts a supervisor for a run that goes on elsewhere, unless it has one.
pub fn rejoin(root: &Path, run: &Run, files: &RunFiles) -> Result<()> {
    let is_alone = matches!(files.liveness(), Ok(Liveness::Free | Liveness::NeverTaken));
    let is_there =
        || RemoteRunRecord::read(files).ok().flatten().is_some_and(|posting| !posting.is_over);
    if !is_alone || !is_there() {
        return Ok(());
    }
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| OperationError::File { action: "stay with the run of", path, source }
    };
    let program = std::env::current_exe().map_err(failed(&files.lock_path()))?;
    let nothing = nameless_file(files.root()).map_err(failed(&files.lock_path()))?;
    let id = run.id.to_string();
    let words = ["--actor", &run.agent, "worker", "exec", &id].map(OsString::from);
    let first = [OsString::from("-C"), root.as_os_str().to_owned()];
    let words: Vec<OsString> = first.into_iter().chain(words).collect();
    let words: Vec<&OsStr> = words.iter().map(OsString::as_os_str).collect();
    Ok(detach(&program, &words, nothing)?)
}

/// How long its processes may take to exit, beyond the grace period.
const END_TIMEOUT: Duration = Duration::from_secs(30);
/// How long an unreachable machine is waited for.
const REACH_TIMEOUT: Duration = Duration::from_secs(3);
/// How long a new supervisor may take to begin before another one is started.
const REJOIN_INTERVAL: Duration = Duration::from_secs(2);
/// How often `end` checks whether the processes are gone.
const END_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Has every process of a run that is carried out elsewhere ended, and waits until none is left.
pub fn end(root: &Path, run: &Run, files: &RunFiles, grace: Duration) -> Result<()> {
    let failed = |source| OperationError::File {
        action: "end the processes of the run with the lock",
        path: files.lock_path(),
        source,
    };
    let began = Instant::now();
    let mut rejoined: Option<Instant> = None;
    let limit = grace.saturating_mul(2).saturating_add(END_TIMEOUT);
    let mut told = false;
    loop {
        let passed = began.elapsed();
        match RemoteRunRecord::read(files).map_err(failed)? {
            Some(posting) if posting.is_over => return Ok(()),
            Some(_) => {}
            None => return Err(OperationError::rejected(posting_missing(files, run))),
        }
        if files.liveness().map_err(failed)? != Liveness::Held {
            // Its supervisor is about to listen, or is dead.
            told = false;
            if rejoined.is_none_or(|rejoined| rejoined.elapsed() > REJOIN_INTERVAL) {
                rejoined = Some(Instant::now());
                rejoin(root, run, files)?;
            }
        }
        if !told {
            told = ask_to_cancel(files).map_err(failed)? == AskResult::Told;
        }
        let away = unreachable(files).filter(|_| passed > REACH_TIMEOUT);
        if let Some(why) =
            away.or_else(|| (passed > limit).then(|| "it does not answer".to_owned()))
        {
            let id = &run.id;
            return Err(OperationError::rejected(format!(
                "what is left of {id} is on another machine, and that is away ({why}); it is ended as soon as that can be \
                 reached; gt run cancel {id} --force does not wait for it"
            )));
        }
        std::thread::sleep(END_POLL_INTERVAL);
    }
}

/// The advice for a run without a record of its machine.
fn posting_missing(files: &RunFiles, run: &Run) -> String {
    let id = &run.id;
    format!(
        "no record says on which machine {id} runs: {} is missing; look for its processes there (their environment has \
         GT_RUN={id}), end them, and then gt run cancel {id} --force",
        files.posting_path().display()
    )
}
