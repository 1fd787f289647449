//! From what a person writes to the bead they mean.

use gt_core::decide::resolve_partial;
use gt_core::schedule::Context;
use gt_core::{Bead, BeadId, Invalid, Prefix, Uid, limits};
use gt_store::Reader;

use super::contexts::{refusal, shown_id};
use crate::{OperationError, Result, Town};

/// Something that goes by an id.
pub(crate) enum Named {
    /// A bead.
    Bead(BeadId),
    /// A context, which is shown as one.
    Context(Box<Context>),
}

/// The bead that `input` means: its id, its alias, its id without the prefix, or any part of its id
/// that no other bead shares.
pub fn resolve(town: &Town, input: &str) -> Result<BeadId> {
    town.read(|reader| resolve_in(town, reader, input))
}

/// Like [`resolve`], for whoever only looks: contexts are shown as beads.
pub fn resolve_shown(town: &Town, input: &str) -> Result<BeadId> {
    town.read(|reader| resolve_shown_id_in(town, reader, input))
}

pub(crate) fn resolve_shown_id_in(town: &Town, reader: &Reader<'_>, input: &str) -> Result<BeadId> {
    Ok(match resolve_shown_in(town, reader, input)? {
        Named::Bead(id) => id,
        Named::Context(context) => shown_id(&context),
    })
}

pub(crate) fn resolve_in(town: &Town, reader: &Reader<'_>, input: &str) -> Result<BeadId> {
    match resolve_shown_in(town, reader, input)? {
        Named::Bead(id) => Ok(id),
        Named::Context(context) => Err(refusal(&context)),
    }
}

/// What `input` means. Only where it means no bead is a context looked for, so that the names of
/// contexts are in nobody's way.
pub(crate) fn resolve_shown_in(town: &Town, reader: &Reader<'_>, input: &str) -> Result<Named> {
    match resolve_bead_in(town, reader, input) {
        Err(OperationError::NoBead(name)) => {
            let context = context_in(reader, &name)?;
            context
                .map(|context| Named::Context(Box::new(context)))
                .ok_or(OperationError::NoBead(name))
        }
        resolved => resolved.map(Named::Bead),
    }
}

/// The context of this name, or the only one whose name has this part.
fn context_in(reader: &Reader<'_>, input: &str) -> Result<Option<Context>> {
    if !input.contains("ctx") {
        return Ok(None);
    }
    if let Some(context) = reader.context(input)? {
        return Ok(Some(context));
    }
    let ids = reader.context_ids_containing(input)?;
    match resolve_partial(input, ids.iter()).as_slice() {
        [] => Ok(None),
        [only] => Ok(reader.context(only.as_str())?),
        several => Err(ambiguous(input, several)),
    }
}

fn ambiguous(input: &str, several: &[&BeadId]) -> OperationError {
    let shown = several.iter().take(limits::AMBIGUOUS_SHOWN_MAX).map(ToString::to_string);
    let (input, shown) = (input.to_owned(), shown.collect());
    OperationError::Ambiguous { input, shown, count: several.len() }
}

fn resolve_bead_in(town: &Town, reader: &Reader<'_>, input: &str) -> Result<BeadId> {
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
        several => Err(ambiguous(input, several)),
    }
}

/// The bead that `input` means, whole.
pub(crate) fn require(town: &Town, reader: &Reader<'_>, input: &str) -> Result<Bead> {
    let id = resolve_in(town, reader, input)?;
    reader.bead(&id)?.ok_or_else(|| OperationError::NoBead(input.to_owned()))
}
