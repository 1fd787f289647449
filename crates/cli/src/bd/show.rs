//! `bd show`.

use clap::Args;
use gt_operations::beads::{Shown, show};

use super::shapes;
use crate::context::Context;
use crate::error::CliError;
use crate::output::{Printer, ago};

/// Show beads
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  bd show gt-abc\n  bd show gt-abc gt-def --json")]
pub(super) struct ShowArgs {
    /// Ids, or parts of them
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    #[arg(long = "id", value_name = "ID", hide = true)]
    id_flags: Vec<String>,
    /// One line per bead
    #[arg(long)]
    short: bool,
    /// Include what depends on it
    #[arg(long)]
    include_dependents: bool,
    /// Include the comments
    #[arg(long)]
    include_comments: bool,
}

pub(super) fn run(context: &Context<'_>, args: &ShowArgs) -> Result<(), CliError> {
    let inputs = [args.ids.as_slice(), args.id_flags.as_slice()].concat();
    if inputs.is_empty() {
        return Err(CliError::request("which bead? bd show <id>"));
    }
    let town = context.town()?;
    let printer = context.printer;
    let (found, missing): (Vec<_>, Vec<_>) =
        show(&town, &inputs)?.into_iter().partition(Result::is_ok);
    let found: Vec<Shown> = found.into_iter().filter_map(Result::ok).collect();
    for error in missing.into_iter().filter_map(Result::err) {
        printer.part_failed(&error.into());
    }
    if found.is_empty() {
        return Err(CliError::AlreadyTold("no issues found matching the provided IDs".to_owned()));
    }
    if printer.json() {
        let mut list = printer.list();
        for shown in &found {
            let (dependents, comments) = (args.include_dependents, args.include_comments);
            list.push(&shapes::Shown { about: shown, dependents, comments }.json())?;
        }
        return list.finish();
    }
    if args.short {
        return shapes::print_rows(printer, found.iter().map(|shown| (&shown.row, String::new())));
    }
    for (at, shown) in found.iter().enumerate() {
        if at > 0 {
            printer.line("")?;
        }
        print(printer, shown, town.now())?;
    }
    Ok(())
}

fn print(printer: &Printer, shown: &Shown, now: gt_core::Timestamp) -> Result<(), CliError> {
    let bead = &shown.row.bead;
    let section = |name: &str| {
        printer.line("")?;
        printer.heading(name, "")
    };
    printer.heading(bead.id.as_str(), &format!("  {}", bead.title))?;
    let mut facts =
        vec![bead.priority.to_string(), bead.issue_type.to_string(), bead.status.to_string()];
    if let Some(outcome) = bead.outcome {
        facts.push(outcome.as_str().to_owned());
    }
    if !bead.assignee.is_empty() {
        facts.push(format!("@{}", bead.assignee));
    }
    if let Some(rig) = &bead.rig {
        facts.push(format!("rig {rig}"));
    }
    printer.line(facts.join(" · "))?;
    let creator =
        if bead.created_by.is_empty() { String::new() } else { format!(" by {}", bead.created_by) };
    printer.line(format!(
        "created {}{creator}, changed {}",
        ago(bead.created_at, now),
        ago(bead.updated_at, now)
    ))?;
    if let Some(closed_at) = bead.closed_at {
        printer.line(format!("closed {}: {}", ago(closed_at, now), bead.close_reason))?;
    }
    for (name, at) in [("due", bead.due_at), ("deferred until", bead.defer_until)] {
        if let Some(at) = at {
            printer.line(format!("{name} {at}"))?;
        }
    }
    if !shown.row.labels.is_empty() {
        printer.line(format!("labels: {}", shown.row.labels.join(", ")))?;
    }
    for (name, text) in [
        ("Description", &bead.description),
        ("Design", &bead.design),
        ("Acceptance criteria", &bead.acceptance_criteria),
        ("Notes", &bead.notes),
    ] {
        if !text.is_empty() {
            section(name)?;
            printer.text(text.trim_end())?;
        }
    }
    if let Some(metadata) = &bead.metadata {
        section("Metadata")?;
        printer.line(metadata.as_str())?;
    }
    if !shown.dependencies.is_empty() {
        section("Depends on")?;
        for (edge, target) in &shown.dependencies {
            let state = target.as_ref().map_or_else(
                || "not here".to_owned(),
                |bead| format!("{} · {}", bead.status, bead.title),
            );
            printer.line(format!("  {} ({}) {state}", edge.target, edge.kind))?;
        }
    }
    if !shown.dependents.is_empty() {
        section("Needed by")?;
        for (edge, bead) in &shown.dependents {
            printer
                .line(format!("  {} ({}) {} · {}", bead.id, edge.kind, bead.status, bead.title))?;
        }
    }
    if !shown.comments.is_empty() {
        section("Comments")?;
        for comment in &shown.comments {
            let when = ago(comment.created_at, now);
            let said = comment.text.trim_end();
            printer.text(&format!("  {} ({when}): {said}", comment.author))?;
        }
    }
    Ok(())
}
