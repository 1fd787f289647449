//! Flags that select beads.

use clap::Args;
use gt_beads::beads::{check_status, labels_matching};
use gt_core::bead::LabelPattern;
use gt_core::schedule::{ContextId, labels};
use gt_core::{IssueType, Outcome, Priority, Status, Timestamp};
use gt_town::{BeadFilter, BeadOrder, Between, StatusFilter, Town, rigs, settings};

use crate::error::CliError;
use crate::values::{comma_separated, instant, instant_or_ago};
use gt_beads::lookup::{resolve, resolve_shown};

/// Flags that select beads; shared by `list`, `search` and `count`.
#[derive(Debug, Args)]
pub(super) struct FilterArgs {
    /// Only these statuses, separated by commas; "all" for every one
    #[arg(short, long, visible_alias = "state")]
    status: Option<String>,
    /// Also closed and pinned beads
    #[arg(long)]
    pub(super) all: bool,
    /// Only this priority
    #[arg(short, long, allow_hyphen_values = true)]
    priority: Option<String>,
    /// At least this number
    #[arg(long, value_name = "PRIORITY")]
    priority_min: Option<String>,
    /// At most this number
    #[arg(long, value_name = "PRIORITY")]
    priority_max: Option<String>,
    /// Only this assignee
    #[arg(short, long, value_name = "NAME")]
    assignee: Option<String>,
    /// Only beads without an assignee
    #[arg(long, visible_alias = "unassigned", conflicts_with = "assignee")]
    no_assignee: bool,
    #[command(flatten)]
    traits: TraitArgs,
    /// No label at all
    #[arg(long)]
    no_labels: bool,
    /// The title contains this
    #[arg(long, visible_alias = "title-contains", value_name = "TEXT")]
    title: Option<String>,
    /// The description contains this
    #[arg(long, value_name = "TEXT")]
    desc_contains: Option<String>,
    /// The notes contain this
    #[arg(long, value_name = "TEXT")]
    notes_contains: Option<String>,
    /// There is no description
    #[arg(long)]
    empty_description: bool,
    /// Only these ids, separated by commas
    #[arg(long, value_name = "ID")]
    id: Vec<String>,
    /// Only this specification
    #[arg(long, value_name = "ID")]
    spec: Option<String>,
    /// Direct parts of this bead
    #[arg(long, visible_alias = "filter-parent", value_name = "ID")]
    parent: Option<String>,
    /// Parts of no bead
    #[arg(long, conflicts_with = "parent")]
    no_parent: bool,
    /// How it ended
    #[arg(long, value_parser = ["success", "failed", "cancelled"])]
    outcome: Option<String>,
    #[command(flatten)]
    times: TimeArgs,
    #[command(flatten)]
    hidden: HiddenArgs,
    #[arg(long, hide = true)]
    mol_type: Option<String>,
    #[arg(long, hide = true)]
    wisp_type: Option<String>,
}

/// Filters by properties of beads; also for `bd ready`.
#[derive(Debug, Args)]
pub(super) struct TraitArgs {
    /// Only these types, separated by commas
    #[arg(short = 't', long = "type", value_name = "TYPE")]
    types: Vec<String>,
    /// None of these types, separated by commas
    #[arg(long, value_name = "TYPE")]
    exclude_type: Vec<String>,
    /// Every one of these labels (can be repeated)
    #[arg(short, long, value_name = "LABEL")]
    label: Vec<String>,
    /// At least one of these labels
    #[arg(long, value_name = "LABEL")]
    label_any: Vec<String>,
    /// At least one label like this: tech-* (can be repeated)
    #[arg(long, value_name = "PATTERN")]
    label_pattern: Vec<String>,
    /// At least one label that this regular expression finds (can be repeated)
    #[arg(long, value_name = "EXPRESSION")]
    label_regex: Vec<String>,
    /// None of these labels
    #[arg(long, value_name = "LABEL")]
    exclude_label: Vec<String>,
    /// Only this rig
    #[arg(long)]
    rig: Option<String>,
    /// A metadata field has this value (can be repeated)
    #[arg(long, value_name = "KEY=VALUE")]
    metadata_field: Vec<String>,
    /// A metadata field exists (can be repeated)
    #[arg(long, value_name = "KEY")]
    has_metadata_key: Vec<String>,
}

impl TraitArgs {
    /// A filter that asks for these and nothing else.
    pub(super) fn filter(&self, town: &Town) -> Result<BeadFilter, CliError> {
        Ok(BeadFilter {
            rig: self.rig.as_deref().map(|name| rigs::slug(town, name)).transpose()?,
            types: types(&self.types)?,
            exclude_types: types(&self.exclude_type)?,
            labels: comma_separated(&self.label),
            labels_any: self.labels_any(town)?,
            exclude_labels: comma_separated(&self.exclude_label),
            metadata: fields(&self.metadata_field)?,
            metadata_keys: metadata_keys(&self.has_metadata_key)?,
            ..BeadFilter::default()
        })
    }
}

impl TraitArgs {
    /// Labels of which a bead has at least one: those that are named, and those that match.
    fn labels_any(&self, town: &Town) -> Result<Vec<String>, CliError> {
        let mut any = comma_separated(&self.label_any);
        let globs = self.label_pattern.iter().map(|text| LabelPattern::glob(text));
        let expressions = self.label_regex.iter().map(|text| LabelPattern::expression(text));
        let patterns = globs.chain(expressions).collect::<Result<Vec<_>, _>>()?;
        if !patterns.is_empty() {
            any.extend(labels_matching(town, &patterns)?);
            // Without any label that matches, no bead does.
            any.push(NO_LABEL.to_owned());
        }
        Ok(any)
    }
}

/// No bead has this label, because a label is one line.
const NO_LABEL: &str = "\n";

/// Flags for the order and the number of beads.
#[derive(Debug, Args)]
pub(super) struct OrderArgs {
    /// In this order
    #[arg(long, value_parser = ORDERS)]
    sort: Option<String>,
    /// Turn the order round
    #[arg(short, long)]
    reverse: bool,
    /// At most this many (50 unless said); 0 for all
    #[arg(short = 'n', long)]
    limit: Option<usize>,
}

impl OrderArgs {
    /// Asks for this order and number, or for `default` many.
    pub(super) fn apply(&self, filter: &mut BeadFilter, default: Option<usize>) {
        filter.order = order(self.sort.as_deref().unwrap_or_default());
        filter.reverse = self.reverse;
        filter.limit = limit(self.limit, default);
    }
}

/// Filters by date.
#[derive(Debug, Args)]
struct TimeArgs {
    /// Made after this
    #[arg(long, value_name = "WHEN")]
    created_after: Option<String>,
    /// Made before this
    #[arg(long, value_name = "WHEN")]
    created_before: Option<String>,
    /// Changed after this
    #[arg(long, value_name = "WHEN")]
    updated_after: Option<String>,
    /// Changed before this
    #[arg(long, value_name = "WHEN")]
    updated_before: Option<String>,
    /// Closed after this
    #[arg(long, value_name = "WHEN")]
    closed_after: Option<String>,
    /// Closed before this
    #[arg(long, value_name = "WHEN")]
    closed_before: Option<String>,
    /// Due after this
    #[arg(long, value_name = "WHEN")]
    due_after: Option<String>,
    /// Due before this
    #[arg(long, value_name = "WHEN")]
    due_before: Option<String>,
    /// Deferred until after this
    #[arg(long, value_name = "WHEN")]
    defer_after: Option<String>,
    /// Deferred until before this
    #[arg(long, value_name = "WHEN")]
    defer_before: Option<String>,
    /// Due, and not closed
    #[arg(long)]
    overdue: bool,
    /// Put off
    #[arg(long)]
    deferred: bool,
}

/// Options for the beads that lists leave out by default.
#[derive(Debug, Args)]
struct HiddenArgs {
    /// Only pinned beads
    #[arg(long, conflicts_with = "no_pinned")]
    pinned: bool,
    /// No pinned beads
    #[arg(long)]
    no_pinned: bool,
    /// Also templates
    #[arg(long)]
    include_templates: bool,
    /// Also gates
    #[arg(long)]
    include_gates: bool,
    /// Also agents, roles, rigs and messages
    #[arg(long)]
    include_infra: bool,
    /// Also ephemeral beads, and sling contexts
    #[arg(long)]
    include_ephemeral: bool,
}

impl FilterArgs {
    pub(super) fn filter(&self, town: &Town) -> Result<BeadFilter, CliError> {
        let now = town.now();
        let (from, to) = self.priorities()?;
        let traits = self.traits.filter(town)?;
        let infrastructure = traits.types.iter().any(IssueType::is_infrastructure);
        let include_hidden = self.hidden.include_infra || self.hidden.include_gates;
        let mut ids = Vec::new();
        for input in comma_separated(&self.id) {
            ids.push(resolve_shown(town, &input)?);
        }
        let include_contexts = self.hidden.include_ephemeral
            || traits.types.iter().any(|kind| kind.as_str() == IssueType::SLING_CONTEXT)
            || traits.labels.iter().chain(&traits.labels_any).any(|l| l == labels::SLING_CONTEXT)
            || ids.iter().any(|id| id.as_str().starts_with(ContextId::PREFIX));
        let carried =
            [("spec_id", &self.spec), ("mol_type", &self.mol_type), ("wisp_type", &self.wisp_type)];
        Ok(BeadFilter {
            ids,
            status: self.statuses(town)?,
            exclude_statuses: self.retired(town)?,
            include_hidden,
            include_contexts,
            include_templates: self.hidden.include_templates,
            include_ephemeral: self.hidden.include_ephemeral || include_hidden || infrastructure,
            pinned: either(self.hidden.pinned, self.hidden.no_pinned),
            priority_from: from,
            priority_to: to,
            assignee: self.assignee.clone(),
            unassigned: self.no_assignee,
            no_labels: self.no_labels,
            title_contains: self.title.clone(),
            description_contains: self.desc_contains.clone(),
            notes_contain: self.notes_contains.clone(),
            empty_description: self.empty_description,
            parent: self.parent.as_deref().map(|input| resolve(town, input)).transpose()?,
            no_parent: self.no_parent,
            created: between(
                self.times.created_after.as_ref(),
                self.times.created_before.as_ref(),
                now,
            )?,
            updated: between(
                self.times.updated_after.as_ref(),
                self.times.updated_before.as_ref(),
                now,
            )?,
            closed: between(
                self.times.closed_after.as_ref(),
                self.times.closed_before.as_ref(),
                now,
            )?,
            due: ahead(self.times.due_after.as_ref(), self.times.due_before.as_ref(), now)?,
            deferred: ahead(
                self.times.defer_after.as_ref(),
                self.times.defer_before.as_ref(),
                now,
            )?,
            only_deferred: self.times.deferred,
            overdue_at: self.times.overdue.then_some(now),
            outcome: self.outcome.as_deref().map(Outcome::parse).transpose()?,
            carried: carried
                .into_iter()
                .filter_map(|(name, value)| value.clone().map(|value| (name, value)))
                .collect(),
            ..traits
        })
    }

    /// Statuses that a plain list leaves out, besides closed and pinned.
    fn retired(&self, town: &Town) -> Result<Vec<Status>, CliError> {
        if self.status.is_some() || self.all {
            return Ok(Vec::new());
        }
        Ok(settings::retired_statuses(town)?)
    }

    fn statuses(&self, town: &Town) -> Result<StatusFilter, CliError> {
        if let Some(statuses) = statuses(town, self.status.as_deref())? {
            return Ok(statuses);
        }
        let closed = self.all
            || self.outcome.is_some()
            || self.times.closed_after.is_some()
            || self.times.closed_before.is_some()
            || self.hidden.pinned;
        Ok(if closed { StatusFilter::All } else { StatusFilter::Current })
    }

    fn priorities(&self) -> Result<(Option<Priority>, Option<Priority>), CliError> {
        let parse = |text: &Option<String>| text.as_deref().map(Priority::parse).transpose();
        let exact = parse(&self.priority)?;
        Ok((exact.or(parse(&self.priority_min)?), exact.or(parse(&self.priority_max)?)))
    }
}

/// Statuses as a person writes them: separated by commas, or "all"; nothing if none is named.
pub(super) fn statuses(town: &Town, text: Option<&str>) -> Result<Option<StatusFilter>, CliError> {
    let names = comma_separated(text.map(str::to_owned).as_slice());
    if names.is_empty() {
        return Ok(None);
    }
    if names.iter().any(|name| name == "all") {
        return Ok(Some(StatusFilter::All));
    }
    let statuses = names.iter().map(|name| Status::parse(name)).collect::<Result<Vec<_>, _>>()?;
    for status in &statuses {
        check_status(town, status)?;
    }
    Ok(Some(StatusFilter::OneOf(statuses)))
}

/// Types as a person writes them.
pub(super) fn types(values: &[String]) -> Result<Vec<IssueType>, CliError> {
    Ok(comma_separated(values)
        .iter()
        .map(|name| IssueType::parse(name))
        .collect::<Result<_, _>>()?)
}

/// The name of a top-level metadata field. A name that looks like a path would be taken for one.
fn metadata_key(key: &str) -> Result<String, CliError> {
    if key.is_empty() || key.starts_with(['$', '[']) || key.contains('"') {
        return Err(CliError::request(format!("\"{key}\" cannot be searched as a metadata field")));
    }
    Ok(key.to_owned())
}

/// Metadata fields that must exist.
fn metadata_keys(keys: &[String]) -> Result<Vec<String>, CliError> {
    keys.iter().map(|key| metadata_key(key)).collect()
}

/// Metadata fields and the values to look for.
fn fields(values: &[String]) -> Result<Vec<(String, String)>, CliError> {
    let field = |text: &String| {
        let (key, value) = text
            .split_once('=')
            .ok_or_else(|| CliError::request(format!("\"{text}\" is not of the form key=value")))?;
        Ok((metadata_key(key)?, value.to_owned()))
    };
    values.iter().map(field).collect()
}

/// A span of the past: `7d` is seven days ago.
fn between(
    after: Option<&String>,
    before: Option<&String>,
    now: Timestamp,
) -> Result<Between, CliError> {
    let parse = |text: Option<&String>| text.map(|text| instant_or_ago(text, now)).transpose();
    Ok(Between { after: parse(after)?, before: parse(before)? })
}

/// A span of the future: `7d` is in seven days.
fn ahead(
    after: Option<&String>,
    before: Option<&String>,
    now: Timestamp,
) -> Result<Between, CliError> {
    let parse = |text: Option<&String>| text.map(|text| instant(text, now)).transpose();
    Ok(Between { after: parse(after)?, before: parse(before)? })
}

fn either(yes: bool, no: bool) -> Option<bool> {
    if yes { Some(true) } else { no.then_some(false) }
}

/// The orders a person can ask for.
const ORDERS: [&str; 9] =
    ["priority", "created", "updated", "closed", "status", "id", "title", "type", "assignee"];

/// The order of this name.
pub(super) fn order(name: &str) -> BeadOrder {
    match name {
        "oldest" => BeadOrder::Oldest,
        "hybrid" => BeadOrder::Hybrid,
        "created" => BeadOrder::Created,
        "updated" => BeadOrder::Updated,
        "closed" => BeadOrder::Closed,
        "status" => BeadOrder::Status,
        "id" => BeadOrder::Id,
        "title" => BeadOrder::Title,
        "type" => BeadOrder::Type,
        "assignee" => BeadOrder::Assignee,
        _ => BeadOrder::Priority,
    }
}

/// How many, where 0 means all.
pub(super) fn limit(asked: Option<usize>, default: Option<usize>) -> Option<usize> {
    match asked {
        Some(0) => None,
        Some(limit) => Some(limit),
        None => default,
    }
}
