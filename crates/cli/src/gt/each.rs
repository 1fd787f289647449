//! Commands that do the same with each of their arguments.

use gt_operations::OperationError;

use crate::error::CliError;
use crate::output::Printer;

/// How what was done with one argument is told.
pub(super) struct Telling<T> {
    /// To people.
    pub(super) sentence: fn(&T) -> String,
    /// To programs.
    pub(super) json: fn(&T) -> String,
    /// What the arguments are not that failed: `cancelled`.
    pub(super) done: &'static str,
}

/// Does something with each argument, one after the other. One that fails does not keep the others.
pub(super) fn do_each<T>(
    printer: &Printer,
    inputs: &[String],
    act: impl Fn(&str) -> Result<T, OperationError>,
    telling: &Telling<T>,
) -> Result<(), CliError> {
    let mut done = Vec::new();
    let mut failed = 0;
    for input in inputs {
        match act(input) {
            Ok(one) => {
                printer.done((telling.sentence)(&one))?;
                done.push(one);
            }
            Err(error) if inputs.len() == 1 => return Err(error.into()),
            Err(error) => {
                printer.part_failed(&error.into());
                failed += 1;
            }
        }
    }
    if printer.json() && !done.is_empty() {
        let mut list = printer.list();
        for one in &done {
            list.push(&(telling.json)(one))?;
        }
        list.finish()?;
    }
    if failed == 0 {
        return Ok(());
    }
    let message = format!("{failed} of {} were not {}", inputs.len(), telling.done);
    Err(CliError::AlreadyTold(message))
}
