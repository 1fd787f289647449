//! Answers in the format of each vendor, as a whole and as a stream.

use serde_json::{Value, json};

use super::request::{ModelApi, ToolCall};

/// The answer of a model.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ModelAnswer {
    pub(super) text: String,
    pub(super) call: Option<ToolCall>,
    /// Different for each answer of a server.
    pub(super) number: u64,
}

/// The tokens that each answer claims to have cost.
pub(super) const INPUT_TOKENS: u64 = 1000;
/// Of the input, those that came from the vendor's cache.
pub(super) const CACHED_TOKENS: u64 = 600;
/// The tokens of the answer itself.
pub(super) const OUTPUT_TOKENS: u64 = 50;

/// The lines of an answer: one JSON document, or the events of a stream.
pub(super) fn render(
    api: ModelApi,
    model: &str,
    answer: &ModelAnswer,
    is_streaming: bool,
) -> Vec<String> {
    match (api, is_streaming) {
        (ModelApi::Messages, false) => vec![message(model, answer).to_string()],
        (ModelApi::Messages, true) => message_events(model, answer),
        (ModelApi::Responses, false) => vec![response(model, answer, "completed").to_string()],
        (ModelApi::Responses, true) => response_events(model, answer),
        (ModelApi::Chat, false) => vec![completion(model, answer).to_string()],
        (ModelApi::Chat, true) => completion_chunks(model, answer),
        (ModelApi::Gemini, false) => vec![generated(model, answer).to_string()],
        (ModelApi::Gemini, true) => vec![format!("data: {}\r\n\r\n", generated(model, answer))],
    }
}

fn named_event(data: &Value) -> String {
    format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap_or_default())
}

fn message(model: &str, answer: &ModelAnswer) -> Value {
    let stop = if answer.call.is_some() { "tool_use" } else { "end_turn" };
    let usage = json!({
        "input_tokens": INPUT_TOKENS - CACHED_TOKENS, "cache_read_input_tokens": CACHED_TOKENS,
        "cache_creation_input_tokens": 0, "output_tokens": OUTPUT_TOKENS,
    });
    json!({
        "id": format!("msg_{}", answer.number), "type": "message", "role": "assistant", "model": model,
        "content": message_blocks(answer), "stop_reason": stop, "stop_sequence": null, "usage": usage,
    })
}

fn message_blocks(answer: &ModelAnswer) -> Vec<Value> {
    let text = (!answer.text.is_empty()).then(|| json!({"type": "text", "text": answer.text}));
    let call = answer.call.as_ref().map(|call| {
        json!({
            "type": "tool_use", "id": format!("toolu_{}", answer.number), "name": call.name,
            "input": call.arguments,
        })
    });
    text.into_iter().chain(call).collect()
}

fn message_events(model: &str, answer: &ModelAnswer) -> Vec<String> {
    let mut whole = message(model, answer);
    let (stop, usage) = (whole["stop_reason"].take(), whole["usage"].clone());
    whole["content"] = json!([]);
    let mut events = vec![json!({"type": "message_start", "message": whole})];
    for (index, mut block) in message_blocks(answer).into_iter().enumerate() {
        let delta = if block["type"] == "text" {
            json!({"type": "text_delta", "text": std::mem::replace(&mut block["text"], json!(""))})
        } else {
            let input = std::mem::replace(&mut block["input"], json!({}));
            json!({"type": "input_json_delta", "partial_json": input.to_string()})
        };
        events.extend([
            json!({"type": "content_block_start", "index": index, "content_block": block}),
            json!({"type": "content_block_delta", "index": index, "delta": delta}),
            json!({"type": "content_block_stop", "index": index}),
        ]);
    }
    let delta = json!({"stop_reason": stop, "stop_sequence": null});
    events.extend([
        json!({"type": "message_delta", "delta": delta, "usage": usage}),
        json!({"type": "message_stop"}),
    ]);
    events.iter().map(named_event).collect()
}

fn response(model: &str, answer: &ModelAnswer, status: &str) -> Value {
    let is_complete = status == "completed";
    let usage = json!({
        "input_tokens": INPUT_TOKENS, "input_tokens_details": {"cached_tokens": CACHED_TOKENS},
        "output_tokens": OUTPUT_TOKENS, "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS,
    });
    json!({
        "id": format!("resp_{}", answer.number), "object": "response", "created_at": 1_780_000_000, "status": status,
        "model": model, "output": if is_complete { response_items(answer) } else { Vec::new() }, "error": null,
        "incomplete_details": null, "parallel_tool_calls": false, "tools": [],
        "usage": if is_complete { usage } else { Value::Null },
    })
}

fn response_items(answer: &ModelAnswer) -> Vec<Value> {
    let text = (!answer.text.is_empty()).then(|| {
        json!({
            "type": "message", "id": format!("item_{}", answer.number), "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": answer.text, "annotations": []}],
        })
    });
    let call = answer.call.as_ref().map(|call| {
        let mut item = json!({
            "type": "function_call", "id": format!("fc_{}", answer.number), "status": "completed",
            "call_id": format!("call_{}", answer.number), "name": call.name,
            "arguments": call.arguments.to_string(),
        });
        if !call.namespace.is_empty() {
            item["namespace"] = json!(call.namespace);
        }
        item
    });
    text.into_iter().chain(call).collect()
}

fn response_events(model: &str, answer: &ModelAnswer) -> Vec<String> {
    let mut events = vec![
        json!({"type": "response.created", "response": response(model, answer, "in_progress")}),
    ];
    for (index, item) in response_items(answer).into_iter().enumerate() {
        let mut begun = item.clone();
        begun["status"] = json!("in_progress");
        let delta = if item["type"] == "message" {
            begun["content"] = json!([]);
            json!({
                "type": "response.output_text.delta", "item_id": item["id"], "output_index": index,
                "content_index": 0, "delta": answer.text,
            })
        } else {
            begun["arguments"] = json!("");
            json!({
                "type": "response.function_call_arguments.delta", "item_id": item["id"], "output_index": index,
                "delta": item["arguments"],
            })
        };
        events.extend([
            json!({"type": "response.output_item.added", "output_index": index, "item": begun}),
            delta,
            json!({"type": "response.output_item.done", "output_index": index, "item": item}),
        ]);
    }
    events.push(
        json!({"type": "response.completed", "response": response(model, answer, "completed")}),
    );
    for (number, event) in events.iter_mut().enumerate() {
        event["sequence_number"] = json!(number);
    }
    events.iter().map(named_event).collect()
}

fn completion_usage() -> Value {
    json!({
        "prompt_tokens": INPUT_TOKENS, "completion_tokens": OUTPUT_TOKENS,
        "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS,
        "prompt_tokens_details": {"cached_tokens": CACHED_TOKENS},
    })
}

fn completion_message(answer: &ModelAnswer) -> Value {
    let mut message = json!({"role": "assistant", "content": answer.text});
    if let Some(call) = &answer.call {
        message["tool_calls"] = json!([{
            "index": 0, "id": format!("call_{}", answer.number), "type": "function",
            "function": {"name": call.name, "arguments": call.arguments.to_string()},
        }]);
    }
    message
}

fn finish_reason(answer: &ModelAnswer) -> &'static str {
    if answer.call.is_some() { "tool_calls" } else { "stop" }
}

fn completion(model: &str, answer: &ModelAnswer) -> Value {
    json!({
        "id": format!("chatcmpl-{}", answer.number), "object": "chat.completion", "created": 1_780_000_000,
        "model": model, "usage": completion_usage(),
        "choices": [{"index": 0, "message": completion_message(answer), "finish_reason": finish_reason(answer)}],
    })
}

fn completion_chunks(model: &str, answer: &ModelAnswer) -> Vec<String> {
    let chunk = |choices: Value| {
        json!({
            "id": format!("chatcmpl-{}", answer.number), "object": "chat.completion.chunk",
            "created": 1_780_000_000, "model": model, "choices": choices,
        })
    };
    let message = completion_message(answer);
    let begun = chunk(json!([{"index": 0, "delta": message, "finish_reason": null}]));
    let ended = chunk(json!([{"index": 0, "delta": {}, "finish_reason": finish_reason(answer)}]));
    let mut usage = chunk(json!([]));
    usage["usage"] = completion_usage();
    let data = [begun, ended, usage].map(|data| format!("data: {data}\n\n"));
    data.into_iter().chain(["data: [DONE]\n\n".to_owned()]).collect()
}

fn generated(model: &str, answer: &ModelAnswer) -> Value {
    let text = (!answer.text.is_empty()).then(|| json!({"text": answer.text}));
    let call = answer
        .call
        .as_ref()
        .map(|call| json!({"functionCall": {"name": call.name, "args": call.arguments}}));
    let parts: Vec<Value> = text.into_iter().chain(call).collect();
    json!({
        "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {
            "promptTokenCount": INPUT_TOKENS, "candidatesTokenCount": OUTPUT_TOKENS,
            "totalTokenCount": INPUT_TOKENS + OUTPUT_TOKENS, "cachedContentTokenCount": CACHED_TOKENS,
        },
        "modelVersion": model, "responseId": format!("resp_{}", answer.number),
    })
}
