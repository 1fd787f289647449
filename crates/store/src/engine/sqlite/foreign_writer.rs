//! The program that is not ours and keeps the file locked, such as a shell of SQLite in a transaction.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// The process that holds SQLite's lock for writing, in words, if the kernel tells.
pub(super) fn foreign_writer(path: &Path) -> Option<String> {
    // The lock of a transaction is in the file of the log's index; who wants the store alone locks the store itself. Neither
    // is opened to ask for its locks: closing a file releases those that this process has on it.
    let inode = |suffix: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        std::fs::metadata(name).ok().map(|about| about.ino())
    };
    let inodes = [inode("-shm"), inode("")];
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    let holder = locks.lines().find_map(|line| {
        let lock = WriteLock::parse(line)?;
        (inodes.contains(&Some(lock.inode)) && lock.pid != std::process::id()).then_some(lock.pid)
    })?;
    let name = std::fs::read_to_string(format!("/proc/{holder}/comm")).ok()?;
    Some(format!("{} (process {holder})", name.trim_end()))
}

/// A lock for writing, as the kernel lists it.
#[derive(Debug, PartialEq, Eq)]
struct WriteLock {
    pid: u32,
    inode: u64,
}

impl WriteLock {
    /// None for locks of other kinds, for those that are waited for, and for those of processes that this one cannot see.
    fn parse(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, "POSIX", _, "WRITE", pid, file, ..] = words.as_slice() else { return None };
        let (_, inode) = file.rsplit_once(':')?;
        let pid = pid.parse().ok().filter(|pid| *pid != 0)?;
        Some(Self { pid, inode: inode.parse().ok()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_lock_for_writing_that_is_held_counts() {
        let parsed = |line: &str| WriteLock::parse(line).map(|lock| (lock.pid, lock.inode));
        assert_eq!(
            parsed("2: POSIX  ADVISORY  WRITE 812 fe:00:131077 120 120"),
            Some((812, 131_077))
        );
        for other in [
            "2: POSIX  ADVISORY  READ 812 fe:00:131077 128 128",
            "2: -> POSIX  ADVISORY  WRITE 813 fe:00:131077 120 120",
            "2: FLOCK  ADVISORY  WRITE 812 fe:00:131077 0 EOF",
            "2: POSIX  ADVISORY  WRITE 0 fe:00:131077 120 120",
            "",
        ] {
            assert_eq!(parsed(other), None, "{other}");
        }
    }
}
