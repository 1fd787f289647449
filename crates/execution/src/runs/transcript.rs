//! The output of the worker of a run, as events.

use std::path::Path;

use gt_core::runtime::TranscriptFormat;
use gt_core::schedule::Run;
use gt_transcripts::{TranscriptEvent, TranscriptParser};

use super::RunOutput;
use super::output::{OutputElsewhere, setup_path};
use gt_scheduling::runtimes::transcript_format;
use gt_town::{Result, Town};

/// How many bytes are read at once.
const BUFFER_BYTES: usize = 64 * 1024;

/// The events of a run, read from its beginning as its output grows.
#[derive(Debug)]
pub struct RunTranscript {
    output: RunOutput,
    parser: TranscriptParser,
    buffer: Vec<u8>,
}

impl RunTranscript {
    /// The events of this run, if this machine has its output.
    pub fn of(town: &Town, run: &Run) -> Result<Self> {
        let output = RunOutput::of(town, run)?;
        let parser = TranscriptParser::new(format_of(town, run));
        Ok(Self { output, parser, buffer: vec![0; BUFFER_BYTES] })
    }

    /// The file that it is read from.
    pub fn path(&self) -> &Path {
        self.output.path()
    }

    /// The host that has the whole output, if this one has only its end.
    pub fn elsewhere(&self) -> Option<&OutputElsewhere> {
        self.output.elsewhere()
    }

    /// Moves to the beginning of the last `lines` lines of the output.
    pub fn skip_to_last(&mut self, lines: usize) -> Result<()> {
        self.output.skip_to_last(lines)
    }

    /// The events of the next bytes, which may be none; nothing if there are no further bytes yet.
    pub fn read(&mut self) -> Result<Option<Vec<TranscriptEvent>>> {
        Ok(match self.output.read(&mut self.buffer)? {
            0 => None,
            count => Some(self.parser.read(&self.buffer[..count])),
        })
    }

    /// The events of a last line without an end.
    pub fn finish(mut self) -> Vec<TranscriptEvent> {
        let mut events = self.parser.read(&self.output.rest());
        events.extend(self.parser.finish());
        events
    }
}

/// Whether the output of a run is text for people, which is shown as it is.
pub fn has_plain_output(town: &Town, run: &Run) -> bool {
    format_of(town, run) == TranscriptFormat::Plain
}

fn format_of(town: &Town, run: &Run) -> TranscriptFormat {
    match setup_path(town, run) {
        Some(_) => TranscriptFormat::Plain,
        None => transcript_format(town, &run.runtime),
    }
}
