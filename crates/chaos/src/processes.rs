//! The process table, as every user of this machine can read it.

use std::collections::HashSet;
use std::fmt;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// The name that a child gives itself that escapes from its agent; the sandbox and its run follow.
pub(crate) const ESCAPED: &str = "gt-escaped";

/// Set while a process has been forked and has not yet become another program (`PF_FORKNOEXEC`).
const FORKED_ONLY: u64 = 0x40;

/// The kind of process that is hit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ProcessKind {
    Daemon,
    Supervisor,
    Agent,
    /// The server of tmux.
    Sessions,
    /// Anything else that works for the town at the moment: git, a shell, a command.
    Helper,
    /// A child of an agent that has left its session, its descriptors and its environment.
    Escaped,
}

impl ProcessKind {
    pub(crate) const ALL: [Self; 5] =
        [Self::Daemon, Self::Supervisor, Self::Agent, Self::Sessions, Self::Helper];
}

impl fmt::Display for ProcessKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Daemon => "daemon",
            Self::Supervisor => "supervisor",
            Self::Agent => "agent",
            Self::Sessions => "tmux server",
            Self::Helper => "helper",
            Self::Escaped => "escaped child",
        })
    }
}

/// A process of the town.
#[derive(Debug, Clone)]
pub(crate) struct TownProcess {
    id: Pid,
    /// When it began, in ticks: with its number, that identifies it.
    began: u64,
    pub(crate) kind: ProcessKind,
    /// The run it works for, if it does.
    pub(crate) run: Option<String>,
    /// Its command line.
    pub(crate) command: String,
}

impl TownProcess {
    /// Whether it is there, and the same.
    pub(crate) fn is_alive(&self) -> bool {
        Stat::of(self.id.as_raw_pid()).is_some_and(|stat| stat.began == self.began && !stat.is_over)
    }

    /// Sends it a signal; says whether it was there to get one. No other process can get it.
    pub(crate) fn signal(&self, signal: Signal) -> bool {
        let Ok(descriptor) = pidfd_open(self.id, PidfdFlags::empty()) else { return false };
        // The number may have been reused before it was opened, but not since.
        self.is_alive() && pidfd_send_signal(descriptor, signal).is_ok()
    }
}

#[cfg(test)]
impl TownProcess {
    /// A process of a run that is not there.
    pub(crate) fn sample(kind: ProcessKind, run: &str) -> Self {
        let run = Some(run.to_owned());
        Self { id: Pid::INIT, began: 0, kind, run, command: "gt scripted".to_owned() }
    }
}

impl fmt::Display for TownProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {}", self.id)?;
        if let Some(run) = &self.run {
            write!(f, " of {run}")?;
        }
        write!(f, " ({})", self.command)
    }
}

/// The kernel's line about a process.
struct Stat {
    began: u64,
    is_forked_only: bool,
    is_over: bool,
}

impl Stat {
    fn of(id: i32) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{id}/stat")).ok()?)
    }

    /// The name of the program stands in brackets, and may have some itself.
    fn parse(text: &str) -> Option<Self> {
        let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
        let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
        let is_over = matches!(*fields.first()?, "Z" | "X");
        Some(Self { began: number(19)?, is_forked_only: number(6)? & FORKED_ONLY != 0, is_over })
    }
}

/// The processes of one sandbox: those whose home is in it.
#[derive(Debug)]
pub(crate) struct ProcessTable {
    home: Vec<u8>,
    /// Processes that have nothing to do with us, so that they are read once.
    foreign: HashSet<(i32, u64)>,
}

impl ProcessTable {
    /// The table of the sandbox below `root`.
    pub(crate) fn of(root: &Path) -> Self {
        let mut home = b"HOME=".to_vec();
        home.extend_from_slice(root.join("home").as_os_str().as_bytes());
        Self { home, foreign: HashSet::new() }
    }

    /// Everything of the sandbox that is there, one after the other: some may have ended when the last is read.
    pub(crate) fn look(&mut self) -> Vec<TownProcess> {
        let mut found = Vec::new();
        let mut seen = HashSet::new();
        for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
            let Some(id) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok())
            else {
                continue;
            };
            let Some(stat) = Stat::of(id).filter(|stat| !stat.is_over) else { continue };
            let key = (id, stat.began);
            if self.foreign.contains(&key) {
                seen.insert(key);
                continue;
            }
            match self.process(id, &stat) {
                Some(process) => found.push(process),
                None if !stat.is_forked_only => drop(seen.insert(key)),
                None => {}
            }
        }
        self.foreign = seen;
        found.sort_by_key(|process| (process.kind, process.id.as_raw_pid()));
        found
    }

    /// Those of a kind.
    pub(crate) fn of_kind(&mut self, kind: ProcessKind) -> Vec<TownProcess> {
        let mut found = self.look();
        found.retain(|process| process.kind == kind);
        found
    }

    /// Agents and escaped children that were all there at one moment: each was seen before it, and is seen after it.
    pub(crate) fn workers_at_once(&mut self) -> Vec<TownProcess> {
        let mut found = self.look();
        found.retain(|process| matches!(process.kind, ProcessKind::Agent | ProcessKind::Escaped));
        found.retain(TownProcess::is_alive);
        found
    }

    /// A process of the sandbox, if it is one.
    fn process(&self, id: i32, stat: &Stat) -> Option<TownProcess> {
        let environment = fs::read(format!("/proc/{id}/environ")).ok()?;
        let variables: Vec<&[u8]> = environment.split(|byte| *byte == 0).collect();
        if !variables.contains(&self.home.as_slice()) {
            return self.escaped(id, stat);
        }
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let run = variables.iter().find_map(|variable| variable.strip_prefix(b"GT_RUN="));
        let command = fs::read(format!("/proc/{id}/cmdline")).ok()?;
        let words: Vec<String> =
            command.split(|byte| *byte == 0).map(text).filter(|word| !word.is_empty()).collect();
        let name = fs::read_to_string(format!("/proc/{id}/comm")).ok()?;
        // A process that was forked a moment ago still looks like its parent. The server of tmux
        // stays like that, under a name of its own.
        let kind = match kind_of(&name, &words) {
            ProcessKind::Sessions => ProcessKind::Sessions,
            _ if stat.is_forked_only => ProcessKind::Helper,
            kind => kind,
        };
        let id = Pid::from_raw(id)?;
        let command = words.join(" ").chars().take(200).collect();
        Some(TownProcess { id, began: stat.began, kind, run: run.map(text), command })
    }
}

impl ProcessTable {
    /// An escaped child of the sandbox, which only its command line tells.
    fn escaped(&self, id: i32, stat: &Stat) -> Option<TownProcess> {
        let command = fs::read(format!("/proc/{id}/cmdline")).ok()?;
        let words: Vec<&[u8]> = command.split(|byte| *byte == 0).collect();
        let at = words.iter().position(|word| *word == ESCAPED.as_bytes())?;
        let root = self.home.strip_prefix(b"HOME=")?.strip_suffix(b"/home")?;
        // A process that is about to become one, or was forked by one, is not counted.
        let is_one = words.get(at + 1) == Some(&root) && words.first() == Some(&b"bash".as_slice());
        let run = is_one.then(|| words.get(at + 2)).flatten()?;
        Some(TownProcess {
            id: Pid::from_raw(id)?,
            began: stat.began,
            kind: ProcessKind::Escaped,
            run: Some(String::from_utf8_lossy(run).into_owned()),
            command: ESCAPED.to_owned(),
        })
    }
}

/// The kind of a process, from its name and its command line.
fn kind_of(name: &str, words: &[String]) -> ProcessKind {
    let has = |wanted: &[&str]| words.windows(wanted.len()).any(|some| some == wanted);
    let program = words.first().and_then(|program| Path::new(program).file_name());
    if name.starts_with("tmux: server") {
        ProcessKind::Sessions
    } else if program.is_none_or(|program| program != "gt") {
        ProcessKind::Helper
    } else if has(&["daemon", "run"]) {
        ProcessKind::Daemon
    } else if has(&["worker", "exec"]) {
        ProcessKind::Supervisor
    } else if words.get(1).is_some_and(|word| word == "scripted") {
        ProcessKind::Agent
    } else {
        ProcessKind::Helper
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(name: &str, line: &str) -> ProcessKind {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        kind_of(name, &words)
    }

    #[test]
    fn the_kind_of_a_process_follows_from_name_and_words() {
        assert_eq!(kind("gt", "/x/gt daemon run"), ProcessKind::Daemon);
        assert_eq!(kind("gt", "/x/gt worker exec we-1#2"), ProcessKind::Supervisor);
        assert_eq!(kind("gt", "/x/gt scripted"), ProcessKind::Agent);
        assert_eq!(kind("tmux: server", "tmux -L gt new-session"), ProcessKind::Sessions);
        assert_eq!(kind("tmux: client", "tmux -L gt -C attach"), ProcessKind::Helper);
        assert_eq!(kind("gt", "/x/gt done"), ProcessKind::Helper);
        assert_eq!(kind("sh", "sh -c gt worker exec we-1"), ProcessKind::Helper);
        assert_eq!(kind("sh", ""), ProcessKind::Helper);
    }

    #[test]
    fn a_name_with_brackets_is_parsed() {
        let line = "42 (a) b) S 1 1 1 0 -1 4194368 1 0 0 0 0 0 0 0 20 0 1 0 777 1 1";
        let stat = Stat::parse(line).unwrap();
        assert_eq!((stat.began, stat.is_forked_only, stat.is_over), (777, true, false));
        assert!(Stat::parse("42 (sh").is_none());
        assert!(Stat::parse("42 (sh) Z 1").is_none());
    }

    #[test]
    fn a_process_of_a_sandbox_is_found_and_signalled_and_no_other_is() {
        let sandbox = gt_testkit::Sandbox::new("/bin/sh");
        let running = sandbox.command("sleep").arg("60").env("GT_RUN", "we-1#1").start();
        let mut table = ProcessTable::of(sandbox.root());
        gt_testkit::wait_until("it is seen", || table.look().iter().any(|one| one.run.is_some()));
        let found = table.look();
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].run.as_deref(), Some("we-1#1"));
        assert!(found[0].is_alive());
        assert!(found[0].signal(Signal::KILL));
        drop(running);
        assert!(!found[0].is_alive() && !found[0].signal(Signal::KILL));
    }
}
