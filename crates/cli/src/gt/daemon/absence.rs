//! The line and the field that say that ready work waits for a daemon that does not run.

use gt_operations::daemon::DaemonAbsence;
use gt_records::ObjectWriter;

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
pub(in crate::gt) fn write_daemon_absence(
    object: &mut ObjectWriter<'_>,
    absence: Option<DaemonAbsence>,
) {
    if let Some(absence) = absence {
        object.object("daemon_absence", |object| {
            object.text("text", &absence.to_string());
            object.count("ready", absence.ready);
            object.text("remedy", "gt up");
        });
    }
}
