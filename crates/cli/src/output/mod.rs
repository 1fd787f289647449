//! The one way to print.

mod json;
mod table;
mod text;

pub(crate) use json::{JsonList, JsonSections};
pub(crate) use table::{Cell, Table};
pub(crate) use text::{ago, clock_time, plural, status_colour};

use std::cell::RefCell;
use std::io::{self, IsTerminal, Write};

use gt_operations::Environment;
use gt_records::{escape_html, pretty, sorted_object};

use crate::error::CliError;

/// Data goes to standard output, everything else to standard error.
pub(crate) struct Printer {
    json: bool,
    quiet: bool,
    envelope: bool,
    terminal: bool,
    out: RefCell<io::BufWriter<anstream::AutoStream<io::Stdout>>>,
    wrote_json: RefCell<bool>,
}

impl Printer {
    pub(crate) fn new(json: bool, quiet: bool, environment: &Environment) -> Self {
        let envelope = environment.get("BD_JSON_ENVELOPE") == Some("1");
        let out = io::BufWriter::with_capacity(64 * 1024, anstream::AutoStream::auto(io::stdout()));
        Self {
            json,
            quiet,
            envelope,
            terminal: io::stdout().is_terminal(),
            out: RefCell::new(out),
            wrote_json: RefCell::new(false),
        }
    }

    /// Whether the caller wants JSON.
    pub(crate) fn json(&self) -> bool {
        self.json
    }

    /// A line of data.
    pub(crate) fn line(&self, text: impl AsRef<str>) -> Result<(), CliError> {
        let mut out = self.out.borrow_mut();
        out.write_all(text.as_ref().as_bytes())?;
        out.write_all(b"\n")?;
        Ok(())
    }

    /// A table of data.
    pub(crate) fn table(&self, table: Table) -> Result<(), CliError> {
        let text = table.render(self.terminal);
        if text.is_empty() {
            Ok(())
        } else {
            self.line(text)
        }
    }

    /// Makes sure that what was printed has left, for output that somebody waits for.
    pub(crate) fn flush(&self) -> Result<(), CliError> {
        Ok(self.out.borrow_mut().flush()?)
    }

    /// One JSON object; its keys are sorted and the version of the schema is added.
    pub(crate) fn object(&self, compact: &str) -> Result<(), CliError> {
        *self.wrote_json.borrow_mut() = true;
        if self.envelope {
            return self.line(pretty(&format!(
                "{{\"data\":{compact},\"schema_version\":1}}"
            )));
        }
        self.line(pretty(&sorted_object(compact)))
    }

    /// One line of JSON, for output that goes on.
    pub(crate) fn json_line(&self, compact: &str) -> Result<(), CliError> {
        *self.wrote_json.borrow_mut() = true;
        self.line(escape_html(compact))
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

    /// Text without a line's end.
    fn raw(&self, text: &str) -> Result<(), CliError> {
        Ok(self.out.borrow_mut().write_all(text.as_bytes())?)
    }

    /// A remark that is not data.
    pub(crate) fn note(&self, text: impl AsRef<str>) {
        if !self.quiet {
            anstream::eprintln!("{}", text.as_ref());
        }
    }

    /// What went wrong with one part of a request that goes on.
    #[expect(
        clippy::unused_self,
        reason = "printing is asked of the printer, whatever it needs"
    )]
    pub(crate) fn part_failed(&self, text: impl AsRef<str>) {
        anstream::eprintln!("Error: {}", text.as_ref());
    }

    /// A confirmation for people; those who want JSON or quiet get none.
    pub(crate) fn done(&self, text: impl AsRef<str>) -> Result<(), CliError> {
        if self.json || self.quiet {
            Ok(())
        } else {
            self.line(text)
        }
    }

    /// Ends a command that failed.
    pub(crate) fn failure(&self, error: &CliError) {
        let message = error.chain();
        if self.json && !*self.wrote_json.borrow() {
            let text = gt_core::Json::string(&message);
            // If standard output is gone too, the exit code still tells.
            let _ = self.object(&format!("{{\"error\":{text}}}"));
        }
        let _ = self.flush();
        if !matches!(error, CliError::AlreadyTold(_)) {
            anstream::eprintln!("Error: {message}");
        }
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
    use clap::error::{ContextKind, ErrorKind};
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
    let message = message.split_whitespace().collect::<Vec<_>>().join(" ");
    if json {
        let printer = Printer::new(true, false, &Environment::default());
        // If standard output is gone too, the exit code still tells.
        let _ = printer.object(&format!(
            "{{\"error\":{}}}",
            gt_core::Json::string(&message)
        ));
    }
    anstream::eprint!("Error: {message}\n\n{rest}");
}
