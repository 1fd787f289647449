//! The types that a person may give a bead.

use gt_core::similar_names::closest;
use gt_core::{ExecutorKind, IssueType, RigSlug};
use gt_store::{Reader, SettingScope};

use gt_town::{OperationError, Result, Town};

/// The key under which `bd config` keeps the types of a team's own, separated by commas.
const CUSTOM_TYPES: &str = "types.custom";

/// The types of a team's own.
pub fn custom_types(town: &Town) -> Result<Vec<String>> {
    town.read(|reader| {
        let configured = reader.setting(SettingScope::Beads, CUSTOM_TYPES)?.unwrap_or_default();
        Ok(names(&configured).map(str::to_owned).collect())
    })
}

fn names(configured: &str) -> impl Iterator<Item = &str> {
    configured.split(',').map(str::trim).filter(|name| !name.is_empty())
}

/// Refuses a type that is neither built in nor named in `types.custom`. A rig whose agents ask for work takes any
/// type: its meaning is up to the submitters and the agents.
pub(super) fn check_type(
    reader: &Reader<'_>,
    issue_type: &IssueType,
    rig: Option<&RigSlug>,
) -> Result<()> {
    if issue_type.is_built_in() {
        return Ok(());
    }
    let configured = reader.setting(SettingScope::Beads, CUSTOM_TYPES)?.unwrap_or_default();
    let custom: Vec<&str> = names(&configured).collect();
    if custom.iter().any(|name| name.eq_ignore_ascii_case(issue_type.as_str())) {
        return Ok(());
    }
    let rig = rig.map(|slug| reader.rig(slug.as_str())).transpose()?.flatten();
    if rig.is_some_and(|rig| rig.executor == ExecutorKind::Pull) {
        return Ok(());
    }
    let is_new = |name: &&str| !IssueType::BUILT_IN.contains(name);
    let custom = custom.into_iter().filter(is_new);
    let known: Vec<&str> = IssueType::BUILT_IN.iter().copied().chain(custom).collect();
    let meant = closest(issue_type.as_str(), known.iter().copied());
    let meant = meant.map(|meant| format!("did you mean {meant}? ")).unwrap_or_default();
    let begin = if meant.is_empty() { "known" } else { "Known" };
    let before = if configured.is_empty() { "" } else { "," };
    Err(OperationError::rejected(format!(
        "unknown type \"{issue_type}\"; {meant}{begin} are {}; add it with bd config set {CUSTOM_TYPES} \
         {configured}{before}{issue_type}",
        known.join(", ")
    )))
}
