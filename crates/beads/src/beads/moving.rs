//! Moving a bead to another rig.

use gt_core::{Bead, Json, RigSlug};
use gt_store::{Reader, Writer};

use super::create::named_rig;
use super::update::FieldEdit;
use gt_town::{OperationError, Result, Town};

/// The field of a record that names the rig of a bead whose prefix is not that of its rig. Without it an import would give the
/// bead to the rig of its prefix.
const RIG_FIELD: &str = "gt_rig";

/// Gives a bead to another rig, or to none. Its id stays, and with it everything that names it: edges, comments, labels,
/// events, convoys and runs.
pub(super) fn move_to(
    town: &Town,
    writer: &Writer<'_>,
    bead: &mut Bead,
    wanted: &FieldEdit<String>,
) -> Result<()> {
    let rigs = writer.rigs()?;
    let rig = match wanted {
        FieldEdit::Keep => return Ok(()),
        FieldEdit::Clear => None,
        FieldEdit::Set(name) => Some(named_rig(town, &rigs, name)?.slug),
    };
    if rig == bead.rig {
        return Ok(());
    }
    let id = &bead.id;
    let refused = |why: String| Err(OperationError::rejected(format!("cannot move {id}: {why}")));
    if bead.issue_type.is_convoy() {
        return refused("a convoy belongs to the town".to_owned());
    }
    if let Some(run) = writer.live_run(id)? {
        return refused(format!(
            "{} is running; wait for it, or end it with gt run cancel {}",
            run.id, run.id
        ));
    }
    if writer.open_context(id)?.is_some() {
        return refused(format!(
            "it is scheduled; take it out first with gt scheduler clear --bead {id}"
        ));
    }
    if let Some(request) = writer.open_merge_request(id)? {
        return refused(format!("its merge request {} is for its rig", request.id));
    }
    bead.rig = rig;
    let by_prefix = writer.rig_of_id(id)?;
    bead.carried.retain(|(name, _)| name != RIG_FIELD);
    if bead.rig != by_prefix {
        let slug = bead.rig.as_ref().map_or("", RigSlug::as_str);
        bead.carried.push((RIG_FIELD.to_owned(), Json::string(slug)));
    }
    Ok(())
}

/// Where the record of a bead says that it belongs.
pub(crate) enum CarriedRig {
    /// The record names no rig, or one that is not known here.
    Unnamed,
    /// The town itself.
    Town,
    /// This rig.
    Rig(RigSlug),
}

/// The rig that the record of a bead names.
pub(crate) fn carried_rig(reader: &Reader<'_>, bead: &Bead) -> Result<CarriedRig> {
    let named = bead.carried.iter().find(|(name, _)| name == RIG_FIELD);
    Ok(match named.and_then(|(_, value)| value.to_text()) {
        None => CarriedRig::Unnamed,
        Some(slug) if slug.is_empty() => CarriedRig::Town,
        Some(slug) => match reader.rig(&slug)? {
            Some(rig) => CarriedRig::Rig(rig.slug),
            None => CarriedRig::Unnamed,
        },
    })
}
