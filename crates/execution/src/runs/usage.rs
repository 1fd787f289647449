//! The usage of a run, recorded when its worker has ended.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};

use gt_core::decide::learn_memory;
use gt_core::runtime::Runtime;
use gt_core::schedule::{ParkSubject, Run, Usage};
use gt_store::MemoryEstimate;

use gt_scheduling::run_transitions::SESSION_SEPARATOR;
use gt_scheduling::run_transitions::log_path;
use gt_town::{Result, Town};

/// How much of the end of a log is searched for the usage that agents report.
const LAST_BYTES: u64 = 1 << 20;

/// The usage of a run: as measured, and as its agents reported it.
pub(super) fn usage_of(
    town: &Town,
    run: &Run,
    runtime: &Runtime,
    peak_memory_mb: Option<u32>,
) -> Usage {
    let said = if runtime.usage.is_empty() {
        Usage::default()
    } else {
        let log = end_of_log(town, run).unwrap_or_default();
        runtime.usage.of_sessions(log.split(SESSION_SEPARATOR))
    };
    Usage { peak_memory_mb, ..said }
}

fn end_of_log(town: &Town, run: &Run) -> std::io::Result<String> {
    let mut log = File::open(log_path(town, &run.id))?;
    let length = log.metadata()?.len();
    log.seek(SeekFrom::Start(length.saturating_sub(LAST_BYTES)))?;
    let mut words = Vec::new();
    log.read_to_end(&mut words)?;
    Ok(String::from_utf8_lossy(&words).into_owned())
}

/// Records the usage of a run, and the estimate for the next ones. The run may have ended already: an agent reports
/// success before it ends.
pub fn note_usage(town: &Town, run: &Run, usage: &Usage) -> Result<()> {
    if usage.is_unknown() {
        return Ok(());
    }
    town.write(|writer| {
        writer.note_usage(run, usage)?;
        let Some(peak_mb) = usage.peak_memory_mb else { return Ok(()) };
        let name = ParkSubject::runtime(&run.runtime, &run.rig).name;
        let known = writer.estimates()?.into_iter().find(|estimate| estimate.name == name);
        let runs = known.as_ref().map_or(0, |known| known.runs).saturating_add(1);
        let memory_mb = learn_memory(known.map(|known| known.memory_mb), peak_mb);
        Ok(writer.put_estimate(&MemoryEstimate { name, memory_mb, runs })?)
    })
}
