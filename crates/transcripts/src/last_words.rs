//! The last words of an agent.

use gt_core::runtime::TranscriptFormat;

use crate::event::TranscriptKind;
use crate::parser::TranscriptParser;

/// The last thing that an agent said or reported, from the end of its output, which may begin in the middle of a line.
/// A plain output is returned as it is.
pub fn last_words(format: TranscriptFormat, end_of_output: &str) -> String {
    if format == TranscriptFormat::Plain {
        return end_of_output.to_owned();
    }
    let mut parser = TranscriptParser::new(format);
    let mut events = parser.read(whole_lines(end_of_output).as_bytes());
    events.extend(parser.finish());
    let words = events.into_iter().rev().find_map(|event| match event.kind {
        TranscriptKind::Text(text)
        | TranscriptKind::Limit { text, .. }
        | TranscriptKind::Error(text)
        | TranscriptKind::Result { text, .. } => Some(text).filter(|text| !text.trim().is_empty()),
        TranscriptKind::Prompt(_)
        | TranscriptKind::Thinking(_)
        | TranscriptKind::ToolCall(_)
        | TranscriptKind::ToolResult { .. }
        | TranscriptKind::Usage(_)
        | TranscriptKind::Window(_)
        | TranscriptKind::Session(_)
        | TranscriptKind::Note(_) => None,
    });
    words.unwrap_or_default()
}

/// Without the rest of an event whose beginning is missing.
pub(crate) fn whole_lines(text: &str) -> &str {
    match text.split_once('\n') {
        Some((first, rest)) if !first.starts_with('{') && first.ends_with('}') => rest,
        None if !text.starts_with('{') && text.ends_with('}') => "",
        _ => text,
    }
}
