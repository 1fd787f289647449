//! Sixteen commands at once beside a writer that never rests.

use std::io::Read;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use gt_core::Clock;
use gt_store::{Options, Store, StoreError};
use gt_town::SystemClock;

use super::grouped::create;
use crate::BenchmarkResult;
use crate::baseline::TITLE;
use crate::lab::{BenchmarkTown, Lab};
use crate::measure::percentile;
use crate::report::ReportRow;

const PROCESSES: usize = 16;
const SATURATING_THREADS: u32 = 64;

/// How long each of sixteen `bd create` takes, with and without a saturated writer. Both alternate in
/// the same town.
pub(crate) fn run(lab: &Lab) -> BenchmarkResult<Vec<ReportRow>> {
    let town = lab.filled_town("contention", lab.scale.small)?;
    let (mut idle, mut busy) = (Vec::new(), Vec::new());
    for _ in 0..lab.scale.bursts {
        idle.extend(burst(lab, &town)?);
        let writer = SaturatingWriter::start(lab, &town)?;
        let during = burst(lab, &town);
        writer.stop()?;
        busy.extend(during?);
    }
    idle.sort();
    busy.sort();
    let row = |name: &str, percent, most| {
        ReportRow::times(
            format!(
                "contention: {PROCESSES} `bd create` at once beside a saturated writer, {name}"
            ),
            percentile(&busy, percent),
            percentile(&idle, percent),
            most,
        )
    };
    Ok(vec![row("p50", 50, None), row("p99", 99, Some(10.0))])
}

fn burst(lab: &Lab, town: &BenchmarkTown) -> BenchmarkResult<Vec<Duration>> {
    let commands = (0..PROCESSES)
        .map(|_| lab.bd(town, ["create", TITLE, "--silent"]))
        .collect::<BenchmarkResult<Vec<_>>>()?;
    let mut times = Vec::new();
    thread::scope(|scope| {
        let threads: Vec<_> = commands
            .into_iter()
            .map(|mut command| {
                scope.spawn(move || {
                    let start = std::time::Instant::now();
                    let status = command.status();
                    (start.elapsed(), status)
                })
            })
            .collect();
        for thread in threads {
            let (took, status) = thread.join().map_err(|_| "a thread died")?;
            if !status?.success() {
                return Err("a bd create failed beside the others".into());
            }
            times.push(took);
        }
        Ok(times)
    })
}

/// A process that writes all the time.
struct SaturatingWriter(Child);

impl SaturatingWriter {
    fn start(lab: &Lab, town: &BenchmarkTown) -> BenchmarkResult<Self> {
        let mut part = lab.part("saturate")?;
        part.arg(town.database());
        let child = part.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut writer = Self(child);
        // It says one byte once it is busy.
        let mut ready = [0];
        let output = writer.0.stdout.as_mut().ok_or("no output")?;
        output.read_exact(&mut ready)?;
        Ok(writer)
    }

    fn stop(mut self) -> BenchmarkResult<()> {
        drop(self.0.stdin.take());
        if self.0.wait()?.success() { Ok(()) } else { Err("the saturating writer failed".into()) }
    }
}

impl Drop for SaturatingWriter {
    fn drop(&mut self) {
        // After `stop` the process has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The whole of `gt-benchmarks saturate`: many threads create beads until standard input ends,
/// which it also does if the parent process dies.
pub(crate) fn saturate(path: &Path) -> BenchmarkResult<()> {
    let store = Store::open(&path.into(), SystemClock.now(), Options::default())?;
    let (stop, number) = (AtomicBool::new(false), AtomicU32::new(0));
    thread::scope(|scope| {
        let threads: Vec<_> = (0..SATURATING_THREADS)
            .map(|_| {
                scope.spawn(|| {
                    while !stop.load(Ordering::Relaxed) {
                        create(&store, number.fetch_add(1, Ordering::Relaxed))?;
                    }
                    Ok::<(), StoreError>(())
                })
            })
            .collect();
        // A few groups, so that it is busy when it says so.
        while number.load(Ordering::Relaxed) < 10 * SATURATING_THREADS
            && threads.iter().any(|thread| !thread.is_finished())
        {
            thread::sleep(Duration::from_millis(1));
        }
        println!(".");
        let ended = std::io::stdin().read_to_end(&mut Vec::new());
        stop.store(true, Ordering::Relaxed);
        for thread in threads {
            thread.join().map_err(|_| "a thread died")??;
        }
        ended?;
        Ok(())
    })
}
