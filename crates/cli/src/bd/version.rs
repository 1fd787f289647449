//! `bd version`.

use clap::Args;
use gt_records::ObjectWriter;

use crate::context::Context;
use crate::error::CliError;

/// The version of the beads interface that this program speaks; clients of the original refuse older ones.
macro_rules! interface {
    () => {
        "1.0.5"
    };
}

/// The version line without the name of the program: the interface, then this program.
pub(super) const WITH_OURS: &str =
    concat!("version ", interface!(), " (gt ", env!("CARGO_PKG_VERSION"), ")");

/// Print the version of the beads interface and of this program
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  bd version --json")]
pub(super) struct VersionArgs {}

pub(super) fn run(context: &Context<'_>) -> Result<(), CliError> {
    let printer = context.printer;
    if !printer.json() {
        return printer.line(format!("bd {WITH_OURS}"));
    }
    let mut out = String::new();
    let mut object = ObjectWriter::new(&mut out);
    object.text("version", interface!());
    object.text("gt_version", env!("CARGO_PKG_VERSION"));
    object.finish();
    printer.object(&out)
}
