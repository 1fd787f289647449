//! Reading the output of an agent.

use std::hint::black_box;
use std::time::Instant;

use gt_core::runtime::TranscriptFormat;
use gt_transcripts::TranscriptParser;
use serde_json::Value;

use crate::BenchmarkResult;
use crate::lab::Lab;
use crate::measure::{Arm, alternate, median};
use crate::report::ReportRow;

/// The output of a real agent, which is repeated.
const OUTPUT: &[u8] = include_bytes!("../../../transcripts/tests/fixtures/claude_work.jsonl");
/// How large the output becomes.
const BYTES: usize = 100_000_000;
/// How much of it is read at once, as from a file.
const PIECE_BYTES: usize = 64 * 1024;

/// The events of 100 MB of stream-json, against reading each line into a value of `serde_json`.
pub(crate) fn run(lab: &Lab) -> BenchmarkResult<Vec<ReportRow>> {
    let output = OUTPUT.repeat(BYTES.div_ceil(OUTPUT.len()));
    let ours: Arm<'_> = Box::new(|| {
        let start = Instant::now();
        let mut parser = TranscriptParser::new(TranscriptFormat::Claude);
        for piece in output.chunks(PIECE_BYTES) {
            black_box(parser.read(piece));
        }
        black_box(parser.finish());
        Ok(start.elapsed())
    });
    let baseline: Arm<'_> = Box::new(|| {
        let start = Instant::now();
        for line in output.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            black_box(serde_json::from_slice::<Value>(line)?);
        }
        Ok(start.elapsed())
    });
    let times = alternate(lab.scale.long_rounds, [ours, baseline])?;
    let megabytes = u32::try_from(output.len() / 1_000_000)?;
    Ok(vec![ReportRow::speeds(
        "transcripts: events of 100 MB of stream-json, in MB, against `serde_json` reading its lines into values",
        megabytes,
        median(&times[0]),
        median(&times[1]),
        Some(0.5),
    )])
}
