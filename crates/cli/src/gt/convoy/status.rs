//! `gt convoy status`.

use clap::Args;
use comfy_table::Color;
use gt_core::decide::ConvoyState;
use gt_core::{BeadId, Timestamp};
use gt_operations::convoys::{self, ConvoyFilter, Estimate, Picture, Tracked, TrackedState};
use gt_operations::{OperationError, Town, daemon, queue};
use gt_records::{ArrayWriter, ObjectWriter};

use super::super::run::lasted;
use super::super::watch::{Next, watch};
use super::{list, standing, write_convoy};
use crate::context::Context;
use crate::error::CliError;
use crate::output::{Cell, Printer, Table, ago, local_times, moment, plural, roughly};

/// Show how far a convoy is; all that are under way, if none is named
///
/// Where each of its beads stands and why, in which order they go, the longest chain of what is left, and when all would be
/// done at the pace of the last runs.
#[derive(Debug, Args)]
#[command(
    after_help = "With --watch it is shown again whenever it changes, until the convoy is closed; with
--json that is a line of JSON each time.

Examples:
  gt convoy status hq-cv-x7k2p
  gt convoy status hq-cv-x7k2p --watch
  gt convoy status hq-cv-x7k2p --json"
)]
pub(super) struct StatusArgs {
    /// The convoy
    id: Option<String>,
    /// Go on showing it as it changes
    #[arg(short, long, requires = "id")]
    watch: bool,
}

pub(super) fn run(context: &Context<'_>, args: &StatusArgs) -> Result<(), CliError> {
    let Some(id) = &args.id else { return list(context, &ConvoyFilter::default(), false) };
    let town = context.town()?;
    let printer = context.printer;
    if !args.watch {
        return show(context, &town, id);
    }
    let look = || look(&town, id);
    watch(context, &town, look, Picture::is_like, |picture| {
        if printer.json() {
            printer.json_line(&picture_json(picture))?;
        } else {
            print(printer, picture, printer.height().unwrap_or(usize::MAX))?;
            if !printer.is_terminal() {
                printer.line("")?;
            }
        }
        let state = picture.convoy.state();
        let is_over = matches!(state, ConvoyState::Landed | ConvoyState::Closed);
        Ok(if is_over { Next::End } else { Next::More })
    })
}

/// Reads a convoy. Without a daemon nothing starts, so no estimate would be true.
fn look(town: &Town, id: &str) -> Result<Picture, OperationError> {
    let mut picture = convoys::status(town, id)?;
    if picture.estimate.is_some() && daemon::absence(town, &queue::status(town)?).is_some() {
        picture.estimate = None;
    }
    Ok(picture)
}

/// Shows a convoy once.
pub(super) fn show(context: &Context<'_>, town: &Town, id: &str) -> Result<(), CliError> {
    let printer = context.printer;
    let picture = look(town, id)?;
    if printer.json() {
        printer.object(&picture_json(&picture))
    } else {
        print(printer, &picture, usize::MAX)
    }
}

/// How many waves or beads are named in a line before it says how many more there are.
const NAMED: usize = 8;
/// How many lines stand above the beads at most, and below.
const LINES_AROUND: usize = 7;

/// Prints it in so many lines, if it is long.
fn print(printer: &Printer, picture: &Picture, height: usize) -> Result<(), CliError> {
    let (convoy, now) = (&picture.convoy, picture.as_of);
    printer.heading(convoy.bead.id.as_str(), &format!("  {}", convoy.bead.title.as_str()))?;
    let owner = if convoy.is_owned() { "; its owner lands it" } else { "" };
    let members = convoy.members;
    let done = format!("{}/{} done{}{owner}", members.completed(), members.total, counts(picture));
    printer.line(match (convoy.state(), convoy.bead.closed_at) {
        (ConvoyState::Landed, Some(at)) => format!(
            "landed {}, {} after it was made: {done}",
            ago(at, now),
            roughly(at.since(convoy.bead.created_at))
        ),
        _ => format!("{}: {done}", standing(convoy)),
    })?;
    if picture.tracked.is_empty() {
        return printer.line("It tracks nothing, and never lands by itself");
    }
    print_outlook(printer, picture)?;
    let mut shown: Vec<&Tracked> = picture.tracked.iter().collect();
    shown.sort_by_key(|one| (order(one.state), one.place, one.wave.unwrap_or(usize::MAX)));
    let room = height.saturating_sub(LINES_AROUND).max(1);
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
    beads: impl Iterator<Item = &'t Tracked>,
    now: Timestamp,
) -> Result<(), CliError> {
    let mut table = Table::new();
    beads.for_each(|one| table.row(row(one, now)));
    printer.table(table)
}

/// What is of interest comes first.
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

/// How many of what is left stand in which way.
fn counts(picture: &Picture) -> String {
    let left = TrackedState::ALL.into_iter().filter(|state| *state != TrackedState::Done);
    let counted = left.map(|state| (picture.count(state), state.as_str()));
    let said = counted.filter(|(count, _)| *count > 0);
    let said: Vec<String> = said.map(|(count, state)| format!(", {state}: {count}")).collect();
    said.concat()
}

/// In which order what is left goes, and when it would be done.
fn print_outlook(printer: &Printer, picture: &Picture) -> Result<(), CliError> {
    let waves: Vec<String> = picture.waves.iter().map(|wave| wave.len().to_string()).collect();
    if !waves.is_empty() {
        let (said, more) = first_of(&waves);
        printer.line(format!("Waves: {}{more} (beads in each)", said.join(", ")))?;
    }
    let path: Vec<&str> =
        picture.critical_path.iter().map(|at| picture.tracked[*at].row.bead.id.as_str()).collect();
    if path.len() > 1 {
        let (said, more) = first_of(&path);
        let beads = plural(path.len() as u64, "bead");
        printer.line(format!("Longest chain: {}{more} ({beads})", said.join(" → ")))?;
    }
    match (picture.estimate, picture.eta()) {
        (Some(estimate), Some(eta)) => printer.line(estimate_line(&estimate, eta)),
        _ => Ok(()),
    }
}

/// The first of many, and how many more there are.
fn first_of<T>(all: &[T]) -> (&[T], String) {
    let more = match all.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" … {more} more"),
    };
    (&all[..all.len().min(NAMED)], more)
}

fn estimate_line(estimate: &Estimate, eta: Timestamp) -> String {
    let at = match estimate.remaining.as_secs() {
        // Farther off nobody knows which day a time is of.
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

/// How long something takes, in words.
pub(super) fn about(estimate: &Estimate) -> String {
    let slots = estimate.slots.map(|slots| format!(" with {slots} at a time")).unwrap_or_default();
    format!("about {}{slots}", roughly(estimate.remaining))
}

fn row(one: &Tracked, now: Timestamp) -> Vec<Cell> {
    let bead = &one.row.bead;
    let (word, colour) = word(one);
    let who = one.run.as_ref().map_or(bead.assignee.as_str(), |run| run.agent.as_str());
    vec![
        Cell::bold(format!("  {}", bead.id)),
        Cell::coloured(word, colour),
        Cell::new(one.wave.map(|wave| format!("wave {wave}")).unwrap_or_default()),
        Cell::new(one.run.as_ref().map(|run| lasted(run, now)).unwrap_or_default()),
        Cell::new(who),
        Cell::new(why(one)),
        Cell::new(bead.title.as_str()),
    ]
}

/// How a tracked bead stands, in a word.
fn word(one: &Tracked) -> (String, Option<Color>) {
    let word = match (one.state, one.row.bead.outcome, one.place) {
        (TrackedState::Done, Some(outcome), _) => outcome.as_str().to_owned(),
        (TrackedState::Queued, _, Some(place)) => format!("queued, place {place}"),
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
fn why(one: &Tracked) -> String {
    let mut said: Vec<String> = Vec::new();
    if !one.failure.is_empty() {
        let last = if one.state == TrackedState::Failed { "" } else { "last time: " };
        said.push(format!("{last}{}", one.failure));
    }
    said.extend(one.reasons.iter().map(|reason| local_times(&reason.to_string())));
    said.join("; ")
}

pub(super) fn picture_json(picture: &Picture) -> String {
    let mut out = String::new();
    let mut object = ObjectWriter::new(&mut out);
    write_convoy(&mut object, &picture.convoy);
    object.object("states", |object| {
        for state in TrackedState::ALL {
            object.count(state.as_str(), picture.count(state));
        }
    });
    let id = |at: &usize| picture.tracked[*at].row.bead.id.as_str();
    object.array("waves", |array| {
        for (number, wave) in picture.waves.iter().enumerate() {
            array.object(|object| {
                object.count("number", number as u64 + 1);
                object.array("beads", |array| wave.iter().for_each(|at| array.text(id(at))));
            });
        }
    });
    object.array("critical_path", |array| {
        picture.critical_path.iter().for_each(|at| array.text(id(at)));
    });
    if let Some(estimate) = &picture.estimate {
        write_estimate(&mut object, estimate, picture.eta());
    }
    object.array("tracked", |array| {
        picture.tracked.iter().for_each(|one| write_tracked(array, one, picture.as_of));
    });
    object.finish();
    out
}

/// How long something takes, for programs.
pub(in crate::gt) fn write_estimate(
    object: &mut ObjectWriter<'_>,
    estimate: &Estimate,
    eta: Option<Timestamp>,
) {
    if let Some(eta) = eta {
        object.timestamp("eta", eta.floor_to_second());
    }
    object.count("remaining_seconds", estimate.remaining.as_secs());
    object.count("left_out", estimate.left_out as u64);
}

fn write_tracked(array: &mut ArrayWriter<'_>, one: &Tracked, now: Timestamp) {
    let bead = &one.row.bead;
    array.object(|object| {
        object.text("id", bead.id.as_str());
        object.text("title", bead.title.as_str());
        object.text("status", bead.status.as_str());
        object.text_unless_empty("outcome", bead.outcome.map_or("", |one| one.as_str()));
        object.text("state", one.state.as_str());
        object.text("dependency_type", "tracks");
        object.text("issue_type", bead.issue_type.as_str());
        object.flag_if_set("blocked", bead.open_blockers > 0);
        object.text_unless_empty("assignee", &bead.assignee);
        write_texts(object, "labels", one.row.labels.iter().map(String::as_str));
        if let Some(run) = &one.run {
            object.text("worker", &run.agent);
            object.text("worker_age", &lasted(run, now));
            object.text("run", &run.id.to_string());
        }
        if let Some(wave) = one.wave {
            object.count("wave", wave as u64);
        }
        if let Some(place) = one.place {
            object.count("place", place as u64);
        }
        write_texts(object, "blocked_by", one.blocked_by.iter().map(BeadId::as_str));
        if !one.reasons.is_empty() {
            object.array("reasons", |array| {
                for reason in &one.reasons {
                    array.object(|object| {
                        object.text("code", reason.code());
                        object.text("text", &reason.to_string());
                    });
                }
            });
        }
        object.text_unless_empty("failure", &one.failure);
    });
}

/// Some texts, if there are any.
fn write_texts<'t>(
    object: &mut ObjectWriter<'_>,
    name: &str,
    texts: impl ExactSizeIterator<Item = &'t str>,
) {
    if texts.len() > 0 {
        object.array(name, |array| texts.for_each(|text| array.text(text)));
    }
}
