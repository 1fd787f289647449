//! The usage of a run: what its agents say, and what that costs.

use std::io::{Read as _, Seek as _, SeekFrom};
use std::time::Duration;

use gt_core::Timestamp;
use gt_core::cost::{TokenCounts, UsageRecord, UsageSource, book, totals};
use gt_core::decide::learn_memory;
use gt_core::runtime::{Runtime, SessionUsage};
use gt_core::schedule::{Money, ParkSubject, Run, Usage};
use gt_core::settings::Layers;
use gt_store::{MemoryEstimate, Writer};
use gt_transcripts::{ModelUsage, TranscriptEvent, TranscriptKind, UsageScope};

use super::transcript::{RunTranscript, has_plain_output};
use gt_scheduling::dispatch::warn_of_nearly_spent;
use gt_scheduling::run_transitions::SESSION_SEPARATOR;
use gt_scheduling::run_transitions::{log_path, open_output};
use gt_scheduling::runtimes;
use gt_town::settings::{file_layers, layers_over};
use gt_town::{Result, Town};

/// How much of the end of a log is searched for the usage that agents report.
const LAST_BYTES: u64 = 1 << 20;
/// Changes within this time are added up, so that a run leaves few rows.
const SPENDING_INTERVAL: Duration = Duration::from_mins(1);

/// The usage in the output of a run.
pub(super) fn usage_in_output(town: &Town, run: &Run, runtime: &Runtime) -> Vec<UsageRecord> {
    // Events tell more than patterns. A log that cannot be read tells nothing.
    let records = usage_in_events(town, run).unwrap_or_default();
    if !records.is_empty() || runtime.usage.is_empty() {
        return records;
    }
    let log = end_of_log(town, run).unwrap_or_default();
    sessions_of(&log)
        .filter_map(|(session, output)| record_of(session, runtime.usage.of_session(output)))
        .collect()
}

/// The usage in the events of a run.
fn usage_in_events(town: &Town, run: &Run) -> Result<Vec<UsageRecord>> {
    let mut sums = OutputSums { session: 1, records: Vec::new() };
    if has_plain_output(town, run) {
        return Ok(sums.records);
    }
    let mut transcript = RunTranscript::of(town, run)?;
    while let Some(events) = transcript.read()? {
        sums.add(events);
    }
    sums.add(transcript.finish());
    Ok(sums.records)
}

/// The number of the session that begins with this line of ours.
pub(super) fn session_begun(line: &str) -> Option<u32> {
    line.strip_prefix(SESSION_SEPARATOR)?.split(' ').next()?.parse().ok()
}

/// The sum of the events so far.
struct OutputSums {
    session: u32,
    records: Vec<UsageRecord>,
}

impl OutputSums {
    fn add(&mut self, events: Vec<TranscriptEvent>) {
        for event in events {
            match event.kind {
                TranscriptKind::Text(text) => {
                    self.session = session_begun(&text).unwrap_or(self.session);
                }
                TranscriptKind::Usage(usage) => self.count(&usage),
                _ => {}
            }
        }
    }

    fn count(&mut self, usage: &ModelUsage) {
        let mut record = output_record(self.session, usage);
        let place = self.records.iter().position(|known| known.is_same_counter(&record));
        let Some(known) = place.map(|place| &mut self.records[place]) else {
            return self.records.push(record);
        };
        match usage.scope {
            UsageScope::Request => {
                record.tokens = record.tokens.plus(known.tokens);
                record.reported = Money::sum(record.reported.into_iter().chain(known.reported));
            }
            // The last report of a session that fails may say nothing.
            UsageScope::Session => {
                record.tokens = record.tokens.max(known.tokens);
                record.reported = record.reported.max(known.reported);
            }
        }
        *known = record;
    }
}

/// The record of what the output of a session says about a model.
pub(super) fn output_record(session: u32, usage: &ModelUsage) -> UsageRecord {
    UsageRecord {
        session,
        model: usage.model.clone(),
        source: UsageSource::Output,
        tokens: TokenCounts {
            input: usage.input,
            output: usage.output,
            cache_read: usage.cache_read,
            cache_write: usage.cache_write,
            reasoning: usage.reasoning,
        },
        reported: usage.cost,
        priced: None,
    }
}

fn record_of(session: u32, said: SessionUsage) -> Option<UsageRecord> {
    if said == SessionUsage::default() {
        return None;
    }
    Some(UsageRecord {
        session,
        model: String::new(),
        source: UsageSource::Output,
        tokens: TokenCounts { input: said.tokens.unwrap_or(0), ..TokenCounts::default() },
        reported: said.cost,
        priced: None,
    })
}

/// The sessions in a log with their numbers. Each but the first begins with a line of ours that has its number.
fn sessions_of(log: &str) -> impl Iterator<Item = (u32, &str)> {
    let mut last = 1;
    log.split(SESSION_SEPARATOR).enumerate().map(move |(place, output)| {
        let number = output.split(' ').next().and_then(|number| number.parse().ok());
        if place > 0 {
            last = number.unwrap_or(last + 1);
        }
        (last, output)
    })
}

fn end_of_log(town: &Town, run: &Run) -> std::io::Result<String> {
    let mut log = open_output(&log_path(town, &run.id))?;
    let length = log.metadata()?.len();
    log.seek(SeekFrom::Start(length.saturating_sub(LAST_BYTES)))?;
    let mut words = Vec::new();
    log.read_to_end(&mut words)?;
    Ok(String::from_utf8_lossy(&words).into_owned())
}

/// Records the usage of a run that has ended, and the memory estimate for the next ones. The run may have ended already: an
/// agent reports success before it ends.
pub(super) fn note_usage(
    town: &Town,
    run: &Run,
    report: &[UsageRecord],
    problems: &[String],
    peak_memory_mb: Option<u32>,
) -> Result<()> {
    let files = file_layers(town)?;
    town.write(|writer| {
        let layers = layers_over(&files, writer)?;
        let (usage, left_out) = book_in(writer, run, report.to_vec(), &layers)?;
        let usage = Usage { peak_memory_mb, ..usage };
        let mut notes = problems.to_vec();
        if left_out > 0 {
            notes.push(format!("{left_out} reports had numbers that no session can have"));
        }
        let held_reserve = writer.finalize_usage(&run.id)?;
        if usage.is_unknown() && notes.is_empty() && !held_reserve {
            return Ok(());
        }
        writer.note_usage(run, &usage, notes)?;
        peak_memory_mb.map_or(Ok(()), |peak_mb| learn_in(writer, run, peak_mb))
    })
}

/// Records the usage of a run that has ended, and whose supervisor died before it could: as far as its output tells.
pub(super) fn record_left_usage(town: &Town, run: &Run) -> Result<()> {
    let runtime = runtimes::named(town, &run.runtime).ok();
    let usage = runtime.map(|runtime| usage_in_output(town, run, &runtime)).unwrap_or_default();
    note_usage(town, run, &usage, &[], None)
}

/// Records the usage of a run that goes on; all of it so far.
pub fn book_live_usage(town: &Town, run: &Run, report: &[UsageRecord]) -> Result<Usage> {
    let files = file_layers(town)?;
    town.write(|writer| {
        let layers = layers_over(&files, writer)?;
        let (usage, _) = book_in(writer, run, report.to_vec(), &layers)?;
        writer.set_run_usage(&run.id, &usage)?;
        Ok(usage)
    })
}

/// Takes a report about a run into account; the usage of the run so far, and how many reports were left out.
fn book_in(
    writer: &mut Writer<'_>,
    run: &Run,
    report: Vec<UsageRecord>,
    layers: &Layers,
) -> Result<(Usage, usize)> {
    let known = writer.usage_records(&run.id)?;
    let (booking, left_out) = book(&known, report, &layers.cost_prices()?);
    for record in &booking.records {
        writer.keep_usage_record(&run.id, record)?;
    }
    let at = rounded(writer.now());
    for change in &booking.changes {
        writer.add_spending(run, at, change)?;
    }
    if !booking.changes.is_empty() {
        warn_of_nearly_spent(writer, layers, &run.id.bead)?;
    }
    let totals = totals(&booking.counted);
    let tokens = Some(totals.tokens.total()).filter(|tokens| *tokens > 0);
    Ok((Usage { peak_memory_mb: None, tokens, cost: totals.cost }, left_out))
}

fn rounded(at: Timestamp) -> Timestamp {
    let interval = i64::try_from(SPENDING_INTERVAL.as_nanos()).unwrap_or(i64::MAX);
    Timestamp::from_nanos(at.as_nanos() - at.as_nanos().rem_euclid(interval))
}

fn learn_in(writer: &mut Writer<'_>, run: &Run, peak_mb: u32) -> Result<()> {
    let name = ParkSubject::runtime(&run.runtime, &run.rig).name;
    let known = writer.estimates()?.into_iter().find(|estimate| estimate.name == name);
    let runs = known.as_ref().map_or(0, |known| known.runs).saturating_add(1);
    let memory_mb = learn_memory(known.map(|known| known.memory_mb), peak_mb);
    Ok(writer.put_estimate(&MemoryEstimate { name, memory_mb, runs })?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_of_a_session_are_added_up_and_its_totals_only_grow() {
        let usage = |scope, input| {
            let usage = ModelUsage { input, scope, ..ModelUsage::default() };
            TranscriptEvent { at: None, kind: TranscriptKind::Usage(usage) }
        };
        let next = TranscriptKind::Text(format!("{SESSION_SEPARATOR}2 of gt-a#1 begins"));
        let next = TranscriptEvent { at: None, kind: next };
        let mut sums = OutputSums { session: 1, records: Vec::new() };
        sums.add(vec![
            usage(UsageScope::Request, 5),
            usage(UsageScope::Request, 6),
            next,
            usage(UsageScope::Session, 7),
            usage(UsageScope::Session, 9),
            usage(UsageScope::Session, 0),
        ]);
        let counted: Vec<(u32, u64)> =
            sums.records.iter().map(|record| (record.session, record.tokens.input)).collect();
        assert_eq!(counted, [(1, 11), (2, 9)]);
    }

    #[test]
    fn the_sessions_of_a_log_have_their_numbers() {
        let log =
            format!("a\n{SESSION_SEPARATOR}2 of gt-a#1 begins\nb\n{SESSION_SEPARATOR}5 of\nc");
        let numbers: Vec<u32> = sessions_of(&log).map(|(number, _)| number).collect();
        assert_eq!(numbers, [1, 2, 5]);
    }
}
