//! Commands that do the same with each of their arguments.

use gt_town::OperationError;
use serde::Serialize;

use crate::error::CliError;
use crate::output::Printer;

/// How the result for one argument is printed.
pub(super) struct ResultPrinting<T, D> {
    /// To people.
    pub(super) sentence: fn(&T) -> String,
    /// To programs.
    pub(super) document: fn(&T) -> D,
    /// The participle for the summary of failures: `cancelled`.
    pub(super) done: &'static str,
}

/// Calls `act` for each argument, one after the other. A failure does not stop the others. If `find` does not find what one of
/// several arguments names, nothing is done for any.
pub(super) fn do_each<T, D: Serialize>(
    printer: &Printer,
    inputs: &[String],
    find: impl Fn(&str) -> Result<(), OperationError>,
    act: impl Fn(&str) -> Result<T, OperationError>,
    telling: &ResultPrinting<T, D>,
) -> Result<(), CliError> {
    if inputs.len() > 1 {
        let unknown: Vec<String> = inputs
            .iter()
            .filter_map(|input| find(input).err())
            .map(|error| printer.part_failed(&error.into()))
            .collect();
        if !unknown.is_empty() {
            let message = format!("nothing was {}: {}", telling.done, unknown.join("; "));
            return Err(CliError::AlreadyTold(message));
        }
    }
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
            list.push(&(telling.document)(one))?;
        }
        list.finish()?;
    }
    if failed == 0 {
        return Ok(());
    }
    let message = format!("{failed} of {} were not {}", inputs.len(), telling.done);
    Err(CliError::AlreadyTold(message))
}
