//! Labels and comments.

use gt_core::bead::{check_label, check_text};
use gt_core::{Bead, BeadId, Comment, Uid};
use gt_store::Writer;

use crate::beads::{require, resolve_in};
use crate::{OperationError, Result, Town};

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
    check_label("label", label)?;
    if add && label.contains(',') {
        return Err(OperationError::rejected(
            "a label may not contain a comma, which separates labels elsewhere",
        ));
    }
    let mut changed = Vec::new();
    for input in inputs {
        let bead = require(town, writer, input)?;
        let change = if add {
            writer.add_label(&bead, label, true)?
        } else {
            writer.remove_label(&bead, label, true)?
        };
        if change {
            writer.touch_bead(&bead.id)?;
        }
        changed.push((bead.id, change));
    }
    Ok(changed)
}

/// The labels of a bead.
pub fn labels(town: &Town, input: &str) -> Result<(BeadId, Vec<String>)> {
    town.read(|reader| {
        let bead = require(town, reader, input)?;
        let labels = reader.labels(&bead)?;
        Ok((bead.id, labels))
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
        return Err(OperationError::rejected("a comment may not be empty"));
    }
    check_text("comment", text)?;
    let bead = require(town, writer, input)?;
    let mut comment = new_comment(writer, &bead, text);
    if let Some(author) = author {
        check_label("author", author)?;
        author.clone_into(&mut comment.author);
    }
    writer.add_comment(&bead, &comment, true)?;
    writer.touch_bead(&bead.id)?;
    Ok(comment)
}

pub(crate) fn add_in(writer: &mut Writer<'_>, bead: &Bead, text: &str) -> Result<()> {
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
