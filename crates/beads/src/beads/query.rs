//! From a query to the beads it asks for.

use gt_core::query::{FieldCondition, Flag, Query, TextField, TextTest, TimeField};
use gt_core::schedule::labels;
use gt_core::{IssueType, Status};
use gt_store::{BeadFilter, StatusFilter};

use super::list::check_status;
use crate::lookup::{resolve, resolve_shown};
use gt_town::{Result, Town, rigs, settings};

/// A filter for the query `text`. Beads that lists leave out are left out here too, unless the query speaks of them;
/// `all` asks for closed beads as well.
pub fn query_filter(town: &Town, text: &str, all: bool) -> Result<BeadFilter> {
    let mut query = Query::parse(text, town.now())?;
    query.resolve_names(|field, name| {
        match field {
            TextField::Id => *name = resolve_shown(town, name)?.to_string(),
            TextField::Parent => *name = resolve(town, name)?.to_string(),
            TextField::Rig => *name = rigs::slug(town, name)?.to_string(),
            TextField::Status => check_status(town, &Status::parse(name)?)?,
            _ => {}
        }
        Ok::<_, gt_town::OperationError>(())
    })?;
    let names = |wanted: TextField| {
        query.mentions(
            |found| matches!(found, FieldCondition::Text { field, .. } if *field == wanted),
        )
    };
    let flags = |wanted: Flag| query.mentions(|found| *found == FieldCondition::Flag(wanted));
    let by_id = names(TextField::Id);
    let is_closing = |found: &FieldCondition| {
        matches!(
            found,
            FieldCondition::Time { field: TimeField::Closed, .. }
                | FieldCondition::Text { field: TextField::Outcome | TextField::CloseReason, .. }
        )
    };
    let pinned = flags(Flag::Pinned);
    let any_status =
        all || by_id || pinned || names(TextField::Status) || query.mentions(is_closing);
    let types = |wanted: fn(&IssueType) -> bool| {
        query.mentions(|found| match found {
            FieldCondition::Text { field: TextField::Type, test: TextTest::Is(name) } => {
                wanted(&IssueType::trusted(name.clone()))
            }
            _ => false,
        })
    };
    let ephemeral = by_id || flags(Flag::Ephemeral) || names(TextField::WispType);
    let is_context = |kind: &IssueType| kind.as_str() == IssueType::SLING_CONTEXT;
    let labelled = query.mentions(|found| match found {
        FieldCondition::Text { field: TextField::Label, test: TextTest::Is(name) } => {
            name == labels::SLING_CONTEXT
        }
        _ => false,
    });
    let is_hidden = |kind: &IssueType| IssueType::HIDDEN.contains(&kind.as_str());
    Ok(BeadFilter {
        status: if any_status { StatusFilter::All } else { StatusFilter::Current },
        exclude_statuses: if any_status { Vec::new() } else { settings::retired_statuses(town)? },
        include_hidden: ephemeral || types(is_hidden),
        include_ephemeral: ephemeral || types(IssueType::is_infrastructure),
        include_contexts: ephemeral || labelled || types(is_context),
        include_templates: by_id || flags(Flag::Template),
        query: Some(query),
        ..BeadFilter::default()
    })
}
