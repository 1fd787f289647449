//! `bd activity`: the event log, as it is or as it grows.

use std::time::Duration;

use clap::Args;
use gt_api::EventDocument;
use gt_beads::events::{EventFollower, bead_with_history};
use gt_core::event::BeadImported;
use gt_core::merging::RequestState;
use gt_core::{Event, EventKind, EventPayload, Outcome, Timestamp};
use gt_town::{Bell, EventFilter, Town, rigs};

use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::{JsonList, Printer, local_times, moment, short_commit};
use crate::values::instant_or_ago;

/// How often a follower reads the event counter.
const EVENT_POLL_INTERVAL: Duration = Duration::from_millis(200);
/// After so many waits without a ring the follower reads the log in any case.
const WAITS_PER_READ_MAX: usize = 50;
const LIMIT: usize = 50;

/// Show what happened
#[derive(Debug, Default, Args)]
#[command(after_help = "Examples:
  bd activity --limit 20
  bd activity --follow --json
  bd activity --since 1h --bead gt-abc")]
pub(crate) struct ActivityArgs {
    /// Go on showing what happens
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Only this bead
    #[arg(long, visible_alias = "issue", value_name = "ID")]
    pub(crate) bead: Option<String>,
    /// Only this rig
    #[arg(long)]
    pub(crate) rig: Option<String>,
    /// Only these types of events, separated by commas
    #[arg(short = 't', long = "type", value_name = "TYPE")]
    pub(crate) kinds: Vec<String>,
    /// Not before this: a time, or how long ago (1h, 2d)
    #[arg(long, value_name = "WHEN")]
    pub(crate) since: Option<String>,
    /// Everything after this event number
    #[arg(long, value_name = "NUMBER", conflicts_with = "since")]
    pub(crate) after: Option<u64>,
    /// At most this many of the past (50 unless said); 0 for all
    #[arg(short = 'n', long)]
    pub(crate) limit: Option<usize>,
}

/// Runs `bd activity` and `gt feed`, which are the same.
pub(crate) fn run(context: &CommandContext<'_>, args: &ActivityArgs) -> Result<(), CliError> {
    let town = context.store_town()?;
    let filter = filter(&town, args)?;
    let printer = context.printer;
    let mut log = EventPrinter::new(printer, args.follow);
    let limit = match (args.limit, args.since.is_some()) {
        (Some(0), _) | (None, true) => None,
        (Some(limit), _) => Some(limit),
        (None, false) => Some(LIMIT),
    };
    let mut follower = match (args.after, limit) {
        (Some(number), _) => EventFollower::after(number, filter),
        (None, None) => EventFollower::after(0, filter),
        (None, Some(limit)) => {
            // The place to go on from is taken before the past is read: nothing falls in between.
            let follower = EventFollower::from_now(&town, filter)?;
            for event in follower.past(&town, limit)? {
                log.push(&event)?;
            }
            if !args.follow {
                return log.finish();
            }
            follower
        }
    };
    // A reader that continues after a number may take a limited number of events at a time.
    let mut left = match (args.after, args.limit, args.follow) {
        (Some(_), Some(limit @ 1..), false) => limit,
        _ => usize::MAX,
    };
    let mut news_of = EventWaiter::new(context, &town, args.follow);
    loop {
        let Some(news) = news_of.next(&mut follower)? else {
            continue;
        };
        for event in news.iter().take(left) {
            log.push(event)?;
        }
        left = left.saturating_sub(news.len());
        if left == 0 {
            return log.finish();
        }
        if news.is_empty() {
            if !args.follow {
                return log.finish();
            }
            news_of.wait()?;
        }
    }
}

/// Waits for new events, and outlives a store that is away.
pub(crate) struct EventWaiter<'t> {
    printer: &'t Printer,
    town: &'t Town,
    /// Nothing without `--follow`.
    bell: Option<Bell>,
    cut_off: bool,
}

impl<'t> EventWaiter<'t> {
    pub(crate) fn new(context: &CommandContext<'t>, town: &'t Town, follow: bool) -> Self {
        let bell = follow.then(|| town.bell());
        Self { printer: context.printer, town, bell, cut_off: false }
    }

    /// The next events; nothing if the store is away and may come back. A follower is meant to stay.
    pub(crate) fn next(
        &mut self,
        follower: &mut EventFollower,
    ) -> Result<Option<Vec<Event>>, CliError> {
        match follower.next(self.town) {
            Ok(news) => {
                self.cut_off = false;
                Ok(Some(news))
            }
            Err(error) if self.bell.is_some() && error.may_pass() => {
                let error = CliError::from(error);
                if !std::mem::replace(&mut self.cut_off, true) {
                    self.printer.note(format!("note: {}; waiting for it", error.chain()));
                }
                self.printer.wait(EVENT_POLL_INTERVAL)?;
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Waits until there may be new events. In between it checks whether the reader of the output has gone.
    pub(crate) fn wait(&self) -> Result<(), CliError> {
        let Some(bell) = self.bell.as_ref().filter(|bell| bell.rings()) else {
            return self.printer.wait(EVENT_POLL_INTERVAL);
        };
        for _ in 0..WAITS_PER_READ_MAX {
            self.printer.wait(Duration::ZERO)?;
            if bell.wait(EVENT_POLL_INTERVAL) {
                break;
            }
        }
        Ok(())
    }
}

/// Prints something, and again after each change of the town until it is interrupted.
pub(super) fn redraw_on_change(
    context: &CommandContext<'_>,
    town: &Town,
    mut draw: impl FnMut() -> Result<(), CliError>,
) -> Result<(), CliError> {
    // The place in the log is taken before the first print, so that no change falls in between.
    let mut follower = EventFollower::from_now(town, EventFilter::default())?;
    let mut news_of = EventWaiter::new(context, town, true);
    draw()?;
    loop {
        match news_of.next(&mut follower)? {
            None => {}
            Some(news) if news.is_empty() => news_of.wait()?,
            Some(_) => {
                if context.printer.is_terminal() {
                    context.printer.begin_page()?;
                }
                draw()?;
            }
        }
    }
}

/// Where events go: lines for people, a JSON array, or JSON lines if there is no end to them.
struct EventPrinter<'p> {
    printer: &'p Printer,
    list: Option<JsonList<'p>>,
    empty: bool,
}

impl<'p> EventPrinter<'p> {
    fn new(printer: &'p Printer, endless: bool) -> Self {
        let list = (printer.json() && !endless).then(|| printer.list());
        Self { printer, list, empty: true }
    }

    fn push(&mut self, event: &Event) -> Result<(), CliError> {
        self.empty = false;
        match &mut self.list {
            Some(list) => list.push(&EventDocument::from(event)),
            None if self.printer.json() => self.printer.json_line(&EventDocument::from(event)),
            None => self.printer.paragraph(event_line(event)),
        }
    }

    fn finish(self) -> Result<(), CliError> {
        match self.list {
            Some(list) => list.finish(),
            None if self.empty => self.printer.done("Nothing to show"),
            None => Ok(()),
        }
    }
}

fn filter(town: &Town, args: &ActivityArgs) -> Result<EventFilter, CliError> {
    let now = town.now();
    let since = args.since.as_deref().map(|text| instant_or_ago(text, now));
    let kinds = crate::values::comma_separated(&args.kinds);
    for kind in &kinds {
        if let EventKind::Other(name) = EventKind::from_name(kind) {
            let known: Vec<&str> = EventKind::ALL.iter().map(EventKind::as_str).collect();
            return Err(CliError::request(format!(
                "\"{name}\" is not a type of event; known: {}",
                known.join(", ")
            )));
        }
    }
    Ok(EventFilter {
        bead: args.bead.as_deref().map(|input| bead_with_history(town, input)).transpose()?,
        rig: args.rig.as_deref().map(|name| rigs::slug(town, name)).transpose()?,
        kinds: kinds.iter().map(|kind| EventKind::from_name(kind)).collect(),
        since: since.transpose()?,
        ..EventFilter::default()
    })
}

/// An event as a line: `[12:34:56] ✓ gt-abc closed · Fix the login`.
pub(crate) fn event_line(event: &Event) -> String {
    let details = event.details();
    let has_failed = matches!(
        &details,
        EventPayload::Closed(closed)
            if closed.changes.outcome.as_ref().is_some_and(|outcome| outcome.new == Some(Outcome::Failed))
    );
    let symbol = match event.kind {
        EventKind::Closed if has_failed => "✗",
        EventKind::Created | EventKind::Imported | EventKind::RigAdded | EventKind::Scheduled => {
            "+"
        }
        EventKind::Closed | EventKind::RunDone | EventKind::StepDone | EventKind::Landed => "✓",
        EventKind::HelpWanted | EventKind::RunSilent | EventKind::RunBlocked => "!",
        EventKind::StartFailed
        | EventKind::RunFailed
        | EventKind::RunLost
        | EventKind::CircuitBroken
        | EventKind::Quarantined
        | EventKind::Parked
        | EventKind::OverLimit
        | EventKind::Escalated => "✗",
        EventKind::Deleted
        | EventKind::RigRemoved
        | EventKind::Unscheduled
        | EventKind::RunCancelled => "⊘",
        _ => "→",
    };
    let subject = match (&event.bead, &event.rig) {
        (Some(bead), _) => bead.to_string(),
        (None, Some(rig)) => rig.to_string(),
        (None, None) => "town".to_owned(),
    };
    let detail = detail(event, &details);
    let detail = if detail.is_empty() { detail } else { format!(" · {detail}") };
    let action = if has_failed {
        "closed as failed".to_owned()
    } else {
        event.kind.as_str().replace('_', " ")
    };
    format!("[{}] {symbol} {subject} {action}{detail} ({})", moment(event.at), event.actor)
}

fn detail(event: &Event, details: &EventPayload) -> String {
    let run = event.run.as_deref().unwrap_or_default();
    let time =
        |at: Option<Timestamp>| at.map(|at| local_times(&at.to_string())).unwrap_or_default();
    match details {
        EventPayload::LabelAdded(label) | EventPayload::LabelRemoved(label) => label.label.clone(),
        EventPayload::DependencyAdded(edge)
        | EventPayload::DependencyRemoved(edge)
        | EventPayload::DependencyChanged(edge) => {
            format!("{} ({})", edge.depends_on_id, edge.r#type)
        }
        EventPayload::SettingChanged(setting) => {
            format!("{} = {}", setting.key, setting.new.as_deref().unwrap_or_default())
        }
        EventPayload::RigChanged(changed) => changed.new.clone(),
        EventPayload::Scheduled(opened) => joined(&[&opened.context, &opened.origin]),
        EventPayload::RetryNow(named) => named.context.clone(),
        EventPayload::Unscheduled(ended)
        | EventPayload::CircuitBroken(ended)
        | EventPayload::Quarantined(ended) => {
            let why = local_times(ended.why.as_deref().unwrap_or_default());
            joined(&[&ended.context, &ended.reason, &why])
        }
        EventPayload::RunStarting(taken)
        | EventPayload::Dispatched(taken)
        | EventPayload::RunUnblocked(taken) => joined(&[run, &taken.agent]),
        EventPayload::HandedOver(begun) => joined(&[run, &begun.why]),
        EventPayload::StartFailed(ended)
        | EventPayload::RunDone(ended)
        | EventPayload::RunFailed(ended)
        | EventPayload::RunLost(ended)
        | EventPayload::RunCancelled(ended) => joined(&[run, &local_times(&ended.reason)]),
        EventPayload::Escalated(_) => run.to_owned(),
        EventPayload::RunUsed(used) => {
            let tokens = used.tokens.map(|tokens| format!("{tokens} tokens")).unwrap_or_default();
            let cost = used.cost.as_ref().map(|cost| format!("${cost}")).unwrap_or_default();
            joined(&[run, &tokens, &cost, &used.notes.join("; ")])
        }
        EventPayload::OverLimit(over) => joined(&[run, &over.limit]),
        EventPayload::RunSilent(silent) | EventPayload::RunGoesOn(silent) => {
            joined(&[run, &time(Some(silent.since))])
        }
        EventPayload::RunBlocked(waits) => joined(&[run, &waits.pulled_by, &waits.why]),
        EventPayload::TokenChanged(token) => joined(&[&token.token, &token.name, &token.change]),
        EventPayload::HostChanged(host) => joined(&[&host.name, &host.new, &host.runs.join(", ")]),
        EventPayload::StepDone(step) => joined(&[run, &step.title]),
        EventPayload::MessageSent(message)
        | EventPayload::MessageDelivered(message)
        | EventPayload::MessageSeen(message)
        | EventPayload::HelpWanted(message) => joined(&[
            &message.message,
            &format!("{} → {}", message.from, message.to),
            &message.subject,
        ]),
        EventPayload::WorkAccepted(work) => joined(&[run, short_commit(&work.commit)]),
        EventPayload::Rescued(work) => joined(&[run, short_commit(&work.commit)]),
        EventPayload::Landed(work) => joined(&[run, short_commit(&work.commit), &work.branch]),
        EventPayload::RequestOpened(change) | EventPayload::RequestChanged(change) => {
            let held = change.held.as_deref().unwrap_or_default().replace('_', " ");
            let is_landed = change.new == RequestState::Landed.as_str();
            let commit = if is_landed { short_commit(&change.commit) } else { "" };
            joined(&[&change.request, &change.new, &held, &change.target, commit, &change.detail])
        }
        EventPayload::Reviewed(review) => {
            joined(&[&review.request, &review.decision, &review.file, &review.body])
        }
        EventPayload::QueueChanged(queue) => {
            let state = match (queue.paused, queue.red_check.as_str()) {
                (true, _) => "paused".to_owned(),
                (false, "") => "goes on".to_owned(),
                (false, check) => format!("red: {check} fails"),
            };
            joined(&[&queue.target, &state, short_commit(&queue.red_commit)])
        }
        EventPayload::TreeMoved(tree)
        | EventPayload::TreeRestored(tree)
        | EventPayload::TreePurged(tree) => joined(&[&tree.polecat, &tree.path, &tree.reason]),
        EventPayload::TreeDue(tree) => {
            joined(&[&tree.polecat, &tree.path, &time(Some(tree.until))])
        }
        EventPayload::Parked(park) | EventPayload::Limited(park) => {
            joined(&[&format!("{} {}", park.kind, park.name), &time(park.until), &park.reason])
        }
        EventPayload::Unparked(park) => format!("{} {}", park.kind, park.name),
        EventPayload::AccountChanged(account) => joined(&[&account.account, &account.change]),
        EventPayload::StatusChanged(changed) => {
            let status = changed.changes.status.as_ref();
            let status = status.map(|status| status.new.as_str()).unwrap_or_default();
            format!("{status} · {}", changed.title)
        }
        EventPayload::Updated(changed)
        | EventPayload::Claimed(changed)
        | EventPayload::Closed(changed)
        | EventPayload::Reopened(changed)
        | EventPayload::HookReleased(changed)
        | EventPayload::Imported(BeadImported::Changed(changed)) => changed.title.clone(),
        EventPayload::Created(created) | EventPayload::Imported(BeadImported::New(created)) => {
            created.title.clone()
        }
        EventPayload::Deleted(deleted) => deleted.title.clone(),
        EventPayload::Unblocked(named) => named.title.clone(),
        EventPayload::Commented(comment) => comment.title.clone(),
        EventPayload::ConvoyLanded(totals) => totals.title.clone(),
        EventPayload::Paused(pause) | EventPayload::Resumed(pause) => {
            pause.title.clone().unwrap_or_default()
        }
        EventPayload::RigAdded(_)
        | EventPayload::RigRemoved(_)
        | EventPayload::MessagesPurged(_)
        | EventPayload::EventsPurged(_) => String::new(),
        EventPayload::Other { json, .. } => json.string_field("title").unwrap_or_default(),
    }
}

/// The parts that say anything.
fn joined(parts: &[&str]) -> String {
    let said: Vec<&str> = parts.iter().copied().filter(|part| !part.is_empty()).collect();
    said.join(" · ")
}
