//! The bell at the daemon's door: whoever has changed something rings it.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};

/// Paths of sockets of so many bytes are possible everywhere.
const PATH_BYTES_MAX: usize = 103;

/// Where the bell of the daemon is whose files are in `directory`: there, or if that path is too long for a socket, where
/// this user keeps sockets. Everybody on the machine finds the same place, whatever is in their environment.
pub fn bell_path(directory: &Path) -> PathBuf {
    let path = directory.join("daemon.sock");
    if path.as_os_str().as_bytes().len() <= PATH_BYTES_MAX {
        return path;
    }
    let user = rustix::process::getuid().as_raw();
    let mut hasher = DefaultHasher::new();
    directory.canonicalize().unwrap_or_else(|_| directory.to_owned()).hash(&mut hasher);
    let name = format!("gt-{user}-{:016x}.sock", hasher.finish());
    let of_user = PathBuf::from(format!("/run/user/{user}"));
    if of_user.is_dir() { of_user.join(name) } else { Path::new("/tmp").join(name) }
}

/// Rings the bell at `path`. Never waits, and it does not matter whether anybody hears it.
pub fn ring(path: &Path) {
    let Ok(socket) = UnixDatagram::unbound() else { return };
    // A daemon that does not answer the door has heard it often enough.
    let _ = socket.set_nonblocking(true).and_then(|()| socket.send_to(&[1], path).map(drop));
}

/// The daemon's side of the bell.
#[derive(Debug)]
pub struct DoorBell {
    socket: UnixDatagram,
    path: PathBuf,
}

impl DoorBell {
    /// Hangs up the bell of the daemon whose files are in `directory`. Only for whoever holds its lock: what another one
    /// left behind is taken away.
    pub fn hang(directory: &Path) -> io::Result<Self> {
        let path = bell_path(directory);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let socket = UnixDatagram::bind(&path)?;
        socket.set_nonblocking(true)?;
        Ok(Self { socket, path })
    }

    /// Whether it was rung since the last time. Everybody who rang is answered by this.
    pub fn was_rung(&self) -> bool {
        let mut any = false;
        while self.socket.recv(&mut [0; 1]).is_ok() {
            any = true;
        }
        any
    }
}

impl AsFd for DoorBell {
    /// Can be read from when somebody has rung.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for DoorBell {
    fn drop(&mut self) {
        // What stays is taken away by the next.
        let _ = std::fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_rings_is_heard_once_and_never_waits() {
        let town = tempfile::tempdir().unwrap();
        let path = bell_path(town.path());
        // Nobody is there.
        ring(&path);
        let bell = DoorBell::hang(town.path()).unwrap();
        assert!(!bell.was_rung());
        // More often than a socket keeps.
        (0..5000).for_each(|_| ring(&path));
        assert!(bell.was_rung() && !bell.was_rung());
        drop(bell);
        assert!(!path.exists());
    }

    #[test]
    fn a_bell_that_somebody_left_behind_is_replaced() {
        let town = tempfile::tempdir().unwrap();
        std::mem::forget(DoorBell::hang(town.path()).unwrap());
        let bell = DoorBell::hang(town.path()).unwrap();
        ring(&bell_path(town.path()));
        assert!(bell.was_rung());
    }

    #[test]
    fn a_town_deep_down_has_a_bell_too() {
        let town = tempfile::tempdir().unwrap();
        let deep = town.path().join("d".repeat(120));
        std::fs::create_dir(&deep).unwrap();
        assert!(bell_path(&deep).as_os_str().len() <= PATH_BYTES_MAX);
        assert_ne!(bell_path(&deep), bell_path(&town.path().join("e".repeat(120))));
        let bell = DoorBell::hang(&deep).unwrap();
        ring(&bell_path(&deep));
        assert!(bell.was_rung());
    }
}
