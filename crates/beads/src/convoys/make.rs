//! Making convoys.

use gt_core::decide::IdSeed;
use gt_core::schedule::Merge;
use gt_core::{Bead, BeadId, IssueType, Json, Prefix, Status, limits};
use gt_store::Writer;

use crate::beads::{NewBead, create_in};
use gt_town::{OperationError, Result, Town};

/// A convoy that is to be made.
pub struct ConvoyToMake<'a> {
    /// Its title; cut if it is too long.
    pub title: &'a str,
    /// Its metadata: whether it is owned, how its work is merged.
    pub metadata: Vec<(String, Json)>,
    /// The beads that it tracks, each named once.
    pub beads: &'a [BeadId],
    /// Where it stands.
    pub status: Status,
}

/// What is kept about a convoy: whether its owner lands it, how its work is merged, and from which branch on.
pub fn kept(owned: bool, merge: Option<Merge>, base_branch: Option<&str>) -> Vec<(String, Json)> {
    let owned = owned.then(|| ("owned", Json::trusted("true".to_owned())));
    let merge = merge.map(|merge| ("merge", Json::string(merge.as_str())));
    let branch = base_branch.map(|branch| ("base_branch", Json::string(branch)));
    let said = [owned, merge, branch].into_iter().flatten();
    said.map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Makes a convoy.
pub fn make(town: &Town, writer: &mut Writer<'_>, new: &ConvoyToMake<'_>) -> Result<BeadId> {
    let title = cut(new.title);
    let metadata = (!new.metadata.is_empty()).then(|| Json::object(&new.metadata));
    let bead = NewBead {
        id: Some(free_id(writer, &title)?.to_string()),
        force: true,
        title,
        issue_type: Some(IssueType::trusted("convoy".to_owned())),
        metadata,
        ..NewBead::default()
    };
    let convoy = create_in(town, writer, &bead)?.bead;
    if convoy.status != new.status {
        let staged = Bead { status: new.status.clone(), ..convoy.clone() };
        writer.save_bead(&convoy, &staged, gt_core::EventKind::StatusChanged)?;
    }
    writer.track(&convoy.id, new.beads)?;
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
