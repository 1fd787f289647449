//! Finding beads, contexts and the targets of edges by what a person writes.

use gt_core::decide::resolve_partial;
use gt_core::schedule::Context;
use gt_core::{Bead, BeadId, Dependency, DependencyType, Invalid, Prefix, Uid, limits};
use gt_store::{Reader, Writer};

use gt_town::{OperationError, Result, Town};

/// A bead or a context, found by its id.
pub enum NamedRecord {
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

/// Like [`resolve`], for callers that only read: contexts are shown as beads.
pub fn resolve_shown(town: &Town, input: &str) -> Result<BeadId> {
    town.read(|reader| resolve_shown_id_in(town, reader, input))
}

pub(crate) fn resolve_shown_id_in(town: &Town, reader: &Reader<'_>, input: &str) -> Result<BeadId> {
    Ok(match resolve_shown_in(town, reader, input)? {
        NamedRecord::Bead(id) => id,
        NamedRecord::Context(context) => shown_id(&context),
    })
}

/// Like [`resolve`], as a part of a larger transaction.
pub fn resolve_in(town: &Town, reader: &Reader<'_>, input: &str) -> Result<BeadId> {
    match resolve_shown_in(town, reader, input)? {
        NamedRecord::Bead(id) => Ok(id),
        NamedRecord::Context(context) => Err(refusal(&context)),
    }
}

/// The bead or context that `input` means. A context is looked for only where no bead is meant, so that the name of a
/// context never hides a bead.
pub(crate) fn resolve_shown_in(
    town: &Town,
    reader: &Reader<'_>,
    input: &str,
) -> Result<NamedRecord> {
    match resolve_bead_in(town, reader, input) {
        Err(OperationError::NoBead(name)) => {
            let context = context_in(reader, &name)?;
            context
                .map(|context| NamedRecord::Context(Box::new(context)))
                .ok_or(OperationError::NoBead(name))
        }
        resolved => resolved.map(NamedRecord::Bead),
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
    let is_too_long = input.len() > limits::ID_BYTES_MAX;
    if input.is_empty() || is_too_long || input.chars().any(|c| c.is_control() || c.is_whitespace())
    {
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
pub fn require(town: &Town, reader: &Reader<'_>, input: &str) -> Result<Bead> {
    let id = resolve_in(town, reader, input)?;
    reader.bead(&id)?.ok_or_else(|| OperationError::NoBead(input.to_owned()))
}

/// The id that a context is shown under.
pub(crate) fn shown_id(context: &Context) -> BeadId {
    BeadId::trusted(context.id.as_str().to_owned())
}

/// That a context tracks its bead.
pub(crate) fn tracking_edge(context: &Context) -> Dependency {
    Dependency {
        issue: shown_id(context),
        target: context.bead.clone(),
        kind: DependencyType::Tracks,
        created_at: context.enqueued_at,
        created_by: context.enqueued_by.clone(),
        metadata: String::new(),
        thread_id: String::new(),
        carried: Vec::new(),
    }
}

/// The error for a command that changes beads and was given a context.
fn refusal(context: &Context) -> OperationError {
    let Context { id, bead, .. } = context;
    OperationError::rejected(format!(
        "{id} is the sling context of {bead}, which the scheduler looks after: bd show {id} shows it, \
         bd close {id} (or gt scheduler clear --bead {bead}) takes it out of the queue, and what is to \
         change is changed on {bead}"
    ))
}

/// A dependency's target: a bead, or an id of another system, which is kept as it is.
pub(crate) fn resolve_target(town: &Town, reader: &Reader<'_>, input: &str) -> Result<BeadId> {
    match resolve_in(town, reader, input) {
        Err(OperationError::NoBead(name)) => {
            foreign(reader, input)?.ok_or(OperationError::NoBead(name))
        }
        resolved => resolved,
    }
}

/// The bead that `input` names, if it looks like one of a place we know nothing of.
fn foreign(reader: &Reader<'_>, input: &str) -> Result<Option<BeadId>> {
    let Some(id) = target_name(input) else {
        return Ok(None);
    };
    let is_ours = id.has_prefix(Prefix::TOWN) || reader.rig_of_id(&id)?.is_some();
    Ok((!is_ours).then_some(id))
}

/// The name of a dependency's target that need not be a bead here: an id, or a name such as
/// `external:project:capability`.
pub(crate) fn target_name(input: &str) -> Option<BeadId> {
    let is_outside_name = input.starts_with("external:")
        && input.len() <= limits::ID_BYTES_MAX
        && input.bytes().all(|byte| byte.is_ascii_graphic());
    if is_outside_name {
        return Some(BeadId::trusted(input.to_owned()));
    }
    BeadId::parse(input).ok()
}

/// A new edge, made now by the writer's actor.
pub fn edge(
    writer: &Writer<'_>,
    issue: &BeadId,
    target: &BeadId,
    kind: DependencyType,
) -> Dependency {
    Dependency {
        issue: issue.clone(),
        target: target.clone(),
        kind,
        created_at: writer.now(),
        created_by: writer.actor().to_owned(),
        metadata: String::new(),
        thread_id: String::new(),
        carried: Vec::new(),
    }
}
