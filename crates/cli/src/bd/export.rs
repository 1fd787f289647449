//! `bd export`.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use gt_beads::interchange::export;

use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::plural;

/// Write every bead as one line of JSON
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  bd export > issues.jsonl\n  bd export -o issues.jsonl")]
pub(super) struct ExportArgs {
    /// Write to this file, in one step when it is complete
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[arg(long, hide = true)]
    all: bool,
}

pub(super) fn run(context: &CommandContext<'_>, args: &ExportArgs) -> Result<(), CliError> {
    let town = context.store_town()?;
    let printer = context.printer;
    let Some(path) = &args.output else {
        export(&town, |line| printer.data(line))?;
        return Ok(());
    };
    let path = context.directory.join(path);
    let failed = |error: std::io::Error| {
        CliError::request(format!("cannot write {}: {error}", path.display()))
    };
    let temporary = temporary_beside(&path);
    let write = || -> Result<u64, CliError> {
        let mut file = BufWriter::new(File::create(&temporary).map_err(failed)?);
        let count = export(&town, |line| {
            file.write_all(line.as_bytes()).and_then(|()| file.write_all(b"\n")).map_err(failed)
        })?;
        file.flush().map_err(failed)?;
        file.get_ref().sync_all().map_err(failed)?;
        std::fs::rename(&temporary, &path).map_err(failed)?;
        Ok(count)
    };
    let count = write().inspect_err(|_| {
        // Leave no half of an export behind; the old file is untouched.
        let _ = std::fs::remove_file(&temporary);
    })?;
    printer.note(format!("✓ Exported {} to {}", plural(count, "bead"), path.display()));
    Ok(())
}

fn temporary_beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    path.with_file_name(name)
}
