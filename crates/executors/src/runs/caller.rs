//! The run or the check that this process belongs to, by what a process cannot change about itself.
//!
//! A worker that forgets its token and its environment is still the child of its agent, in the control group of its run, or
//! has inherited the lock of its run. A person at a terminal is none of these, also in the tree of a worker.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustix::process::{Pid, getpid};

use super::RunFiles;
use super::cgroup::run_group_of;
use super::files::runs_with_files;
use super::orphan::LockRecord;
use super::processes::{self, Process};
use super::strays::{is_session_server, line_of, program_name};
use crate::calls::TOKEN_FILE;

/// The owner of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProcessOwner {
    /// A run; its name, if it can be told.
    Run(Option<String>),
    /// A check, or the setup of the tree that it runs in.
    Check(String),
}

/// The run or check of the town at `root` that this process comes from; nothing for a person.
pub fn owner_of_this_process(root: &Path, runs_root: &Path) -> Option<ProcessOwner> {
    owner_of(getpid(), root, runs_root)
}

/// The run or check of the town at `root` that has the other end of a connection, which comes from this address of this
/// machine; nothing for a person.
pub fn owner_of_peer(peer: SocketAddr, root: &Path, runs_root: &Path) -> Option<ProcessOwner> {
    if runs_with_files(runs_root).unwrap_or_default().is_empty() {
        return None;
    }
    let socket = format!("socket:[{}]", socket_of(peer)?);
    let has_socket = |process: &Process| {
        let entries = fs::read_dir(format!("/proc/{}/fd", process.pid.as_raw_pid()));
        let mut links = entries
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|file| fs::read_link(file.path()).ok());
        links.any(|link| link.as_os_str() == socket.as_str())
    };
    let holders = processes::all().into_iter().filter(has_socket);
    holders.into_iter().find_map(|process| owner_of(process.pid, root, runs_root))
}

/// The number of the socket with this address.
fn socket_of(address: SocketAddr) -> Option<u64> {
    ["/proc/net/tcp", "/proc/net/tcp6"].into_iter().find_map(|table| {
        let sockets = fs::read_to_string(table).unwrap_or_default();
        sockets.lines().skip(1).find_map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let is_it = listed_address(words.get(1)?) == Some(canonical(address));
            is_it.then(|| words.get(9)?.parse().ok()).flatten()
        })
    })
}

/// An address as the kernel lists it: words of 32 bits in the order of this machine, then the port.
fn listed_address(text: &str) -> Option<SocketAddr> {
    let (host, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let mut bytes = Vec::new();
    for at in (0..host.len()).step_by(8) {
        let word = u32::from_str_radix(host.get(at..at + 8)?, 16).ok()?;
        bytes.extend(word.to_ne_bytes());
    }
    let host = match bytes.len() {
        4 => IpAddr::from(<[u8; 4]>::try_from(bytes).ok()?),
        _ => IpAddr::from(<[u8; 16]>::try_from(bytes).ok()?),
    };
    Some(canonical(SocketAddr::new(host, port)))
}

fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

fn owner_of(pid: Pid, root: &Path, runs_root: &Path) -> Option<ProcessOwner> {
    let all = processes::all();
    let line: Vec<Process> = line_of(pid, &all)
        .into_iter()
        .filter_map(|pid| all.iter().find(|process| process.pid == pid).copied())
        .collect();
    let by_environment = line.iter().find_map(|process| named_by_environment(process, root));
    by_environment.or_else(|| owner_by_files(pid, &line, runs_root))
}

/// The run whose lock one of these processes has open, whose agent one of them is, or whose control group the first is in.
fn owner_by_files(pid: Pid, line: &[Process], runs_root: &Path) -> Option<ProcessOwner> {
    let open: HashSet<(u64, u64)> =
        line.iter().flat_map(|process| open_files(process.pid)).collect();
    let group = run_group_of(pid, runs_root);
    for (run, _) in runs_with_files(runs_root).unwrap_or_default() {
        let path = RunFiles::of(runs_root, &run).lock_path();
        let Ok(lock) = fs::metadata(&path) else { continue };
        if open.contains(&(lock.dev(), lock.ino())) {
            return Some(ProcessOwner::Run(Some(run)));
        }
        let record = LockRecord::parse(&fs::read_to_string(&path).unwrap_or_default());
        let Some(record) = record else { continue };
        let is_agent = |process: &Process| record.agent == Some((process.pid, process.started));
        let in_group = group.as_ref().is_some_and(|group| {
            record.cgroup.as_deref().is_some_and(|path| Path::new(path) == group)
        });
        if in_group || line.iter().any(is_agent) {
            return Some(ProcessOwner::Run(Some(run)));
        }
    }
    group.map(|_| ProcessOwner::Run(None))
}

/// The owner that the environment names with which a process was started.
fn named_by_environment(process: &Process, root: &Path) -> Option<ProcessOwner> {
    let directory = format!("/proc/{}", process.pid.as_raw_pid());
    // A server of sessions has the environment of the process that needed it first.
    if program_name(Path::new(&directory)).is_some_and(|name| is_session_server(&name)) {
        return None;
    }
    let environment = fs::read(format!("{directory}/environ")).unwrap_or_default();
    owner_named(&environment, root)
}

fn owner_named(environment: &[u8], root: &Path) -> Option<ProcessOwner> {
    let value = |name: &[u8]| {
        let mut variables = environment.split(|byte| *byte == 0);
        let value = variables.find_map(|variable| variable.strip_prefix(name)?.strip_prefix(b"="));
        value.filter(|value| !value.is_empty())
    };
    let named = Path::new(OsStr::from_bytes(value(b"GT_TOWN_ROOT")?));
    let is_here = named == root
        || named
            .canonicalize()
            .is_ok_and(|named| root.canonicalize().is_ok_and(|root| named == root));
    // A program that sends a notice about a run is not its worker, though it knows its name.
    let has_token = value(b"GT_RUN_TOKEN").is_some() || value(TOKEN_FILE.as_bytes()).is_some();
    let is_told = value(b"GT_NOTICE_KEY").is_some() && !has_token;
    if !is_here || is_told {
        return None;
    }
    let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
    if let Some(check) = value(b"GT_CHECK") {
        return Some(ProcessOwner::Check(text(check)));
    }
    let run = text(value(b"GT_RUN")?);
    gt_core::schedule::RunId::parse(&run).ok().map(|run| ProcessOwner::Run(Some(run.to_string())))
}

/// The files that a process has open, as far as we may know.
fn open_files(pid: Pid) -> Vec<(u64, u64)> {
    let entries = fs::read_dir(format!("/proc/{}/fd", pid.as_raw_pid()));
    let files = entries.into_iter().flatten().flatten();
    let files = files.filter_map(|entry| fs::metadata(entry.path()).ok());
    files.map(|file| (file.dev(), file.ino())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::command;

    #[test]
    fn an_address_is_read_as_the_kernel_lists_it() {
        let read = |text| listed_address(text).map(|address| address.to_string());
        assert_eq!(read("0100007F:46A4").as_deref(), Some("127.0.0.1:18084"));
        let mapped = "0000000000000000FFFF00000100007F:46A4";
        assert_eq!(read(mapped).as_deref(), Some("127.0.0.1:18084"));
        let sixth = "00000000000000000000000001000000:0050";
        assert_eq!(read(sixth).as_deref(), Some("[::1]:80"));
        for other in ["", "0100007F", "0100007:46A4", "0100007F:46A4F", "01:02"] {
            assert_eq!(read(other), None, "{other}");
        }
    }

    #[test]
    fn the_socket_of_a_connection_is_found() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let socket = socket_of(stream.local_addr().unwrap()).unwrap();
        let link = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&stream));
        let link = fs::read_link(link).unwrap();
        assert_eq!(link.to_str(), Some(format!("socket:[{socket}]").as_str()));
    }

    #[test]
    fn an_environment_names_a_run_or_a_check_of_its_own_town() {
        let root = Path::new("/somewhere/town");
        let of = |environment: &str| owner_named(environment.replace('|', "\0").as_bytes(), root);
        let run = ProcessOwner::Run(Some("we-a#1".to_owned()));
        assert_eq!(of("A=1|GT_RUN=we-a#1|GT_TOWN_ROOT=/somewhere/town|"), Some(run));
        let check = ProcessOwner::Check("web/test".to_owned());
        let text = "GT_RUN=gt-check#1|GT_CHECK=web/test|GT_TOWN_ROOT=/somewhere/town|";
        assert_eq!(of(text), Some(check));
        for other in [
            "",
            "GT_RUN=we-a#1|",
            "GT_RUN=we-a#1|GT_TOWN_ROOT=/elsewhere/town|",
            "GT_RUN=|GT_TOWN_ROOT=/somewhere/town|",
            "GT_RUN=nightly|GT_TOWN_ROOT=/somewhere/town|",
            "GT_RUN=we-a#1|GT_TOWN_ROOT=/somewhere/town|GT_NOTICE_KEY=1|",
        ] {
            assert_eq!(of(other), None, "{other}");
        }
    }

    #[test]
    fn a_process_belongs_to_the_run_whose_lock_it_inherited_or_whose_child_it_is() {
        let town = tempfile::tempdir().unwrap();
        let runs_root = town.path().join("runs");
        let files = RunFiles::of(&runs_root, "we-a#1");
        files.create().unwrap();
        fs::write(files.lock_path(), "").unwrap();
        let owner =
            |child: &std::process::Child| owner_of(Pid::from_child(child), town.path(), &runs_root);
        let person = command("sleep").arg("60").spawn().unwrap();
        let lock = fs::File::open(files.lock_path()).unwrap();
        let heir = command("sleep").arg("60").stdin(lock).spawn().unwrap();
        let environment = [("GT_RUN", "we-b#2"), ("GT_TOWN_ROOT", town.path().to_str().unwrap())];
        let worker = command("sleep").arg("60").envs(environment).spawn().unwrap();
        let found = [owner(&person), owner(&heir), owner(&worker)];
        for mut child in [person, heir, worker] {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        let run = |name: &str| Some(ProcessOwner::Run(Some(name.to_owned())));
        assert_eq!(found, [None, run("we-a#1"), run("we-b#2")]);
    }
}
