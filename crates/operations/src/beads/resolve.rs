//! From what a person writes to the bead they mean.

use gt_core::decide::resolve_partial;
use gt_core::{Bead, BeadId, Invalid, Prefix, Uid, limits};
use gt_store::Reader;

use crate::{OperationError, Result, Town};

/// The bead that `input` means: its id, its alias, its id without the prefix, or any part of its id
/// that no other bead shares.
pub fn resolve(town: &Town, input: &str) -> Result<BeadId> {
    town.read(|reader| resolve_in(town, reader, input))
}

pub(crate) fn resolve_in(town: &Town, reader: &Reader<'_>, input: &str) -> Result<BeadId> {
    let input = input.trim();
    if input.is_empty() || input.chars().any(|c| c.is_control() || c.is_whitespace()) {
        let shown: String = input.chars().take(60).collect();
        return Err(Invalid(format!("\"{}\" is not a bead id", shown.escape_debug())).into());
    }
    if let Ok(id) = BeadId::parse(input)
        && reader.bead_exists(&id)?
    {
        return Ok(id);
    }
    if let Some(uid) = Uid::parse(input)
        && let Some(id) = reader.bead_by_uid(&uid)?
    {
        return Ok(id);
    }
    let rigs = reader.rigs()?;
    let here = town.rig_here(&rigs).map(|rig| rig.prefix);
    let prefixes =
        here.into_iter().chain([Prefix::town()]).chain(rigs.into_iter().map(|r| r.prefix));
    for prefix in prefixes {
        if let Ok(id) = BeadId::parse(&format!("{prefix}-{input}"))
            && reader.bead_exists(&id)?
        {
            return Ok(id);
        }
    }
    let candidates = reader.ids_containing(input)?;
    match resolve_partial(input, candidates.iter()).as_slice() {
        [] => Err(OperationError::NoBead(input.to_owned())),
        [only] => Ok((*only).clone()),
        several => Err(OperationError::Ambiguous {
            input: input.to_owned(),
            shown: several
                .iter()
                .take(limits::AMBIGUOUS_SHOWN_MAX)
                .map(ToString::to_string)
                .collect(),
            count: several.len(),
        }),
    }
}

/// The bead that `input` means, whole.
pub(crate) fn require(town: &Town, reader: &Reader<'_>, input: &str) -> Result<Bead> {
    let id = resolve_in(town, reader, input)?;
    reader.bead(&id)?.ok_or_else(|| OperationError::NoBead(input.to_owned()))
}
