//! The identity of this directory among all that work on the same town, and taking over a former identity.

use std::path::PathBuf;

use gt_core::RigSlug;
use gt_core::decide::{HostVerdict, Right};
use gt_core::schedule::{Run, is_host_named};
use gt_core::settings::checked;
use gt_executors::process::host_name;
use gt_executors::runs::{
    FormerHost, HostIdentity, forget_former_host, host_identity, incarnation,
};
use gt_store::{HostRow, StoreAddress};

use crate::settings::{file_layers, layers_over, put, stored};
use crate::town::DIRECTORY;
use crate::{OperationError, Result, Town};

/// The file with the identity of this directory, different from all others that share its store.
const HOST: &str = "host";

/// How many seconds after its last sign a host counts as alive.
const ALIVE_FOR_S: i64 = 60;
/// After how many seconds a working host renews its sign.
const RENEW_AFTER_S: i64 = 20;

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

/// This machine, as the runs of a town name it.
pub fn host_of(town: &Town) -> Result<String> {
    let name = host_name();
    if let Some(given) = town.host_id() {
        refuse_other_incarnation(town, given)?;
        return Ok(format!("{name}/{given}"));
    }
    // Without a directory there are no locks that could be mistaken for those of another.
    if !town.has_directory() {
        return Ok(name);
    }
    Ok(format!("{name}/{}", identity(town)?.id))
}

/// The host that alone works on a rig, if it is not `host`.
pub fn other_host_of(town: &Town, rig: &RigSlug, host: &str) -> Result<Option<String>> {
    let files = file_layers(town)?;
    let name = town.read(|reader| Ok(layers_over(&files, reader)?.rig_host(rig)?))?;
    Ok(Some(name).filter(|name| !name.is_empty() && !is_host_named(host, name)))
}

/// Refuses an identity that another host uses: each would declare the runs of the other lost.
fn refuse_other_incarnation(town: &Town, given: &str) -> Result<()> {
    let own = incarnation(town.root());
    let hosts = town.read(|reader| Ok(reader.hosts()?))?;
    let other = hosts
        .into_iter()
        .find(|(host, ago)| host.id == given && host.incarnation != own && *ago < ALIVE_FOR_S);
    match other {
        None => Ok(()),
        Some((host, ago)) => Err(OperationError::rejected(format!(
            "GT_HOST_ID is {given}, and another host with that identity was at work {ago} s ago ({} in {}); give each \
             host an identity of its own, or wait a minute if that one has ended",
            host.name, host.path
        ))),
    }
}

/// Whether other hosts can work on the same store.
pub(crate) fn is_shared(town: &Town) -> bool {
    matches!(town.store().address(), Some(StoreAddress::Server(_)))
}

/// Records in the store that this directory is at work, if others can work on the same store.
pub fn renew(town: &Town) -> Result<()> {
    if !town.has_directory() || (!is_shared(town) && town.host_id().is_none()) {
        return Ok(());
    }
    let found = identity(town)?;
    let id = town.host_id().map_or(found.id, str::to_owned);
    let row = HostRow {
        id,
        name: host_name(),
        machine: found.place.machine,
        path: town.root().display().to_string(),
        incarnation: incarnation(town.root()),
    };
    let known = town.read(|reader| Ok(reader.hosts()?))?;
    if known.iter().any(|(known, ago)| *known == row && (0..RENEW_AFTER_S).contains(ago)) {
        return Ok(());
    }
    // No process waits for this change, so no bell is rung.
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
    let alive = seen.into_iter().find(|(host, ago)| host.id == *id && *ago < ALIVE_FOR_S);
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

/// The facts for a person about this directory and others on this machine, for `gt doctor`.
pub fn copies(town: &Town) -> Result<Vec<String>> {
    let mut found: Vec<String> = former(town).iter().map(sentence).collect();
    if !town.has_directory() {
        return Ok(found);
    }
    let own = identity(town)?;
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
