//! The daemon's wake-up socket: a process that has changed something sends a byte to it.

use std::fs::{self, Permissions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};

use crate::calls::short_path;

/// The wake-up socket of the daemon whose files are in `directory`.
pub fn bell_path(directory: &Path) -> PathBuf {
    short_path(&directory.join("daemon.sock"))
}

/// The socket at which the daemon whose files are in `directory` carries out commands of workers.
pub fn calls_path(directory: &Path) -> PathBuf {
    short_path(&directory.join("calls.sock"))
}

/// Rings the bell at `path`. Never waits, and does nothing if no daemon listens.
pub fn ring(path: &Path) {
    let Ok(socket) = UnixDatagram::unbound() else { return };
    // A daemon that does not answer the door has heard it often enough.
    let _ = socket.set_nonblocking(true).and_then(|()| socket.send_to(&[1], path).map(drop));
}

/// The daemon's side of the bell.
#[derive(Debug)]
pub struct BellSocket {
    socket: UnixDatagram,
    path: PathBuf,
}

impl BellSocket {
    /// Creates the socket of the daemon whose files are in `directory`. Only for the process that
    /// holds the daemon's lock: a stale socket is removed.
    pub fn create(directory: &Path) -> io::Result<Self> {
        let path = bell_path(directory);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let socket = UnixDatagram::bind(&path)?;
        // Where the path of the town is too long, it is in a directory that others can enter.
        fs::set_permissions(&path, Permissions::from_mode(0o600))?;
        socket.set_nonblocking(true)?;
        Ok(Self { socket, path })
    }

    /// Whether it was rung since the last call. Rings before this call are taken together.
    pub fn was_rung(&self) -> bool {
        let mut any = false;
        while self.socket.recv(&mut [0; 1]).is_ok() {
            any = true;
        }
        any
    }
}

impl AsFd for BellSocket {
    /// Readable when the bell was rung.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for BellSocket {
    fn drop(&mut self) {
        // If it cannot be removed, the next daemon replaces it.
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls::SOCKET_BYTES_MAX;

    #[test]
    fn many_rings_are_reported_once_and_ringing_never_waits() {
        let town = tempfile::tempdir().unwrap();
        let path = bell_path(town.path());
        // No daemon listens.
        ring(&path);
        let bell = BellSocket::create(town.path()).unwrap();
        assert!(!bell.was_rung());
        // More often than a socket keeps.
        (0..5000).for_each(|_| ring(&path));
        assert!(bell.was_rung() && !bell.was_rung());
        drop(bell);
        assert!(!path.exists());
    }

    #[test]
    fn a_stale_socket_is_replaced() {
        let town = tempfile::tempdir().unwrap();
        std::mem::forget(BellSocket::create(town.path()).unwrap());
        let bell = BellSocket::create(town.path()).unwrap();
        ring(&bell_path(town.path()));
        assert!(bell.was_rung());
    }

    #[test]
    fn a_path_too_long_for_a_socket_has_a_socket_elsewhere() {
        let town = tempfile::tempdir().unwrap();
        let deep = town.path().join("d".repeat(120));
        fs::create_dir(&deep).unwrap();
        assert!(bell_path(&deep).as_os_str().len() <= SOCKET_BYTES_MAX);
        assert_ne!(bell_path(&deep), bell_path(&town.path().join("e".repeat(120))));
        let bell = BellSocket::create(&deep).unwrap();
        assert!(!crate::private::is_open_to_others(&bell_path(&deep)).unwrap());
        ring(&bell_path(&deep));
        assert!(bell.was_rung());
    }
}
