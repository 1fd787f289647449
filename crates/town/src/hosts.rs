//! The identity of this directory among all that work on the same town, and taking over a former identity.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use gt_core::decide::{HOST_CLOCK_DIFFERENCE_MAX, HostMode, HostVerdict, LeaseTimes, Right};
use gt_core::schedule::{Run, is_host_named};
use gt_core::settings::{checked, plain_names};
use gt_core::time::format_duration;
use gt_core::{Rig, RigSlug};
use gt_executors::process::host_name;
use gt_executors::runs::{
    FormerHost, HostIdentity, LeaseFile, forget_former_host, host_identity, incarnation,
};
use gt_store::{HostDeclaration, HostRow, StoreAddress};

use crate::file_settings;
use crate::settings::{file_layers, layers_over, put, stored};
use crate::town::DIRECTORY;
use crate::{HostLease, OperationError, Result, Town};

/// The file with the identity of this directory, different from all others that share its store.
const HOST: &str = "host";
/// The file that says when this directory last renewed its lease.
const LEASE: &str = "lease";

/// How many seconds after its last sign a host counts as alive.
const ALIVE_FOR_S: i64 = 60;
/// After how many seconds a working host renews its sign.
const RENEW_AFTER_S: i64 = 20;

/// Whether a host whose last sign is so many seconds old counts as alive.
fn is_alive_after(seconds: i64) -> bool {
    seconds < ALIVE_FOR_S
}

/// This directory, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostShown {
    /// Its identity, as runs name it: the name of the machine and the identity itself.
    pub host: String,
    /// The host that its files came from.
    pub former: Option<FormerHost>,
}

/// The result of taking over the runs of a former identity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdoptedHost {
    /// The identity that is gone.
    pub former: String,
    /// How many of its runs were taken over.
    pub runs: u64,
}

fn path(town: &Town) -> PathBuf {
    town.root().join(DIRECTORY).join(HOST)
}

fn identity(town: &Town) -> Result<HostIdentity> {
    let path = path(town);
    host_identity(&path).map_err(|source| OperationError::File {
        action: "read or make",
        path,
        source,
    })
}

/// The name of this host: the one in its settings, else that of its machine.
fn name_of(town: &Town) -> String {
    if let Some(host) = town.lease_host() {
        return host.row().name;
    }
    if !town.has_directory() {
        return host_name();
    }
    // Settings that cannot be read are reported by gt doctor, and by the commands that need them.
    let given = file_layers(town).and_then(|files| Ok(files.host_name()?)).unwrap_or_default();
    if given.is_empty() { host_name() } else { given }
}

/// This machine, as the runs of a town name it.
pub fn host_of(town: &Town) -> Result<String> {
    let name = name_of(town);
    if let Some(host) = town.lease_host() {
        return Ok(format!("{name}/{}", host.row().id));
    }
    if let Some(given) = town.host_id() {
        refuse_other_incarnation(town, given)?;
        return Ok(format!("{name}/{given}"));
    }
    // Without a directory there are no locks that could be mistaken for those of another.
    if !town.has_directory() {
        return Ok(name);
    }
    let id = identity(town)?.id;
    // Until that is cleared up, it takes no run of the other machine for its own.
    let copy = if copied_machine(town, &id)?.is_some() { "copy-of-" } else { "" };
    Ok(format!("{name}/{copy}{id}"))
}

/// The host that alone works on a rig, if it is not `host`.
pub fn other_host_of(town: &Town, rig: &RigSlug, host: &str) -> Result<Option<String>> {
    let files = file_layers(town)?;
    let name = town.read(|reader| Ok(layers_over(&files, reader)?.rig_host(rig)?))?;
    Ok(Some(name).filter(|name| !name.is_empty() && !is_host_named(host, name)))
}

/// Whether a host of the town has this name. This one has it also before its daemon was started for the first time.
pub fn is_known(town: &Town, name: &str) -> Result<bool> {
    let hosts = town.read(|reader| Ok(reader.hosts()?))?;
    let full_name = |host: &HostRow| format!("{}/{}", host.name, host.id);
    let is_named = hosts.iter().any(|(host, _)| is_host_named(&full_name(host), name));
    Ok(is_named || is_host_named(&host_of(town)?, name))
}

/// Refuses an identity that another host uses: each would declare the runs of the other lost.
fn refuse_other_incarnation(town: &Town, given: &str) -> Result<()> {
    let own = incarnation(town.root());
    let hosts = town.read(|reader| Ok(reader.hosts()?))?;
    let other = hosts
        .into_iter()
        .find(|(host, ago)| host.id == given && host.incarnation != own && is_alive_after(*ago));
    match other {
        None => Ok(()),
        Some((host, ago)) => Err(OperationError::rejected(format!(
            "GT_HOST_ID is {given}, and another host with that identity was at work {ago} s ago ({} in {}); give each \
             host an identity of its own, or wait a minute if that one has ended",
            host.name, host.path
        ))),
    }
}

/// Why this directory does not act as the host that it is: another machine is at work with its identity. A copy of this one's
/// disk cannot be told by its files, and each would declare the runs of the other lost. As long as this boot of the machine has
/// the lease, none does.
fn copied_machine(town: &Town, id: &str) -> Result<Option<String>> {
    let is_judged = is_shared(town) && town.lease_host().is_none() && town.host_id().is_none();
    let has_lease = |(age, times): (Duration, LeaseTimes)| age < times.lease();
    if !is_judged || lease_of(town)?.age().is_some_and(has_lease) {
        return Ok(None);
    }
    let own = incarnation(town.root());
    let hosts = town.read_newest(|reader| Ok(reader.hosts()?))?;
    let is_other = |host: &HostRow| host.id == id && boot_of(&host.incarnation) != boot_of(&own);
    let other = hosts.into_iter().find(|(host, ago)| is_other(host) && is_alive_after(*ago));
    Ok(other.map(|(host, ago)| {
        format!(
            "another machine with the identity of this one ({id}) was at work {ago} s ago ({} in {}). If one is a copy of the \
             other, remove {} on the copy, which becomes a host of its own; if this machine has just been started again, wait \
             a minute",
            host.name,
            host.path,
            path(town).display()
        )
    }))
}

fn refuse_copied_machine(town: &Town, id: &str) -> Result<()> {
    copied_machine(town, id)?.map_or(Ok(()), |why| Err(OperationError::rejected(why)))
}

/// The boot of the machine in an incarnation. Containers of one machine that share a directory share its locks.
fn boot_of(incarnation: &str) -> Option<&str> {
    incarnation.split(':').next()
}

/// Whether other hosts can work on the same store.
pub fn is_shared(town: &Town) -> bool {
    town.lease_host().is_some() || matches!(town.store().address(), Some(StoreAddress::Server(_)))
}

/// Whether this directory is a host with a lease: the store is shared, and the locks of its runs are here.
pub fn has_lease(town: &Town) -> bool {
    is_host(town) && is_shared(town)
}

/// Whether this is a host, with locks of its own.
pub fn is_host(town: &Town) -> bool {
    town.has_directory() || town.lease_host().is_some()
}

/// This directory, as the store lists it.
pub fn own_row(town: &Town) -> Result<HostRow> {
    if let Some(host) = town.lease_host() {
        return Ok(host.row());
    }
    let found = identity(town)?;
    Ok(HostRow {
        id: town.host_id().map_or(found.id, str::to_owned),
        name: name_of(town),
        machine: found.place.machine,
        path: town.root().display().to_string(),
        incarnation: incarnation(town.root()),
    })
}

/// The record of the last renewal of this directory. A copy of the directory has another identity, and so another record.
pub fn lease_of(town: &Town) -> Result<HostLease> {
    if let Some(host) = town.lease_host() {
        return Ok(HostLease::Host(Arc::clone(host)));
    }
    let id = own_id(town)?;
    let path = town.root().join(DIRECTORY).join(format!("{LEASE}-{id}"));
    Ok(HostLease::File(LeaseFile::at(path)))
}

fn own_id(town: &Town) -> Result<String> {
    if let Some(host) = town.lease_host() {
        return Ok(host.row().id);
    }
    match town.host_id() {
        Some(given) => Ok(given.to_owned()),
        None => Ok(identity(town)?.id),
    }
}

/// Whether the lease of this directory need not be renewed yet.
pub fn is_lease_fresh(town: &Town) -> Result<bool> {
    let age = lease_of(town)?.age();
    Ok(age.is_some_and(|(age, times)| age < times.renew_every()))
}

/// Renews the lease of this directory, with its declarations. Says the number of the last event, if that comes with the answer.
pub fn renew(town: &Town, declared: &HostDeclaration, by_daemon: bool) -> Result<Option<u64>> {
    renew_as(town, &own_row(town)?, declared, by_daemon)
}

/// Like [`renew`], with the row that this directory had before, where its settings cannot be read.
pub fn renew_as(
    town: &Town,
    row: &HostRow,
    declared: &HostDeclaration,
    by_daemon: bool,
) -> Result<Option<u64>> {
    refuse_taken_name(town, row)?;
    refuse_copied_machine(town, &row.id)?;
    let lease = lease_of(town)?;
    let sent = lease.since_boot();
    town.pass_seam()?;
    // No process waits for this change, so no bell is rung.
    let last_event = if by_daemon { town.store().renew_known_host(row, declared)? } else { None };
    if last_event.is_none() {
        let author = town.as_system().authorship();
        town.store().write(&author, |writer| writer.renew_host(row, declared, by_daemon))?;
    }
    lease.record(sent, declared.grace).map_err(|source| OperationError::File {
        action: "write",
        path: town.root().join(DIRECTORY).join(LEASE),
        source,
    })?;
    Ok(last_event)
}

/// Notes that the daemon of this directory has stopped.
pub fn note_daemon_left(town: &Town) -> Result<()> {
    let id = own_id(town)?;
    town.pass_seam()?;
    let author = town.as_system().authorship();
    Ok(town.store().write(&author, |writer| writer.host_daemon_left(&id))?)
}

/// Refuses a name that was given to two hosts in their settings. Two directories of one machine may share its name.
fn refuse_taken_name(town: &Town, own: &HostRow) -> Result<()> {
    // Without a readable name it keeps the one that it was known by.
    let given = file_layers(town).and_then(|files| Ok(files.host_name()?)).unwrap_or_default();
    if given.is_empty() {
        return Ok(());
    }
    let known = town.read_newest(|reader| Ok(reader.fleet()?))?;
    let other = known.iter().find(|other| {
        other.host.id != own.id && other.host.name == own.name && other.state().is_present()
    });
    match other {
        None => Ok(()),
        Some(other) => Err(OperationError::rejected(format!(
            "another host is called {} already ({} in {}); give this one another host.name in settings/config.json",
            own.name, other.host.id, other.host.path
        ))),
    }
}

/// Refuses to begin work as a host that could not renew its lease.
pub fn refuse_unfit_host(town: &Town) -> Result<()> {
    if !has_lease(town) {
        return Ok(());
    }
    refuse_wrong_clock(town)?;
    let own = own_row(town)?;
    refuse_copied_machine(town, &own.id)?;
    refuse_taken_name(town, &own)
}

/// Refuses a clock that is far from that of the store: times of both would be mixed in one town.
fn refuse_wrong_clock(town: &Town) -> Result<()> {
    let store_s = town.read(|reader| Ok(reader.store_clock_s()?))?;
    let here_s = town.now().as_nanos() / 1_000_000_000;
    let apart = Duration::from_secs(here_s.abs_diff(store_s));
    if apart <= HOST_CLOCK_DIFFERENCE_MAX {
        return Ok(());
    }
    let way = if here_s > store_s { "ahead of" } else { "behind" };
    Err(OperationError::rejected(format!(
        "the clock of this host is {} {way} that of the store; set it (timedatectl set-ntp true), then start again",
        format_duration(apart)
    )))
}

/// Records in the store that this directory is at work, if it has an identity that was given to it and no lease.
pub fn note_given_identity(town: &Town) -> Result<()> {
    if !town.has_directory() || town.host_id().is_none() || is_shared(town) {
        return Ok(());
    }
    let row = own_row(town)?;
    let known = town.read(|reader| Ok(reader.hosts()?))?;
    if known.iter().any(|(known, ago)| *known == row && (0..RENEW_AFTER_S).contains(ago)) {
        return Ok(());
    }
    Ok(town.store().write(&town.as_system().authorship(), |writer| writer.host_seen(&row))?)
}

/// The news for a person about this directory, once: that it is a copy, or was moved here.
pub fn news(town: &Town) -> Option<String> {
    if !town.has_directory() || town.host_id().is_some() || !path(town).exists() {
        return None;
    }
    // A file that cannot be read is reported by the commands that need it.
    let found = identity(town).ok().filter(|found| found.is_new)?;
    Some(sentence(&found.former?))
}

fn sentence(former: &FormerHost) -> String {
    let FormerHost { path, verdict, id } = former;
    let from = path.strip_suffix("/.gt/host").unwrap_or(path);
    match verdict {
        HostVerdict::Copy => format!(
            "this directory is a copy of {from}; it is a host of its own now, and the runs of {from} are judged there"
        ),
        HostVerdict::Moved | HostVerdict::Same => format!(
            "this directory comes from {from}, which is gone; it is a host of its own now, and runs that were live there \
             stay unknown until gt host adopt takes them over (identity {id})"
        ),
    }
}

/// Why runs of this host are not judged here, and the remedy, if its files are here.
pub fn why_unknown(town: &Town, run: &Run) -> Option<String> {
    let former = former(town)?;
    run.is_on(&former.id).then(|| sentence(&former))
}

fn former(town: &Town) -> Option<FormerHost> {
    let is_here = town.has_directory() && town.host_id().is_none() && path(town).exists();
    identity(town).ok().filter(|_| is_here)?.former
}

/// This directory, for people.
pub fn show(town: &Town) -> Result<HostShown> {
    Ok(HostShown { host: host_of(town)?, former: former(town) })
}

/// Takes over the runs of the directory that these files come from, if that is gone. `force` takes them over from one
/// that may still be there.
pub fn adopt(town: &Town, force: bool) -> Result<AdoptedHost> {
    town.require_right(Right::Queue, "an adoption of another host's runs")?;
    let Some(former) = former(town) else {
        return Err(OperationError::rejected(
            "this directory is the host that it always was; there is no other whose runs it could adopt",
        ));
    };
    let FormerHost { id, verdict, path: from } = &former;
    if *verdict == HostVerdict::Copy && !force {
        return Err(OperationError::rejected(format!(
            "{from} still exists, so its runs are judged there; if it is gone for good, use gt host adopt --force"
        )));
    }
    let seen = town.read(|reader| Ok(reader.hosts()?))?;
    let alive = seen.into_iter().find(|(host, ago)| host.id == *id && is_alive_after(*ago));
    if let Some((host, ago)) = alive.filter(|_| !force) {
        return Err(OperationError::rejected(format!(
            "the host {id} was at work {ago} s ago ({} in {}); stop it there first, and wait a minute",
            host.name, host.path
        )));
    }
    let host = host_of(town)?;
    let runs = town.write(|writer| {
        for rig in writer.rigs()? {
            let (name, value) = checked(&format!("rig.{}.host", rig.slug), &host)?;
            if stored(writer, &name)?
                .is_some_and(|pinned| is_host_named(&format!("/{id}"), &pinned))
            {
                put(writer, &name, Some(&value))?;
            }
        }
        Ok(writer.adopt_host(id, &host)?)
    })?;
    let path = path(town);
    forget_former_host(&path).map_err(|source| OperationError::File {
        action: "write",
        path,
        source,
    })?;
    Ok(AdoptedHost { former: former.id, runs })
}

/// Says that rigs whose origin is a directory belong to this host, before other hosts can work on the same store: in a
/// town on a file there was no other.
pub fn pin_rigs(town: &Town) -> Result<()> {
    if is_shared(town) {
        return Ok(());
    }
    let host = host_of(town)?;
    town.write(|writer| {
        for rig in writer.rigs()? {
            let (name, value) = checked(&format!("rig.{}.host", rig.slug), &host)?;
            if rig.repo.starts_with('/') && stored(writer, &name)?.is_none() {
                put(writer, &name, Some(&value))?;
            }
        }
        Ok(())
    })
}

/// A fact about what a host says of itself that keeps it from work, and the remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostRemark {
    /// The fact.
    pub told: String,
    /// The remedy.
    pub remedy: String,
}

/// What keeps this host from work that a person may expect of it. A town whose store is not shared has one host.
pub fn remarks(town: &Town) -> Result<Vec<HostRemark>> {
    if !has_lease(town) {
        return Ok(Vec::new());
    }
    let (id, name) = (own_id(town)?, name_of(town));
    let (known, rigs) = town.read_newest(|reader| Ok((reader.fleet()?, reader.rigs()?)))?;
    let own = known.iter().find(|known| known.host.id == id);
    let mut remarks = Vec::new();
    let state = match own.map(|own| own.mode) {
        Some(HostMode::Removed) => Some("was removed from the town"),
        Some(HostMode::Draining) => Some("is draining"),
        Some(HostMode::Active) | None => None,
    };
    remarks.extend(state.map(|state| HostRemark {
        told: format!("the host {name} {state}, so it takes no work"),
        remedy: format!("gt host resume {name}"),
    }));
    let declared = file_layers(town)?.host_rigs()?;
    remarks.extend(unknown_rigs(&name, plain_names(&declared), &rigs));
    for (file, key) in file_settings::of_town(town.root())?.unknown {
        if key.starts_with("host.") {
            remarks.push(HostRemark {
                told: format!("{file} sets {key}, which is no setting, so it has no effect"),
                remedy: "gt config list shows the settings of a host; correct the file".to_owned(),
            });
        }
    }
    Ok(remarks)
}

/// The rigs in the `host.rigs` of a host that the town does not have.
pub fn unknown_rigs<'r>(
    host: &str,
    declared: impl Iterator<Item = &'r str>,
    rigs: &[Rig],
) -> Option<HostRemark> {
    let is_known = |name: &str| rigs.iter().any(|rig| rig.slug.as_str() == name);
    let unknown: Vec<&str> = declared.filter(|name| !is_known(name)).collect();
    (!unknown.is_empty()).then(|| HostRemark {
        told: format!(
            "host.rigs of {host} names {}, and the town has no such rig",
            unknown.join(", ")
        ),
        remedy: format!(
            "gt rig list shows the rigs; correct host.rigs in settings/config.json on {host}"
        ),
    })
}

/// The other hosts of this town that have given a sign of life lately.
pub fn other_hosts_at_work(town: &Town) -> Result<Vec<HostRow>> {
    let own = identity(town)?;
    let own = town.host_id().unwrap_or(&own.id);
    let hosts = town.read(|reader| Ok(reader.hosts()?))?;
    let others = hosts.into_iter().filter(|(host, ago)| host.id != own && is_alive_after(*ago));
    Ok(others.map(|(host, _)| host).collect())
}

/// The facts for a person about this directory and others on this machine, for `gt doctor`.
pub fn copies(town: &Town) -> Result<Vec<String>> {
    let mut found: Vec<String> = former(town).iter().map(sentence).collect();
    if !town.has_directory() {
        return Ok(found);
    }
    let own = identity(town)?;
    found.extend(copied_machine(town, &own.id)?);
    let here = town.root().display().to_string();
    for (host, ago) in town.read(|reader| Ok(reader.hosts()?))? {
        let is_here = host.machine == own.place.machine && host.path == here;
        if host.id == own.id || ago > 24 * 3600 || host.machine != own.place.machine {
            continue;
        }
        let what = if is_here { "was here before" } else { "is on this machine too" };
        found.push(format!("the host {} in {} {what}, seen {ago} s ago", host.id, host.path));
    }
    Ok(found)
}
