//! Many commands, one transaction.

use gt_core::schedule::Run;
use gt_core::{BeadId, DependencyType, Prefix};
use gt_store::Writer;

use crate::beads::{
    BeadChanges, Close, NewBead, close_in, create_in, reopen_in, resolve_shown_id_in, update_in,
};
use crate::dependencies::{add_in, remove_in};
use crate::notes::{comment_in, label_in};
use crate::runs::end_in_world;
use crate::{OperationError, Result, Town};

/// What one line asks for. Each does what the command of its name does.
#[derive(Debug, Clone)]
pub enum Step {
    /// `create`
    Create(Box<NewBead>),
    /// `update`
    Update {
        /// Which beads.
        beads: Vec<String>,
        /// What is to change.
        changes: Box<BeadChanges>,
    },
    /// `close`
    Close {
        /// Beads; and, if `how` has no reason, words that give it.
        words: Vec<String>,
        /// How.
        how: Close,
    },
    /// `reopen`
    Reopen {
        /// Which beads.
        beads: Vec<String>,
        /// Why.
        reason: Option<String>,
    },
    /// `dep add`
    AddDependency {
        /// The bead that depends.
        issue: String,
        /// On which.
        target: String,
        /// How.
        kind: DependencyType,
        /// Change the type of a dependency that is there.
        retype: bool,
    },
    /// `dep remove`
    RemoveDependency {
        /// The bead that depends.
        issue: String,
        /// On which.
        target: String,
        /// Only if it is of this type.
        kind: Option<DependencyType>,
    },
    /// `label add` and `label remove`
    Label {
        /// Which beads.
        beads: Vec<String>,
        /// Which label.
        label: String,
        /// Whether to add it.
        add: bool,
    },
    /// `comment`
    Comment {
        /// On which bead.
        bead: String,
        /// What to say.
        text: String,
        /// Who says it, if not the actor.
        author: Option<String>,
    },
}

impl Step {
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
    /// What it asks for.
    pub step: Step,
}

/// What came of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineDone {
    /// Its number.
    pub number: usize,
    /// The name of its command.
    pub command: &'static str,
    /// The beads it was about.
    pub ids: Vec<BeadId>,
    /// What it made a bead depend on and does not exist; such a bead blocks from the day it appears.
    pub missing: Vec<BeadId>,
}

/// Does what every line asks for, one after the other, or nothing at all.
pub fn run(town: &Town, lines: &[BatchLine], dry_run: bool) -> Result<Vec<LineDone>> {
    let (done, cancelled) = town.write_or_rehearse(dry_run, |writer| {
        let mut done = Vec::with_capacity(lines.len());
        let mut cancelled = Vec::new();
        for BatchLine { number, place, step } in lines {
            let (ids, missing) =
                take(town, writer, step, &mut cancelled).map_err(|error| error.at(place))?;
            done.push(LineDone { number: *number, command: step.command(), ids, missing });
        }
        Ok((done, cancelled))
    })?;
    if !dry_run {
        end_in_world(town, &cancelled);
    }
    Ok(done)
}

/// The beads a line was about, and those it names that do not exist.
type Touched = (Vec<BeadId>, Vec<BeadId>);

fn take(
    town: &Town,
    writer: &mut Writer<'_>,
    step: &Step,
    cancelled: &mut Vec<Run>,
) -> Result<Touched> {
    let ids = match step {
        Step::Create(new) => {
            let created = create_in(town, writer, new)?;
            return Ok((vec![created.bead.id], created.missing));
        }
        Step::AddDependency { issue, target, kind, retype } => {
            let added = add_in(town, writer, issue, target, kind, *retype)?;
            let missing = (!added.target_exists).then(|| added.target.clone());
            return Ok((vec![added.issue, added.target], missing.into_iter().collect()));
        }
        Step::Update { beads, changes } => beads
            .iter()
            .map(|bead| update_in(town, writer, bead, changes))
            .collect::<Result<Vec<_>>>()?,
        Step::Close { words, how } => close(town, writer, words, how, cancelled)?,
        Step::Reopen { beads, reason } => {
            let reopen = |bead: &String| {
                let (bead, _) = reopen_in(town, writer, bead, reason.as_deref())?;
                Ok(bead.id)
            };
            beads.iter().map(reopen).collect::<Result<Vec<_>>>()?
        }
        Step::RemoveDependency { issue, target, kind } => {
            let (issue, target, _) = remove_in(town, writer, issue, target, kind.as_ref())?;
            vec![issue, target]
        }
        Step::Label { beads, label, add } => {
            let changed = label_in(town, writer, beads, label, *add)?;
            changed.into_iter().map(|(id, _)| id).collect()
        }
        Step::Comment { bead, text, author } => {
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

/// Where the beads end and the reason begins: the first word is a bead, and so is every further one
/// that is the whole id of one. What looks like an id of ours and is none is refused, lest a slip of the
/// pen becomes a reason.
fn beads_and_reason(
    town: &Town,
    writer: &Writer<'_>,
    words: &[String],
) -> Result<(Vec<BeadId>, Option<String>)> {
    let mut ids = Vec::new();
    for (at, word) in words.iter().enumerate() {
        if at == 0 {
            ids.push(resolve_shown_id_in(town, writer, word)?);
            continue;
        }
        let id = BeadId::parse(word).ok();
        match id {
            Some(id) if writer.bead_exists(&id)? => ids.push(id),
            Some(id) if writer.context(id.as_str())?.is_some() => ids.push(id),
            Some(id) if id.has_prefix(Prefix::TOWN) || writer.rig_of_id(&id)?.is_some() => {
                return Err(OperationError::NoBead(word.clone()));
            }
            _ => return Ok((ids, Some(words[at..].join(" ")))),
        }
    }
    Ok((ids, None))
}
