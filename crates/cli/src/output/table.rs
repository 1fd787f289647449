//! The one way to print a table.

use comfy_table::presets::NOTHING;
use comfy_table::{Attribute, Cell as RawCell, Color, ContentArrangement, Row};

use super::harmless;

/// One value in a table.
#[derive(Debug, Clone)]
pub(crate) struct Cell {
    text: String,
    colour: Option<Color>,
    bold: bool,
}

impl Cell {
    /// Plain text.
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), colour: None, bold: false }
    }

    /// Coloured text; the colour only repeats what the text says.
    pub(crate) fn coloured(text: impl Into<String>, colour: Option<Color>) -> Self {
        Self { text: text.into(), colour, bold: false }
    }

    /// Text that stands out.
    pub(crate) fn bold(text: impl Into<String>) -> Self {
        Self { text: text.into(), colour: None, bold: true }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::new(text)
    }
}

/// Rows of cells. On a terminal every row takes one line of its width, unless the table is [`Table::wrapped`];
/// elsewhere nothing is cut.
#[derive(Debug, Default)]
pub(crate) struct Table {
    rows: Vec<Vec<Cell>>,
    wraps: bool,
}

impl Table {
    /// An empty table.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// An empty table whose rows take as many lines as they need: for sentences that say what to do.
    pub(crate) fn wrapped() -> Self {
        Self { wraps: true, ..Self::default() }
    }

    /// A table with a line of names above.
    pub(crate) fn with_header(names: &[&str]) -> Self {
        let header = names.iter().map(|name| Cell::bold(*name)).collect();
        Self { rows: vec![header], ..Self::default() }
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(cells);
    }

    pub(super) fn render(self, terminal: bool, colours: bool) -> String {
        let mut table = comfy_table::Table::new();
        table.load_style(NOTHING);
        if terminal {
            table.set_content_arrangement(ContentArrangement::Dynamic);
            let width = terminal_size::terminal_size().map_or(80, |(width, _)| width.0);
            table.set_width(width);
        }
        for cells in self.rows {
            let mut row = Row::new();
            for Cell { text, colour, bold } in cells {
                // A tab is as wide as the terminal likes, which no table can know.
                let mut cell = RawCell::new(harmless(&text).replace('\t', " "));
                if let (Some(colour), true) = (colour, colours) {
                    cell = cell.fg(colour);
                }
                if bold && colours {
                    cell = cell.add_attribute(Attribute::Bold);
                }
                row.add_cell(cell);
            }
            if terminal && !self.wraps {
                row.max_height(1);
            }
            table.add_row(row);
        }
        if colours {
            table.enforce_styling();
        }
        for column in table.column_iter_mut() {
            column.set_padding((0, 2));
        }
        let text = table.trim_fmt();
        text.trim_end_matches('\n').to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrapped_table_keeps_every_word_on_a_terminal() {
        let words: Vec<String> = (0..60).map(|number| format!("word{number}")).collect();
        let render = |mut table: Table| {
            table.row(vec![Cell::new("✗"), Cell::new("agent"), Cell::new(words.join(" "))]);
            table.render(true, false)
        };
        let (cut, whole) = (render(Table::new()), render(Table::wrapped()));
        assert!(cut.lines().count() == 1 && !cut.contains("word59"), "{cut}");
        assert!(words.iter().all(|word| whole.contains(word)), "{whole}");
    }
}
