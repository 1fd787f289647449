//! The output of agents.

use gt_core::cost::UsageWindow;
use gt_core::formula::WordSet as _;
use gt_core::runtime::TranscriptFormat;
use gt_transcripts::{CodexSession, TranscriptEvent, TranscriptKind, TranscriptParser, last_words};

pub(super) const WORDS: &[&str] = &[
    "{\"type\":\"assistant\",\"message\":{\"content\":[",
    "{\"type\":\"tool_use\",\"id\":\"1\",\"name\":\"Bash\",\"input\":{\"command\":\"ls\"}}",
    "{\"type\":\"result\",\"is_error\":true,\"usage\":{\"input_tokens\":\"12\"}}\n",
    "{\"type\":\"item.completed\",\"item\":{\"type\":\"agent_message\",\"text\":\"a\"}}\n",
    "{\"type\":\"message\",\"role\":\"assistant\",\"content\":\"a\",\"delta\":true}\n",
    "{\"type\":\"message\",\"message\":{\"role\":\"assistant\",\"created\":1,\"content\":[{\"type\":\"text\",\"text\":\"a\"}]}}\n",
    "{\"type\":\"complete\",\"input_tokens\":12,\"output_tokens\":-1}\n",
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

pub(super) const SESSION_WORDS: &[&str] = &[
    "{\"timestamp\":\"2026-06-01T10:00:00Z\",\"type\":\"event_msg\",\"payload\":{\"type\":\"token_count\",",
    "\"info\":{\"total_token_usage\":{\"input_tokens\":12,\"cached_input_tokens\":99}}",
    "\"rate_limits\":{\"primary\":{\"used_percent\":1e9,\"window_minutes\":300,\"resets_at\":-1}}",
    "{\"type\":\"turn_context\",\"payload\":{\"model\":\"m\"}}\n",
    "}}\n",
];

/// A session file of Codex, line by line. Nothing that is told before is lost.
pub(super) fn session_file(input: &[u8]) {
    let mut session = CodexSession::default();
    for line in input.split(|byte| *byte == b'\n') {
        let before = session.clone();
        session.read_line(line);
        assert!(before.usage().is_none() || session.usage().is_some());
        assert!(before.windows().len() <= session.windows().len());
    }
    for seen in session.windows() {
        assert_eq!(UsageWindow::name_from(&seen.window.name).as_ref(), Some(&seen.window.name));
    }
}

fn events(format: TranscriptFormat, input: &[u8], size: usize) -> Vec<TranscriptEvent> {
    let mut parser = TranscriptParser::new(format);
    let mut events: Vec<_> = input.chunks(size).flat_map(|piece| parser.read(piece)).collect();
    events.extend(parser.finish());
    events
}
