//! Keys that must not be shown: the values of the environments of accounts, wherever they stand in a text.

use std::borrow::Cow;

use serde_json::Value;

use crate::schedule::Account;

/// Shorter values are not masked: they are words that stand in any text.
const SECRET_BYTES_MIN: usize = 8;

/// The text in the place of a value. It needs no escape in JSON.
const MASK: &[u8] = b"[masked]";

/// Parts of the name of a variable that holds a key.
const SECRET_WORDS: [&str; 10] = [
    "AUTH",
    "BEARER",
    "COOKIE",
    "CREDENTIAL",
    "KEY",
    "PASS",
    "PRIVATE",
    "SECRET",
    "TOKEN",
    "WEBHOOK",
];

/// Words in the name of a variable that holds a credential, between underscores.
const CREDENTIAL_WORDS: [&str; 18] = [
    "APIKEY",
    "AUTH",
    "BEARER",
    "COOKIE",
    "CREDENTIAL",
    "CREDENTIALS",
    "KEY",
    "KEYS",
    "PASS",
    "PASSPHRASE",
    "PASSWD",
    "PASSWORD",
    "PAT",
    "SECRET",
    "SECRETS",
    "TOKEN",
    "TOKENS",
    "WEBHOOK",
];

/// Ends of such names that are written in one word with others, as in `PGPASSWORD`.
const CREDENTIAL_ENDS: [&str; 5] = ["APIKEY", "PASSWORD", "SECRET", "TOKEN", "_PWD"];

/// Last words in the names of variables whose values are names that people read in any output.
const PUBLIC_WORDS: [&str; 2] = ["MODEL", "REGION"];

/// A part of the path of an address that is at least this long may be a key.
const PATH_PART_BYTES_MAX: usize = 20;

/// The values that must not be shown.
#[derive(Debug, Clone, Default)]
pub struct SecretMask {
    /// Longest first, so that a value that contains another one is masked as a whole.
    secrets: Vec<String>,
}

impl SecretMask {
    /// The values of the environments of these accounts that may be keys, also as they stand in JSON.
    pub fn of_accounts(accounts: &[Account]) -> Self {
        let variables = accounts.iter().flat_map(|account| &account.environment);
        let mut values = Vec::new();
        for (name, value) in variables {
            collect_secrets(name, value, &mut values);
        }
        Self::of_values(values.iter().map(String::as_str))
    }

    fn of_values<'v>(values: impl Iterator<Item = &'v str>) -> Self {
        let long_enough = values.filter(|value| value.len() >= SECRET_BYTES_MIN);
        let mut secrets: Vec<String> = long_enough
            .flat_map(|value| std::iter::once(value).chain(ends_without_beginning(value)))
            .map(str::to_owned)
            .collect();
        secrets.sort_by(|one, other| other.len().cmp(&one.len()).then_with(|| one.cmp(other)));
        secrets.dedup();
        Self { secrets }
    }

    /// Whether there is nothing to mask.
    pub fn is_empty(&self) -> bool {
        self.secrets.is_empty()
    }

    /// The most bytes that a value can take in a text. A reader that begins in the middle of a text begins so many bytes
    /// earlier.
    pub fn longest(&self) -> usize {
        let bytes_max = ESCAPED_BYTES_MAX + STYLE_BYTES_MAX;
        let wraps = |secret: &String| secret.len() / LINE_BYTES_USUAL + 1;
        self.secrets.first().map_or(0, |secret| {
            secret.len().saturating_mul(bytes_max) + wraps(secret) * WRAP_BYTES_MAX
        })
    }

    /// A text without the values.
    pub fn mask<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if self.is_empty() {
            return Cow::Borrowed(text);
        }
        let (mut masked, rest) = self.mask_whole(text.as_bytes(), false);
        masked.extend_from_slice(rest);
        if masked == text.as_bytes() {
            return Cow::Borrowed(text);
        }
        // Values are text, so the parts between them are text as well.
        Cow::Owned(String::from_utf8_lossy(&masked).into_owned())
    }

    /// The end of a longer text, without the values. Its first bytes may be the end of a value, so the first
    /// [`Self::longest`] bytes are left out.
    pub fn mask_end(&self, end: &[u8]) -> String {
        let (mut masked, rest) = self.mask_whole(end, false);
        masked.extend_from_slice(rest);
        // A mask is never longer than its value, so all bytes of a value that was cut are among these.
        masked.drain(..self.longest().min(masked.len()));
        String::from_utf8_lossy(&masked).into_owned()
    }

    /// Masks the values in bytes. With `goes_on`, the end of the bytes that may be the beginning of a value is returned
    /// separately, as it is.
    fn mask_whole<'b>(&self, bytes: &'b [u8], goes_on: bool) -> (Vec<u8>, &'b [u8]) {
        let mut begins = [false; 256];
        for first in self.secrets.iter().filter_map(|secret| secret.as_bytes().first()) {
            begins[usize::from(*first)] = true;
            begins[usize::from(b'\\')] = true;
        }
        let mut masked = Vec::with_capacity(bytes.len());
        let mut at = 0;
        while at < bytes.len() {
            let rest = &bytes[at..];
            if !begins[usize::from(bytes[at])] {
                masked.push(bytes[at]);
                at += 1;
                continue;
            }
            let mut is_cut = false;
            let whole = self.secrets.iter().find_map(|secret| match occurrence(secret, rest) {
                Occurrence::Whole(length) => Some(length),
                Occurrence::Cut => {
                    is_cut = true;
                    None
                }
                Occurrence::None => None,
            });
            if let Some(length) = whole {
                masked.extend_from_slice(MASK);
                at += length;
            } else if goes_on && is_cut {
                return (masked, rest);
            } else {
                masked.push(bytes[at]);
                at += 1;
            }
        }
        (masked, &[])
    }
}

/// The most backslashes before an escaped character: JSON in a string in JSON doubles them.
const BACKSLASHES_MAX: usize = 4;

/// The most bytes in which a text writes one byte of a value: backslashes, `u` and four digits.
const ESCAPED_BYTES_MAX: usize = BACKSLASHES_MAX + 5;

/// The most bytes of colours and the like between two characters of a value.
const STYLE_BYTES_MAX: usize = 64;

/// The most bytes between two parts of a value that a program shows on two lines: the rest of the line, the frame of a box,
/// commands that move the cursor.
const WRAP_BYTES_MAX: usize = 512;

/// So many characters of a value stand before the end of a line at least. Otherwise output that ends with the first character of
/// a value would wait for more.
const WRAPPED_CHARS_MIN: usize = 4;

/// A program that breaks a value into lines shows about so much of it on one, for an estimate.
const LINE_BYTES_USUAL: usize = 32;

/// A value of at least so many bytes is masked without its first characters, too.
const CUT_SECRET_BYTES_MIN: usize = 16;

/// A long value without its first characters, which may stand alone at the end of the line before.
fn ends_without_beginning(value: &str) -> impl Iterator<Item = &str> {
    let is_long = value.len() >= CUT_SECRET_BYTES_MIN;
    let begins = value.char_indices().skip(1).take(WRAPPED_CHARS_MIN - 1);
    begins.filter(move |_| is_long).map(|(begin, _)| &value[begin..])
}

/// Whether bytes begin with a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Occurrence {
    /// They do, with so many bytes.
    Whole(usize),
    /// They end before that can be told.
    Cut,
    None,
}

/// Whether bytes begin with a value, as it is or as JSON may write it: any of its characters can be escaped. A program that
/// colours a part of it writes what controls a terminal between its characters, and one that fills the screen breaks it into lines.
fn occurrence(secret: &str, bytes: &[u8]) -> Occurrence {
    // Every length at which the characters so far may end: a backslash is one character, or begins another one.
    let mut ends = vec![0];
    let mut is_cut = false;
    for (index, character) in secret.chars().enumerate() {
        let mut next = Vec::new();
        for end in ends {
            add_ends(character, bytes, end, &mut next, &mut is_cut);
            let styled = if end > 0 { end_of_styles(bytes, end, &mut is_cut) } else { end };
            if styled > end {
                add_ends(character, bytes, styled, &mut next, &mut is_cut);
            }
            let wrapped = match index {
                WRAPPED_CHARS_MIN.. => end_of_wrap(bytes, end, &mut is_cut),
                _ => end,
            };
            if wrapped > styled {
                add_ends(character, bytes, wrapped, &mut next, &mut is_cut);
            }
        }
        next.sort_unstable();
        next.dedup();
        ends = next;
        if ends.is_empty() {
            return if is_cut { Occurrence::Cut } else { Occurrence::None };
        }
    }
    ends.last().map_or(Occurrence::None, |end| Occurrence::Whole(*end))
}

/// Where the sequences end that begin at `from` and set a colour or the like; `from` if there are none.
fn end_of_styles(bytes: &[u8], from: usize, is_cut: &mut bool) -> usize {
    let mut end = from;
    loop {
        match style(&bytes[end..]) {
            Occurrence::Whole(length) if end + length - from <= STYLE_BYTES_MAX => end += length,
            Occurrence::Cut if bytes.len() - from < STYLE_BYTES_MAX => {
                *is_cut = true;
                return end;
            }
            _ => return end,
        }
    }
}

/// Where the break of a line ends that begins at `from`, with spaces and the frame of a box around it; `from` if there is none.
fn end_of_wrap(bytes: &[u8], from: usize, is_cut: &mut bool) -> usize {
    let mut end = from;
    let mut is_break = false;
    while end - from < WRAP_BYTES_MAX {
        let rest = &bytes[end..];
        let escaped = rest.iter().take(BACKSLASHES_MAX).take_while(|byte| **byte == b'\\').count();
        let (length, breaks) = match (style(rest), rest) {
            (Occurrence::Whole(length), _) => (length, true),
            (Occurrence::Cut, _) | (Occurrence::None, [] | [0xe2] | [0xe2, 0x94..=0x96]) => {
                *is_cut = true;
                break;
            }
            (Occurrence::None, [b'\n' | b'\r', ..]) => (1, true),
            (Occurrence::None, [b' ' | b'\t' | b'|', ..]) => (1, false),
            // The lines of boxes and blocks, U+2500 to U+259F.
            (Occurrence::None, [0xe2, 0x94..=0x96, _, ..]) => (3, false),
            _ if escaped > 0 => match &rest[escaped..] {
                [b'n' | b'r', ..] => (escaped + 1, true),
                [b't', ..] => (escaped + 1, false),
                [b'u', b'2', b'5', _, _, ..] => (escaped + 5, false),
                [] | [b'u'] | [b'u', b'2'] | [b'u', b'2', b'5'] | [b'u', b'2', b'5', _] => {
                    *is_cut = true;
                    break;
                }
                _ => break,
            },
            _ => break,
        };
        end += length;
        is_break |= breaks;
    }
    if is_break { end } else { from }
}

/// Whether bytes begin with a control sequence of a terminal, as it is or as JSON writes it.
fn style(bytes: &[u8]) -> Occurrence {
    let backslashes = bytes.iter().take(BACKSLASHES_MAX).take_while(|byte| **byte == b'\\').count();
    let escape: &[u8] = if backslashes == 0 { b"\x1b" } else { b"u001b" };
    let found = &bytes[backslashes..];
    let found = &found[..found.len().min(escape.len())];
    if bytes.is_empty() || !escape[..found.len()].eq_ignore_ascii_case(found) {
        return Occurrence::None;
    }
    let rest = &bytes[backslashes + found.len()..];
    let parameters = rest.iter().skip(1).take_while(|byte| (b' '..=b'?').contains(*byte)).count();
    match (rest.first(), rest.get(1 + parameters)) {
        (None, _) | (Some(b'['), None) => Occurrence::Cut,
        (Some(b'['), Some(b'@'..=b'~')) => {
            Occurrence::Whole(backslashes + escape.len() + parameters + 2)
        }
        _ => Occurrence::None,
    }
}

/// Adds each place at which a character ends that begins at `from`.
fn add_ends(character: char, bytes: &[u8], from: usize, ends: &mut Vec<usize>, is_cut: &mut bool) {
    let rest = &bytes[from..];
    let mut utf8 = [0; 4];
    let plain = character.encode_utf8(&mut utf8).as_bytes();
    if rest.starts_with(plain) {
        ends.push(from + plain.len());
    } else if plain.starts_with(rest) {
        *is_cut = true;
    }
    let backslashes = rest.iter().take(BACKSLASHES_MAX).take_while(|byte| **byte == b'\\').count();
    if backslashes == 0 {
        return;
    }
    if character == '\\' {
        ends.extend((2..=backslashes).map(|count| from + count));
    }
    let after = &rest[backslashes..];
    let Some(letter) = after.first() else {
        *is_cut = true;
        return;
    };
    let short = match character {
        '"' => Some(b'"'),
        '/' => Some(b'/'),
        '\n' => Some(b'n'),
        '\r' => Some(b'r'),
        '\t' => Some(b't'),
        '\u{8}' => Some(b'b'),
        '\u{c}' => Some(b'f'),
        _ => None,
    };
    if short == Some(*letter) {
        ends.push(from + backslashes + 1);
    }
    let mut units = [0; 2];
    let mut length = 0;
    for (place, unit) in character.encode_utf16(&mut units).iter().enumerate() {
        let mut digits = &rest[length..];
        if place > 0 && !digits.starts_with(&rest[..backslashes]) {
            *is_cut |= rest[..backslashes].starts_with(digits);
            return;
        }
        digits = &digits[backslashes..];
        let expected = format!("u{unit:04x}");
        let found = &digits[..digits.len().min(expected.len())];
        if !expected.as_bytes()[..found.len()].eq_ignore_ascii_case(found)
            || found.first().is_some_and(|first| *first != b'u')
        {
            return;
        }
        if found.len() < expected.len() {
            *is_cut = true;
            return;
        }
        length += backslashes + expected.len();
    }
    ends.push(from + length);
}

/// The parts of a value that may be keys: all of it, each of its lines, the password of an address, and the fields of
/// JSON whose names say so.
fn collect_secrets(name: &str, value: &str, secrets: &mut Vec<String>) {
    if !is_secret_name(name) && is_harmless(name, value) {
        return;
    }
    secrets.push(value.to_owned());
    // A terminal and a reader of the last lines see the lines of a key one by one.
    secrets.extend(value.lines().filter(|line| line.len() < value.len()).map(str::to_owned));
    if let Some((_, password)) = credentials(value).and_then(|both| both.split_once(':')) {
        secrets.push(password.to_owned());
    }
    if let Ok(document @ Value::Object(_)) = serde_json::from_str(value) {
        collect_fields("", &document, secrets);
    }
}

fn collect_fields(name: &str, document: &Value, secrets: &mut Vec<String>) {
    match document {
        Value::Object(fields) => {
            fields.iter().for_each(|(name, field)| collect_fields(name, field, secrets));
        }
        Value::Array(items) => items.iter().for_each(|item| collect_fields(name, item, secrets)),
        Value::String(text) if is_secret_name(name) => secrets.push(text.clone()),
        _ => {}
    }
}

/// Whether the name of a variable says that it holds a credential. This is narrower than what is masked: a variable that is
/// taken away by mistake, such as `GIT_AUTHOR_NAME`, is missed.
pub fn is_credential_name(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    name.split('_').any(|word| CREDENTIAL_WORDS.contains(&word))
        || CREDENTIAL_ENDS.iter().any(|end| name.ends_with(end))
}

/// Whether the name of a variable or field says that its value is a key.
fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    SECRET_WORDS.iter().any(|word| name.contains(word))
}

/// Whether a value is no key, as far as it shows: a path, an address without a password, a number, yes or no.
fn is_harmless(name: &str, value: &str) -> bool {
    let is_public = PUBLIC_WORDS.iter().any(|word| name.to_ascii_uppercase().ends_with(word));
    let is_word = ["true", "false", "enabled", "disabled"]
        .iter()
        .any(|word| value.eq_ignore_ascii_case(word));
    let is_path = ["/", "./", "../", "~/"].iter().any(|start| value.starts_with(start));
    is_public
        || is_word
        || value.parse::<f64>().is_ok()
        || (is_path && !value.contains(char::is_whitespace))
        || is_open_address(value)
}

/// Whether this is an address that contains no key: no name and password, no query, no long part in its path.
fn is_open_address(value: &str) -> bool {
    let Some((scheme, rest)) = value.split_once("://") else { return false };
    let is_scheme = !scheme.is_empty() && scheme.chars().all(|c| c.is_ascii_alphanumeric());
    let mut parts = rest.split('/');
    // The host may be long.
    let host = parts.next().unwrap_or_default();
    is_scheme
        && !host.is_empty()
        && !rest.contains(['@', '?', '#'])
        && !rest.contains(char::is_whitespace)
        && parts.all(|part| part.len() < PATH_PART_BYTES_MAX)
}

/// The name and the password in an address.
fn credentials(value: &str) -> Option<&str> {
    let (_, rest) = value.split_once("://")?;
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    host.rsplit_once('@').map(|(credentials, _)| credentials)
}

/// Masks the values in bytes that come in pieces.
#[derive(Debug, Default)]
pub struct MaskedStream {
    mask: SecretMask,
    /// The end of the bytes so far, which may be the beginning of a value.
    held: Vec<u8>,
}

impl MaskedStream {
    /// A stream from its beginning.
    pub fn new(mask: SecretMask) -> Self {
        Self { mask, held: Vec::new() }
    }

    /// The next bytes that can be shown.
    pub fn next(&mut self, bytes: &[u8]) -> Vec<u8> {
        if self.mask.is_empty() {
            return bytes.to_vec();
        }
        let all = [self.held.as_slice(), bytes].concat();
        let (masked, rest) = self.mask.mask_whole(&all, true);
        self.held = rest.to_vec();
        masked
    }

    /// The bytes that were held back, when no further ones are there. Most of a value is masked like a whole one.
    pub fn end(&mut self) -> Vec<u8> {
        let held = std::mem::take(&mut self.held);
        if held.len() >= SECRET_BYTES_MIN { MASK.to_vec() } else { held }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_of_credentials_are_told_from_similar_words() {
        for name in [
            "AWS_ACCESS_KEY_ID",
            "AWS_SECRET_ACCESS_KEY",
            "AWS_SESSION_TOKEN",
            "ANTHROPIC_API_KEY",
            "GOOGLE_APPLICATION_CREDENTIALS",
            "MYSQL_PWD",
            "NPM_TOKEN",
            "OPENAI_APIKEY",
            "PGPASSWORD",
            "SMTP_PASS",
            "npm_config__authToken",
        ] {
            assert!(is_credential_name(name), "{name}");
        }
        for name in [
            "GIT_AUTHOR_NAME",
            "KEYBOARD_LAYOUT",
            "NODE_PATH",
            "OLDPWD",
            "PATH",
            "PWD",
            "TOKENIZERS_PARALLELISM",
            "XAUTHORITY",
        ] {
            assert!(!is_credential_name(name), "{name}");
        }
    }

    fn contains(text: &[u8], part: &[u8]) -> bool {
        text.windows(part.len()).any(|window| window == part)
    }

    fn mask(values: &[&str]) -> SecretMask {
        SecretMask::of_values(values.iter().copied())
    }

    #[test]
    fn values_are_masked_wherever_they_stand() {
        let mask =
            mask(&["sk-ant-0123456789", "sk-ant-0123456789-long", "short", "with\"quote\\1"]);
        for (text, expected) in [
            ("nothing short here", "nothing short here"),
            ("key=sk-ant-0123456789.", "key=[masked]."),
            ("sk-ant-0123456789-longer", "[masked]er"),
            ("äsk-ant-0123456789sk-ant-0123456789ö", "ä[masked][masked]ö"),
            ("plain with\"quote\\1", "plain [masked]"),
            (r#"{"t":"with\"quote\\1"}"#, r#"{"t":"[masked]"}"#),
            ("sk-ant-012345678", "sk-ant-012345678"),
        ] {
            assert_eq!(mask.mask(text), expected, "{text}");
        }
    }

    #[test]
    fn values_are_masked_however_json_escapes_them() {
        let mask =
            mask(&["pässwort&<sk>", "sk-Test-01", "back\\slash/1", "emoji-😀-key", "two\nlines"]);
        for text in [
            r"p\u00e4sswort\u0026\u003csk\u003E",
            r"p\u00E4sswort&<sk>",
            r"\u0073k-Test-01",
            r"sk-\u0054est-0\u0031",
            r"back\\slash\/1",
            r"back\u005Cslash\u002f1",
            r"emoji-\ud83d\uDE00-key",
            r"two\nlines",
            // A string in JSON whose content is JSON.
            r"sk-\\u0054est-01",
            r"two\\nlines",
            r"back\\\\slash/1",
        ] {
            let json = format!(r#"{{"text":"a {text} b"}}"#);
            assert_eq!(mask.mask(&json), r#"{"text":"a [masked] b"}"#, "{text}");
        }
        for harmless in [r"\u0073k-Test-0", r"sk-\x54est-01", r"sk-\U0054est-01", r"\\\\\\", r"\u"]
        {
            assert_eq!(mask.mask(harmless), harmless);
        }
    }

    #[test]
    fn values_are_masked_when_parts_of_them_are_coloured() {
        let mask = mask(&["sk-test-0123456789"]);
        for (text, expected) in [
            ("a sk-\x1b[01;31m\x1b[Ktest\x1b[m\x1b[K-0123456789 b", "a [masked] b"),
            ("a \x1b[1msk-test-0123456789\x1b[0m b", "a \x1b[1m[masked]\x1b[0m b"),
            (r"a sk-\u001b[01;31m\u001B[Ktest\u001b[m-0123456789 b", "a [masked] b"),
            (r"a sk-\\u001b[38;2;255;100;0mtest\\u001b[0m-0123456789 b", "a [masked] b"),
            ("a sk-\x1b[31mtest-012345678 b", "a sk-\x1b[31mtest-012345678 b"),
            ("a sk-\x1b]0;title\x07test-0123456789 b", "a sk-\x1b]0;title\x07[masked] b"),
        ] {
            assert_eq!(mask.mask(text), expected, "{text:?}");
            // Nothing of it is shown before it is known.
            let mut stream = MaskedStream::new(mask.clone());
            let pieces = text.as_bytes().chunks(1).flat_map(|piece| stream.next(piece));
            let shown: Vec<u8> = pieces.collect();
            assert_eq!(String::from_utf8_lossy(&shown), expected, "{text:?}");
        }
    }

    #[test]
    fn values_are_masked_where_a_program_breaks_them_into_lines() {
        let mask = mask(&["sk-test-0123456789"]);
        for (text, expected) in [
            ("│ a sk-test-   │\r\n│ 0123456789 b │", "│ a [masked] b │"),
            ("a sk-test-0\n   123456789 b", "a [masked] b"),
            ("a sk-test-0\x1b[K\x1b[2;1H\x1b[1m1234\x1b[3;1H56789 b", "a [masked] b"),
            (r"a sk-test-01\n  234\r\n| 56789 b", "a [masked] b"),
            (r"a sk-test-01 \u2502\r\n\u2502 23456789 b", "a [masked] b"),
            ("a sk\n-test-0123456789 b", "a sk\n[masked] b"),
            ("a sk-test-01 23456789 b", "a sk-test-01 23456789 b"),
            ("a sk-test-\n012345678 b", "a sk-test-\n012345678 b"),
        ] {
            assert_eq!(mask.mask(text), expected, "{text:?}");
            let mut stream = MaskedStream::new(mask.clone());
            let pieces = text.as_bytes().chunks(1).flat_map(|piece| stream.next(piece));
            let shown: Vec<u8> = pieces.collect();
            assert_eq!(String::from_utf8_lossy(&shown), expected, "{text:?}");
        }
        // Output that ends like the beginning of a value does not wait for more.
        let mut stream = MaskedStream::new(mask);
        assert_eq!(stream.next(b"to do: the task\n"), b"to do: the task\n");
    }

    #[test]
    fn only_values_that_may_be_keys_are_masked() {
        let is_masked = |name: &str, value: &str| {
            let mut secrets = Vec::new();
            collect_secrets(name, value, &mut secrets);
            secrets.iter().any(|secret| secret == value)
        };
        for (name, value) in [
            ("API_KEY", "/looks/like/a/path"),
            ("DB_PASSWORD", "12345678"),
            ("PLAIN", "sk-test-0123456789"),
            ("BASE_URL", "https://user:0123456789@example.com/v1"),
            ("BASE_URL", "https://example.com/v1?sig=0123456789"),
            ("HOOK", "https://hooks.example.com/services/T00000000/0123456789abcdefghij"),
            ("PLAIN", "/not a path"),
        ] {
            assert!(is_masked(name, value), "{name}={value}");
        }
        for (name, value) in [
            ("CLAUDE_CONFIG_DIR", "/srv/lab/.claude"),
            ("STATE", "~/.local/state"),
            ("ANTHROPIC_BASE_URL", "https://llm-gateway.internal.example.com:8443/anthropic/v1"),
            ("ANTHROPIC_MODEL", "claude-sonnet-4-5-20250929"),
            ("AWS_REGION", "eu-central-1"),
            ("TIMEOUT_MS", "1800000000"),
            ("TRACING", "disabled"),
        ] {
            assert!(!is_masked(name, value), "{name}={value}");
        }
    }

    #[test]
    fn parts_of_a_value_are_masked_where_they_stand_alone() {
        let mut secrets = Vec::new();
        collect_secrets(
            "CONFIG",
            r#"{"p": {"apiKey": "sk-0123456789", "url": "https://e.com"}}"#,
            &mut secrets,
        );
        collect_secrets("PROXY_URL", "http://ada:pass-word-1@proxy:3128/", &mut secrets);
        collect_secrets("PEM", "-----BEGIN-----\n0123456789abcdef\n-----END-----", &mut secrets);
        let mask = SecretMask::of_values(secrets.iter().map(String::as_str));
        assert_eq!(mask.mask("sk-0123456789 pass-word-1"), "[masked] [masked]");
        assert_eq!(mask.mask("| 0123456789abcdef |\nhttps://e.com"), "| [masked] |\nhttps://e.com");
    }

    #[test]
    fn the_end_of_a_text_does_not_begin_with_the_end_of_a_value() {
        let mask = mask(&["0123456789abcdef"]);
        for cut in 0..16 {
            let between = "-".repeat(mask.longest());
            let text = format!("0123456789abcdef, then {between} 0123456789abcdef and more text");
            let shown = mask.mask_end(&text.as_bytes()[cut..]);
            assert!(!shown.contains('f') && shown.ends_with(" and more text"), "{shown}");
        }
        assert_eq!(mask.mask_end(b"short"), "");
    }

    #[test]
    fn a_value_that_comes_in_pieces_is_masked() {
        let mut stream = MaskedStream::new(mask(&["0123456789abcdef"]));
        assert_eq!(stream.next(b"x 01234567"), b"x ");
        assert_eq!(stream.next(b"89abcdef y 01"), b"[masked] y ");
        assert_eq!(stream.end(), b"01");
        assert_eq!(stream.next(b"0123456789"), b"");
        assert_eq!(stream.end(), MASK);
    }

    proptest! {
        #[test]
        fn pieces_are_masked_like_the_whole(
            text in r"([ab\n\\]|\\u006[12]|\x1b\[3?m|\\u001b\[m){0,60}", cuts in prop::collection::vec(1_usize..9, 0..30),
            values in prop::collection::vec("[ab]{8,10}", 0..3),
        ) {
            let values: Vec<&str> = values.iter().map(String::as_str).collect();
            let mask = mask(&values);
            let mut stream = MaskedStream::new(mask.clone());
            let (mut shown, mut rest) = (Vec::new(), text.as_bytes());
            for cut in cuts {
                let (piece, after) = rest.split_at(cut.min(rest.len()));
                shown.extend(stream.next(piece));
                rest = after;
            }
            shown.extend(stream.next(rest));
            let whole = mask.mask(&text).into_owned();
            // The end may be most of a value.
            let is_same = whole.as_bytes().starts_with(&shown);
            prop_assert!(is_same, "{:?} and {:?}", String::from_utf8_lossy(&shown), whole);
            for value in values {
                prop_assert!(!contains(&shown, value.as_bytes()));
                prop_assert!(!mask.mask(&text).contains(value));
            }
        }
    }
}
