//! Resources: beads, runs and convoys as documents, by their address.

use std::fmt;

use form_urlencoded::byte_serialize;
use gt_api::to_json;
use gt_beads::convoys::{self, ConvoyFilter};
use gt_core::schedule::RunId;
use gt_core::{BeadId, Event};
use gt_daemon::views::{self, RunRowsRequest};

use crate::answers::ToolFailure;
use crate::caller::{McpCaller, McpRole};

/// How many runs and convoys a list names at most.
const LISTED_MAX: usize = 50;
/// The longest address.
const ADDRESS_BYTES_MAX: usize = 512;

/// The kind of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ResourceKind {
    Bead,
    Run,
    Convoy,
}

impl ResourceKind {
    pub(crate) const ALL: [Self; 3] = [Self::Bead, Self::Run, Self::Convoy];

    /// The part of the address before the name.
    pub(crate) fn path(self) -> &'static str {
        match self {
            Self::Bead => "beads",
            Self::Run => "runs",
            Self::Convoy => "convoys",
        }
    }

    pub(crate) fn description(self) -> &'static str {
        match self {
            Self::Bead => "A bead: its record, why it waits, its runs and merge requests",
            Self::Run => "A run: its state, its step, its cost; # is written %23",
            Self::Convoy => "A convoy and everything that it tracks",
        }
    }
}

/// The address of a resource, such as `gt://runs/gt-abc%232`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ResourceAddress {
    pub(crate) kind: ResourceKind,
    pub(crate) name: String,
}

impl ResourceAddress {
    pub(crate) fn bead(id: &BeadId) -> Self {
        Self { kind: ResourceKind::Bead, name: id.to_string() }
    }

    pub(crate) fn run(id: &RunId) -> Self {
        Self { kind: ResourceKind::Run, name: id.to_string() }
    }

    fn convoy(name: String) -> Self {
        Self { kind: ResourceKind::Convoy, name }
    }

    pub(crate) fn parse(text: &str) -> Result<Self, ToolFailure> {
        let unknown = || {
            let shown: String = text.chars().take(80).collect();
            ToolFailure::new(format!(
                "\"{}\" is no resource; they are gt://beads/<id>, gt://runs/<id> and gt://convoys/<id>",
                shown.escape_debug()
            ))
        };
        if text.len() > ADDRESS_BYTES_MAX {
            return Err(unknown());
        }
        let (path, name) =
            text.strip_prefix("gt://").and_then(|rest| rest.split_once('/')).ok_or_else(unknown)?;
        let kind = ResourceKind::ALL.into_iter().find(|kind| kind.path() == path);
        let name = decoded(name);
        match kind {
            Some(kind) if !name.is_empty() => Ok(Self { kind, name }),
            _ => Err(unknown()),
        }
    }
}

/// Reads `%23` and similar.
fn decoded(name: &str) -> String {
    let field = format!("={}", name.replace('+', "%2B").replace('&', "%26"));
    let mut fields = form_urlencoded::parse(field.as_bytes());
    fields.next().map(|(_, value)| value.into_owned()).unwrap_or_default()
}

impl fmt::Display for ResourceAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "gt://{}/", self.kind.path())?;
        byte_serialize(self.name.as_bytes()).try_for_each(|part| f.write_str(part))
    }
}

/// A resource in a list.
#[derive(Debug)]
pub(crate) struct ListedResource {
    pub(crate) address: ResourceAddress,
    pub(crate) title: String,
}

/// The resources that a client is told of. Others can be read by their address.
pub(crate) fn list(caller: &McpCaller) -> Result<Vec<ListedResource>, ToolFailure> {
    let town = &caller.town;
    if caller.role == McpRole::Worker {
        let Some(run) = town.acting_run() else { return Ok(Vec::new()) };
        let row = views::run_row(town, &run.to_string())?;
        return Ok(vec![
            ListedResource { address: ResourceAddress::bead(&run.bead), title: row.title.clone() },
            ListedResource { address: ResourceAddress::run(run), title: row.title },
        ]);
    }
    let request =
        RunRowsRequest { live: Some(true), limit: LISTED_MAX, ..RunRowsRequest::default() };
    let mut listed = Vec::new();
    for row in views::run_rows(town, &request)?.items {
        let address = ResourceAddress { kind: ResourceKind::Run, name: row.id };
        listed.push(ListedResource { address, title: row.title.clone() });
        let address = ResourceAddress { kind: ResourceKind::Bead, name: row.bead };
        listed.push(ListedResource { address, title: row.title });
    }
    for convoy in convoys::list(town, &ConvoyFilter::default())?.iter().take(LISTED_MAX) {
        let (id, title) = (convoy.bead.id.to_string(), convoy.bead.title.to_string());
        listed.push(ListedResource { address: ResourceAddress::convoy(id), title });
    }
    Ok(listed)
}

/// The document at an address.
pub(crate) fn read(caller: &McpCaller, address: &ResourceAddress) -> Result<String, ToolFailure> {
    allow(caller, address)?;
    let (town, name) = (&caller.town, address.name.as_str());
    Ok(match address.kind {
        ResourceKind::Bead => to_json(&views::bead_page(town, name)?),
        ResourceKind::Run => to_json(&views::run_row(town, name)?),
        ResourceKind::Convoy => {
            to_json(&views::convoy_status_document(&views::current_convoy(town, name)?))
        }
    })
}

/// Refuses the runs of others to a worker.
pub(crate) fn allow(caller: &McpCaller, address: &ResourceAddress) -> Result<(), ToolFailure> {
    if caller.role == McpRole::Operator || address.kind == ResourceKind::Bead {
        return Ok(());
    }
    let own = caller.town.acting_run().map(ResourceAddress::run);
    match own {
        Some(own) if own == *address => Ok(()),
        Some(own) => {
            Err(ToolFailure::new(format!("a worker reads beads and its own run, which is {own}")))
        }
        None => Err(ToolFailure::new("this is not the worker of a run")),
    }
}

/// The beads that a convoy tracks, and the convoy itself: an event of one of them changes its document.
pub(crate) fn members(caller: &McpCaller, convoy: &str) -> Result<Vec<BeadId>, ToolFailure> {
    let status = views::current_convoy(&caller.town, convoy)?;
    let mut members: Vec<BeadId> =
        status.tracked.iter().map(|tracked| tracked.row.bead.id.clone()).collect();
    members.push(status.convoy.bead.id.clone());
    Ok(members)
}

/// Whether an event may have changed the document at an address.
pub(crate) fn is_about(event: &Event, address: &ResourceAddress, members: &[BeadId]) -> bool {
    match address.kind {
        ResourceKind::Bead => event.bead.as_ref().is_some_and(|bead| bead.as_str() == address.name),
        ResourceKind::Run => event.run.as_ref().is_some_and(|run| *run == address.name),
        ResourceKind::Convoy => event.bead.as_ref().is_some_and(|bead| members.contains(bead)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_reads_back_as_it_is_written() {
        for (kind, name, text) in [
            (ResourceKind::Bead, "gt-abc", "gt://beads/gt-abc"),
            (ResourceKind::Run, "gt-abc#2", "gt://runs/gt-abc%232"),
            (ResourceKind::Convoy, "hq-cv-x7k2p", "gt://convoys/hq-cv-x7k2p"),
        ] {
            let address = ResourceAddress { kind, name: name.to_owned() };
            assert_eq!(address.to_string(), text);
            assert_eq!(ResourceAddress::parse(text).unwrap(), address);
        }
    }

    #[test]
    fn other_addresses_are_refused_in_a_sentence() {
        let long = format!("gt://beads/{}", "x".repeat(600));
        for wrong in ["", "gt://", "gt://beads/", "gt://rigs/web", "file:///etc/passwd", &long] {
            let said = ResourceAddress::parse(wrong).unwrap_err().to_string();
            assert!(said.contains("is no resource"), "{said}");
        }
    }
}
