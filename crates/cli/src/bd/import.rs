//! `bd import`.

use std::path::PathBuf;

use clap::Args;
use gt_operations::interchange::{ImportOptions, ImportSummary, Skipped, Source, import};
use gt_records::ObjectWriter;

use crate::context::Context;
use crate::error::CliError;
use crate::output::{Printer, plural, progress_bar};

/// How many skipped lines are listed for people; JSON has them all.
const LISTED_MAX: usize = 20;

/// Read beads from a JSONL file, all of them or none
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  bd import issues.jsonl
  bd import issues.jsonl --dry-run
  ssh host bd export | bd import -")]
pub(super) struct ImportArgs {
    /// The file (- is standard input)
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    #[arg(short, long, value_name = "FILE", hide = true, conflicts_with = "file")]
    input: Option<PathBuf>,
    /// Leave out lines that are wrong
    #[arg(long)]
    skip_invalid: bool,
    /// Say what would come, and change nothing
    #[arg(long)]
    dry_run: bool,
}

pub(super) fn run(context: &Context<'_>, args: &ImportArgs) -> Result<(), CliError> {
    let town = context.town()?;
    let printer = context.printer;
    let path = args.file.clone().or_else(|| args.input.clone());
    let path = path.ok_or_else(|| {
        CliError::request("which file? bd import <file>, or - for standard input")
    })?;
    let source = if path.as_os_str() == "-" {
        Source::spool(std::io::stdin(), "standard input".to_owned(), &std::env::temp_dir())?
    } else {
        Source::open(&context.directory.join(path))?
    };
    let options = ImportOptions { skip_invalid: args.skip_invalid, dry_run: args.dry_run };
    let bar = progress_bar("importing", source.bytes() * 2);
    let summary = import(&town, &source, options, |bytes| bar.set_position(bytes));
    bar.finish_and_clear();
    print(printer, &summary?, args.dry_run)
}

fn print(printer: &Printer, summary: &ImportSummary, dry_run: bool) -> Result<(), CliError> {
    if printer.json() {
        return printer.object(&json(summary, dry_run));
    }
    let prefix = if dry_run { "Would import: " } else { "✓ Imported: " };
    printer.done(format!(
        "{prefix}{} created, {} updated, {} unchanged, {} skipped",
        summary.created, summary.updated, summary.unchanged, summary.skipped
    ))?;
    for (name, list) in [("skipped", &summary.skipped_details), ("mended", &summary.repaired)] {
        for entry in list.iter().take(LISTED_MAX) {
            printer.done(format!("  {name} {}", describe(entry)))?;
        }
        if list.len() > LISTED_MAX {
            printer.done(format!(
                "  … and {} more {name}; --json lists them",
                list.len() - LISTED_MAX
            ))?;
        }
    }
    if summary.old_queue_state > 0 {
        printer.done(format!(
            "{} carry the state of an older queue; it is kept as it is",
            plural(summary.old_queue_state, "bead")
        ))?;
    }
    Ok(())
}

fn describe(entry: &Skipped) -> String {
    let line = if entry.line > 0 { format!("line {}", entry.line) } else { String::new() };
    let id = entry.id.as_ref().map(ToString::to_string).unwrap_or_default();
    let parts: Vec<&str> =
        [line.as_str(), id.as_str()].into_iter().filter(|p| !p.is_empty()).collect();
    format!("{}: {}", parts.join(" "), entry.reason)
}

fn json(summary: &ImportSummary, dry_run: bool) -> String {
    let mut out = String::new();
    let mut object = ObjectWriter::new(&mut out);
    object.flag("dry_run", dry_run);
    object.count("created", summary.created);
    object.count("updated", summary.updated);
    object.count("unchanged", summary.unchanged);
    object.count("skipped", summary.skipped);
    object.count("memories", summary.memories);
    object.count("old_queue_state", summary.old_queue_state);
    for (name, list) in
        [("skipped_details", &summary.skipped_details), ("repaired", &summary.repaired)]
    {
        object.array(name, |array| {
            for entry in list {
                array.object(|object| {
                    if entry.line > 0 {
                        object.count("line", entry.line);
                    }
                    if let Some(id) = &entry.id {
                        object.text("id", id.as_str());
                    }
                    object.text("reason", &entry.reason);
                });
            }
        });
    }
    object.finish();
    out
}
