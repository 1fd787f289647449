//! Finished JSON made to look the way the tools around us print it.

use serde_json::value::RawValue;

use super::object::ObjectWriter;
use crate::read::RecordFields;
use crate::tokens::tokens;

/// From this depth on the indentation stops growing, so that the size of the output stays proportional
/// to the size of the printed text.
const INDENT_LEVELS_MAX: usize = 128;

/// Indents compact JSON by two spaces as Go does, HTML escapes included; no newline at the end. Key
/// order and the spelling of numbers stay. Text that is not JSON comes back as it is.
pub fn pretty(compact: &str) -> String {
    if serde_json::from_str::<&RawValue>(compact).is_err() {
        return compact.to_owned();
    }
    let mut out = String::with_capacity(compact.len() + compact.len() / 2);
    let mut depth: usize = 0;
    let mut tokens = tokens(compact).peekable();
    while let Some(token) = tokens.next() {
        match token {
            "{" | "[" => {
                out.push_str(token);
                if let Some(end) = tokens.next_if(|next| matches!(*next, "}" | "]")) {
                    out.push_str(end);
                } else {
                    depth += 1;
                    start_line(&mut out, depth);
                }
            }
            "}" | "]" => {
                depth = depth.saturating_sub(1);
                start_line(&mut out, depth);
                out.push_str(token);
            }
            "," => {
                out.push(',');
                start_line(&mut out, depth);
            }
            ":" => out.push_str(": "),
            value => push_html_escaped(&mut out, value),
        }
    }
    out
}

fn start_line(out: &mut String, depth: usize) {
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", depth.min(INDENT_LEVELS_MAX)));
}

/// Escapes the characters that would mean something if the JSON were put into a web page. In JSON they
/// only occur in strings, so the text need not be understood.
pub fn escape_html(compact: &str) -> String {
    let mut out = String::with_capacity(compact.len());
    push_html_escaped(&mut out, compact);
    out
}

/// Whether [`escape_html`] would change anything.
pub(crate) fn needs_html_escape(text: &str) -> bool {
    text.bytes().any(|byte| matches!(byte, b'<' | b'>' | b'&' | SEPARATOR_FIRST_BYTE))
        && text.contains(['<', '>', '&', '\u{2028}', '\u{2029}'])
}

/// The first byte of the UTF-8 of U+2028 and U+2029.
const SEPARATOR_FIRST_BYTE: u8 = 0xe2;

fn push_html_escaped(out: &mut String, text: &str) {
    let mut written = 0;
    for (at, byte) in text.bytes().enumerate() {
        let (length, escape) = match byte {
            b'<' => (1, "\\u003c"),
            b'>' => (1, "\\u003e"),
            b'&' => (1, "\\u0026"),
            SEPARATOR_FIRST_BYTE if text[at..].starts_with('\u{2028}') => (3, "\\u2028"),
            SEPARATOR_FIRST_BYTE if text[at..].starts_with('\u{2029}') => (3, "\\u2029"),
            _ => continue,
        };
        out.push_str(&text[written..at]);
        out.push_str(escape);
        written = at + length;
    }
    out.push_str(&text[written..]);
}

/// The object with its keys in alphabetical order and the version of the format among them, as `bd`
/// prints single objects. The values stay as they are; text that is not an object comes back as it is.
pub fn sorted_object(compact: &str) -> String {
    const VERSION_KEY: &str = "schema_version";
    let Ok(fields) = RecordFields::parse(compact) else {
        return compact.to_owned();
    };
    let mut out = String::with_capacity(compact.len() + 24);
    let mut object = ObjectWriter::new(&mut out);
    let mut is_version_written = false;
    for (key, value) in fields.sorted() {
        if key == VERSION_KEY {
            continue;
        }
        if !is_version_written && key > VERSION_KEY {
            object.number(VERSION_KEY, 1);
            is_version_written = true;
        }
        object.raw(key, value.get());
    }
    if !is_version_written {
        object.number(VERSION_KEY, 1);
    }
    object.finish();
    out
}
