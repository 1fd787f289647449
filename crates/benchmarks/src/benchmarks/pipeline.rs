//! A thousand beads through the process executor, from scheduled to closed.

use std::fs;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rusqlite::TransactionBehavior;

use super::queue::{gt, line, rig};
use crate::BenchmarkResult;
use crate::baseline;
use crate::lab::Lab;
use crate::measure::{Arm, alternate, median};
use crate::report::ReportRow;

/// How many run at once.
const CAP: usize = 8;
/// Each run is admitted, taken by its worker, and ended.
const COMMITS_PER_RUN: u32 = 3;

/// `gt scheduler run --until-done` over beads whose command is `/bin/true`, against starting as many, eight at
/// a time, and committing as often.
pub(crate) fn run(lab: &Lab) -> BenchmarkResult<Vec<ReportRow>> {
    let beads = if lab.scale.long_rounds > 1 { 1_000 } else { 50 };
    let rounds = lab.scale.long_rounds.min(3);
    // The files of a round stay until everything is measured: a file system that has just lost
    // thousands of files is slow to make new ones, and the next round would pay for it.
    let directories = |what: &'static str| (0..).map(move |round| format!("{what}-{round}"));
    let mut towns = directories("pipeline");
    let ours: Arm<'_> = Box::new(move || through_us(lab, &towns.next().unwrap_or_default(), beads));
    let mut loops = directories("bare-loop");
    let baseline: Arm<'_> =
        Box::new(move || through_loop(lab, &loops.next().unwrap_or_default(), beads));
    let times = alternate(rounds, [ours, baseline])?;
    let name = format!(
        "pipeline: {beads} `/bin/true` beads with a cap of {CAP} through the process executor, against a \
         bare spawn loop with {COMMITS_PER_RUN} commits each"
    );
    Ok(vec![ReportRow::times(name, median(&times[0]), median(&times[1]), Some(3.0))])
}

fn through_us(lab: &Lab, name: &str, beads: u32) -> BenchmarkResult<Duration> {
    let town = lab.empty_town(name)?;
    rig(lab, &town, "web")?;
    gt(lab, &town, &["config", "set", "scheduler.max_polecats", &CAP.to_string()])?;
    gt(lab, &town, &["config", "set", "scheduler.spawn_parallelism", &CAP.to_string()])?;
    let ids: Vec<String> = (0..beads).map(|number| format!("web-{number}")).collect();
    let source = lab.path().join("pipeline.jsonl");
    fs::write(&source, ids.iter().map(|id| line(id, 2, None)).collect::<String>())?;
    lab.time(lab.bd(&town, ["import"])?.arg(&source))?;
    let mut command = lab.program("gt", &town.path)?;
    lab.time(command.arg("sling").args(&ids).args(["--no-boot", "--no-convoy"]))?;
    let mut command = lab.program("gt", &town.path)?;
    let took = lab.time(command.args(["scheduler", "run", "--until-done"]))?;
    let closed = lab.output(lab.bd(&town, ["count", "--status", "closed"])?.arg("--json"))?;
    if !closed.contains(&beads.to_string()) {
        return Err(format!("not every bead was closed: {closed}").into());
    }
    Ok(took)
}

/// The same processes and commits, by hand.
fn through_loop(lab: &Lab, name: &str, beads: u32) -> BenchmarkResult<Duration> {
    let directory = lab.path().join(name);
    fs::create_dir(&directory)?;
    let connection = Mutex::new(baseline::create(&directory.join("bare.db"))?);
    let next = AtomicU32::new(0);
    let start = Instant::now();
    let work = || -> std::result::Result<(), String> {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= beads {
                return Ok(());
            }
            let mut command = Command::new("/bin/true");
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            command.status().map_err(|error| error.to_string())?;
            for commit in 0..COMMITS_PER_RUN {
                let mut connection = connection.lock().map_err(|error| error.to_string())?;
                let transaction = connection
                    .transaction_with_behavior(TransactionBehavior::Immediate)
                    .map_err(|error| error.to_string())?;
                baseline::insert_bead(&transaction, &format!("b{number}-{commit}"), 1)
                    .map_err(|error| error.to_string())?;
                transaction.commit().map_err(|error| error.to_string())?;
            }
        }
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..CAP).map(|_| scope.spawn(work)).collect();
        for thread in threads {
            thread.join().map_err(|_| "a thread of the loop panicked".to_owned())??;
        }
        Ok::<(), String>(())
    })?;
    Ok(start.elapsed())
}
