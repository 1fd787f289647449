//! `gt host`.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Subcommand};
use gt_api::{AdoptedHostDocument, FleetHostDocument, HostDocument};
use gt_core::decide::HostState;
use gt_core::schedule::RunId;
use gt_daemon::host_setup::{self, DaemonService, JoinOrder, NewHost};
use gt_scheduling::fleet::{self, FleetHost};
use gt_town::{SystemClock, Town, hosts};

use super::daemon::refuse_to_workers;
use crate::context::{CommandContext, this_program};
use crate::error::CliError;
use crate::output::{Cell, Printer, Table, plural, span};
use crate::served;

/// The hosts that work on this town
#[derive(Debug, Args)]
pub(super) struct HostArgs {
    #[command(subcommand)]
    verb: HostVerb,
}

#[derive(Debug, Subcommand)]
enum HostVerb {
    /// List the hosts of the town, with their states and runs
    #[command(after_help = "Examples:\n  gt host list\n  gt host list --all --json")]
    List {
        /// List the removed ones too
        #[arg(long)]
        all: bool,
    },
    /// Show a host; without a name, the identity of this directory, and where its files come from
    #[command(after_help = "Examples:\n  gt host show\n  gt host show builder2")]
    Show {
        /// Its name or identity
        host: Option<String>,
    },
    /// Let a host take no new work; its runs finish
    #[command(after_help = "Example:\n  gt host drain builder2")]
    Drain {
        /// Its name or identity
        host: String,
    },
    /// Let a host take work again that was drained or removed
    #[command(after_help = "Example:\n  gt host resume builder2")]
    Resume {
        /// Its name or identity
        host: String,
    },
    /// Remove a host that does not come back
    ///
    /// With --force its live runs are declared lost at once, and start elsewhere. If it is alive after all, its workers may go on
    /// for a while: the store ignores them, and the host ends them and saves their trees when it notices.
    #[command(
        after_help = "Examples:\n  gt host remove builder2\n  gt host remove builder2 --force"
    )]
    Remove {
        /// Its name or identity
        host: String,
        /// Declare its live runs lost
        #[arg(long)]
        force: bool,
    },
    /// Make another machine a host of this town, over ssh
    ///
    /// Copies this program there, writes the directory of the town, starts its daemon (as a user service of systemd, where there
    /// is one), and checks that it works. The password of the store goes to a private file there. If anything fails, the machine
    /// is left as it was. The town must be on PostgreSQL.
    #[command(after_help = "Examples:
  gt host add builder --ssh builder
  gt host add gpu1 --ssh me@10.0.0.7 --labels gpu,linux --max-polecats 4
  gt host add builder --ssh builder --store postgres://gt@db.example/town")]
    Add {
        /// Its name
        host: String,
        /// Its machine, as ssh calls it
        #[arg(long, value_name = "TARGET")]
        ssh: String,
        /// The directory of the town there, below the home directory unless absolute; by default named as it is here
        #[arg(long)]
        directory: Option<String>,
        /// The address by which it reaches the store, without a password; by default the one that this host uses
        #[arg(long, value_name = "URL")]
        store: Option<String>,
        /// Its labels
        #[arg(long, value_name = "LABEL,…", default_value = "")]
        labels: String,
        /// The rigs that it works on; by default all
        #[arg(long, value_name = "RIG,…", default_value = "")]
        rigs: String,
        /// The most live runs on it; 0 is no limit
        #[arg(long, default_value_t = 0)]
        max_polecats: u32,
    },
    /// Give a host that was added with gt host add this program, and restart its daemon
    ///
    /// The program is replaced at once; workers go on. If the daemon does not come back, the host gets its former program again.
    #[command(after_help = "Example:\n  gt host upgrade builder")]
    Upgrade {
        /// Its name or identity
        host: String,
        /// Its machine, as ssh calls it; by default the address that it declares
        #[arg(long, value_name = "TARGET")]
        ssh: Option<String>,
    },
    /// Join the town that the order on standard input names
    #[command(hide = true)]
    Join {
        /// The directory of the town here
        directory: PathBuf,
    },
    /// Restart the daemon of this host, as a service if it is one
    #[command(hide = true)]
    Restart,
    /// End the daemon of this host, and its service
    #[command(hide = true)]
    Leave,
    /// Take over the runs of the directory that these files come from
    ///
    /// A directory that was copied or moved is a new host. It does not judge the runs of the old one, which may be alive
    /// there. If the old place is gone for good (a disk that was moved, a backup that was restored), this command takes its
    /// live runs over, and the next cycle finds out which of them are lost.
    #[command(after_help = "Examples:\n  gt host adopt\n  gt host adopt --force")]
    Adopt {
        /// Take the runs over although the old place may be there
        #[arg(long)]
        force: bool,
    },
}

pub(super) fn run(context: &CommandContext<'_>, args: &HostArgs) -> Result<(), CliError> {
    match &args.verb {
        HostVerb::List { all } => list(context, *all),
        HostVerb::Show { host: None } => show(context),
        HostVerb::Show { host: Some(host) } => show_one(context, host),
        HostVerb::Drain { host } => {
            let (host, is_changed) = fleet::drain(&context.town()?, host)?;
            let name = &host.record.host.name;
            let runs = plural(host.runs.len() as u64, "live run");
            let said = if is_changed {
                format!("✓ {name} takes no new work; {runs} on it")
            } else {
                format!("{name} is draining already; {runs} on it")
            };
            done(context.printer, &host, &[], said)
        }
        HostVerb::Resume { host } => {
            let (host, is_changed) = fleet::resume(&context.town()?, host)?;
            let name = &host.record.host.name;
            let said = if is_changed {
                format!("✓ {name} takes work again")
            } else {
                format!("{name} takes work already")
            };
            done(context.printer, &host, &[], said)
        }
        HostVerb::Remove { host, force } => remove(context, host, *force),
        HostVerb::Add { host, ssh, directory, store, labels, rigs, max_polecats } => {
            let new = NewHost {
                name: host.clone(),
                target: ssh.clone(),
                directory: directory.clone(),
                store: store.clone(),
                labels: labels.clone(),
                rigs: rigs.clone(),
                cap: *max_polecats,
            };
            add(context, &new)
        }
        HostVerb::Upgrade { host, ssh } => upgrade(context, host, ssh.as_deref()),
        HostVerb::Join { directory } => join(context, directory),
        HostVerb::Restart => {
            refuse_to_workers(context, "a restart of the daemon")?;
            let root = context.root()?;
            let service =
                host_setup::restart_service(&root, &this_program()?, &context.environment)?;
            context.printer.done(format!("✓ The daemon is restarted, {}", by_service(&service)))
        }
        HostVerb::Leave => {
            refuse_to_workers(context, "an end of the daemon")?;
            let root = context.root()?;
            host_setup::remove_service(&root, &this_program()?, &context.environment)?;
            context.printer.done("✓ The daemon has ended")
        }
        HostVerb::Adopt { force } => adopt(context, *force),
    }
}

fn add(context: &CommandContext<'_>, new: &NewHost) -> Result<(), CliError> {
    let host = host_setup::add(&context.town()?, new, &this_program()?, &context.environment)?;
    let (name, path) = (&host.record.host.name, &host.record.host.path);
    let said = format!("✓ {name} joined the town, from {path} on {}", new.target);
    done(context.printer, &host, &[], said)
}

fn upgrade(context: &CommandContext<'_>, host: &str, target: Option<&str>) -> Result<(), CliError> {
    let (program, version) = (this_program()?, env!("CARGO_PKG_VERSION"));
    let host = host_setup::upgrade(&context.town()?, host, target, (&program, version))?;
    let name = &host.record.host.name;
    done(context.printer, &host, &[], format!("✓ {name} works with gt {version}"))
}

fn join(context: &CommandContext<'_>, directory: &Path) -> Result<(), CliError> {
    refuse_to_workers(context, "a join of another town")?;
    let mut text = String::new();
    served::stdin()
        .take(ORDER_BYTES_MAX)
        .read_to_string(&mut text)
        .map_err(|error| CliError::request(format!("cannot read the order to join: {error}")))?;
    // The order has a password, so no part of it is told.
    let order: JoinOrder = serde_json::from_str(&text)
        .map_err(|_| CliError::request("the order to join is not one of gt host add".to_owned()))?;
    let (program, actor) = (this_program()?, context.actor()?);
    let directory = context.directory.join(directory);
    let environment = &context.environment;
    let service =
        host_setup::join(&directory, &order, &program, environment, &actor, &SystemClock)?;
    context.printer.done(format!("✓ Joined the town, {}", by_service(&service)))
}

/// The longest order to join.
const ORDER_BYTES_MAX: u64 = 64 << 10;

fn by_service(service: &DaemonService) -> String {
    match service {
        DaemonService::Systemd(unit) => format!("with the service {unit}"),
        DaemonService::Process => "with a daemon that is no service".to_owned(),
    }
}

/// Prints a host that was changed.
fn done(printer: &Printer, host: &FleetHost, lost: &[RunId], said: String) -> Result<(), CliError> {
    if printer.json() {
        return printer.object(&host_document(host, lost));
    }
    printer.done(said)
}

fn remove(context: &CommandContext<'_>, host: &str, force: bool) -> Result<(), CliError> {
    let removed = fleet::remove(&context.town()?, host, force)?;
    let name = &removed.host.record.host.name;
    let said = match removed.lost.as_slice() {
        [] => format!("✓ Removed the host {name}"),
        lost => {
            let lost: Vec<String> = lost.iter().map(ToString::to_string).collect();
            format!("✓ Removed the host {name}; lost and scheduled again: {}", lost.join(", "))
        }
    };
    done(context.printer, &removed.host, &removed.lost, said)
}

fn list(context: &CommandContext<'_>, all: bool) -> Result<(), CliError> {
    let town = context.town()?;
    let mut found = fleet::list(&town)?;
    found.retain(|host| all || host.record.state() != HostState::Removed);
    let printer = context.printer;
    if printer.json() {
        let mut list = printer.list();
        for host in &found {
            list.push(&host_document(host, &[]))?;
        }
        return list.finish();
    }
    if found.is_empty() {
        return printer.done(if hosts::is_shared(&town) {
            "No host has worked on this town yet; gt up starts the daemon of this one"
        } else {
            "This town has one host: its store is a file on this machine"
        });
    }
    printer.table(host_table(&found))
}

/// Hosts as a table.
pub(super) fn host_table(found: &[FleetHost]) -> Table {
    let names = ["HOST", "STATE", "RUNS", "SEEN", "LABELS", "MEMORY FREE", "LOAD", "VERSION"];
    let mut table = Table::with_header(&names).droppable(&["VERSION", "LOAD", "MEMORY FREE"]);
    for host in found {
        let record = &host.record;
        let declared = &record.declared;
        let here = if host.is_here { " (here)" } else { "" };
        let runs = match declared.max_runs {
            0 => host.runs.len().to_string(),
            cap => format!("{}/{cap}", host.runs.len()),
        };
        let memory = match declared.memory_mb {
            0 => String::new(),
            total => format!("{}/{total} MB", declared.memory_free_mb),
        };
        table.row(vec![
            Cell::bold(format!("{}{here}", record.host.name)),
            Cell::new(record.state().as_str()),
            Cell::new(runs),
            Cell::new(seen(record.age)),
            Cell::new(declared.labels.join(",")),
            Cell::new(memory),
            Cell::new(load(declared.load_hundredths)),
            Cell::new(declared.version.as_str()),
        ]);
    }
    table
}

fn seen(age: Duration) -> String {
    format!("{} ago", span(age))
}

fn load(hundredths: u64) -> String {
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}

/// A host for programs.
pub(super) fn host_document(host: &FleetHost, lost: &[RunId]) -> FleetHostDocument {
    let record = &host.record;
    let declared = &record.declared;
    let texts = |runs: &[RunId]| runs.iter().map(ToString::to_string).collect();
    FleetHostDocument {
        id: record.host.id.clone(),
        name: record.host.name.clone(),
        here: host.is_here,
        state: record.state().as_str().to_owned(),
        path: record.host.path.clone(),
        address: declared.address.clone(),
        version: declared.version.clone(),
        labels: declared.labels.clone(),
        cap: Some(declared.max_runs).filter(|cap| *cap > 0),
        rigs: declared.rigs.clone(),
        runtimes: declared.runtimes.clone(),
        memory_mb: declared.memory_mb,
        memory_free_mb: declared.memory_free_mb,
        load: load(declared.load_hundredths).parse().unwrap_or_default(),
        cores: declared.cores,
        daemon: record.has_daemon(),
        seen_seconds_ago: record.age.as_secs(),
        runs: texts(&host.runs),
        lost: texts(lost),
    }
}

fn show_one(context: &CommandContext<'_>, host: &str) -> Result<(), CliError> {
    let host = fleet::named(&context.town()?, host)?;
    let printer = context.printer;
    if printer.json() {
        return printer.object(&host_document(&host, &[]));
    }
    print_host(printer, &host)
}

fn print_host(printer: &Printer, host: &FleetHost) -> Result<(), CliError> {
    let record = &host.record;
    let declared = &record.declared;
    let or_all = |names: &[String]| {
        if names.is_empty() { "all".to_owned() } else { names.join(", ") }
    };
    let cap = match declared.max_runs {
        0 => "no cap".to_owned(),
        cap => format!("at most {cap}"),
    };
    let runs: Vec<String> = host.runs.iter().map(ToString::to_string).collect();
    let daemon = if record.has_daemon() { "at work" } else { "not running" };
    let lines = [
        ("State", format!("{}, last sign {}", record.state().as_str(), seen(record.age))),
        ("Identity", record.host.id.clone()),
        ("Directory", record.host.path.clone()),
        ("Address", declared.address.clone()),
        ("Daemon", format!("{daemon} {}", declared.version)),
        ("Labels", declared.labels.join(", ")),
        ("Rigs", or_all(&declared.rigs)),
        ("Runtimes", declared.runtimes.join(", ")),
        ("Memory", format!("{} of {} MB free", declared.memory_free_mb, declared.memory_mb)),
        ("Load", format!("{} on {} cores", load(declared.load_hundredths), declared.cores)),
        ("Runs", format!("{} ({cap}) {}", runs.len(), runs.join(" "))),
    ];
    printer.heading(&record.host.name, "")?;
    for (name, value) in lines.iter().filter(|(_, value)| !value.trim().is_empty()) {
        printer.line(format!("  {name}: {}", value.trim_end()))?;
    }
    Ok(())
}

/// This directory as a host of the fleet, if the store is shared and knows it.
fn own_host(town: &Town) -> Result<Option<FleetHost>, CliError> {
    if !hosts::has_lease(town) {
        return Ok(None);
    }
    Ok(fleet::list(town)?.into_iter().find(|host| host.is_here))
}

fn show(context: &CommandContext<'_>) -> Result<(), CliError> {
    let town = context.town()?;
    let shown = hosts::show(&town)?;
    let own = own_host(&town)?;
    let printer = context.printer;
    if printer.json() {
        let former = shown.former.as_ref();
        return printer.object(&HostDocument {
            host: shown.host,
            former: former.map(|former| former.id.clone()),
            former_path: former.map(|former| former.path.clone()),
            fleet: own.as_ref().map(|own| host_document(own, &[])),
        });
    }
    printer.line(&shown.host)?;
    if let Some(former) = &shown.former {
        printer.line(format!("Its files come from {} ({})", former.path, former.id))?;
    }
    own.map_or(Ok(()), |own| print_host(printer, &own))
}

fn adopt(context: &CommandContext<'_>, force: bool) -> Result<(), CliError> {
    let adopted = hosts::adopt(&context.town()?, force)?;
    let printer = context.printer;
    if printer.json() {
        return printer
            .object(&AdoptedHostDocument { adopted: adopted.former, runs: adopted.runs });
    }
    printer.done(format!("✓ Adopted the host {} with {} live runs", adopted.former, adopted.runs))
}
