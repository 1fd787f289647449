//! One command of a check, from its start until nothing of it is left.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use gt_core::checks::{CheckDefinition, CommandEnd};
use gt_core::secret_mask::SecretMask;
use gt_executors::runs::{ATTEND, AgentEnd, BoundCommand, CommandOrder};
use gt_executors::terminal::Launcher;

use super::log::{self, LogEnd};
use crate::trees::CheckTree;
use gt_town::{OperationError, Result};

/// How often the caller is asked whether to go on.
const KEEP_GOING_INTERVAL: Duration = Duration::from_secs(1);

/// How long the end of the output is waited for after the end of the command. Only a process of another user can hold it
/// open.
const OUTPUT_END_WAIT_MAX: Duration = Duration::from_secs(5);

/// The signal by which a command counts as ended that its caller no longer needs.
const TERM: i32 = 15;

/// How a command went.
pub(super) struct FinishedCheckCommand {
    pub(super) end: CommandEnd,
    pub(super) output: LogEnd,
    pub(super) duration: Duration,
}

/// The inputs of one run of a command.
pub(super) struct CheckCommand<'a> {
    pub(super) check: &'a CheckDefinition,
    pub(super) argv: &'a [String],
    pub(super) tree: &'a CheckTree,
    pub(super) program: &'a Path,
    pub(super) environment: &'a [(String, String)],
    pub(super) without: &'a [&'a str],
    /// How long it may take to end when it is asked to.
    pub(super) grace: Duration,
    pub(super) keep_going: &'a dyn Fn() -> bool,
    /// The keys that its output is kept without.
    pub(super) mask: &'a SecretMask,
}

impl CheckCommand<'_> {
    /// Runs it; its output goes to `log`.
    pub(super) fn run(&self, log: File) -> Result<FinishedCheckCommand> {
        let failed = |source| OperationError::File {
            action: "keep the output of a check in",
            path: PathBuf::from(&self.check.name),
            source,
        };
        let (reader, writer) = io::pipe().map_err(failed)?;
        // Never readable: nothing but the end of the command is waited for.
        let (never, _held) = io::pipe().map_err(failed)?;
        let (done, kept) = mpsc::channel();
        let mask = self.mask.clone();
        std::thread::spawn(move || {
            // The receiver is gone when the output did not end in time.
            let _ = done.send(log::keep(reader, log, mask));
        });
        let environment: Vec<(&str, String)> =
            self.environment.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
        let began = Instant::now();
        let mut command = self.tree.mark(|mark| {
            BoundCommand::start(CommandOrder {
                attendant: &Launcher {
                    program: self.program.to_owned(),
                    arguments: vec![ATTEND.into()],
                },
                argv: self.argv,
                directory: self.tree.tree().path(),
                environment: &environment,
                without: self.without,
                input: b"",
                output: File::from(OwnedFd::from(writer)),
                grace: self.grace,
                time_left: self.check.timeout,
                mark: Some(mark),
            })
        })?;
        let end = loop {
            let Some(left) = self.check.timeout.checked_sub(began.elapsed()) else {
                command.end();
                break CommandEnd::TooLate;
            };
            match command.wait(never.as_fd(), left.min(KEEP_GOING_INTERVAL)) {
                Some(AgentEnd::Exited(code)) => break CommandEnd::Exited(code),
                Some(AgentEnd::Signalled(signal)) => break CommandEnd::Signalled(signal),
                Some(AgentEnd::Cancelled) => break CommandEnd::Unknown,
                None if (self.keep_going)() => {}
                None => {
                    command.end();
                    break CommandEnd::Signalled(TERM);
                }
            }
        };
        let duration = began.elapsed();
        let output = kept.recv_timeout(OUTPUT_END_WAIT_MAX).unwrap_or_default();
        Ok(FinishedCheckCommand { end, output, duration })
    }
}
