//! The processes of this machine, as the kernel tells of them.

use std::fs;
use std::os::unix::fs::MetadataExt as _;

use rustix::process::Pid;

/// A process. Its number comes back one day; the number with the time of its start does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: Pid,
    /// Nothing if the kernel itself started it.
    pub(super) parent: Option<Pid>,
    pub(super) group: Option<Pid>,
    pub(super) session: Option<Pid>,
    /// In ticks of the kernel, since it started itself.
    pub(super) started: u64,
    /// It has ended and waits to be collected.
    pub(super) is_over: bool,
}

impl Process {
    /// Whether both are the same process, at two moments.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        (self.pid, self.started) == (other.pid, other.started)
    }
}

/// All processes that can be seen; none where the kernel does not tell.
pub(super) fn all() -> Vec<Process> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let numbers = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter_map(Pid::from_raw).filter_map(find).collect()
}

/// The process of this number, if there is one.
pub(super) fn find(pid: Pid) -> Option<Process> {
    let stat = fs::read(format!("/proc/{}/stat", pid.as_raw_pid())).ok()?;
    parse(&stat)
}

/// The parent of the process of this number, as far as the kernel tells.
pub(crate) fn parent_of(number: u32) -> Option<u32> {
    let process = Pid::from_raw(number.try_into().ok()?).and_then(find)?;
    process.parent?.as_raw_pid().try_into().ok()
}

/// When the process of this number was started, in ticks of the kernel; nothing if there is none.
pub(crate) fn start_of(number: u32) -> Option<u64> {
    let process = Pid::from_raw(number.try_into().ok()?).and_then(find)?;
    (!process.is_over).then_some(process.started)
}

/// The process number that a word is.
pub(super) fn pid_of(word: &str) -> Option<Pid> {
    Pid::from_raw(word.parse().ok().filter(|number| *number > 0)?)
}

/// Reads a line such as `12 (name) S 1 12 12 …`. The name may hold anything, also parentheses.
fn parse(stat: &[u8]) -> Option<Process> {
    let name_end = stat.iter().rposition(|byte| *byte == b')')?;
    let number = str::from_utf8(stat.split(|byte| *byte == b' ').next()?).ok()?;
    // The field after the name is the third, as proc(5) counts them.
    let rest = str::from_utf8(stat.get(name_end + 1..)?).ok()?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().take(20).collect();
    let field = |number: usize| fields.get(number - 3).copied();
    Some(Process {
        pid: pid_of(number)?,
        parent: pid_of(field(4)?),
        group: pid_of(field(5)?),
        session: pid_of(field(6)?),
        started: field(22)?.parse().ok()?,
        is_over: matches!(field(3)?, "Z" | "X" | "x"),
    })
}

/// Those of `processes` that `ancestor` started, and those that these started, and so on, without
/// `unrelated` and what these started.
pub(super) fn descendants(
    processes: &[Process],
    ancestor: Pid,
    unrelated: &[Process],
) -> Vec<Process> {
    let mut found: Vec<Process> = Vec::new();
    let mut parents = vec![ancestor];
    while let Some(parent) = parents.pop() {
        for process in processes.iter().filter(|process| process.parent == Some(parent)) {
            let is_unrelated = |other: &Process| {
                // Orphans of an unrelated process are usually still in its group.
                other.is_same(process)
                    || (other.group == process.group && other.group == Some(other.pid))
            };
            // Numbers read one after the other need not fit together; nothing is found twice.
            let is_known = found.iter().any(|other| other.pid == process.pid);
            if !is_known && process.pid != ancestor && !unrelated.iter().any(is_unrelated) {
                found.push(*process);
                parents.push(process.pid);
            }
        }
    }
    found
}

/// The most processes that are measured in a tree.
const MEASURED_PROCESSES_MAX: usize = 1_000;

/// How much memory a process and everything that it started takes now, in megabytes, without pages that are shared with files
/// and others; nothing if the kernel does not tell. Only the processes of the tree are looked at, not all there are.
pub(super) fn memory_of_tree(root: Pid) -> Option<u32> {
    let mut pages = 0_u64;
    let mut found = vec![root];
    let mut at = 0;
    while let Some(pid) = found.get(at).copied() {
        at += 1;
        // Those that have ended meanwhile take nothing.
        let statm = fs::read_to_string(format!("/proc/{}/statm", pid.as_raw_pid()));
        if pid == root && statm.is_err() {
            return None;
        }
        pages = pages.saturating_add(statm.ok().and_then(|text| own_pages(&text)).unwrap_or(0));
        for child in children_of(pid) {
            if found.len() < MEASURED_PROCESSES_MAX && !found.contains(&child) {
                found.push(child);
            }
        }
    }
    let page = u64::try_from(rustix::param::page_size()).unwrap_or(4096);
    Some(u32::try_from(pages.saturating_mul(page) >> 20).unwrap_or(u32::MAX))
}

/// The pages that are a process's own, of a line such as `total resident shared …`.
fn own_pages(statm: &str) -> Option<u64> {
    let mut fields = statm.split_ascii_whitespace().skip(1);
    let resident: u64 = fields.next()?.parse().ok()?;
    Some(resident.saturating_sub(fields.next()?.parse().ok()?))
}

/// The children of a process, of all its threads.
fn children_of(pid: Pid) -> Vec<Pid> {
    let Ok(threads) = fs::read_dir(format!("/proc/{}/task", pid.as_raw_pid())) else {
        return Vec::new();
    };
    let children = |thread: fs::DirEntry| fs::read_to_string(thread.path().join("children")).ok();
    let words: Vec<String> = threads.flatten().filter_map(children).collect();
    words.iter().flat_map(|words| words.split_ascii_whitespace()).filter_map(pid_of).collect()
}

/// Whether a process has this file open for writing, as far as we may know. The lock of a run is held by descriptors that can write;
/// the daemon and others that only wait for it, or ask for it, can read.
pub(super) fn has_open(pid: Pid, file: &fs::Metadata) -> bool {
    let Ok(entries) = fs::read_dir(format!("/proc/{}/fd", pid.as_raw_pid())) else { return false };
    let same = |other: fs::Metadata| (other.dev(), other.ino()) == (file.dev(), file.ino());
    // The permissions of such a link are those of the descriptor.
    let can_write = |link: fs::Metadata| link.mode() & 0o200 != 0;
    entries.flatten().any(|entry| {
        fs::metadata(entry.path()).is_ok_and(same)
            && fs::symlink_metadata(entry.path()).is_ok_and(can_write)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn process(pid: i32, parent: i32, group: i32) -> Process {
        Process {
            pid: Pid::from_raw(pid).unwrap(),
            parent: Pid::from_raw(parent),
            group: Pid::from_raw(group),
            session: Pid::from_raw(5),
            started: 7,
            is_over: false,
        }
    }

    #[test]
    fn a_process_that_only_reads_a_lock_does_not_hold_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        let options = || {
            let all =
                fs::File::options().read(true).write(true).create(true).truncate(false).clone();
            all.open(&path)
        };
        drop(options().unwrap());
        let (file, ourselves) = (fs::metadata(&path).unwrap(), rustix::process::getpid());
        let reader = fs::File::open(&path).unwrap();
        assert!(!has_open(ourselves, &file));
        let holder = options().unwrap();
        assert!(has_open(ourselves, &file));
        drop((reader, holder));
        assert!(!has_open(ourselves, &file));
    }

    #[test]
    fn a_process_name_with_brackets_and_bad_utf8_is_parsed() {
        let line =
            b"12 (a) S 1 (\xff) Z 3 4 5 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 123456 9 9 9\n";
        let expected = Process { started: 123_456, is_over: true, ..process(12, 3, 4) };
        assert_eq!(parse(line), Some(expected));
        for damaged in ["", "12", "12 (a", "12 (a)", "x (a) S 1 2", "12 (a) S 1 2 3", ")", "-1 )"] {
            assert_eq!(parse(damaged.as_bytes()), None, "{damaged}");
        }
    }

    proptest! {
        #[test]
        fn no_line_makes_it_panic(line in "([0-9]{1,3} )?[() a-zZ0-9-]{0,60}|.*") {
            let _ = parse(line.as_bytes());
        }
    }

    #[test]
    fn descendants_leave_out_unrelated_processes_and_theirs() {
        let all = [
            process(10, 1, 10),
            process(11, 10, 11),
            process(12, 11, 11),
            process(13, 12, 13),
            process(20, 10, 20),
            process(21, 20, 21),
            // Its parent was 20.
            process(22, 10, 20),
            process(30, 1, 30),
        ];
        let ancestor = Pid::from_raw(10).unwrap();
        let numbers = |unrelated: &[Process]| {
            let mut found: Vec<i32> = descendants(&all, ancestor, unrelated)
                .iter()
                .map(|process| process.pid.as_raw_pid())
                .collect();
            found.sort_unstable();
            found
        };
        assert_eq!(numbers(&[]), [11, 12, 13, 20, 21, 22]);
        assert_eq!(numbers(&[process(20, 10, 20)]), [11, 12, 13]);
    }

    #[test]
    fn a_cycle_of_parents_is_searched_once() {
        let all = [process(10, 12, 10), process(11, 10, 10), process(12, 11, 10)];
        assert_eq!(descendants(&all, Pid::from_raw(10).unwrap(), &[]).len(), 2);
    }

    #[test]
    fn a_tree_weighs_at_least_as_much_as_its_root() {
        let mut child = crate::process::command("sleep").arg("60").spawn().unwrap();
        let ours = rustix::process::getpid();
        let started = Pid::from_child(&child);
        assert!(memory_of_tree(ours).is_some_and(|mb| mb > 0));
        assert!(children_of(ours).contains(&started));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(memory_of_tree(started), None);
        assert_eq!(
            (own_pages("9 5 2 1"), own_pages("9 5"), own_pages("a b c")),
            (Some(3), None, None)
        );
    }

    #[test]
    fn the_list_of_all_processes_has_this_one() {
        let ourselves = rustix::process::getpid();
        let seen = find(ourselves).unwrap();
        assert!(all().contains(&seen));
        assert_eq!(seen.parent, rustix::process::getppid());
        let file = tempfile::tempfile().unwrap().metadata().unwrap();
        assert!(!has_open(ourselves, &file));
        let kept = tempfile::tempfile().unwrap();
        assert!(has_open(ourselves, &kept.metadata().unwrap()));
    }
}
