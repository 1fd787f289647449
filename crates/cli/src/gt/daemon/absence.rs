//! The line that says that ready work waits for a daemon that does not run.

use gt_daemon::daemon::{self, DaemonAbsence};
use gt_scheduling::queue;
use gt_town::Town;

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

/// The warning behind a command that lets work start again.
pub(in crate::gt) fn note_daemon_absence(printer: &Printer, town: &Town) {
    if !town.has_directory() {
        return;
    }
    // The command has done its part, so a store that cannot be read now does not make it a failure.
    let absence = queue::status(town).and_then(|status| daemon::absence(town, &status));
    if let Ok(Some(absence)) = absence {
        printer.note(format!("warning: {absence}"));
    }
}
