//! The screen of the worker of a run, rendered from the output that is kept of it.

use std::collections::VecDeque;
use std::num::NonZeroU16;
use std::path::Path;
use std::time::{Duration, Instant};

use gt_core::ExecutorKind;
use gt_core::schedule::Run;
use gt_core::screen::{CursorPlace, Rows, ScreenFrame, TerminalColour, TextStyle};
use gt_executors::tmux::Tmux;
use gt_transcripts::{TranscriptEvent, TranscriptKind};
use vt100::{Color, Parser};

use super::transcript::has_plain_output;
use super::{RunOutput, RunTranscript, session_server};
use gt_scheduling::runtimes;
use gt_town::tree_paths::session_of;
use gt_town::{Result, Town};

/// The size of a terminal while no person is attached to its session.
const LINES: u16 = 50;
const COLUMNS: u16 = 200;
/// The largest size that is rendered.
const LINES_MAX: u16 = 200;
const COLUMNS_MAX: u16 = 500;
/// How much of the output is read for the first frame. Programs with a screen draw all of it anew from time to time.
const FIRST_BYTES: u64 = 1024 * 1024;
/// How much is read at once.
const BUFFER_BYTES: usize = 64 * 1024;
/// How much is read for one frame.
const BYTES_PER_FRAME: usize = 4 * 1024 * 1024;
/// How often the size of a session is asked for while its screen changes. It costs a process.
const SIZE_INTERVAL: Duration = Duration::from_secs(5);
/// How many lines of the past a worker without a screen shows.
const TRANSCRIPT_LINES: usize = 200;
/// How many lines of the output are read for them at first.
const FIRST_OUTPUT_LINES: usize = 400;
/// How many lines of one event are shown.
const EVENT_LINES_MAX: usize = 20;

/// Whether the worker of a run shows a screen in a session of its own.
pub(crate) fn has_screen(town: &Town, run: &Run) -> bool {
    // A runtime that cannot be read is reported by the commands that need it.
    run.executor == ExecutorKind::Tmux
        && runtimes::named(town, &run.runtime).map_or(true, |runtime| runtime.is_interactive)
}

/// The name of the session of a run.
pub(crate) fn session_of_run(town: &Town, run: &Run) -> Result<String> {
    let rig = town.read(|reader| Ok(reader.rig(run.rig.as_str())?))?;
    Ok(session_of(run, rig.map(|rig| rig.prefix).as_ref()))
}

/// The source of a screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScreenSource {
    /// The bytes of a terminal.
    Terminal,
    /// The events of a worker without a screen.
    Transcript,
}

/// The screen of a run. Nothing is rendered before it is asked for.
pub struct RunScreen {
    output: ScreenOutput,
}

enum ScreenOutput {
    Terminal(Box<TerminalOutput>),
    Transcript { transcript: Box<RunTranscript>, lines: VecDeque<String> },
}

struct TerminalOutput {
    output: RunOutput,
    parser: Parser,
    buffer: Vec<u8>,
    /// The output went through no terminal, which would have turned line feeds into new lines.
    has_bare_lines: bool,
    /// The session whose size counts, if there is one.
    session: Option<(Tmux, String)>,
    sized_at: Option<Instant>,
}

impl std::fmt::Debug for RunScreen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunScreen").field("source", &self.source()).finish_non_exhaustive()
    }
}

impl RunScreen {
    /// The screen of this run, if this machine has its output.
    pub fn of(town: &Town, run: &Run) -> Result<Self> {
        let has_screen = has_screen(town, run);
        if !has_screen && !has_plain_output(town, run) {
            let mut transcript = RunTranscript::of(town, run)?;
            transcript.skip_to_last(FIRST_OUTPUT_LINES)?;
            let (transcript, lines) = (Box::new(transcript), VecDeque::new());
            return Ok(Self { output: ScreenOutput::Transcript { transcript, lines } });
        }
        let mut output = RunOutput::of(town, run)?;
        output.skip_to_last_bytes(FIRST_BYTES)?;
        let session = (run.executor == ExecutorKind::Tmux && run.state.is_live())
            .then(|| session_of_run(town, run))
            .transpose()?;
        let terminal = TerminalOutput {
            output,
            parser: Parser::new(size(LINES, LINES_MAX), size(COLUMNS, COLUMNS_MAX), 0),
            buffer: vec![0; BUFFER_BYTES],
            has_bare_lines: run.executor != ExecutorKind::Tmux,
            session: session.map(|name| (Tmux::of_town(&session_server(town)), name)),
            sized_at: None,
        };
        Ok(Self { output: ScreenOutput::Terminal(Box::new(terminal)) })
    }

    /// Its source.
    pub fn source(&self) -> ScreenSource {
        match self.output {
            ScreenOutput::Terminal(_) => ScreenSource::Terminal,
            ScreenOutput::Transcript { .. } => ScreenSource::Transcript,
        }
    }

    /// The file that grows when the screen changes.
    pub fn path(&self) -> &Path {
        match &self.output {
            ScreenOutput::Terminal(terminal) => terminal.output.path(),
            ScreenOutput::Transcript { transcript, .. } => transcript.path(),
        }
    }

    /// Reads what was printed since the last call. `false` if that is nothing.
    pub fn update(&mut self) -> Result<bool> {
        match &mut self.output {
            ScreenOutput::Terminal(terminal) => terminal.update(),
            ScreenOutput::Transcript { transcript, lines } => {
                let mut is_new = false;
                while let Some(events) = transcript.read()? {
                    is_new = true;
                    for line in events.iter().flat_map(lines_of) {
                        lines.push_back(line);
                        if lines.len() > TRANSCRIPT_LINES {
                            lines.pop_front();
                        }
                    }
                }
                Ok(is_new)
            }
        }
    }

    /// How it looks now.
    pub fn frame(&self) -> ScreenFrame {
        match &self.output {
            ScreenOutput::Terminal(terminal) => frame_of(terminal.parser.screen()),
            ScreenOutput::Transcript { lines, .. } => {
                ScreenFrame::of_lines(COLUMNS, lines.iter().map(String::as_str))
            }
        }
    }
}

impl TerminalOutput {
    fn update(&mut self) -> Result<bool> {
        let mut count = 0;
        while count < BYTES_PER_FRAME {
            let read = self.output.read(&mut self.buffer)?;
            if read == 0 {
                break;
            }
            if count == 0 {
                self.take_size();
            }
            count += read;
            self.print(read);
        }
        Ok(count > 0)
    }

    fn print(&mut self, read: usize) {
        if !self.has_bare_lines {
            return self.parser.process(&self.buffer[..read]);
        }
        for line in self.buffer[..read].split_inclusive(|byte| *byte == b'\n') {
            self.parser.process(line);
            if line.ends_with(b"\n") {
                self.parser.process(b"\r");
            }
        }
    }

    /// Takes over the size of the session, which changes when a person attaches to it.
    fn take_size(&mut self) {
        if self.sized_at.is_some_and(|at| at.elapsed() < SIZE_INTERVAL) {
            return;
        }
        self.sized_at = Some(Instant::now());
        let Some((tmux, name)) = &self.session else { return };
        if let Some((lines, columns)) = tmux.size_of(name) {
            self.parser.set_size(size(lines, LINES_MAX), size(columns, COLUMNS_MAX));
        }
    }
}

fn size(wanted: u16, most: u16) -> NonZeroU16 {
    NonZeroU16::new(wanted.min(most)).unwrap_or(NonZeroU16::MIN)
}

/// The cells of a screen as text. Nothing else of a terminal's state is passed on.
fn frame_of(screen: &vt100::Screen) -> ScreenFrame {
    let (lines, columns) = screen.size();
    let (lines, columns) = (lines.get(), columns.get());
    let mut rows = Rows::default();
    for row in 0..lines {
        rows.begin();
        for column in 0..columns {
            let Some(cell) = screen.cell(row, column) else { continue };
            if cell.is_wide_continuation() {
                continue;
            }
            let text = if cell.has_contents() { cell.contents() } else { " " };
            rows.add(text, style_of(cell));
        }
    }
    let (row, column) = screen.cursor_position();
    let cursor = (!screen.hide_cursor()).then_some(CursorPlace { row, column });
    ScreenFrame { columns, lines, rows: rows.finish(), cursor }
}

fn style_of(cell: &vt100::Cell) -> TextStyle {
    TextStyle {
        is_bold: cell.bold(),
        is_dim: cell.dim(),
        is_italic: cell.italic(),
        is_underlined: cell.underline(),
        is_inverse: cell.inverse(),
        foreground: colour_of(cell.fgcolor()),
        background: colour_of(cell.bgcolor()),
    }
}

fn colour_of(colour: Color) -> Option<TerminalColour> {
    match colour {
        Color::Default => None,
        Color::Idx(index) => Some(TerminalColour::indexed(index)),
        Color::Rgb(red, green, blue) => Some(TerminalColour::nearest(red, green, blue)),
    }
}

/// The lines of an event.
fn lines_of(event: &TranscriptEvent) -> Vec<String> {
    let (mark, text) = match &event.kind {
        TranscriptKind::Prompt(text) => ("> ", text.as_str()),
        TranscriptKind::Text(text) => ("", text.as_str()),
        TranscriptKind::Thinking(text) => ("~ ", text.as_str()),
        TranscriptKind::ToolCall(call) => {
            return vec![format!("* {} {}", call.tool, call.about)];
        }
        TranscriptKind::ToolResult { is_error: false, text, .. } => ("  | ", text.as_str()),
        TranscriptKind::ToolResult { text, .. } => ("  ! ", text.as_str()),
        TranscriptKind::Limit { text, .. } => ("limit: ", text.as_str()),
        TranscriptKind::Error(text) => ("error: ", text.as_str()),
        TranscriptKind::Result { is_error: true, text } => ("failed: ", text.as_str()),
        TranscriptKind::Result { text, .. } => ("finished: ", text.as_str()),
        TranscriptKind::Note(text) => ("note: ", text.as_str()),
        TranscriptKind::Usage(_) | TranscriptKind::Window(_) | TranscriptKind::Session(_) => {
            return Vec::new();
        }
    };
    let all = text.lines().filter(|line| !line.trim().is_empty());
    all.take(EVENT_LINES_MAX).map(|line| format!("{mark}{line}")).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rendered(bytes: &[u8]) -> ScreenFrame {
        let mut parser = Parser::new(size(5, LINES_MAX), size(20, COLUMNS_MAX), 0);
        parser.process(bytes);
        frame_of(parser.screen())
    }

    fn texts(frame: &ScreenFrame) -> Vec<String> {
        let text = |row: &Vec<gt_core::screen::StyledText>| {
            row.iter().map(|piece| piece.text.as_str()).collect::<String>()
        };
        frame.rows.iter().map(text).collect()
    }

    #[test]
    fn a_screen_is_text_with_styles() {
        let frame = rendered(b"plain \x1b[1;31mbold\x1b[0m\r\n\r\nsecond\x1b[2;1Hthird");
        assert_eq!(texts(&frame), ["plain bold", "third", "second"]);
        assert_eq!(frame.rows[0][1].style.names(), "b f1");
        assert_eq!((frame.columns, frame.lines), (20, 5));
        assert_eq!(frame.cursor, Some(CursorPlace { row: 1, column: 5 }));
        assert_eq!(rendered(b"\x1b[?25l").cursor, None);
    }

    #[test]
    fn hostile_output_stays_text() {
        let hostile = [
            &b"\x1b]0;title<script>alert(1)</script>\x07"[..],
            b"\x1b]52;c;ZXZpbA==\x07",
            b"\x1b]8;;javascript:alert(1)\x1b\\link\x1b]8;;\x1b\\",
            b"\x1bPq#0;2;0;0;0\x1b\\",
            b"\x1b[8;9999;9999t",
            b"\x1b[6n\x1b[c",
            "\u{202e}\u{9b}31m".as_bytes(),
            b"<img src=x onerror=alert(1)>",
        ]
        .concat();
        let frame = rendered(&hostile);
        assert_eq!((frame.columns, frame.lines), (20, 5), "a program does not set the size");
        let all = texts(&frame).concat();
        assert!(all.starts_with("link"), "{all}");
        assert!(!all.contains("title") && !all.contains("javascript"), "{all}");
        assert!(!all.chars().any(|c| c.is_control() || c == '\u{202e}'), "{all:?}");
    }

    #[test]
    fn an_event_has_few_lines() {
        let event = |kind| TranscriptEvent { at: None, kind };
        let long = "x\n".repeat(500);
        assert_eq!(lines_of(&event(TranscriptKind::Text(long))).len(), EVENT_LINES_MAX);
        let failed = TranscriptKind::Result { is_error: true, text: "no\n\nway".to_owned() };
        assert_eq!(lines_of(&event(failed)), ["failed: no", "failed: way"]);
    }

    proptest! {
        #[test]
        fn no_output_makes_a_screen_panic_or_larger(
            pieces in proptest::collection::vec(
                prop_oneof![
                    proptest::collection::vec(any::<u8>(), 0..40),
                    "\\x1b\\[[0-9;?]{0,9}[@A-Za-z]".prop_map(String::into_bytes),
                    "\u{1f600}|\u{4e2d}|\u{301}|\t|\r|\n|\u{8}".prop_map(String::into_bytes),
                ],
                0..60,
            ),
            other_size in (1_u16..30, 1_u16..60),
        ) {
            let mut parser = Parser::new(size(5, LINES_MAX), size(20, COLUMNS_MAX), 0);
            for (at, piece) in pieces.iter().enumerate() {
                parser.process(piece);
                if at == pieces.len() / 2 {
                    parser.set_size(size(other_size.0, LINES_MAX), size(other_size.1, COLUMNS_MAX));
                }
            }
            let frame = frame_of(parser.screen());
            prop_assert!(frame.rows.len() <= usize::from(frame.lines));
            for piece in frame.rows.iter().flatten() {
                prop_assert!(!piece.text.chars().any(char::is_control));
            }
        }
    }
}
