//! Inputs made of other inputs.

use std::ops::Range;

use fastrand::Rng;

use crate::INPUT_BYTES_MAX;

/// A sequence of random numbers for each seed and name.
pub(crate) fn generator(seed: u64, name: &str) -> Rng {
    let start = |state: u64, byte: u8| (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    Rng::with_seed(name.bytes().fold(seed ^ 0xcbf2_9ce4_8422_2325, start))
}

/// A place in `bytes`, and one behind it.
fn stretch(random: &mut Rng, bytes: &[u8]) -> Range<usize> {
    let start = random.usize(..=bytes.len());
    let length = random.usize(..=(bytes.len() - start).min(64));
    start..start + length
}

/// Bytes without any sense.
pub(crate) fn noise(random: &mut Rng) -> Vec<u8> {
    let length = random.usize(..64);
    (0..length).map(|_| random.u8(..)).collect()
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
    random: &mut Rng,
) -> Vec<u8> {
    let mut bytes = input.to_vec();
    for _ in 0..random.usize(1..=4) {
        let place = random.usize(..=bytes.len());
        match random.usize(..9) {
            0 if !bytes.is_empty() => {
                let at = random.usize(..bytes.len());
                bytes[at] ^= 1 << random.usize(..8);
            }
            1 if !bytes.is_empty() => {
                let at = random.usize(..bytes.len());
                bytes[at] = random.u8(..);
            }
            2 => bytes.truncate(place),
            3 => drop(bytes.drain(stretch(random, &bytes))),
            4 => {
                let copy = bytes[stretch(random, &bytes)].to_vec();
                bytes.splice(place..place, copy);
            }
            5 => {
                let other = random.choice(others).map_or(&[] as &[u8], Vec::as_slice);
                let part = other[stretch(random, other)].to_vec();
                let replaced = stretch(random, &bytes);
                bytes.splice(replaced, part);
            }
            6 | 7 => {
                let word = random.choice(words).copied().unwrap_or_default();
                bytes.splice(place..place, word.bytes());
            }
            _ => {
                let sign = random.choice(SIGNS).copied().unwrap_or_default();
                bytes.splice(place..place, sign.bytes());
            }
        }
    }
    bytes.truncate(INPUT_BYTES_MAX);
    bytes
}
