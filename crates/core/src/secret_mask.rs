//! Keys that must not be shown: the values of the environments of accounts, wherever they stand in a text.

use std::borrow::Cow;

use crate::schedule::Account;

/// Shorter values are not masked: they are words that stand in any text.
const SECRET_BYTES_MIN: usize = 8;

/// The text in the place of a value. It needs no escape in JSON.
const MASK: &[u8] = b"[masked]";

/// The values that must not be shown.
#[derive(Debug, Clone, Default)]
pub struct SecretMask {
    /// Longest first, so that a value that contains another one is masked as a whole.
    secrets: Vec<Vec<u8>>,
}

impl SecretMask {
    /// The values of the environments of these accounts, also as they stand in JSON.
    pub fn of_accounts(accounts: &[Account]) -> Self {
        let values = accounts.iter().flat_map(|account| &account.environment);
        Self::of_values(values.map(|(_, value)| value.as_str()))
    }

    fn of_values<'v>(values: impl Iterator<Item = &'v str>) -> Self {
        let mut secrets = Vec::new();
        for value in values.filter(|value| value.len() >= SECRET_BYTES_MIN) {
            let in_json = serde_json::Value::from(value).to_string();
            let in_json = in_json.trim_start_matches('"').strip_suffix('"').unwrap_or(value);
            secrets.push(in_json.as_bytes().to_vec());
            secrets.push(value.as_bytes().to_vec());
        }
        secrets.sort_by(|one, other| other.len().cmp(&one.len()).then_with(|| one.cmp(other)));
        secrets.dedup();
        Self { secrets }
    }

    /// Whether there is nothing to mask.
    pub fn is_empty(&self) -> bool {
        self.secrets.is_empty()
    }

    /// A text without the values.
    pub fn mask<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if !self.secrets.iter().any(|secret| contains(text.as_bytes(), secret)) {
            return Cow::Borrowed(text);
        }
        let (mut masked, rest) = self.mask_whole(text.as_bytes(), false);
        masked.extend_from_slice(rest);
        // Values are text, so the parts between them are text as well.
        Cow::Owned(String::from_utf8_lossy(&masked).into_owned())
    }

    /// Masks the values in bytes. With `goes_on`, the end of the bytes that may be the beginning of a value is returned
    /// separately, as it is.
    fn mask_whole<'b>(&self, bytes: &'b [u8], goes_on: bool) -> (Vec<u8>, &'b [u8]) {
        let mut masked = Vec::with_capacity(bytes.len());
        let mut at = 0;
        while at < bytes.len() {
            let rest = &bytes[at..];
            if let Some(secret) = self.secrets.iter().find(|secret| rest.starts_with(secret)) {
                masked.extend_from_slice(MASK);
                at += secret.len();
            } else if goes_on && self.secrets.iter().any(|secret| secret.starts_with(rest)) {
                return (masked, rest);
            } else {
                masked.push(bytes[at]);
                at += 1;
            }
        }
        (masked, &[])
    }
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
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
            text in "[ab\n]{0,60}", cuts in prop::collection::vec(1_usize..9, 0..30),
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
