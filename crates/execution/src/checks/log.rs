//! The output of checks, kept in files of limited size.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use gt_core::secret_mask::{MaskedStream, SecretMask};
use gt_core::{Rig, Timestamp};

use gt_town::town::DIRECTORY;
use gt_town::{OperationError, Result, Town};

/// How much of the beginning and of the end of an output is kept, in bytes.
const HEAD_BYTES_MAX: usize = 4 << 20;
const TAIL_BYTES_MAX: usize = 4 << 20;

/// The end of an output.
#[derive(Debug, Default)]
pub(super) struct LogEnd {
    /// Its last bytes, as text.
    pub(super) last_words: String,
    /// Whether there was no room left for the file.
    pub(super) is_disk_full: bool,
}

/// How much of the end of an output is looked at and shown, in bytes.
const LAST_WORDS_BYTES_MAX: usize = 64 << 10;

fn directory(town: &Town) -> PathBuf {
    town.root().join(DIRECTORY).join("checks")
}

/// Makes the file for the output of one run of a check.
pub(super) fn create(town: &Town, rig: &Rig, check: &str, commit: &str) -> Result<(File, PathBuf)> {
    let directory = directory(town).join(rig.slug.as_str());
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| OperationError::File { action: "write", path, source }
    };
    gt_executors::private::create_dir_all(&directory).map_err(failed(&directory))?;
    let short = commit.get(..12).unwrap_or(commit);
    let mut number = 1_u32;
    loop {
        let path = directory.join(format!("{check}-{short}-{number}.log"));
        match gt_executors::private::options().write(true).create_new(true).open(&path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => number += 1,
            opened => return Ok((opened.map_err(failed(&path))?, path)),
        }
    }
}

/// The keys that no output of a check is kept with.
pub(super) fn secret_mask(town: &Town) -> Result<SecretMask> {
    Ok(SecretMask::of_accounts(&town.read(|reader| Ok(reader.accounts_to_mask()?))?))
}

/// Copies an output into its file until it ends: its beginning, and its end. The file goes to people, to agents and into
/// pull requests, so keys are masked before they are written.
pub(super) fn keep(mut output: impl Read, mut file: File, mask: SecretMask) -> LogEnd {
    let mut masked = MaskedStream::new(mask);
    let (mut head, mut left_out) = (0, 0);
    let mut tail: Vec<u8> = Vec::new();
    let mut end = LogEnd::default();
    let mut write = |bytes: &[u8], end: &mut LogEnd| {
        if let Err(error) = file.write_all(bytes) {
            end.is_disk_full |=
                matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded);
        }
    };
    let mut piece = [0; 8 << 10];
    let mut last: Vec<u8> = Vec::new();
    let mut has_ended = false;
    while !has_ended {
        let read = match output.read(&mut piece) {
            Ok(read) if read > 0 => masked.next(&piece[..read]),
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Ok(_) | Err(_) => {
                has_ended = true;
                masked.end()
            }
        };
        last.extend_from_slice(&read);
        keep_end(&mut last, LAST_WORDS_BYTES_MAX);
        let (first, rest) = read.split_at(read.len().min(HEAD_BYTES_MAX - head));
        head += first.len();
        write(first, &mut end);
        tail.extend_from_slice(rest);
        left_out += keep_end(&mut tail, TAIL_BYTES_MAX);
    }
    if left_out > 0 {
        write(format!("\n… {left_out} bytes left out …\n").as_bytes(), &mut end);
    }
    write(&tail, &mut end);
    keep_end_exactly(&mut last, LAST_WORDS_BYTES_MAX);
    end.last_words = String::from_utf8_lossy(&last).into_owned();
    end
}

/// The last lines of a kept output, at most so many; empty if the file is not here.
pub(crate) fn last_lines(path: &Path, count: usize) -> String {
    let read = || -> io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        let surplus = file.metadata()?.len().saturating_sub(LAST_WORDS_BYTES_MAX as u64);
        file.seek(SeekFrom::Start(surplus))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = read().unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.trim_end().lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

/// Removes the beginning of what has become twice as long as this; gives how much that was.
fn keep_end(bytes: &mut Vec<u8>, max: usize) -> usize {
    if bytes.len() <= 2 * max { 0 } else { keep_end_exactly(bytes, max) }
}

fn keep_end_exactly(bytes: &mut Vec<u8>, max: usize) -> usize {
    let surplus = bytes.len().saturating_sub(max);
    bytes.drain(..surplus);
    surplus
}

/// Removes the outputs of checks that have not changed since `before`; returns how many.
pub fn forget_check_logs(town: &Town, before: Timestamp) -> Result<u64> {
    let top = directory(town);
    let failed =
        |source: io::Error| OperationError::File { action: "clean", path: top.clone(), source };
    let mut gone = 0;
    for rig in entries(&top).map_err(failed)? {
        for file in entries(&rig).map_err(failed)? {
            let changed = fs::metadata(&file).and_then(|data| data.modified());
            let since = changed.ok().and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok());
            let nanos = since.and_then(|since| i64::try_from(since.as_nanos()).ok());
            if nanos.is_some_and(|nanos| Timestamp::from_nanos(nanos) < before) {
                fs::remove_file(&file).map_err(failed)?;
                gone += 1;
            }
        }
    }
    Ok(gone)
}

fn entries(directory: &Path) -> io::Result<Vec<PathBuf>> {
    match fs::read_dir(directory) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Ok(Vec::new())
        }
        entries => Ok(entries?.flatten().map(|entry| entry.path()).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beginning_and_end_of_a_long_output_are_kept() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let line = |number: usize| format!("line {number:08}\n");
        let output: String = (0..2_000_000).map(line).collect();
        let end = keep(output.as_bytes(), File::create(&path).unwrap(), SecretMask::default());
        let kept = fs::read_to_string(&path).unwrap();
        assert!(kept.len() < HEAD_BYTES_MAX + 2 * TAIL_BYTES_MAX + 100);
        assert!(kept.starts_with("line 00000000\n") && kept.ends_with("line 01999999\n"));
        assert!(kept.contains("bytes left out"));
        assert!(end.last_words.ends_with("line 01999999\n"));
        assert!(end.last_words.len() <= LAST_WORDS_BYTES_MAX);

        let end = keep(&b"short"[..], File::create(&path).unwrap(), SecretMask::default());
        assert_eq!(
            (fs::read_to_string(&path).unwrap().as_str(), end.last_words.as_str()),
            ("short", "short")
        );
    }

    #[test]
    fn a_file_without_room_is_told() {
        let full = File::options().write(true).open("/dev/full").unwrap();
        assert!(keep(&b"some"[..], full, SecretMask::default()).is_disk_full);
    }
}
