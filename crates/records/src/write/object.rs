//! JSON written straight into a text, without a tree in between.

use std::fmt::{Display, Write};

use gt_core::Timestamp;

/// Writes the fields of one compact JSON object, in the order in which its methods are called.
///
/// Other tools expect this order of fields, so this is not a map. Keys
/// are not checked for repetition.
#[derive(Debug)]
pub struct ObjectWriter<'a> {
    out: &'a mut String,
    is_empty: bool,
}

impl<'a> ObjectWriter<'a> {
    /// Opens the object. Without [`ObjectWriter::finish`] it stays open.
    pub fn new(out: &'a mut String) -> Self {
        out.push('{');
        Self { out, is_empty: true }
    }

    /// Starts a field and gives the place for its value, into which exactly one JSON value must go.
    pub fn value(&mut self, key: &str) -> &mut String {
        separate(self.out, &mut self.is_empty);
        write_string(self.out, key);
        self.out.push(':');
        self.out
    }

    /// A string.
    pub fn text(&mut self, key: &str, text: &str) {
        write_string(self.value(key), text);
    }

    /// A string, left out when it is empty, which in a record means the same.
    pub fn text_unless_empty(&mut self, key: &str, text: &str) {
        if !text.is_empty() {
            self.text(key, text);
        }
    }

    /// A whole number.
    pub fn number(&mut self, key: &str, number: i64) {
        write_plain(self.value(key), number);
    }

    /// A number of things, which may be more than [`ObjectWriter::number`] can say.
    pub fn count(&mut self, key: &str, count: u64) {
        write_plain(self.value(key), count);
    }

    /// `true` or `false`.
    pub fn flag(&mut self, key: &str, flag: bool) {
        write_plain(self.value(key), flag);
    }

    /// `true`, or nothing at all, which in a record means the same as `false`.
    pub fn flag_if_set(&mut self, key: &str, flag: bool) {
        if flag {
            self.flag(key, true);
        }
    }

    /// An instant, in UTC with as many digits as it needs.
    pub fn timestamp(&mut self, key: &str, timestamp: Timestamp) {
        let out = self.value(key);
        out.push('"');
        write_plain(out, timestamp);
        out.push('"');
    }

    /// A value that is JSON already.
    pub fn raw(&mut self, key: &str, json: &str) {
        self.value(key).push_str(json);
    }

    /// An array, empty or not.
    pub fn array(&mut self, key: &str, write: impl FnOnce(&mut ArrayWriter<'_>)) {
        let mut array = ArrayWriter::new(self.value(key));
        write(&mut array);
        array.finish();
    }

    /// An object in the object.
    pub fn object(&mut self, key: &str, write: impl FnOnce(&mut ObjectWriter<'_>)) {
        let mut object = ObjectWriter::new(self.value(key));
        write(&mut object);
        object.finish();
    }

    /// Closes the object.
    pub fn finish(self) {
        self.out.push('}');
    }
}

/// Writes the elements of one compact JSON array.
#[derive(Debug)]
pub struct ArrayWriter<'a> {
    out: &'a mut String,
    is_empty: bool,
}

impl<'a> ArrayWriter<'a> {
    /// Opens the array. Without [`ArrayWriter::finish`] it stays open.
    pub fn new(out: &'a mut String) -> Self {
        out.push('[');
        Self { out, is_empty: true }
    }

    /// Starts an element and gives the place for it, into which exactly one JSON value must go.
    pub fn element(&mut self) -> &mut String {
        separate(self.out, &mut self.is_empty);
        self.out
    }

    /// A string.
    pub fn text(&mut self, text: &str) {
        write_string(self.element(), text);
    }

    /// An element that is JSON already.
    pub fn raw(&mut self, json: &str) {
        self.element().push_str(json);
    }

    /// An object.
    pub fn object(&mut self, write: impl FnOnce(&mut ObjectWriter<'_>)) {
        let mut object = ObjectWriter::new(self.element());
        write(&mut object);
        object.finish();
    }

    /// Closes the array.
    pub fn finish(self) {
        self.out.push(']');
    }
}

fn separate(out: &mut String, is_empty: &mut bool) {
    if !std::mem::take(is_empty) {
        out.push(',');
    }
}

fn write_plain(out: &mut String, value: impl Display) {
    // Only the value itself could fail here, and the values above do not.
    let _ = write!(out, "{value}");
}

/// Writes a JSON string with the same escapes as Go and `serde_json`, but for the HTML ones.
pub(crate) fn write_string(out: &mut String, text: &str) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.push('"');
    let mut written = 0;
    for (at, byte) in text.bytes().enumerate() {
        if byte >= b' ' && byte != b'"' && byte != b'\\' {
            continue;
        }
        out.push_str(&text[written..at]);
        written = at + 1;
        out.push('\\');
        match byte {
            b'"' | b'\\' => out.push(char::from(byte)),
            b'\n' => out.push('n'),
            b'\r' => out.push('r'),
            b'\t' => out.push('t'),
            b'\x08' => out.push('b'),
            b'\x0c' => out.push('f'),
            control => {
                out.push_str("u00");
                out.push(char::from(HEX[usize::from(control >> 4)]));
                out.push(char::from(HEX[usize::from(control & 0xf)]));
            }
        }
    }
    out.push_str(&text[written..]);
    out.push('"');
}
