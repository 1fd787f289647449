//! The program in which a person reads a long text.

use std::io::{self, Write as _};
use std::process::Stdio;

use crate::process::{ProcessError, command, is_installed};

/// The pager of a person who names none: it ends by itself if the text fits on the terminal.
const USUAL: &str = "less -FRX";

/// The pager that was named, else the usual one if it is installed.
pub fn pager_or_usual(named: Option<&str>) -> Option<&str> {
    named.or_else(|| is_installed("less").then_some(USUAL))
}

/// Shows a text in a pager and waits until the person is done. `pager` may have arguments, as `$PAGER` often does.
pub fn show_in_pager(pager: &str, text: &[u8]) -> Result<(), ProcessError> {
    let mut words = pager.split_whitespace();
    let program = words.next().unwrap_or("less").to_owned();
    let failed = |source| ProcessError::Start { program: program.clone(), source };
    let mut pager = command(&program);
    let mut pager = pager.args(words).stdin(Stdio::piped()).spawn().map_err(failed)?;
    if let Some(mut input) = pager.stdin.take() {
        match input.write_all(text) {
            // The person has seen enough.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
            written => written.map_err(failed)?,
        }
    }
    let status = pager.wait().map_err(failed)?;
    if status.success() {
        return Ok(());
    }
    Err(ProcessError::Failed { program, message: status.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pager_gets_the_text_and_may_stop_reading() {
        let place = tempfile::tempdir().unwrap();
        let seen = place.path().join("seen");
        let long = "a line\n".repeat(100_000);
        show_in_pager(&format!("dd status=none of={}", seen.display()), long.as_bytes()).unwrap();
        assert_eq!(std::fs::read(&seen).unwrap().len(), long.len());
        show_in_pager("true", long.as_bytes()).unwrap();
        assert!(show_in_pager("false", b"").is_err());
        assert!(show_in_pager("/nowhere/pager", b"").is_err());
        assert_eq!(pager_or_usual(Some("more")), Some("more"));
    }
}
