//! `gt run log`.

use std::time::Duration;

use clap::Args;
use gt_api::{RunLineDocument, RunLogDocument, RunStateDocument};
use gt_core::schedule::{Run, RunId};
use gt_execution::runs::RunOutput;
use gt_town::Town;

use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::Printer;

/// How often the file is read for new output.
const OUTPUT_POLL_INTERVAL: Duration = Duration::from_millis(100);
/// After so many reads the store is asked whether the run has ended, because that costs more.
const POLLS_PER_STORE_READ: u32 = 3;
const BUFFER_BYTES: usize = 64 * 1024;

/// Print what the worker of a run printed
///
/// To a file or a pipe every byte comes as it was; on a terminal nothing that could change the terminal does.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt run log gt-abc
  gt run log gt-abc -f
  gt run log gt-abc#2 --tail 50
  gt run log gt-abc > output.txt")]
pub(super) struct LogArgs {
    /// A run such as gt-abc#2, or a bead for its live or last one
    run: String,
    #[command(flatten)]
    how: LogOptions,
}

/// How much of an output is printed.
#[derive(Debug, Args)]
pub(in crate::gt) struct LogOptions {
    /// Go on until the run ends
    #[arg(short, long)]
    follow: bool,
    /// Begin with the last so many lines
    #[arg(short = 'n', long, value_name = "LINES")]
    tail: Option<usize>,
}

pub(super) fn run(context: &CommandContext<'_>, args: &LogArgs) -> Result<(), CliError> {
    let town = context.town()?;
    let run = gt_beads::run_records::resolve(&town, &args.run)?;
    print_log(context, &town, &run, &args.how)
}

/// Prints what the worker of a run printed.
pub(in crate::gt) fn print_log(
    context: &CommandContext<'_>,
    town: &Town,
    run: &Run,
    args: &LogOptions,
) -> Result<(), CliError> {
    let printer = context.printer;
    let mut output = RunOutput::of(town, run)?;
    if let Some(lines) = args.tail {
        output.skip_to_last(lines)?;
    }
    match (printer.json(), args.follow) {
        (true, false) => whole_as_json(printer, run, &mut output),
        (true, true) => {
            let mut lines = LineSplitter::default();
            follow(printer, town, &run.id, &mut output, |bytes| {
                lines.add(bytes).into_iter().try_for_each(|line| print_line(printer, &line))
            })?;
            lines.rest().into_iter().try_for_each(|line| print_line(printer, &line))?;
            let ended = gt_beads::run_records::resolve(town, &run.id.to_string())?;
            printer.json_line(&RunStateDocument { state: ended.state.as_str().to_owned() })
        }
        (false, true) => {
            let mut text = LineSplitter::default();
            follow(printer, town, &run.id, &mut output, |bytes| print(printer, &mut text, bytes))?;
            finish(printer, text)
        }
        (false, false) => {
            let mut text = LineSplitter::default();
            let mut any = false;
            copy(&mut output, |bytes| {
                any = true;
                print(printer, &mut text, bytes)
            })?;
            if !any {
                printer.note(format!("{} has printed nothing", run.id));
            }
            finish(printer, text)
        }
    }
}

/// Hands over the output so far.
fn copy(
    output: &mut RunOutput,
    mut each: impl FnMut(&[u8]) -> Result<(), CliError>,
) -> Result<(), CliError> {
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        match output.read(&mut buffer)? {
            0 => return Ok(()),
            count => each(&buffer[..count])?,
        }
    }
}

/// Hands over the output so far and new output, until the run has ended.
fn follow(
    printer: &Printer,
    town: &Town,
    id: &RunId,
    output: &mut RunOutput,
    mut each: impl FnMut(&[u8]) -> Result<(), CliError>,
) -> Result<(), CliError> {
    loop {
        // The store is asked before the file is read, so that no output before the end is missed.
        let has_ended = match gt_beads::run_records::resolve(town, &id.to_string()) {
            Ok(run) => !run.state.is_live(),
            Err(error) if error.may_pass() => false,
            Err(error) => return Err(error.into()),
        };
        for _ in 0..POLLS_PER_STORE_READ {
            copy(output, &mut each)?;
            if has_ended {
                return Ok(());
            }
            printer.wait(OUTPUT_POLL_INTERVAL)?;
        }
    }
}

/// Prints bytes as they are, or as text that does nothing to the terminal.
fn print(printer: &Printer, lines: &mut LineSplitter, bytes: &[u8]) -> Result<(), CliError> {
    if !printer.is_terminal() {
        return printer.bytes(bytes);
    }
    lines.add(bytes).iter().try_for_each(|line| printer.line(plain(line)))
}

fn finish(printer: &Printer, lines: LineSplitter) -> Result<(), CliError> {
    lines.rest().iter().try_for_each(|line| printer.line(plain(line)))
}

/// A line without what colours it, and with what overwrote itself as it was in the end.
pub(in crate::gt) fn plain(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    let text = anstream::adapter::strip_str(&text).to_string();
    let shown = text.trim_end_matches('\r');
    shown.rsplit('\r').next().unwrap_or_default().to_owned()
}

fn print_line(printer: &Printer, line: &[u8]) -> Result<(), CliError> {
    printer.json_line(&RunLineDocument { line: String::from_utf8_lossy(line).into_owned() })
}

fn whole_as_json(printer: &Printer, run: &Run, output: &mut RunOutput) -> Result<(), CliError> {
    let mut bytes = Vec::new();
    copy(output, |more| {
        bytes.extend_from_slice(more);
        Ok(())
    })?;
    printer.object(&RunLogDocument {
        id: run.id.to_string(),
        state: run.state.as_str().to_owned(),
        path: output.path().display().to_string(),
        bytes: bytes.len() as u64,
        is_text: str::from_utf8(&bytes).is_ok(),
        output: String::from_utf8_lossy(&bytes).into_owned(),
    })
}

/// Makes lines of bytes that come in pieces.
#[derive(Debug, Default)]
struct LineSplitter {
    begun: Vec<u8>,
}

impl LineSplitter {
    /// The lines that these bytes complete, without their ends.
    fn add(&mut self, bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut parts = bytes.split(|byte| *byte == b'\n');
        let last = parts.next_back().unwrap_or_default();
        let mut lines = Vec::new();
        for part in parts {
            let mut line = std::mem::take(&mut self.begun);
            line.extend_from_slice(part);
            lines.push(line);
        }
        self.begun.extend_from_slice(last);
        lines
    }

    /// The last line, if it has no end.
    fn rest(self) -> Option<Vec<u8>> {
        Some(self.begun).filter(|rest| !rest.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn escape_sequences_do_not_reach_a_terminal() {
        assert_eq!(plain(b"\x1b[31mred\x1b[0m and \x1b]0;title\x07more\r"), "red and more");
        assert_eq!(plain(b"10%\r50%\r100%"), "100%");
        assert_eq!(plain(b"\xff\xfe"), "\u{fffd}\u{fffd}");
    }

    proptest! {
        #[test]
        fn lines_are_the_same_however_they_come(text in "[ab\n]{0,30}", cut in 0_usize..31) {
            let (first, second) = text.as_bytes().split_at(cut.min(text.len()));
            let mut lines = LineSplitter::default();
            let mut all = lines.add(first);
            all.extend(lines.add(second));
            all.extend(lines.rest());
            let expected: Vec<&[u8]> = text.lines().map(str::as_bytes).collect();
            prop_assert_eq!(all, expected);
        }
    }
}
