//! The one way to print.

mod json;
mod progress;
mod question;
mod table;
mod text;
mod time;
mod transcript;

pub(crate) use json::{JsonList, JsonSections};
pub(crate) use progress::progress_bar;
pub(crate) use question::{answer_or, can_ask, is_confirmed};
pub(crate) use table::{Cell, Table};
pub(crate) use text::{harmless, plain_line, plural, run_state_colour, size, status_colour};
pub(crate) use time::{ago, local_date, local_times, moment, roughly, short_commit, span};
pub(crate) use transcript::{LineStyle, StyledLine, TranscriptView};

use std::cell::RefCell;
use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use clap::error::{ContextKind, ErrorKind};
use gt_api::{ErrorDocument, to_json};
use gt_records::{escape_html, pretty, sorted_object};
use gt_town::Environment;

use serde::Serialize;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::error::CliError;

/// Data goes to standard output, everything else to standard error.
pub(crate) struct Printer {
    json: bool,
    quiet: bool,
    envelope: bool,
    terminal: bool,
    colours: bool,
    out: RefCell<io::BufWriter<io::Stdout>>,
    wrote_json: RefCell<bool>,
}

impl Printer {
    pub(crate) fn new(json: bool, quiet: bool, environment: &Environment) -> Self {
        let envelope = environment.get("BD_JSON_ENVELOPE") == Some("1");
        let terminal = io::stdout().is_terminal();
        let choice = anstream::AutoStream::choice(&io::stdout());
        Self {
            json,
            quiet,
            envelope,
            terminal,
            colours: terminal && choice != anstream::ColorChoice::Never,
            out: RefCell::new(io::BufWriter::with_capacity(64 * 1024, io::stdout())),
            wrote_json: RefCell::new(false),
        }
    }

    /// Whether the caller wants only what they asked for.
    pub(crate) fn quiet(&self) -> bool {
        self.quiet
    }

    /// Whether the caller wants JSON.
    pub(crate) fn json(&self) -> bool {
        self.json
    }

    /// Data, to the last byte, and the end of a line.
    pub(crate) fn data(&self, text: impl AsRef<str>) -> Result<(), CliError> {
        self.raw(text.as_ref())?;
        self.raw("\n")
    }

    /// One line for people. Control characters in it are made harmless: it stays one line and does nothing to
    /// the terminal.
    pub(crate) fn line(&self, text: impl AsRef<str>) -> Result<(), CliError> {
        self.data(harmless(text.as_ref()))
    }

    /// Several lines for people, with the same promise.
    pub(crate) fn text(&self, text: &str) -> Result<(), CliError> {
        text.lines().try_for_each(|line| self.line(line))
    }

    /// A long text for a person at a terminal, in the pager that was named, else in `less`. Without a pager, and where the
    /// pager cannot be started, it is printed.
    pub(crate) fn page(&self, text: &str, pager: Option<&str>) -> Result<(), CliError> {
        let mut harmless_text = String::with_capacity(text.len());
        for line in text.lines() {
            harmless_text.push_str(&harmless(line));
            harmless_text.push('\n');
        }
        self.flush()?;
        if self.terminal && gt_town::pager::show(pager, harmless_text.as_bytes()) {
            return Ok(());
        }
        self.raw(&harmless_text)
    }

    /// A line for people whose beginning stands out.
    pub(crate) fn heading(&self, beginning: &str, rest: &str) -> Result<(), CliError> {
        let style = if self.colours { anstyle::Style::new().bold() } else { anstyle::Style::new() };
        let (beginning, rest) = (harmless(beginning), harmless(rest));
        self.data(format!("{style}{beginning}{style:#}{rest}"))
    }

    /// A line with a look, for people.
    pub(crate) fn styled(&self, line: &StyledLine) -> Result<(), CliError> {
        let style = if self.colours { style_of(line.style) } else { anstyle::Style::new() };
        self.data(format!("{style}{}{style:#}", harmless(&line.text)))
    }

    /// A table of data.
    pub(crate) fn table(&self, table: Table) -> Result<(), CliError> {
        let text = table.render(self.terminal, self.colours);
        if text.is_empty() { Ok(()) } else { self.data(text) }
    }

    /// Writes out what is buffered, for output that a reader waits for.
    pub(crate) fn flush(&self) -> Result<(), CliError> {
        Ok(self.out.borrow_mut().flush()?)
    }

    /// Flushes, then waits this long, or until the reader of the output has gone.
    pub(crate) fn wait(&self, time: Duration) -> Result<(), CliError> {
        self.flush()?;
        let stdout = io::stdout();
        // No event is polled for, so only an error or a closed reader ends the wait early.
        let mut watched = [PollFd::new(&stdout, PollFlags::empty())];
        let time = Timespec::try_from(time).map_err(|_| CliError::ClosedPipe)?;
        match poll(&mut watched, Some(&time)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => Ok(()),
            Ok(_) => Err(CliError::ClosedPipe),
            Err(error) => Err(io::Error::from(error).into()),
        }
    }

    /// One JSON object; its keys are sorted and the version of the schema is added.
    pub(crate) fn object(&self, document: &impl Serialize) -> Result<(), CliError> {
        self.record(&to_json(document))
    }

    /// The same for a bead record, given as compact JSON.
    pub(crate) fn record(&self, compact: &str) -> Result<(), CliError> {
        *self.wrote_json.borrow_mut() = true;
        if self.envelope {
            return self.data(pretty(&format!("{{\"data\":{compact},\"schema_version\":1}}")));
        }
        self.data(pretty(&sorted_object(compact)))
    }

    /// One line of JSON, for output that goes on.
    pub(crate) fn json_line(&self, document: &impl Serialize) -> Result<(), CliError> {
        self.record_line(&to_json(document))
    }

    /// The same for a line that is compact JSON already.
    pub(crate) fn record_line(&self, compact: &str) -> Result<(), CliError> {
        *self.wrote_json.borrow_mut() = true;
        self.data(escape_html(compact))
    }

    /// A JSON array whose elements come one after the other.
    pub(crate) fn list(&self) -> JsonList<'_> {
        *self.wrote_json.borrow_mut() = true;
        JsonList::new(self, self.envelope)
    }

    /// A JSON object whose long arrays come one element after the other.
    pub(crate) fn sections(&self) -> JsonSections<'_> {
        *self.wrote_json.borrow_mut() = true;
        JsonSections::new(self, self.envelope)
    }

    /// Whether a person sees the output as it is printed.
    pub(crate) fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// Begins again at the top of the terminal, for what is shown in place of what was shown before.
    pub(crate) fn begin_page(&self) -> Result<(), CliError> {
        // Home, and nothing left of the last page or of what was above it.
        self.raw("\x1b[H\x1b[2J\x1b[3J")
    }

    /// Removes the line that the cursor is in, which has no end yet.
    pub(crate) fn remove_line(&self) -> Result<(), CliError> {
        self.raw("\r\x1b[K")
    }

    /// Shows the end of a line that is being typed, as much as the terminal has room for.
    pub(crate) fn show_typed(&self, mark: &str, typed: &str) -> Result<(), CliError> {
        let width = terminal_size::terminal_size().map_or(80, |(width, _)| usize::from(width.0));
        let room = width.saturating_sub(mark.len() + 1);
        let hidden = typed.chars().count().saturating_sub(room);
        let shown: String = typed.chars().skip(hidden).collect();
        self.raw(&format!("{mark}{}", harmless(&shown)))?;
        self.flush()
    }

    /// The height of the terminal in lines, if it is one.
    pub(crate) fn height(&self) -> Option<usize> {
        let (_, height) = self.terminal.then(terminal_size::terminal_size).flatten()?;
        Some(height.0.into())
    }

    /// Bytes of another program, as they are. Not for terminals.
    pub(crate) fn bytes(&self, bytes: &[u8]) -> Result<(), CliError> {
        Ok(self.out.borrow_mut().write_all(bytes)?)
    }

    /// Text without a line's end.
    fn raw(&self, text: &str) -> Result<(), CliError> {
        self.bytes(text.as_bytes())
    }

    /// A remark that is not data.
    pub(crate) fn note(&self, text: impl AsRef<str>) {
        if !self.quiet {
            // Earlier output comes first; if it cannot be written, the end of the command says so.
            let _ = self.flush();
            tell(&harmless(&local_times(text.as_ref())));
        }
    }

    /// Says what went wrong with one part of a request that goes on, and gives the message back.
    #[expect(
        clippy::unused_self,
        reason = "callers print through the printer, also to standard error"
    )]
    pub(crate) fn part_failed(&self, error: &CliError) -> String {
        let message = error.chain();
        tell(&format!("Error: {}", local_times(&message)));
        message
    }

    /// A confirmation for people; those who want JSON or quiet get none.
    pub(crate) fn done(&self, text: impl AsRef<str>) -> Result<(), CliError> {
        if self.json || self.quiet { Ok(()) } else { self.line(text) }
    }

    /// Ends a command that failed.
    pub(crate) fn failure(&self, error: &CliError) {
        let message = error.chain();
        if self.json && !*self.wrote_json.borrow() {
            // If standard output is gone too, the exit code still tells.
            let _ = self.object(&ErrorDocument { error: message.clone() });
        }
        let _ = self.flush();
        if !matches!(error, CliError::AlreadyTold(_)) {
            tell(&format!("Error: {}", local_times(&message)));
            for line in error.detail_lines() {
                tell(&format!("  {line}"));
            }
        }
    }
}

fn style_of(style: LineStyle) -> anstyle::Style {
    let coloured = |colour: anstyle::AnsiColor| colour.on_default();
    match style {
        LineStyle::Plain => anstyle::Style::new(),
        LineStyle::Strong => anstyle::Style::new().bold(),
        LineStyle::Faint => anstyle::Style::new().dimmed(),
        LineStyle::Added => coloured(anstyle::AnsiColor::Green),
        LineStyle::Removed | LineStyle::Failed => coloured(anstyle::AnsiColor::Red),
    }
}

impl Drop for Printer {
    fn drop(&mut self) {
        // Commands flush by returning through here; a closed pipe is not worth a panic.
        let _ = self.out.borrow_mut().flush();
    }
}

/// Says what is wrong with the arguments, in the words scripts look for.
pub(crate) fn usage_error(error: &clap::Error, json: bool) {
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        if json {
            tell_programs("a command is missing; --help lists them");
        }
        tell(error.render().to_string().trim_end());
        return;
    }
    let (message, rest) = usage_message(error);
    if json {
        tell_programs(&message);
    }
    tell(format!("Error: {message}\n\n{rest}").trim_end());
}

/// The error in the arguments, in one line, and the usage.
pub(crate) fn usage_message(error: &clap::Error) -> (String, String) {
    let rendered = error.render().to_string();
    let text = rendered.strip_prefix("error: ").unwrap_or(&rendered);
    let text = match (error.kind(), error.get(ContextKind::InvalidArg)) {
        (ErrorKind::UnknownArgument, Some(argument)) if argument.to_string().starts_with('-') => {
            let rest = text.split_once('\n').map_or("", |(_, rest)| rest);
            format!("unknown flag: {argument}\n{rest}")
        }
        _ => text.to_owned(),
    };
    // The first paragraph is the message; the rest is usage.
    let (message, rest) = text.split_once("\n\n").unwrap_or((text.trim_end(), ""));
    (message.split_whitespace().collect::<Vec<_>>().join(" "), rest.to_owned())
}

/// Writes to standard error. If that is closed, the exit code still tells.
pub(crate) fn tell(text: &str) {
    let _ = writeln!(anstream::stderr(), "{text}");
}

fn tell_programs(message: &str) {
    let printer = Printer::new(true, false, &Environment::default());
    // If standard output is gone too, the exit code still tells.
    let _ = printer.object(&ErrorDocument { error: message.to_owned() });
}
