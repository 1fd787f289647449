//! The one way to print.

mod json;
mod progress;
mod question;
mod table;
mod text;
mod time;
mod transcript;

pub(crate) use json::{JsonList, JsonSections};
pub(crate) use progress::{progress_bar, progress_blocks};
pub(crate) use question::{answer_or, can_ask, is_confirmed};
pub(crate) use table::{Cell, Table};
pub(crate) use text::{
    harmless, plain_line, plural, run_state_colour, size, status_colour, visible,
};
pub(crate) use time::{
    ago, local_date, local_times, moment, parse_moment, roughly, short_commit, span,
};
pub(crate) use transcript::{LineStyle, StyledLine, TranscriptView};

use std::cell::RefCell;
use std::io::{self, Write};
use std::time::Duration;

use clap::error::{ContextKind, ErrorKind};
use gt_api::{ErrorDocument, to_json};
use gt_records::{escape_html, pretty, sorted_object};
use gt_town::Environment;

use serde::Serialize;

use unicode_width::UnicodeWidthStr as _;

use crate::error::CliError;
use crate::served;

/// Data goes to standard output, everything else to standard error.
pub(crate) struct Printer {
    json: bool,
    quiet: bool,
    envelope: bool,
    terminal: bool,
    colours: bool,
    out: RefCell<io::BufWriter<Box<dyn Write>>>,
    wrote_json: RefCell<bool>,
    capture: Option<CapturedOutput>,
}

/// The output of a command that another view shows.
struct CapturedOutput {
    /// How wide a line of the view is.
    width: u16,
    bytes: RefCell<Vec<u8>>,
}

impl Printer {
    /// A printer that keeps everything, remarks and errors too, for a view that is this wide.
    pub(crate) fn capturing(width: u16) -> Self {
        let capture = CapturedOutput { width, bytes: RefCell::default() };
        Self {
            json: false,
            quiet: false,
            envelope: false,
            terminal: false,
            colours: false,
            out: RefCell::new(io::BufWriter::new(served::stdout())),
            wrote_json: RefCell::new(false),
            capture: Some(capture),
        }
    }

    /// Whether the output is kept for a view. Then nothing may be written to the terminal beside it.
    pub(crate) fn is_capturing(&self) -> bool {
        self.capture.is_some()
    }

    /// Everything that was kept.
    pub(crate) fn captured(&self) -> Vec<u8> {
        let capture = self.capture.as_ref();
        capture.map(|capture| capture.bytes.take()).unwrap_or_default()
    }

    pub(crate) fn new(json: bool, quiet: bool, environment: &Environment) -> Self {
        let envelope = environment.get("BD_JSON_ENVELOPE") == Some("1");
        let terminal = served::stdout_is_terminal();
        let choice = anstream::AutoStream::choice(&io::stdout());
        Self {
            json,
            quiet,
            envelope,
            terminal,
            colours: terminal && choice != anstream::ColorChoice::Never,
            out: RefCell::new(io::BufWriter::with_capacity(64 * 1024, served::stdout())),
            wrote_json: RefCell::new(false),
            capture: None,
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

    /// The same for a sentence: on a terminal it is broken between words, and its further lines are set in.
    pub(crate) fn paragraph(&self, text: impl AsRef<str>) -> Result<(), CliError> {
        let text = text.as_ref();
        let begin = text.len() - text.trim_start().len();
        let room = match self.width() {
            Some(width) if text.width() > usize::from(width) => usize::from(width),
            _ => return self.line(text),
        };
        let further = " ".repeat(begin + 4);
        for (number, line) in
            text::wrap_words(&harmless(text), room.saturating_sub(further.len())).iter().enumerate()
        {
            let indent = if number == 0 { &text[..begin] } else { &further };
            self.line(format!("{indent}{line}"))?;
        }
        Ok(())
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

    /// A text of our own in a program that shows it, for a person at a terminal; elsewhere, and where the program cannot be
    /// started, it is printed.
    pub(crate) fn page_in(&self, reader: &str, text: &str) -> Result<(), CliError> {
        self.flush()?;
        if self.terminal && gt_town::pager::show(Some(reader), text.as_bytes()) {
            return Ok(());
        }
        self.data(text.trim_end())
    }

    /// A line for people whose beginning stands out.
    pub(crate) fn heading(&self, beginning: &str, rest: &str) -> Result<(), CliError> {
        let style = if self.colours { anstyle::Style::new().bold() } else { anstyle::Style::new() };
        let (beginning, rest) = (harmless(beginning), harmless(rest));
        let width = self.width().map_or(usize::MAX, usize::from);
        if beginning.width() + rest.width() <= width {
            return self.data(format!("{style}{beginning}{style:#}{rest}"));
        }
        let room = width.saturating_sub(beginning.width() + 2);
        let lines = text::wrap_words(&rest, room.max(20));
        let mut lines = lines.iter();
        let first = lines.next().map_or("", String::as_str);
        self.data(format!("{style}{beginning}{style:#}  {first}"))?;
        lines.try_for_each(|line| self.data(format!("    {line}")))
    }

    /// A line with a look, for people.
    pub(crate) fn styled(&self, line: &StyledLine) -> Result<(), CliError> {
        let style = if self.colours { style_of(line.style) } else { anstyle::Style::new() };
        self.data(format!("{style}{}{style:#}", harmless(&line.text)))
    }

    /// A table of data.
    pub(crate) fn table(&self, table: Table) -> Result<(), CliError> {
        let text = table.render(self.width(), self.colours);
        if text.is_empty() { Ok(()) } else { self.data(text) }
    }

    /// How wide a line may be; nothing if there is no limit.
    pub(crate) fn width(&self) -> Option<u16> {
        match &self.capture {
            Some(capture) => Some(capture.width),
            None => self
                .terminal
                .then(|| terminal_size::terminal_size().map_or(80, |(width, _)| width.0)),
        }
    }

    /// Writes out what is buffered, for output that a reader waits for.
    pub(crate) fn flush(&self) -> Result<(), CliError> {
        Ok(self.out.borrow_mut().flush()?)
    }

    /// Flushes, then waits this long, or until the reader of the output has gone.
    pub(crate) fn wait(&self, time: Duration) -> Result<(), CliError> {
        self.flush()?;
        if served::wait_for_reader_end(time)? { Err(CliError::ClosedPipe) } else { Ok(()) }
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

    /// Whether colours are wanted.
    pub(crate) fn colours(&self) -> bool {
        self.colours
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
        let width = usize::from(self.width().unwrap_or(80));
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
        if let Some(capture) = &self.capture {
            capture.bytes.borrow_mut().extend_from_slice(bytes);
            return Ok(());
        }
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
            self.tell(&harmless(&local_times(text.as_ref())));
        }
    }

    /// Says what went wrong with one part of a request that goes on, and gives the message back.
    pub(crate) fn part_failed(&self, error: &CliError) -> String {
        let message = error.chain();
        self.tell(&format!("Error: {}", local_times(&message)));
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
            self.tell(&format!("Error: {}", local_times(&message)));
            for line in error.detail_lines() {
                self.tell(&format!("  {line}"));
            }
        }
    }

    /// Writes a line that is not data.
    fn tell(&self, text: &str) {
        match &self.capture {
            Some(capture) => {
                let mut bytes = capture.bytes.borrow_mut();
                bytes.extend_from_slice(text.as_bytes());
                bytes.push(b'\n');
            }
            None => tell(text),
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
            print_error_as_json("a command is missing; --help lists them");
        }
        tell(error.render().to_string().trim_end());
        return;
    }
    let (message, rest) = usage_message(error);
    if json {
        print_error_as_json(&message);
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
    let mut line = text.to_owned();
    line.push('\n');
    let _ = served::stderr().write_all(line.as_bytes());
}

fn print_error_as_json(message: &str) {
    let printer = Printer::new(true, false, &Environment::default());
    // If standard output is gone too, the exit code still tells.
    let _ = printer.object(&ErrorDocument { error: message.to_owned() });
}
