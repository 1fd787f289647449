//! Finding polecats by name.

use gt_core::schedule::{Polecat, Run, WorkerPlace};
use gt_core::{Rig, RigSlug};
use gt_store::Reader;

use gt_town::tree_paths::rig_with_trees;
use gt_town::{OperationError, Result, Town};

/// The live run of a place.
pub fn live_run_at(reader: &Reader<'_>, place: &WorkerPlace) -> Result<Option<Run>> {
    Ok(reader.live_runs()?.into_iter().find(|run| run.place.as_ref() == Some(place)))
}

/// The polecat that a name means: `<rig>/<name>` or `<rig>/polecats/<name>`, or the name alone if one rig has it.
pub fn named_polecat(town: &Town, input: &str) -> Result<(Rig, Polecat)> {
    let (slug, name) = match input.split('/').collect::<Vec<_>>().as_slice() {
        [rig, name] | [rig, "polecats", name] => ((*rig).to_owned(), (*name).to_owned()),
        [name] => (only_rig_with(town, name)?.to_string(), (*name).to_owned()),
        _ => {
            return Err(OperationError::rejected(format!(
                "\"{}\" is not a polecat; write <rig>/<name>",
                input.escape_debug()
            )));
        }
    };
    let rig = rig_with_trees(town, &slug)?;
    let known = town.read(|reader| Ok(reader.polecats_of(&rig.slug)?))?;
    let mut names: Vec<String> = known.iter().map(|polecat| polecat.name.clone()).collect();
    if let Some(polecat) = known.into_iter().find(|polecat| polecat.name == name) {
        return Ok((rig, polecat));
    }
    names.sort();
    let names = if names.is_empty() { "none yet".to_owned() } else { names.join(", ") };
    Err(OperationError::rejected(format!(
        "the rig {slug} has no polecat \"{}\"; it has: {names}",
        name.escape_debug()
    )))
}

/// The one rig that has a polecat of this name.
fn only_rig_with(town: &Town, name: &str) -> Result<RigSlug> {
    let mut named = town.read(|reader| Ok(reader.polecats()?))?;
    named.retain(|polecat| polecat.name == name);
    match named.as_slice() {
        [only] => Ok(only.rig.clone()),
        [] => Err(OperationError::rejected(format!(
            "there is no polecat \"{}\"; gt polecat list shows all",
            name.escape_debug()
        ))),
        several => {
            let names: Vec<String> =
                several.iter().map(|one| format!("{}/{}", one.rig, one.name)).collect();
            Err(OperationError::rejected(format!(
                "there are several polecats {name}; write one of: {}",
                names.join(", ")
            )))
        }
    }
}
