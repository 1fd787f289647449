//! Valid JSON as a sequence of tokens, for everything that passes JSON on without understanding it.

/// Splits valid JSON into strings (with their quotes), scalars and punctuation; white space is left out.
///
/// Text that is not JSON yields some split of it, never a panic.
pub(crate) fn tokens(text: &str) -> Tokens<'_> {
    Tokens { rest: text }
}

/// The rest of a text that is being split.
pub(crate) struct Tokens<'a> {
    rest: &'a str,
}

impl<'a> Iterator for Tokens<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        self.rest = self.rest.trim_start_matches(|c: char| c.is_ascii_whitespace());
        let length = match self.rest.as_bytes() {
            [] => return None,
            [b'"', inside @ ..] => 1 + string_length(inside),
            [b'{' | b'}' | b'[' | b']' | b',' | b':', ..] => 1,
            scalar => scalar
                .iter()
                .position(|byte| byte.is_ascii_whitespace() || b"{}[],:\"".contains(byte))
                .unwrap_or(scalar.len()),
        };
        // Every token ends before or after an ASCII byte, hence between two characters.
        let (token, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(token)
    }
}

/// How far a string reaches after its opening quote, the closing one included.
fn string_length(inside: &[u8]) -> usize {
    let mut escaped = false;
    for (at, byte) in inside.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    inside.len()
}

/// Whether a string or key in this JSON holds a NUL character, which JSON can only spell as an escape.
pub fn contains_nul(json: &str) -> bool {
    json.match_indices("\\u0000").any(|(at, _)| {
        let backslashes_before =
            json.as_bytes()[..at].iter().rev().take_while(|byte| **byte == b'\\').count();
        backslashes_before.is_multiple_of(2)
    })
}

/// The same JSON without the NUL characters in its strings and keys, and without NUL bytes, which JSON cannot hold at all.
pub(crate) fn without_nul(json: &str) -> String {
    let mut kept = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(at) = rest.find(['\\', '\0']) {
        let (before, from) = rest.split_at(at);
        kept.push_str(before);
        let escape = from.chars().take(2).map(char::len_utf8).sum();
        rest = if let Some(after) = from.strip_prefix('\0') {
            after
        } else if let Some(after) = from.strip_prefix("\\u0000") {
            after
        } else {
            kept.push_str(&from[..escape]);
            &from[escape..]
        };
    }
    kept.push_str(rest);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nul_characters_are_taken_out_and_nothing_else() {
        for (json, expected) in [
            (r#"{"a\u0000b":"\u0000x\u0000"}"#, r#"{"ab":"x"}"#),
            (r#""\\u0000 \\\u0000""#, r#""\\u0000 \\""#),
            ("\"a\0b\"\0", "\"ab\""),
            (r#""\"#, r#""\"#),
        ] {
            let cleaned = without_nul(json);
            assert_eq!(cleaned, expected);
            assert!(!contains_nul(&cleaned), "{cleaned}");
        }
    }

    #[test]
    fn only_a_real_escape_is_a_nul() {
        for (json, expected) in [
            (r#""\u0000""#, true),
            (r#"{"a\u0000":1}"#, true),
            (r#""\\\u0000""#, true),
            (r#""\\u0000""#, false),
            (r#""\\\\u0000""#, false),
            (r#""u0000\u0001""#, false),
            (r#""\\u0000 \u0000""#, true),
        ] {
            assert_eq!(contains_nul(json), expected, "{json}");
        }
    }
}
