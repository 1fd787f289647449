//! The targets, a file per kind of outside data.

mod commands;
mod descriptions;
mod files;
mod formulas;
mod hosting;
mod plans;
mod records;
mod runtimes;
mod transcripts;
mod values;
mod work;

/// A parser, or several that read the same kind of text, and their promises.
#[derive(Debug, Clone, Copy)]
pub struct FuzzTarget {
    /// Its name, also the name of its directory in `fuzz/corpus`.
    pub name: &'static str,
    /// Panics if this input breaks a promise.
    pub run: fn(&[u8]),
    /// Words that mean something to the parser.
    pub words: &'static [&'static str],
    /// How many times fewer rounds it gets, because each takes longer than usual.
    pub cost: usize,
}

const fn target(name: &'static str, run: fn(&[u8]), words: &'static [&'static str]) -> FuzzTarget {
    FuzzTarget { name, run, words, cost: 1 }
}

impl FuzzTarget {
    const fn costing(self, cost: usize) -> Self {
        Self { cost, ..self }
    }
}

/// Every parser of outside data. A new parser gets a line here and a directory in `fuzz/corpus`.
pub const TARGETS: &[FuzzTarget] = &[
    target("bead_id", values::bead_id, &["gt-", "hq-cv-", "-wisp-mol-", ".3", "-", "."]),
    target("names", values::names, values::NAMES),
    target("texts", values::texts, &["  ", "\u{3000}", "0123456789012345678901234567890123456789"]),
    target("time", values::time, values::TIMES),
    target("json", values::json, JSON),
    target("words", values::words, &["\\ ", "\\\\", "'\\''", "key=", "=\"", "\"\""]),
    target(
        "command_template",
        values::command_template,
        &["{bead}", "{title}", "{{", "}}", "'", "{"],
    ),
    target(
        "web_address",
        values::web_address,
        &["https://", "http://", "[::1]", ":80", "@", "?", "#"],
    ),
    target("pull_request", hosting::pull_request, hosting::WORDS),
    target("hosting_provider", hosting::provider, hosting::KEYS).costing(8),
    target("work", work::words, work::WORDS),
    target("condition", formulas::condition, &["{{", "}}", "!", " == ", " != ", "\"\"", "''", "v"]),
    target("query", values::query, values::QUERIES),
    target("settings", values::settings, values::SETTINGS).costing(2),
    target("record_line", records::record_line, records::FIELDS),
    target("record_merge", records::record_merge, records::FIELDS),
    target("table_rows", records::tables, records::FIELDS),
    target(
        "dependency_lines",
        plans::dependency_lines,
        &["\"from\":", "\"to\":", "\"type\":\"blocks\""],
    ),
    target("plan_lines", plans::plan_lines, plans::FIELDS),
    target("plan_graph", plans::plan_graph, plans::FIELDS),
    target("plan_markdown", plans::plan_markdown, plans::HEADINGS),
    target("queue_block", descriptions::queue_block, descriptions::BLOCKS),
    target("context", descriptions::context, descriptions::CONTEXTS),
    target("formula_toml", formulas::toml, formulas::KEYS).costing(8),
    target("formula_json", formulas::json, formulas::KEYS).costing(8),
    target("places", files::places, &["{\"prefix\":", "\"path\":", ": ", "# ", "---", "|", "&a"]),
    target("gas_town", files::gas_town, files::RIGS),
    target("town_file", files::town_file, &["id = ", "database_url = ", "\"\"\"", "[a]", "'''"]),
    target("settings_file", files::settings_file, values::SETTINGS),
    target("database_url", files::database_url, files::URLS),
    target(
        "git_config",
        files::git_config,
        &["[user]", "[include]", "name = ", "email=", "\\", "]"],
    ),
    target("runtime_file", runtimes::file, runtimes::KEYS).costing(4),
    target("transcript", transcripts::output, transcripts::WORDS).costing(8),
    target("codex_session", transcripts::session_file, transcripts::SESSION_WORDS),
    target("usage_limit", runtimes::limit, runtimes::LIMITS).costing(16),
    target("script", runtimes::script, runtimes::INSTRUCTIONS),
    target(
        "hook_call",
        commands::hook_call,
        &["\"program\":", "\"bead\":", "\"event\":", "\"json\":"],
    ),
    target("batch_line", commands::batch_line, commands::WORDS).costing(64),
    target("command_line", commands::command_line, commands::WORDS).costing(256),
];

const JSON: &[&str] = &[
    "{\"a\":",
    "[",
    "null",
    "true",
    "1.50",
    "\"\\u00e9\"",
    "\"\\ud83d\\ude00\"",
    "<>&",
    ",\"a\":",
];
