//! One item, from its beginning to its result.

use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use gt_api::{WorkItemDocument, to_json};
use gt_core::work::{RunRef, WorkStatus};
use gt_core::{Outcome, RunState, Timestamp, Uid};
use gt_executors::runs::{ATTEND, AgentEnd, BoundCommand, CommandOrder, ProcessMark};
use gt_executors::terminal::Launcher;

use super::news::{PollEnd, PollNews, failure};
use super::notes::{noted, tail};
use super::{HeldItem, Poller};
use crate::work::client::WorkClient;
use crate::work::error::{WorkError, WorkResult};
use crate::work::requests::{Heartbeat, ItemChange, ItemDetails, Precondition};
use gt_town::OperationError;

/// The longest item that is in the environment of a command, in bytes; systems allow no more than 128 KiB there. All of it
/// is always in its input.
const VARIABLE_BYTES_MAX: usize = 100_000;

/// The variable that names the run of an item to its command. No other process has that value.
const RUN_VARIABLE: &str = "GT_RUN_ID";

/// Has the command do an item, and reports the result to the queue.
pub(super) fn carry_out(poller: &mut Poller<'_>, held: &HeldItem) -> WorkResult<PollEnd> {
    if let Err(error) = end_earlier_commands(poller, held) {
        let _ = poller.give_back(held);
        return Err(error);
    }
    let begun = begin(poller, held);
    let (mut command, path) = match begun {
        Ok(begun) => begun,
        Err(error) => {
            // If that cannot be said, the lease ends it.
            let _ = poller.give_back(held);
            return Err(error.into());
        }
    };
    (poller.tell)(&PollNews::Began { item: &held.item, output: &path });
    match watch(poller, held, &mut command) {
        CommandResult::Ended(end) => report(poller, held, end, &path),
        CommandResult::Stopped => {
            command.end();
            poller.give_back(held)?;
            Ok(PollEnd::GivenBack)
        }
        CommandResult::Lost(why) => {
            command.end();
            Ok(PollEnd::Lost(why))
        }
        CommandResult::Refused(error) => {
            command.end();
            Err(error)
        }
    }
}

/// Ends what earlier runs of an item have left at work on this machine: a poller may have been killed together with the
/// attendant of its command.
fn end_earlier_commands(poller: &mut Poller<'_>, held: &HeldItem) -> WorkResult<()> {
    let reference = held.reference();
    let details = poller.retry_while_unreachable(|door| door.item(&reference))?;
    let runs = details.dispatch_log.iter().map(|attempt| attempt.uid);
    for run in runs.filter(|run| *run != held.run || held.is_adopted) {
        let value = run.to_string();
        if !(ProcessMark { name: RUN_VARIABLE, value: &value }).end_all(poller.polling.grace) {
            return Err(OperationError::rejected(format!(
                "the command of an earlier run of {} is still at work on this machine and does not end: its processes \
                 have {RUN_VARIABLE}={run} in their environment",
                held.item.bead
            ))
            .into());
        }
    }
    Ok(())
}

fn begin(poller: &Poller<'_>, held: &HeldItem) -> Result<(BoundCommand, PathBuf), OperationError> {
    let polling = poller.polling;
    let (item, run) = (&held.item, held.run);
    let path = polling.output.join(format!("{}-{run}.log", item.bead));
    let failed =
        |source| OperationError::File { action: "keep output in", path: path.clone(), source };
    let output =
        gt_executors::private::options().append(true).create(true).open(&path).map_err(failed)?;
    let id = item.uid.to_string();
    let argv: Vec<String> = polling.command.iter().map(|word| word.replace("{}", &id)).collect();
    let json = to_json(&WorkItemDocument::from(item));
    let mut environment = vec![
        ("GT_WORK_ID", id),
        ("GT_WORK_BEAD", item.bead.to_string()),
        ("GT_WORK_TYPE", item.kind.to_string()),
        ("GT_WORK_AGENT", polling.request.agent.clone()),
        (RUN_VARIABLE, run.to_string()),
    ];
    if json.len() <= VARIABLE_BYTES_MAX {
        environment.push(("GT_WORK_ITEM", json.clone()));
    }
    if let WorkClient::Remote(remote) = poller.door {
        environment.push(("GT_WORK_URL", remote.address().to_string()));
        environment.extend(remote.token().map(|token| ("GT_WORK_TOKEN", token.reveal())));
    }
    let input = format!("{json}\n");
    let program = std::env::current_exe().map_err(|source| OperationError::File {
        action: "find",
        path: PathBuf::from("this program"),
        source,
    })?;
    let command = BoundCommand::start(CommandOrder {
        attendant: &Launcher { program, arguments: vec![ATTEND.into()] },
        argv: &argv,
        directory: &polling.directory,
        environment: &environment,
        without: &[],
        input: input.as_bytes(),
        output,
        grace: polling.grace,
        time_left: time_left(poller, item.lease_expires_at),
        mark: None,
    })?;
    Ok((command, path))
}

/// The result of watching a command.
enum CommandResult {
    /// It ended by itself.
    Ended(AgentEnd),
    /// We were asked to stop.
    Stopped,
    /// Its item is not ours any more: why.
    Lost(String),
    /// The queue refuses the heartbeat.
    Refused(WorkError),
}

/// Waits for a command, and sends heartbeats for its item meanwhile.
fn watch(poller: &mut Poller<'_>, held: &HeldItem, command: &mut BoundCommand) -> CommandResult {
    let interval = Duration::from_secs(poller.polling.request.lease.seconds().unsigned_abs()) / 3;
    let mut beat_at = Instant::now() + first_beat(poller, held, interval);
    loop {
        if poller.backoff.is_over() {
            return CommandResult::Stopped;
        }
        let left = beat_at.saturating_duration_since(Instant::now());
        let signals = poller.backoff.signals().as_fd();
        if let Some(end) = command.wait(signals, left) {
            return CommandResult::Ended(end);
        }
        if Instant::now() < beat_at {
            continue;
        }
        let run = RunRef::Uid(held.run);
        let beat = Heartbeat { run, lease: Some(poller.polling.request.lease), adopts: false };
        let pause = match poller.door.heartbeat(&held.reference(), beat) {
            Ok(until) => {
                poller.is_back();
                command.has_time(time_left(poller, Some(until)));
                interval
            }
            Err(error) if error.may_pass() => {
                if poller.backoff.failed() {
                    (poller.tell)(&PollNews::Away(&gt_town::with_causes(&error)));
                }
                poller.backoff.next_pause(&poller.polling.request.agent).min(interval)
            }
            Err(error) => match error.code() {
                // The command has reported that it waits for something; then the run needs no heartbeat.
                Some("not-in-progress") => interval,
                Some("stale-run" | "not-found") => {
                    let details = poller.door.item(&held.reference()).ok();
                    // One that has reported its end may still have something to tidy up.
                    if details.and_then(|details| reported(&details, held.run)).is_none() {
                        return CommandResult::Lost(error.to_string());
                    }
                    interval
                }
                _ => return CommandResult::Refused(error),
            },
        };
        beat_at = Instant::now() + pause;
    }
}

/// The time to the first heartbeat. A fresh lease needs none yet; a lease whose answer came late needs one sooner.
fn first_beat(poller: &Poller<'_>, held: &HeldItem, interval: Duration) -> Duration {
    interval.min(time_left(poller, held.item.lease_expires_at) / 3)
}

/// How long no other poller can get an item, if its lease ends then.
fn time_left(poller: &Poller<'_>, lease_expires_at: Option<Timestamp>) -> Duration {
    let lease = Duration::from_secs(poller.polling.request.lease.seconds().unsigned_abs());
    lease_expires_at.map_or(lease, |until| until.since(poller.now())).min(lease)
}

/// How the run of a command ended that has said so itself.
fn reported(details: &ItemDetails, run: Uid) -> Option<WorkStatus> {
    let ours = details.dispatch_log.iter().find(|attempt| attempt.uid == run)?;
    match ours.state {
        RunState::Done => Some(WorkStatus::Completed),
        RunState::Failed => Some(WorkStatus::Failed),
        RunState::Blocked => Some(WorkStatus::Blocked),
        RunState::Starting | RunState::Running | RunState::Lost | RunState::Cancelled => None,
    }
}

/// Tells the queue how a command ended.
fn report(
    poller: &mut Poller<'_>,
    held: &HeldItem,
    end: AgentEnd,
    output: &Path,
) -> WorkResult<PollEnd> {
    let reference = held.reference();
    let failure = failure(end);
    let (status, outcome) = match failure {
        None => (WorkStatus::Completed, Outcome::Success),
        Some(_) => (WorkStatus::Failed, Outcome::Failed),
    };
    let now = poller.retry_while_unreachable(|door| door.item(&reference));
    let details = match now {
        Ok(details) => details,
        Err(error) if error.code() == Some("not-found") => {
            return Ok(PollEnd::Lost(error.to_string()));
        }
        Err(error) => return Err(unreported(&error, failure.as_deref(), output)),
    };
    if let Some(said) = reported(&details, held.run) {
        return Ok(PollEnd::Reported(said));
    }
    if details.item.run != Some(held.run) {
        return Ok(PollEnd::Lost("it is not the agent's any more".to_owned()));
    }
    let change = ItemChange {
        status: Some(status),
        outcome: Some(outcome),
        notes: noted(&details.item.notes, failure.as_deref(), &tail(output)),
        precondition: Precondition { run: Some(RunRef::Uid(held.run)), version: None },
        ..ItemChange::default()
    };
    match poller.retry_while_unreachable(|door| door.change(&reference, change.clone())) {
        Ok(_) => {}
        Err(error) if error.code() == Some("stale-run") => {
            // An answer may have been lost: then it is as we said.
            let now = poller.retry_while_unreachable(|door| door.item(&reference))?;
            if reported(&now, held.run) != Some(status) {
                return Ok(PollEnd::Lost(error.to_string()));
            }
        }
        Err(error) => return Err(unreported(&error, failure.as_deref(), output)),
    }
    Ok(failure.map_or(PollEnd::Completed, PollEnd::Failed))
}

/// The queue could not be told the result, so the error tells the user.
fn unreported(error: &WorkError, failure: Option<&str>, output: &Path) -> WorkError {
    let came = failure.unwrap_or("the command ended well");
    let (output, why) = (output.display(), gt_town::with_causes(error));
    OperationError::rejected(format!(
        "{came}, and the queue could not be told: {why}; the output is in {output}, and the item is queued again when \
         its lease has ended"
    ))
    .into()
}
