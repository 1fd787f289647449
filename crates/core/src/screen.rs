//! The screen of an agent as text with styles: what a page can show without knowing any terminal.

/// The colours of a terminal that every page has: black, red, green, yellow, blue, magenta, cyan and white, then the bright ones.
const PALETTE: [(u8, u8, u8); 16] = [
    (0, 0, 0),
    (205, 0, 0),
    (0, 205, 0),
    (205, 205, 0),
    (0, 0, 238),
    (205, 0, 205),
    (0, 205, 205),
    (229, 229, 229),
    (127, 127, 127),
    (255, 0, 0),
    (0, 255, 0),
    (255, 255, 0),
    (92, 92, 255),
    (255, 0, 255),
    (0, 255, 255),
    (255, 255, 255),
];

/// One of sixteen colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TerminalColour(u8);

impl TerminalColour {
    /// The colour of this number among the 256 of a terminal, or the nearest.
    pub fn indexed(index: u8) -> Self {
        // The steps of the colour cube.
        let step = |level: u8| if level == 0 { 0 } else { 55 + level * 40 };
        match index {
            0..=15 => Self(index),
            16..=231 => {
                let at = index - 16;
                Self::nearest(step(at / 36), step(at / 6 % 6), step(at % 6))
            }
            232..=255 => {
                let grey = 8 + (index - 232) * 10;
                Self::nearest(grey, grey, grey)
            }
        }
    }

    /// The one that looks most like this.
    pub fn nearest(red: u8, green: u8, blue: u8) -> Self {
        let square = |one: u8, other: u8| u32::from(one.abs_diff(other)).pow(2);
        let distance =
            |(r, g, b): &(u8, u8, u8)| square(*r, red) + square(*g, green) + square(*b, blue);
        let nearest = (0_u8..).zip(&PALETTE).min_by_key(|(_, colour)| distance(colour));
        Self(nearest.map_or(7, |(index, _)| index))
    }
}

/// How a piece of text looks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TextStyle {
    /// Bold.
    pub is_bold: bool,
    /// Fainter than usual.
    pub is_dim: bool,
    /// Italic.
    pub is_italic: bool,
    /// Underlined.
    pub is_underlined: bool,
    /// Foreground and background change places.
    pub is_inverse: bool,
    /// The colour of the text; the usual one if there is none.
    pub foreground: Option<TerminalColour>,
    /// The colour behind it.
    pub background: Option<TerminalColour>,
}

impl TextStyle {
    /// The style as short names, separated by blanks: `b`, `d`, `i`, `u`, `r`, `f0` to `f15` and `g0` to `g15`.
    pub fn names(&self) -> String {
        let flags = [
            (self.is_bold, "b"),
            (self.is_dim, "d"),
            (self.is_italic, "i"),
            (self.is_underlined, "u"),
            (self.is_inverse, "r"),
        ];
        let mut names: Vec<String> = flags
            .iter()
            .filter(|(is_set, _)| *is_set)
            .map(|(_, name)| (*name).to_owned())
            .collect();
        names.extend(self.foreground.map(|TerminalColour(colour)| format!("f{colour}")));
        names.extend(self.background.map(|TerminalColour(colour)| format!("g{colour}")));
        names.join(" ")
    }
}

/// A piece of text that looks the same throughout.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StyledText {
    /// The text: no control characters, and none that change the direction of what follows.
    pub text: String,
    /// How it looks.
    pub style: TextStyle,
}

/// The place of a cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CursorPlace {
    /// The row, from 0.
    pub row: u16,
    /// The column, from 0.
    pub column: u16,
}

/// A screen at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ScreenFrame {
    /// How many columns it has.
    pub columns: u16,
    /// How many rows it has.
    pub lines: u16,
    /// The rows from the top, each without the empty rest; empty rows at the bottom are left out.
    pub rows: Vec<Vec<StyledText>>,
    /// The cursor, if it is shown.
    pub cursor: Option<CursorPlace>,
}

impl ScreenFrame {
    /// A frame of plain lines.
    pub fn of_lines<'l>(columns: u16, lines: impl Iterator<Item = &'l str>) -> Self {
        let mut rows = Rows::default();
        for line in lines {
            let text = line.chars().take(usize::from(columns)).collect::<String>();
            rows.begin();
            rows.add(&text, TextStyle::default());
        }
        let rows = rows.finish();
        let lines = u16::try_from(rows.len()).unwrap_or(u16::MAX);
        Self { columns, lines, rows, cursor: None }
    }

    /// The bottom left of it, at most so large.
    #[must_use]
    pub fn tile(&self, lines: u16, columns: u16) -> Self {
        let skipped = self.rows.len().saturating_sub(usize::from(lines));
        let rows = self.rows[skipped..].iter().map(|row| {
            let mut left = usize::from(columns);
            let mut cut = Vec::new();
            for piece in row {
                let text: String = piece.text.chars().take(left).collect();
                left -= text.chars().count();
                if !text.is_empty() {
                    cut.push(StyledText { text, style: piece.style });
                }
            }
            cut
        });
        let (lines, columns) = (lines.min(self.lines), columns.min(self.columns));
        Self { columns, lines, rows: rows.collect(), cursor: None }
    }
}

/// Rows that are put together piece by piece.
#[derive(Debug, Default)]
pub struct Rows(Vec<Vec<StyledText>>);

impl Rows {
    /// Begins the next row.
    pub fn begin(&mut self) {
        self.0.push(Vec::new());
    }

    /// Adds text to the row, as far as a page may show it.
    pub fn add(&mut self, text: &str, style: TextStyle) {
        let Some(row) = self.0.last_mut() else { return };
        let visible = text.chars().filter_map(visible);
        match row.last_mut() {
            Some(last) if last.style == style => last.text.extend(visible),
            _ => {
                let text: String = visible.collect();
                if !text.is_empty() {
                    row.push(StyledText { text, style });
                }
            }
        }
    }

    /// The rows without the empty rest of each, and without the empty ones at the end.
    pub fn finish(mut self) -> Vec<Vec<StyledText>> {
        for row in &mut self.0 {
            while let Some(last) = row.last_mut() {
                let looks_empty = last.style.background.is_none()
                    && !last.style.is_inverse
                    && !last.style.is_underlined;
                if !looks_empty {
                    break;
                }
                last.text.truncate(last.text.trim_end_matches(' ').len());
                if !last.text.is_empty() {
                    break;
                }
                row.pop();
            }
        }
        while self.0.pop_if(|row| row.is_empty()).is_some() {}
        self.0
    }
}

/// A character as a page may show it: nothing that controls a terminal, or turns the text around it.
fn visible(character: char) -> Option<char> {
    match character {
        '\u{200e}'
        | '\u{200f}'
        | '\u{061c}'
        | '\u{202a}'..='\u{202e}'
        | '\u{2066}'..='\u{2069}' => None,
        '\t' => Some(' '),
        control if control.is_control() => Some('\u{fffd}'),
        other => Some(other),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn colours_are_the_nearest_of_sixteen() {
        for index in 0..16 {
            assert_eq!(TerminalColour::indexed(index), TerminalColour(index));
        }
        assert_eq!(TerminalColour::indexed(196), TerminalColour(9));
        assert_eq!(TerminalColour::indexed(255), TerminalColour(7));
        assert_eq!(TerminalColour::nearest(10, 10, 10), TerminalColour(0));
        for index in 0..=255 {
            assert!(TerminalColour::indexed(index).0 < 16);
        }
    }

    #[test]
    fn pieces_of_one_style_are_one_and_empty_space_is_left_out() {
        let bold = TextStyle { is_bold: true, ..TextStyle::default() };
        let mut rows = Rows::default();
        rows.begin();
        rows.add("a", TextStyle::default());
        rows.add("b ", TextStyle::default());
        rows.add("c", bold);
        rows.add("   ", TextStyle::default());
        rows.begin();
        rows.add("  ", TextStyle::default());
        let rows = rows.finish();
        let plain = StyledText { text: "ab ".to_owned(), style: TextStyle::default() };
        assert_eq!(rows, [[plain, StyledText { text: "c".to_owned(), style: bold }]]);
        assert_eq!(bold.names(), "b");
        let loud = TextStyle {
            is_inverse: true,
            foreground: Some(TerminalColour(1)),
            background: Some(TerminalColour(12)),
            ..bold
        };
        assert_eq!(loud.names(), "b r f1 g12");
    }

    #[test]
    fn a_tile_is_the_bottom_left() {
        let frame = ScreenFrame::of_lines(80, ["one", "two", "three"].into_iter());
        let tile = frame.tile(2, 3);
        let texts: Vec<&str> = tile.rows.iter().map(|row| row[0].text.as_str()).collect();
        assert_eq!((texts, tile.columns, tile.lines), (vec!["two", "thr"], 3, 2));
    }

    proptest! {
        #[test]
        fn no_row_has_anything_that_controls(text in "(\\x1b\\[[0-9;]{0,4}[a-zA-Z]|\\PC|\u{202e}|\u{9b}|\u{7}){0,40}") {
            let frame = ScreenFrame::of_lines(200, std::iter::once(text.as_str()));
            for piece in frame.rows.iter().flatten() {
                let controls = |c: char| c.is_control() || c == '\u{202e}';
                prop_assert!(!piece.text.chars().any(controls), "{:?}", piece.text);
            }
        }
    }
}
