//! Removing a rig together with the merge requests that it still has.

use gt_core::Rig;
use gt_core::merging::MergeRequest;
use gt_core::schedule::Rescued;
use gt_store::Reader;

use super::commands::give_up_in;
use crate::trees::keep_accepted;
use gt_town::rigs::{refuse_live_run, remove_in};
use gt_town::{OperationError, Result, Town};

/// Removes a rig that has no open work. With `force` its open merge requests are cancelled and their commits are saved; not
/// while one of them is being pushed.
pub fn remove_rig(town: &Town, name: &str, force: bool) -> Result<(Rig, Vec<Rescued>)> {
    let (rig, requests) = town.read(|reader| {
        let rig = gt_town::rig_names::require(reader, name)?;
        let requests = open_requests(reader, &rig)?;
        Ok((rig, requests))
    })?;
    if !force {
        refuse_requests(&rig, &requests)?;
    }
    let mut rescued = Vec::new();
    for request in &requests {
        rescued.extend(keep_accepted(town, &rig, request)?);
    }
    town.write(|writer| {
        let rig = gt_town::rig_names::require(writer, name)?;
        let open = open_requests(writer, &rig)?;
        // One that was made since has not been saved.
        let is_saved = |request: &MergeRequest| requests.iter().any(|one| one.id == request.id);
        let (known, new): (Vec<_>, Vec<_>) = open.into_iter().partition(is_saved);
        refuse_requests(&rig, &new)?;
        // A repair that runs would be ended with its request, and its tree with the rig.
        refuse_live_run(writer, &rig)?;
        for request in &known {
            // A repair of a convoy's branch is given up with the request of the convoy.
            if writer.merge_request(&request.id)?.is_some_and(|now| now.state.is_open()) {
                give_up_in(writer, request)?;
            }
        }
        for one in &rescued {
            writer.put_rescue(one)?;
        }
        let beads: Vec<_> = known.into_iter().map(|request| request.id.bead).collect();
        remove_in(writer, &rig, &beads)?;
        Ok((rig, rescued.clone()))
    })
}

fn open_requests(reader: &Reader<'_>, rig: &Rig) -> Result<Vec<MergeRequest>> {
    let mut requests = reader.open_merge_requests()?;
    requests.retain(|request| request.rig == rig.slug);
    Ok(requests)
}

fn refuse_requests(rig: &Rig, requests: &[MergeRequest]) -> Result<()> {
    if requests.is_empty() {
        return Ok(());
    }
    let names: Vec<String> = requests.iter().map(|request| request.id.to_string()).collect();
    let slug = &rig.slug;
    Err(OperationError::rejected(format!(
        "the rig {slug} has merge requests that are not over: {}; gt mq list --rig {slug} says what they wait for, and gt rig remove \
         {slug} --force cancels them and saves their work",
        names.join(", ")
    )))
}
