//! Lines of a file that is read more than once.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError, mpsc};

use gt_core::limits::LINE_BYTES_MAX;
use gt_executors::private;

use gt_town::{OperationError, Result};

/// The bytes of a line, or why it has none.
pub(super) type LineBytes<'a> = Result<&'a [u8], &'static str>;

/// A file of lines.
#[derive(Debug)]
pub struct LineFile {
    file: File,
    name: String,
    bytes: u64,
}

impl LineFile {
    /// The file at `path`.
    pub fn open(path: &Path) -> Result<Self> {
        let io =
            |action| move |source| OperationError::File { action, path: path.to_owned(), source };
        let file = File::open(path).map_err(io("open"))?;
        let metadata = file.metadata().map_err(io("look at"))?;
        if metadata.is_dir() {
            return Err(OperationError::rejected(format!(
                "{} is a directory where a file is expected",
                path.display()
            )));
        }
        if !metadata.is_file() {
            return Self::spool(file, path.display().to_string(), &std::env::temp_dir());
        }
        Ok(Self { file, name: path.display().to_string(), bytes: metadata.len() })
    }

    /// Input that can be read only once, kept in a file that has no name any more.
    pub fn spool(mut input: impl Read, name: String, directory: &Path) -> Result<Self> {
        Self::written(name, directory, |file, failed| {
            io::copy(&mut input, file).map(drop).map_err(failed)
        })
    }

    /// The output of `write`, kept in a file that has no name any more. It is given a way to tell that the file cannot
    /// be filled.
    pub(super) fn written(
        name: String,
        directory: &Path,
        write: impl FnOnce(&mut BufWriter<&File>, &dyn Fn(io::Error) -> OperationError) -> Result<()>,
    ) -> Result<Self> {
        let path: PathBuf = directory.join(format!("gt-import-{}", gt_core::Uid::fresh()));
        let io = |action| {
            let path = path.clone();
            move |source| OperationError::File { action, path: path.clone(), source }
        };
        let mut options = private::options();
        let file =
            options.read(true).write(true).create_new(true).open(&path).map_err(io("create"))?;
        std::fs::remove_file(&path).map_err(io("unlink"))?;
        let mut buffered = BufWriter::new(&file);
        write(&mut buffered, &io("fill"))?;
        buffered.flush().map_err(io("fill"))?;
        drop(buffered);
        let bytes = file.metadata().map_err(io("look at"))?.len();
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

    /// The whole text.
    pub(super) fn text(&self) -> Result<String> {
        let mut file = &self.file;
        let mut text = String::new();
        let read = file.seek(SeekFrom::Start(0)).and_then(|_| file.read_to_string(&mut text));
        read.map_err(|source| OperationError::File {
            action: "read",
            path: PathBuf::from(&self.name),
            source,
        })?;
        Ok(text)
    }

    /// Hands every line that is not blank to `each`, with its number and where it ends in the file.
    pub(super) fn for_each_line(
        &self,
        mut each: impl FnMut(u64, u64, LineBytes<'_>) -> Result<()>,
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
            let is_whole = line.ends_with(b"\n");
            while line.last().is_some_and(|byte| matches!(byte, b'\n' | b'\r')) {
                line.pop();
            }
            if line.len() > LINE_BYTES_MAX {
                if !is_whole {
                    position += skip_line(&mut reader).map_err(failed)?;
                }
                each(number, position, Err("the line is longer than 64 MiB"))?;
                continue;
            }
            let marked = line.strip_prefix(BYTE_ORDER_MARK).filter(|_| number == 1);
            let bytes = marked.unwrap_or(&line);
            // A machine that broke down may leave NUL bytes behind instead of lines.
            let is_blank = |text: &str| text.chars().all(|c| c.is_whitespace() || c == '\0');
            if !std::str::from_utf8(bytes).is_ok_and(is_blank) {
                each(number, position, Ok(bytes))?;
            }
        }
    }

    /// Looks at every line, on several threads and in no order. Returns one result for each thread. A thread that
    /// breaks off ends the reading, but every line before the one it broke off at is still looked at.
    pub(super) fn survey<T: Default + Send>(
        &self,
        look: impl Fn(&mut T, u64, LineBytes<'_>) -> ControlFlow<()> + Sync,
        mut progress: impl FnMut(u64),
    ) -> Result<Vec<T>> {
        let (sender, batches) = mpsc::sync_channel::<Vec<(u64, OwnedLineBytes)>>(BATCHES_AHEAD);
        let batches = Mutex::new(batches);
        let enough = AtomicBool::new(false);
        let looker = || {
            let mut found = T::default();
            loop {
                let next = batches.lock().unwrap_or_else(PoisonError::into_inner).recv();
                let Ok(batch) = next else { return found };
                for (number, line) in batch {
                    let bytes = line.as_deref().map_err(|why| *why);
                    if look(&mut found, number, bytes).is_break() {
                        enough.store(true, Ordering::Relaxed);
                    }
                }
            }
        };
        std::thread::scope(|scope| {
            let lookers: Vec<_> = (0..SURVEY_THREADS).map(|_| scope.spawn(looker)).collect();
            let mut batch = Vec::with_capacity(LINES_PER_BATCH);
            let read = self.for_each_line(|number, position, bytes| {
                progress(position);
                batch.push((number, bytes.map(<[u8]>::to_vec)));
                if batch.len() < LINES_PER_BATCH {
                    return Ok(());
                }
                // The lookers leave only when there is nothing more to come.
                let _ = sender.send(std::mem::take(&mut batch));
                if enough.load(Ordering::Relaxed) { Err(abandoned()) } else { Ok(()) }
            });
            let _ = sender.send(batch);
            drop(sender);
            let found = lookers.into_iter().map(|looker| looker.join().map_err(|_| abandoned()));
            let found = found.collect::<Result<Vec<T>>>()?;
            if enough.load(Ordering::Relaxed) { Ok(found) } else { read.map(|()| found) }
        })
    }

    /// Like `for_each_line`, with `parse` running ahead on a thread of its own, so that the consumer (which holds the
    /// writer meanwhile) does not wait for it. `parse` may leave lines out.
    pub(super) fn for_each_parsed<T: Send>(
        &self,
        parse: impl Fn(u64, LineBytes<'_>) -> Result<Option<T>> + Send,
        mut take: impl FnMut(u64, u64, T) -> Result<()>,
    ) -> Result<()> {
        std::thread::scope(|scope| {
            let (sender, parsed) = mpsc::sync_channel(BATCHES_AHEAD);
            let reader = scope.spawn(move || {
                let mut batch = Vec::with_capacity(LINES_PER_BATCH);
                let read = self.for_each_line(|number, position, bytes| {
                    if let Some(value) = parse(number, bytes)? {
                        batch.push((number, position, value));
                    }
                    if batch.len() == LINES_PER_BATCH {
                        let full =
                            std::mem::replace(&mut batch, Vec::with_capacity(LINES_PER_BATCH));
                        // The consumer has stopped, and reports its own error.
                        sender.send(full).map_err(|_| OperationError::rejected("abandoned"))?;
                    }
                    Ok(())
                });
                let _ = sender.send(batch);
                read
            });
            let taken = parsed
                .iter()
                .flatten()
                .try_for_each(|(number, position, value)| take(number, position, value));
            drop(parsed);
            let read = reader.join().unwrap_or_else(|_| {
                Err(OperationError::rejected(format!("{} could not be read", self.name)))
            });
            taken.and(read)
        })
    }
}

/// Reads on to the end of a line without keeping it. Returns how far that was.
fn skip_line(reader: &mut impl BufRead) -> io::Result<u64> {
    let mut skipped = 0;
    loop {
        let buffer = reader.fill_buf()?;
        let (length, ended) = match buffer.iter().position(|byte| *byte == b'\n') {
            Some(at) => (at + 1, true),
            None => (buffer.len(), buffer.is_empty()),
        };
        reader.consume(length);
        skipped += length as u64;
        if ended {
            return Ok(skipped);
        }
    }
}

/// Why a reader stops when its consumer wants no more; the consumer reports the real error.
fn abandoned() -> OperationError {
    OperationError::rejected("the file was not read to its end")
}

/// The bytes of a line that is handed to another thread, or why it has none.
type OwnedLineBytes = Result<Vec<u8>, &'static str>;

/// The byte order mark that some editors write at the start of a file.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// How many threads survey lines at the same time.
const SURVEY_THREADS: usize = 2;
/// How many lines are handed over at a time, and how many such batches may wait.
const LINES_PER_BATCH: usize = 64;
const BATCHES_AHEAD: usize = 4;
