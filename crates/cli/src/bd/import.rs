//! `bd import`.

use std::io::{Cursor, ErrorKind, Read};
use std::path::{Path, PathBuf};

use clap::Args;
use gt_api::{ImportDocument, ImportRemarkDocument};
use gt_beads::interchange::{
    ImportContents, ImportOptions, ImportSummary, LineFile, Skipped, SourceKind, import,
};

use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::{Printer, plural, progress_bar};
use crate::served;
use crate::values::texts;

/// How many lines of a kind are listed for people; JSON has them all.
const LISTED_MAX: usize = 20;

/// Read beads from JSONL, a .beads directory or a dump of tables, all of them or none
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  bd import issues.jsonl
  bd import issues.jsonl --dry-run
  bd import ~/src/web/.beads
  ssh host bd export | bd import -

gt import takes a whole Gas Town directory.")]
pub(super) struct ImportArgs {
    /// The file or directory (- is standard input)
    #[arg(value_name = "PATH")]
    file: Option<PathBuf>,
    #[arg(short, long, value_name = "FILE", hide = true, conflicts_with = "file")]
    input: Option<PathBuf>,
    #[command(flatten)]
    flags: ImportFlags,
}

/// How to import.
#[derive(Debug, Args)]
pub(crate) struct ImportFlags {
    /// Leave out what is wrong instead of refusing everything
    #[arg(long)]
    skip_invalid: bool,
    /// Say what would come, and change nothing
    #[arg(long)]
    dry_run: bool,
}

pub(super) fn run(context: &CommandContext<'_>, args: &ImportArgs) -> Result<(), CliError> {
    let path = args.file.clone().or_else(|| args.input.clone());
    let path = path.ok_or_else(|| {
        CliError::request("which file? bd import <file>, or - for standard input")
    })?;
    bring(context, &path, &args.flags, |kind| match kind {
        SourceKind::GasTown => Err(CliError::request(format!(
            "{} is a Gas Town directory; gt import brings all of it, bd import {} the beads of the town \
             alone",
            path.display(),
            path.join(".beads").display()
        ))),
        SourceKind::Lines | SourceKind::BeadsDirectory | SourceKind::TableDump => Ok(()),
    })
}

/// Imports a file of lines, as `bd init --from-jsonl` does: what is wrong is left out.
pub(super) fn import_file(
    context: &CommandContext<'_>,
    path: &Path,
) -> Result<ImportSummary, CliError> {
    let options = ImportOptions { skip_invalid: true, ..ImportOptions::default() };
    let arrival = ImportContents::open(path, SourceKind::of(path)?, options)?;
    Ok(import(&context.store_town()?, &arrival, options, |_| {})?)
}

/// Imports what there is at `path`, unless `admit` refuses that kind of thing.
pub(crate) fn bring(
    context: &CommandContext<'_>,
    path: &Path,
    flags: &ImportFlags,
    admit: impl FnOnce(SourceKind) -> Result<(), CliError>,
) -> Result<(), CliError> {
    let town = context.store_town()?;
    let options = ImportOptions {
        skip_invalid: flags.skip_invalid,
        dry_run: flags.dry_run,
        ..ImportOptions::default()
    };
    let spool = |input: Box<dyn Read>, name: String| {
        LineFile::spool(input, name, &std::env::temp_dir()).map(ImportContents::lines)
    };
    let arrival = if path.as_os_str() == "-" {
        spool(served::stdin(), "standard input".to_owned())?
    } else if served::current().is_some() {
        let read = served::read_file(path).map_err(|error| {
            let hint = if error.kind() == ErrorKind::IsADirectory {
                "; workers import files of lines, such as issues.jsonl in it"
            } else {
                ""
            };
            CliError::request(format!("cannot read {}: {error}{hint}", path.display()))
        })?;
        spool(Box::new(Cursor::new(read)), path.display().to_string())?
    } else {
        let path = context.directory.join(path);
        let kind = SourceKind::of(&path)?;
        admit(kind)?;
        ImportContents::open(&path, kind, options)?
    };
    let bar = progress_bar("importing", arrival.bytes() * 2);
    let summary = import(&town, &arrival, options, |bytes| bar.set_position(bytes));
    bar.finish_and_clear();
    print(context.printer, &summary?, flags.dry_run)
}

fn print(printer: &Printer, summary: &ImportSummary, dry_run: bool) -> Result<(), CliError> {
    if printer.json() {
        return printer.object(&document(summary, dry_run));
    }
    let what = match summary.kind {
        SourceKind::Lines => None,
        SourceKind::BeadsDirectory => Some("a .beads directory"),
        SourceKind::TableDump => Some("a dump of tables"),
        SourceKind::GasTown => Some("a Gas Town directory"),
    };
    if let Some(what) = what {
        printer.done(format!("This is {what}; beads are in:"))?;
        listed(printer, "", &summary.files)?;
    }
    let verb = if dry_run { "Would import" } else { "✓ Imported" };
    let brought = plural(summary.created + summary.updated, "issue");
    printer.done(format!(
        "{verb} {brought}: {} created, {} updated, {} unchanged, {} skipped",
        summary.created, summary.updated, summary.unchanged, summary.skipped
    ))?;
    listed(printer, "skipped ", summary.skipped_details.iter().map(describe))?;
    if summary.mended > 0 {
        let tense = if dry_run { "Would mend" } else { "Mended" };
        printer.done(format!("{tense} {}:", plural(summary.mended, "value")))?;
    }
    listed(printer, "mended ", summary.repaired.iter().map(describe))?;
    let (add, set, keep) =
        if dry_run { ("would add", "would set", "would keep") } else { ("added", "set", "kept") };
    listed(printer, &format!("{add} the rig "), &summary.rigs)?;
    let settings = summary.settings.iter().map(|(key, value)| format!("{key} = {value}"));
    listed(printer, &format!("{set} "), settings)?;
    let kept = summary.kept.iter().map(|(key, remark)| format!("{key} for later: {remark}"));
    listed(printer, &format!("{keep} "), kept)?;
    listed(printer, "conflict: ", &summary.conflicts)?;
    listed(printer, "not imported: ", &summary.left_out)?;
    listed(printer, "note: ", &summary.remarks)?;
    listed(printer, "kept: ", &summary.kept_running_details)?;
    if summary.old_queue_state > 0 {
        let carry = if summary.old_queue_state == 1 { "carries" } else { "carry" };
        printer.done(format!(
            "{} {carry} the state of an older queue; it is kept as it is until gt scheduler adopt turns \
             it into contexts",
            plural(summary.old_queue_state, "bead")
        ))?;
    }
    Ok(())
}

/// Some lines of a kind, and how many more there are.
fn listed<T: std::fmt::Display>(
    printer: &Printer,
    beginning: &str,
    entries: impl IntoIterator<Item = T>,
) -> Result<(), CliError> {
    let mut entries = entries.into_iter();
    for entry in entries.by_ref().take(LISTED_MAX) {
        printer.done(format!("  {beginning}{entry}"))?;
    }
    match entries.count() {
        0 => Ok(()),
        more => printer.done(format!("  {beginning}… and {more} more; --json lists them")),
    }
}

fn describe(entry: &Skipped) -> String {
    let file = entry.file.as_deref().unwrap_or_default();
    let line = if entry.line > 0 { format!("line {}", entry.line) } else { String::new() };
    let id = entry.id.as_ref().map(ToString::to_string).unwrap_or_default();
    let parts: Vec<&str> = [file, &line, &id].into_iter().filter(|p| !p.is_empty()).collect();
    format!("{}: {}", parts.join(" "), entry.reason)
}

fn document(summary: &ImportSummary, dry_run: bool) -> ImportDocument {
    ImportDocument {
        dry_run,
        source: summary.kind.as_str().to_owned(),
        files: summary.files.clone(),
        created: summary.created,
        updated: summary.updated,
        unchanged: summary.unchanged,
        skipped: summary.skipped,
        mended: summary.mended,
        memories: summary.memories,
        old_queue_state: summary.old_queue_state,
        kept_running: summary.kept_running,
        skipped_details: remarks(&summary.skipped_details),
        repaired: remarks(&summary.repaired),
        rigs: texts(&summary.rigs),
        rigs_unchanged: summary.rigs_unchanged,
        settings: summary.settings.iter().cloned().collect(),
        kept: summary.kept.iter().cloned().collect(),
        settings_unchanged: summary.settings_unchanged,
        kept_running_details: summary.kept_running_details.clone(),
        conflicts: summary.conflicts.clone(),
        left_out: summary.left_out.clone(),
        remarks: summary.remarks.clone(),
    }
}

fn remarks(entries: &[Skipped]) -> Vec<ImportRemarkDocument> {
    let remark = |entry: &Skipped| ImportRemarkDocument {
        file: entry.file.clone(),
        line: (entry.line > 0).then_some(entry.line),
        id: entry.id.as_ref().map(ToString::to_string),
        reason: entry.reason.clone(),
    };
    entries.iter().map(remark).collect()
}
