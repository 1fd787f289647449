//! The one way to print a table.

use comfy_table::presets::NOTHING;
use comfy_table::{Attribute, Cell as RawCell, Color, ColumnConstraint, ContentArrangement, Row};
use unicode_width::UnicodeWidthStr as _;

use super::harmless;
use super::text::{visible, wrap_words};

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

/// Rows of cells. On a terminal every row takes the width of it and no more: columns that matter little are left out, and a
/// text that has no room goes below its row. A [`Table::wrapped`] one takes as many lines as it needs. Elsewhere nothing is
/// left out, moved or cut.
#[derive(Debug, Default)]
pub(crate) struct Table {
    rows: Vec<Vec<Cell>>,
    has_header: bool,
    wraps: bool,
    /// The places of columns that are left out where there is no room, the first ones first.
    droppable: Vec<usize>,
    /// The place of a column of sentences, which goes below its row.
    sentences: Option<usize>,
    /// The last column is no text that can be cut.
    keeps_last: bool,
}

/// The least room for the text of a row; with less it goes below.
const TEXT_COLUMNS_MIN: usize = 24;
/// How far the text below a row is set in.
const BELOW_INDENT: &str = "      ";
/// How many lines a sentence takes below its row.
const BELOW_LINES_MAX: usize = 4;
const GAP: usize = 2;

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
        Self { rows: vec![header], has_header: true, ..Self::default() }
    }

    /// Names columns that are left out of a narrow terminal, those that matter least first.
    pub(crate) fn droppable(mut self, names: &[&str]) -> Self {
        let header = self.rows.first().map(Vec::as_slice).unwrap_or_default();
        let place = |name: &&str| header.iter().position(|cell| cell.text == **name);
        self.droppable = names.iter().filter_map(place).collect();
        self
    }

    /// The same for a table without names: the places of the columns, from 0.
    pub(crate) fn droppable_at(mut self, columns: &[usize]) -> Self {
        self.droppable = columns.to_vec();
        self
    }

    /// Says which column, from 0, has sentences: they go below their row before anything is cut or left out.
    pub(crate) fn sentences_in(mut self, column: usize) -> Self {
        self.sentences = Some(column);
        self
    }

    /// Says that the last column has names, which are useless without their ends.
    pub(crate) fn keeping_last(mut self) -> Self {
        self.keeps_last = true;
        self
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(cells);
    }

    /// The text of the table in lines of at most this many columns.
    pub(super) fn render(self, width: Option<u16>, colours: bool) -> String {
        let layout = match width {
            Some(width) if !self.wraps => TableLayout::of(&self, width.into()),
            _ => TableLayout::all(self.columns()),
        };
        let mut table = comfy_table::Table::new();
        table.load_style(NOTHING);
        if let Some(width) = width {
            table.set_content_arrangement(ContentArrangement::Dynamic);
            table.set_width(width);
        }
        let (wraps, has_header) = (self.wraps, self.has_header);
        let mut below: Vec<Vec<String>> = Vec::new();
        for (number, cells) in self.rows.into_iter().enumerate() {
            let is_header = has_header && number == 0;
            let texts =
                layout.below.iter().filter_map(|(at, lines)| Some((cells.get(*at)?, *lines)));
            below.push(match width {
                Some(width) if !is_header => texts
                    .flat_map(|(cell, lines)| below_lines(&cell.text, width.into(), lines))
                    .collect(),
                _ => Vec::new(),
            });
            let mut row = Row::new();
            for at in &layout.beside {
                let Some(Cell { text, colour, bold }) = cells.get(*at) else { continue };
                // A tab is as wide as the terminal likes, which no table can know.
                let text = if width.is_some() { visible(text) } else { harmless(text) };
                let mut cell = RawCell::new(text.replace('\t', " "));
                if let (Some(colour), true) = (*colour, colours) {
                    cell = cell.fg(colour);
                }
                if *bold && colours {
                    cell = cell.add_attribute(Attribute::Bold);
                }
                row.add_cell(cell);
            }
            if width.is_some() && !wraps {
                row.max_height(1);
            }
            table.add_row(row);
        }
        if colours {
            table.enforce_styling();
        }
        let columns = layout.beside.len();
        for (at, column) in table.column_iter_mut().enumerate() {
            column.set_padding((0, 2));
            if layout.is_exact && at + 1 < columns {
                column.set_constraint(ColumnConstraint::ContentWidth);
            }
        }
        let text = table.trim_fmt();
        let text = text.trim_end_matches('\n');
        if layout.below.is_empty() {
            return text.to_owned();
        }
        // Without wrapping each row is one line.
        let mut lines: Vec<String> = Vec::new();
        for (line, below) in text.lines().zip(below) {
            lines.push(line.to_owned());
            lines.extend(below);
        }
        lines.join("\n")
    }

    fn columns(&self) -> usize {
        self.rows.iter().map(Vec::len).max().unwrap_or(0)
    }

    /// The width of the widest text of a column; 0 if no row has one.
    fn natural_width(&self, column: usize) -> usize {
        let width = |row: &Vec<Cell>| row.get(column).map_or(0, |cell| cell.text.width());
        let rows = self.rows.iter().skip(usize::from(self.has_header)).map(width);
        match rows.max().unwrap_or(0) {
            0 => 0,
            widest if self.has_header => widest.max(self.rows.first().map_or(0, width)),
            widest => widest,
        }
    }
}

/// Where the columns of a table go on a terminal.
#[derive(Debug, PartialEq, Eq)]
struct TableLayout {
    /// The columns beside each other.
    beside: Vec<usize>,
    /// The columns below each row, and how many lines each may take.
    below: Vec<(usize, usize)>,
    /// Only the last column beside the others is cut.
    is_exact: bool,
}

impl TableLayout {
    fn all(columns: usize) -> Self {
        Self { beside: (0..columns).collect(), below: Vec::new(), is_exact: false }
    }

    fn of(table: &Table, width: usize) -> Self {
        let natural: Vec<usize> =
            (0..table.columns()).map(|column| table.natural_width(column)).collect();
        let mut layout = Self::all(0);
        layout.beside = (0..natural.len()).filter(|column| natural[*column] > 0).collect();
        // A column without anything in it tells nothing.
        let taken = |columns: &[usize], of_last: usize| -> usize {
            let Some((last, others)) = columns.split_last() else { return 0 };
            let others: usize = others.iter().map(|column| natural[*column] + GAP).sum();
            others + natural[*last].min(of_last)
        };
        if taken(&layout.beside, usize::MAX) + GAP <= width {
            return layout;
        }
        layout.is_exact = true;
        let is_left = |layout: &Self, column: usize| layout.beside.contains(&column);
        if let Some(column) = table.sentences.filter(|column| is_left(&layout, *column)) {
            layout.beside.retain(|left| *left != column);
            layout.below.push((column, BELOW_LINES_MAX));
        }
        let mut droppable = table.droppable.iter();
        let mut is_stacked = false;
        let last_min = if table.keeps_last { usize::MAX } else { TEXT_COLUMNS_MIN };
        while taken(&layout.beside, last_min) + GAP > width {
            match droppable.next() {
                Some(column) => layout.beside.retain(|left| left != column),
                None if !is_stacked && layout.beside.len() > 1 => {
                    is_stacked = true;
                    layout.below.splice(..0, layout.beside.pop().map(|column| (column, 1)));
                }
                None => {
                    layout.is_exact = false;
                    break;
                }
            }
        }
        layout
    }
}

/// A text below its row.
fn below_lines(text: &str, width: usize, lines_max: usize) -> Vec<String> {
    let text = visible(text).replace('\t', " ");
    let room = width.saturating_sub(BELOW_INDENT.len()).max(1);
    let mut lines = wrap_words(&text, room);
    if lines.len() > lines_max {
        lines.truncate(lines_max);
        if let Some(last) = lines.last_mut() {
            while last.width() + 1 > room && last.pop().is_some() {}
            last.push('…');
        }
    }
    lines.into_iter().map(|line| format!("{BELOW_INDENT}{line}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrapped_table_keeps_every_word_on_a_terminal() {
        let words: Vec<String> = (0..60).map(|number| format!("word{number}")).collect();
        let render = |mut table: Table| {
            table.row(vec![Cell::new("✗"), Cell::new("agent"), Cell::new(words.join(" "))]);
            table.render(Some(80), false)
        };
        let (cut, whole) = (render(Table::new()), render(Table::wrapped()));
        assert!(cut.lines().count() == 1 && !cut.contains("word59"), "{cut}");
        assert!(words.iter().all(|word| whole.contains(word)), "{whole}");
    }

    fn runs(agent: &str) -> Table {
        let mut table =
            Table::with_header(&["RUN", "STATE", "FOR", "STEPS", "AGENT", "BEGUN", "TITLE"])
                .droppable(&["BEGUN", "STEPS"]);
        for number in 0..2 {
            table.row(
                [
                    format!("gastown-4fk2{number}#12"),
                    "running".to_owned(),
                    "1h 4m".to_owned(),
                    String::new(),
                    agent.to_owned(),
                    "1h ago".to_owned(),
                    format!("{number} Let people log in with the account of their company"),
                ]
                .map(Cell::new)
                .into(),
            );
        }
        table
    }

    #[test]
    fn a_narrow_terminal_drops_and_stacks_columns_and_cuts_no_name() {
        // Everything has room.
        let wide = runs("nux").render(Some(160), false);
        assert!(wide.contains("BEGUN") && wide.contains("of their company"), "{wide}");
        assert!(!wide.contains("STEPS"), "a column without anything in it is left out: {wide}");
        // The titles are cut.
        let narrow = runs("nux").render(Some(80), false);
        assert!(narrow.contains("BEGUN") && narrow.contains("0 Let people log in wit"), "{narrow}");
        assert_eq!(narrow.lines().count(), 3);
        // A column is left out, then the titles go below.
        let agent = "gastown/polecats/furiosa";
        let stacked = runs(agent).render(Some(80), false);
        assert!(!stacked.contains("BEGUN") && stacked.contains(agent), "{stacked}");
        assert_eq!(stacked.lines().count(), 5);
        assert!(stacked.contains("\n      1 Let people log in with the account"), "{stacked}");
        assert!(stacked.lines().all(|line| line.width() <= 80), "{stacked}");
        // A file gets everything.
        let whole = runs(agent).render(None, false);
        assert!(whole.contains("STEPS") && whole.contains("of their company"), "{whole}");
    }

    #[test]
    fn a_long_name_is_not_cut_while_its_title_can_go_below_it() {
        let mut table = Table::new().sentences_in(2);
        let id = "web-a-bead-with-a-rather-long-identifier";
        let words =
            ["queued, place 17", "blocked by web-1", "同步所有的会话并且在三十分钟之后结束它们"];
        table.row([id].iter().chain(&words).map(|text| Cell::new(*text)).collect());
        let text = table.render(Some(60), false);
        let below: Vec<&str> = text.lines().collect();
        let [first, title, why] = below.as_slice() else { panic!("{text}") };
        assert!(first.starts_with(id) && first.ends_with("queued, place 17"), "{text}");
        assert!(title.trim_start() == words[2] && why.trim_start() == words[1], "{text}");
    }

    #[test]
    fn sentences_go_below_their_rows_whole() {
        let mut table = Table::new().sentences_in(1);
        let why =
            "blocked by web-2 \"Add the login\" (open, not scheduled). Unblocks when web-2 closes";
        table.row(vec![Cell::new("web-1"), Cell::new(why), Cell::new("Send a receipt by mail")]);
        table.row(vec![Cell::new("web-3"), Cell::new(""), Cell::new("Third")]);
        let text = table.render(Some(60), false);
        let words: Vec<&str> = text.split_whitespace().collect();
        assert!(words.join(" ").contains(why), "{text}");
        assert_eq!(text.lines().count(), 4, "{text}");
        assert!(text.lines().all(|line| line.width() <= 60), "{text}");
    }

    #[test]
    fn every_width_can_be_printed() {
        for width in 0..90 {
            runs("gastown/polecats/furiosa").render(Some(width), false);
        }
    }
}
