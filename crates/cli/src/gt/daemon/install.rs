//! `gt daemon install`.

use clap::Args;
use gt_api::UnitDocument;
use gt_daemon::daemon;

use super::refuse_to_workers;
use crate::context::{CommandContext, this_program};
use crate::error::CliError;

/// Write a unit that makes it a service of systemd, for this person
///
/// Nothing is started; the output names the next command.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gt daemon install\n  gt daemon install --print > gt.service")]
pub(super) struct InstallArgs {
    /// Only print the unit
    #[arg(long)]
    print: bool,
}

pub(super) fn run(context: &CommandContext<'_>, args: &InstallArgs) -> Result<(), CliError> {
    if !args.print {
        refuse_to_workers(context, "a service of the daemon")?;
    }
    let unit = daemon::unit(&context.root()?, &this_program()?, &context.environment)?;
    let printer = context.printer;
    if !args.print {
        daemon::install_unit(&unit)?;
    }
    if printer.json() {
        return printer.object(&UnitDocument {
            written: !args.print,
            name: unit.name,
            path: unit.path.display().to_string(),
            text: unit.text,
        });
    }
    if args.print {
        return printer.data(unit.text.trim_end());
    }
    printer.done(format!("✓ Wrote {}", unit.path.display()))?;
    printer.done("Next:")?;
    printer.done("  systemctl --user daemon-reload")?;
    printer.done(format!("  systemctl --user enable --now {}", unit.name))?;
    printer.done("  loginctl enable-linger                # it goes on when you log out")
}
