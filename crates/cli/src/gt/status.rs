//! `gt status`.

use clap::Args;
use gt_api::{
    ConvoyOverviewDocument, EventDocument, InboxItemDocument, NoticeCountsDocument,
    RigCountsDocument, SpentDocument, TownSchedulerDocument, TownStatusDocument,
};
use gt_beads::{beads, events, outbox};
use gt_core::cost::Spent;
use gt_core::decide::HostState;
use gt_core::inbox::InboxItem;
use gt_core::{Event, Rig};
use gt_daemon::daemon::{self, DaemonAbsence};
use gt_daemon::inbox::inbox_with;
use gt_daemon::views::{absence_document, estimate_document, parked_documents};
use gt_execution::worker;
use gt_execution::worker::RunningRun;
use gt_scheduling::convoy_planning::ConvoyOverview;
use gt_scheduling::costs::spent_lately;
use gt_scheduling::fleet::{self, FleetHost};
use gt_scheduling::needs::Need;
use gt_scheduling::queue;
use gt_scheduling::queue::QueueStatus;
use gt_town::{EventFilter, OperationError, RigCounts, Statistics, Town, UnsentNotices, rigs};

use super::convoy::about_remaining;
use super::daemon::print_daemon_absence;
use super::deck::DeckStatus;
use super::host::{host_document, host_table};
use super::inbox::print_inbox_lines;
use super::prime::{print_running, running_documents};
use super::scheduler::{budget_documents, budget_line, parked_line};
use super::watch::{WatchStep, watch};
use crate::bd::event_line;
use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::{Cell, Printer, Table, local_times, plural, progress_blocks};

const EVENTS_SHOWN: usize = 5;
const NEEDS_SHOWN: usize = 10;
const CONVOYS_SHOWN: usize = 10;

/// Show how the town stands
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gt status\n  gt status --watch\n  gt status --json")]
pub(super) struct StatusArgs {
    /// Go on showing it as it changes, until interrupted
    #[arg(short, long)]
    watch: bool,
}

/// Everything that is shown of a town.
struct TownStatusFacts {
    numbers: Statistics,
    ready: u64,
    rigs: Vec<(Rig, RigCounts)>,
    scheduler: QueueStatus,
    daemon_absence: Option<DaemonAbsence>,
    convoys: Vec<ConvoyOverview>,
    /// How many convoys are under way.
    under_way: usize,
    recent: Vec<Event>,
    notices: UnsentNotices,
    running: Vec<RunningRun>,
    spent: Spent,
    inbox: Vec<InboxItem>,
    deck: DeckStatus,
    /// The hosts of the town, if there is more than one.
    hosts: Vec<FleetHost>,
}

impl TownStatusFacts {
    /// Looks at a town, and at so many of its convoys.
    fn of(town: &Town, convoys: usize) -> Result<Self, OperationError> {
        let (mut convoys, under_way) = gt_scheduling::convoy_planning::overview(town, convoys)?;
        let scheduler = queue::status(town)?;
        let daemon_absence = daemon::absence(town, &scheduler)?;
        if daemon_absence.is_some() {
            for convoy in &mut convoys {
                convoy.estimate = None;
            }
        }
        Ok(Self {
            numbers: beads::statistics(town)?,
            ready: beads::ready_count(town)?,
            rigs: rigs::list(town)?,
            inbox: inbox_with(town, &scheduler)?,
            scheduler,
            daemon_absence,
            convoys,
            under_way,
            recent: events::latest(town, &EventFilter::default(), EVENTS_SHOWN)?,
            notices: outbox::unsent(town)?,
            running: worker::running(town)?,
            spent: spent_lately(town)?,
            deck: DeckStatus::of(town)?,
            hosts: hosts_to_show(town)?,
        })
    }

    fn active(&self) -> i64 {
        self.numbers.with_status("in_progress") + self.numbers.with_status("hooked")
    }
}

pub(super) fn run(context: &CommandContext<'_>, args: &StatusArgs) -> Result<(), CliError> {
    let town = context.town()?;
    let printer = context.printer;
    let look =
        || TownStatusFacts::of(&town, if printer.json() { usize::MAX } else { CONVOYS_SHOWN });
    if !args.watch {
        let shown = look()?;
        return if printer.json() {
            printer.object(&document(&town, &shown))
        } else {
            print(printer, &town, &shown)
        };
    }
    // Every event of the town may change the page, so no two pages count as the same.
    watch(
        context,
        &town,
        look,
        |_, _| false,
        |shown| {
            if printer.json() {
                printer.json_line(&document(&town, shown))?;
            } else {
                print(printer, &town, shown)?;
                if !printer.is_terminal() {
                    printer.line("")?;
                }
            }
            Ok(WatchStep::More)
        },
    )
}

/// Goes on showing how the town stands, until interrupted.
pub(super) fn watch_status(context: &CommandContext<'_>) -> Result<(), CliError> {
    run(context, &StatusArgs { watch: true })
}

fn document(town: &Town, shown: &TownStatusFacts) -> TownStatusDocument {
    let TownStatusFacts { numbers, scheduler, .. } = shown;
    let total = std::iter::once(("total".to_owned(), numbers.total()));
    let by_status = numbers.by_status.iter().map(|(status, count)| (status.clone(), *count));
    let rigs = shown.rigs.iter().map(|(rig, counts)| RigCountsDocument {
        name: rig.slug.to_string(),
        prefix: rig.prefix.to_string(),
        state: rig.state.as_str().to_owned(),
        beads: counts.iter().cloned().collect(),
    });
    TownStatusDocument {
        daemon_absence: absence_document(shown.daemon_absence),
        town: town.root().display().to_string(),
        deck: shown.deck.document(),
        beads: total.chain(by_status).collect(),
        ready: shown.ready,
        waiting: numbers.blocked,
        active: shown.active(),
        notices: NoticeCountsDocument {
            waiting: shown.notices.waiting,
            given_up: shown.notices.given_up,
        },
        scheduler: TownSchedulerDocument {
            paused: scheduler.paused.is_some(),
            queued_total: scheduler.queued,
            queued_ready: scheduler.ready,
            active_polecats: scheduler.live.into(),
            parked: parked_documents(&scheduler.parked),
            budgets: budget_documents(&scheduler.budgets),
        },
        needs_you: shown.inbox.iter().map(InboxItemDocument::from).collect(),
        running: running_documents(&shown.running),
        spent_24h: SpentDocument::from(&shown.spent),
        convoys: shown.convoys.iter().map(overview_document).collect(),
        rigs: rigs.collect(),
        hosts: shown.hosts.iter().map(|host| host_document(host, &[])).collect(),
        recent_events: shown.recent.iter().map(EventDocument::from).collect(),
    }
}

/// A convoy in numbers, for programs.
fn overview_document(one: &ConvoyOverview) -> ConvoyOverviewDocument {
    let members = one.convoy.members;
    ConvoyOverviewDocument {
        id: one.convoy.bead.id.to_string(),
        title: one.convoy.bead.title.to_string(),
        completed: members.completed(),
        total: members.total,
        failed: members.failed,
        running: one.running,
        queued: one.queued,
        blocked: one.blocked,
        estimate: one.estimate.as_ref().map(|estimate| estimate_document(estimate, one.eta())),
    }
}

fn print(printer: &Printer, town: &Town, shown: &TownStatusFacts) -> Result<(), CliError> {
    let numbers = &shown.numbers;
    print_daemon_absence(printer, shown.daemon_absence)?;
    printer.line(format!("Town {}", town.root().display()))?;
    if let Some(line) = shown.deck.line() {
        printer.line(line)?;
    }
    print_inbox_lines(printer, &shown.inbox)?;
    let closed = numbers.with_status("closed");
    let ready = i64::try_from(shown.ready).unwrap_or(i64::MAX);
    let counted = ready.saturating_add(shown.active()) + numbers.blocked + closed;
    // Convoys and other containers are beads, too.
    let rest = match numbers.total() - counted {
        rest if rest > 0 => format!(", {rest} deferred, held or no work"),
        _ => String::new(),
    };
    printer.paragraph(format!(
        "{}: {} ready, {} in progress, {} waiting, {closed} closed{rest}",
        plural(u64::try_from(numbers.total()).unwrap_or(0), "bead"),
        shown.ready,
        shown.active(),
        numbers.blocked,
    ))?;
    print_scheduler(printer, &shown.scheduler)?;
    if !shown.spent.is_nothing() {
        printer.line(format!("Spent in 24 hours: {} (gt cost)", shown.spent))?;
    }
    let notices = &shown.notices;
    if notices.waiting + notices.given_up > 0 {
        printer.line(format!(
            "Notices: {} waiting to be sent, {} given up (gt outbox list)",
            notices.waiting, notices.given_up
        ))?;
    }
    print_running(printer, town, &shown.running)?;
    print_convoys(printer, shown)?;
    print_rigs(printer, &shown.rigs)?;
    print_hosts(printer, &shown.hosts)?;
    if !shown.recent.is_empty() {
        printer.line("")?;
        printer.line("Recent events")?;
        shown.recent.iter().try_for_each(|event| printer.paragraph(event_line(event)))?;
    }
    Ok(())
}

fn print_scheduler(printer: &Printer, scheduler: &QueueStatus) -> Result<(), CliError> {
    let paused = scheduler.paused.as_ref().map(|pause| format!(", paused by {}", pause.by));
    printer.line(format!(
        "Scheduler: {} queued, {} ready, {} polecats running{}",
        scheduler.queued,
        scheduler.ready,
        super::scheduler::capacity(scheduler.live, scheduler.cap),
        paused.unwrap_or_default()
    ))?;
    for parked in scheduler.parked.iter().filter(|parked| parked.park.is_limit()) {
        printer.paragraph(parked_line(parked))?;
    }
    for budget in &scheduler.budgets {
        printer.line(budget_line(budget))?;
    }
    for reason in &scheduler.short {
        printer.line(format!("Waits for {}", local_times(&reason.to_string())))?;
    }
    Ok(())
}

/// The convoys that are under way.
fn print_convoys(printer: &Printer, shown: &TownStatusFacts) -> Result<(), CliError> {
    if shown.convoys.is_empty() {
        return Ok(());
    }
    printer.line("")?;
    printer.heading("Convoys", "")?;
    let mut table = Table::new().droppable_at(&[3]);
    for one in &shown.convoys {
        let members = one.convoy.members;
        let eta = one.estimate.as_ref().map(about_remaining);
        table.row(vec![
            Cell::bold(format!("  {}", one.convoy.bead.id)),
            Cell::new(done_words(printer, members.completed(), members.failed, members.total)),
            Cell::new(undone_words(one)),
            Cell::new(eta.unwrap_or_default()),
            Cell::new(one.convoy.bead.title.as_str()),
        ]);
    }
    printer.table(table)?;
    match shown.under_way.saturating_sub(shown.convoys.len()) {
        0 => Ok(()),
        more => printer.line(format!("  and {more} more (gt convoy list)")),
    }
}

/// How much of a convoy is done; on a terminal with a bar.
pub(super) fn done_words(printer: &Printer, done: u64, failed: u64, total: u64) -> String {
    match printer.width() {
        Some(_) => format!("{} done", progress_blocks(done, failed, total)),
        None => format!("{done}/{total} done"),
    }
}

/// The members of a convoy that are not done: how many failed, run, and wait.
pub(super) fn undone_words(one: &ConvoyOverview) -> String {
    let counts = [
        (one.convoy.members.failed, "failed"),
        (one.running, "running"),
        (one.queued, "queued"),
        (one.blocked, "blocked"),
    ];
    let counts = counts.into_iter().filter(|(count, _)| *count > 0);
    counts.map(|(count, what)| format!("{what}: {count}")).collect::<Vec<_>>().join(", ")
}

fn print_rigs(printer: &Printer, rigs: &[(Rig, RigCounts)]) -> Result<(), CliError> {
    if rigs.is_empty() {
        return printer.line("No rigs yet; add one with gt rig add <name> <git-url-or-path>");
    }
    let mut table = Table::with_header(&["RIG", "PREFIX", "STATE", "BEADS NOT CLOSED"]);
    for (rig, counts) in rigs {
        let open = counts.iter().filter(|(status, _)| status != "closed");
        let open: i64 = open.map(|(_, count)| count).sum();
        table.row(vec![
            Cell::new(rig.slug.as_str()),
            Cell::new(rig.prefix.as_str()),
            Cell::new(rig.state.as_str()),
            Cell::new(open.to_string()),
        ]);
    }
    printer.line("")?;
    printer.table(table)
}

/// The hosts that belong to the town, if there is more than one. A host that was removed sees that itself.
fn hosts_to_show(town: &Town) -> Result<Vec<FleetHost>, OperationError> {
    let mut hosts = fleet::list(town)?;
    hosts.retain(|host| host.is_here || host.record.state() != HostState::Removed);
    Ok(if hosts.len() > 1 { hosts } else { Vec::new() })
}

fn print_hosts(printer: &Printer, hosts: &[FleetHost]) -> Result<(), CliError> {
    if hosts.is_empty() {
        return Ok(());
    }
    printer.line("")?;
    printer.table(host_table(hosts))
}

/// Prints the needs that wait for a person.
pub(super) fn print_needs(printer: &Printer, needs: &[Need]) -> Result<(), CliError> {
    if needs.is_empty() {
        return Ok(());
    }
    printer.heading("Needs you", "")?;
    for need in needs.iter().take(NEEDS_SHOWN) {
        printer.line(format!("  {}; {}", need.what(), need.remedy()))?;
    }
    match needs.len().saturating_sub(NEEDS_SHOWN) {
        0 => Ok(()),
        more => printer.line(format!("  and {more} more (gt status --json)")),
    }
}
