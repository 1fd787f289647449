//! `gt status`.

use clap::Args;
use gt_core::{Event, Message, Rig};
use gt_operations::convoys::{self, Overview};
use gt_operations::daemon::{self, DaemonAbsence};
use gt_operations::queue::QueueStatus;
use gt_operations::recovery::{self, Need};
use gt_operations::worker::RunningRun;
use gt_operations::{
    EventFilter, OperationError, RigCounts, Statistics, Town, UnsentNotices, beads, events,
    messages, outbox, queue, rigs, worker,
};
use gt_records::{ObjectWriter, event_json};

use super::convoy::write_estimate;
use super::daemon::{print_daemon_absence, write_daemon_absence};
use super::mail::{print_asking, write_message};
use super::prime::{print_running, write_running};
use super::scheduler::{budget_line, parked_line, write_budgets, write_parked};
use super::watch::{Next, watch};
use crate::bd::event_line;
use crate::context::Context;
use crate::error::CliError;
use crate::output::{Cell, Printer, Table, local_times, plural, roughly};

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
struct Shown {
    numbers: Statistics,
    ready: u64,
    rigs: Vec<(Rig, RigCounts)>,
    scheduler: QueueStatus,
    daemon_absence: Option<DaemonAbsence>,
    convoys: Vec<Overview>,
    /// How many convoys are under way.
    under_way: usize,
    recent: Vec<Event>,
    notices: UnsentNotices,
    running: Vec<RunningRun>,
    needs_you: Vec<Message>,
    needs: Vec<Need>,
}

impl Shown {
    /// Looks at a town, and at so many of its convoys.
    fn of(town: &Town, convoys: usize) -> Result<Self, OperationError> {
        let (mut convoys, under_way) = convoys::overview(town, convoys)?;
        let scheduler = queue::status(town)?;
        let daemon_absence = daemon::absence(town, &scheduler);
        if daemon_absence.is_some() {
            for convoy in &mut convoys {
                convoy.estimate = None;
            }
        }
        Ok(Self {
            numbers: beads::statistics(town)?,
            ready: beads::ready_count(town)?,
            rigs: rigs::list(town)?,
            scheduler,
            daemon_absence,
            convoys,
            under_way,
            recent: events::latest(town, &EventFilter::default(), EVENTS_SHOWN)?,
            notices: outbox::unsent(town)?,
            running: worker::running(town)?,
            needs_you: messages::needs_you(town)?,
            needs: recovery::needs_you(town)?,
        })
    }

    fn active(&self) -> i64 {
        self.numbers.with_status("in_progress") + self.numbers.with_status("hooked")
    }
}

pub(super) fn run(context: &Context<'_>, args: &StatusArgs) -> Result<(), CliError> {
    let town = context.town()?;
    let printer = context.printer;
    let look = || Shown::of(&town, if printer.json() { usize::MAX } else { CONVOYS_SHOWN });
    if !args.watch {
        let shown = look()?;
        return if printer.json() {
            printer.object(&json(&town, &shown))
        } else {
            print(printer, &town, &shown)
        };
    }
    // Whatever happens in the town is shown, so it is different each time.
    watch(
        context,
        &town,
        look,
        |_, _| false,
        |shown| {
            if printer.json() {
                printer.json_line(&json(&town, shown))?;
            } else {
                print(printer, &town, shown)?;
                if !printer.is_terminal() {
                    printer.line("")?;
                }
            }
            Ok(Next::More)
        },
    )
}

fn json(town: &Town, shown: &Shown) -> String {
    let Shown { numbers, scheduler, .. } = shown;
    let mut out = String::new();
    let mut object = ObjectWriter::new(&mut out);
    write_daemon_absence(&mut object, shown.daemon_absence);
    object.text("town", &town.root().display().to_string());
    object.object("beads", |object| {
        object.number("total", numbers.total());
        for (status, count) in &numbers.by_status {
            object.number(status, *count);
        }
    });
    object.count("ready", shown.ready);
    object.number("waiting", numbers.blocked);
    object.number("active", shown.active());
    object.object("notices", |object| {
        object.count("waiting", shown.notices.waiting);
        object.count("given_up", shown.notices.given_up);
    });
    object.object("scheduler", |object| {
        object.flag("paused", scheduler.paused.is_some());
        object.count("queued_total", scheduler.queued);
        object.count("queued_ready", scheduler.ready);
        object.count("active_polecats", scheduler.live.into());
        write_parked(object, &scheduler.parked);
        write_budgets(object, &scheduler.budgets);
    });
    write_needs(&mut object, shown);
    write_running(&mut object, &shown.running);
    object.array("convoys", |array| {
        shown.convoys.iter().for_each(|one| array.object(|object| write_overview(object, one)));
    });
    write_rigs(&mut object, &shown.rigs);
    object.array("recent_events", |array| {
        for event in &shown.recent {
            array.raw(&event_json(event));
        }
    });
    object.finish();
    out
}

fn write_needs(object: &mut ObjectWriter<'_>, shown: &Shown) {
    object.array("needs_you", |array| {
        for need in &shown.needs {
            array.object(|object| write_need(object, need));
        }
        for message in &shown.needs_you {
            array.object(|object| {
                object.text("code", "help-wanted");
                write_message(object, message);
            });
        }
    });
}

fn write_rigs(object: &mut ObjectWriter<'_>, rigs: &[(Rig, RigCounts)]) {
    object.array("rigs", |array| {
        for (rig, counts) in rigs {
            array.object(|object| {
                object.text("name", rig.slug.as_str());
                object.text("prefix", rig.prefix.as_str());
                object.text("state", rig.state.as_str());
                object.object("beads", |object| {
                    for (status, count) in counts {
                        object.number(status, *count);
                    }
                });
            });
        }
    });
}

/// A convoy in numbers, for programs.
fn write_overview(object: &mut ObjectWriter<'_>, one: &Overview) {
    let members = one.convoy.members;
    object.text("id", one.convoy.bead.id.as_str());
    object.text("title", one.convoy.bead.title.as_str());
    object.count("completed", members.completed());
    object.count("total", members.total);
    object.count("failed", members.failed);
    object.count("running", one.running);
    object.count("queued", one.queued);
    object.count("blocked", one.blocked);
    if let Some(estimate) = &one.estimate {
        write_estimate(object, estimate, one.eta());
    }
}

fn print(printer: &Printer, town: &Town, shown: &Shown) -> Result<(), CliError> {
    let numbers = &shown.numbers;
    print_daemon_absence(printer, shown.daemon_absence)?;
    printer.line(format!("Town {}", town.root().display()))?;
    lead(printer, &shown.needs, &shown.needs_you)?;
    printer.line(format!(
        "{}: {} ready, {} in progress, {} waiting, {} closed",
        plural(u64::try_from(numbers.total()).unwrap_or(0), "bead"),
        shown.ready,
        shown.active(),
        numbers.blocked,
        numbers.with_status("closed")
    ))?;
    print_scheduler(printer, &shown.scheduler)?;
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
    if !shown.recent.is_empty() {
        printer.line("")?;
        printer.line("Lately")?;
        shown.recent.iter().try_for_each(|event| printer.line(event_line(event)))?;
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
        printer.line(parked_line(parked))?;
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
fn print_convoys(printer: &Printer, shown: &Shown) -> Result<(), CliError> {
    if shown.convoys.is_empty() {
        return Ok(());
    }
    printer.line("")?;
    printer.heading("Convoys", "")?;
    let mut table = Table::new();
    for one in &shown.convoys {
        let members = one.convoy.members;
        let counts = [
            (members.failed, "failed"),
            (one.running, "running"),
            (one.queued, "queued"),
            (one.blocked, "blocked"),
        ];
        let counts: Vec<String> = counts
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{what}: {count}"))
            .collect();
        let eta = one.estimate.map(|estimate| format!("about {}", roughly(estimate.remaining)));
        table.row(vec![
            Cell::bold(format!("  {}", one.convoy.bead.id)),
            Cell::new(format!("{}/{} done", members.completed(), members.total)),
            Cell::new(counts.join(", ")),
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

/// What waits for a person comes before everything else.
fn lead(printer: &Printer, needs: &[Need], asking: &[Message]) -> Result<(), CliError> {
    if needs.is_empty() && asking.is_empty() {
        return Ok(());
    }
    printer.line("")?;
    print_needs(printer, needs)?;
    if needs.is_empty() {
        printer.heading("Needs you", "")?;
    }
    print_asking(printer, asking)?;
    printer.line("")
}

/// Something that waits for a person, for programs.
pub(super) fn write_need(object: &mut ObjectWriter<'_>, need: &Need) {
    object.text("code", need.code());
    object.text("what", &need.what());
    object.text("remedy", &need.remedy());
}

/// What waits for a person.
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
