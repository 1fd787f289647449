//! The output of the worker of a run.

use std::fs::File;
use std::io::{self, ErrorKind, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use gt_core::schedule::{Run, RunId};
use gt_core::secret_mask::{MaskedStream, SecretMask};
use gt_executors::runs::RunFiles;
use gt_store::RunOutputTail;

use gt_scheduling::processes::{LocalProcesses, ProcessProbe as _};
use gt_scheduling::run_transitions::{log_path, open_output};
use gt_town::hosts::has_lease;
use gt_town::{OperationError, Result, Town};

/// The output of a run, read from its beginning as it grows, without the keys of accounts. It may not be there yet.
#[derive(Debug)]
pub struct RunOutput {
    path: PathBuf,
    file: Option<File>,
    masked: MaskedStream,
    /// Bytes that were read and masked, and not returned yet.
    ready: Vec<u8>,
    elsewhere: Option<OutputElsewhere>,
    kept: Option<OutputInStore>,
}

/// How often the store is asked whether another host has kept more.
const KEPT_POLL_INTERVAL: Duration = Duration::from_secs(5);

/// How long after the end of a run of another host its last output may be seen: its supervisor keeps it after the end.
pub const KEPT_OUTPUT_WAIT_MAX: Duration = Duration::from_secs(6);

/// The end of an output in the store, which may grow.
#[derive(Debug)]
struct OutputInStore {
    town: Town,
    run: RunId,
    /// The length of the whole output when it was last looked at.
    bytes: u64,
    looked: Instant,
}

impl OutputInStore {
    /// The bytes that are new since the last look.
    fn more(&mut self) -> Result<Vec<u8>> {
        if self.looked.elapsed() < KEPT_POLL_INTERVAL {
            return Ok(Vec::new());
        }
        self.looked = Instant::now();
        let Some(kept) = self.town.read(|reader| Ok(reader.run_output(&self.run)?))? else {
            return Ok(Vec::new());
        };
        let new = usize::try_from(kept.bytes.saturating_sub(self.bytes)).unwrap_or(usize::MAX);
        self.bytes = kept.bytes;
        let begin = kept.tail.len().saturating_sub(new);
        Ok(kept.tail[begin..].to_vec())
    }
}

/// The place of an output of which only the end is here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputElsewhere {
    /// The machine that has all of it.
    pub host: String,
    /// How many bytes are missing here, from its beginning.
    pub cut_bytes: u64,
}

/// The output of the setup command of the tree of a run that failed because of it.
pub(super) fn setup_path(town: &Town, run: &Run) -> Option<PathBuf> {
    let files = RunFiles::of(&town.runs_directory(), &run.id.to_string());
    Some(files.setup_path()).filter(|path| run.running_at.is_none() && path.exists())
}

/// Where the output of a run is. No agent of a run has printed anything whose tree could not be set up.
pub(super) fn output_path(town: &Town, run: &Run) -> PathBuf {
    setup_path(town, run).unwrap_or_else(|| log_path(town, &run.id))
}

/// How many bytes are read in one step backwards from the end.
const READ_BACK_BYTES: u64 = 64 * 1024;

impl RunOutput {
    /// The output of this run, if this machine has it.
    pub fn of(town: &Town, run: &Run) -> Result<Self> {
        if !run.executor.takes_slot() {
            return Err(OperationError::rejected(format!(
                "{} is carried out by {}, and what they print is not kept",
                run.id, run.agent
            )));
        }
        if !run.is_on(LocalProcesses::of(town)?.host()) {
            return Self::of_another_host(town, run);
        }
        let mask = SecretMask::of_accounts(&town.read(|reader| Ok(reader.accounts_to_mask()?))?);
        Ok(Self {
            path: output_path(town, run),
            file: None,
            masked: MaskedStream::new(mask),
            ready: Vec::new(),
            elsewhere: None,
            kept: None,
        })
    }

    /// The end of the output of a run of another host, which keeps it in the store: now and then while it grows, and when the
    /// run has ended.
    fn of_another_host(town: &Town, run: &Run) -> Result<Self> {
        let (id, host) = (&run.id, run.host_name());
        let kept = match town.read(|reader| Ok(reader.run_output(id)?))? {
            Some(kept) => kept,
            // Its worker may have printed nothing so far.
            None if run.state.is_live() && has_lease(town) => {
                RunOutputTail { bytes: 0, tail: Vec::new() }
            }
            None => {
                return Err(OperationError::rejected(format!(
                    "the output of {id} is on {host}, in another directory of this town; ask there"
                )));
            }
        };
        let cut_bytes = kept.bytes.saturating_sub(kept.tail.len() as u64);
        Ok(Self {
            path: PathBuf::new(),
            file: None,
            masked: MaskedStream::new(SecretMask::of_accounts(&[])),
            ready: kept.tail,
            elsewhere: Some(OutputElsewhere { host: host.to_owned(), cut_bytes }),
            kept: Some(OutputInStore {
                town: town.clone(),
                run: id.clone(),
                bytes: kept.bytes,
                looked: Instant::now(),
            }),
        })
    }

    /// The host that has the whole output, if this one has only its end.
    pub fn elsewhere(&self) -> Option<&OutputElsewhere> {
        self.elsewhere.as_ref()
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Moves to the beginning of the last `lines` lines.
    pub fn skip_to_last(&mut self, lines: usize) -> Result<()> {
        if self.elsewhere.is_some() {
            self.ready.drain(..start_of_last_lines(&self.ready, lines));
            return Ok(());
        }
        let begin = |file: &mut File| {
            let start = start_of_last(file, lines)?;
            file.seek(SeekFrom::Start(start))
        };
        match self.open().and_then(|file| file.map(begin).transpose()) {
            Ok(_) => Ok(()),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// Moves to the beginning of the last `bytes` bytes.
    pub fn skip_to_last_bytes(&mut self, bytes: u64) -> Result<()> {
        if self.elsewhere.is_some() {
            let kept = usize::try_from(bytes).unwrap_or(usize::MAX);
            self.ready.drain(..self.ready.len().saturating_sub(kept));
            return Ok(());
        }
        let begin = |file: &mut File| {
            let end = file.seek(SeekFrom::End(0))?;
            file.seek(SeekFrom::Start(end.saturating_sub(bytes)))
        };
        match self.open().and_then(|file| file.map(begin).transpose()) {
            Ok(_) => Ok(()),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// The next bytes; 0 if there are none yet. Bytes at the end that may be the beginning of a key are held back until
    /// further ones show it, or [`Self::rest`] is asked.
    pub fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        if let Some(kept) = self.kept.as_mut().filter(|_| self.ready.is_empty()) {
            self.ready = kept.more()?;
        }
        while self.ready.is_empty() {
            let read = self.open().and_then(|file| file.map_or(Ok(0), |file| file.read(buffer)));
            match read.map_err(|error| self.failed(error))? {
                0 => break,
                count => self.ready = self.masked.next(&buffer[..count]),
            }
        }
        let count = self.ready.len().min(buffer.len());
        buffer[..count].copy_from_slice(&self.ready[..count]);
        self.ready.drain(..count);
        Ok(count)
    }

    /// The bytes that were held back, when no further ones are expected.
    pub fn rest(&mut self) -> Vec<u8> {
        self.masked.end()
    }

    /// All further bytes that are there now.
    pub fn read_to_end(&mut self) -> Result<Vec<u8>> {
        let (mut bytes, mut buffer) = (Vec::new(), vec![0; 64 * 1024]);
        loop {
            match self.read(&mut buffer)? {
                0 => break,
                count => bytes.extend_from_slice(&buffer[..count]),
            }
        }
        bytes.extend(self.rest());
        Ok(bytes)
    }

    fn open(&mut self) -> io::Result<Option<&mut File>> {
        if self.file.is_none() && self.elsewhere.is_none() {
            self.file = match open_output(&self.path) {
                Err(error) if error.kind() == ErrorKind::NotFound => None,
                opened => Some(opened?),
            };
        }
        Ok(self.file.as_mut())
    }

    fn failed(&self, source: io::Error) -> OperationError {
        OperationError::File { action: "read", path: self.path.clone(), source }
    }
}

/// The position of the last `lines` lines of bytes in memory.
fn start_of_last_lines(bytes: &[u8], lines: usize) -> usize {
    let body = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let mut breaks = body.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n');
    match lines.checked_sub(1) {
        None => bytes.len(),
        Some(before) => breaks.nth(before).map_or(0, |(at, _)| at + 1),
    }
}

/// The position of the last `lines` lines. A last line without a line break counts.
fn start_of_last(file: &mut File, lines: usize) -> io::Result<u64> {
    let mut end = file.seek(SeekFrom::End(0))?;
    let mut wanted = lines;
    let mut is_last_byte = true;
    let mut buffer = Vec::new();
    while end > 0 {
        if wanted == 0 && lines == 0 {
            return Ok(end);
        }
        let begin = end.saturating_sub(READ_BACK_BYTES);
        file.seek(SeekFrom::Start(begin))?;
        buffer.clear();
        file.by_ref().take(end - begin).read_to_end(&mut buffer)?;
        for (at, byte) in buffer.iter().enumerate().rev() {
            if *byte == b'\n' && !std::mem::replace(&mut is_last_byte, false) {
                wanted -= 1;
                if wanted == 0 {
                    return Ok(begin + at as u64 + 1);
                }
            }
            is_last_byte = false;
        }
        end = begin;
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use gt_core::Timestamp;
    use gt_core::schedule::Account;
    use proptest::prelude::*;

    use super::*;

    fn last(text: &[u8], lines: usize) -> Vec<u8> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text).unwrap();
        let start = usize::try_from(start_of_last(&mut file, lines).unwrap()).unwrap();
        text[start..].to_vec()
    }

    #[test]
    fn a_key_that_is_cut_by_a_read_is_masked_as_a_whole() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("run.log");
        let account = Account {
            handle: "work".to_owned(),
            config_dir: String::new(),
            environment: vec![("API_KEY".to_owned(), "0123456789abcdef".to_owned())],
            max_runs: 0,
            is_default: false,
            created_at: Timestamp::from_nanos(0),
        };
        let masked = MaskedStream::new(SecretMask::of_accounts(&[account]));
        let mut output = RunOutput {
            path: path.clone(),
            file: None,
            masked,
            ready: Vec::new(),
            elsewhere: None,
            kept: None,
        };
        let mut file = File::create(&path).unwrap();
        let mut follow = |piece: &[u8], output: &mut RunOutput| {
            file.write_all(piece).unwrap();
            let (mut shown, mut buffer) = (Vec::new(), [0; 5]);
            loop {
                match output.read(&mut buffer).unwrap() {
                    0 => return String::from_utf8(shown).unwrap(),
                    count => shown.extend_from_slice(&buffer[..count]),
                }
            }
        };
        // Nothing of it is shown while the agent has written a part of it.
        assert_eq!(follow(b"key: 0123", &mut output), "key: ");
        assert_eq!(follow(b"", &mut output), "");
        assert_eq!(follow(b"456789ab", &mut output), "");
        assert_eq!(follow(b"cdef, then 012", &mut output), "[masked], then ");
        assert_eq!(output.rest(), b"012");
    }

    #[test]
    fn the_last_lines_are_whole() {
        assert_eq!(last(b"a\nb\nc\n", 2), b"b\nc\n");
        assert_eq!(last(b"a\nb\nc", 2), b"b\nc");
        assert_eq!(last(b"a\n\n\n", 2), b"\n\n");
        assert_eq!(last(b"a\nb\n", 9), b"a\nb\n");
        assert_eq!(last(b"a\nb\n", 0), b"");
        assert_eq!(last(b"", 3), b"");
        let long = [b"x".repeat(200_000), b"\n".to_vec(), b"y".repeat(100_000)].concat();
        assert_eq!(last(&long, 1).len(), 100_000);
    }

    proptest! {
        #[test]
        fn last_lines_match_a_simple_split(text in "[ab\n]{0,40}", lines in 0_usize..6) {
            let all: Vec<&str> = text.split_inclusive('\n').collect();
            let expected = all[all.len().saturating_sub(lines)..].concat();
            let in_memory = start_of_last_lines(text.as_bytes(), lines);
            prop_assert_eq!(&text.as_bytes()[in_memory..], expected.as_bytes());
            prop_assert_eq!(last(text.as_bytes(), lines), expected.into_bytes());
        }
    }
}
