//! Making convoys.

use gt_core::decide::{INTEGRATION, IdSeed};
use gt_core::merging::integration_branch;
use gt_core::schedule::Merge;
use gt_core::{Bead, BeadId, IssueType, Json, Prefix, Status, limits};
use gt_store::Writer;

use crate::beads::{NewBead, create_in};
use crate::review_rules::{REVIEW, REVIEW_REQUIRED};
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

/// The rules of a convoy that its metadata keeps.
#[derive(Debug, Clone, Copy, Default)]
pub struct ConvoyRules<'a> {
    /// Its owner lands it.
    pub owned: bool,
    /// How its work is merged.
    pub merge: Option<Merge>,
    /// The branch that its work begins from and lands on.
    pub base_branch: Option<&'a str>,
    /// A person has to approve its work before it lands.
    pub review: bool,
    /// Its work comes together on a branch of its own, which is brought to this branch at the end; empty for that of each
    /// rig. The branch takes the place of `base_branch`.
    pub integration: Option<&'a str>,
}

impl ConvoyRules<'_> {
    /// The fields of the metadata; rules that say nothing have none.
    pub fn metadata(&self) -> Vec<(String, Json)> {
        let owned = self.owned.then(|| ("owned", Json::trusted("true".to_owned())));
        let merge = self.merge.map(|merge| ("merge", Json::string(merge.as_str())));
        let branch = self.base_branch.map(|branch| ("base_branch", Json::string(branch)));
        let review = self.review.then(|| (REVIEW, Json::string(REVIEW_REQUIRED)));
        let integration = self.integration.map(|base| (INTEGRATION, Json::string(base)));
        let said = [owned, merge, branch, review, integration].into_iter().flatten();
        said.map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

/// Makes a convoy.
pub fn make(town: &Town, writer: &mut Writer<'_>, new: &ConvoyToMake<'_>) -> Result<BeadId> {
    let title = cut(new.title);
    let id = free_id(writer, &title)?;
    let mut metadata = new.metadata.clone();
    if metadata.iter().any(|(name, _)| name == INTEGRATION) {
        metadata.push(("base_branch".to_owned(), Json::string(&integration_branch(&id))));
    }
    let metadata = (!metadata.is_empty()).then(|| Json::object(&metadata));
    let bead = NewBead {
        id: Some(id.to_string()),
        force: true,
        title,
        issue_type: Some(IssueType::trusted("convoy".to_owned())),
        metadata,
        ..NewBead::default()
    };
    let convoy = create_in(town, writer, &bead)?.bead;
    if convoy.status != new.status {
        let staged = Bead { status: new.status.clone(), ..convoy.clone() };
        writer.save_bead(&convoy, &staged, gt_core::BeadChangeKind::StatusChanged)?;
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
