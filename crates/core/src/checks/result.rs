//! The result of one run of a check.

use crate::schedule::names;
use crate::{Invalid, RigSlug, Timestamp};

names! {
    /// The result of a run of a check.
    CheckResult, "a result of a check" {
        /// The command ended with exit status 0.
        Passed = "passed",
        /// The command refuses the tree, by its exit status.
        Failed = "failed",
        /// The command could not say: that is no judgement of the tree.
        Error = "error",
    }
}

names! {
    /// Why a check could not say whether the tree is good.
    CheckError, "a kind of check error" {
        /// It took longer than its time limit.
        Timeout = "timeout",
        /// A signal from outside ended it.
        Killed = "killed",
        /// There was no room left for files.
        DiskFull = "disk_full",
        /// A program that it needs is not there, or cannot be run.
        MissingProgram = "missing_program",
        /// The worktree could not be made ready for it.
        Setup = "setup",
        /// The process that watched it has gone.
        Lost = "lost",
    }
}

names! {
    /// The purpose of a run of a check.
    CheckPurpose, "a purpose of a check" {
        /// A candidate of the queue.
        Candidate = "candidate",
        /// The commit that a candidate begins from.
        Base = "base",
        /// One merge request alone.
        Request = "request",
        /// A person or a worker asked for it.
        Manual = "manual",
    }
}

/// One run of a check, as the store keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckRun {
    /// Its number in the store; 0 before it is there.
    pub id: u64,
    /// The rig.
    pub rig: RigSlug,
    /// The name of the check.
    pub name: String,
    /// The hash of its definition.
    pub definition: String,
    /// The key under which a pass counts again.
    pub cache_key: String,
    /// The commit.
    pub commit: String,
    /// The tree of the commit.
    pub tree: String,
    /// The purpose of the run.
    pub purpose: CheckPurpose,
    /// Its result.
    pub result: CheckResult,
    /// Why there is no judgement, if there is none.
    pub error: Option<CheckError>,
    /// The exit status of the command, unless it was ended.
    pub exit_code: Option<i32>,
    /// Which try on this tree it was, from 1.
    pub attempt: u32,
    /// Whether it passed after it had failed on the same tree.
    pub flaky: bool,
    /// When it began.
    pub started_at: Timestamp,
    /// How long it took.
    pub duration_ms: u64,
    /// The host that ran it.
    pub host: String,
    /// The file with its output, below the directory of the town.
    pub log: String,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandEnd {
    /// With this exit status.
    Exited(i32),
    /// By this signal.
    Signalled(i32),
    /// It was over its time limit and was ended.
    TooLate,
    /// The process that watched it has gone, and no other can say how it ended.
    Unknown,
}

/// Signals that a program sends itself by a mistake of its own: a crash is a failure of the tree.
const CRASH_SIGNALS: [i32; 8] = [
    3,  // QUIT
    4,  // ILL
    5,  // TRAP
    6,  // ABRT
    7,  // BUS
    8,  // FPE
    11, // SEGV
    31, // SYS
];

/// Signals that others send: an out-of-memory killer, a shutdown, a person.
const SIGNALS_FROM_OUTSIDE: [i32; 6] = [
    1,  // HUP
    2,  // INT
    9,  // KILL
    15, // TERM
    24, // XCPU
    25, // XFSZ
];

/// Words of programs that found no room left for a file.
const DISK_FULL_WORDS: [&str; 4] =
    ["no space left on device", "disk quota exceeded", "disk is full", "database or disk is full"];

/// Judges the end of a check. `last_words` is the end of its output, and `is_disk_full` whether its file system has no room
/// left. A shell ends with 127 or 126 if a program is missing or no program, and with 128 and the number of the signal that
/// ended the program.
pub fn judge_check(
    end: CommandEnd,
    last_words: &str,
    is_disk_full: bool,
) -> (CheckResult, Option<CheckError>) {
    let error = match end {
        CommandEnd::Exited(0) => return (CheckResult::Passed, None),
        CommandEnd::TooLate => Some(CheckError::Timeout),
        CommandEnd::Unknown => Some(CheckError::Lost),
        CommandEnd::Signalled(signal) if CRASH_SIGNALS.contains(&signal) => None,
        CommandEnd::Signalled(_) => Some(CheckError::Killed),
        CommandEnd::Exited(_) if is_disk_full => Some(CheckError::DiskFull),
        CommandEnd::Exited(126 | 127) => Some(CheckError::MissingProgram),
        CommandEnd::Exited(code) if SIGNALS_FROM_OUTSIDE.contains(&(code - 128)) => {
            Some(CheckError::Killed)
        }
        CommandEnd::Exited(_) => {
            last_words.lines().any(tells_full_disk).then_some(CheckError::DiskFull)
        }
    };
    match error {
        Some(error) => (CheckResult::Error, Some(error)),
        None => (CheckResult::Failed, None),
    }
}

/// Whether a line is the error of a program for which there was no room: the words of the system stand at its beginning, or behind
/// a colon or a bracket. The name of a test may have them too.
fn tells_full_disk(line: &str) -> bool {
    let line = line.to_lowercase();
    DISK_FULL_WORDS.iter().flat_map(|words| line.match_indices(words)).any(|(at, _)| {
        let before = line[..at].trim_end();
        before.is_empty() || before.ends_with([':', ']'])
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_no_judgement_of_the_tree_is_an_error() {
        use CommandEnd::{Exited, Signalled, TooLate, Unknown};
        for (end, words, expected) in [
            (Exited(0), "no space left on device", None),
            (Exited(1), "2 tests failed", None),
            (Exited(101), "", None),
            (Signalled(11), "", None),
            (Exited(139), "", None),
            (Exited(134), "", None),
            (TooLate, "", Some(CheckError::Timeout)),
            (Unknown, "", Some(CheckError::Lost)),
            (Signalled(9), "", Some(CheckError::Killed)),
            (Exited(137), "", Some(CheckError::Killed)),
            (Exited(143), "", Some(CheckError::Killed)),
            (Exited(127), "sh: 1: npm: not found", Some(CheckError::MissingProgram)),
            (Exited(126), "", Some(CheckError::MissingProgram)),
            (Exited(1), "write error: No space left on device", Some(CheckError::DiskFull)),
            (
                Exited(1),
                "OSError: [Errno 28] No space left on device: '/x'",
                Some(CheckError::DiskFull),
            ),
            (
                Exited(1),
                "ok\nError: ENOSPC: no space left on device, write",
                Some(CheckError::DiskFull),
            ),
            (Exited(1), "Error: database or disk is full", Some(CheckError::DiskFull)),
            (Exited(1), "test handles_enospc ... ok\n1) tells no space left on device", None),
        ] {
            let (result, error) = judge_check(end, words, false);
            assert_eq!(error, expected, "{end:?}");
            assert_eq!(result == CheckResult::Error, error.is_some(), "{end:?}");
        }
        assert_eq!(judge_check(Exited(1), "", true).1, Some(CheckError::DiskFull));
        assert_eq!(judge_check(Exited(0), "", true).0, CheckResult::Passed);
    }

    proptest! {
        #[test]
        fn only_exit_status_0_passes(code in -5_i32..300, words in ".{0,30}", full: bool) {
            let (result, _) = judge_check(CommandEnd::Exited(code), &words, full);
            prop_assert_eq!(result == CheckResult::Passed, code == 0);
        }
    }
}
