//! Runs as lists show them.

use std::collections::HashMap;

use gt_api::{ListDocument, RunRowDocument, RunStepDocument, UtcTime};
use gt_core::cost::Spent;
use gt_core::schedule::{Money, Run, RunId};
use gt_core::{BeadId, RigSlug, Timestamp};
use gt_store::{Reader, RunPage};
use gt_transcripts::{TranscriptEvent, TranscriptKind};

use gt_beads::run_records::resolve_run;
use gt_beads::steps::steps_in;
use gt_execution::runs::{RunTranscript, has_plain_output};
use gt_town::{OperationError, Result, Town};

/// How many lines of the output of a live run are searched for its last call of a tool.
const TOOL_LINES: usize = 20;
/// How many lines of the output of a run are searched for the last words of its agent.
const WORDS_LINES: usize = 100;
/// The longest text that is taken from an output, in characters.
const TEXT_CHARS_MAX: usize = 400;

/// A page of runs.
#[derive(Debug, Clone, Default)]
pub struct RunRowsRequest {
    /// Only those that are live, or only those that have ended.
    pub live: Option<bool>,
    /// Only those of this rig.
    pub rig: Option<RigSlug>,
    /// Only those of this bead, which are all on one page.
    pub bead: Option<String>,
    /// Where the page begins.
    pub cursor: Option<String>,
    /// The most runs of a page.
    pub limit: usize,
}

/// A page of runs, the newest first.
pub fn run_rows(town: &Town, request: &RunRowsRequest) -> Result<ListDocument<RunRowDocument>> {
    let after = request.cursor.as_deref().map(read_cursor).transpose()?;
    let (runs, total, next) = town.read(|reader| {
        if let Some(bead) = &request.bead {
            let mut runs = reader.runs_of(&gt_beads::lookup::resolve_in(town, reader, bead)?)?;
            runs.retain(|run| request.live.is_none_or(|live| run.state.is_live() == live));
            let total = runs.len() as u64;
            runs.truncate(request.limit);
            return Ok((runs, total, None));
        }
        let page = RunPage {
            live: request.live,
            rig: request.rig.clone(),
            after,
            limit: request.limit.saturating_add(1),
        };
        let mut runs = reader.runs_page(&page)?;
        let is_more = runs.len() > request.limit;
        runs.truncate(request.limit);
        let next = runs.last().filter(|_| is_more).map(cursor);
        Ok((runs, reader.count_runs(&page)?, next))
    })?;
    Ok(ListDocument { items: rows_of(town, &runs)?, total, next })
}

/// One run, with the last words of its agent.
pub fn run_row(town: &Town, input: &str) -> Result<RunRowDocument> {
    let run = town.read(|reader| resolve_run(town, reader, input))?;
    let mut rows = rows_of(town, std::slice::from_ref(&run))?;
    let mut row = rows.pop().ok_or_else(|| OperationError::rejected("there is no such run"))?;
    row.last_words = last_words(town, &run);
    Ok(row)
}

/// These runs as lists show them.
pub(crate) fn rows_of(town: &Town, runs: &[Run]) -> Result<Vec<RunRowDocument>> {
    let mut rows = town.read(|reader| {
        let mut beads: Vec<BeadId> = runs.iter().map(|run| run.id.bead.clone()).collect();
        beads.sort_unstable();
        beads.dedup();
        let titles = reader.member_rows(&beads)?.into_iter();
        let titles: HashMap<BeadId, String> =
            titles.map(|row| (row.id, row.title.to_string())).collect();
        let spent = reader.spent_by_runs_of(&beads)?;
        let row = |run: &Run| {
            let title = titles.get(&run.id.bead).cloned().unwrap_or_default();
            Ok(row(run, title, spent.get(&run.id), step(reader, run)?))
        };
        runs.iter().map(row).collect::<Result<Vec<_>>>()
    })?;
    // Files are read after the transaction, so that it stays short.
    for (row, run) in rows.iter_mut().zip(runs).filter(|(_, run)| run.state.is_live()) {
        row.last_tool = last_tool(town, run);
    }
    Ok(rows)
}

fn step(reader: &Reader<'_>, run: &Run) -> Result<Option<RunStepDocument>> {
    if run.formula.is_empty() {
        return Ok(None);
    }
    let steps = steps_in(reader, run.clone())?;
    let progress = steps.progress;
    Ok((progress.total > 0).then(|| RunStepDocument {
        done: progress.done as u64,
        total: progress.total as u64,
        title: steps.next().map(|view| view.step.title.clone()),
    }))
}

fn row(
    run: &Run,
    title: String,
    spent: Option<&(Spent, Money)>,
    step: Option<RunStepDocument>,
) -> RunRowDocument {
    let source = spent.and_then(|(spent, priced)| cost_source(spent, *priced));
    RunRowDocument {
        id: run.id.to_string(),
        bead: run.id.bead.to_string(),
        title,
        rig: run.rig.to_string(),
        agent: run.agent.clone(),
        runtime: run.runtime.clone(),
        account: run.account.clone(),
        host: run.host_name().to_owned(),
        executor: run.executor.as_str().to_owned(),
        state: run.state.as_str().to_owned(),
        step,
        last_tool: None,
        last_words: None,
        tokens: run.usage.tokens,
        cost: run.usage.cost.map(|cost| cost.to_string()),
        cost_source: source.map(str::to_owned),
        started_at: run.created_at.into(),
        running_at: run.running_at.map(UtcTime),
        ended_at: run.ended_at.map(UtcTime),
        silent_since: run.silent_since.map(UtcTime),
        reason: run.explanation(),
        branch: run.workplace.branch.clone(),
        session: run.workplace.session.clone(),
    }
}

/// Where the cost of a run comes from, in a word that programs can rely on.
fn cost_source(spent: &Spent, priced: Money) -> Option<&'static str> {
    match (spent.cost, priced) {
        (Money(0), _) if spent.unpriced > 0 => Some("unpriced"),
        (Money(0), _) if spent.tokens == 0 => None,
        (_, Money(0)) => Some("reported"),
        (cost, priced) if cost == priced => Some("priced"),
        _ => Some("mixed"),
    }
}

/// The last call of a tool, on one line; nothing if there is none, or if this machine does not have the output.
fn last_tool(town: &Town, run: &Run) -> Option<String> {
    let called = end_of_transcript(town, run, TOOL_LINES)?.into_iter().rev();
    let called = called.filter_map(|event| match event.kind {
        TranscriptKind::ToolCall(call) => Some(format!("{} {}", call.tool, call.about)),
        _ => None,
    });
    called.map(|text| shortened(&text)).next()
}

fn last_words(town: &Town, run: &Run) -> Option<String> {
    let said = end_of_transcript(town, run, WORDS_LINES)?.into_iter().rev();
    let said = said.filter_map(|event| match event.kind {
        TranscriptKind::Text(text)
        | TranscriptKind::Limit { text, .. }
        | TranscriptKind::Error(text)
        | TranscriptKind::Result { text, .. } => Some(text),
        _ => None,
    });
    said.map(|text| shortened(&text)).find(|text| !text.is_empty())
}

/// The last events of a run whose output is not plain text, as far as this machine has it.
fn end_of_transcript(town: &Town, run: &Run, lines: usize) -> Option<Vec<TranscriptEvent>> {
    if has_plain_output(town, run) {
        return None;
    }
    let mut transcript = RunTranscript::of(town, run).ok()?;
    transcript.skip_to_last(lines).ok()?;
    let mut events = Vec::new();
    while let Some(read) = transcript.read().ok()? {
        events.extend(read);
    }
    events.extend(transcript.finish());
    Some(events)
}

fn shortened(text: &str) -> String {
    let mut words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((end, _)) = words.char_indices().nth(TEXT_CHARS_MAX) {
        words.truncate(end);
        words.push('…');
    }
    words
}

/// The place of a run in the list of all runs.
fn cursor(run: &Run) -> String {
    format!("{}.{}", run.created_at.as_nanos(), run.id)
}

fn read_cursor(text: &str) -> Result<(Timestamp, RunId)> {
    let read = text.split_once('.').and_then(|(at, run)| {
        Some((Timestamp::from_nanos(at.parse().ok()?), RunId::parse(run).ok()?))
    });
    read.ok_or_else(|| {
        gt_core::Invalid::new("this is no cursor: take the one that the page before names as next")
            .into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_names_the_place_of_a_run() {
        let (at, id) = (Timestamp::from_nanos(17), RunId::parse("gt-abc.1#3").unwrap());
        assert_eq!(read_cursor("17.gt-abc.1#3").unwrap(), (at, id));
        assert!(read_cursor("17").is_err() && read_cursor("x.gt-a#1").is_err());
    }

    #[test]
    fn the_source_of_a_cost_is_a_word() {
        let spent = |tokens, cost, unpriced| Spent { tokens, cost: Money(cost), unpriced };
        assert_eq!(cost_source(&spent(0, 0, 0), Money(0)), None);
        assert_eq!(cost_source(&spent(5, 0, 5), Money(0)), Some("unpriced"));
        assert_eq!(cost_source(&spent(5, 7, 0), Money(0)), Some("reported"));
        assert_eq!(cost_source(&spent(5, 7, 0), Money(7)), Some("priced"));
        assert_eq!(cost_source(&spent(5, 7, 0), Money(3)), Some("mixed"));
    }
}
