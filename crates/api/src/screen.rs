//! Screens of workers, for pages.

use gt_core::screen::{ScreenFrame, StyledText};
use serde::Serialize;
use utoipa::ToSchema;

/// A piece of a row.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct StyledTextDocument {
    /// The text, without control characters.
    pub t: String,
    /// How it looks: `b` bold, `d` dim, `i` italic, `u` underlined, `r` inverse, `f0` to `f15` and `g0` to `g15` colours of
    /// the text and behind it, separated by blanks.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schema(required = false)]
    pub s: String,
}

/// The place of a cursor, from 0.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct CursorDocument {
    pub row: u16,
    pub col: u16,
}

/// The screen of a worker at one moment, or what a worker without a screen did last.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ScreenDocument {
    pub run: String,
    /// `screen` or `transcript`.
    pub source: String,
    pub cols: u16,
    pub lines: u16,
    /// The rows from the top, without what is empty at their end.
    pub rows: Vec<Vec<StyledTextDocument>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<CursorDocument>,
    /// Whether the run is over, so that nothing more comes.
    pub ended: bool,
}

impl ScreenDocument {
    /// The screen of this run.
    pub fn of(run: &str, is_terminal: bool, frame: &ScreenFrame, ended: bool) -> Self {
        let piece = |piece: &StyledText| StyledTextDocument {
            t: piece.text.clone(),
            s: piece.style.names(),
        };
        Self {
            run: run.to_owned(),
            source: if is_terminal { "screen" } else { "transcript" }.to_owned(),
            cols: frame.columns,
            lines: frame.lines,
            rows: frame.rows.iter().map(|row| row.iter().map(piece).collect()).collect(),
            cursor: frame.cursor.map(|place| CursorDocument { row: place.row, col: place.column }),
            ended,
        }
    }
}

/// A tile that cannot be shown.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct TileProblemDocument {
    pub run: String,
    /// Why.
    pub problem: String,
}

/// Something to type: a text, or one key.
#[derive(Debug, Clone, ToSchema)]
#[expect(
    dead_code,
    reason = "the description is made from it; handlers read the fields one by one"
)]
pub struct KeyStrokesDocument {
    /// Typed as it is.
    text: Option<String>,
    /// `enter`, `escape`, `tab`, `backtab`, `backspace`, `delete`, `up`, `down`, `left`, `right`, `home`, `end`, `pageup`,
    /// `pagedown`, `space`, or `ctrl-a` to `ctrl-z`.
    key: Option<String>,
}

/// The result of typing.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct KeysTypedDocument {
    pub run: String,
    /// `typed` into the session, or `nudged`: sent as a message to a worker without a screen.
    pub how: String,
    pub detail: String,
}
