//! Inputs made of other inputs.

use crate::INPUT_BYTES_MAX;

/// Numbers that look random and are the same for the same seed.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// A sequence of its own for every seed and name.
    pub fn new(seed: u64, name: &str) -> Self {
        let start = |state: u64, byte: u8| (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        Self(name.bytes().fold(seed ^ 0xcbf2_9ce4_8422_2325, start))
    }

    /// The next number (splitmix64).
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`; 0 if there is none.
    pub fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound).unwrap_or(u64::MAX).max(1);
        usize::try_from(self.number() % bound).unwrap_or(0)
    }

    fn byte(&mut self) -> u8 {
        self.number().to_le_bytes()[0]
    }

    /// One of `items`, if there are any.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        items.get(self.below(items.len()))
    }

    /// A place in `bytes`, and one behind it.
    fn stretch(&mut self, bytes: &[u8]) -> std::ops::Range<usize> {
        let start = self.below(bytes.len() + 1);
        let length = self.below((bytes.len() - start).min(64) + 1);
        start..start + length
    }
}

/// Bytes without any sense.
pub(crate) fn noise(random: &mut Random) -> Vec<u8> {
    let length = random.below(64);
    (0..length).map(|_| random.byte()).collect()
}

/// Signs that mean something to one parser or another.
const SIGNS: &[&str] = &[
    "\"",
    "'",
    "\\",
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
    ":",
    ",",
    ";",
    "=",
    "-",
    ".",
    "#",
    "%",
    "@",
    "/",
    "?",
    "&",
    "\n",
    "\r\n",
    "\t",
    " ",
    "\0",
    "\u{1b}[31m",
    "\u{7f}",
    "\u{85}",
    "\u{a0}",
    "\u{feff}",
    "\u{2028}",
    "\u{202e}",
    "é",
    "ß",
    "İ",
    "日本",
    "🔧",
    "e\u{301}",
    "0",
    "-1",
    "00",
    "1e999",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551616",
    "\\u0000",
    "\\ud800",
];

/// A variation of `input`: a few bytes flipped, parts left out, doubled or swapped for parts of
/// `others`, signs and `words` put in.
pub(crate) fn mutated(
    input: &[u8],
    others: &[Vec<u8>],
    words: &[&str],
    random: &mut Random,
) -> Vec<u8> {
    let mut bytes = input.to_vec();
    for _ in 0..=random.below(4) {
        let place = random.below(bytes.len() + 1);
        match random.below(9) {
            0 if !bytes.is_empty() => {
                let at = random.below(bytes.len());
                bytes[at] ^= 1 << random.below(8);
            }
            1 if !bytes.is_empty() => {
                let at = random.below(bytes.len());
                bytes[at] = random.byte();
            }
            2 => bytes.truncate(place),
            3 => drop(bytes.drain(random.stretch(&bytes))),
            4 => {
                let copy = bytes[random.stretch(&bytes)].to_vec();
                bytes.splice(place..place, copy);
            }
            5 => {
                let other = random.pick(others).map_or(&[] as &[u8], Vec::as_slice);
                let part = other[random.stretch(other)].to_vec();
                let replaced = random.stretch(&bytes);
                bytes.splice(replaced, part);
            }
            6 | 7 => {
                let word = random.pick(words).copied().unwrap_or_default();
                bytes.splice(place..place, word.bytes());
            }
            _ => {
                let sign = random.pick(SIGNS).copied().unwrap_or_default();
                bytes.splice(place..place, sign.bytes());
            }
        }
    }
    bytes.truncate(INPUT_BYTES_MAX);
    bytes
}
