//! Text that is typed, or piped into a command.

use std::ffi::OsString;

use gt_beads::hooks::HookCall;
use gt_cli::input_parsers;
use gt_core::words::split;
use gt_records::contains_nul;

use crate::promise::{accepted, is_json_line, text};

pub(super) const WORDS: &[&str] = &[
    "bd ",
    "create ",
    "update ",
    "close ",
    "reopen ",
    "dep add ",
    "dep remove ",
    "label add ",
    "comment ",
    "list ",
    "--json",
    "--type=bug",
    "-p 1",
    " gt-a",
    " gt-b",
    "priority=1",
    "title=\"a b\"",
    "status=closed",
    "--",
    "--set-metadata k=1",
    "--help",
    "=",
    "config set ",
    "rig add ",
    "-l a,b",
];

/// A line of `bd batch`, and a field of metadata.
pub(super) fn batch_line(input: &[u8]) {
    let Some(given) = text(input) else { return };
    if let Some((key, value)) = accepted(input_parsers::metadata_field(given)) {
        assert!(!key.is_empty());
        is_json_line(value.as_str());
        assert!(!key.contains('\0') && !contains_nul(value.as_str()));
    }
    for line in given.lines() {
        accepted(input_parsers::batch_line(line));
    }
}

/// The arguments of a command.
pub(super) fn command_line(input: &[u8]) {
    let Some(Ok(words)) = text(input).map(split) else { return };
    let arguments: Vec<OsString> = words.into_iter().map(|word| word.text.into()).collect();
    if let Err(message) = input_parsers::command_line(&arguments) {
        assert!(!message.is_empty());
    }
}

/// A line of the input of the helper that runs hooks.
pub(super) fn hook_call(input: &[u8]) {
    let Some(line) = text(input) else { return };
    if let Some(call) = accepted(HookCall::parse(line)) {
        assert_eq!(HookCall::parse(line), Ok(call));
    }
}
