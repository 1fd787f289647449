//! From the text that a person writes to the address it means.

use gt_core::message::{ADDRESS_FORMS, WrittenAddress};
use gt_core::schedule::WorkerPlace;
use gt_core::{BeadId, MessageAddress, RigSlug};
use gt_store::Reader;

use crate::lookup::resolve_in;
use gt_town::{OperationError, Result, Town};

/// The address that `input` means. It must have a reader, now or later.
pub(super) fn resolve_address(
    town: &Town,
    reader: &Reader<'_>,
    input: &str,
) -> Result<MessageAddress> {
    match WrittenAddress::parse(input)? {
        WrittenAddress::Standing(address) => {
            check(reader, &address)?;
            Ok(address)
        }
        WrittenAddress::Run(run) => {
            // An id that only looks like a run is still a bead's.
            let Some(found) = reader.run(&run)? else { return work(town, reader, input) };
            if found.state.is_live() {
                return Ok(MessageAddress::Work(run.bead));
            }
            let now = match reader.live_run(&run.bead)? {
                Some(live) => {
                    format!(
                        "{} works on {} now as {}; write to {}",
                        live.agent, run.bead, live.id, live.id
                    )
                }
                None => no_worker(&run.bead),
            };
            let state = found.state.as_str();
            Err(OperationError::rejected(format!("{run} has ended ({state}); {now}")))
        }
        WrittenAddress::Bead(name) => work(town, reader, &name),
    }
}

/// Whether a message to this address would have a reader.
pub(crate) fn check(reader: &Reader<'_>, address: &MessageAddress) -> Result<()> {
    if let MessageAddress::Work(bead) = address {
        let awaited = reader.live_run(bead)?.is_some() || reader.open_context(bead)?.is_some();
        return if awaited { Ok(()) } else { Err(OperationError::rejected(no_worker(bead))) };
    }
    let Some(rig) = address.rig() else { return Ok(()) };
    if reader.rig(rig)?.is_none() {
        let known = reader.rigs()?.into_iter().map(|rig| rig.slug.to_string()).collect();
        return Err(OperationError::NoRig { name: rig.to_owned(), known });
    }
    match address {
        // People come and go without notice.
        MessageAddress::Place(place) if !place.is_crew() => check_polecat(reader, rig, place),
        _ => Ok(()),
    }
}

fn check_polecat(reader: &Reader<'_>, rig: &str, place: &WorkerPlace) -> Result<()> {
    let mut known: Vec<String> = reader
        .polecats_of(&RigSlug::trusted(rig.to_owned()))?
        .iter()
        .map(|polecat| format!("{rig}/polecats/{}", polecat.name))
        .collect();
    for run in reader.live_runs()? {
        if let Some(place) = run.place.filter(|place| !place.is_crew() && run.rig.as_str() == rig) {
            known.push(place.to_string());
        }
    }
    known.sort();
    known.dedup();
    if known.iter().any(|known| known == place.as_str()) {
        return Ok(());
    }
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    Err(OperationError::rejected(format!(
        "there is no worker {place}; the polecats of {rig} are: {known}; others are written {ADDRESS_FORMS}"
    )))
}

fn work(town: &Town, reader: &Reader<'_>, input: &str) -> Result<MessageAddress> {
    let bead = resolve_in(town, reader, input).map_err(|error| match error {
        OperationError::NoBead(name) => OperationError::rejected(format!(
            "\"{}\" is neither an address nor a bead; write {ADDRESS_FORMS}",
            name.escape_debug()
        )),
        error => error,
    })?;
    let address = MessageAddress::Work(bead);
    check(reader, &address)?;
    Ok(address)
}

fn no_worker(bead: &BeadId) -> String {
    format!(
        "{bead} has no worker and is not scheduled; leave a comment for the next worker with bd comments add \
         {bead} \"…\""
    )
}
