//! JSON that is printed while it is made, so that no list is ever held whole.

use gt_api::to_json;
use gt_core::Json;
use gt_records::pretty;
use serde::Serialize;

use super::Printer;
use crate::error::CliError;

/// Prints the elements of an array that is open at a depth of indentation.
struct Elements {
    indent: &'static str,
    empty: bool,
}

impl Elements {
    fn push(&mut self, printer: &Printer, compact: &str) -> Result<(), CliError> {
        let line = format!("\n{}", self.indent);
        if !self.empty {
            printer.raw(",")?;
        }
        self.empty = false;
        printer.raw(&line)?;
        printer.raw(&pretty(compact).replace('\n', &line))
    }

    fn close(&self, printer: &Printer) -> Result<(), CliError> {
        if self.empty {
            return printer.raw("]");
        }
        printer.raw(&format!("\n{}]", &self.indent[2..]))
    }
}

/// An open JSON array.
pub(crate) struct JsonList<'p> {
    printer: &'p Printer,
    elements: Elements,
    begun: bool,
    envelope: bool,
}

impl<'p> JsonList<'p> {
    pub(super) fn new(printer: &'p Printer, envelope: bool) -> Self {
        let indent = if envelope { "    " } else { "  " };
        Self { printer, elements: Elements { indent, empty: true }, begun: false, envelope }
    }

    fn begin(&mut self) -> Result<(), CliError> {
        if std::mem::replace(&mut self.begun, true) {
            return Ok(());
        }
        self.printer.raw(if self.envelope { "{\n  \"data\": [" } else { "[" })
    }

    /// Adds an element.
    pub(crate) fn push(&mut self, document: &impl Serialize) -> Result<(), CliError> {
        self.push_record(&to_json(document))
    }

    /// Adds a bead record, given as compact JSON.
    pub(crate) fn push_record(&mut self, compact: &str) -> Result<(), CliError> {
        self.begin()?;
        self.elements.push(self.printer, compact)
    }

    /// Closes the array.
    pub(crate) fn finish(mut self) -> Result<(), CliError> {
        self.begin()?;
        self.elements.close(self.printer)?;
        self.printer.data(if self.envelope { ",\n  \"schema_version\": 1\n}" } else { "" })
    }
}

/// An open JSON object with long arrays in it.
pub(crate) struct JsonSections<'p> {
    printer: &'p Printer,
    open: Option<Elements>,
    empty: bool,
    envelope: bool,
}

impl<'p> JsonSections<'p> {
    pub(super) fn new(printer: &'p Printer, envelope: bool) -> Self {
        Self { printer, open: None, empty: true, envelope }
    }

    fn key(&mut self, name: &str) -> Result<(), CliError> {
        if let Some(elements) = self.open.take() {
            elements.close(self.printer)?;
        }
        let before = match (self.empty, self.envelope) {
            (true, true) => "{\n  \"data\": {\n    ",
            (true, false) => "{\n  ",
            (false, true) => ",\n    ",
            (false, false) => ",\n  ",
        };
        self.empty = false;
        self.printer.raw(&format!("{before}{}: ", Json::string(name)))
    }

    /// Opens an array under this name; the next elements go there.
    pub(crate) fn array(&mut self, name: &str) -> Result<(), CliError> {
        self.key(name)?;
        self.open =
            Some(Elements { indent: if self.envelope { "      " } else { "    " }, empty: true });
        self.printer.raw("[")
    }

    /// Adds an element to the open array.
    pub(crate) fn push(&mut self, document: &impl Serialize) -> Result<(), CliError> {
        self.push_record(&to_json(document))
    }

    /// Adds a bead record, given as compact JSON, to the open array.
    pub(crate) fn push_record(&mut self, compact: &str) -> Result<(), CliError> {
        match &mut self.open {
            Some(elements) => elements.push(self.printer, compact),
            None => Ok(()),
        }
    }

    /// Adds a field.
    pub(crate) fn field(&mut self, name: &str, value: &impl Serialize) -> Result<(), CliError> {
        self.key(name)?;
        let indent = if self.envelope { "\n    " } else { "\n  " };
        self.printer.raw(&pretty(&to_json(value)).replace('\n', indent))
    }

    /// Closes the object.
    pub(crate) fn finish(mut self) -> Result<(), CliError> {
        if self.envelope {
            if let Some(elements) = self.open.take() {
                elements.close(self.printer)?;
            }
            return self.printer.data("\n  },\n  \"schema_version\": 1\n}");
        }
        self.field("schema_version", &1)?;
        self.printer.data("\n}")
    }
}
