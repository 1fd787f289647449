//! The small files that lie beside beads: where they really are, their settings, which prefix
//! belongs where.

use gt_core::{Invalid, Prefix};

use crate::RecordError;
use crate::read::{RecordFields, values};

/// Where a `redirect` file points: its first line that says something.
pub fn redirect_target(text: &str) -> Option<&str> {
    content_lines(text).next().map(|(_, line)| line)
}

/// The `key: value` lines of a settings file, and the numbers of the lines that are anything else.
///
/// The files are YAML, but tools write only flat lines into them; every other line is reported, not guessed.
pub fn flat_settings(text: &str) -> (Vec<(String, String)>, Vec<usize>) {
    let (mut found, mut others) = (Vec::new(), Vec::new());
    let mut open = None;
    for (number, line) in text.lines().enumerate() {
        let trimmed = line.trim();
        if trimmed.is_empty() || trimmed.starts_with('#') || trimmed == "---" {
            continue;
        }
        let is_nested = line.starts_with([' ', '\t', '-']);
        match trimmed.split_once(':') {
            Some((key, value)) if !is_nested && is_key(key.trim()) => match scalar(value) {
                Some("") => open = Some(number + 1),
                Some(value) => {
                    open = None;
                    found.push((key.trim().to_owned(), value.to_owned()));
                }
                None => {
                    open = None;
                    others.push(number + 1);
                }
            },
            _ => {
                others.extend(open.take());
                others.push(number + 1);
            }
        }
    }
    (found, others)
}

fn is_key(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}

/// A plain or quoted value on one line, without a comment behind it.
fn scalar(text: &str) -> Option<&str> {
    let text = text.trim();
    for quote in ['"', '\''] {
        if let Some(rest) = text.strip_prefix(quote) {
            let (inside, behind) = rest.split_once(quote)?;
            let behind = behind.trim();
            let is_plain = !inside.contains('\\') && (behind.is_empty() || behind.starts_with('#'));
            return is_plain.then_some(inside);
        }
    }
    let text = text.split_once(" #").map_or(text, |(text, _)| text.trim_end());
    let text = if text.starts_with('#') { "" } else { text };
    let is_structure = text.starts_with(['{', '[', '|', '>', '&', '*', '!']);
    (!is_structure).then_some(text)
}

/// Which prefix belongs to which place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// The prefix of ids.
    pub prefix: Prefix,
    /// The directory of their project, relative to the town; `.` is the town itself.
    pub path: String,
}

/// One line of `routes.jsonl`; nothing for a blank line or a comment.
pub fn parse_route(line: &str) -> Result<Option<Route>, RecordError> {
    let Some((_, line)) = content_lines(line).next() else { return Ok(None) };
    let mut fields = RecordFields::parse(line)?;
    let prefix = fields
        .read("prefix", |raw| Prefix::parse(&values::text(raw)?))?
        .ok_or_else(|| RecordError::missing("prefix"))?;
    let path = fields.text("path")?;
    if path.is_empty() {
        return Err(RecordError::missing("path"));
    }
    if path.chars().any(char::is_control) {
        return Err(RecordError::field("path", Invalid::new("it contains control characters")));
    }
    Ok(Some(Route { prefix, path }))
}

/// The lines that say something, with their numbers.
fn content_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().map(str::trim).enumerate();
    lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_redirect_is_the_first_line_that_says_something() {
        assert_eq!(redirect_target("\n# moved\n  ../x/.beads \nmore"), Some("../x/.beads"));
        assert_eq!(redirect_target("# nothing\n"), None);
    }

    #[test]
    fn flat_lines_are_settings_and_the_rest_is_told() {
        let text = "# c\nissue-prefix: \"we\"\nsync.mode: git # why\nno-db: false\nempty:\nurl: http://a:1/\n\
            list:\n  - a\nmap: {a: b}\n'odd': 1\n";
        let (found, others) = flat_settings(text);
        let found: Vec<(&str, &str)> =
            found.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        assert_eq!(
            found,
            [
                ("issue-prefix", "we"),
                ("sync.mode", "git"),
                ("no-db", "false"),
                ("url", "http://a:1/")
            ]
        );
        assert_eq!(others, [7, 8, 9, 10]);
    }

    #[test]
    fn lines_that_are_told_are_told_in_their_order() {
        assert_eq!(flat_settings("a:\nb: {\nc\n").1, [2, 3]);
        assert_eq!(flat_settings("a:\n- c\n").1, [1, 2]);
    }

    #[test]
    fn routes_lead_prefixes_to_places() {
        let route = parse_route(r#"{"prefix":"gt-","path":"gastown/mayor/rig"}"#).unwrap().unwrap();
        assert_eq!((route.prefix.as_str(), route.path.as_str()), ("gt", "gastown/mayor/rig"));
        assert_eq!(parse_route("  # comment").unwrap(), None);
        for wrong in ["{}", r#"{"prefix":"a-"}"#, r#"{"prefix":"a b","path":"."}"#, "words"] {
            assert!(parse_route(wrong).is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_anything_panic(text in "(.|\n){0,80}") {
            let _ = (redirect_target(&text), flat_settings(&text), parse_route(&text));
        }
    }
}
