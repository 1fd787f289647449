//! Names of beads.

use std::cmp::Ordering;
use std::fmt;

use sha2::{Digest, Sha256};

use crate::{Invalid, Timestamp, limits};

/// The name of a bead, such as `gt-abc`, `hq-cv-x1y2z` or `gt-abc.3`.
///
/// Any printable ASCII without white space is accepted, because names that came from elsewhere must
/// survive; the ids we make ourselves are `<prefix>-<base36>`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BeadId(String);

impl BeadId {
    /// Checks the shape of `text`.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let shown: String = text.chars().take(60).collect();
        let invalid = |why: &str| Err(Invalid(format!("\"{}\" {why}", shown.escape_debug())));
        if text.is_empty() {
            return Err(Invalid::new("a bead id may not be empty"));
        }
        if text.len() > limits::ID_BYTES_MAX {
            return invalid("is not a bead id: longer than 200 bytes");
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"'`,<>\\".contains(&byte)) {
            return invalid("is not a bead id; ids look like gt-abc");
        }
        if !text.starts_with(|c: char| c.is_ascii_alphanumeric()) || !text.contains('-') {
            return invalid("is not a bead id; ids look like gt-abc");
        }
        Ok(Self(text.to_owned()))
    }

    /// Wraps text that was a valid id when it was stored.
    pub fn trusted(text: String) -> Self {
        Self(text)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Compares ids so that `gt-2` comes before `gt-10`, and `gt-a.2` before `gt-a.10`: the order of every list of parts.
    pub fn natural_order(&self, other: &Self) -> Ordering {
        natural_order(&self.0, &other.0).then_with(|| self.cmp(other))
    }

    /// The id of this bead's `number`th child.
    #[must_use]
    pub fn child(&self, number: u32) -> Self {
        Self(format!("{}.{number}", self.0))
    }

    /// Whether the ids of its children are short enough to be ids. Deeper down a child gets an id like any other bead.
    pub fn has_room_for_child(&self) -> bool {
        self.child(u32::MAX).0.len() <= crate::limits::ID_BYTES_MAX
    }

    /// Whether this is the id of a child bead (`gt-abc.3`).
    pub fn is_child(&self) -> bool {
        self.0.contains('.')
    }

    /// The part before the last `-` that is not followed by a reserved infix: `hq` of `hq-cv-x1y2z`.
    ///
    /// Used where no registered prefix fits.
    pub fn guessed_prefix(&self) -> &str {
        let mut prefix = self.0.rsplit_once('-').map_or(self.0.as_str(), |(head, _)| head);
        while let Some((head, infix)) = prefix.rsplit_once('-') {
            if !["cv", "wisp", "mol", "ctx"].contains(&infix) {
                break;
            }
            prefix = head;
        }
        prefix
    }

    /// Whether this id belongs to `prefix`: `gt-abc` to `gt`, and `my-app-x1` to both `my` and `my-app`.
    pub fn has_prefix(&self, prefix: &str) -> bool {
        self.0.strip_prefix(prefix).is_some_and(|rest| rest.len() > 1 && rest.starts_with('-'))
    }
}

impl fmt::Display for BeadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl AsRef<str> for BeadId {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

/// The UUIDv7 alias of a bead or rig.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uid(uuid::Uuid);

impl Uid {
    /// The alias of the bead called `id` that was made at `created_at`.
    ///
    /// Derived instead of drawn, so that a bead keeps its alias through export and import.
    pub fn of_bead(id: &BeadId, created_at: Timestamp) -> Self {
        let digest = Sha256::digest(id.as_str().as_bytes());
        let mut random = [0; 10];
        random.copy_from_slice(&digest[..10]);
        let millis = u64::try_from(created_at.as_nanos() / 1_000_000).unwrap_or(0);
        Self(uuid::Builder::from_unix_timestamp_millis(millis, &random).into_uuid())
    }

    /// The alias of a run that was begun at `created_at`, derived in the same way.
    pub fn of_run(id: &crate::schedule::RunId, created_at: Timestamp) -> Self {
        Self::of_bead(&BeadId(id.to_string()), created_at)
    }

    /// A fresh alias for something that is never exported.
    pub fn fresh() -> Self {
        Self(uuid::Uuid::now_v7())
    }

    /// Reads the usual text form.
    pub fn parse(text: &str) -> Option<Self> {
        uuid::Uuid::try_parse(text).ok().map(Self)
    }

    /// A UUID by its bytes.
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(uuid::Uuid::from_bytes(bytes))
    }

    /// The sixteen bytes.
    pub fn as_bytes(&self) -> &[u8; 16] {
        self.0.as_bytes()
    }

    /// The name of a session of the run with this id, as a UUID of version 4: some agents take no other. The first
    /// session has the number 1.
    pub fn session(&self, number: u32) -> String {
        let mut bytes = *self.0.as_bytes();
        for (byte, of_number) in bytes[12..].iter_mut().zip(number.to_be_bytes()) {
            *byte ^= of_number;
        }
        uuid::Builder::from_random_bytes(bytes).into_uuid().to_string()
    }
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.hyphenated().fmt(f)
    }
}

fn natural_order(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (a, b);
    loop {
        let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
        let (in_a, in_b) = (digits(a), digits(b));
        if in_a > 0 && in_b > 0 {
            let (number_a, number_b) =
                (a[..in_a].trim_start_matches('0'), b[..in_b].trim_start_matches('0'));
            let order = number_a.len().cmp(&number_b.len()).then(number_a.cmp(number_b));
            if order.is_ne() {
                return order;
            }
            (a, b) = (&a[in_a..], &b[in_b..]);
            continue;
        }
        let (mut chars_a, mut chars_b) = (a.chars(), b.chars());
        match (chars_a.next(), chars_b.next()) {
            (Some(from_a), Some(from_b)) if from_a == from_b => {
                (a, b) = (chars_a.as_str(), chars_b.as_str());
            }
            (from_a, from_b) => return from_a.cmp(&from_b),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_in_ids_sort_naturally() {
        let mut ids = ["gt-10", "gt-2", "gt-a.10", "gt-a.9", "gt-02", "gt-02a", "ga-1", "gt-a.9.1"]
            .map(|id| BeadId::parse(id).unwrap());
        ids.sort_by(BeadId::natural_order);
        let sorted: Vec<&str> = ids.iter().map(BeadId::as_str).collect();
        let expected =
            ["ga-1", "gt-02", "gt-2", "gt-02a", "gt-10", "gt-a.9", "gt-a.9.1", "gt-a.10"];
        assert_eq!(sorted, expected);
    }

    #[test]
    fn the_prefix_of_an_id_without_a_registered_one_is_guessed() {
        for (id, prefix) in [
            ("gt-abc", "gt"),
            ("gt-abc.1", "gt"),
            ("hq-cv-x1y2z", "hq"),
            ("gt-wisp-mol-1", "gt"),
            ("my-app-x1", "my-app"),
        ] {
            assert_eq!(BeadId::parse(id).unwrap().guessed_prefix(), prefix);
        }
    }

    #[test]
    fn an_alias_is_a_uuid_7_that_depends_on_id_and_time() {
        let id = BeadId::parse("gt-abc").unwrap();
        let at = Timestamp::parse("2026-05-31T12:34:56Z").unwrap();
        let uid = Uid::of_bead(&id, at);
        assert_eq!(uid, Uid::of_bead(&id, at));
        assert_eq!(&uid.to_string()[14..15], "7");
        assert_ne!(uid, Uid::of_bead(&BeadId::parse("gt-abd").unwrap(), at));
        assert_eq!(Uid::parse(&uid.to_string()), Some(uid));
    }

    #[test]
    fn malformed_ids_are_refused() {
        let long = format!("gt-{}", "a".repeat(limits::ID_BYTES_MAX));
        for id in ["", "gt", "-abc", "gt abc", "gt-a\nb", "gt-\0", "gt-ä", "gt-a,b", &long] {
            assert!(BeadId::parse(id).is_err(), "{id}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in ".{0,250}") {
            if let Ok(id) = BeadId::parse(&text) {
                let _ = id.guessed_prefix();
                prop_assert_eq!(id.as_str(), text);
            }
        }
    }
}
