//! The parsers of what people and programs hand to the commands, apart from what is done with it.
//! Nothing here opens a file, a store or a terminal.

use std::ffi::OsString;

use clap::FromArgMatches;
use gt_core::Json;

use crate::values::typed_field;
use crate::{bd, gt, gt_command};

/// Parses the arguments of `gt`, the program's name left out. An error is what the person would see.
pub fn command_line(arguments: &[OsString]) -> Result<(), String> {
    let all = std::iter::once(OsString::from("gt")).chain(arguments.iter().cloned());
    let matches = gt_command().try_get_matches_from(all).map_err(|error| error.to_string())?;
    let parsed = match matches.subcommand() {
        Some(("bd", below)) => bd::Bd::from_arg_matches(below).map(drop),
        _ => gt::Gt::from_arg_matches(&matches).map(drop),
    };
    parsed.map_err(|error| error.to_string())
}

/// Parses a line of `bd batch`.
pub fn batch_line(line: &str) -> Result<(), String> {
    bd::check_batch_line(line).map_err(|error| error.chain())
}

/// Parses the `key=value` of `bd update --set-metadata`.
pub fn metadata_field(text: &str) -> Result<(String, Json), String> {
    typed_field(text).map_err(|error| error.chain())
}
