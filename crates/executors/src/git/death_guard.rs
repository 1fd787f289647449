//! A process group that does not outlive us.
//!
//! Linux has a signal for the death of a parent, but only the child itself can ask for it, between fork and exec. A shell that
//! waits for the end of a pipe does the same everywhere: the kernel closes our end when we die, also by `kill -9`.

use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Stdio};

use rustix::process::Pid;

use super::error::GitError;
use crate::process::command;

/// Ends its group when its input ends without a line. Git removes its lock files if it is asked to end.
const SCRIPT: &str = "read -r _ || { trap '' TERM; kill -TERM 0; sleep 5; kill -KILL 0; }";

/// The leader of the group: as long as it is there, no other group can have its number.
#[derive(Debug)]
pub(super) struct DeathGuard(Child);

impl DeathGuard {
    pub(super) fn start() -> Result<Self, GitError> {
        let mut shell = command(Path::new("/bin/sh"));
        shell.args(["-c", SCRIPT]).stdin(Stdio::piped());
        shell.stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        shell.spawn().map(Self).map_err(|source| GitError::Start { source })
    }

    /// The group that processes have to join.
    pub(super) fn group(&self) -> Pid {
        Pid::from_child(&self.0)
    }

    /// The processes of the group have ended, or have been killed together with the guard.
    pub(super) fn dismiss(mut self) {
        if let Some(mut input) = self.0.stdin.take() {
            let _ = input.write_all(b"\n");
        }
        let _ = self.0.wait();
    }
}
