//! Clocks that are wrong.

use std::fs;
use std::path::PathBuf;

/// The library that makes clocks wrong for programs that it is loaded into, where Debian's `faketime` is installed. The
/// program of that name leaves a semaphore behind for every process it was, and fails when a number comes again.
pub fn clock_library() -> Option<PathBuf> {
    let places = fs::read_dir("/usr/lib").ok()?.flatten();
    let mut libraries = places.map(|place| place.path().join("faketime/libfaketimeMT.so.1"));
    libraries.find(|library| library.exists())
}
