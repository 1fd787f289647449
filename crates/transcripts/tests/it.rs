//! What agents print, and what is read of it.

use std::time::Duration;

use gt_core::Timestamp;
use gt_core::cost::UsageWindow;
use gt_core::runtime::TranscriptFormat;
use gt_core::schedule::Money;
use gt_transcripts::{
    CodexSession, LINE_BYTES_MAX, ModelUsage, ToolUse, TranscriptEvent, TranscriptKind,
    TranscriptParser, UsageScope, last_words, service_words,
};
use proptest::prelude::*;

const FORMATS: [TranscriptFormat; 6] = [
    TranscriptFormat::Claude,
    TranscriptFormat::Codex,
    TranscriptFormat::Gemini,
    TranscriptFormat::Goose,
    TranscriptFormat::Opencode,
    TranscriptFormat::Plain,
];

fn events(format: TranscriptFormat, output: &[u8]) -> Vec<TranscriptEvent> {
    let mut parser = TranscriptParser::new(format);
    let mut events = parser.read(output);
    events.extend(parser.finish());
    events
}

fn kinds(format: TranscriptFormat, output: &str) -> Vec<TranscriptKind> {
    events(format, output.as_bytes()).into_iter().map(|event| event.kind).collect()
}

fn call(id: &str, tool: &str, about: &str) -> TranscriptKind {
    let (id, tool, about) = (id.to_owned(), tool.to_owned(), about.to_owned());
    TranscriptKind::ToolCall(ToolUse { id, tool, about, change: None })
}

fn answer(call: &str, is_error: bool, text: &str) -> TranscriptKind {
    TranscriptKind::ToolResult { call: call.to_owned(), is_error, text: text.to_owned() }
}

fn text(text: &str) -> TranscriptKind {
    TranscriptKind::Text(text.to_owned())
}

fn note(text: &str) -> TranscriptKind {
    TranscriptKind::Note(text.to_owned())
}

#[test]
fn an_event_with_half_a_character_or_broken_bytes_counts() {
    for half in [r"\ud83d", r"\ude00\ud83d", "\u{fffd}"] {
        let line = format!(
            r#"{{"type":"result","result":"Done {half}.","total_cost_usd":0.5,"usage":{{"input_tokens":7}}}}"#
        );
        // The last one stands for bytes that are no text.
        let line: Vec<u8> = match line.split_once('\u{fffd}') {
            Some((before, after)) => [before.as_bytes(), b"\xff", after.as_bytes()].concat(),
            None => line.into_bytes(),
        };
        let told = events(TranscriptFormat::Claude, &line);
        let [usage, result] = told.as_slice() else { panic!("{told:?}") };
        let TranscriptKind::Usage(usage) = &usage.kind else { panic!("{told:?}") };
        assert_eq!((usage.input, usage.cost), (7, Some(Money(500_000))));
        let TranscriptKind::Result { text, .. } = &result.kind else { panic!("{told:?}") };
        assert!(text.starts_with("Done \u{fffd}") && text.ends_with('.'), "{text}");
    }
    // It is read only if it is one event.
    let cut = r#"{"type":"assistant","text":"\ud83d"#;
    assert_eq!(kinds(TranscriptFormat::Claude, &format!("{cut}\n")), [text(cut)]);
}

#[test]
fn an_amount_that_is_none_is_told() {
    for wrong in ["-5", "\"much\"", "1e+300"] {
        let line = format!(
            r#"{{"type":"result","result":"Done.","total_cost_usd":{wrong},"usage":{{}}}}"#
        );
        let told = kinds(TranscriptFormat::Claude, &line);
        let expected =
            note(&format!("total_cost_usd is {wrong}, which is no amount; it is left out"));
        assert!(told.contains(&expected), "{told:?}");
        let costs = told.iter().filter_map(|kind| match kind {
            TranscriptKind::Usage(usage) => usage.cost,
            _ => None,
        });
        assert_eq!(costs.count(), 0);
    }
}

#[test]
fn claude_says_what_it_does_and_what_it_used() {
    let output = r#"a warning of node
{"type":"system","subtype":"init","session_id":"s","model":"claude-x"}
{"type":"assistant","message":{"content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"I look."},{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"git\n  status"}}]}}
{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1","is_error":true,"content":[{"type":"text","text":"not a repository"}]}]}}
{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t2","name":"Edit","input":{"file_path":"/a/b","old_string":"x","new_string":"y"}}]}}
{"type":"rate_limit_event","rate_limit_info":{"status":"allowed","resetsAt":1780232400}}
{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1780232400,"rateLimitType":"five_hour"}}
{"type":"result","subtype":"success","is_error":false,"result":"Done.","total_cost_usd":0.25,"modelUsage":{"claude-x":{"inputTokens":10,"outputTokens":"20","cacheReadInputTokens":-3,"cacheCreationInputTokens":4,"costUSD":0.25}}}
{"type":"of tomorrow","new":1}
{"type":"of tomorrow","new":2}
"#;
    let edit = ToolUse {
        id: "t2".to_owned(),
        tool: "Edit".to_owned(),
        about: "/a/b".to_owned(),
        change: Some(("x".to_owned(), "y".to_owned())),
    };
    let usage = ModelUsage {
        model: "claude-x".to_owned(),
        input: 10,
        output: 20,
        cache_read: 0,
        cache_write: 4,
        reasoning: 0,
        cost: Some(Money(250_000)),
        scope: UsageScope::Session,
    };
    let until = Some(Timestamp::parse("2026-05-31T13:00:00Z").unwrap());
    let window = Some(Duration::from_hours(5));
    assert_eq!(
        kinds(TranscriptFormat::Claude, output),
        [
            text("a warning of node"),
            TranscriptKind::Thinking("hm".to_owned()),
            text("I look."),
            call("t1", "Bash", "git status"),
            answer("t1", true, "not a repository"),
            TranscriptKind::ToolCall(edit),
            TranscriptKind::Limit { until, window, text: "five hour".to_owned() },
            note("cacheReadInputTokens is -3, which is no number of tokens; it counts as 0"),
            TranscriptKind::Usage(usage),
            TranscriptKind::Result { is_error: false, text: "Done.".to_owned() },
            note("the event \"of tomorrow\" is not known; all of them are left out"),
        ]
    );
}

#[test]
fn codex_says_what_it_does_and_what_it_used() {
    let output = r#"{"type":"thread.started","thread_id":"x"}
{"type":"item.completed","item":{"id":"0","type":"reasoning","text":"hm"}}
{"type":"item.started","item":{"id":"1","type":"command_execution","command":"ls","status":"in_progress"}}
{"type":"item.completed","item":{"id":"1","type":"command_execution","command":"ls","aggregated_output":"a\n","exit_code":0}}
{"type":"item.completed","item":{"id":"2","type":"file_change","changes":[{"path":"a","kind":"update"}]}}
{"type":"item.completed","item":{"id":"3","type":"agent_message","text":"Done."}}
{"type":"turn.completed","usage":{"input_tokens":100,"cached_input_tokens":60,"output_tokens":7}}
{"type":"turn.failed","error":{"message":"limit"}}
"#;
    let usage = ModelUsage { input: 40, output: 7, cache_read: 60, ..ModelUsage::default() };
    assert_eq!(
        kinds(TranscriptFormat::Codex, output),
        [
            TranscriptKind::Session("x".to_owned()),
            TranscriptKind::Thinking("hm".to_owned()),
            call("1", "shell", "ls"),
            answer("1", false, "a\n"),
            call("2", "update", "a"),
            text("Done."),
            TranscriptKind::Usage(usage),
            TranscriptKind::Result { is_error: true, text: "limit".to_owned() },
        ]
    );
}

#[test]
fn a_line_that_never_ends_takes_no_memory_and_is_told() {
    let mut parser = TranscriptParser::new(TranscriptFormat::Claude);
    let piece = vec![b'x'; 1024 * 1024];
    for _ in 0..=LINE_BYTES_MAX / piece.len() {
        assert_eq!(parser.read(&piece), []);
    }
    let events = parser.read(b"\n{\"type\":\"result\",\"result\":\"ok\"}\n");
    assert!(matches!(&events[0].kind, TranscriptKind::Note(text) if text.contains("left out")));
    assert!(matches!(&events[2].kind, TranscriptKind::Result { .. }), "{events:?}");
}

#[test]
fn an_output_that_is_cut_says_so() {
    let cut = r#"{"type":"result","result":"o"#;
    let told = format!("the output ends in the middle of an event: {cut}");
    assert_eq!(kinds(TranscriptFormat::Claude, cut), [note(&told)]);
    assert_eq!(kinds(TranscriptFormat::Plain, cut), [text(cut)]);
}

#[test]
fn pieces_of_a_message_are_one_event() {
    let output = r#"{"type":"message","role":"assistant","content":"I lo","delta":true}
{"type":"message","role":"assistant","content":"ok.","delta":true}
{"type":"tool_use","tool_name":"ls","tool_id":"1","parameters":{}}
{"type":"message","role":"assistant","content":"Done.","delta":true}
"#;
    let expected = [text("I look."), call("1", "ls", ""), text("Done.")];
    assert_eq!(kinds(TranscriptFormat::Gemini, output), expected);
}

#[test]
fn a_command_is_shown_without_its_shell() {
    for (command, shown) in [
        ("/bin/bash -c 'a  b && c'", "a b && c"),
        (r#"bash -lc \"cat > 'x'\""#, "cat > 'x'"),
        ("cargo test -p x", "cargo test -p x"),
        ("echo 'it", "echo 'it"),
    ] {
        let line = format!(
            r#"{{"type":"item.started","item":{{"id":"1","type":"command_execution","command":"{command}"}}}}"#
        );
        assert_eq!(kinds(TranscriptFormat::Codex, &line), [call("1", "shell", shown)]);
    }
}

#[test]
fn last_words_are_the_last_message_and_not_the_last_line() {
    let output = r#"st of a long event"}
{"type":"assistant","message":{"content":[{"type":"text","text":"I give up."}]}}
{"type":"assistant","message":{"content":[{"type":"tool_use","id":"1","name":"Bash","input":{}}]}}
{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"1","content":"x"}]}}
{"type":"result","is_error":false,"result":""}
{"type":"assis"#;
    assert_eq!(last_words(TranscriptFormat::Claude, output), "I give up.");
    assert_eq!(last_words(TranscriptFormat::Plain, output), output);
    assert_eq!(last_words(TranscriptFormat::Codex, r#"x":1}"#), "");
    let failed = r#"{"type":"turn.failed","error":{"message":"no such model"}}"#;
    assert_eq!(last_words(TranscriptFormat::Codex, failed), "no such model");
}

proptest! {
    #[test]
    fn pieces_of_any_size_have_the_same_events(
        lines in prop::collection::vec(line(), 0..8),
        size in 1_usize..40,
    ) {
        let output = lines.concat();
        for format in FORMATS {
            let mut parser = TranscriptParser::new(format);
            let mut pieces: Vec<_> = output.chunks(size).flat_map(|piece| parser.read(piece)).collect();
            pieces.extend(parser.finish());
            prop_assert_eq!(&pieces, &events(format, &output));
        }
    }
}

/// A line of an agent, with values of any kind in places that are read, or any bytes.
fn line() -> impl Strategy<Value = Vec<u8>> {
    let value = prop_oneof![
        Just("null".to_owned()),
        Just("-1".to_owned()),
        Just("1e300".to_owned()),
        Just("\"12\"".to_owned()),
        Just("[{\"type\":\"text\",\"text\":1},{\"type\":\"tool_use\",\"input\":[]}]".to_owned()),
        Just("{\"content\":[{\"type\":\"tool_result\"}],\"tokens\":{\"cache\":9}}".to_owned()),
    ];
    let key = prop::sample::select(vec![
        "message",
        "item",
        "usage",
        "modelUsage",
        "stats",
        "part",
        "error",
        "result",
        "content",
        "rate_limit_info",
        "timestamp",
        "total_cost_usd",
    ]);
    let kind = prop::sample::select(vec![
        "assistant",
        "user",
        "result",
        "rate_limit_event",
        "item.started",
        "item.completed",
        "turn.completed",
        "turn.failed",
        "error",
        "message",
        "tool_use",
        "tool_result",
        "text",
        "step_finish",
    ]);
    let event = (kind, prop::collection::vec((key, value), 0..5)).prop_map(|(kind, fields)| {
        let fields = fields.iter().map(|(key, value)| format!(",\"{key}\":{value}"));
        let fields = fields.collect::<Vec<_>>().concat();
        format!("{{\"type\":\"{kind}\"{fields}}}\n").into_bytes()
    });
    prop_oneof![event, prop::collection::vec(any::<u8>(), 0..30)]
}

/// The outputs of real agents against a fake model, each with the events that are read of it.
const RECORDED: [(&str, TranscriptFormat); 13] = [
    ("claude_work", TranscriptFormat::Claude),
    ("claude_fail", TranscriptFormat::Claude),
    ("claude_limit", TranscriptFormat::Claude),
    ("codex_work", TranscriptFormat::Codex),
    ("codex_fail", TranscriptFormat::Codex),
    ("codex_limit", TranscriptFormat::Codex),
    ("gemini_work", TranscriptFormat::Gemini),
    ("gemini_limit", TranscriptFormat::Gemini),
    ("goose_work", TranscriptFormat::Goose),
    ("goose_fail", TranscriptFormat::Goose),
    ("opencode_work", TranscriptFormat::Opencode),
    ("opencode_fail", TranscriptFormat::Opencode),
    ("qwen_work", TranscriptFormat::Claude),
];

#[test]
fn recorded_outputs_of_agents_are_read() {
    let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    for (name, format) in RECORDED {
        let output = std::fs::read(directory.join(format!("{name}.jsonl"))).unwrap();
        let read = events(format, &output).into_iter().map(|event| format!("{event:?}\n"));
        let read = read.collect::<Vec<_>>().concat();
        let path = directory.join(format!("{name}.events"));
        if std::env::var_os("UPDATE_REFERENCES").is_some() {
            std::fs::write(&path, &read).unwrap();
        }
        let expected = std::fs::read_to_string(&path).unwrap();
        assert_eq!(read, expected, "{name}; UPDATE_REFERENCES=1 writes what is read");
    }
}

#[test]
fn a_session_file_of_codex_tells_usage_and_windows() {
    let mut session = CodexSession::default();
    assert_eq!((session.usage(), session.windows()), (None, &[][..]));
    for line in include_str!("fixtures/codex_session.jsonl").lines() {
        session.read_line(line.as_bytes());
    }

    let usage = ModelUsage {
        model: "gpt-5-codex".to_owned(),
        input: 400,
        output: 60,
        cache_read: 600,
        reasoning: 40,
        scope: UsageScope::Session,
        ..ModelUsage::default()
    };
    assert_eq!(session.usage(), Some(usage.clone()));
    let told: Vec<String> = session
        .windows()
        .iter()
        .map(|seen| {
            let UsageWindow { length, resets_at, .. } = &seen.window;
            let hours = length.map(|length| length.as_secs() / 3600);
            format!("{} {hours:?} {}", seen.window, resets_at.unwrap())
        })
        .collect();
    let expected = [
        "secondary: 40 % used Some(168) 2026-11-17T21:13:20Z",
        "primary: 96 % used Some(5) 2026-11-17T12:00:01Z",
    ];
    assert_eq!(told, expected);

    // A session that counts anew has used no less.
    let anew = r#"{"type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":5}}}}"#;
    session.read_line(anew.as_bytes());
    session.read_line(b"{\"type\":\"event_msg\",\"payload\":7}");
    session.read_line(b"no JSON");
    assert_eq!(session.usage(), Some(usage));
}

#[test]
fn claude_tells_how_much_of_its_windows_is_used() {
    let line = r#"{"type":"rate_limit_event","rate_limit_info":{"status":"allowed_warning","resetsAt":1794950000,"rateLimitType":"seven_day","utilization":0.86,"unifiedWindows":{"five_hour":{"utilization":0.07,"resetsAt":1794948884},"seven_day":{"utilization":0.86,"resetsAt":1794950000}}}}
{"type":"rate_limit_event","rate_limit_info":{"status":"allowed_warning","resetsAt":1794948884,"rateLimitType":"five_hour"}}
{"type":"rate_limit_event","rate_limit_info":{"status":"allowed","isUsingOverage":false}}
{"type":"rate_limit_event","rate_limit_info":{"status":"allowed_warning","rateLimitType":"bad name","utilization":-1}}
"#;
    let window = |name: &str, used_percent, resets_at: i64, hours| {
        TranscriptKind::Window(UsageWindow {
            name: name.to_owned(),
            used_percent,
            length: Some(Duration::from_hours(hours)),
            resets_at: Some(Timestamp::from_nanos(resets_at * 1_000_000_000)),
        })
    };
    let expected = [
        window("five_hour", Some(7), 1_794_948_884, 5),
        window("seven_day", Some(86), 1_794_950_000, 7 * 24),
        window("five_hour", None, 1_794_948_884, 5),
    ];
    assert_eq!(kinds(TranscriptFormat::Claude, line), expected);
}

#[test]
fn every_beginning_of_a_recorded_output_is_read() {
    let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    for (name, format) in RECORDED {
        let output = std::fs::read(directory.join(format!("{name}.jsonl"))).unwrap();
        for end in (0..output.len()).step_by(7) {
            let events = events(format, &output[..end]);
            let is_cut =
                matches!(output[..end].rsplit(|byte| *byte == b'\n').next(), Some([b'{', _, ..]));
            let is_told = matches!(
                events.last().map(|event| &event.kind),
                Some(TranscriptKind::Note(text)) if text.contains("in the middle")
            );
            let is_whole = end < output.len() && output[end] == b'\n';
            assert!(!is_cut || is_told || is_whole, "{name} cut at {end}");
        }
    }
}

#[test]
fn only_the_words_of_the_service_tell_of_a_limit() {
    let limited =
        r#"{"type":"error","message":"You've hit your usage limit. Try again at 8:54 PM."}"#;
    let printed = r#"{"type":"item.completed","item":{"id":"1","type":"command_execution","aggregated_output":"You've hit your usage limit.","exit_code":1}}"#;
    let said = r#"{"type":"item.completed","item":{"id":"2","type":"agent_message","text":"You've hit your usage limit."}}"#;
    let call =
        r#"{"type":"item.started","item":{"id":"3","type":"command_execution","command":"ls"}}"#;
    let words = |lines: &[&str]| service_words(TranscriptFormat::Codex, &lines.join("\n")).text;
    assert!(words(&[printed, limited]).contains("8:54 PM"));
    assert_eq!(words(&[printed, said]), "");
    assert_eq!(words(&[limited, call]), "", "an agent that calls a tool goes on");
    assert_eq!(words(&["ERROR usage limit reached"]), "ERROR usage limit reached\n");
}

#[test]
fn the_event_of_a_limit_that_says_its_end_counts() {
    let output = include_str!("fixtures/claude_limit.jsonl");
    let limit = service_words(TranscriptFormat::Claude, output).limit.unwrap();
    assert_eq!(limit.until, Some(Timestamp::from_nanos(1_794_948_884_000_000_000)));
    assert_eq!(limit.window, Some(Duration::from_hours(5)));
}
