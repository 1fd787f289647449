//! The comments of an issue record.

use std::borrow::Cow;

use gt_core::{BeadId, Comment, Invalid, Timestamp, Uid};
use serde_json::value::RawValue;

use super::fields::Fields;
use super::values;
use crate::RecordError;

/// Reads the comments on the bead called `bead`.
pub(super) fn parse(
    raw: Option<&RawValue>,
    bead: &BeadId,
    imported_at: Timestamp,
) -> Result<Vec<Comment>, RecordError> {
    let Some(raw) = raw else {
        return Ok(Vec::new());
    };
    let elements = values::list(raw).map_err(|invalid| RecordError::field("comments", invalid))?;
    elements
        .into_iter()
        .enumerate()
        .map(|(index, element)| {
            parse_comment(element, bead, imported_at)
                .map_err(|error| error.inside("comments", index))
        })
        .collect()
}

fn parse_comment(
    raw: &RawValue,
    bead: &BeadId,
    imported_at: Timestamp,
) -> Result<Comment, RecordError> {
    let mut fields = Fields::parse(raw.get())?;
    let given_id = fields.read("id", id)?.filter(|id| !id.is_empty());
    // The comment stands under its bead, so there is nothing to learn from the id it repeats.
    fields.take("issue_id");
    let author = fields.text("author")?;
    let text = fields.text("text")?;
    let said_at = fields.timestamp("created_at")?;
    let id = given_id.unwrap_or_else(|| derived_id(bead, &author, &text, said_at));
    Ok(Comment {
        id,
        bead: bead.clone(),
        author,
        text,
        created_at: said_at.unwrap_or(imported_at),
        carried: fields.carried()?,
    })
}

/// A text, or one of the numbers that old databases counted comments with.
fn id(raw: &RawValue) -> Result<String, Invalid> {
    if raw.get().starts_with('"') {
        return values::looked_up(raw).map(Cow::into_owned);
    }
    values::whole_number(raw).map(|number| number.to_string()).map_err(|_| {
        Invalid(format!("expected a text or a whole number, found {}", values::shown(raw.get())))
    })
}

/// An id for a comment that came without one. Derived from what makes two comments the same, so that a
/// second import of the same file does not double them.
fn derived_id(bead: &BeadId, author: &str, text: &str, said_at: Option<Timestamp>) -> String {
    let name = BeadId::trusted(format!("{bead}\0{author}\0{text}"));
    Uid::of_bead(&name, said_at.unwrap_or(Timestamp::from_nanos(0))).to_string()
}
