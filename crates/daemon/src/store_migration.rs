//! Moving a town at rest to another store.

use gt_core::schedule::Run;
use gt_store::{OnCopyProgress, Reader};
use gt_town::hosts::{other_hosts_at_work, pin_rigs};
use gt_town::{Environment, OperationError, Result, StoreMove, Town, move_store};

use crate::daemon;

/// How many runs are named in a refusal.
const RUNS_NAMED_MAX: usize = 5;

/// Moves the town to the store at `to`. It is refused while the daemon, a worker or another host uses the former store:
/// they would go on with a store that the town has left.
pub fn migrate(
    town: &Town,
    to: &str,
    environment: &Environment,
    progress: OnCopyProgress<'_>,
) -> Result<StoreMove> {
    if !town.has_directory() {
        return Err(OperationError::rejected(
            "this town has no directory that could name its store; copy the database with its own tools, and change \
             DATABASE_URL",
        ));
    }
    if daemon::is_running(town) {
        return Err(OperationError::rejected(
            "the daemon of this town is running; stop it with gt down, and start it with gt up after the move",
        ));
    }
    refuse_other_hosts(town)?;
    if to.trim().starts_with("postgres") {
        pin_rigs(town)?;
    }
    move_store(town, to, environment, refuse_live_runs, progress)
}

fn refuse_other_hosts(town: &Town) -> Result<()> {
    let others = other_hosts_at_work(town)?;
    let Some(other) = others.first() else { return Ok(()) };
    Err(OperationError::rejected(format!(
        "{} of this town is at work in {}; stop it there with gt down, and wait a minute",
        other.name, other.path
    )))
}

/// Asked under the lock of the former store, so that no run starts after it. Runs without a process of ours (pull agents,
/// people) go on over the move.
fn refuse_live_runs(reader: &Reader<'_>) -> Result<()> {
    let mut live = reader.live_runs()?;
    live.retain(|run| run.executor.takes_slot());
    if live.is_empty() {
        return Ok(());
    }
    let name = |run: &Run| run.id.to_string();
    let mut names: Vec<String> = live.iter().take(RUNS_NAMED_MAX).map(name).collect();
    if live.len() > RUNS_NAMED_MAX {
        names.push("…".to_owned());
    }
    let are_live = match live.len() {
        1 => "one run of this town is live".to_owned(),
        count => format!("{count} runs of this town are live"),
    };
    Err(OperationError::rejected(format!(
        "{are_live} ({}); wait for the end with gt scheduler drain, and let work start again with gt scheduler resume \
         after the move",
        names.join(", ")
    )))
}
