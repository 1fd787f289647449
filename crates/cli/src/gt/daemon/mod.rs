//! `gt daemon`, `gt up` and `gt down`.

mod absence;
mod install;
mod logs;
mod status;

pub(super) use absence::{note_daemon_absence, print_daemon_absence};

use std::path::Path;
use std::sync::Arc;

use clap::{Args, Subcommand};
use gt_api::{DaemonStartedDocument, DaemonStoppedDocument};
use gt_core::decide::Right;
use gt_daemon::daemon::{
    self, DaemonEnvironment, DaemonReport, DaemonStart, DaemonStop, ServiceLog,
};
use gt_execution::runs::CallServer;
use gt_scheduling::queue;
use gt_town::identity::CHECK;
use gt_town::{Environment, Town, hosts};

use crate::context::{CommandContext, this_program};
use crate::error::CliError;
use crate::output::{Printer, local_times, plural};
use crate::served::CommandService;

/// Run what keeps the town going by itself
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt daemon start                       # the same as gt up
  gt daemon status --json
  gt daemon logs --follow
  gt daemon install                     # as a service of systemd")]
pub(super) struct DaemonArgs {
    #[command(subcommand)]
    verb: DaemonVerb,
}

#[derive(Debug, Subcommand)]
enum DaemonVerb {
    /// Run the daemon in the foreground until it is stopped
    ///
    /// Says one line when it has looked at everything once. TERM and one INT stop it when it has ended what it is at, a
    /// second INT at once; HUP makes it open its log anew and look at everything. Workers go on in any case.
    #[command(after_help = "Example:\n  gt daemon run")]
    Run {
        /// Leave the terminal and the session of the process that starts it
        #[arg(long, hide = true)]
        detached: bool,
    },
    /// Start it beside everything else, and wait until it has looked at everything once
    #[command(after_help = "Example:\n  gt daemon start")]
    Start,
    /// Ask it to end, and wait until it has; workers go on
    #[command(after_help = "Example:\n  gt daemon stop")]
    Stop,
    Status(status::StatusArgs),
    Logs(logs::LogsArgs),
    Install(install::InstallArgs),
}

/// Start the daemon, which starts ready beads by itself
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gt up\n  gt daemon status                      # how it is")]
pub(super) struct UpArgs {}

/// Stop the daemon; workers go on
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  gt down\n  gt run cancel gt-abc                  # ends a worker"
)]
pub(super) struct DownArgs {}

pub(super) fn run(context: &CommandContext<'_>, args: &DaemonArgs) -> Result<(), CliError> {
    match &args.verb {
        DaemonVerb::Run { detached } => be_daemon(context, *detached),
        DaemonVerb::Start => up(context),
        DaemonVerb::Stop => down(context),
        DaemonVerb::Status(_) => status::run(context),
        DaemonVerb::Logs(args) => logs::run(context, args),
        DaemonVerb::Install(args) => install::run(context, args),
    }
}

/// Refuses this change to a check, and to a worker that may not steer the queue. A daemon acts for the town and not for them.
pub(super) fn refuse_to_workers(
    context: &CommandContext<'_>,
    change: &str,
) -> Result<(), CliError> {
    if context.environment.may_be_worker() || context.environment.get(CHECK).is_some() {
        context.town()?.require_right(Right::Queue, change)?;
    }
    Ok(())
}

fn be_daemon(context: &CommandContext<'_>, detached: bool) -> Result<(), CliError> {
    refuse_to_workers(context, "a start of the daemon")?;
    if detached {
        daemon::detach().map_err(|error| {
            CliError::request(format!("cannot leave the session of the calling process: {error}"))
        })?;
    }
    let (town, program) = (context.town_of_worker()?, this_program()?);
    let log = daemon::log_path(town.root());
    let around = DaemonEnvironment {
        program: &program,
        version: env!("CARGO_PKG_VERSION"),
        environment: &context.environment,
        // A server that cannot start does not stop the daemon; the log has the reason.
        beside: &|town, tell, settings_state| {
            let calls = serve_calls(&town, &context.environment, &tell);
            Box::new((calls, gt_server::SideServer::start(town, tell, settings_state)))
        },
    };
    let printer = context.printer;
    daemon::run(town, &around, &mut |report: &DaemonReport| {
        // The process that started the daemon may have closed the pipe.
        let _ = printer
            .line(format!(
                "The daemon is ready (process {}); it logs to {}",
                report.pid,
                log.display()
            ))
            .and_then(|()| printer.flush());
    })?;
    Ok(())
}

/// Carries out the commands of workers for as long as the result is kept. Without it the supervisors of their runs do.
fn serve_calls(town: &Town, environment: &Environment, tell: &ServiceLog) -> Option<CallServer> {
    let service = CommandService::new(town, environment);
    let path = town.calls_socket();
    let opened = CallServer::open(&path, Arc::new(service));
    if let Err(error) = &opened {
        tell("no socket for workers", &format!("{}: {error}", path.display()));
    }
    opened.ok()
}

pub(super) fn up(context: &CommandContext<'_>) -> Result<(), CliError> {
    refuse_to_workers(context, "a start of the daemon")?;
    let root = context.root()?;
    let started = daemon::start(&root, &this_program()?)?;
    let log = daemon::log_path(&root);
    let (is_new, pid) = match &started {
        DaemonStart::Ready { pid } => (true, Some(*pid)),
        DaemonStart::Beginning => (true, None),
        DaemonStart::Already { pid, .. } => (false, *pid),
    };
    let printer = context.printer;
    if printer.json() {
        return printer.object(&DaemonStartedDocument {
            started: is_new,
            ready: matches!(started, DaemonStart::Ready { .. }),
            pid: pid.map(Into::into),
            log: log.display().to_string(),
        });
    }
    print_started(printer, &started, &log)?;
    // The daemon runs whether or not the store can be asked here.
    for remark in
        context.town().ok().and_then(|town| hosts::remarks(&town).ok()).unwrap_or_default()
    {
        printer.note(format!("{}: {}", remark.told, remark.remedy));
    }
    Ok(())
}

/// Says whether the daemon runs now.
pub(super) fn print_started(
    printer: &Printer,
    started: &DaemonStart,
    log: &Path,
) -> Result<(), CliError> {
    match started {
        DaemonStart::Ready { pid } => {
            printer.done(format!("✓ The daemon runs (process {pid}); it logs to {}", log.display()))
        }
        DaemonStart::Beginning => printer.done(format!(
            "The daemon runs and is still looking at everything for the first time; gt daemon status says how it is, \
             and it logs to {}",
            log.display()
        )),
        DaemonStart::Already { pid, since } => {
            printer.done(format!("The daemon already runs{}", who(*pid, since)))
        }
    }
}

/// ` (process 12, since …)`, as far as that is known.
fn who(pid: Option<u32>, since: &str) -> String {
    pid.map(|pid| format!(" (process {pid}, since {})", local_times(since))).unwrap_or_default()
}

pub(super) fn down(context: &CommandContext<'_>) -> Result<(), CliError> {
    refuse_to_workers(context, "an end of the daemon")?;
    let stopped = daemon::stop(&context.root()?)?;
    // A store that cannot be asked does not keep the daemon from stopping.
    let live = context.town().ok().and_then(|town| Some(queue::status(&town).ok()?.live));
    let printer = context.printer;
    if printer.json() {
        let pid = match stopped {
            DaemonStop::Ended { pid } => Some(pid.into()),
            DaemonStop::NotRunning => None,
        };
        return printer.object(&DaemonStoppedDocument {
            stopped: pid.is_some(),
            pid,
            live_runs: live.map(Into::into),
        });
    }
    match stopped {
        DaemonStop::NotRunning => printer.done("No daemon runs")?,
        DaemonStop::Ended { pid } => {
            printer.done(format!("✓ The daemon (process {pid}) has ended"))?;
        }
    }
    match live {
        None | Some(0) => Ok(()),
        Some(live) => printer.done(format!(
            "{} on; gt run list shows what runs, gt up starts what comes next",
            if live == 1 {
                "1 worker goes".to_owned()
            } else {
                format!("{} go", plural(live.into(), "worker"))
            }
        )),
    }
}
