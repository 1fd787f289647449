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
mod completion_values;
mod context;
mod doctor;
mod error;
mod gt;
mod help;
pub mod input_parsers;
mod manual;
mod output;
pub mod reference;
mod served;
mod values;

use std::ffi::OsString;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser};
use gt_beads::hooks;
use gt_core::decide::{admit_home_call, is_repeatable_home_call};
use gt_daemon::{background_helper, export_helper, notice_helper, retention};
use gt_execution::runs;
use gt_town::{Environment, Town};
use gt_workqueue::work;

use crate::error::CliError;
use crate::output::Printer;

/// Runs `bd` or `gt`, by the name of the program.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
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
    if let Some(code) = run_town_helper(arguments.get(1..).unwrap_or_default()) {
        return code;
    }
    let called = arguments.first().map(std::path::PathBuf::from);
    let name = called.as_deref().and_then(Path::file_stem).unwrap_or_default();
    if name == "git" {
        return ExitCode::from(runs::call_worker_git(&arguments));
    }
    let program = if name == "bd" { "bd" } else { "gt" };
    if let Some(code) = completion_values::answer(program, &arguments) {
        return code;
    }
    if let Some(code) = done_for_worker(program, &arguments) {
        return code;
    }
    let environment = Environment::from_process();
    if name == "bd" {
        return run_bd("bd", &arguments, environment).into();
    }
    run_command(&arguments, environment).into()
}

/// Runs `gt` with these arguments, the program's name included, and gives its exit status.
fn run_command(arguments: &[OsString], environment: Environment) -> u8 {
    // The command line of bd is its own, and has its own usage errors.
    if let Some(place) = place_of_verb(arguments, 1).filter(|place| arguments[*place] == "bd") {
        let mut arguments = arguments.to_vec();
        arguments.remove(place);
        return run_bd("gt bd", &arguments, environment);
    }
    run_gt(arguments, environment)
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

/// Runs the helper that the first argument names, for the town that is the second one; nothing if it names none. Its output and
/// its exit code are not read: notices and old records that are left are tried again, and bd sync says what is wrong with a file.
fn run_town_helper(arguments: &[OsString]) -> Option<ExitCode> {
    let (name, root) = arguments.split_first()?;
    let work: fn(Town) -> gt_town::Result<()> = match name.to_str()? {
        notice_helper::HELPER => |town| notice_helper::run(&town),
        export_helper::HELPER => |town| export_helper::run(&town),
        retention::HELPER => retention::run,
        _ => return None,
    };
    let [root] = root else { return Some(ExitCode::from(2)) };
    let town = background_helper::open_town(Path::new(root), &Environment::from_process());
    Some(if town.and_then(work).is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Commands of `gt` that a worker's own process carries out: they need no store.
const LOCAL_COMMANDS: [&str; 4] = ["worker", "scripted", "completions", "man"];

/// The same of `bd`: they change files around the worker. A git hook of the original has nothing to ask in the store either, and
/// must not fail because that does not answer.
const LOCAL_BD_COMMANDS: [&str; 4] = ["merge-driver", "setup", "hooks", "hook"];

/// Has the command of a worker carried out by the process that has the store; nothing if it is to run here.
fn done_for_worker(program: &str, arguments: &[OsString]) -> Option<ExitCode> {
    let (is_bd, place) = match place_of_verb(arguments, 1) {
        Some(place) if program != "bd" && arguments[place] == "bd" => {
            (true, place_of_verb(arguments, place + 1))
        }
        place => (program == "bd", place),
    };
    let word_at = |place: usize| arguments.get(place).and_then(|word| word.to_str());
    let (verb, below) = (place.and_then(word_at), place.and_then(|place| word_at(place + 1)));
    let is_local = match verb {
        Some(verb) if is_bd => LOCAL_BD_COMMANDS.contains(&verb),
        Some("worker") => below != Some("fence"),
        Some(verb) => LOCAL_COMMANDS.contains(&verb),
        None => false,
    };
    if is_local {
        return None;
    }
    let is_repeatable = verb.is_some_and(|verb| is_repeatable_home_call(is_bd, verb, below));
    let environment = Environment::from_process();
    let directory = std::env::current_dir().ok();
    let arguments = arguments.get(1..).unwrap_or_default();
    let on_wait = &mut || {
        output::tell("waiting for the daemon, or the supervisor of this run, to answer…");
    };
    let directory = directory.as_deref();
    let called =
        runs::call_from_worker(&environment, program, arguments, directory, is_repeatable, on_wait);
    match called? {
        Ok(status) => Some(ExitCode::from(status)),
        Err(error) => {
            let json = arguments.iter().any(|argument| argument == "--json");
            Printer::new(json, false, &environment).failure(&CliError::request(error.to_string()));
            Some(ExitCode::FAILURE)
        }
    }
}

/// Where the command of `gt` or `bd` stands: behind the flags from `first` on that both take.
fn place_of_verb(arguments: &[OsString], first: usize) -> Option<usize> {
    let mut place = first;
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

/// Runs a command line for a view, and keeps its output.
///
/// The words begin with `gt` or `bd`. Nothing is asked: such a command has all its arguments.
pub(crate) fn run_captured(words: &[String], environment: &Environment, width: u16) -> CapturedRun {
    let printer = Printer::capturing(width);
    let is_bd = words.first().is_some_and(|word| word == "bd");
    let result = if is_bd {
        bd::Bd::try_parse_from(words).map(|parsed| bd::run(parsed, &printer, environment.clone()))
    } else {
        gt::Gt::try_parse_from(words).map(|parsed| gt::run(parsed, &printer, environment.clone()))
    };
    let is_done = match result {
        Ok(Ok(())) => true,
        Ok(Err(error)) => {
            if !matches!(error, CliError::Said(_)) {
                printer.failure(&error);
            }
            false
        }
        Err(error) => {
            let (message, _) = output::usage_message(&error);
            printer.failure(&CliError::request(message));
            false
        }
    };
    CapturedRun { is_done, output: printer.captured() }
}

/// The end of a command that was run for a view.
#[derive(Debug)]
pub(crate) struct CapturedRun {
    /// Whether it did its work.
    pub(crate) is_done: bool,
    /// Everything that it printed.
    pub(crate) output: Vec<u8>,
}

/// Runs `gt` with these arguments, the program's name included.
fn run_gt(arguments: &[OsString], environment: Environment) -> u8 {
    let matches = gt_command().try_get_matches_from(arguments);
    // Behind flags that `place_of_verb` does not know.
    if matches.as_ref().is_ok_and(|matches| matches.subcommand_name() == Some("bd"))
        && let Some(place) = arguments.iter().position(|argument| argument == "bd")
    {
        let mut arguments = arguments.to_vec();
        arguments.remove(place);
        return run_bd("gt bd", &arguments, environment);
    }
    if let Some(status) = refused_to_worker(false, &matches, arguments, &environment) {
        return status;
    }
    match matches.and_then(|matches| gt::Gt::from_arg_matches(&matches)) {
        Ok(parsed) => {
            let printer = Printer::new(parsed.common.json, parsed.common.quiet, &environment);
            finish(&printer, gt::run(parsed, &printer, environment))
        }
        Err(error) => usage(&error, arguments, 2),
    }
}

/// Runs `bd` with these arguments, the program's name included.
fn run_bd(name: &str, arguments: &[OsString], environment: Environment) -> u8 {
    let command = bd_command().bin_name(name);
    let arguments = &bd::without_boolean_values(&command, arguments, true);
    let matches = command.try_get_matches_from(arguments);
    if let Some(status) = refused_to_worker(true, &matches, arguments, &environment) {
        return status;
    }
    match matches.and_then(|matches| bd::Bd::from_arg_matches(&matches)) {
        Ok(parsed) => {
            let printer =
                Printer::new(parsed.global.json(), parsed.global.common.quiet, &environment);
            finish(&printer, bd::run(parsed, &printer, environment))
        }
        Err(error) => usage(&error, arguments, 1),
    }
}

/// The exit status where this process was asked for the command by a worker, and it is not for workers.
fn refused_to_worker(
    is_bd: bool,
    matches: &Result<ArgMatches, clap::Error>,
    arguments: &[OsString],
    environment: &Environment,
) -> Option<u8> {
    let (verb, below) = matches.as_ref().ok()?.subcommand()?;
    served::current()?;
    if is_repeatable_home_call(is_bd, verb, below.subcommand_name()) {
        served::allow_repeat();
    }
    let refused = admit_home_call(is_bd, verb, below.subcommand_name()).err()?;
    let json = arguments.iter().any(|argument| argument == "--json");
    Printer::new(json, false, environment).failure(&CliError::request(refused.to_string()));
    Some(FAILURE)
}

/// The exit status of a command that worked.
const SUCCESS: u8 = 0;
/// The exit status of a command that failed.
const FAILURE: u8 = 1;

fn finish(printer: &Printer, result: Result<(), CliError>) -> u8 {
    // A command whose output is lost counts as failed, because its caller sees no result.
    match result.and_then(|()| printer.flush()) {
        // A reader that closes the pipe early, like `head`, is no failure.
        Ok(()) | Err(CliError::ClosedPipe) => SUCCESS,
        Err(CliError::Said(code)) => match printer.flush() {
            Ok(()) | Err(CliError::ClosedPipe) => code,
            Err(error) => {
                printer.failure(&error);
                FAILURE
            }
        },
        Err(error) => {
            if let Some(error) = served::withhold(error) {
                printer.failure(&error);
            }
            FAILURE
        }
    }
}

/// Shows help, or what is wrong with the arguments.
fn usage(error: &clap::Error, arguments: &[OsString], code: u8) -> u8 {
    if !error.use_stderr() {
        // Help and version go to standard output; a closed output is no failure.
        let _ = match served::current() {
            Some(_) => served::stdout().write_all(error.render().to_string().as_bytes()),
            None => error.print(),
        };
        return SUCCESS;
    }
    let json = arguments.iter().any(|argument| argument == "--json");
    output::usage_error(error, json);
    code
}

/// The whole command line of `gt`, for completions and the reference.
pub(crate) fn gt_command() -> clap::Command {
    help::grouped_gt(gt::Gt::command().subcommand(bd_command()))
}

/// The command line of `gt` without that of `bd`.
pub(crate) fn gt_command_alone() -> clap::Command {
    gt::Gt::command()
}

/// The whole command line of `bd`.
pub(crate) fn bd_command() -> clap::Command {
    help::grouped_bd(bd::Bd::command())
}
