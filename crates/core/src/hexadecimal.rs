//! Bytes as hexadecimal digits, and text with some of its bytes written so.

use std::fmt::Write as _;

/// Two small digits for each byte.
pub fn digits_of(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // Writing to a text does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// A text in which every byte that is not plain is `%` and two capital digits.
pub fn percent_encoded(text: &str, is_plain: impl Fn(u8) -> bool) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if is_plain(byte) {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

/// The name of a file for any text: every byte that is not a letter, a digit, `-` or `_` is `%` and two small digits.
pub fn file_name_of(text: &str) -> String {
    let mut name = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_".contains(&byte) {
            name.push(char::from(byte));
        } else {
            let _ = write!(name, "%{byte:02x}");
        }
    }
    name
}

/// The bytes that are written like this; nothing if they are not, or not in small digits.
pub fn bytes_of(digits: &str) -> Option<Vec<u8>> {
    let pairs = digits.as_bytes().chunks_exact(2);
    if !pairs.remainder().is_empty() {
        return None;
    }
    let value = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    pairs.map(|pair| Some(value(pair[0])? << 4 | value(pair[1])?)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn written_bytes_read_back(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            prop_assert_eq!(bytes_of(&digits_of(&bytes)), Some(bytes));
        }

        #[test]
        fn nothing_else_reads(text in ".{0,20}") {
            if let Some(bytes) = bytes_of(&text) {
                prop_assert_eq!(digits_of(&bytes), text);
            }
        }
    }
}
