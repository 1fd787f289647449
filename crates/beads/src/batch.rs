//! Many commands, one transaction.

use gt_core::schedule::Run;
use gt_core::{BeadId, DependencyType, Prefix};
use gt_store::{Reader, Writer};

use crate::beads::{BeadChanges, Close, NewBead, close_in, create_in, reopen_in, update_in};
use crate::dependencies::{add_in, remove_in};
use crate::lookup::resolve_shown_id_in;
use crate::notes::{comment_in, label_in};
use gt_town::{OperationError, Result, Town};

/// The request of one line. Each does the same as the command of its name.
#[derive(Debug, Clone)]
pub enum BatchStep {
    /// `create`
    Create(Box<NewBead>),
    /// `update`
    Update {
        /// The beads.
        beads: Vec<String>,
        /// The changes.
        changes: Box<BeadChanges>,
    },
    /// `close`
    Close {
        /// Beads; and, if `how` has no reason, words that give it.
        words: Vec<String>,
        /// The options.
        how: Close,
    },
    /// `reopen`
    Reopen {
        /// The beads.
        beads: Vec<String>,
        /// The reason.
        reason: Option<String>,
    },
    /// `dep add`
    AddDependency {
        /// The bead that depends.
        issue: String,
        /// The bead it depends on.
        target: String,
        /// The type of the dependency.
        kind: DependencyType,
        /// Change the type of a dependency that is there.
        retype: bool,
    },
    /// `dep remove`
    RemoveDependency {
        /// The bead that depends.
        issue: String,
        /// The bead it depends on.
        target: String,
        /// Only if it is of this type.
        kind: Option<DependencyType>,
    },
    /// `label add` and `label remove`
    Label {
        /// The beads.
        beads: Vec<String>,
        /// The label.
        label: String,
        /// Whether to add it.
        add: bool,
    },
    /// `comment`
    Comment {
        /// On which bead.
        bead: String,
        /// The text of the comment.
        text: String,
        /// The author, if not the actor.
        author: Option<String>,
    },
}

impl BatchStep {
    /// The name of the command.
    pub fn command(&self) -> &'static str {
        match self {
            Self::Create(_) => "create",
            Self::Update { .. } => "update",
            Self::Close { .. } => "close",
            Self::Reopen { .. } => "reopen",
            Self::AddDependency { .. } => "dep add",
            Self::RemoveDependency { .. } => "dep remove",
            Self::Label { add: true, .. } => "label add",
            Self::Label { add: false, .. } => "label remove",
            Self::Comment { .. } => "comment",
        }
    }
}

/// A line of a batch.
#[derive(Debug, Clone)]
pub struct BatchLine {
    /// Its number.
    pub number: usize,
    /// Where it stands, for errors.
    pub place: String,
    /// Its request.
    pub step: BatchStep,
}

/// The result of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchLineResult {
    /// Its number.
    pub number: usize,
    /// The name of its command.
    pub command: &'static str,
    /// The beads it was about.
    pub ids: Vec<BeadId>,
    /// The targets of new dependencies that do not exist; such a bead blocks from the day it appears.
    pub missing: Vec<BeadId>,
}

/// The answer of a batch.
#[derive(Debug, Clone)]
pub struct BatchResult {
    /// One for each line.
    pub lines: Vec<BatchLineResult>,
    /// The runs that were cancelled in the store. The caller ends their processes, unless it was a dry run.
    pub cancelled: Vec<Run>,
}

/// Does what every line asks for, one after the other, or nothing at all.
pub fn run(town: &Town, lines: &[BatchLine], dry_run: bool) -> Result<BatchResult> {
    let (done, cancelled) = town.write_or_rehearse(dry_run, |writer| {
        let mut done = Vec::with_capacity(lines.len());
        let mut cancelled = Vec::new();
        for BatchLine { number, place, step } in lines {
            let (ids, missing) =
                take(town, writer, step, &mut cancelled).map_err(|error| error.at(place))?;
            done.push(BatchLineResult { number: *number, command: step.command(), ids, missing });
        }
        Ok((done, cancelled))
    })?;
    Ok(BatchResult { lines: done, cancelled })
}

/// The beads a line was about, and those it names that do not exist.
type TouchedBeads = (Vec<BeadId>, Vec<BeadId>);

fn take(
    town: &Town,
    writer: &mut Writer<'_>,
    step: &BatchStep,
    cancelled: &mut Vec<Run>,
) -> Result<TouchedBeads> {
    let ids = match step {
        BatchStep::Create(new) => {
            let created = create_in(town, writer, new)?;
            return Ok((vec![created.bead.id], created.missing));
        }
        BatchStep::AddDependency { issue, target, kind, retype } => {
            let added = add_in(town, writer, issue, target, kind, *retype)?;
            let missing = (!added.target_exists).then(|| added.target.clone());
            return Ok((vec![added.issue, added.target], missing.into_iter().collect()));
        }
        BatchStep::Update { beads, changes } => beads
            .iter()
            .map(|bead| update_in(town, writer, bead, changes))
            .collect::<Result<Vec<_>>>()?,
        BatchStep::Close { words, how } => close(town, writer, words, how, cancelled)?,
        BatchStep::Reopen { beads, reason } => {
            let reopen = |bead: &String| {
                let (bead, _) = reopen_in(town, writer, bead, reason.as_deref())?;
                Ok(bead.id)
            };
            beads.iter().map(reopen).collect::<Result<Vec<_>>>()?
        }
        BatchStep::RemoveDependency { issue, target, kind } => {
            let (issue, target, _) = remove_in(town, writer, issue, target, kind.as_ref())?;
            vec![issue, target]
        }
        BatchStep::Label { beads, label, add } => {
            let changed = label_in(town, writer, beads, label, *add)?;
            changed.into_iter().map(|(id, _)| id).collect()
        }
        BatchStep::Comment { bead, text, author } => {
            vec![comment_in(town, writer, bead, text, author.as_deref())?.bead]
        }
    };
    Ok((ids, Vec::new()))
}

fn close(
    town: &Town,
    writer: &mut Writer<'_>,
    words: &[String],
    how: &Close,
    cancelled: &mut Vec<Run>,
) -> Result<Vec<BeadId>> {
    let (ids, reason) = if how.reasons.is_empty() {
        beads_and_reason(town, writer, words)?
    } else {
        let ids = words.iter().map(|word| resolve_shown_id_in(town, writer, word));
        (ids.collect::<Result<_>>()?, None)
    };
    let how = match reason {
        None => how.clone(),
        Some(reason) => Close { reasons: vec![reason], ..how.clone() },
    };
    how.check()?;
    for (at, id) in ids.iter().enumerate() {
        cancelled.extend(close_in(writer, id, &how, at, town.acting_run())?.cancelled);
    }
    Ok(ids)
}

/// The beads that words name, and the reason that the words behind them give.
pub fn split_reason(town: &Town, words: &[String]) -> Result<(Vec<String>, Option<String>)> {
    let (ids, reason) = town.read(|reader| beads_and_reason(town, reader, words))?;
    Ok((ids.iter().map(ToString::to_string).collect(), reason))
}

/// Where the beads end and the reason begins: the first word is a bead, and so is every further one that is the whole
/// id of one. A word that looks like an id of ours and is none is refused, so that a typing error does not become a
/// reason.
fn beads_and_reason(
    town: &Town,
    reader: &Reader<'_>,
    words: &[String],
) -> Result<(Vec<BeadId>, Option<String>)> {
    let mut ids = Vec::new();
    for (at, word) in words.iter().enumerate() {
        if at == 0 {
            ids.push(resolve_shown_id_in(town, reader, word)?);
            continue;
        }
        let id = BeadId::parse(word).ok();
        match id {
            Some(id) if reader.bead_exists(&id)? => ids.push(id),
            Some(id) if reader.context(id.as_str())?.is_some() => ids.push(id),
            Some(id) if id.has_prefix(Prefix::TOWN) || reader.rig_of_id(&id)?.is_some() => {
                return Err(OperationError::NoBead(word.clone()));
            }
            _ => return Ok((ids, Some(words[at..].join(" ")))),
        }
    }
    Ok((ids, None))
}
