//! The output of the worker of a run.

use std::fs::File;
use std::io::{self, ErrorKind, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use gt_core::schedule::Run;
use gt_core::secret_mask::{MaskedStream, SecretMask};
use gt_executors::runs::RunFiles;

use gt_scheduling::processes::{LocalProcesses, ProcessProbe as _};
use gt_scheduling::run_transitions::{log_path, open_output};
use gt_town::{OperationError, Result, Town};

/// The output of a run, read from its beginning as it grows, without the keys of accounts. It may not be there yet.
#[derive(Debug)]
pub struct RunOutput {
    path: PathBuf,
    file: Option<File>,
    masked: MaskedStream,
    /// Bytes that were read and masked, and not returned yet.
    ready: Vec<u8>,
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
            return Err(OperationError::rejected(format!(
                "the output of {} is on {}, in another directory of this town; ask there",
                run.id,
                run.host_name()
            )));
        }
        let mask = SecretMask::of_accounts(&town.read(|reader| Ok(reader.accounts()?))?);
        Ok(Self {
            path: output_path(town, run),
            file: None,
            masked: MaskedStream::new(mask),
            ready: Vec::new(),
        })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Moves to the beginning of the last `lines` lines.
    pub fn skip_to_last(&mut self, lines: usize) -> Result<()> {
        let begin = |file: &mut File| {
            let start = start_of_last(file, lines)?;
            file.seek(SeekFrom::Start(start))
        };
        match self.open().and_then(|file| file.map(begin).transpose()) {
            Ok(_) => Ok(()),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// The next bytes; 0 if there are none yet.
    pub fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        while self.ready.is_empty() {
            let read = self.open().and_then(|file| file.map_or(Ok(0), |file| file.read(buffer)));
            match read.map_err(|error| self.failed(error))? {
                0 => {
                    self.ready = self.masked.end();
                    break;
                }
                count => self.ready = self.masked.next(&buffer[..count]),
            }
        }
        let count = self.ready.len().min(buffer.len());
        buffer[..count].copy_from_slice(&self.ready[..count]);
        self.ready.drain(..count);
        Ok(count)
    }

    fn open(&mut self) -> io::Result<Option<&mut File>> {
        if self.file.is_none() {
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

    use proptest::prelude::*;

    use super::*;

    fn last(text: &[u8], lines: usize) -> Vec<u8> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text).unwrap();
        let start = usize::try_from(start_of_last(&mut file, lines).unwrap()).unwrap();
        text[start..].to_vec()
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
            prop_assert_eq!(last(text.as_bytes(), lines), expected.into_bytes());
        }
    }
}
