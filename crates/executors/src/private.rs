//! Files and directories that only their owner can read, with any umask.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// The permissions of others than the owner.
const OF_OTHERS: u32 = 0o077;

/// Options whose new files only their owner can read.
pub fn options() -> OpenOptions {
    let mut options = File::options();
    options.mode(0o600);
    options
}

/// Like [`std::fs::write`], for a file that only its owner can read.
pub fn write(path: &Path, contents: impl AsRef<[u8]>) -> io::Result<()> {
    let mut file = options().write(true).create(true).truncate(true).open(path)?;
    file.write_all(contents.as_ref())
}

/// Like [`write()`], for a file that others read or replace meanwhile: they find either all of the old contents or all of the new.
pub fn replace(path: &Path, contents: impl AsRef<[u8]>) -> io::Result<()> {
    static REPLACED: AtomicU64 = AtomicU64::new(0);
    let number = REPLACED.fetch_add(1, Ordering::Relaxed);
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}-{number}.new", std::process::id()));
    let beside = Path::new(&beside);
    write(beside, contents).and_then(|()| fs::rename(beside, path)).inspect_err(|_| {
        let _ = fs::remove_file(beside);
    })
}

/// Like [`std::fs::create_dir_all`], for directories that only their owner can enter.
pub fn create_dir_all(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Like [`std::fs::create_dir`], for a directory that only its owner can enter.
pub(crate) fn create_dir(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)
}

/// Whether others than the owner may do anything with this file or directory.
pub fn is_open_to_others(path: &Path) -> io::Result<bool> {
    Ok(fs::symlink_metadata(path)?.permissions().mode() & OF_OTHERS != 0)
}

/// Takes the permissions of others from a directory and, if they had any, from everything in it. A directory that was
/// private already is not walked.
pub fn tighten(directory: &Path) -> io::Result<()> {
    if !is_open_to_others(directory)? {
        return Ok(());
    }
    // The files first: if the process dies in between, the next command begins again.
    tighten_inside(directory)?;
    remove_permissions_of_others(directory)
}

fn tighten_inside(directory: &Path) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let Ok(entry) = entry else { continue };
        let (path, Ok(kind)) = (entry.path(), entry.file_type()) else { continue };
        if kind.is_symlink() {
            continue;
        }
        if kind.is_dir() {
            // A directory that is not ours, or has just gone, does not keep the rest open.
            let _ = tighten_inside(&path);
        }
        let _ = remove_permissions_of_others(&path);
    }
    Ok(())
}

fn remove_permissions_of_others(path: &Path) -> io::Result<()> {
    let mode = fs::symlink_metadata(path)?.permissions().mode();
    if mode & OF_OTHERS == 0 {
        return Ok(());
    }
    fs::set_permissions(path, Permissions::from_mode(mode & 0o7777 & !OF_OTHERS))
}

/// Removes a directory and everything in it, also what is read-only; one that is not there is fine.
pub fn delete_directory(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        // Caches of build tools are often read-only.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            let mut open = vec![path.to_owned()];
            while let Some(directory) = open.pop() {
                open.extend(made_writable(&directory)?);
            }
            fs::remove_dir_all(path)
        }
        deleted => deleted,
    }
}

/// Makes a directory writable; returns its subdirectories.
fn made_writable(directory: &Path) -> io::Result<Vec<PathBuf>> {
    fs::set_permissions(directory, Permissions::from_mode(0o700))?;
    let inside = fs::read_dir(directory)?.flatten();
    let is_directory = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    Ok(inside.filter(is_directory).map(|entry| entry.path()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn new_files_and_directories_are_private() {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("a/b");
        create_dir_all(&directory).unwrap();
        create_dir_all(&directory).unwrap();
        write(&directory.join("file"), "text").unwrap();
        assert_eq!(fs::read_to_string(directory.join("file")).unwrap(), "text");
        assert_eq!([mode(&place.path().join("a")), mode(&directory)], [0o700, 0o700]);
        assert_eq!(mode(&directory.join("file")), 0o600);
    }

    #[test]
    fn a_replaced_file_is_never_seen_half_written() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("file");
        write(&path, "old").unwrap();
        let opened_before = File::open(&path).unwrap();

        replace(&path, "new").unwrap();

        assert_eq!(io::read_to_string(opened_before).unwrap(), "old");
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(mode(&path), 0o600);
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_file_is_replaced_by_several_threads_at_once() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        std::thread::scope(|scope| {
            for number in 0..4 {
                let file = &file;
                scope.spawn(move || {
                    for _ in 0..200 {
                        replace(file, [number; 100]).unwrap();
                    }
                });
            }
        });
        assert_eq!(fs::read(&file).unwrap().len(), 100);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn an_open_directory_is_tightened_to_the_last_file() {
        let place = tempfile::tempdir().unwrap();
        let town = place.path().join("town");
        fs::create_dir_all(town.join("bin")).unwrap();
        for (name, open) in [("key", 0o644), ("bin/tool", 0o755)] {
            fs::write(town.join(name), "").unwrap();
            fs::set_permissions(town.join(name), Permissions::from_mode(open)).unwrap();
        }
        fs::write(place.path().join("outside"), "").unwrap();
        fs::set_permissions(place.path().join("outside"), Permissions::from_mode(0o644)).unwrap();
        std::os::unix::fs::symlink("../outside", town.join("link")).unwrap();
        for directory in [&town, &town.join("bin")] {
            fs::set_permissions(directory, Permissions::from_mode(0o777)).unwrap();
        }

        tighten(&town).unwrap();

        assert_eq!([mode(&town), mode(&town.join("bin"))], [0o700, 0o700]);
        assert_eq!([mode(&town.join("key")), mode(&town.join("bin/tool"))], [0o600, 0o700]);
        assert_eq!(mode(&place.path().join("outside")), 0o644);
        assert!(!is_open_to_others(&town).unwrap());
    }
}
