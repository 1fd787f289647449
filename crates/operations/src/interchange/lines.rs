//! Lines of a file that is read more than once.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use gt_core::limits::LINE_BYTES_MAX;

use crate::{OperationError, Result};

/// A file of lines.
#[derive(Debug)]
pub struct Source {
    file: File,
    name: String,
    bytes: u64,
}

impl Source {
    /// The file at `path`.
    pub fn open(path: &Path) -> Result<Self> {
        let io = |action| {
            move |source| OperationError::File {
                action,
                path: path.to_owned(),
                source,
            }
        };
        let file = File::open(path).map_err(io("open"))?;
        let metadata = file.metadata().map_err(io("look at"))?;
        if metadata.is_dir() {
            return Err(OperationError::rejected(format!(
                "{} is a directory; give a JSONL file",
                path.display()
            )));
        }
        if !metadata.is_file() {
            return Self::spool(file, path.display().to_string(), &std::env::temp_dir());
        }
        Ok(Self {
            file,
            name: path.display().to_string(),
            bytes: metadata.len(),
        })
    }

    /// What can be read only once, kept in a file that has no name any more.
    pub fn spool(mut input: impl Read, name: String, directory: &Path) -> Result<Self> {
        let path: PathBuf = directory.join(format!("gt-import-{}", gt_core::Uid::fresh()));
        let io = |action| {
            let path = path.clone();
            move |source| OperationError::File {
                action,
                path,
                source,
            }
        };
        let mut options = File::options();
        let mut file = options
            .read(true)
            .write(true)
            .create_new(true)
            .open(&path)
            .map_err(io("create"))?;
        let unlinked = std::fs::remove_file(&path).map_err(io("unlink"));
        unlinked?;
        let bytes = io::copy(&mut input, &mut file).map_err(io("fill"))?;
        file.flush().map_err(io("fill"))?;
        Ok(Self { file, name, bytes })
    }

    /// How people call it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How large it is.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Hands every line that is not blank to `each`, with its number and where it ends in the file.
    pub(super) fn for_each_line(
        &self,
        mut each: impl FnMut(u64, u64, &str) -> Result<()>,
    ) -> Result<()> {
        let failed = |source| OperationError::File {
            action: "read",
            path: PathBuf::from(&self.name),
            source,
        };
        let mut file = &self.file;
        file.seek(SeekFrom::Start(0)).map_err(failed)?;
        let mut reader = BufReader::with_capacity(256 * 1024, file);
        let (mut line, mut number, mut position) = (Vec::new(), 0, 0);
        loop {
            line.clear();
            // One byte more than allowed tells a line that is too long from one that just fits.
            let mut limited = (&mut reader).take(LINE_BYTES_MAX as u64 + 2);
            let read = limited.read_until(b'\n', &mut line).map_err(failed)?;
            if read == 0 {
                return Ok(());
            }
            number += 1;
            position += read as u64;
            let at = |why: &str| OperationError::rejected(format!("{}:{number}: {why}", self.name));
            while line
                .last()
                .is_some_and(|byte| matches!(byte, b'\n' | b'\r'))
            {
                line.pop();
            }
            if line.len() > LINE_BYTES_MAX {
                return Err(at("the line is longer than 64 MiB"));
            }
            let text = std::str::from_utf8(&line).map_err(|_| at("the line is not UTF-8"))?;
            let text = if number == 1 {
                text.trim_start_matches('\u{feff}')
            } else {
                text
            };
            if !text.trim().is_empty() {
                each(number, position, text)?;
            }
        }
    }
}
