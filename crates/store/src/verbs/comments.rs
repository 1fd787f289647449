//! Comments.

use gt_core::event::CommentAdded;
use gt_core::{Bead, BeadId, Comment, EventPayload, Timestamp};

use super::beads::{bead_event, carried_from, carried_text, id_from};
use super::statements;
use crate::{Reader, StoreError, Writer};

statements! {
    OF = "SELECT bead, id, author, text, created_at, carried FROM comments WHERE bead = ?1 \
        ORDER BY created_at, id";
    SAME = "SELECT 1 FROM comments WHERE bead = ?1 AND \
        (id = ?2 OR (author = ?3 AND text = ?4 AND created_at = ?5)) LIMIT 1";
    INSERT = "INSERT INTO comments (bead, id, author, text, created_at, carried) \
        VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
}

impl Reader<'_> {
    /// The comments on a bead, oldest first.
    pub fn comments(&self, bead: &BeadId) -> Result<Vec<Comment>, StoreError> {
        self.rows(OF, &[bead.into()], |row| {
            Ok(Comment {
                bead: id_from(row, 0)?,
                id: row.text(1)?.to_owned(),
                author: row.text(2)?.to_owned(),
                text: row.text(3)?.to_owned(),
                created_at: Timestamp::from_nanos(row.int(4)?),
                carried: carried_from(row.text_or_null(5)?),
            })
        })
    }
}

impl Writer<'_> {
    /// Adds a comment; says whether it was new. The same words by the same author at the same time
    /// are the same comment, even with another id.
    pub fn add_comment(
        &mut self,
        bead: &Bead,
        comment: &Comment,
        announce: bool,
    ) -> Result<bool, StoreError> {
        let same = [
            (&bead.id).into(),
            (&comment.id).into(),
            (&comment.author).into(),
            (&comment.text).into(),
            comment.created_at.into(),
        ];
        if self.any(SAME, &same)? {
            return Ok(false);
        }
        self.insert_comment(&bead.id, comment)?;
        if announce {
            let added = CommentAdded {
                title: bead.title.to_string(),
                author: comment.author.clone(),
                text: comment.text.clone(),
            };
            self.record(bead_event(bead, EventPayload::Commented(added)));
        }
        Ok(true)
    }

    /// Writes the row of a comment that the bead does not have yet.
    pub(super) fn insert_comment(
        &self,
        bead: &BeadId,
        comment: &Comment,
    ) -> Result<(), StoreError> {
        let carried = carried_text(&comment.carried);
        let params = [
            bead.into(),
            (&comment.id).into(),
            (&comment.author).into(),
            (&comment.text).into(),
            comment.created_at.into(),
            carried.as_ref().into(),
        ];
        self.apply(INSERT, &params)
    }
}
