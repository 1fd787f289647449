//! The live transcript of a run, as lines.

use gt_core::Run;
use gt_execution::runs::{RunOutput, RunTranscript, has_plain_output};
use gt_town::{Result, Town};

use crate::gt::run::LineSplitter;
use crate::output::{LineStyle, StyledLine, TranscriptView, plain_line};

/// How many lines of the output are read from before it was opened.
const LINES_BEFORE: usize = 2_000;
const BUFFER_BYTES: usize = 64 * 1024;

/// Reads what the worker of a run does and says, as it grows.
pub(super) enum TranscriptLines {
    Events(Box<RunTranscript>, TranscriptView),
    Plain(Box<RunOutput>, LineSplitter),
}

impl TranscriptLines {
    /// Begins near the end of the output.
    pub(super) fn open(town: &Town, run: &Run) -> Result<Self> {
        if has_plain_output(town, run) {
            let mut output = RunOutput::of(town, run)?;
            output.skip_to_last(LINES_BEFORE)?;
            return Ok(Self::Plain(Box::new(output), LineSplitter::default()));
        }
        let mut transcript = RunTranscript::of(town, run)?;
        transcript.skip_to_last(LINES_BEFORE)?;
        Ok(Self::Events(Box::new(transcript), TranscriptView::default()))
    }

    /// The lines since the last call.
    pub(super) fn read(&mut self) -> Result<Vec<StyledLine>> {
        let mut lines = Vec::new();
        match self {
            Self::Events(transcript, view) => {
                while let Some(events) = transcript.read()? {
                    lines.extend(events.iter().flat_map(|event| view.lines(event)));
                }
            }
            Self::Plain(output, splitter) => {
                let mut buffer = vec![0; BUFFER_BYTES];
                loop {
                    let count = output.read(&mut buffer)?;
                    if count == 0 {
                        break;
                    }
                    let plain = |line: Vec<u8>| StyledLine {
                        style: LineStyle::Plain,
                        text: plain_line(&line),
                    };
                    lines.extend(splitter.add(&buffer[..count]).into_iter().map(plain));
                }
            }
        }
        Ok(lines)
    }
}
