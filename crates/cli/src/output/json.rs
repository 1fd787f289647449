//! JSON arrays that are printed while they are made.

use gt_records::pretty;

use super::Printer;
use crate::error::CliError;

/// An open JSON array. Elements are printed at once, so that no list is ever held whole.
pub(crate) struct JsonList<'p> {
    printer: &'p Printer,
    indent: &'static str,
    empty: bool,
    envelope: bool,
}

impl<'p> JsonList<'p> {
    pub(super) fn new(printer: &'p Printer, envelope: bool) -> Self {
        let indent = if envelope { "    " } else { "  " };
        Self {
            printer,
            indent,
            empty: true,
            envelope,
        }
    }

    /// Adds an element, given as compact JSON.
    pub(crate) fn push(&mut self, compact: &str) -> Result<(), CliError> {
        let opening = if self.envelope {
            "{\n  \"data\": ["
        } else {
            "["
        };
        let before = if self.empty { opening } else { "," };
        self.empty = false;
        let element = pretty(compact).replace('\n', &format!("\n{}", self.indent));
        let out = &mut *self.printer.out.borrow_mut();
        use std::io::Write as _;
        out.write_all(before.as_bytes())?;
        out.write_all(b"\n")?;
        out.write_all(self.indent.as_bytes())?;
        out.write_all(element.as_bytes())?;
        Ok(())
    }

    /// Closes the array.
    pub(crate) fn finish(self) -> Result<(), CliError> {
        let text = match (self.empty, self.envelope) {
            (true, false) => "[]",
            (false, false) => "\n]",
            (true, true) => "{\n  \"data\": [],\n  \"schema_version\": 1\n}",
            (false, true) => "\n  ],\n  \"schema_version\": 1\n}",
        };
        self.printer.line(text)
    }
}
