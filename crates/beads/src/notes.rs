//! Labels and comments.

use gt_core::bead::{check_label, check_text};
use gt_core::schedule::labels::{SLING_CONTEXT, is_derived, of_bead};
use gt_core::{Bead, BeadId, Comment, DependencyType, Uid};
use gt_store::Writer;

use crate::lookup::{NamedRecord, require, resolve_in, resolve_shown_in, shown_id};
use crate::transition_check::refuse_if_over;
use gt_town::{OperationError, Result, Town};

/// Adds or removes a label on every bead, or on none.
pub fn label(
    town: &Town,
    inputs: &[String],
    label: &str,
    add: bool,
) -> Result<Vec<(BeadId, bool)>> {
    town.write(|writer| label_in(town, writer, inputs, label, add))
}

pub(crate) fn label_in(
    town: &Town,
    writer: &mut Writer<'_>,
    inputs: &[String],
    label: &str,
    add: bool,
) -> Result<Vec<(BeadId, bool)>> {
    if add && label.contains(',') {
        return Err(OperationError::rejected(
            "a label may not contain a comma, which separates labels elsewhere",
        ));
    }
    let mut changed = Vec::new();
    for input in inputs {
        let bead = require(town, writer, input)?;
        refuse_if_over(town, writer, &bead.id, "label")?;
        let change =
            if add { give_label(writer, &bead, label)? } else { take_label(writer, &bead, label)? };
        if change {
            writer.touch_bead(&bead.id)?;
        }
        changed.push((bead.id, change));
    }
    Ok(changed)
}

/// Gives a label to the direct parts of a bead; those that had it already are not in the answer.
pub fn propagate_label(town: &Town, parent: &str, label: &str) -> Result<Vec<BeadId>> {
    town.write(|writer| {
        let parent = resolve_in(town, writer, parent)?;
        let parts = writer.edges_to(&parent)?.into_iter();
        let parts = parts.filter(|edge| edge.kind == DependencyType::ParentChild);
        let parts: Vec<String> = parts.map(|edge| edge.issue.to_string()).collect();
        let given = label_in(town, writer, &parts, label, true)?;
        Ok(given.into_iter().filter_map(|(id, changed)| changed.then_some(id)).collect())
    })
}

/// Gives a bead a label, unless it is one that only the scheduler gives.
pub(crate) fn give_label(writer: &mut Writer<'_>, bead: &Bead, label: &str) -> Result<bool> {
    refuse_derived(label)?;
    Ok(writer.add_label(bead, label, true)?)
}

/// Takes a label from a bead. One that follows from its context can only go with that; one of the same
/// name that came with an import is a label like any other.
pub(crate) fn take_label(writer: &mut Writer<'_>, bead: &Bead, label: &str) -> Result<bool> {
    check_label("label", label)?;
    if is_derived(label) {
        let follows = of_bead(writer.latest_context(&bead.id)?.as_ref()).contains(&label);
        let is_stored = writer.labels_in_order(bead)?.iter().any(|stored| stored == label);
        if follows || !is_stored {
            refuse_derived(label)?;
        }
    }
    Ok(writer.remove_label(bead, label, true)?)
}

/// Refuses a label that cannot be given by hand.
pub(crate) fn refuse_derived(label: &str) -> Result<()> {
    check_label("label", label)?;
    if is_derived(label) {
        return Err(OperationError::rejected(format!(
            "the label {label} follows from the queue and is not given or taken by hand; gt queue <id> \
             puts a bead into the queue, gt scheduler clear --bead <id> takes it out"
        )));
    }
    Ok(())
}

/// A label of a bead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    /// The label.
    pub name: String,
    /// Whether it follows from the queue, and is not stored.
    pub derived: bool,
}

/// The labels of a bead.
pub fn labels(town: &Town, input: &str) -> Result<(BeadId, Vec<Label>)> {
    town.read(|reader| {
        let id = match resolve_shown_in(town, reader, input)? {
            NamedRecord::Bead(id) => id,
            NamedRecord::Context(context) => {
                let label = Label { name: SLING_CONTEXT.to_owned(), derived: true };
                return Ok((shown_id(&context), vec![label]));
            }
        };
        let bead = reader.bead(&id)?.ok_or_else(|| OperationError::NoBead(input.to_owned()))?;
        let stored = reader.labels_in_order(&bead)?;
        let label = |name: String| Label { derived: !stored.contains(&name), name };
        let labels = reader.labels(&bead)?.into_iter().map(label).collect();
        Ok((id, labels))
    })
}

/// The comments on a bead.
pub fn comments(town: &Town, input: &str) -> Result<(BeadId, Vec<Comment>)> {
    town.read(|reader| {
        let id = resolve_in(town, reader, input)?;
        let comments = reader.comments(&id)?;
        Ok((id, comments))
    })
}

/// Says something about a bead, as `author` if that is not the actor.
pub fn comment(town: &Town, input: &str, text: &str, author: Option<&str>) -> Result<Comment> {
    town.write(|writer| comment_in(town, writer, input, text, author))
}

pub(crate) fn comment_in(
    town: &Town,
    writer: &mut Writer<'_>,
    input: &str,
    text: &str,
    author: Option<&str>,
) -> Result<Comment> {
    if text.trim().is_empty() {
        return Err(OperationError::rejected("a comment cannot be empty"));
    }
    check_text("comment", text)?;
    let bead = require(town, writer, input)?;
    refuse_if_over(town, writer, &bead.id, "comment on")?;
    let mut comment = new_comment(writer, &bead, text);
    if let Some(author) = author {
        check_label("author", author)?;
        author.clone_into(&mut comment.author);
    }
    writer.add_comment(&bead, &comment, true)?;
    writer.touch_bead(&bead.id)?;
    Ok(comment)
}

/// Adds a comment of the actor to a bead.
pub fn add_in(writer: &mut Writer<'_>, bead: &Bead, text: &str) -> Result<()> {
    let comment = new_comment(writer, bead, text);
    writer.add_comment(bead, &comment, true)?;
    Ok(())
}

fn new_comment(writer: &Writer<'_>, bead: &Bead, text: &str) -> Comment {
    Comment {
        id: Uid::fresh().to_string(),
        bead: bead.id.clone(),
        author: writer.actor().to_owned(),
        text: text.to_owned(),
        created_at: writer.now(),
        carried: Vec::new(),
    }
}
