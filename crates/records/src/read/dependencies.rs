//! The edges of an issue record.

use std::borrow::Cow;
use std::collections::HashSet;

use gt_core::{BeadId, Carried, Dependency, DependencyType, Invalid, Timestamp, limits};
use serde_json::value::RawValue;

use super::fields::RecordFields;
use super::values;
use crate::RecordError;

/// Reads the edges that start at `id`, at most one per target.
pub(super) fn parse(
    raw: Option<&RawValue>,
    id: &BeadId,
    imported_at: Timestamp,
    repairs: &mut Vec<String>,
) -> Vec<Dependency> {
    let Some(raw) = raw else {
        return Vec::new();
    };
    let elements = values::list(raw).unwrap_or_else(|invalid| {
        repairs.push(format!("dropped dependencies: {invalid}"));
        Vec::new()
    });
    let mut edges = Vec::with_capacity(elements.len());
    for (index, element) in elements.into_iter().enumerate() {
        let edge = match parse_edge(element, id, imported_at, repairs) {
            Ok(edge) => edge,
            Err(error) => {
                repairs.push(format!("dropped {}", error.inside("dependencies", index)));
                continue;
            }
        };
        if edge.target == *id {
            repairs.push("dropped a dependency of the bead on itself".to_owned());
        } else {
            edges.push(edge);
        }
    }
    if edges.len() > 1 {
        keep_last_per_target(&mut edges, repairs);
    }
    edges
}

/// Makes an edge of the `parent` field where the edges do not say the same already: some writers leave
/// the edges out. The edges win over a field that contradicts them.
pub(super) fn apply_parent(
    raw: &RawValue,
    id: &BeadId,
    created_at: Timestamp,
    edges: &mut Vec<Dependency>,
    repairs: &mut Vec<String>,
) {
    let parent = match values::text(raw) {
        Ok(text) if text.is_empty() => return,
        Ok(text) => BeadId::parse(&text).ok(),
        Err(_) => None,
    };
    let Some(parent) = parent.filter(|parent| parent != id) else {
        let shown = values::shown(raw.get());
        repairs.push(format!("dropped the parent {shown}: no other bead can have that id"));
        return;
    };
    let is_parent = |edge: &Dependency| edge.kind == DependencyType::ParentChild;
    if edges.iter().any(|edge| is_parent(edge) && edge.target == parent) {
        return;
    }
    match edges.iter().find(|edge| is_parent(edge) || edge.target == parent) {
        None => {
            repairs.push(format!("made a parent-child dependency of its parent, {parent}"));
            edges.push(Dependency {
                issue: id.clone(),
                target: parent,
                kind: DependencyType::ParentChild,
                created_at,
                created_by: String::new(),
                metadata: String::new(),
                thread_id: String::new(),
                carried: Carried::default(),
            });
        }
        Some(edge) => repairs.push(format!(
            "dropped the parent {parent}: there is a {} dependency on {}",
            edge.kind, edge.target
        )),
    }
}

fn parse_edge(
    raw: &RawValue,
    id: &BeadId,
    imported_at: Timestamp,
    repairs: &mut Vec<String>,
) -> Result<Dependency, RecordError> {
    let mut fields = RecordFields::parse(raw.get())?;
    let target = fields
        .read("depends_on_id", target)?
        .ok_or_else(|| RecordError::missing("depends_on_id"))?;
    if let Some(issue) = fields.read("issue_id", values::text)?
        && issue != id.as_str()
    {
        // Records of beads that were renamed or moved may still name the old id here.
        repairs.push(format!(
            "the dependency on {target} named \"{}\" as its issue; it stands under {id}",
            values::shown(&issue).escape_debug()
        ));
    }
    let stand_in = Some(imported_at);
    let mut own = Vec::new();
    let created_at = fields.mended_time("created_at", &mut own, stand_in).unwrap_or(imported_at);
    let created_by = fields.mended_text("created_by", &mut own);
    let thread_id = fields.mended_text("thread_id", &mut own);
    let edge_metadata = fields.mended("metadata", &mut own, metadata).unwrap_or_default();
    repairs
        .extend(own.into_iter().map(|repair| format!("of the dependency on {target}: {repair}")));
    Ok(Dependency {
        issue: id.clone(),
        target,
        kind: fields.parsed("type", DependencyType::parse)?.unwrap_or(DependencyType::Blocks),
        created_at,
        created_by,
        metadata: edge_metadata,
        thread_id,
        carried: fields.carried()?,
    })
}

/// A bead id, or the name of something outside such as `external:project:capability`.
fn target(raw: &RawValue) -> Result<BeadId, Invalid> {
    let text = values::text(raw)?;
    BeadId::parse(&text).or_else(|invalid| {
        let is_outside_name = !text.is_empty()
            && text.len() <= limits::ID_BYTES_MAX
            && text.bytes().all(|byte| byte.is_ascii_graphic());
        if is_outside_name { Ok(BeadId::trusted(text.into_owned())) } else { Err(invalid) }
    })
}

/// Text that holds JSON; some writers put the JSON there without wrapping it in a string.
fn metadata(raw: &RawValue) -> Result<String, Invalid> {
    if raw.get().starts_with('"') {
        values::text(raw).map(Cow::into_owned)
    } else {
        values::json(raw).map(|json| json.as_str().to_owned())
    }
}

fn keep_last_per_target(edges: &mut Vec<Dependency>, repairs: &mut Vec<String>) {
    let mut seen = HashSet::new();
    edges.reverse();
    edges.retain(|edge| {
        let is_last = seen.insert(edge.target.clone());
        if !is_last {
            repairs.push(format!(
                "dropped a {} dependency on {}: there is a later one",
                edge.kind, edge.target
            ));
        }
        is_last
    });
    edges.reverse();
}
