//! Text with placeholders: `{{name}}` for variables, `{name}` inside loops and expansions.

use std::borrow::Cow;

use crate::limits;

/// Whether `name` can stand between braces.
pub fn is_variable_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// The variables that `text` mentions as `{{name}}`, in their order.
pub fn variables_in(text: &str) -> impl Iterator<Item = &str> {
    TemplatePieces { rest: text }.filter_map(|piece| match piece {
        TemplatePiece::Double(name) => Some(name),
        TemplatePiece::Text(_) | TemplatePiece::Single(_) => None,
    })
}

/// `text` with every `{{name}}` that `value` knows replaced. Placeholders inside a value are not replaced.
///
/// It ends where it becomes longer than any formula may be, which the caller will notice.
pub(super) fn substitute<'v>(text: &str, value: impl Fn(&str) -> Option<&'v str>) -> String {
    let mut out = String::with_capacity(text.len());
    for piece in (TemplatePieces { rest: text }) {
        if out.len() > limits::FORMULA_BYTES_MAX {
            break;
        }
        match piece {
            TemplatePiece::Double(name) => match value(name) {
                Some(value) => out.push_str(value),
                None => push_braced(&mut out, "{{", name, "}}"),
            },
            TemplatePiece::Single(name) => push_braced(&mut out, "{", name, "}"),
            TemplatePiece::Text(text) => out.push_str(text),
        }
    }
    out
}

/// `text` with every `{name}` and `{{name}}` that `value` knows replaced, dotted names included.
/// It ends like [`substitute`].
pub(super) fn fill<'v>(text: &str, value: impl Fn(&str) -> Option<Cow<'v, str>>) -> String {
    let mut out = String::with_capacity(text.len());
    for piece in (TemplatePieces { rest: text }) {
        if out.len() > limits::FORMULA_BYTES_MAX {
            break;
        }
        let (open, name, close) = match piece {
            TemplatePiece::Text(text) => {
                out.push_str(text);
                continue;
            }
            TemplatePiece::Double(name) => ("{{", name, "}}"),
            TemplatePiece::Single(name) => ("{", name, "}"),
        };
        match value(name) {
            Some(value) => out.push_str(&value),
            None => push_braced(&mut out, open, name, close),
        }
    }
    out
}

fn push_braced(out: &mut String, open: &str, name: &str, close: &str) {
    out.push_str(open);
    out.push_str(name);
    out.push_str(close);
}

enum TemplatePiece<'a> {
    Text(&'a str),
    /// `{{name}}`.
    Double(&'a str),
    /// `{name}` or `{name.field}`.
    Single(&'a str),
}

struct TemplatePieces<'a> {
    rest: &'a str,
}

impl<'a> Iterator for TemplatePieces<'a> {
    type Item = TemplatePiece<'a>;

    fn next(&mut self) -> Option<TemplatePiece<'a>> {
        if self.rest.is_empty() {
            return None;
        }
        if let Some(after) = self.rest.strip_prefix("{{")
            && let Some((name, rest)) = after.split_once("}}")
            && is_variable_name(name)
        {
            self.rest = rest;
            return Some(TemplatePiece::Double(name));
        }
        if let Some(after) = self.rest.strip_prefix('{')
            && let Some((name, rest)) = after.split_once('}')
            && name.split('.').all(is_variable_name)
        {
            self.rest = rest;
            return Some(TemplatePiece::Single(name));
        }
        // Everything up to the next brace; a brace that opens nothing is text itself.
        let mut later = self.rest.char_indices().skip(1);
        let end = later.find(|(_, c)| *c == '{').map_or(self.rest.len(), |(at, _)| at);
        let (text, rest) = self.rest.split_at(end);
        self.rest = rest;
        Some(TemplatePiece::Text(text))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_whole_placeholders_are_replaced() {
        let value = |name: &str| (name == "x").then_some("1");
        for (text, expected) in [
            ("{{x}}", "1"),
            ("a{{x}}b{{x}}", "a1b1"),
            ("{{{x}}}", "{1}"),
            ("{x} {{ x }} {{.x}} {{y}}", "{x} {{ x }} {{.x}} {{y}}"),
            ("{{x", "{{x"),
            ("ä{{x}}ö", "ä1ö"),
        ] {
            assert_eq!(substitute(text, value), expected);
        }
    }

    #[test]
    fn loops_and_expansions_know_single_braces_too() {
        let value = |name: &str| match name {
            "n" => Some(Cow::Borrowed("3")),
            "target.title" => Some(Cow::Borrowed("Build")),
            _ => None,
        };
        assert_eq!(
            fill("{n} {{n}} {target.title} {other} {{v}}", value),
            "3 3 Build {other} {{v}}"
        );
    }

    proptest! {
        #[test]
        fn text_without_known_names_stays_as_it_is(text in "[{}a-z. ä]{0,40}") {
            prop_assert_eq!(substitute(&text, |_| None), text.as_str());
            prop_assert_eq!(fill(&text, |_| None), text);
        }

        #[test]
        fn nothing_known_is_left(text in "[{}x ä]{0,40}") {
            let out = substitute(&text, |_| Some("v"));
            prop_assert_eq!(variables_in(&out).filter(|name| *name != "v").count(), 0);
        }
    }
}
