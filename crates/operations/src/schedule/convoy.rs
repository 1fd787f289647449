//! The convoy that what is slung together travels in.

use gt_core::decide::IdSeed;
use gt_core::{BeadId, IssueType, Json, Prefix, limits};
use gt_store::Writer;

use super::request::Flags;
use crate::beads::{NewBead, create_in};
use crate::{OperationError, Result, Town};

/// Makes a convoy that tracks these beads, each named once.
pub(super) fn make(
    town: &Town,
    writer: &mut Writer<'_>,
    title: &str,
    beads: &[BeadId],
    flags: &Flags,
) -> Result<BeadId> {
    let mut metadata = vec![("auto".to_owned(), Json::trusted("true".to_owned()))];
    if flags.owned {
        metadata.push(("owned".to_owned(), Json::trusted("true".to_owned())));
    }
    if let Some(merge) = flags.merge {
        metadata.push(("merge".to_owned(), Json::string(merge.as_str())));
    }
    if let Some(branch) = &flags.base_branch {
        metadata.push(("base_branch".to_owned(), Json::string(branch)));
    }
    let title = cut(title);
    let new = NewBead {
        id: Some(free_id(writer, &title)?.to_string()),
        force: true,
        title,
        issue_type: Some(IssueType::trusted("convoy".to_owned())),
        metadata: Some(Json::object(&metadata)),
        ..NewBead::default()
    };
    let convoy = create_in(town, writer, &new)?.bead;
    writer.track(&convoy.id, beads)?;
    Ok(convoy.id)
}

/// A title that fits.
fn cut(title: &str) -> String {
    let mut end = title.len().min(limits::TITLE_BYTES_MAX);
    while !title.is_char_boundary(end) {
        end -= 1;
    }
    title[..end].to_owned()
}

/// Ids of convoys have five places, as other tools expect.
fn free_id(writer: &Writer<'_>, title: &str) -> Result<BeadId> {
    let at = writer.now();
    let seed = IdSeed { title, description: "", creator: writer.actor(), at };
    let prefix = Prefix::trusted("hq-cv".to_owned());
    for nonce in 0..1000 {
        let id = seed.id(&prefix, 5, nonce);
        if !writer.bead_exists(&id)? {
            return Ok(id);
        }
    }
    Err(OperationError::rejected("no free id is left for a convoy"))
}
