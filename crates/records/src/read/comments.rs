//! The comments of an issue record.

use std::borrow::Cow;

use gt_core::{BeadId, Comment, Invalid, Timestamp, Uid};
use serde_json::value::RawValue;

use super::fields::RecordFields;
use super::values;
use crate::RecordError;

/// Reads the comments on the bead called `bead`.
pub(super) fn parse(
    raw: Option<&RawValue>,
    bead: &BeadId,
    imported_at: Timestamp,
    repairs: &mut Vec<String>,
) -> Vec<Comment> {
    let Some(raw) = raw else {
        return Vec::new();
    };
    let elements = values::list(raw).unwrap_or_else(|invalid| {
        repairs.push(format!("dropped comments: {invalid}"));
        Vec::new()
    });
    let mut comments = Vec::with_capacity(elements.len());
    for (index, element) in elements.into_iter().enumerate() {
        match parse_comment(element, bead, imported_at, repairs) {
            Ok(comment) => comments.push(comment),
            Err(error) => repairs.push(format!("dropped {}", error.inside("comments", index))),
        }
    }
    comments
}

fn parse_comment(
    raw: &RawValue,
    bead: &BeadId,
    imported_at: Timestamp,
    repairs: &mut Vec<String>,
) -> Result<Comment, RecordError> {
    let mut fields = RecordFields::parse(raw.get())?;
    let mut own = Vec::new();
    let given_id = fields.mended("id", &mut own, id).filter(|id| !id.is_empty());
    // The comment stands under its bead, so there is nothing to learn from the id it repeats.
    fields.take("issue_id");
    let author = fields.mended_text("author", &mut own);
    let text = fields.mended_text("text", &mut own);
    let said_at = fields.mended_time("created_at", &mut own, None);
    repairs.extend(own.into_iter().map(|repair| format!("of a comment: {repair}")));
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
        return values::lookup_key(raw).map(Cow::into_owned);
    }
    values::whole_number(raw).map(|number| number.to_string()).map_err(|_| {
        Invalid(format!("expected a text or a whole number, found {}", values::shown(raw.get())))
    })
}

/// An id for a comment that came without one. Derived from the fields that make two comments the same, so that a
/// second import of the same file does not double them.
fn derived_id(bead: &BeadId, author: &str, text: &str, said_at: Option<Timestamp>) -> String {
    let name = BeadId::trusted(format!("{bead}\0{author}\0{text}"));
    Uid::of_bead(&name, said_at.unwrap_or(Timestamp::from_nanos(0))).to_string()
}
