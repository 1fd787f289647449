//! Codex.

use serde_json::Value;

use crate::codex_session::read_usage;
use crate::event::{ToolUse, TranscriptKind};
use crate::input::{about, list, parts, shell_command, text};
use crate::sink::EventSink;

pub(super) fn read(line: &Value, sink: &mut EventSink) {
    sink.begin_line(None);
    match text(line, "type") {
        "item.started" => {
            if let Some(item) = line.get("item") {
                began(item, sink);
            }
        }
        "item.completed" => {
            if let Some(item) = line.get("item") {
                completed(item, sink);
            }
        }
        "turn.completed" => {
            let usage = line.get("usage").unwrap_or(&Value::Null);
            let usage = read_usage(usage, sink);
            sink.add(TranscriptKind::Usage(usage));
        }
        "turn.failed" => {
            let error = line.get("error").unwrap_or(&Value::Null);
            let text = text(error, "message").to_owned();
            sink.add(TranscriptKind::Result { is_error: true, text });
        }
        "error" => sink.add(TranscriptKind::Error(text(line, "message").to_owned())),
        "thread.started" if !text(line, "thread_id").is_empty() => {
            sink.add(TranscriptKind::Session(text(line, "thread_id").to_owned()));
        }
        "thread.started" | "turn.started" | "item.updated" => {}
        other => sink.unknown_type("the event", other),
    }
}

fn began(item: &Value, sink: &mut EventSink) {
    let call = |tool: &str, about| {
        let id = text(item, "id").to_owned();
        TranscriptKind::ToolCall(ToolUse { id, tool: tool.to_owned(), about, change: None })
    };
    match text(item, "type") {
        "command_execution" => sink.add(call("shell", shell_command(text(item, "command")))),
        "mcp_tool_call" => {
            let arguments = item.get("arguments").unwrap_or(item);
            sink.add(call(text(item, "tool"), about(arguments)));
        }
        "web_search" => sink.add(call("search", about(item))),
        // Everything else is read once it is complete.
        _ => {}
    }
}

fn completed(item: &Value, sink: &mut EventSink) {
    let id = text(item, "id").to_owned();
    match text(item, "type") {
        "agent_message" => sink.add(TranscriptKind::Text(text(item, "text").to_owned())),
        "reasoning" => sink.add(TranscriptKind::Thinking(text(item, "text").to_owned())),
        "command_execution" => sink.add(TranscriptKind::ToolResult {
            call: id,
            is_error: item.get("exit_code").and_then(Value::as_i64).is_some_and(|code| code != 0),
            text: text(item, "aggregated_output").to_owned(),
        }),
        "file_change" => {
            for file in list(item, "changes") {
                sink.add(TranscriptKind::ToolCall(ToolUse {
                    id: id.clone(),
                    tool: text(file, "kind").to_owned(),
                    about: text(file, "path").to_owned(),
                    change: None,
                }));
            }
        }
        "mcp_tool_call" => sink.add(TranscriptKind::ToolResult {
            call: id,
            is_error: text(item, "status") == "failed",
            text: parts(item.get("result").and_then(|result| result.get("content"))),
        }),
        "error" => sink.add(TranscriptKind::Error(text(item, "message").to_owned())),
        "web_search" | "todo_list" => {}
        other => sink.unknown_type("the item", other),
    }
}
