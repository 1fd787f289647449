//! `bd version`.

use clap::Args;

use crate::context::CommandContext;
use crate::error::CliError;
use gt_api::VersionDocument;

/// The version of the beads interface that this program speaks; clients of the original refuse older ones.
macro_rules! interface {
    () => {
        "1.0.5"
    };
}

/// The same as a constant.
pub(super) const INTERFACE: &str = interface!();

/// The version line without the name of the program: the interface, then this program.
pub(super) const WITH_OURS: &str =
    concat!("version ", interface!(), " (gt ", env!("CARGO_PKG_VERSION"), ")");

/// Print the version of the beads interface and of this program
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  bd version --json")]
pub(super) struct VersionArgs {}

pub(super) fn run(context: &CommandContext<'_>) -> Result<(), CliError> {
    let printer = context.printer;
    if !printer.json() {
        return printer.line(format!("bd {WITH_OURS}"));
    }
    printer.object(&VersionDocument {
        version: INTERFACE.to_owned(),
        gt_version: env!("CARGO_PKG_VERSION").to_owned(),
    })
}
