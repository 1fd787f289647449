//! The line that says that ready work waits for a daemon that does not run.

use gt_daemon::daemon::DaemonAbsence;

use crate::error::CliError;
use crate::output::Printer;

/// The warning line. Commands print it first, because nothing else that they show will change without a daemon.
pub(in crate::gt) fn print_daemon_absence(
    printer: &Printer,
    absence: Option<DaemonAbsence>,
) -> Result<(), CliError> {
    match absence {
        Some(absence) => printer.heading(&absence.to_string(), ""),
        None => Ok(()),
    }
}
