//! `gt convoy status`.

use std::time::Duration;

use clap::Args;
use comfy_table::Color;
use gt_beads::convoys::ConvoyFilter;
use gt_core::Timestamp;
use gt_core::decide::ConvoyState;
use gt_daemon::daemon::{self, DaemonAbsence};
use gt_daemon::views::{convoy_status_document, current_convoy, past_convoy_document};
use gt_scheduling::convoy_planning::{
    ConvoyStatus, DurationEstimate, LogMoment, Recalled, TrackedBead, TrackedState, convoy_at,
};
use gt_scheduling::queue;
use gt_town::Town;

use super::super::daemon::print_daemon_absence;
use super::super::run::lasted;
use super::super::status::done_words;
use super::super::watch::{WatchStep, watch};
use super::{list, state_word};
use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::{Cell, Printer, Table, ago, local_times, moment, plural, roughly};
use crate::values::instant_or_ago;

/// Show how far a convoy is; all that are under way, if none is named
///
/// Where each of its beads stands and why, in which order they go, the longest chain of what is left, and when all would be
/// done at the rate of the last runs.
#[derive(Debug, Args)]
#[command(
    after_help = "With --watch it is shown again whenever it changes, until the convoy is closed; with
--json that is a line of JSON each time.

Examples:
  gt convoy status hq-cv-x7k2p
  gt convoy status hq-cv-x7k2p --watch
  gt convoy status hq-cv-x7k2p --at 2026-11-18T14:00:00Z
  gt convoy status hq-cv-x7k2p --json"
)]
pub(super) struct StatusArgs {
    /// The convoy
    id: Option<String>,
    /// Go on showing it as it changes
    #[arg(short, long, requires = "id")]
    watch: bool,
    /// How it stood after the event of this number, or at this instant, as far as events are kept
    #[arg(long, value_name = "EVENT|TIME", requires = "id", conflicts_with = "watch")]
    at: Option<String>,
}

pub(super) fn run(context: &CommandContext<'_>, args: &StatusArgs) -> Result<(), CliError> {
    let Some(id) = &args.id else { return list(context, &ConvoyFilter::default(), false) };
    let town = context.town()?;
    let printer = context.printer;
    if let Some(at) = &args.at {
        let moment = LogMoment::parse(at).or_else(|wrong| {
            instant_or_ago(at, town.now()).map(LogMoment::Time).map_err(|_| wrong)
        })?;
        return show_past(context, &town, id, moment);
    }
    if !args.watch {
        return show(context, &town, id);
    }
    let look = || current_convoy(&town, id);
    watch(context, &town, look, ConvoyStatus::is_like, |convoy_status| {
        if printer.json() {
            printer.json_line(&convoy_status_document(convoy_status))?;
        } else {
            print_daemon_absence(printer, absence_for(&town, convoy_status)?)?;
            print(printer, convoy_status, printer.height().unwrap_or(usize::MAX))?;
            if !printer.is_terminal() {
                printer.line("")?;
            }
        }
        let state = convoy_status.convoy.state();
        let is_over = matches!(state, ConvoyState::Landed | ConvoyState::Closed);
        Ok(if is_over { WatchStep::End } else { WatchStep::More })
    })
}

/// Shows a convoy once.
pub(super) fn show(context: &CommandContext<'_>, town: &Town, id: &str) -> Result<(), CliError> {
    let printer = context.printer;
    let convoy_status = current_convoy(town, id)?;
    if printer.json() {
        printer.object(&convoy_status_document(&convoy_status))
    } else {
        print_daemon_absence(printer, absence_for(town, &convoy_status)?)?;
        print(printer, &convoy_status, usize::MAX)
    }
}

/// Says that no daemon runs, if something of the convoy waits for one.
fn absence_for(
    town: &Town,
    convoy_status: &ConvoyStatus,
) -> Result<Option<DaemonAbsence>, CliError> {
    let waits =
        convoy_status.count(TrackedState::Queued) + convoy_status.count(TrackedState::Landing);
    if waits == 0 && convoy_status.request.is_none() {
        return Ok(None);
    }
    Ok(daemon::absence(town, &queue::status(town)?)?)
}

/// Shows a convoy as it was.
fn show_past(
    context: &CommandContext<'_>,
    town: &Town,
    id: &str,
    at: LogMoment,
) -> Result<(), CliError> {
    let printer = context.printer;
    let past = match convoy_at(town, id, at)? {
        Recalled::Known(past) => past,
        Recalled::NotKept(log) => {
            return Err(CliError::request(format!(
                "not kept: the oldest event is {}, of {} (the setting events.keep)",
                log.first.number,
                moment(log.first.at)
            )));
        }
    };
    let document = past_convoy_document(&past);
    if printer.json() {
        return printer.object(&document);
    }
    let convoy = &document.convoy;
    printer.heading(&convoy.id, &format!("  {}", convoy.title))?;
    let place = past.place;
    printer.line(format!("As of event {}, {}", place.number, moment(place.at)))?;
    if convoy.status.is_empty() {
        return printer.line("It had not been made yet");
    }
    let is_told = |(state, count): &&(String, u64)| *count > 0 && state != "done";
    let counts = document.states.0.iter().filter(is_told);
    let counts: Vec<String> = counts.map(|(state, count)| format!(", {state}: {count}")).collect();
    let paused = if convoy.paused { ", paused" } else { "" };
    printer.line(format!(
        "{}: {}/{} done{}{paused}",
        convoy.status,
        convoy.completed,
        convoy.total,
        counts.concat()
    ))?;
    let mut table = Table::new().sentences_in(3).droppable_at(&[2]);
    for one in &document.tracked {
        let blocked = match one.blocked_by.as_slice() {
            [] => String::new(),
            ids => format!("blocked by {}", ids.join(", ")),
        };
        let state = one.merge_state.as_ref().unwrap_or(&one.state);
        table.row(vec![
            Cell::bold(format!("  {}", one.id)),
            Cell::new(state.as_str()),
            Cell::new(one.worker.as_deref().unwrap_or_default()),
            Cell::new(blocked),
            Cell::new(one.title.as_str()),
        ]);
    }
    printer.table(table)
}

/// How many waves or beads are named in a line before it says how many more there are.
const NAMED_PER_LINE_MAX: usize = 8;
/// The most lines that are printed above and below the beads.
const SURROUNDING_LINES_MAX: usize = 10;

/// Prints it in so many lines, if it is long.
fn print(printer: &Printer, convoy_status: &ConvoyStatus, height: usize) -> Result<(), CliError> {
    let (convoy, now) = (&convoy_status.convoy, convoy_status.as_of);
    printer.heading(convoy.bead.id.as_str(), &format!("  {}", convoy.bead.title.as_str()))?;
    let owner = if convoy.is_owned() { "; its owner lands it" } else { "" };
    let members = convoy.members;
    let done = done_words(printer, members.completed(), members.failed, members.total);
    let done = format!("{done}{}{owner}", counts(convoy_status));
    printer.paragraph(match (convoy.state(), convoy.bead.closed_at) {
        (ConvoyState::Landed, Some(at)) => format!(
            "landed {}, {} after it was made: {done}",
            ago(at, now),
            roughly(at.since(convoy.bead.created_at))
        ),
        _ => format!("{}: {done}", state_word(convoy)),
    })?;
    if convoy_status.tracked.is_empty() {
        return printer.line("It tracks nothing, and never lands by itself");
    }
    if let Some(request) = &convoy_status.request {
        printer.paragraph(local_times(&request.state_reason()))?;
    } else if convoy.is_integrated() && convoy.state() == ConvoyState::Open {
        printer.line("Its work comes together on a branch of its own, which lands at the end")?;
    }
    print_outlook(printer, convoy_status)?;
    if !convoy_status.spent.is_nothing() {
        printer.line(format!("Spent: {} (gt cost --by bead)", convoy_status.spent))?;
    }
    let mut shown: Vec<&TrackedBead> = convoy_status.tracked.iter().collect();
    shown.sort_by_key(|one| (order(one.state), one.place, one.wave.unwrap_or(usize::MAX)));
    let room = height.saturating_sub(SURROUNDING_LINES_MAX).max(1);
    printer.line("")?;
    print_beads(printer, shown.iter().copied().take(room), now)?;
    match shown.len().saturating_sub(room) {
        0 => Ok(()),
        more => printer.line(format!("  and {more} more")),
    }
}

/// The beads of a convoy, a line for each.
pub(super) fn print_beads<'t>(
    printer: &Printer,
    beads: impl Iterator<Item = &'t TrackedBead>,
    now: Timestamp,
) -> Result<(), CliError> {
    // Why it stands as it does is a sentence; money, wave and worker matter less than the title.
    let mut table = Table::new().sentences_in(6).droppable_at(&[4, 2, 5, 3]);
    beads.for_each(|one| table.row(row(one, now)));
    printer.table(table)
}

/// The place of a state in the list: failed and running beads come first.
fn order(state: TrackedState) -> usize {
    let first = [
        TrackedState::Failed,
        TrackedState::Running,
        TrackedState::Landing,
        TrackedState::Starting,
        TrackedState::Queued,
        TrackedState::Blocked,
        TrackedState::Waiting,
        TrackedState::Idle,
        TrackedState::Done,
    ];
    first.iter().position(|one| *one == state).unwrap_or(first.len())
}

/// The number of unfinished beads by state.
fn counts(convoy_status: &ConvoyStatus) -> String {
    let left = TrackedState::ALL.into_iter().filter(|state| *state != TrackedState::Done);
    let counted = left.map(|state| (convoy_status.count(state), state.as_str()));
    let said = counted.filter(|(count, _)| *count > 0);
    let said: Vec<String> = said.map(|(count, state)| format!(", {state}: {count}")).collect();
    said.concat()
}

/// The order of the unfinished beads, and the estimate of their end.
fn print_outlook(printer: &Printer, convoy_status: &ConvoyStatus) -> Result<(), CliError> {
    let waves: Vec<String> =
        convoy_status.waves.iter().map(|wave| wave.len().to_string()).collect();
    if !waves.is_empty() {
        let (said, more) = first_of(&waves);
        printer.paragraph(format!("Waves: {}{more} (beads in each)", said.join(", ")))?;
    }
    let path: Vec<&str> = convoy_status
        .critical_path
        .iter()
        .map(|at| convoy_status.tracked[*at].row.bead.id.as_str())
        .collect();
    if path.len() > 1 {
        let (said, more) = first_of(&path);
        let beads = plural(path.len() as u64, "bead");
        printer.paragraph(format!("Longest chain: {}{more} ({beads})", said.join(" → ")))?;
    }
    match (convoy_status.estimate, convoy_status.eta()) {
        (Some(estimate), Some(eta)) => printer.paragraph(estimate_line(&estimate, eta)),
        _ => Ok(()),
    }
}

/// The first of many, and how many more there are.
fn first_of<T>(all: &[T]) -> (&[T], String) {
    let more = match all.len().saturating_sub(NAMED_PER_LINE_MAX) {
        0 => String::new(),
        more => format!(" … {more} more"),
    };
    (&all[..all.len().min(NAMED_PER_LINE_MAX)], more)
}

fn estimate_line(estimate: &DurationEstimate, eta: Timestamp) -> String {
    let at = match estimate.remaining.as_secs() {
        // Beyond half a day a time without a date is ambiguous.
        0..43_200 => format!(" ({})", moment(eta)),
        _ => String::new(),
    };
    let left_out = match estimate.left_out as u64 {
        0 => String::new(),
        1 => ", but for 1 bead that does not go on by itself".to_owned(),
        some => format!(", but for {some} beads that do not go on by themselves"),
    };
    format!("At today's pace: done in {}{at}{left_out}", about(estimate))
}

/// How long something takes with so many slots, in words.
pub(super) fn about(estimate: &DurationEstimate) -> String {
    let slots = estimate.slots.map(|slots| format!(" with {slots} at a time")).unwrap_or_default();
    format!("{}{slots}", about_remaining(estimate))
}

/// How long something takes, in words.
pub(in crate::gt) fn about_remaining(estimate: &DurationEstimate) -> String {
    // Work that is not done takes some time, also after runs of milliseconds.
    format!("about {}", roughly(estimate.remaining.max(Duration::from_secs(1))))
}

fn row(one: &TrackedBead, now: Timestamp) -> Vec<Cell> {
    let bead = &one.row.bead;
    let (word, colour) = word(one);
    let who = one.run.as_ref().map_or(bead.assignee.as_str(), |run| run.agent.as_str());
    vec![
        Cell::bold(format!("  {}", bead.id)),
        Cell::coloured(word, colour),
        Cell::new(one.wave.map(|wave| format!("wave {wave}")).unwrap_or_default()),
        Cell::new(one.run.as_ref().map(|run| lasted(run, now)).unwrap_or_default()),
        Cell::new(if one.spent.is_nothing() { String::new() } else { one.spent.dollars() }),
        Cell::new(who),
        Cell::new(why(one)),
        Cell::new(bead.title.as_str()),
    ]
}

/// How a tracked bead stands, in a word.
fn word(one: &TrackedBead) -> (String, Option<Color>) {
    let word = match (one.state, one.row.bead.outcome, one.place) {
        (TrackedState::Done, Some(outcome), _) => outcome.as_str().to_owned(),
        (TrackedState::Queued, _, Some(place)) => format!("queued, place {place}"),
        (TrackedState::Waiting | TrackedState::Landing | TrackedState::Failed, ..)
            if one.request.is_some() =>
        {
            match one.merge_state() {
                Some("review") => "in review".to_owned(),
                Some("failed") => "check failed".to_owned(),
                state => state.unwrap_or_default().to_owned(),
            }
        }
        (state, ..) => state.as_str().to_owned(),
    };
    let colour = match one.state {
        TrackedState::Done => Some(Color::DarkGrey),
        TrackedState::Failed => Some(Color::Red),
        TrackedState::Running | TrackedState::Landing | TrackedState::Starting => {
            Some(Color::Yellow)
        }
        TrackedState::Queued | TrackedState::Blocked | TrackedState::Waiting => None,
        TrackedState::Idle => Some(Color::Cyan),
    };
    (word, colour)
}

/// Why a tracked bead stands as it does.
fn why(one: &TrackedBead) -> String {
    let mut said: Vec<String> = Vec::new();
    if !one.failure.is_empty() {
        let last = if one.state == TrackedState::Failed { "" } else { "last time: " };
        said.push(format!("{last}{}", one.failure));
    }
    if let (Some(_), Some(request)) = (&one.run, &one.request) {
        said.push(format!("repairs {}", request.id));
    }
    said.extend(one.reasons.iter().map(|reason| local_times(&reason.to_string())));
    said.join("; ")
}
