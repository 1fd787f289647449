//! Files that a worker names in a command. The process of the worker opens them, and not the one that carries the command out:
//! that has another view of the machine, other permissions, and files that are not for the worker.

use std::fs::{self, File};
use std::io::{self, BufWriter, Read as _, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use super::protocol::FileUse;

/// How much of a file is sent in one message.
pub(super) const PIECE_BYTES: usize = 256 << 10;

/// A file that is written whole or not at all: its new contents are beside it until they are complete.
#[derive(Debug)]
pub struct WholeFile {
    path: PathBuf,
    beside: PathBuf,
    file: Option<BufWriter<File>>,
}

impl WholeFile {
    /// Begins new contents. The directory of the file is made; one further up that is missing is more likely a slip.
    pub fn create(path: &Path) -> io::Result<Self> {
        // A link stays, and the file that it leads to is replaced.
        let path = &path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let present = fs::metadata(path).ok();
        if present.as_ref().is_some_and(|present| !present.is_file()) {
            // A pipe or a device is not replaced. A directory is refused by the system.
            let file = Some(BufWriter::new(File::options().write(true).open(path)?));
            return Ok(Self { path: path.to_owned(), beside: path.to_owned(), file });
        }
        if let Some(Err(error)) = path.parent().map(fs::create_dir)
            && !path.parent().is_some_and(Path::is_dir)
        {
            return Err(error);
        }
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}.new", std::process::id()));
        let beside = path.with_file_name(name);
        let file = File::create(&beside)?;
        if let Some(present) = present {
            file.set_permissions(present.permissions())?;
        }
        Ok(Self { path: path.to_owned(), beside, file: Some(BufWriter::new(file)) })
    }

    /// Puts the new contents in the place of the old ones.
    pub fn finish(mut self) -> io::Result<()> {
        if let Some(mut file) = self.file.take() {
            let written = file.flush();
            if self.beside == self.path {
                return written;
            }
            let written = written.and_then(|()| file.get_ref().sync_all());
            let replaced = written.and_then(|()| fs::rename(&self.beside, &self.path));
            replaced.inspect_err(|_| self.forget())?;
        }
        Ok(())
    }

    fn forget(&self) {
        if self.beside != self.path {
            // The old file is untouched; the half of the new one is of no use.
            let _ = fs::remove_file(&self.beside);
        }
    }
}

impl Write for WholeFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.as_mut().map_or(Ok(0), |file| file.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), Write::flush)
    }
}

impl Drop for WholeFile {
    fn drop(&mut self) {
        if self.file.take().is_some() {
            self.forget();
        }
    }
}

/// Sends a piece of an answer about a file, or the number of the error with which it ends.
type FileAnswer<'a> = dyn FnMut(Option<i32>, &[u8]) -> io::Result<()> + 'a;

/// What a caller does with its files for the command that it called.
#[derive(Debug, Default)]
pub(super) struct OwnFiles {
    /// The file that is being written.
    written: Option<io::Result<WholeFile>>,
}

impl OwnFiles {
    /// Does what the command wants with a file, and answers with pieces or the number of an error.
    pub(super) fn serve(
        &mut self,
        path: &Path,
        access: FileUse,
        piece: &[u8],
        answer: &mut FileAnswer<'_>,
    ) -> io::Result<()> {
        let done = match access {
            FileUse::Read => read(path, &mut |piece| answer(None, piece)),
            FileUse::List => list(path, &mut |piece| answer(None, piece)),
            FileUse::Write if !piece.is_empty() => {
                let written = self.written.take().unwrap_or_else(|| WholeFile::create(path));
                self.written = Some(written.and_then(|mut file| {
                    file.write_all(piece)?;
                    Ok(file)
                }));
                return Ok(());
            }
            FileUse::Write => {
                let written = self.written.take().unwrap_or_else(|| WholeFile::create(path));
                Ok(written.and_then(WholeFile::finish))
            }
        }?;
        let error = done.err();
        let number = |error: io::Error| error.raw_os_error().unwrap_or(Errno::IO.raw_os_error());
        answer(error.map(number), &[])
    }
}

/// The outer result is that of the connection, the inner one that of the file.
type Sent = io::Result<io::Result<()>>;

fn read(path: &Path, send: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> Sent {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) => return Ok(Err(error)),
    };
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        match file.read(&mut piece) {
            Ok(0) => return Ok(Ok(())),
            Ok(read) => send(&piece[..read])?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Ok(Err(error)),
        }
    }
}

fn list(path: &Path, send: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> Sent {
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) => return Ok(Err(error)),
    };
    let mut names = Vec::new();
    for entry in entries.flatten() {
        names.extend_from_slice(entry.file_name().as_bytes());
        names.push(0);
    }
    names.chunks(PIECE_BYTES).try_for_each(send)?;
    Ok(Ok(()))
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::fd::AsRawFd as _;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    /// The pieces of an answer, and the error at its end.
    fn served(
        files: &mut OwnFiles,
        path: &Path,
        access: FileUse,
        piece: &[u8],
    ) -> (Vec<u8>, Option<i32>) {
        let (mut all, mut end) = (Vec::new(), None);
        let mut answer = |error, piece: &[u8]| {
            all.extend_from_slice(piece);
            end = error;
            Ok(())
        };
        files.serve(path, access, piece, &mut answer).unwrap();
        (all, end)
    }

    #[test]
    fn a_file_is_replaced_whole_and_nothing_is_left_of_a_half() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("new").join("file");
        let mut files = OwnFiles::default();
        assert_eq!(served(&mut files, &path, FileUse::Write, b"one "), (Vec::new(), None));
        assert!(!path.exists());
        served(&mut files, &path, FileUse::Write, b"two");
        assert_eq!(served(&mut files, &path, FileUse::Write, b""), (Vec::new(), None));
        assert_eq!(served(&mut files, &path, FileUse::Read, b""), (b"one two".to_vec(), None));

        served(&mut files, &path, FileUse::Write, b"half");
        drop(files);
        let names = served(&mut OwnFiles::default(), path.parent().unwrap(), FileUse::List, b"");
        assert_eq!(names, (b"file\0".to_vec(), None));
        assert_eq!(fs::read(&path).unwrap(), b"one two");
    }

    #[test]
    fn links_pipes_and_permissions_stay_as_they_are() {
        let directory = tempfile::tempdir().unwrap();
        let (file, link) = (directory.path().join("file"), directory.path().join("link"));
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink("file", &link).unwrap();
        let mut whole = WholeFile::create(&link).unwrap();
        whole.write_all(b"new").unwrap();
        whole.finish().unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"new");
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o640);
        assert!(link.symlink_metadata().unwrap().is_symlink());

        let (mut reader, writer) = io::pipe().unwrap();
        let pipe = PathBuf::from(format!("/proc/self/fd/{}", writer.as_raw_fd()));
        let mut whole = WholeFile::create(&pipe).unwrap();
        whole.write_all(b"sent").unwrap();
        whole.finish().unwrap();
        drop(writer);
        let mut sent = Vec::new();
        reader.read_to_end(&mut sent).unwrap();
        assert_eq!(sent, b"sent");
        assert!(WholeFile::create(directory.path()).is_err());
    }

    #[test]
    fn a_file_that_cannot_be_used_is_told_with_the_error_of_the_system() {
        let directory = tempfile::tempdir().unwrap();
        let absent = directory.path().join("absent");
        let mut files = OwnFiles::default();
        let absent_error = Some(Errno::NOENT.raw_os_error());
        assert_eq!(served(&mut files, &absent, FileUse::Read, b"").1, absent_error);
        assert_eq!(served(&mut files, &absent, FileUse::List, b"").1, absent_error);
        let of_directory = served(&mut files, directory.path(), FileUse::Read, b"").1;
        assert_eq!(of_directory, Some(Errno::ISDIR.raw_os_error()));
        let far = absent.join("further").join("file");
        served(&mut files, &far, FileUse::Write, b"x");
        assert_eq!(served(&mut files, &far, FileUse::Write, b"").1, absent_error);
    }
}
