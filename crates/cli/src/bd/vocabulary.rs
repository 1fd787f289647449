//! `bd types` and `bd statuses`.

use clap::Args;
use gt_api::{NamedDocument, StatusDocument, StatusesDocument, TypesDocument};
use gt_beads::beads::custom_types;
use gt_core::{IssueType, Status};
use gt_town::settings::known_custom_statuses;

use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::{Cell, Table};

/// List the types that a bead can have
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  bd types --json")]
pub(super) struct TypesArgs {}

/// List the statuses that a bead can have
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  bd statuses --json")]
pub(super) struct StatusesArgs {}

pub(super) fn types(context: &CommandContext<'_>) -> Result<(), CliError> {
    let custom = custom_types(&context.store_town()?)?;
    let printer = context.printer;
    if printer.json() {
        let named = |name: &&str| NamedDocument {
            name: (*name).to_owned(),
            description: described(name).to_owned(),
        };
        let core_types = IssueType::BUILT_IN.iter().map(named).collect();
        return printer.object(&TypesDocument { core_types, custom_types: custom });
    }
    let mut table = Table::new();
    for name in IssueType::BUILT_IN {
        table.row(vec![Cell::new(*name), Cell::new(described(name))]);
    }
    for name in custom {
        table.row(vec![Cell::new(name), Cell::new("named in types.custom")]);
    }
    printer.table(table)
}

fn described(name: &str) -> &'static str {
    match name {
        "task" => "work to do",
        "bug" => "something is broken",
        "feature" => "something new",
        "chore" => "maintenance",
        "epic" => "a large piece of work with parts",
        "decision" => "a decision and its reasons",
        "spike" => "an investigation with a time limit",
        "story" => "something that a user can do",
        "milestone" => "a point in time with a goal",
        "convoy" => "beads that land together",
        _ => "made by tools",
    }
}

pub(super) fn statuses(context: &CommandContext<'_>) -> Result<(), CliError> {
    let custom = context.store_town()?.read(known_custom_statuses)?;
    let built_in = Status::BUILT_IN.iter().map(|status| StatusDocument {
        name: status.to_string(),
        category: category(status).to_owned(),
    });
    let custom = custom
        .into_iter()
        .map(|(status, category)| StatusDocument { name: status.to_string(), category });
    let (built_in, custom): (Vec<_>, Vec<_>) = (built_in.collect(), custom.collect());
    let printer = context.printer;
    if printer.json() {
        let (built_in_statuses, custom_statuses) = (built_in, custom);
        return printer.object(&StatusesDocument { built_in_statuses, custom_statuses });
    }
    let mut table = Table::new();
    for StatusDocument { name, category } in built_in.into_iter().chain(custom) {
        table.row(vec![Cell::new(name), Cell::new(category)]);
    }
    printer.table(table)
}

/// In the categories of `status.custom`.
fn category(status: &Status) -> &'static str {
    match status.as_str() {
        "open" => "active",
        "closed" => "done",
        "deferred" | "pinned" => "frozen",
        _ => "wip",
    }
}
