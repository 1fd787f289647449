//! Questions to the person at the terminal.

use super::Printer;
use crate::error::CliError;
use crate::served;

/// Whether a person can be asked.
pub(crate) fn can_ask(printer: &Printer) -> bool {
    printer.is_terminal() && !printer.json() && served::stdin_is_terminal()
}

/// Asks a person on a terminal; anything but yes is no. Without a terminal to answer from, the answer is yes.
pub(crate) fn is_confirmed(printer: &Printer, question: &str) -> Result<bool, CliError> {
    if !served::stdin_is_terminal() {
        return Ok(true);
    }
    let answer = answer_to(printer, &format!("{question} [y/N]"))?.unwrap_or_default();
    Ok(matches!(answer.to_ascii_lowercase().as_str(), "y" | "yes"))
}

/// The answer of a person, or what is taken if they only press return. The end of the input is no answer.
pub(crate) fn answer_or(
    printer: &Printer,
    question: &str,
    default: &str,
) -> Result<String, CliError> {
    let answer = answer_to(printer, &format!("{question} [{default}]"))?;
    let answer = answer.ok_or_else(|| {
        CliError::request(
            "the input ended before all questions were answered; say it again, or with --yes",
        )
    })?;
    Ok(if answer.is_empty() { default.to_owned() } else { answer })
}

/// The answer of a person; nothing at the end of the input.
fn answer_to(printer: &Printer, question: &str) -> Result<Option<String>, CliError> {
    printer.line(question)?;
    printer.flush()?;
    let mut answer = String::new();
    let read = std::io::stdin().read_line(&mut answer);
    let bytes = read.map_err(|error| CliError::request(format!("cannot read: {error}")))?;
    Ok((bytes > 0).then(|| answer.trim().to_owned()))
}
