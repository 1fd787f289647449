//! Paths of sockets, which the kernel limits.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// Paths of sockets of so many bytes are possible everywhere.
pub const SOCKET_BYTES_MAX: usize = 99;

/// A path for a socket that is wanted at `wanted`: the same if it is short enough and has no colon, which separates the sockets
/// of a worker; else one where this user keeps sockets. It does not depend on environment variables, so every process finds
/// the same one.
pub fn short_path(wanted: &Path) -> PathBuf {
    let bytes = wanted.as_os_str().as_bytes();
    if bytes.len() <= SOCKET_BYTES_MAX && !bytes.contains(&b':') {
        return wanted.to_owned();
    }
    let user = rustix::process::getuid().as_raw();
    let mut hasher = DefaultHasher::new();
    let directory = wanted.parent().unwrap_or(wanted);
    directory.canonicalize().unwrap_or_else(|_| directory.to_owned()).hash(&mut hasher);
    wanted.file_name().hash(&mut hasher);
    let name = format!("gt-{user}-{:016x}.sock", hasher.finish());
    let of_user = PathBuf::from(format!("/run/user/{user}"));
    if of_user.is_dir() { of_user.join(name) } else { Path::new("/tmp").join(name) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_too_long_or_with_a_colon_is_replaced_by_a_short_one() {
        assert_eq!(short_path(Path::new("/town/.gt/calls")), Path::new("/town/.gt/calls"));
        let long = format!("/{}/calls", "d".repeat(120));
        for wanted in [long.as_str(), "/a:b/calls"] {
            let short = short_path(Path::new(wanted));
            assert!(short.as_os_str().len() <= SOCKET_BYTES_MAX, "{short:?}");
            assert!(!short.to_string_lossy().contains(':'), "{short:?}");
            assert_ne!(short, short_path(&Path::new(wanted).with_file_name("other")));
        }
    }
}
