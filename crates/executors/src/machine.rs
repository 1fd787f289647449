//! The machine's state as the kernel reports it: how much memory is left, and how busy it is.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use gt_core::decide::{MachineDisk, MachineFacts, MachineLoad, MachineMemory};

/// Bytes in one megabyte, as everything here counts them.
const MEGABYTE: u64 = 1 << 20;

/// Reads the facts of the machine whose `/proc` and `/sys` are below `root`. Facts that cannot be
/// read are unknown.
pub fn read_facts(root: &Path) -> MachineFacts {
    MachineFacts { memory: memory(root), load: load(root), disk: None }
}

/// How many bytes this user can still write to the file system of a path.
pub fn free_bytes(path: &Path) -> Option<u64> {
    let system = rustix::fs::statvfs(path).ok()?;
    system.f_bavail.checked_mul(system.f_frsize)
}

/// The file system of a path.
pub fn disk_of(path: &Path) -> Option<MachineDisk> {
    let system = rustix::fs::statvfs(path).ok()?;
    let megabytes = |blocks: u64| Some(blocks.checked_mul(system.f_frsize)? / MEGABYTE);
    Some(MachineDisk {
        total_mb: megabytes(system.f_blocks)?,
        free_mb: megabytes(system.f_bavail)?,
    })
}

/// The most files that are counted below a directory.
const COUNTED_FILES_MAX: u64 = 500_000;

/// The room that everything below some directories takes on the disk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UsedRoom {
    /// In bytes.
    pub bytes: u64,
    /// Whether there were too many files to count all.
    pub is_more: bool,
}

/// The room that these directories take. What cannot be read is not counted.
pub fn used_room(directories: Vec<PathBuf>) -> UsedRoom {
    let (mut room, mut files, mut open) = (UsedRoom::default(), 0, directories);
    while let Some(directory) = open.pop() {
        let Ok(entries) = fs::read_dir(&directory) else { continue };
        for entry in entries.flatten() {
            let Ok(data) = entry.metadata() else { continue };
            room.bytes = room.bytes.saturating_add(data.blocks().saturating_mul(512));
            if data.is_dir() {
                open.push(entry.path());
            }
            files += 1;
            if files >= COUNTED_FILES_MAX {
                return UsedRoom { is_more: true, ..room };
            }
        }
    }
    room
}

/// The memory of the machine, or of the narrowest control group around us that has less than that.
fn memory(root: &Path) -> Option<MachineMemory> {
    let (total, available) = meminfo(&fs::read_to_string(root.join("proc/meminfo")).ok()?)?;
    let groups = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let (mut total_bytes, mut available_bytes) = (total, available);
    for (limit, left) in directories(root, &groups).iter().filter_map(|group| group_memory(group)) {
        total_bytes = total_bytes.min(limit);
        available_bytes = available_bytes.min(left);
    }
    let (total_mb, available_mb) = (total_bytes / MEGABYTE, available_bytes / MEGABYTE);
    Some(MachineMemory { total_mb, available_mb })
}

/// All and available memory in bytes, of `/proc/meminfo`.
fn meminfo(text: &str) -> Option<(u64, u64)> {
    let field = |name: &str| {
        let rest = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        rest.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
    };
    Some((field("MemTotal")?, field("MemAvailable")?))
}

/// The directories of the control groups around us that may limit memory, of `/proc/self/cgroup`: ours, and every one
/// above it. In a container ours may be called by a name that is not to be seen from inside.
fn directories(root: &Path, groups: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let top = match controllers {
            "" => root.join("sys/fs/cgroup"),
            _ if controllers.split(',').any(|name| name == "memory") => {
                root.join("sys/fs/cgroup/memory")
            }
            _ => continue,
        };
        let own = Path::new(path.trim_start_matches('/'));
        // A path that leads out of the tree is not one of the kernel's names for a group of ours.
        if own.components().all(|part| matches!(part, std::path::Component::Normal(_))) {
            found.extend(own.ancestors().map(|group| top.join(group)));
        } else {
            found.push(top);
        }
    }
    found
}

/// The memory limit of a control group and the bytes left of it; nothing if it has no limit of its
/// own. Page cache that the kernel can give back at any time does not count as used.
fn group_memory(directory: &Path) -> Option<(u64, u64)> {
    let read = |name: &str| fs::read_to_string(directory.join(name)).ok();
    let number = |name: &str| read(name)?.trim().parse::<u64>().ok();
    // The second version calls them differently from the first.
    let limit = number("memory.max").or_else(|| number("memory.limit_in_bytes"))?;
    let used = number("memory.current").or_else(|| number("memory.usage_in_bytes"))?;
    let statistics = read("memory.stat").unwrap_or_default();
    let reclaimable = ["inactive_file", "active_file", "slab_reclaimable"];
    let reclaimable = reclaimable.map(|name| statistic(&statistics, name).unwrap_or(0));
    let reclaimable = reclaimable.into_iter().fold(0, u64::saturating_add);
    Some((limit, limit.saturating_sub(used.saturating_sub(reclaimable))))
}

/// A number of `memory.stat`; the one with everything below the group, where there are two.
fn statistic(text: &str, name: &str) -> Option<u64> {
    let find = |wanted: &str| {
        let mut lines = text.lines().filter_map(|line| line.split_once(' '));
        lines.find(|(name, _)| *name == wanted).and_then(|(_, value)| value.trim().parse().ok())
    };
    find(&format!("total_{name}")).or_else(|| find(name))
}

/// How many wanted to run over the last minute, and how many can.
fn load(root: &Path) -> Option<MachineLoad> {
    let average = fs::read_to_string(root.join("proc/loadavg")).ok()?;
    let cores = fs::read_to_string(root.join("proc/stat")).ok()?;
    Some(MachineLoad { hundredths: hundredths(&average)?, cores: cores_of(&cores)? })
}

/// The first number of `/proc/loadavg`, in hundredths.
fn hundredths(text: &str) -> Option<u64> {
    let (whole, part) = text.split_whitespace().next()?.split_once('.')?;
    let part = part.get(..2)?;
    whole.parse::<u64>().ok()?.checked_mul(100)?.checked_add(part.parse().ok()?)
}

/// How many processors `/proc/stat` has a line for.
fn cores_of(text: &str) -> Option<u32> {
    let is_core = |line: &&str| {
        line.strip_prefix("cpu").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    u32::try_from(text.lines().filter(is_core).count()).ok().filter(|cores| *cores > 0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MEMINFO: &str =
        "MemTotal:       16384000 kB\nMemFree:  1 kB\nMemAvailable:    8192000 kB\n";

    /// A machine of files.
    #[test]
    fn room_is_counted_through_directories_and_not_through_links() {
        let top = tempfile::tempdir().unwrap();
        let (one, other) = (top.path().join("one"), top.path().join("other"));
        fs::create_dir_all(one.join("deep")).unwrap();
        fs::create_dir_all(&other).unwrap();
        fs::write(one.join("deep/file"), vec![b'x'; 100_000]).unwrap();
        std::os::unix::fs::symlink(&one, other.join("link")).unwrap();
        let room = used_room(vec![one, top.path().join("missing")]);
        assert!((100_000..1_000_000).contains(&room.bytes) && !room.is_more, "{room:?}");
        assert!(used_room(vec![other]).bytes < 100_000);
    }

    fn machine(files: &[(&str, &str)]) -> MachineFacts {
        let root = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        read_facts(root.path())
    }

    fn memory_of(files: &[(&str, &str)]) -> Option<(u64, u64)> {
        let files = [&[("proc/meminfo", MEMINFO)], files].concat();
        machine(&files).memory.map(|memory| (memory.total_mb, memory.available_mb))
    }

    #[test]
    fn without_a_group_the_available_memory_counts() {
        assert_eq!(memory_of(&[]), Some((16_000, 8_000)));
        let unlimited = [("proc/self/cgroup", "0::/\n"), ("sys/fs/cgroup/memory.current", "1\n")];
        assert_eq!(memory_of(&unlimited), Some((16_000, 8_000)));
    }

    #[test]
    fn the_narrowest_group_counts_without_reclaimable_memory() {
        let files = [
            ("proc/self/cgroup", "0::/user.slice/town.scope\n"),
            ("sys/fs/cgroup/user.slice/memory.max", "1048576000\n"),
            ("sys/fs/cgroup/user.slice/memory.current", "838860800\n"),
            ("sys/fs/cgroup/user.slice/memory.stat", "anon 5\ninactive_file 209715200\n"),
            ("sys/fs/cgroup/user.slice/town.scope/memory.max", "max\n"),
            ("sys/fs/cgroup/user.slice/town.scope/memory.current", "5\n"),
        ];
        assert_eq!(memory_of(&files), Some((1_000, 400)));
    }

    #[test]
    fn the_first_version_of_groups_is_understood_too() {
        let files = [
            ("proc/self/cgroup", "5:cpu,memory:/docker/x\n1:name=systemd:/a\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "1048576000\n"),
            ("sys/fs/cgroup/memory/memory.usage_in_bytes", "524288000\n"),
            (
                "sys/fs/cgroup/memory/memory.stat",
                "inactive_file 1\ntotal_inactive_file 104857600\n",
            ),
        ];
        assert_eq!(memory_of(&files), Some((1_000, 600)));
        // One that is larger than the machine limits nothing.
        let none = [
            ("proc/self/cgroup", "5:memory:/\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("sys/fs/cgroup/memory/memory.usage_in_bytes", "1\n"),
        ];
        assert_eq!(memory_of(&none), Some((16_000, 8_000)));
    }

    #[test]
    fn unreadable_facts_are_unknown() {
        assert_eq!(machine(&[]), MachineFacts::default());
        assert_eq!(machine(&[("proc/meminfo", "MemTotal: many kB\n")]).memory, None);
    }

    #[test]
    fn the_load_is_that_of_the_last_minute() {
        let files = [
            ("proc/loadavg", "3.25 1.00 0.50 2/345 678\n"),
            ("proc/stat", "cpu  1 2\ncpu0 1 2\ncpu1 1 2\nintr 5\n"),
        ];
        assert_eq!(machine(&files).load, Some(MachineLoad { hundredths: 325, cores: 2 }));
    }

    #[test]
    fn this_machine_is_known() {
        let facts = read_facts(Path::new("/"));
        let memory = facts.memory.expect("the kernel tells");
        assert!(memory.available_mb <= memory.total_mb && memory.total_mb > 0);
        assert!(facts.load.is_some());
    }

    proptest! {
        #[test]
        fn no_file_makes_it_panic(text in "([0-9]{0,3}:[a-z,]{0,8}:[/a-z.]{0,12}\n|.{0,30}\n?){0,4}") {
            let _ = (meminfo(&text), directories(Path::new("/x"), &text), hundredths(&text));
            let _ = (cores_of(&text), statistic(&text, "a"));
            for directory in directories(Path::new("/x"), &text) {
                prop_assert!(directory.starts_with("/x/sys/fs/cgroup"));
            }
        }
    }
}
