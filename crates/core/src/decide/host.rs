//! Whether a directory of a town is the one that its identity was made for.
//!
//! Runs are judged by the host whose identity they carry. A copy of the directory has the same identity file, but not the
//! locks of the runs, and would declare live runs lost.

/// The place of an identity file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPlace {
    /// The id of the machine; empty where there is none.
    pub machine: String,
    /// The inode of the file.
    pub inode: u64,
    /// The device that the file is on. Its number may change when a machine starts again.
    pub device: u64,
    /// When the file was made, where the file system tells.
    pub born_ns: Option<u128>,
    /// The path of the file.
    pub path: String,
}

impl HostPlace {
    /// Whether both are the same file of a file system. One that takes the place of a deleted file may get its inode.
    pub fn is_same_file(&self, other: &Self) -> bool {
        let is_other_birth =
            self.born_ns.zip(other.born_ns).is_some_and(|(one, other)| one != other);
        self.inode == other.inode && !is_other_birth
    }
}

/// Whether the recorded path still has the file that was recorded. It can be asked on the same machine alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OldPlace {
    /// The old place still has the identity file.
    Alive,
    /// It is gone, or another file is there.
    Gone,
    /// It cannot be looked at.
    Unknown,
}

/// The identity of a directory, compared with its identity file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostVerdict {
    /// The directory that the identity was made for.
    Same,
    /// A copy: the original is there, or cannot be shown to be gone.
    Copy,
    /// The original is gone: a moved disk, or a backup that was restored.
    Moved,
}

/// Decides. The inode and the time of birth tell files of one file system apart. The device is a tiebreak only, because its
/// number changes with a reboot; the path is one because a directory may be renamed.
pub fn judge_host(recorded: &HostPlace, here: &HostPlace, old_place: OldPlace) -> HostVerdict {
    let is_other_machine = !recorded.machine.is_empty()
        && !here.machine.is_empty()
        && recorded.machine != here.machine;
    if is_other_machine {
        return HostVerdict::Moved;
    }
    let (same_file, same_path) = (recorded.is_same_file(here), recorded.path == here.path);
    if same_file && (same_path || recorded.device == here.device) {
        return HostVerdict::Same;
    }
    match old_place {
        // Another file is at the recorded path: this one.
        _ if same_path => HostVerdict::Moved,
        OldPlace::Gone => HostVerdict::Moved,
        OldPlace::Alive | OldPlace::Unknown => HostVerdict::Copy,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(machine: &str, inode: u64, device: u64, path: &str) -> HostPlace {
        let (machine, path) = (machine.to_owned(), path.to_owned());
        HostPlace { machine, inode, device, born_ns: Some(5), path }
    }

    #[test]
    fn a_file_with_the_inode_of_a_deleted_one_is_another() {
        let recorded = place("m", 7, 1, "/town");
        let born = |born_ns| HostPlace { born_ns, ..recorded.clone() };
        let judged = |here: &HostPlace| judge_host(&recorded, here, OldPlace::Gone);
        assert_eq!(judged(&born(Some(6))), HostVerdict::Moved);
        assert_eq!(judged(&born(None)), HostVerdict::Same);
        assert_eq!(judge_host(&born(None), &recorded, OldPlace::Alive), HostVerdict::Same);
    }

    #[test]
    fn copies_and_moves_are_told_from_the_same_directory() {
        use HostVerdict::{Copy, Moved, Same};
        use OldPlace::{Alive, Gone, Unknown};
        let recorded = place("m", 7, 1, "/town");
        for (here, old_place, expected, case) in [
            (place("m", 7, 1, "/town"), Alive, Same, "nothing changed"),
            (place("m", 7, 9, "/town"), Alive, Same, "a reboot renumbered the device"),
            (place("m", 7, 1, "/renamed"), Gone, Same, "mv on one file system"),
            (place("m", 7, 1, "/bind/town"), Alive, Same, "a bind mount of the directory"),
            (place("", 7, 1, "/town"), Alive, Same, "a container without a machine id"),
            (place("m", 8, 1, "/copy"), Alive, Copy, "cp -a beside it"),
            (place("m", 8, 2, "/mnt/copy"), Alive, Copy, "cp -a to another disk"),
            (place("m", 7, 2, "/mnt/copy"), Alive, Copy, "the same inode by chance"),
            (place("m", 8, 1, "/copy"), Unknown, Copy, "the original cannot be looked at"),
            (place("m", 8, 1, "/copy"), Gone, Moved, "the original was deleted"),
            (place("m", 8, 1, "/town"), Gone, Moved, "a backup restored in place"),
            (place("m", 8, 1, "/town"), Alive, Moved, "a backup restored in place, seen late"),
            (place("m", 7, 2, "/mnt/town"), Gone, Moved, "the disk is mounted elsewhere"),
            (place("n", 7, 1, "/town"), Unknown, Moved, "the disk is in another machine"),
            (place("n", 8, 2, "/town"), Alive, Moved, "copied to another machine"),
        ] {
            assert_eq!(judge_host(&recorded, &here, old_place), expected, "{case}");
        }
    }
}
