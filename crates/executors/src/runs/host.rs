//! What tells the machine, and the directory on it, apart from all others that may share a store.

use std::fs::{self, File};
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, Read as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

/// How many digits an identity has.
const DIGITS: usize = 16;

/// Where Linux says which start of the machine this is.
const BOOT: &str = "/proc/sys/kernel/random/boot_id";

/// What tells this start of the machine apart from all others, in digits; nothing where nobody can say.
pub fn boot_identity() -> Option<String> {
    digits_of(&fs::read_to_string(BOOT).ok()?)
}

/// The digits of an identity that is written with dashes.
fn digits_of(text: &str) -> Option<String> {
    let digits: String = text.trim().chars().filter(|c| *c != '-').collect();
    let is_whole =
        digits.len() == 2 * DIGITS && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_whole.then_some(digits)
}

/// The identity that is kept in the file at `path`; if there is none yet, it is made, once for all who ask.
///
/// A name would not do: containers share one, a second directory on the same machine has locks of its own, and
/// a machine may be renamed while runs are live.
pub fn host_identity(path: &Path) -> io::Result<String> {
    match fs::read_to_string(path) {
        Ok(text) => {
            if let Some(identity) = parse(&text) {
                return Ok(identity);
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let mut file =
        File::options().read(true).write(true).create(true).truncate(false).open(path)?;
    // Of several who find nothing at once, the others read what the first has written.
    file.lock()?;
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    if let Some(identity) = parse(&text) {
        return Ok(identity);
    }
    let identity = format!("{:016x}", RandomState::new().hash_one(std::process::id()));
    let line = format!("{identity}\n");
    file.write_all_at(line.as_bytes(), 0)?;
    file.set_len(line.len() as u64)?;
    file.sync_all()?;
    Ok(identity)
}

/// The identity in a file. One that was not written to its end is none.
fn parse(text: &str) -> Option<String> {
    let identity = text.strip_suffix('\n')?;
    let is_whole =
        identity.len() == DIGITS && identity.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_whole.then(|| identity.to_owned())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn everybody_who_asks_in_one_directory_gets_the_same_identity() {
        let town = tempfile::tempdir().unwrap();
        let path = town.path().join("host");
        let seen: BTreeSet<String> = std::thread::scope(|scope| {
            let askers: Vec<_> =
                (0..8).map(|_| scope.spawn(|| host_identity(&path).unwrap())).collect();
            askers.into_iter().map(|asker| asker.join().unwrap()).collect()
        });
        assert_eq!(seen.len(), 1);
        assert_eq!(seen.first(), Some(&host_identity(&path).unwrap()));

        let other = host_identity(&town.path().join("other")).unwrap();
        assert!(!seen.contains(&other));
    }

    #[test]
    fn a_start_of_the_machine_is_named_by_digits() {
        assert_eq!(boot_identity(), boot_identity());
        let text = "0b7f4c1e-27a4-4d0e-8f1b-2f6f0a3c9d11\n";
        assert_eq!(digits_of(text).unwrap(), "0b7f4c1e27a44d0e8f1b2f6f0a3c9d11");
        for text in ["", "\n", "0b7f4c1e", "not an identity, but it is long enough"] {
            assert_eq!(digits_of(text), None, "{text:?}");
        }
    }

    #[test]
    fn what_was_not_written_to_its_end_is_made_anew() {
        let town = tempfile::tempdir().unwrap();
        let path = town.path().join("host");
        for left in ["", "0123", "0123456789abcdef", "not an identity, but long\n"] {
            fs::write(&path, left).unwrap();
            let identity = host_identity(&path).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), format!("{identity}\n"), "{left:?}");
        }
        fs::write(&path, "0123456789abcdef\n").unwrap();
        assert_eq!(host_identity(&path).unwrap(), "0123456789abcdef");
    }
}
