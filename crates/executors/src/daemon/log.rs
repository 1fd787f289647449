//! A log that never takes more than its room.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// A file that lines are appended to. When it is full it becomes `<name>.1`, the previous
/// `<name>.1` becomes `<name>.2`, and so on; the oldest is deleted.
#[derive(Debug)]
pub struct RotatingLog {
    path: PathBuf,
    file: File,
    length: u64,
    limit: u64,
    keep: u32,
}

impl RotatingLog {
    /// Opens the log at `path`, which keeps so many full files of about `limit` bytes besides the one that is written to.
    pub fn open(path: &Path, limit: u64, keep: u32) -> io::Result<Self> {
        if let Some(directory) = path.parent() {
            crate::private::create_dir_all(directory)?;
        }
        let (file, length) = open(path)?;
        Ok(Self { path: path.to_owned(), file, length, limit, keep })
    }

    /// Sets how many bytes a file may have.
    pub fn set_limit(&mut self, limit: u64) {
        self.limit = limit;
    }

    /// Opens the path again after a person or logrotate has moved the file away.
    pub fn reopen(&mut self) -> io::Result<()> {
        (self.file, self.length) = open(&self.path)?;
        Ok(())
    }

    /// Appends a line, in one go.
    pub fn append(&mut self, line: &str) -> io::Result<()> {
        let line = format!("{line}\n");
        let bytes = line.len() as u64;
        if self.length > 0 && self.length.saturating_add(bytes) > self.limit {
            self.rotate()?;
        }
        self.file.write_all(line.as_bytes())?;
        self.length += bytes;
        Ok(())
    }

    fn rotate(&mut self) -> io::Result<()> {
        for number in (0..self.keep).rev() {
            match std::fs::rename(older(&self.path, number), older(&self.path, number + 1)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        if self.keep == 0 {
            self.file.set_len(0)?;
        }
        self.reopen()
    }

    /// The files of the log at `path` that there are, the oldest first.
    pub fn files(path: &Path, keep: u32) -> Vec<PathBuf> {
        let all = (0..=keep).rev().map(|number| older(path, number));
        all.filter(|path| path.is_file()).collect()
    }
}

fn open(path: &Path) -> io::Result<(File, u64)> {
    let file = crate::private::options().append(true).create(true).open(path)?;
    let length = file.metadata()?.len();
    Ok((file, length))
}

fn older(path: &Path, number: u32) -> PathBuf {
    if number == 0 {
        return path.to_owned();
    }
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{number}"));
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(path: &Path) -> String {
        std::fs::read_to_string(path).unwrap()
    }

    #[test]
    fn full_files_move_on_and_the_oldest_goes() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("logs/daemon.log");
        let mut log = RotatingLog::open(&path, 12, 2).unwrap();
        for number in 1..=9 {
            log.append(&format!("line{number}")).unwrap();
        }
        let files = RotatingLog::files(&path, 2);
        let texts: Vec<String> = files.iter().map(|file| read(file)).collect();
        assert_eq!(texts, ["line5\nline6\n", "line7\nline8\n", "line9\n"]);
        // A log that is opened again is appended to, and a line that is too long for any file is
        // written whole.
        let mut log = RotatingLog::open(&path, 12, 2).unwrap();
        log.append(&"x".repeat(40)).unwrap();
        log.append("next").unwrap();
        assert_eq!(read(&path), "next\n");
        assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 3);
    }

    #[test]
    fn a_log_file_that_was_moved_away_is_created_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("daemon.log");
        let mut log = RotatingLog::open(&path, 1000, 2).unwrap();
        log.append("one").unwrap();
        std::fs::rename(&path, directory.path().join("moved")).unwrap();
        log.reopen().unwrap();
        log.append("two").unwrap();
        assert_eq!(read(&path), "two\n");
    }
}
