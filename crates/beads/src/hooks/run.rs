//! The helper's side: running hooks one after the other.

use std::io::BufRead;
use std::path::Path;
use std::time::{Duration, Instant};

use gt_core::{Invalid, limits};
use gt_executors::background::{LimitedProgram, ProgramEnd};
use gt_executors::runs::Leftovers;

use super::{HookCall, log};
use gt_town::identity::RUN_TOKEN;
use gt_town::town::DIRECTORY;
use gt_town::with_causes;

/// The first argument that makes a program the helper; the town and the time limit in milliseconds
/// follow.
pub const HELPER: &str = "__run-hooks";

/// Runs the hooks that `input` lists, in its order, each for at most `timeout`. A process that a hook leaves behind
/// may go on until the time of that hook is up, in any session. Failures are in the log of the town.
///
/// For a process that does nothing else.
pub fn run(root: &Path, timeout: Duration, input: impl BufRead) {
    let mut leftovers = Leftovers::adopt();
    for line in input.lines() {
        let call: Result<HookCall, String> = line
            .map_err(|error| error.to_string())
            .and_then(|line| HookCall::parse(&line).map_err(|Invalid(why)| why));
        match call {
            Ok(call) => {
                let until = Instant::now() + timeout;
                run_one(root, timeout, &call);
                leftovers.note(until);
            }
            Err(error) => {
                log::append(root, &format!("hooks are not run: {error}"));
                break;
            }
        }
    }
    leftovers.finish();
}

fn run_one(root: &Path, timeout: Duration, call: &HookCall) {
    let input = format!("{}\n", call.json);
    let ended = LimitedProgram {
        program: &root.join(&call.program),
        arguments: &[&call.bead, &call.event],
        directory: root,
        // A hook that changes beads must not call itself. It acts for the town, not for the worker whose command
        // it follows.
        environment: &[("BD_NO_HOOKS", "1"), ("GT_RUN", ""), (RUN_TOKEN, "")],
        input: input.as_bytes(),
        scratch: &root.join(DIRECTORY),
        limit: timeout,
        words_bytes_max: limits::HOOK_WORDS_BYTES_MAX,
    }
    .run();
    let problem = match ended {
        Ok(ProgramEnd::Well) => return,
        Ok(ProgramEnd::Badly { status, words }) if words.is_empty() => status.to_string(),
        Ok(ProgramEnd::Badly { status, words }) => format!("{status}: {words}"),
        Ok(ProgramEnd::TooLate) => {
            format!("ended because it took longer than {}", gt_core::time::format_duration(timeout))
        }
        Err(error) => with_causes(&error),
    };
    log::append(root, &format!("{} {} {}: {problem}", call.program, call.bead, call.event));
}
