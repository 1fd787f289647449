//! The user at the other end of a socket.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;

/// Whether the socket at this path was made by this user. A client asks for the file, and not for the process behind it: from
/// inside of a sandbox the kernel does not show the processes outside.
pub(super) fn is_socket_of_this_user(path: &Path) -> bool {
    std::fs::symlink_metadata(path)
        .is_ok_and(|file| is_trusted(file.uid(), rustix::process::getuid().as_raw()))
}

/// Whether the process at the other end belongs to this user, as the kernel says.
pub(super) fn is_of_this_user(stream: &UnixStream) -> io::Result<bool> {
    let peer = rustix::net::sockopt::socket_peercred(stream)?;
    Ok(is_trusted(peer.uid.as_raw(), rustix::process::getuid().as_raw()))
}

fn is_trusted(peer: u32, own: u32) -> bool {
    peer == own
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_user_is_trusted() {
        assert!(is_trusted(1000, 1000));
        assert!(!is_trusted(0, 1000) && !is_trusted(1001, 1000));
        let (one, _other) = UnixStream::pair().unwrap();
        assert!(is_of_this_user(&one).unwrap());
        let place = tempfile::tempdir().unwrap();
        assert!(is_socket_of_this_user(place.path()));
        assert!(!is_socket_of_this_user(&place.path().join("absent")));
    }
}
