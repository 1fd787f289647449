//! The line and the field that say that ready work waits for a daemon that does not run.

use gt_api::DaemonAbsenceDocument;
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

/// The field `daemon_absence`; no field while a daemon runs or nothing is ready.
pub(in crate::gt) fn absence_document(
    absence: Option<DaemonAbsence>,
) -> Option<DaemonAbsenceDocument> {
    absence.map(|absence| DaemonAbsenceDocument {
        text: absence.to_string(),
        ready: absence.ready,
        remedy: absence.remedy(),
    })
}
