//! The output of agents.

use gt_core::formula::WordSet as _;
use gt_core::runtime::TranscriptFormat;
use gt_transcripts::{TranscriptEvent, TranscriptKind, TranscriptParser, last_words};

pub(super) const WORDS: &[&str] = &[
    "{\"type\":\"assistant\",\"message\":{\"content\":[",
    "{\"type\":\"tool_use\",\"id\":\"1\",\"name\":\"Bash\",\"input\":{\"command\":\"ls\"}}",
    "{\"type\":\"result\",\"is_error\":true,\"usage\":{\"input_tokens\":\"12\"}}\n",
    "{\"type\":\"item.completed\",\"item\":{\"type\":\"agent_message\",\"text\":\"a\"}}\n",
    "{\"type\":\"message\",\"role\":\"assistant\",\"content\":\"a\",\"delta\":true}\n",
    "{\"type\":\"step_finish\",\"part\":{\"tokens\":{\"input\":-1}}}\n",
    "\"timestamp\":\"2026-06-01T10:00:00Z\"",
    "\n",
];

/// An output in each format, whole and in pieces.
pub(super) fn output(input: &[u8]) {
    for (_, format) in TranscriptFormat::NAMES {
        let whole = events(*format, input, input.len().max(1));
        assert_eq!(events(*format, input, 3), whole, "pieces have other events");
        for event in &whole {
            if let TranscriptKind::Note(text) = &event.kind {
                assert!(!text.is_empty());
            }
            if let TranscriptKind::ToolCall(call) = &event.kind
                && !call.about.is_empty()
            {
                assert!(!call.about.contains('\n'), "{call:?}");
            }
        }
        let _ = last_words(*format, &String::from_utf8_lossy(input));
    }
}

fn events(format: TranscriptFormat, input: &[u8], size: usize) -> Vec<TranscriptEvent> {
    let mut parser = TranscriptParser::new(format);
    let mut events: Vec<_> = input.chunks(size).flat_map(|piece| parser.read(piece)).collect();
    events.extend(parser.finish());
    events
}
