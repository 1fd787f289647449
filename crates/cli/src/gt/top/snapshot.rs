//! Reads a view: the same queries as `gt inbox`, `gt run list`, `gt mq list`, `gt convoy list` and `gt feed`.

use gt_api::RunRowDocument;
use gt_beads::events;
use gt_core::board::BoardLane;
use gt_core::inbox::{InboxItem, InboxKind, InboxObject};
use gt_core::merging::{MergeRequest, RequestState};
use gt_core::schedule::RunState;
use gt_core::{BeadId, Timestamp};
use gt_daemon::daemon;
use gt_daemon::inbox::inbox_with;
use gt_daemon::views::{RunRowsRequest, run_rows};
use gt_execution::merge_queue::{self, LineEntry};
use gt_scheduling::board::{BoardCard, BoardRequest, LaneOfBoard, board, board_counts};
use gt_scheduling::convoy_planning::{ConvoyOverview, overview};
use gt_scheduling::queue::{self, QueueStatus};
use gt_town::{EventFilter, Result, Town};

use super::answers::{RowAnswer, answers_of_commands, edit_answer, screen_answer};
use super::model::{PageSource, Tone, TopCell, TopColumn, TopRow, TopSnapshot, TopView};
use crate::bd::event_line;
use crate::gt::inbox::sentence;
use crate::gt::scheduler::capacity;
use crate::gt::status::undone_words;
use crate::output::{local_times, moment, plural, progress_blocks, roughly, short_commit};

/// How many events are looked at for the end of a row.
const EXPLAINING_EVENTS_MAX: usize = 20;
/// The actor of events that no person and no agent caused.
const SYSTEM_ACTOR: &str = "gt";
/// How many rows of a list are read.
const ROWS_MAX: usize = 500;
/// How many live runs are read; each costs a look at the end of its output.
const RUNS_MAX: usize = 200;
/// How many beads of a lane the board shows; each lane says how many it has.
const LANE_CARDS_MAX: usize = 50;
/// How many lines of a long text stand below the list.
const DETAIL_LINES_MAX: usize = 20;

/// Reads a view.
pub(super) fn read(town: &Town, view: TopView) -> Result<TopSnapshot> {
    let status = queue::status(town)?;
    let inbox = inbox_with(town, &status)?;
    let needs = inbox.len();
    let (columns, rows) = match view {
        TopView::NeedsYou => (NEEDS_COLUMNS.to_vec(), inbox.iter().map(need_row).collect()),
        TopView::Board => (BOARD_COLUMNS.to_vec(), board_rows(town)?),
        TopView::Runs => {
            let live =
                RunRowsRequest { live: Some(true), limit: RUNS_MAX, ..RunRowsRequest::default() };
            let rows = run_rows(town, &live)?.items.iter().map(run_row).collect();
            (RUN_COLUMNS.to_vec(), rows)
        }
        TopView::Queue => {
            let (entries, _) = merge_queue::line(town)?;
            (QUEUE_COLUMNS.to_vec(), entries.iter().take(ROWS_MAX).map(request_row).collect())
        }
        TopView::Convoys => {
            let (convoys, _) = overview(town, ROWS_MAX)?;
            (CONVOY_COLUMNS.to_vec(), convoys.iter().map(convoy_row).collect())
        }
        TopView::Feed => {
            let mut latest = events::latest(town, &EventFilter::default(), ROWS_MAX)?;
            latest.reverse();
            (FEED_COLUMNS.to_vec(), latest.iter().map(feed_row).collect())
        }
    };
    Ok(TopSnapshot {
        view,
        headline: headline(town, &status)?,
        warning: warning(town, &status),
        needs,
        columns,
        rows,
        at: town.now(),
    })
}

fn headline(town: &Town, status: &QueueStatus) -> Result<String> {
    let name = town.root().file_name().map(|name| name.to_string_lossy().into_owned());
    // The same number as that of the lane on the board.
    let counts = board_counts(town, &BoardRequest::default())?;
    let ready = counts.iter().find(|(lane, _)| *lane == BoardLane::Ready);
    Ok(format!(
        "{}: {} running, {} ready, {} queued",
        name.unwrap_or_else(|| "town".to_owned()),
        capacity(status.live, status.cap),
        ready.map_or(0, |(_, count)| *count),
        status.queued
    ))
}

/// The reason why the town as a whole is stopped.
fn warning(town: &Town, status: &QueueStatus) -> Option<String> {
    if let Ok(Some(absence)) = daemon::absence(town, status) {
        return Some(absence.to_string());
    }
    let pause = status.paused.as_ref()?;
    Some(format!("paused by {} since {}", pause.by, moment(pause.at)))
}

const fn column(title: &'static str, width_max: u16, screen_min: u16) -> TopColumn {
    TopColumn { title, width_max, screen_min }
}

const NEEDS_COLUMNS: [TopColumn; 4] =
    [column("KIND", 16, 0), column("ABOUT", 40, 0), column("SINCE", 6, 0), column("WHAT", 0, 0)];

fn need_row(item: &InboxItem) -> TopRow {
    let what = local_times(&sentence(item));
    let mut detail = Vec::new();
    if !item.title.is_empty() {
        detail.push(format!("bead    {}", item.title));
    }
    detail.push(format!("why     {what}"));
    detail.extend(item.context.check.iter().map(|check| format!("check   {check}")));
    // The sentence often ends with the only line that there is.
    if !what.ends_with(item.context.detail.trim()) {
        let lines = item.context.detail.lines().take(DETAIL_LINES_MAX);
        detail.extend(lines.map(|line| format!("  | {line}")));
    }
    let blocks: Vec<String> = item.context.blocks.iter().map(ToString::to_string).collect();
    if !blocks.is_empty() {
        detail.push(format!("blocks  {}", blocks.join(", ")));
    }
    detail.extend(item.commands.iter().map(|command| format!("$ {command}")));
    let mut answers = answers_of_commands(&item.commands);
    if let Some(bead) = &item.bead {
        answers.push(edit_answer(bead.as_str(), &item.title));
    }
    let opens = match (&item.object, &item.bead) {
        (InboxObject::Request(id), _) if item.kind == InboxKind::Review => {
            Some(PageSource::command(&["gt", "review", "diff", &id.to_string()], false))
        }
        (InboxObject::Request(id), _) if item.context.check.is_some() => {
            Some(PageSource::command(&["gt", "mq", "log", &id.to_string()], false))
        }
        (InboxObject::Request(id), _) => {
            Some(PageSource::command(&["gt", "mq", "show", &id.to_string()], true))
        }
        (InboxObject::Message(id), _) => {
            Some(PageSource::command(&["gt", "mail", "show", &id.to_string()], true))
        }
        (InboxObject::Run(id), _) => Some(PageSource::Transcript(id.to_string())),
        (_, Some(bead)) => Some(PageSource::command(&["gt", "why", bead.as_str()], true)),
        _ => Some(PageSource::command(&["gt", "status"], true)),
    };
    let since = item.since.map_or_else(|| TopCell::Text(String::new()), TopCell::Since);
    let cells = vec![
        TopCell::Toned(item.kind.as_str().to_owned(), need_tone(item.kind)),
        item.object.to_string().into(),
        since,
        need_words(item, &what).into(),
    ];
    let bead = item.bead.as_ref().map(ToString::to_string);
    TopRow { key: item.key(), bead, cells, detail, answers, opens }
}

/// The text of a row beside its kind and its object, which the sentence names first.
fn need_words(item: &InboxItem, what: &str) -> String {
    if item.title.is_empty() || matches!(item.object, InboxObject::Message(_)) {
        return what.to_owned();
    }
    let object = item.object.to_string();
    match what.split_once(&format!("{object}: ")) {
        Some((_, rest)) => format!("{}: {rest}", item.title),
        None if what.contains(&object) => item.title.clone(),
        None => what.to_owned(),
    }
}

fn need_tone(kind: InboxKind) -> Tone {
    match kind {
        InboxKind::Question | InboxKind::Review | InboxKind::PutOff | InboxKind::Unmerged => {
            Tone::Busy
        }
        _ => Tone::Bad,
    }
}

const RUN_COLUMNS: [TopColumn; 11] = [
    column("RUN", 40, 0),
    column("STATE", 10, 0),
    column("FOR", 6, 0),
    column("STEP", 5, 90),
    column("AGENT", 12, 0),
    column("LAST TOOL", 24, 110),
    column("TOKENS", 9, 120),
    column("COST", 8, 100),
    column("ACCOUNT", 12, 130),
    column("RUNTIME", 12, 140),
    column("TITLE", 0, 0),
];

fn run_row(run: &RunRowDocument) -> TopRow {
    let text = |text: &Option<String>| TopCell::Text(text.clone().unwrap_or_default());
    let step = run.step.as_ref().map(|step| format!("{}/{}", step.done, step.total));
    let tokens = run.tokens.map(|tokens| tokens.to_string());
    let cost = run.cost.as_ref().map(|cost| format!("${cost}"));
    let begin = run.running_at.as_ref().unwrap_or(&run.started_at);
    let cells = vec![
        run.id.clone().into(),
        match &run.silent_since {
            Some(since) => TopCell::SilentSince(since.0),
            None => TopCell::Toned(run.state.clone(), run_tone(&run.state)),
        },
        TopCell::Since(begin.0),
        text(&step),
        short_name(&run.agent).into(),
        text(&run.last_tool),
        text(&tokens),
        text(&cost),
        run.account.clone().into(),
        run.runtime.clone().into(),
        run.title.clone().into(),
    ];
    let or_none = |text: &str| if text.is_empty() { "-".to_owned() } else { text.to_owned() };
    let known = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    let mut detail = vec![
        format!("bead    {}", run.title),
        format!(
            "agent   {}, runtime {}, account {}, host {}",
            run.agent,
            or_none(&run.runtime),
            or_none(&run.account),
            run.host
        ),
        format!("step    {}, tokens {}, cost {}", known(&step), known(&tokens), known(&cost)),
    ];
    detail.extend(run.last_tool.iter().map(|tool| format!("tool    {tool}")));
    detail.extend(run.silent_since.iter().map(|since| format!("silent since {}", moment(since.0))));
    TopRow {
        key: run.id.clone(),
        bead: Some(run.bead.clone()),
        cells,
        detail,
        answers: run_answers(&run.id, &run.bead, &run.title),
        opens: Some(PageSource::Transcript(run.id.clone())),
    }
}

fn run_tone(state: &str) -> Tone {
    if state == RunState::Blocked.as_str() { Tone::Bad } else { Tone::Busy }
}

/// The name of an agent without the place that the list shows anyway.
fn short_name(agent: &str) -> String {
    agent.rsplit('/').next().unwrap_or(agent).to_owned()
}

fn run_answers(run: &str, bead: &str, title: &str) -> Vec<RowAnswer> {
    let mut answers =
        answers_of_commands(&[format!("gt nudge {run} <text>"), format!("gt run cancel {run}")]);
    answers.push(screen_answer(bead));
    answers.push(edit_answer(bead, title));
    answers
}

const QUEUE_COLUMNS: [TopColumn; 6] = [
    column("REQUEST", 40, 0),
    column("STATE", 14, 0),
    column("SINCE", 6, 0),
    column("TARGET", 18, 0),
    column("CHANGE BY", 14, 120),
    column("TITLE", 0, 0),
];

fn request_row(entry: &LineEntry) -> TopRow {
    let LineEntry { request, title, position } = entry;
    let state = match position {
        Some(position) => format!("queued, {position}"),
        None => request.state.to_string(),
    };
    let run = request.run().map(|run| run.to_string()).unwrap_or_default();
    let cells = vec![
        request.id.to_string().into(),
        TopCell::Toned(state, request_tone(request.state)),
        TopCell::Since(request.changed_at),
        format!("{}/{}", request.rig, request.target).into(),
        run.into(),
        title.clone().into(),
    ];
    let detail = vec![
        format!("bead    {title}"),
        format!("state   {}", local_times(&request.state_reason())),
        format!("next    {}", local_times(&request.next_step())),
        format!("commit  {} of {}", short_commit(&request.accepted), request.branch),
    ];
    TopRow {
        key: request.id.to_string(),
        bead: Some(request.id.bead.to_string()),
        cells,
        detail,
        answers: request_answers(request, title),
        opens: Some(request_page(request)),
    }
}

fn request_tone(state: RequestState) -> Tone {
    match state {
        RequestState::Landed => Tone::Good,
        RequestState::Conflict | RequestState::Failed | RequestState::Held(_) => Tone::Bad,
        RequestState::Cancelled | RequestState::Superseded => Tone::Quiet,
        RequestState::Queued => Tone::Plain,
        RequestState::Building
        | RequestState::Checking
        | RequestState::Landing
        | RequestState::Review => Tone::Busy,
    }
}

fn request_page(request: &MergeRequest) -> PageSource {
    let id = request.id.to_string();
    match request.state {
        RequestState::Review => PageSource::command(&["gt", "review", "diff", &id], false),
        _ => PageSource::command(&["gt", "mq", "show", &id], true),
    }
}

fn request_answers(request: &MergeRequest, title: &str) -> Vec<RowAnswer> {
    // The inbox names the commands of a request in each state.
    let item = InboxItem::of_request(request, InboxKind::Review, title.to_owned());
    let mut commands = item.commands;
    commands.push(format!("gt mq cancel {}", request.id));
    let mut answers = answers_of_commands(&commands);
    answers.push(edit_answer(request.id.bead.as_str(), title));
    answers
}

const CONVOY_COLUMNS: [TopColumn; 5] = [
    column("CONVOY", 40, 0),
    column("DONE", 18, 0),
    column("STATE", 34, 100),
    column("LEFT", 8, 0),
    column("TITLE", 0, 0),
];

fn convoy_row(one: &ConvoyOverview) -> TopRow {
    let (bead, members) = (&one.convoy.bead, one.convoy.members);
    // A bead that needs a person has no end that could be told.
    let estimate = one.estimate.filter(|estimate| estimate.left_out == 0);
    let left = estimate.map(|estimate| roughly(estimate.remaining)).unwrap_or_default();
    let done = progress_blocks(members.completed(), members.failed, members.total);
    let cells = vec![
        bead.id.to_string().into(),
        done.into(),
        undone_words(one).into(),
        left.into(),
        bead.title.to_string().into(),
    ];
    let detail = vec![
        format!("title   {}", bead.title),
        format!("beads   {} of {}", members.completed(), plural(members.total, "bead")),
        format!("state   {}", undone_words(one)),
    ];
    let id = bead.id.as_str();
    TopRow {
        key: id.to_owned(),
        bead: Some(id.to_owned()),
        cells,
        detail,
        answers: answers_of_commands(&[format!("gt convoy retry {id}")]),
        opens: Some(PageSource::command(&["gt", "convoy", "status", id], true)),
    }
}

const FEED_COLUMNS: [TopColumn; 2] = [column("NUMBER", 8, 100), column("EVENT", 0, 0)];

fn feed_row(event: &gt_core::Event) -> TopRow {
    let line = event_line(event);
    let opens =
        event.bead.as_ref().map(|bead| PageSource::command(&["gt", "why", bead.as_str()], true));
    TopRow {
        key: event.number.to_string(),
        bead: None,
        cells: vec![event.number.to_string().into(), line.clone().into()],
        detail: vec![line],
        answers: Vec::new(),
        opens,
    }
}

const BOARD_COLUMNS: [TopColumn; 7] = [
    column("LANE", 12, 0),
    column("BEAD", 40, 0),
    column("RIG", 12, 100),
    column("CONVOY", 14, 130),
    column("SINCE", 6, 0),
    column("TITLE", 30, 0),
    column("HOW IT STANDS", 0, 0),
];

/// The lanes in the order of the work, except that what is held back comes after what goes on.
const LANES: [BoardLane; 6] = [
    BoardLane::Ready,
    BoardLane::Running,
    BoardLane::Review,
    BoardLane::Queue,
    BoardLane::Blocked,
    BoardLane::Landed,
];

fn board_rows(town: &Town) -> Result<Vec<TopRow>> {
    let request = BoardRequest { limit: LANE_CARDS_MAX, ..BoardRequest::default() };
    let lanes = board(town, &request)?;
    let in_order = LANES.iter().filter_map(|lane| lanes.iter().find(|one| one.lane == *lane));
    let rows = in_order.flat_map(|one| one.cards.iter().map(|card| card_row(one, card)));
    Ok(rows.collect())
}

fn card_row(lane: &LaneOfBoard, card: &BoardCard) -> TopRow {
    let BoardCard { bead, convoy, since, reason, ends, run, request } = card;
    let (id, title) = (bead.id.as_str(), bead.title.as_str());
    let why = reason.as_ref().map(|reason| local_times(&reason.to_string())).unwrap_or_default();
    let stands = match (lane.lane, run, request) {
        (BoardLane::Landed, _, Some(request)) => short_commit(&request.landed).to_owned(),
        (BoardLane::Running, Some(run), _) => {
            format!("{} {}", run.state.as_str(), short_name(&run.agent))
        }
        (BoardLane::Review | BoardLane::Queue, _, Some(request)) => request.state.to_string(),
        _ => why.clone(),
    };
    let tone = match lane.lane {
        BoardLane::Blocked => Tone::Bad,
        BoardLane::Running | BoardLane::Review => Tone::Busy,
        BoardLane::Landed => Tone::Good,
        BoardLane::Ready | BoardLane::Queue => Tone::Plain,
    };
    let text = |text: &str| TopCell::Text(text.to_owned());
    let cells = vec![
        TopCell::Toned(format!("{} {}", lane.lane.as_str(), lane.total), tone),
        text(id),
        text(bead.rig.as_ref().map_or("", |rig| rig.as_str())),
        text(convoy.as_ref().map_or("", |(convoy, _)| convoy.as_str())),
        TopCell::Since(*since),
        text(title),
        stands.into(),
    ];
    let mut detail = vec![format!("bead    {title}")];
    detail.extend(convoy.iter().map(|(convoy, title)| format!("convoy  {convoy} {title}")));
    detail.extend((!why.is_empty()).then(|| format!("why     {why}")));
    detail.extend(ends.iter().map(|ends| format!("ends    {}", local_times(ends))));
    detail
        .extend(request.iter().map(|one| format!("merge   {}", local_times(&one.state_reason()))));
    let (answers, opens) = match (lane.lane, run, request) {
        (BoardLane::Running, Some(run), _) => {
            let name = run.id.to_string();
            (run_answers(&name, id, title), PageSource::Transcript(name))
        }
        (BoardLane::Review | BoardLane::Queue, _, Some(request)) => {
            (request_answers(request, title), request_page(request))
        }
        (BoardLane::Landed, _, Some(request)) => {
            let id = request.id.to_string();
            (Vec::new(), PageSource::command(&["gt", "mq", "show", &id], true))
        }
        (lane, ..) => {
            // A bead that was never scheduled cannot be tried again, and there is nothing to cancel.
            let commands = match ends {
                Some(ends) if ends.starts_with("gt sling ") => vec![ends.clone()],
                _ => vec![format!("gt scheduler retry {id} --now"), format!("gt unsling {id}")],
            };
            let mut answers = answers_of_commands(&commands);
            answers.push(edit_answer(id, title));
            if lane == BoardLane::Landed {
                answers.clear();
            }
            (answers, PageSource::command(&["gt", "why", id], true))
        }
    };
    let bead = Some(id.to_owned());
    TopRow { key: id.to_owned(), bead, cells, detail, answers, opens: Some(opens) }
}

/// The end of a row that is gone, in a line: the last event about its bead that a person caused, else the last one.
pub(super) fn explain(
    town: &Town,
    key: &str,
    bead: Option<&str>,
    seen_at: Timestamp,
) -> Result<String> {
    let gone = format!("{key} is gone");
    let Some(bead) = bead.and_then(|bead| BeadId::parse(bead).ok()) else { return Ok(gone) };
    let filter = EventFilter { bead: Some(bead), since: Some(seen_at), ..EventFilter::default() };
    let events = events::latest(town, &filter, EXPLAINING_EVENTS_MAX)?;
    let is_person =
        |event: &&gt_core::Event| event.actor != SYSTEM_ACTOR && !event.actor.contains('/');
    let last = events.iter().rev().find(is_person).or(events.last());
    Ok(last.map_or_else(
        || gone.clone(),
        |event| {
            let what = event.kind.as_str().replace('_', " ");
            format!("{gone}: {what} by {} at {}", event.actor, moment(event.at))
        },
    ))
}
