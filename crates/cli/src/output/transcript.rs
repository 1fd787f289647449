//! Transcripts for people.

use gt_core::Timestamp;
use gt_transcripts::{ModelUsage, ToolUse, TranscriptEvent, TranscriptKind, UsageScope};

use super::moment;
use super::text::plain_line;

/// How a line looks on a terminal with colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineStyle {
    Plain,
    /// A call of a tool.
    Strong,
    /// Texts that are read only on demand: prompts, thoughts, answers of tools.
    Faint,
    Added,
    Removed,
    Failed,
}

/// One line of a transcript.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StyledLine {
    pub(crate) style: LineStyle,
    pub(crate) text: String,
}

/// The widest line. People read transcripts beside other windows.
const COLUMNS: usize = 80;
/// How many lines of a prompt, a thought or a change are shown.
const QUOTED_LINES_MAX: usize = 8;
/// How many lines of the answer of a tool are shown.
const RESULT_LINES_MAX: usize = 4;

/// Turns the events of one transcript into lines, one event after the other.
#[derive(Debug, Default)]
pub(crate) struct TranscriptView {
    /// The last message, which some agents repeat as their result.
    last_text: String,
    /// The sum of usages of single requests: one line for each would hide the rest.
    requests: Option<ModelUsage>,
}

impl TranscriptView {
    /// The lines of an event.
    pub(crate) fn lines(&mut self, event: &TranscriptEvent) -> Vec<StyledLine> {
        let mut page = Page::default();
        match &event.kind {
            TranscriptKind::Prompt(text) => page.quote("> ", text, LineStyle::Faint),
            TranscriptKind::Text(text) => {
                page.wrap("", text, LineStyle::Plain, usize::MAX);
                self.last_text.clone_from(text);
            }
            TranscriptKind::Thinking(text) => page.quote("~ ", text, LineStyle::Faint),
            TranscriptKind::ToolCall(call) => page.call(call),
            TranscriptKind::ToolResult { is_error: false, text, .. } => {
                page.cut("  | ", text, LineStyle::Faint, RESULT_LINES_MAX);
            }
            TranscriptKind::ToolResult { text, .. } => {
                let first = if text.trim().is_empty() { "(no output)" } else { text };
                page.cut("  ! ", first, LineStyle::Failed, RESULT_LINES_MAX);
            }
            TranscriptKind::Usage(usage) if usage.scope == UsageScope::Request => self.sum(usage),
            TranscriptKind::Usage(usage) => page.usage(usage),
            TranscriptKind::Limit { until, text, .. } => page.limit(*until, text),
            // gt config account list shows the windows, and only programs need the names of sessions.
            TranscriptKind::Window(_) | TranscriptKind::Session(_) => {}
            TranscriptKind::Error(text) => page.titled("error", text, LineStyle::Failed),
            TranscriptKind::Result { is_error: true, text } => {
                page.titled("failed", text, LineStyle::Failed);
            }
            TranscriptKind::Result { text, .. } => {
                let is_said = text.trim() == self.last_text.trim();
                let text = if is_said { "" } else { text.as_str() };
                page.titled("finished", text, LineStyle::Strong);
            }
            TranscriptKind::Note(text) => page.titled("note", text, LineStyle::Faint),
        }
        page.0
    }

    /// The lines at the end.
    pub(crate) fn finish(self) -> Vec<StyledLine> {
        let mut page = Page::default();
        if let Some(usage) = &self.requests {
            page.usage(usage);
        }
        page.0
    }

    fn sum(&mut self, usage: &ModelUsage) {
        let sum = self.requests.get_or_insert_with(|| usage_of_model(&usage.model));
        if sum.model != usage.model {
            sum.model.clear();
        }
        for (total, part) in [
            (&mut sum.input, usage.input),
            (&mut sum.output, usage.output),
            (&mut sum.cache_read, usage.cache_read),
            (&mut sum.cache_write, usage.cache_write),
            (&mut sum.reasoning, usage.reasoning),
        ] {
            *total = total.saturating_add(part);
        }
        if let Some(cost) = usage.cost {
            let total = sum.cost.get_or_insert_default();
            total.0 = total.0.saturating_add(cost.0);
        }
    }
}

fn usage_of_model(model: &str) -> ModelUsage {
    ModelUsage { model: model.to_owned(), ..ModelUsage::default() }
}

/// Lines of one event.
#[derive(Debug, Default)]
struct Page(Vec<StyledLine>);

impl Page {
    fn add(&mut self, style: LineStyle, text: String) {
        self.0.push(StyledLine { style, text });
    }

    /// Adds a text with each line behind a mark, wrapped.
    fn wrap(&mut self, mark: &str, text: &str, style: LineStyle, lines_max: usize) {
        let width = COLUMNS - mark.len();
        let mut lines: Vec<String> = Vec::new();
        for line in text.trim_end().lines() {
            lines.extend(wrapped(&clean(line), width));
        }
        let hidden = lines.len().saturating_sub(lines_max);
        lines.truncate(lines_max);
        for line in lines {
            self.add(style, format!("{mark}{line}"));
        }
        self.hidden(mark, hidden, style);
    }

    /// Adds a text that is shown in part.
    fn quote(&mut self, mark: &str, text: &str, style: LineStyle) {
        self.wrap(mark, text, style, QUOTED_LINES_MAX);
    }

    /// Adds the first lines of a text; long lines are cut, because wrapped program output is hard to read.
    fn cut(&mut self, mark: &str, text: &str, style: LineStyle, lines_max: usize) {
        let lines: Vec<&str> = text.trim_end().lines().collect();
        for line in lines.iter().take(lines_max) {
            let shown = shortened(&clean(line), COLUMNS - mark.len());
            self.add(style, format!("{mark}{shown}"));
        }
        self.hidden(mark, lines.len().saturating_sub(lines_max), style);
    }

    fn hidden(&mut self, mark: &str, count: usize, style: LineStyle) {
        if count > 0 {
            let lines = if count == 1 { "line" } else { "lines" };
            self.add(style, format!("{mark}… {count} more {lines}"));
        }
    }

    fn call(&mut self, call: &ToolUse) {
        let tool = if call.tool.is_empty() { "tool" } else { &call.tool };
        let line = if call.about.is_empty() {
            format!("* {tool}")
        } else {
            format!("* {tool}: {}", call.about)
        };
        self.add(LineStyle::Strong, shortened(&clean(&line), COLUMNS));
        if let Some((old, new)) = &call.change {
            self.cut("  - ", old, LineStyle::Removed, QUOTED_LINES_MAX);
            self.cut("  + ", new, LineStyle::Added, QUOTED_LINES_MAX);
        }
    }

    fn titled(&mut self, title: &str, text: &str, style: LineStyle) {
        let text = text.trim();
        let line = if text.is_empty() { title.to_owned() } else { format!("{title}: {text}") };
        self.wrap("", &line, style, usize::MAX);
    }

    fn limit(&mut self, until: Option<Timestamp>, text: &str) {
        let until = until.map(|at| format!(" until {}", moment(at))).unwrap_or_default();
        self.titled(&format!("usage limit{until}"), text, LineStyle::Failed);
    }

    fn usage(&mut self, usage: &ModelUsage) {
        let mut parts = Vec::new();
        for (count, name) in [
            (usage.input, "in"),
            (usage.output, "out"),
            (usage.cache_read, "from the cache"),
            (usage.cache_write, "into the cache"),
            (usage.reasoning, "of thinking"),
        ] {
            if count > 0 {
                parts.push(format!("{count} {name}"));
            }
        }
        let cost = usage.cost.filter(|cost| cost.0 > 0).map(|cost| format!("${cost}"));
        let model = Some(usage.model.clone()).filter(|model| !model.is_empty());
        let tokens = Some(format!("tokens {}", parts.join(", "))).filter(|_| !parts.is_empty());
        let line: Vec<String> = [tokens, cost, model].into_iter().flatten().collect();
        if !line.is_empty() {
            self.wrap("", &format!("usage: {}", line.join("; ")), LineStyle::Faint, usize::MAX);
        }
    }
}

/// A line that does nothing to a terminal, and is as wide as it has characters.
fn clean(line: &str) -> String {
    plain_line(line.as_bytes()).replace('\t', "    ")
}

/// A line as lines of at most this width, broken between words where that is possible. Indents stay.
fn wrapped(line: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut rest = line;
    while let Some((limit, _)) = rest.char_indices().nth(width) {
        let break_at = rest[..limit].rfind(' ').filter(|at| !rest[..*at].trim().is_empty());
        // A word that ends at the limit fits.
        let end = if rest[limit..].starts_with(' ') { limit } else { break_at.unwrap_or(limit) };
        lines.push(rest[..end].trim_end().to_owned());
        rest = rest[end..].trim_start();
    }
    if !rest.is_empty() || lines.is_empty() {
        lines.push(rest.to_owned());
    }
    lines
}

/// A line of at most this width.
fn shortened(line: &str, width: usize) -> String {
    match line.char_indices().nth(width) {
        Some(_) => line.chars().take(width - 1).chain(['…']).collect(),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use gt_core::runtime::TranscriptFormat;
    use gt_transcripts::TranscriptParser;
    use proptest::prelude::*;

    use super::*;
    use LineStyle::{Added, Failed, Faint, Plain, Removed, Strong};

    fn shown(format: TranscriptFormat, output: &str) -> Vec<(LineStyle, String)> {
        let mut view = TranscriptView::default();
        let mut parser = TranscriptParser::new(format);
        let mut events = parser.read(output.as_bytes());
        events.extend(parser.finish());
        let mut lines: Vec<StyledLine> =
            events.iter().flat_map(|event| view.lines(event)).collect();
        lines.extend(view.finish());
        lines.into_iter().map(|line| (line.style, line.text)).collect()
    }

    #[test]
    fn a_transcript_is_readable() {
        let output = r#"{"type":"user","message":{"content":"Do\nit"}}
{"type":"assistant","message":{"content":[{"type":"text","text":"I look."},{"type":"tool_use","id":"1","name":"Bash","input":{"command":"ls"}}]}}
{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"1","content":"a\nb\nc\nd\ne\nf"}]}}
{"type":"assistant","message":{"content":[{"type":"tool_use","id":"2","name":"Edit","input":{"file_path":"a.rs","old_string":"x","new_string":"y\nz"}}]}}
{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"2","is_error":true,"content":""}]}}
{"type":"assistant","message":{"content":[{"type":"text","text":"Done."}]}}
{"type":"result","is_error":false,"result":"Done.","modelUsage":{"m":{"inputTokens":10,"outputTokens":2,"costUSD":0.5}}}
"#;
        let expected = [
            (Faint, "> Do"),
            (Faint, "> it"),
            (Plain, "I look."),
            (Strong, "* Bash: ls"),
            (Faint, "  | a"),
            (Faint, "  | b"),
            (Faint, "  | c"),
            (Faint, "  | d"),
            (Faint, "  | … 2 more lines"),
            (Strong, "* Edit: a.rs"),
            (Removed, "  - x"),
            (Added, "  + y"),
            (Added, "  + z"),
            (Failed, "  ! (no output)"),
            (Plain, "Done."),
            (Faint, "usage: tokens 10 in, 2 out; $0.50; m"),
            (Strong, "finished"),
        ];
        let expected = expected.map(|(style, text)| (style, text.to_owned()));
        assert_eq!(shown(TranscriptFormat::Claude, output), expected);
    }

    #[test]
    fn usages_of_requests_are_added_up() {
        let step = r#"{"type":"step_finish","part":{"tokens":{"input":4,"output":1},"cost":0.25}}"#;
        let lines = shown(TranscriptFormat::Opencode, &format!("{step}\n{step}\n"));
        let expected = "usage: tokens 8 in, 2 out; $0.50".to_owned();
        assert_eq!(lines, [(LineStyle::Faint, expected)]);
    }

    proptest! {
        #[test]
        fn no_line_is_wider_than_a_page_or_controls_a_terminal(text in any::<String>(), words in "[a-z \u{1b}\r\t]{0,300}") {
            let text = format!("{text}{words}");
            for kind in [
                TranscriptKind::Prompt(text.clone()),
                TranscriptKind::Text(text.clone()),
                TranscriptKind::Error(text.clone()),
                TranscriptKind::Note(text.clone()),
                TranscriptKind::ToolResult { call: String::new(), is_error: true, text: text.clone() },
                TranscriptKind::ToolCall(ToolUse {
                    id: String::new(), tool: text.clone(), about: text.clone(), change: Some((text.clone(), text.clone())),
                }),
            ] {
                for line in TranscriptView::default().lines(&TranscriptEvent { at: None, kind }) {
                    prop_assert!(line.text.chars().count() <= COLUMNS, "{:?}", line);
                    prop_assert!(!line.text.contains(['\n', '\u{1b}', '\r']), "{:?}", line);
                }
            }
        }

        #[test]
        fn wrapping_loses_no_word(words in prop::collection::vec("[a-z]{1,12}", 0..30)) {
            let text = wrapped(&words.join(" "), 20).join(" ");
            prop_assert_eq!(text.split_whitespace().collect::<Vec<_>>(), words);
        }
    }
}
