//! Values that several commands take.

use std::io::Read;
use std::path::Path;

use clap::Args;
use gt_core::limits::PAYLOAD_DEPTH_MAX;
use gt_core::{Json, Timestamp};
use gt_records::contains_nul;

use crate::error::CliError;
use crate::output::{Printer, parse_moment};
use crate::served;

/// Splits `a,b` and `-l a -l b` alike.
pub(crate) fn comma_separated(values: &[String]) -> Vec<String> {
    let parts = values.iter().flat_map(|value| value.split(','));
    parts.map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

/// A point in time as a person writes it, or as a text of ours shows it.
pub(crate) fn instant(text: &str, now: Timestamp) -> Result<Timestamp, CliError> {
    parse_moment(text, now).map_or_else(|| Ok(Timestamp::parse_relative(text, now)?), Ok)
}

/// Notes a due date that has passed, which may be a slip.
pub(crate) fn note_past_due(printer: &Printer, due: Option<Timestamp>, now: Timestamp) {
    if due.is_some_and(|due| due < now) {
        printer.note("warning: the due date has passed");
    }
}

/// A time ago such as `24h`, or an instant.
pub(crate) fn instant_or_ago(text: &str, now: Timestamp) -> Result<Timestamp, CliError> {
    let ago = gt_core::time::parse_duration(text).ok();
    ago.map_or_else(|| instant(text, now), |ago| Ok(now.minus(ago)))
}

/// The text of a file, or of standard input for `-`.
pub(crate) fn text_of(path: &str) -> Result<String, CliError> {
    let read = if path == "-" {
        let mut bytes = Vec::new();
        served::stdin().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        served::read_file(Path::new(path))
    };
    let bytes = read.map_err(|error| CliError::request(format!("cannot read {path}: {error}")))?;
    String::from_utf8(bytes).map_err(|_| CliError::request(format!("{path} is not UTF-8 text")))
}

/// The name in errors for the file that [`text_of`] reads.
pub(crate) fn source_name(path: &str) -> &str {
    if path == "-" { "standard input" } else { path }
}

/// Where a description comes from.
#[derive(Debug, Args)]
pub(crate) struct DescriptionArgs {
    /// The description
    #[arg(short, long, visible_alias = "body", short_alias = 'm', value_name = "TEXT")]
    description: Option<String>,
    /// Take the description from this file (- is standard input)
    #[arg(long, value_name = "FILE", conflicts_with = "description")]
    body_file: Option<String>,
    /// Take the description from standard input
    #[arg(long, conflicts_with_all = ["description", "body_file"])]
    stdin: bool,
}

impl DescriptionArgs {
    /// The description, if one was given.
    pub(crate) fn read(&self) -> Result<Option<String>, CliError> {
        match (&self.description, &self.body_file, self.stdin) {
            (Some(text), _, _) => Ok(Some(text.clone())),
            (None, Some(path), _) => text_of(path).map(Some),
            (None, None, true) => text_of("-").map(Some),
            (None, None, false) => Ok(None),
        }
    }
}

/// `name=value`, for a variable of a formula.
pub(crate) fn binding(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().to_owned(), value.to_owned()))
        }
        _ => Err("write it as name=value".to_owned()),
    }
}

/// JSON given on the command line, or `@file`.
pub(crate) fn json_argument(text: &str) -> Result<Json, CliError> {
    let text = match text.strip_prefix('@') {
        Some(path) => text_of(path)?,
        None => text.to_owned(),
    };
    let json =
        Json::parse(&text).map_err(|error| gt_core::Invalid(format!("metadata: {error}")))?;
    if contains_nul(json.as_str()) {
        return Err(CliError::request("the metadata contains a NUL character"));
    }
    let most = PAYLOAD_DEPTH_MAX;
    if json.depth() > most {
        let error = format!("the metadata is nested more than {most} levels deep");
        return Err(CliError::request(error));
    }
    Ok(json)
}

/// `key=value`, where the value is null, true, false, a number, or else text.
pub(crate) fn typed_field(text: &str) -> Result<(String, Json), CliError> {
    let (key, value) =
        text.split_once('=').filter(|(key, _)| !key.is_empty()).ok_or_else(|| {
            let shown: String = text.chars().take(60).collect();
            let shown = shown.escape_debug();
            CliError::request(format!("\"{shown}\" is not of the form key=value"))
        })?;
    // Arguments have none, but a line of a batch may.
    if text.contains('\0') {
        return Err(CliError::request("the metadata contains a NUL character"));
    }
    let may_be_typed = matches!(value, "null" | "true" | "false")
        || value.starts_with(|c: char| c == '-' || c.is_ascii_digit());
    // A number with white space around it is text.
    let typed = Json::parse(value).ok().filter(|json| may_be_typed && json.as_str() == value);
    Ok((key.to_owned(), typed.unwrap_or_else(|| Json::string(value))))
}

/// Things as text, in their order.
pub(crate) fn texts<T: ToString>(things: impl IntoIterator<Item = T>) -> Vec<String> {
    things.into_iter().map(|thing| thing.to_string()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_nested_no_deeper_than_many_readers_take() {
        let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        json_argument(&nested(PAYLOAD_DEPTH_MAX)).unwrap();
        let error = json_argument(&nested(PAYLOAD_DEPTH_MAX + 1)).unwrap_err();
        assert!(error.to_string().contains("nested more than 128 levels"), "{error}");
    }

    #[test]
    fn a_field_of_metadata_is_a_key_and_a_value_that_can_be_kept() {
        let field = |text: &str| typed_field(text).map(|(key, value)| (key, value.to_string()));
        assert_eq!(field("k=1.50").unwrap(), ("k".to_owned(), "1.50".to_owned()));
        assert_eq!(field("k=a b").unwrap(), ("k".to_owned(), "\"a b\"".to_owned()));
        assert_eq!(field("k=5\n").unwrap(), ("k".to_owned(), "\"5\\n\"".to_owned()));
        assert!(field("k=a\0b").is_err());
        assert_eq!(
            field("a\tb").unwrap_err().to_string(),
            "\"a\\tb\" is not of the form key=value"
        );
    }
}
