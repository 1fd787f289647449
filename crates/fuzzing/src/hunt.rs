//! Looking for an input that breaks a promise, without a fuzzer.

use std::any::Any;
use std::cell::Cell;
use std::fmt::{self, Write as _};
use std::io::Write as _;
use std::panic::{self, AssertUnwindSafe};
use std::path::PathBuf;
use std::sync::Once;

use crate::mutate::{generator, mutated, noise};
use crate::{FuzzTarget, INPUT_BYTES_MAX};

/// An input that breaks a promise.
#[derive(Debug, Clone)]
pub struct FuzzFailure {
    /// The target that broke its promise.
    pub target: &'static str,
    /// The message of the panic.
    pub message: String,
    /// The input, made smaller as far as that was easy.
    pub input: Vec<u8>,
    /// The origin of the input.
    pub origin: String,
    /// The seed that leads to it again.
    pub seed: u64,
    /// Where the input is kept, if it could be.
    pub file: Option<PathBuf>,
}

impl fmt::Display for FuzzFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { target, message, input, origin, seed, file } = self;
        writeln!(f, "{target}: {message}")?;
        writeln!(f, "  input: {:?}", String::from_utf8_lossy(input))?;
        let mut hex = String::with_capacity(input.len() * 2);
        for byte in input {
            write!(hex, "{byte:02x}")?;
        }
        writeln!(f, "  hex:   {hex}")?;
        writeln!(f, "  from:  {origin}, GT_FUZZ_SEED={seed}")?;
        if let Some(file) = file {
            writeln!(f, "  kept:  {}", file.display())?;
            write!(f, "  when it is repaired: cp {} fuzz/corpus/{target}/", file.display())?;
        }
        Ok(())
    }
}

/// Runs a target with every input of `corpus`, then with `rounds` variations of them and with noise.
/// The same seed gives the same inputs, none of which is longer than [`INPUT_BYTES_MAX`].
pub fn hunt(
    target: &'static FuzzTarget,
    corpus: &[(String, Vec<u8>)],
    seed: u64,
    rounds: usize,
) -> Result<(), Box<FuzzFailure>> {
    let fail = |(message, input): (String, &[u8]), origin: String| {
        let (message, input) = smaller(target, message, input);
        let file = keep(target.name, &input);
        Box::new(FuzzFailure { target: target.name, message, input, origin, seed, file })
    };
    for (name, input) in corpus {
        let input = &input[..input.len().min(INPUT_BYTES_MAX)];
        if let Some(message) = broken(target, input) {
            return Err(fail((message, input), format!("corpus file {name}")));
        }
    }
    let mut random = generator(seed, target.name);
    let starts: Vec<Vec<u8>> = corpus.iter().map(|(_, input)| input.clone()).collect();
    for round in 0..rounds {
        let input = if round % 16 == 15 || starts.is_empty() {
            noise(&mut random)
        } else {
            let start = random.choice(&starts).map_or(&[] as &[u8], Vec::as_slice);
            mutated(start, &starts, target.words, &mut random)
        };
        if let Some(message) = broken(target, &input) {
            return Err(fail((message, &input), format!("round {round}")));
        }
    }
    Ok(())
}

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// The message of the target's panic if this input breaks its promise.
fn broken(target: &FuzzTarget, input: &[u8]) -> Option<String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        // One broken promise is found again and again while its input is made smaller.
        let told = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !QUIET.get() {
                told(info);
            }
        }));
    });
    QUIET.set(true);
    let ran = panic::catch_unwind(AssertUnwindSafe(|| (target.run)(input)));
    QUIET.set(false);
    ran.err().map(|panic| words_of(panic.as_ref()))
}

fn words_of(panic: &(dyn Any + Send)) -> String {
    let literal = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    literal.or_else(|| panic.downcast_ref().cloned()).unwrap_or_else(|| "a panic".to_owned())
}

/// Removes every piece of the input that the failure does not need, larger pieces first.
fn smaller(target: &FuzzTarget, mut message: String, input: &[u8]) -> (String, Vec<u8>) {
    const ATTEMPTS_MAX: usize = 2_000;
    let mut input = input.to_vec();
    let mut piece = input.len().div_ceil(2);
    let mut attempts = 0;
    while piece > 0 && attempts < ATTEMPTS_MAX {
        let mut at = 0;
        while at < input.len() && attempts < ATTEMPTS_MAX {
            attempts += 1;
            let mut shorter = input[..at].to_vec();
            shorter.extend(input.iter().skip(at + piece));
            match broken(target, &shorter) {
                Some(still) => (message, input) = (still, shorter),
                None => at += piece,
            }
        }
        piece /= 2;
    }
    (message, input)
}

/// Writes the input into a file that stays.
fn keep(target: &str, input: &[u8]) -> Option<PathBuf> {
    let name = format!("gt-fuzz-{target}-");
    let mut file = tempfile::Builder::new().prefix(&name).tempfile().ok()?;
    file.write_all(input).ok()?;
    file.keep().ok().map(|(_, path)| path)
}
