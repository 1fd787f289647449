//! `bd version`.

use clap::Args;
use gt_records::ObjectWriter;

use crate::context::Context;
use crate::error::CliError;

/// Print the version of this program
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  bd version --json")]
pub(super) struct VersionArgs {}

pub(super) fn run(context: &Context<'_>) -> Result<(), CliError> {
    let printer = context.printer;
    let version = env!("CARGO_PKG_VERSION");
    if !printer.json() {
        return printer.line(format!("bd version {version}"));
    }
    let mut out = String::new();
    let mut object = ObjectWriter::new(&mut out);
    object.text("version", version);
    object.finish();
    printer.object(&out)
}
