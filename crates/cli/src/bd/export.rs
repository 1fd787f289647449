//! `bd export`.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use gt_beads::events::last_number;
use gt_beads::interchange::{ExportOptions, JsonlWrite, export_some, jsonl_path, write_jsonl};
use gt_town::Town;

use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::plural;
use crate::served::{self, GivenFile};

/// How often the event counter is read, and so how long changes are collected.
const WATCH_INTERVAL: Duration = Duration::from_millis(500);

/// Write every bead as one line of JSON
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  bd export > issues.jsonl\n  bd export -o issues.jsonl\n  bd export --watch\n  bd config set export.auto true    # the same without a process that stays"
)]
pub(super) struct ExportArgs {
    /// Write to this file, in one step when it is complete
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// No memories
    #[arg(long)]
    no_memories: bool,
    /// No ephemeral beads, and no agents, roles, rigs, gates and messages
    #[arg(long, conflicts_with_all = ["all", "include_infra"])]
    scrub: bool,
    /// Keep .beads/issues.jsonl, or the file of --output, current until interrupted
    #[arg(long, conflicts_with_all = ["no_memories", "scrub"])]
    watch: bool,
    #[arg(long, hide = true)]
    all: bool,
    #[arg(long, hide = true)]
    include_infra: bool,
}

pub(super) fn run(context: &CommandContext<'_>, args: &ExportArgs) -> Result<(), CliError> {
    let town = context.store_town()?;
    let printer = context.printer;
    let options = ExportOptions {
        no_memories: args.no_memories,
        scrub: args.scrub,
        ..ExportOptions::default()
    };
    if args.watch {
        return watch(context, &town, args.output.as_deref());
    }
    let Some(path) = &args.output else {
        export_some(&town, options, |line| printer.data(line))?;
        return Ok(());
    };
    let path = context.directory.join(path);
    let failed = |error: std::io::Error| {
        CliError::request(format!("cannot write {}: {error}", path.display()))
    };
    let mut file = BufWriter::new(GivenFile::create(&path).map_err(failed)?);
    let count = export_some(&town, options, |line| {
        file.write_all(line.as_bytes()).and_then(|()| file.write_all(b"\n")).map_err(failed)
    })?;
    file.into_inner().map_err(|error| failed(error.into_error()))?.finish().map_err(failed)?;
    printer.note(format!("✓ Exported {} to {}", plural(count, "bead"), path.display()));
    Ok(())
}

/// Keeps a file current, until the reader of the output goes away or the command is interrupted.
fn watch(context: &CommandContext<'_>, town: &Town, path: Option<&Path>) -> Result<(), CliError> {
    if path.is_some() && served::current().is_some() {
        return Err(CliError::request(
            "bd export --watch keeps no file of a worker current; run bd export --output when you need it",
        ));
    }
    if !town.has_directory() {
        return Err(CliError::request(
            "there is no town here in which a file could be kept current",
        ));
    }
    let path = match path {
        Some(path) => context.directory.join(path),
        None => jsonl_path(town)?,
    };
    let printer = context.printer;
    let mut written = None;
    loop {
        let number = last_number(town)?;
        if written != Some(number) {
            if let JsonlWrite::Written(count) = write_jsonl(town, &path)? {
                printer.done(format!("✓ Wrote {} to {}", plural(count, "bead"), path.display()))?;
            }
            written = Some(number);
        }
        printer.wait(WATCH_INTERVAL)?;
    }
}
