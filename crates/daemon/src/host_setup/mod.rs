//! Hosts on other machines: adding one over ssh, and giving it a new program.
//!
//! # Invariants
//!
//! - A machine that was asked to join and did not has nothing of the town on it, and the store lists no host of it.
//! - The password of the store goes over standard input, never in arguments.
//! - The program of a host changes by a rename: its daemon and its workers never see half of one.

mod join;
mod scripts;
mod service;
mod upgrade;

pub use join::{JoinOrder, join};
pub use service::{DaemonService, remove as remove_service, restart as restart_service};
pub use upgrade::upgrade;

use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

use gt_core::decide::{CandidateFacts, CandidateNeeds, HostState, NewDirectory, Right};
use gt_core::settings::{checked, plain_names};
use gt_core::{ExecutorKind, RigState, words};
use gt_executors::process::built_for;
use gt_executors::remote_shell::{RemoteInput, RemoteShell, RemoteShellError};
use gt_scheduling::fleet::{self, FleetHost};
use gt_town::settings::{layers, put, stored};
use gt_town::{Environment, OperationError, Result, Town, hosts};

/// How long a short command on another machine may take.
const SHORT_LIMIT: Duration = Duration::from_mins(1);
/// How long a copy of the program may take, over a slow line too.
const COPY_LIMIT: Duration = Duration::from_mins(30);
/// How long the other machine may take to join and to start its daemon.
const JOIN_LIMIT: Duration = Duration::from_mins(5);
/// How long the daemon of a host may take to renew its lease.
const LEASE_WAIT_MAX: Duration = Duration::from_mins(1);
/// How often that is looked at.
const LEASE_POLL_INTERVAL: Duration = Duration::from_millis(200);

/// A host to be added.
#[derive(Debug, Clone, Default)]
pub struct NewHost {
    /// Its name.
    pub name: String,
    /// Its machine, as ssh calls it.
    pub target: String,
    /// The directory of the town there; without one, the name of the town's directory here, below the home directory.
    pub directory: Option<String>,
    /// The address by which it reaches the store, if that is not the one of this host.
    pub store: Option<String>,
    /// Its labels, separated by commas.
    pub labels: String,
    /// The rigs that it works on, separated by commas; empty is all.
    pub rigs: String,
    /// The most live runs on it; 0 is no limit.
    pub cap: u32,
}

/// Makes another machine a host of this town: copies `program` there, writes its directory, starts its daemon, and waits until
/// that has renewed its lease. If any of that fails, the machine is left as it was.
pub fn add(
    town: &Town,
    new: &NewHost,
    program: &Path,
    environment: &Environment,
) -> Result<FleetHost> {
    town.require_right(Right::Queue, "a new host")?;
    let NewHost { name, target, .. } = new;
    if !hosts::is_shared(town) {
        return Err(OperationError::rejected(format!(
            "the store of this town is a file, which one host has; first gt store migrate postgres://…, then gt host add \
             {name} --ssh {target}"
        )));
    }
    let order = order_of(town, new, environment)?;
    refuse_taken_name(town, name)?;
    let shell = shell_of(town, target)?;
    let directory = directory_of(town, new);
    let facts = probe(town, &shell, &directory, &order)?;
    let path = facts.path.as_str();
    if facts.directory == NewDirectory::Unfinished {
        carry_out(&shell, scripts::UNDO, &[path], RemoteInput::Nothing, JOIN_LIMIT)?;
    }
    let added = copy(&shell, scripts::COPY, path, program)
        .and_then(|()| set_up(town, &shell, path, &order));
    match added {
        Ok(host) => {
            pin_rigs_by_target(town, new)?;
            Ok(host)
        }
        Err(error) => Err(undone(town, &shell, &order, path, &error)),
    }
}

/// The order for the other machine. Wrong labels and the like are found before anything is done.
fn order_of(town: &Town, new: &NewHost, environment: &Environment) -> Result<JoinOrder> {
    if new.name.is_empty() || new.target.is_empty() || new.target.starts_with('-') {
        return Err(OperationError::rejected(
            "a host needs a name, and a machine as ssh calls it (--ssh user@machine)",
        ));
    }
    let (_, name) = checked("host.name", &new.name)?;
    let (_, labels) = checked("host.labels", &new.labels)?;
    let (_, rigs) = checked("host.rigs", &new.rigs)?;
    for rig in plain_names(&rigs) {
        gt_town::rigs::slug(town, rig)?;
    }
    let url = town.url_for_others(new.store.as_deref(), environment)?;
    let (town, address, cap) = (town.id().to_owned(), new.target.clone(), new.cap);
    Ok(JoinOrder { town, url, name, address, labels, rigs, cap })
}

/// Whether a host has this name. Before a host is added no host of the town does, but removed ones.
fn is_new_host(host: &FleetHost, name: &str) -> bool {
    host.record.host.name == name && host.record.state() != HostState::Removed
}

fn refuse_taken_name(town: &Town, name: &str) -> Result<()> {
    match fleet::list(town)?.iter().find(|host| is_new_host(host, name)) {
        None => Ok(()),
        Some(other) => Err(OperationError::rejected(format!(
            "a host is called {name} already ({} in {}); choose another name, or gt host remove {name} if that one does not \
             come back",
            other.record.host.id, other.record.host.path
        ))),
    }
}

/// The way to another machine.
fn shell_of(town: &Town, target: &str) -> Result<RemoteShell> {
    let words = words::split(&layers(town)?.host_ssh_command()?)?;
    let command = words.into_iter().map(|word| word.text).collect();
    Ok(RemoteShell { command, target: target.to_owned() })
}

/// The directory over there. `~` is the home directory, as it is without it.
fn directory_of(town: &Town, new: &NewHost) -> String {
    let own = || town.root().file_name().map(|name| name.to_string_lossy().into_owned());
    let given = new.directory.clone().or_else(own).unwrap_or_else(|| "gt-town".to_owned());
    given.strip_prefix("~/").unwrap_or(&given).trim_end_matches('/').to_owned()
}

/// Asks the machine what it has, and refuses one that cannot work on this town.
fn probe(
    town: &Town,
    shell: &RemoteShell,
    directory: &str,
    order: &JoinOrder,
) -> Result<CandidateFacts> {
    let report = carry_out(shell, scripts::PROBE, &[directory], RemoteInput::Nothing, SHORT_LIMIT)?;
    let facts = CandidateFacts::parse(&report).map_err(|invalid| {
        OperationError::rejected(format!("{} cannot be asked what it has: {invalid}", shell.target))
    })?;
    let (rigs, store_clock_s) =
        town.read(|reader| Ok((reader.rigs()?, reader.store_clock_s()?)))?;
    let settings = layers(town)?;
    let mut in_sessions = None;
    for rig in rigs.iter().filter(|rig| rig.executor == ExecutorKind::Tmux) {
        let pinned = settings.rig_host(&rig.slug)?;
        let is_asked_for =
            order.rigs.is_empty() || plain_names(&order.rigs).any(|name| name == rig.slug.as_str());
        let is_free = pinned.is_empty() || pinned == order.name || pinned == order.address;
        if is_asked_for && is_free && rig.state != RigState::Docked {
            in_sessions = Some(&rig.slug);
        }
    }
    let built_for = built_for();
    let needs = CandidateNeeds {
        machine: &shell.target,
        built_for: (&built_for.0, &built_for.1),
        tmux_rig: in_sessions,
        store_clock_s,
    };
    match needs.refusal(&facts) {
        None => Ok(facts),
        Some(why) => Err(OperationError::rejected(why)),
    }
}

fn carry_out(
    shell: &RemoteShell,
    script: &str,
    arguments: &[&str],
    input: RemoteInput<'_>,
    limit: Duration,
) -> Result<String> {
    shell.run(script, arguments, input, limit).map_err(|error| match error {
        RemoteShellError::Failed(why) => {
            OperationError::rejected(format!("{} says: {why}", shell.target))
        }
        error => OperationError::rejected(error.to_string()),
    })
}

/// Sends the program to a script that puts it in its place.
fn copy(shell: &RemoteShell, script: &str, path: &str, program: &Path) -> Result<()> {
    let failed = |source| OperationError::File { action: "read", path: program.to_owned(), source };
    let file = File::open(program).map_err(failed)?;
    let bytes = file.metadata().map_err(failed)?.len().to_string();
    carry_out(shell, script, &[path, &bytes], RemoteInput::File(file), COPY_LIMIT).map(drop)
}

/// Has the machine join, and waits for its first sign.
fn set_up(town: &Town, shell: &RemoteShell, path: &str, order: &JoinOrder) -> Result<FleetHost> {
    let text = serde_json::to_string(order).map_err(|error| {
        OperationError::rejected(format!(
            "the order for {} cannot be written: {error}",
            shell.target
        ))
    })?;
    carry_out(shell, scripts::JOIN, &[path], RemoteInput::Text(&text), JOIN_LIMIT)?;
    let host = wait_for_lease(town, shell, |host| is_new_host(host, &order.name))?;
    carry_out(shell, scripts::JOINED, &[path], RemoteInput::Nothing, SHORT_LIMIT)?;
    Ok(host)
}

/// Waits until the daemon of a host has renewed its lease.
fn wait_for_lease(
    town: &Town,
    shell: &RemoteShell,
    is_it: impl Fn(&FleetHost) -> bool,
) -> Result<FleetHost> {
    let began = Instant::now();
    loop {
        let found = fleet::list(town)?.into_iter().find(|host| is_it(host));
        match found {
            Some(host) if host.record.has_daemon() => return Ok(host),
            _ if began.elapsed() > LEASE_WAIT_MAX => {
                return Err(OperationError::rejected(format!(
                    "the daemon on {} has not renewed its lease for {} s; its log there is .gt/daemon.log",
                    shell.target,
                    LEASE_WAIT_MAX.as_secs()
                )));
            }
            _ => std::thread::sleep(LEASE_POLL_INTERVAL),
        }
    }
}

/// Takes back what was done on the other machine and in the store; the error says whether that worked.
fn undone(
    town: &Town,
    shell: &RemoteShell,
    order: &JoinOrder,
    path: &str,
    error: &OperationError,
) -> OperationError {
    let (name, target) = (&order.name, &shell.target);
    let undo = carry_out(shell, scripts::UNDO, &[path], RemoteInput::Nothing, JOIN_LIMIT);
    let is_it = |host: &FleetHost| is_new_host(host, name);
    let removed = fleet::list(town).and_then(|all| match all.into_iter().find(is_it) {
        Some(host) => fleet::remove(town, &host.record.host.id, true).map(drop),
        None => Ok(()),
    });
    let left = match undo.and(removed.map(|()| String::new())) {
        Ok(_) => format!("{target} is as it was"),
        Err(left) => format!(
            "what is left in {path} on {target} could not be removed ({left}); the next gt host add {name} does"
        ),
    };
    OperationError::rejected(format!("{name} did not join: {error}; {left}"))
}

/// Rigs that name the machine by its ssh name are pinned to the host that it is now.
fn pin_rigs_by_target(town: &Town, new: &NewHost) -> Result<()> {
    if new.name == new.target {
        return Ok(());
    }
    town.write(|writer| {
        for rig in writer.rigs()? {
            let (setting, value) = checked(&format!("rig.{}.host", rig.slug), &new.name)?;
            if stored(writer, &setting)?.is_some_and(|pinned| pinned == new.target) {
                put(writer, &setting, Some(&value))?;
            }
        }
        Ok(())
    })
}
