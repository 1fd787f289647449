//! The built-in runtimes, and what they make of what their programs say.

use std::sync::Arc;

use gt_core::runtime::{Command, ExitZero, InvocationValues, Runtime};
use gt_core::schedule::Money;
use gt_core::{Prefix, Rig, RigSlug, Timestamp};

use super::*;
use gt_town::{Actor, SystemClock, settings};

fn town() -> Town {
    let actor = Actor { name: "ann".to_owned(), owner: String::new() };
    Town::in_memory(actor, Arc::new(SystemClock), Arc::new(())).unwrap()
}

fn runtime(name: &str) -> Runtime {
    get(&town(), name).unwrap().runtime
}

#[test]
fn every_built_in_runtime_can_be_used() {
    let values = InvocationValues {
        prompt: "Do it",
        prompt_file: "/p",
        gt: "gt",
        ..InvocationValues::default()
    };
    let all = list(&town()).unwrap();
    let names: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
    let expected = [
        "aider",
        "amp",
        "claude",
        "cline",
        "codex",
        "copilot",
        "crush",
        "cursor-agent",
        "custom",
        "gemini",
        "goose",
        "opencode",
        "pi",
        "qwen",
        "scripted",
    ];
    assert_eq!(names, expected);
    for (name, known) in all {
        let known = known.unwrap();
        assert_eq!(known.origin, RuntimeOrigin::BuiltIn);
        let runtime = known.runtime.for_rig(Some("work"));
        assert!(!runtime.description.is_empty(), "{name}");
        assert!(!runtime.is_interactive, "{name} works wherever it is started");
        let is_agent = !matches!(name.as_str(), "custom" | "scripted");
        // An agent is assumed to take 1 GB of memory until a measurement is known.
        assert_eq!(runtime.memory_mb, if is_agent { 1024 } else { 0 }, "{name}");
        assert!(!is_agent || !runtime.limits.is_empty(), "{name}");
        let given = runtime.invocation(&values).unwrap();
        let is_told = given.stdin.is_some()
            || given.prompt_file.is_some()
            || given.argv.iter().any(|word| word == "Do it");
        assert!(is_told, "{name} gets its prompt");
    }
    assert_eq!(runtime("custom").command, Command::OfRig);
    assert_eq!(runtime("custom").exit_zero, ExitZero::Done);
}

#[test]
fn limits_are_found_in_what_programs_say() {
    let now = Timestamp::parse("2026-05-31T12:00:00Z").unwrap();
    let zones = Zones {
        local: TimeZone::UTC,
        // Without daylight saving, and without asking the machine.
        named: &|name| (name == "Asia/Dhaka").then(|| TimeZone::fixed(jiff::tz::offset(6))),
    };
    for (name, said, until) in [
        ("claude", "Claude AI usage limit reached|1780232400", "2026-05-31T13:00:00Z"),
        (
            "claude",
            "Claude usage limit reached. Your limit will reset at 9pm (Asia/Dhaka).",
            "2026-05-31T15:00:00Z",
        ),
        ("claude", "You've hit your limit · resets 1:30am (Asia/Dhaka)", "2026-05-31T19:30:00Z"),
        (
            "claude",
            "You’ve hit your session limit · resets 12:50am (Asia/Dhaka)",
            "2026-05-31T18:50:00Z",
        ),
        (
            "claude",
            "You've hit your limit · resets Jun 2 at 9pm (Asia/Dhaka)",
            "2026-06-02T15:00:00Z",
        ),
        (
            "claude",
            "You’ve hit your limit for Claude messages. Limits will reset at 9:30 PM.  View your usage details.",
            "2026-05-31T21:30:00Z",
        ),
        ("claude", "5-hour limit reached ∙ resets 3pm", "2026-05-31T15:00:00Z"),
        (
            "claude",
            r#"{"type":"result","is_error":true,"result":"You've hit your weekly limit · resets 3pm (UTC)"}"#,
            "2026-05-31T15:00:00Z",
        ),
        (
            "claude",
            r#"429 {"type":"rate_limit_error","message":"This request would exceed your account's rate limit. Please try again later."}"#,
            "2026-05-31T12:05:00Z",
        ),
        (
            "codex",
            "■ You've hit your usage limit. Upgrade to Pro (https://openai.com/chatgpt/pricing) or try again in 5 days 22 hours 11\nminutes.",
            "2026-06-06T10:11:00Z",
        ),
        (
            "codex",
            "You've hit your usage limit. Upgrade to Plus to continue using Codex (https://chatgpt.com/explore/plus), or try again at Jun 5th, 2026 8:19 PM.",
            "2026-06-05T20:19:00Z",
        ),
        (
            "codex",
            r#"{"type":"usage_limit_reached","message":"The usage limit has been reached","resets_at":1780232400,"resets_in_seconds":3600}"#,
            "2026-05-31T13:00:00Z",
        ),
        ("codex", "You've hit your usage limit.", "2026-05-31T13:00:00Z"),
        (
            "codex",
            "ERROR: Quota exceeded. Check your plan and billing details.",
            "2026-05-31T13:00:00Z",
        ),
        (
            "claude",
            r#"{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1780232400,"rateLimitType":"five_hour"}}"#,
            "2026-05-31T13:00:00Z",
        ),
        (
            "claude",
            "API Error: 429 This request would exceed your organization's rate limit.",
            "2026-05-31T12:05:00Z",
        ),
        (
            "claude",
            r#"{"type":"assistant","error":"billing_error","content":"Credit balance is too low"}"#,
            "2026-05-31T13:00:00Z",
        ),
        (
            "gemini",
            "[API Error: You have exhausted your daily quota on this model.]",
            "2026-05-31T13:00:00Z",
        ),
        (
            "cline",
            "You exceeded your current quota. Rate limit reached; please try again in 75s.",
            "2026-05-31T12:01:15Z",
        ),
        (
            "gemini",
            "You have exhausted your capacity on this model. Your quota will reset after 5h19m34s.",
            "2026-05-31T17:19:34Z",
        ),
        (
            "gemini",
            "You exceeded your current quota. Please retry in 39.5s.",
            "2026-05-31T12:00:39.5Z",
        ),
        (
            "gemini",
            r#""status": "RESOURCE_EXHAUSTED", "retryDelay": "90s""#,
            "2026-05-31T12:01:30Z",
        ),
        ("gemini", "⚡ You have reached your daily quota limit.", "2026-05-31T13:00:00Z"),
        (
            "aider",
            "litellm.RateLimitError: Rate limit reached for gpt-4o. Please try again in 20s.",
            "2026-05-31T12:00:20Z",
        ),
        ("opencode", "AI_APICallError: rate limit; retry-after: 60", "2026-05-31T12:01:00Z"),
        (
            "goose",
            "You exceeded your current quota, please check your plan",
            "2026-05-31T13:00:00Z",
        ),
        (
            "goose",
            r#"Body: String(Owned("Request failed, retrying (1/3): RateLimitExceeded { details: \"Slow down\", retry_delay: Some(90s) }"))"#,
            "2026-05-31T12:01:30Z",
        ),
        (
            "qwen",
            "[qwen-code] Waiting for API capacity... attempt 1, retry in 3570s\n\
             [qwen-code] Waiting for API capacity... attempt 1, retry in 3540s",
            "2026-05-31T12:59:00Z",
        ),
        (
            "pi",
            "[log_3f8e20] post https://api.openai.com/v1/chat/completions failed with status 429 in 159ms - retrying, 2 attempts remaining",
            "2026-05-31T12:15:00Z",
        ),
        ("scripted", "Usage limit reached; try again in 1h30m", "2026-05-31T13:30:00Z"),
    ] {
        let found = runtime(name).limit_in(said, now, &zones);
        let found = found.unwrap_or_else(|| panic!("{name}: {said}"));
        assert_eq!(found.at.to_string(), until, "{name}: {said}");
    }
}

#[test]
fn ordinary_output_is_no_limit() {
    for said in [
        "All 34 tests pass.\nCommitted as 1a2b3c.",
        "error: connection refused (os error 111)",
        "Increase the recursion limit with #![recursion_limit = \"256\"]",
        "I set the limit of retries to 3 and the cache resets on start.",
        "[log_538f42] post https://api.openai.com/v1/chat/completions succeeded with status 200 in 653ms",
        "The test for status 429 failed with status 1.",
    ] {
        for name in [
            "claude",
            "codex",
            "gemini",
            "copilot",
            "opencode",
            "amp",
            "cursor-agent",
            "aider",
            "goose",
            "qwen",
            "pi",
            "cline",
            "crush",
        ] {
            let found = limit_in(&runtime(name), said, Timestamp::from_nanos(0));
            assert_eq!(found, None, "{name}: {said}");
        }
    }
}

#[test]
fn the_limits_of_real_agents_are_found_in_their_events() {
    let now = Timestamp::from_nanos(1_794_945_320_000_000_000);
    for (name, output, is_exact) in [
        ("claude", include_str!("../../../transcripts/tests/fixtures/claude_limit.jsonl"), true),
        ("codex", include_str!("../../../transcripts/tests/fixtures/codex_limit.jsonl"), true),
        ("gemini", include_str!("../../../transcripts/tests/fixtures/gemini_limit.jsonl"), false),
    ] {
        let found = limit_in(&runtime(name), output, now);
        let found = found.unwrap_or_else(|| panic!("{name} reaches a limit"));
        assert_eq!(found.is_exact, is_exact, "{name}: {found:?}");
        assert!(found.at <= now.plus(std::time::Duration::from_hours(24)), "{name}: {found:?}");
    }
    for (name, output) in [
        ("claude", include_str!("../../../transcripts/tests/fixtures/claude_fail.jsonl")),
        ("codex", include_str!("../../../transcripts/tests/fixtures/codex_fail.jsonl")),
        (
            "claude",
            r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t","content":"Claude usage limit reached|1794948884"}]}}"#,
        ),
    ] {
        assert_eq!(limit_in(&runtime(name), output, now), None, "{name}");
    }
}

#[test]
fn usage_is_found_in_what_programs_print() {
    for (name, output, tokens, cost) in [
        ("copilot", "Changes +1 -0\nTokens ↑ 2.0k (600 cached) • ↓ 100\n", 2_100, None),
        (
            "aider",
            "Tokens: 2.0k sent, 100 received. Cost: $0.01 message, $0.01 session.\nTokens: 3k sent, 1k cache hit, 50 \
             received. Cost: $0.02 message, $0.03 session.\n",
            5_150,
            Some(30_000),
        ),
        (
            "cline",
            r#"{"type":"run_result","usage":{"inputTokens":1200,"outputTokens":34,"cacheReadTokens":0,"totalCost":0.25}}"#,
            1_234,
            Some(250_000),
        ),
        (
            "pi",
            r#"{"type":"message_end","message":{"role":"user","content":[]}}
{"type":"message_end","message":{"role":"assistant","usage":{"input":100,"output":20,"cacheRead":3,"cacheWrite":4,"totalTokens":127,"cost":{"input":0.01,"total":0.02}}}}
{"type":"turn_end","message":{"role":"assistant","usage":{"input":100,"output":20,"cacheRead":3,"cacheWrite":4,"cost":{"total":0.02}}}}
{"type":"message_end","message":{"role":"assistant","usage":{"input":200,"output":1,"cacheRead":0,"cacheWrite":0,"cost":{"input":0.01,"total":0.03}}}}"#,
            328,
            Some(50_000),
        ),
    ] {
        let told = runtime(name).usage.of_session(output);
        assert_eq!((told.tokens, told.cost), (Some(tokens), cost.map(Money)), "{name}");
    }
}

#[test]
fn the_runtime_of_a_rig_is_found() {
    let town = town();
    let (slug, prefix) = (RigSlug::parse("web").unwrap(), Prefix::parse("wb").unwrap());
    let rig = Rig::new(slug, "web", prefix, "web", town.now());
    town.write(|writer| Ok(writer.insert_rig(&rig)?)).unwrap();
    let chosen = |asked| resolve(&town, &town.scheduler_settings().unwrap(), &rig.slug, asked);
    let found = |asked| chosen(asked).unwrap();

    assert_eq!(found(None).name.as_str(), "claude");
    settings::set(&town, "rig.web.command", "work {bead}", crate::runtimes::check_name).unwrap();
    assert_eq!(found(None).name.as_str(), "custom");
    assert_eq!(found(None).command, Command::Own("work {bead}".to_owned()));
    settings::set(&town, "worker.runtime", "codex", crate::runtimes::check_name).unwrap();
    assert_eq!(found(None).name.as_str(), "codex");
    settings::set(&town, "rig.web.runtime", "gemini", crate::runtimes::check_name).unwrap();
    assert_eq!(found(None).name.as_str(), "gemini");
    assert_eq!(found(Some("scripted")).name.as_str(), "scripted");

    let refused = chosen(Some("cluade")).unwrap_err().to_string();
    assert!(refused.contains("did you mean claude?"), "{refused}");
    let refused = settings::set(&town, "worker.runtime", "nothing", crate::runtimes::check_name)
        .unwrap_err()
        .to_string();
    assert!(refused.contains("runtime \"nothing\" not found"), "{refused}");
}
