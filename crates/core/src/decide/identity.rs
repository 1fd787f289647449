//! How new beads get short names, and how people may shorten them further.

use sha2::{Digest, Sha256};

use crate::{BeadId, Prefix, Timestamp};

/// The values from which an id is derived.
#[derive(Debug, Clone, Copy)]
pub struct IdSeed<'a> {
    /// The title of the bead.
    pub title: &'a str,
    /// Its description.
    pub description: &'a str,
    /// The actor that makes it.
    pub creator: &'a str,
    /// The time of creation.
    pub at: Timestamp,
}

impl IdSeed<'_> {
    /// The id with this length and nonce. Same input, same id.
    pub fn id(&self, prefix: &Prefix, length: usize, nonce: u32) -> BeadId {
        let Self { title, description, creator, at } = self;
        let content = format!("{title}|{description}|{creator}|{}|{nonce}", at.as_nanos());
        let digest = Sha256::digest(content.as_bytes());
        let bytes = match length {
            ..=3 => 2,
            4 => 3,
            5 | 6 => 4,
            _ => 5,
        };
        let mut number = digest.iter().take(bytes).fold(0_u64, |n, b| (n << 8) | u64::from(*b));
        let mut digits = vec![b'0'; length];
        for digit in digits.iter_mut().rev() {
            *digit =
                b"0123456789abcdefghijklmnopqrstuvwxyz"[usize::try_from(number % 36).unwrap_or(0)];
            number /= 36;
        }
        let hash: String = digits.into_iter().map(char::from).collect();
        BeadId::trusted(format!("{prefix}-{hash}"))
    }

    /// Ids to try in order, beginning at the length that fits a prefix with `count` beads.
    pub fn candidates<'a>(
        &'a self,
        prefix: &'a Prefix,
        count: u64,
    ) -> impl Iterator<Item = BeadId> + 'a {
        (adaptive_length(count)..=LENGTH_MAX + 4).flat_map(move |length| {
            (0..NONCES_PER_LENGTH).map(move |nonce| self.id(prefix, length, nonce))
        })
    }
}

const LENGTH_MAX: usize = 8;
const NONCES_PER_LENGTH: u32 = 10;

/// The shortest id length that makes a collision among `count` beads unlikely (under a quarter).
pub fn adaptive_length(count: u64) -> usize {
    match count {
        0..164 => 3,
        164..984 => 4,
        984..5_899 => 5,
        5_899..35_390 => 6,
        35_390..212_340 => 7,
        _ => LENGTH_MAX,
    }
}

/// Which of `ids` a shortened `input` may mean: those whose part after the prefix contains it, or whose
/// whole id does if `input` has a dash itself. Capitals do not matter.
pub fn resolve_partial<'a>(input: &str, ids: impl Iterator<Item = &'a BeadId>) -> Vec<&'a BeadId> {
    let input = input.to_ascii_lowercase();
    ids.filter(|id| {
        let whole = id.as_str().to_ascii_lowercase();
        let from = if input.contains('-') { 0 } else { id.guessed_prefix().len() + 1 };
        whole.get(from..).is_some_and(|part| part.contains(&input))
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_short_lowercase_and_depend_on_the_nonce() {
        let at = Timestamp::from_nanos(1_780_230_896_789_012_345);
        let seed =
            IdSeed { title: "Fix login", description: "Details", creator: "jira-import", at };
        let prefix = Prefix::parse("bd").unwrap();
        for (length, nonce, expected) in
            [(3, 0, "bd-2q0"), (3, 1, "bd-pa5"), (3, 9, "bd-se9"), (4, 0, "bd-nd1o")]
        {
            assert_eq!(seed.id(&prefix, length, nonce).as_str(), expected);
        }
    }

    #[test]
    fn a_part_means_the_hash_unless_it_has_a_dash() {
        let ids = ["gt-abc", "gt-abd", "web-gt1"].map(|id| BeadId::parse(id).unwrap());
        let meant = |input: &str| resolve_partial(input, ids.iter()).len();
        assert_eq!(meant("bc"), 1);
        assert_eq!(meant("ab"), 2);
        assert_eq!(meant("gt"), 1);
        assert_eq!(meant("gt-a"), 2);
        assert_eq!(meant("GT-ABC"), 1);
        assert_eq!(meant("xyz"), 0);
    }

    #[test]
    fn the_length_grows_with_the_number_of_beads() {
        let lengths = [0, 163, 164, 983, 984, 5_899, 35_390, 212_340].map(adaptive_length);
        assert_eq!(lengths, [3, 3, 4, 4, 5, 6, 7, 8]);
    }
}
