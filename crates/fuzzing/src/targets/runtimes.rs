//! Files about runtimes, the messages of programs about limits, and scripts.

use std::sync::LazyLock;

use gt_core::Timestamp;
use gt_core::runtime::script::{Script, script_in};
use gt_core::runtime::{
    InvocationValues, LIMIT_WAIT_MAX, Runtime, RuntimeLayer, RuntimeName, Zones,
};
use gt_records::{read_runtime, set_runtime_key};
use jiff::tz::TimeZone;

use crate::promise::{accepted, reads_back, tells_on_one_line, text, two_texts};

pub(super) const KEYS: &[&str] = &[
    "extends = \"claude\"\n",
    "command = \"a {prompt}\"\n",
    "ignore = [\".a*\"]\n",
    "login = {variables = [\"A\"], files = [\".a\"]}\n",
    "prompt = \"argument\"\n",
    "prompt = \"paste\"\n",
    "interactive = true\n",
    "[paste]\nready = \"y\"\nconfirm = \"x\"\nbytes_max = 9\n",
    "[environment]\nA = \"1\"\n",
    "account_flag = \"--a\"\n",
    "exit_zero = \"ask\"\n",
    "memory_mb = 1\n",
    "[[limit]]\npattern = 'x(?<until>.)'\nwait = \"5m\"\n",
];

/// A file about a runtime; and one key of it that is changed.
pub(super) fn file(input: &[u8]) {
    let Some(given) = text(input) else { return };
    let read = read_runtime(given, "fuzz.toml");
    read.problems.iter().chain(&read.warnings).for_each(tells_on_one_line);
    if let Some(runtime) = accepted(read.layer.finish(name())) {
        let values = InvocationValues {
            prompt: "Do it",
            prompt_file: "/p",
            gt: "gt",
            ..InvocationValues::default()
        };
        if let Some(invocation) = accepted(runtime.invocation(&values)) {
            assert!(!invocation.argv.is_empty());
        }
    }
    if let Some((file, value)) = two_texts(input) {
        for key in ["command", "environment.A", "paste.confirm", "memory_mb"] {
            let Some(changed) = accepted(set_runtime_key(file, key, value)) else { continue };
            let again = read_runtime(&changed, "fuzz.toml");
            if key == "environment.A" && again.problems.is_empty() {
                let mut set = again.layer.environment.iter();
                assert!(set.any(|(name, now)| name == "A" && now == value), "{changed:?}");
            }
        }
    }
}

pub(super) const LIMITS: &[&str] = &[
    "until 9:30 pm (UTC)",
    "until Jun 2nd, 2026 ",
    "until tomorrow at ",
    "until Monday ",
    "until 1780232400",
    "until 2026-06-01T10:00:00Z",
    "after 5 days 22 hours ",
    "after 3h14m",
    "\u{1b}[31m",
];

static SPEAKER: LazyLock<Runtime> = LazyLock::new(|| {
    let file = "command = 'a'\n[[limit]]\npattern = 'until (?<until>.)'\n[[limit]]\npattern = 'after (?<after>.)'\n";
    let layer: RuntimeLayer = read_runtime(file, "fuzz.toml").layer;
    layer.finish(name()).expect("it says what it must")
});

fn name() -> RuntimeName {
    RuntimeName::parse("fuzz").expect("a plain name")
}

/// The end of a program's output.
pub(super) fn limit(input: &[u8]) {
    let output = String::from_utf8_lossy(input);
    let zones = Zones { local: TimeZone::UTC, named: &|_| None };
    for nanos in [0, 1_780_228_800_000_000_000, i64::MAX / 2] {
        let now = Timestamp::from_nanos(nanos);
        if let Some(found) = SPEAKER.limit_in(&output, now, &zones) {
            assert!(found.at > now && found.at <= now.plus(LIMIT_WAIT_MAX));
            tells_on_one_line(&found.said);
        }
    }
}

pub(super) const INSTRUCTIONS: &[&str] = &[
    "say x\n",
    "work 5\n",
    "edit 'a b' c\\nd\n",
    "append a b\n",
    "commit m\n",
    "done escalated\n",
    "step s\n",
    "run sh -c 'x'\n",
    "fail 3\n",
    "limit 5m\n",
    "flood 1\n",
    "wait-for f\n",
    "repeat 2\n",
    "end\n",
    "```gt-script\n",
    "```\n",
];

/// A script, alone and in a description.
pub(super) fn script(input: &[u8]) {
    let Some(given) = text(input) else { return };
    for given in [Some(given), script_in(given)].into_iter().flatten() {
        if let Some(script) = accepted(Script::parse(given)) {
            reads_back(&script, &script.to_string(), Script::parse);
        }
    }
}
