//! Plans of beads to make, as JSON: one object per line, or a graph of nodes and edges.

use gt_core::plan::{BeadName, Draft, DraftEdge, PlacedText, Plan, PlanNaming};
use gt_core::{DependencyType, Invalid, IssueType, Priority};
use serde_json::value::RawValue;

use super::fields::RecordFields;
use super::values;
use crate::RecordError;

/// Reads a plan with one object per line; blank lines are skipped. `source` is the name in errors of the
/// file.
pub fn parse_plan_lines(source: &str, text: &str) -> Result<Plan, Invalid> {
    let mut drafts = Vec::new();
    for (place, line) in lines(source, text) {
        drafts.push(line_draft(&place, line).map_err(|error| placed(&place, &error))?);
    }
    Plan::new(source, drafts, Vec::new(), PlanNaming::Keys)
}

/// Reads a plan that is one object with `nodes` and `edges`.
pub fn parse_plan_graph(source: &str, text: &str) -> Result<Plan, Invalid> {
    let whole = |error: RecordError| placed(source, &error);
    let mut fields = RecordFields::parse(text).map_err(|error| {
        // A graph has many lines, unlike everything else that is read here.
        match serde_json::from_str::<&RawValue>(text) {
            Err(error) => Invalid(format!("{source}: not valid JSON: {error}")),
            Ok(_) => whole(error),
        }
    })?;
    // It names the commit of other implementations; a transaction here has no message.
    fields.text("commit_message").map_err(whole)?;
    let nodes = fields.read("nodes", values::list).map_err(whole)?.unwrap_or_default();
    let edges = fields.read("edges", values::list).map_err(whole)?.unwrap_or_default();
    nothing_left(&fields, "nodes, edges, commit_message").map_err(whole)?;
    let mut drafts = Vec::new();
    for (index, raw) in nodes.into_iter().enumerate() {
        let place = format!("{source}: nodes[{index}]");
        drafts.push(node(&place, raw.get()).map_err(|error| placed(&place, &error))?);
    }
    let mut found = Vec::new();
    for (index, raw) in edges.into_iter().enumerate() {
        let place = format!("{source}: edges[{index}]");
        found.push(graph_edge(&place, raw.get()).map_err(|error| placed(&place, &error))?);
    }
    Plan::new(source, drafts, found, PlanNaming::Keys)
}

/// A dependency that a line asks for: `issue` depends on `target`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DependencyLine {
    /// Where it is written, such as `edges.jsonl:3`.
    pub place: String,
    /// The bead that depends.
    pub issue: String,
    /// The bead that it depends on.
    pub target: String,
    /// The type of the dependency.
    pub kind: DependencyType,
}

/// Reads dependencies, one object with `from`, `to` and perhaps `type` per line; blank lines are skipped.
pub fn parse_dependency_lines(source: &str, text: &str) -> Result<Vec<DependencyLine>, Invalid> {
    let read = |(place, line): (String, &str)| {
        dependency_line(&place, line).map_err(|error| placed(&place, &error))
    };
    lines(source, text).map(read).collect()
}

/// The lines that are not blank, each with its place.
fn lines<'t>(source: &str, text: &'t str) -> impl Iterator<Item = (String, &'t str)> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let numbered = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    numbered.map(move |(index, line)| (format!("{source}:{}", index + 1), line))
}

fn placed(place: &str, error: &RecordError) -> Invalid {
    Invalid(format!("{place}: {error}"))
}

/// The fields that a draft may have on a line of its own.
const LINE_FIELDS: &str = "key, title, description, design, acceptance_criteria, notes, priority, \
                           type, assignee, labels, parent, deps, external_ref, estimated_minutes, \
                           metadata, id, due, defer, ephemeral";

/// The fields of a node in place of `parent` and `deps`.
const NODE_FIELDS: &str = "parent_key, parent_id, metadata_refs, assign_after_create";

fn line_draft(place: &str, line: &str) -> Result<Draft, RecordError> {
    let mut fields = RecordFields::parse(line)?;
    let mut draft = common(place, &mut fields)?;
    draft.parent = one_text(&mut fields, "parent")?.map(BeadName::Either);
    for name in ["deps", "dependencies"] {
        let said = fields.read(name, texts)?.unwrap_or_default();
        let said = said.into_iter().map(|text| PlacedText { place: place.to_owned(), text });
        draft.links.extend(said);
    }
    nothing_left(&fields, LINE_FIELDS)?;
    Ok(draft)
}

fn node(place: &str, text: &str) -> Result<Draft, RecordError> {
    let mut fields = RecordFields::parse(text)?;
    let mut draft = common(place, &mut fields)?;
    if draft.key.is_none() {
        return Err(RecordError::missing("key"));
    }
    draft.assign_last = fields.flag("assign_after_create")?;
    draft.parent = name(&mut fields, "parent_key", "parent_id")?;
    if let Some(raw) = fields.take("metadata_refs") {
        let problem = || Invalid::new("expected an object of metadata fields and keys of nodes");
        let mut pointers = RecordFields::parse(raw.get())
            .map_err(|_| RecordError::field("metadata_refs", problem()))?;
        let names: Vec<String> = pointers.sorted().iter().map(|(name, _)| (*name).into()).collect();
        for name in names {
            let key = pointers.text(&name)?;
            draft.metadata_refs.push((name, key));
        }
    }
    let is_object = |draft: &Draft| draft.metadata.as_ref().is_none_or(|m| m.fields().is_some());
    if !draft.metadata_refs.is_empty() && !is_object(&draft) {
        let problem = Invalid::new("expected an object, because metadata_refs adds fields to it");
        return Err(RecordError::field("metadata", problem));
    }
    nothing_left(&fields, &LINE_FIELDS.replace("parent, deps", NODE_FIELDS))?;
    Ok(draft)
}

/// The fields that a line and a node share.
fn common(place: &str, fields: &mut RecordFields<'_>) -> Result<Draft, RecordError> {
    let title = fields.text("title")?;
    if title.trim().is_empty() {
        return Err(RecordError::missing("title"));
    }
    let types =
        [fields.parsed("issue_type", IssueType::parse)?, fields.parsed("type", IssueType::parse)?];
    let criteria = [one_text(fields, "acceptance_criteria")?, one_text(fields, "acceptance")?];
    let minutes = |raw: &RawValue| {
        let number = values::whole_number(raw)?;
        u32::try_from(number).map_err(|_| Invalid(format!("{number} is not a number of minutes")))
    };
    let due = [one_text(fields, "due")?, one_text(fields, "due_at")?];
    let defer = [one_text(fields, "defer")?, one_text(fields, "defer_until")?];
    Ok(Draft {
        place: place.to_owned(),
        key: one_text(fields, "key")?,
        title,
        description: fields.text("description")?,
        design: fields.text("design")?,
        acceptance_criteria: criteria.into_iter().flatten().next().unwrap_or_default(),
        notes: fields.text("notes")?,
        priority: fields.read("priority", priority)?.unwrap_or_default(),
        issue_type: types.into_iter().flatten().next(),
        assignee: fields.text("assignee")?,
        labels: labels(fields)?,
        id: one_text(fields, "id")?,
        external_ref: one_text(fields, "external_ref")?,
        estimated_minutes: fields.read("estimated_minutes", minutes)?,
        due: due.into_iter().flatten().next(),
        defer: defer.into_iter().flatten().next(),
        ephemeral: fields.flag("ephemeral")?,
        metadata: fields.read("metadata", values::json)?,
        ..Draft::default()
    })
}

fn labels(fields: &mut RecordFields<'_>) -> Result<Vec<String>, RecordError> {
    let texts = fields.read("labels", texts)?.unwrap_or_default();
    let labels = texts.iter().flat_map(|text| text.split(',')).map(str::trim);
    Ok(labels.filter(|label| !label.is_empty()).map(str::to_owned).collect())
}

fn graph_edge(place: &str, text: &str) -> Result<DraftEdge, RecordError> {
    let mut fields = RecordFields::parse(text)?;
    let from = name(&mut fields, "from_key", "from_id")?;
    let to = name(&mut fields, "to_key", "to_id")?;
    let edge = DraftEdge {
        place: place.to_owned(),
        from: from.ok_or_else(|| RecordError::missing("from_key"))?,
        to: to.ok_or_else(|| RecordError::missing("to_key"))?,
        kind: kind(&mut fields)?,
    };
    nothing_left(&fields, "from_key, from_id, to_key, to_id, type")?;
    Ok(edge)
}

fn dependency_line(place: &str, line: &str) -> Result<DependencyLine, RecordError> {
    let mut fields = RecordFields::parse(line)?;
    let mut end = |name: &str, other: &str| match one_text(&mut fields, name)? {
        None => one_text(&mut fields, other)?.ok_or_else(|| RecordError::missing(name)),
        Some(id) => Ok(id),
    };
    let (issue, target) = (end("from", "issue_id")?, end("to", "depends_on_id")?);
    let kind = kind(&mut fields)?;
    nothing_left(&fields, "from, to, type")?;
    Ok(DependencyLine { place: place.to_owned(), issue, target, kind })
}

fn kind(fields: &mut RecordFields<'_>) -> Result<DependencyType, RecordError> {
    Ok(fields.parsed("type", DependencyType::parse)?.unwrap_or(DependencyType::Blocks))
}

/// A bead that is named either by its key in the plan or by its id.
fn name(
    fields: &mut RecordFields<'_>,
    key: &str,
    id: &str,
) -> Result<Option<BeadName>, RecordError> {
    match (one_text(fields, key)?, one_text(fields, id)?) {
        (Some(_), Some(_)) => {
            Err(RecordError::field(key, Invalid(format!("either this or {id}, not both"))))
        }
        (Some(key), None) => Ok(Some(BeadName::Planned(key))),
        (None, Some(id)) => Ok(Some(BeadName::Existing(id))),
        (None, None) => Ok(None),
    }
}

/// A text; empty is the same as absent.
fn one_text(fields: &mut RecordFields<'_>, name: &str) -> Result<Option<String>, RecordError> {
    Ok(Some(fields.text(name)?).filter(|text| !text.is_empty()))
}

/// `2` or `"P2"`.
fn priority(raw: &RawValue) -> Result<Priority, Invalid> {
    if raw.get().starts_with('"') {
        return Priority::parse(&values::text(raw)?);
    }
    Priority::new(values::whole_number(raw)?)
}

/// One text, or a list of texts.
fn texts(raw: &RawValue) -> Result<Vec<String>, Invalid> {
    if raw.get().starts_with('"') {
        return Ok(vec![values::text(raw)?.into_owned()]);
    }
    let texts = values::list(raw)?;
    texts.into_iter().map(|raw| Ok(values::text(raw)?.into_owned())).collect()
}

/// Refuses unknown fields, because they would be lost.
fn nothing_left(fields: &RecordFields<'_>, known: &str) -> Result<(), RecordError> {
    match fields.sorted().first() {
        None => Ok(()),
        Some((name, _)) => {
            Err(RecordError::field(name, Invalid(format!("unknown here; known: {known}"))))
        }
    }
}
