//! The `gt` and `bd` commands.
//!
//! # Architecture invariants
//!
//! - A command parses its arguments, calls an operation and prints. It holds no rule of the domain and
//!   no SQL.
//! - Everything printed goes through the printer in `output`: data to standard output, everything else to
//!   standard error.

mod bd;
mod common;
mod context;
mod doctor;
mod error;
mod gt;
pub mod input_parsers;
mod manual;
mod output;
pub mod reference;
mod values;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use clap::{CommandFactory, FromArgMatches};
use gt_beads::hooks;
use gt_daemon::retention;
use gt_execution::runs;
use gt_town::Environment;
use gt_workqueue::work;

use crate::error::CliError;
use crate::output::Printer;

/// Runs `bd` or `gt`, by the name of the program.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let mut arguments: Vec<OsString> = arguments.into_iter().collect();
    if arguments.get(1).is_some_and(|argument| argument == runs::BECOME) {
        // `become_agent` has told the supervisor the reason.
        let Err(_) = runs::become_agent(&arguments[2..]);
        return ExitCode::FAILURE;
    }
    if arguments.get(1).is_some_and(|argument| argument == work::ATTEND) {
        // The process that started us hears that nothing was started.
        let attended = work::attend_command(&arguments[2..]);
        return if attended.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    if arguments.get(1).is_some_and(|argument| argument == hooks::HELPER) {
        return run_hooks(&arguments[2..]);
    }
    if arguments.get(1).is_some_and(|argument| argument == gt_daemon::notice_helper::HELPER) {
        return deliver_notices(&arguments[2..]);
    }
    if arguments.get(1).is_some_and(|argument| argument == retention::HELPER) {
        return run_retention(&arguments[2..]);
    }
    let called = arguments.first().map(std::path::PathBuf::from);
    let name = called.as_deref().and_then(Path::file_stem).unwrap_or_default();
    if name == "git" {
        return ExitCode::from(runs::call_worker_git(&arguments));
    }
    if let Some(code) = done_at_home(if name == "bd" { "bd" } else { "gt" }, &arguments) {
        return code;
    }
    if name == "bd" {
        return run_bd("bd", &arguments);
    }
    // The command line of bd is its own, and has its own usage errors.
    if let Some(place) = place_of_verb(&arguments).filter(|place| arguments[*place] == "bd") {
        arguments.remove(place);
        return run_bd("gt bd", &arguments);
    }
    run_gt(&arguments)
}

/// Runs hooks for a command that has ended by now: the town and the time limit are the arguments, the
/// hooks are on standard input. Its output and its exit code are not read.
fn run_hooks(arguments: &[OsString]) -> ExitCode {
    let [root, timeout] = arguments else {
        return ExitCode::from(2);
    };
    let Some(timeout_ms) = timeout.to_str().and_then(|text| text.parse().ok()) else {
        return ExitCode::from(2);
    };
    hooks::run(Path::new(root), Duration::from_millis(timeout_ms), std::io::stdin().lock());
    ExitCode::SUCCESS
}

/// Sends notices for a command that has ended by now: the town is the argument. Its output
/// and its exit code are not read; undelivered notices stay in the outbox, with the reason.
fn deliver_notices(arguments: &[OsString]) -> ExitCode {
    let [root] = arguments else {
        return ExitCode::from(2);
    };
    match gt_daemon::notice_helper::run(Path::new(root), &Environment::from_process()) {
        Ok(_) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// Commands that always run on the machine they are called on, also if the town is on another.
const LOCAL_COMMANDS: [&str; 4] = ["worker", "scripted", "completions", "man"];

/// Sends the command of an agent on another machine to the machine of the town; nothing if it is to run here.
fn done_at_home(program: &str, arguments: &[OsString]) -> Option<ExitCode> {
    let is_here =
        |place: usize| arguments[place].to_str().is_some_and(|verb| LOCAL_COMMANDS.contains(&verb));
    if program == "gt" && place_of_verb(arguments).is_some_and(is_here) {
        return None;
    }
    // A git hook of the original has nothing to ask there, and must not fail because the store does not answer.
    let is_hook = |argument: &OsString| argument == "hooks" || argument == "hook";
    if program == "bd" && arguments.get(1).is_some_and(is_hook) {
        return None;
    }
    let environment = Environment::from_process();
    match runs::called_from(&environment, program, arguments.get(1..).unwrap_or_default())? {
        Ok(status) => Some(ExitCode::from(status)),
        Err(error) => {
            let json = arguments.iter().any(|argument| argument == "--json");
            Printer::new(json, false, &environment).failure(&CliError::request(error.to_string()));
            Some(ExitCode::FAILURE)
        }
    }
}

/// Removes what is too old from the town that is the argument. Its output and its exit code are not read; a failed removal
/// is tried again the next day.
fn run_retention(arguments: &[OsString]) -> ExitCode {
    let [root] = arguments else {
        return ExitCode::from(2);
    };
    match retention::run(Path::new(root), &Environment::from_process()) {
        Ok(_) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// Where the command of `gt` stands: behind the flags that `bd` takes too.
fn place_of_verb(arguments: &[OsString]) -> Option<usize> {
    let mut place = 1;
    loop {
        match arguments.get(place)?.to_str()? {
            "--json" | "-q" | "--quiet" => place += 1,
            "--actor" | "-C" | "--directory" => place += 2,
            joined if joined.starts_with("--actor=") || joined.starts_with("--directory=") => {
                place += 1;
            }
            flag if flag.starts_with('-') => return None,
            _ => return Some(place),
        }
    }
}

/// Runs `gt` with these arguments, the program's name included.
fn run_gt(arguments: &[OsString]) -> ExitCode {
    let matches = gt_command().try_get_matches_from(arguments);
    // Behind flags that `place_of_verb` does not know.
    if matches.as_ref().is_ok_and(|matches| matches.subcommand_name() == Some("bd"))
        && let Some(place) = arguments.iter().position(|argument| argument == "bd")
    {
        let mut arguments = arguments.to_vec();
        arguments.remove(place);
        return run_bd("gt bd", &arguments);
    }
    match matches.and_then(|matches| gt::Gt::from_arg_matches(&matches)) {
        Ok(parsed) => {
            let environment = Environment::from_process();
            let printer = Printer::new(parsed.common.json, parsed.common.quiet, &environment);
            finish(&printer, gt::run(parsed, &printer, environment))
        }
        Err(error) => usage(&error, arguments, 2),
    }
}

/// Runs `bd` with these arguments, the program's name included.
fn run_bd(name: &str, arguments: &[OsString]) -> ExitCode {
    let command = bd::Bd::command().bin_name(name);
    let parsed = command
        .try_get_matches_from(arguments)
        .and_then(|matches| bd::Bd::from_arg_matches(&matches));
    match parsed {
        Ok(parsed) => {
            let environment = Environment::from_process();
            let printer =
                Printer::new(parsed.global.json(), parsed.global.common.quiet, &environment);
            finish(&printer, bd::run(parsed, &printer, environment))
        }
        Err(error) => usage(&error, arguments, 1),
    }
}

fn finish(printer: &Printer, result: Result<(), CliError>) -> ExitCode {
    // A command whose output is lost counts as failed, because its caller sees no result.
    match result.and_then(|()| printer.flush()) {
        // A reader that closes the pipe early, like `head`, is no failure.
        Ok(()) | Err(CliError::ClosedPipe) => ExitCode::SUCCESS,
        Err(CliError::Said(code)) => match printer.flush() {
            Ok(()) | Err(CliError::ClosedPipe) => ExitCode::from(code),
            Err(error) => {
                printer.failure(&error);
                ExitCode::FAILURE
            }
        },
        Err(error) => {
            printer.failure(&error);
            ExitCode::FAILURE
        }
    }
}

/// Shows help, or what is wrong with the arguments.
fn usage(error: &clap::Error, arguments: &[OsString], code: u8) -> ExitCode {
    if !error.use_stderr() {
        // Help and version go to standard output; a closed output is no failure.
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    let json = arguments.iter().any(|argument| argument == "--json");
    output::usage_error(error, json);
    ExitCode::from(code)
}

/// The whole command line of `gt`, for completions and the reference.
pub(crate) fn gt_command() -> clap::Command {
    gt_command_alone().subcommand(bd_command())
}

/// The command line of `gt` without that of `bd`.
pub(crate) fn gt_command_alone() -> clap::Command {
    gt::Gt::command()
}

/// The whole command line of `bd`.
pub(crate) fn bd_command() -> clap::Command {
    bd::Bd::command()
}
