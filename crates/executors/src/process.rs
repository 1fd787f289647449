//! The one door through which programs are started.

use std::cell::Cell;
use std::ffi::OsStr;
use std::io;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;

use rustix::fs::{Access, access};
use rustix::process::{Signal, getpid, kill_process};

use crate::environment::remove_caller_variables;
use crate::git::fence::environment_in_use;

/// Why a program did not do its work.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// It could not be started.
    #[error("cannot start {program}")]
    Start {
        /// The program.
        program: String,
        /// The error of the system.
        source: io::Error,
    },
    /// It ended badly.
    #[error("{program} failed: {message}")]
    Failed {
        /// The program.
        program: String,
        /// The last line it had to say.
        message: String,
    },
}

/// A program that is about to be started, without the variables that concern our caller alone.
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = command_with_everything(program);
    remove_caller_variables(&mut command);
    mark_served(&mut command);
    command
}

/// The variable of programs that a process starts while it carries out a command of a worker, and the value of this process.
pub(crate) const SERVED_BY: &str = "GT_SERVED_BY";
pub(crate) static SERVED_BY_US: LazyLock<String> = LazyLock::new(|| {
    let ourselves = std::process::id();
    let started = crate::runs::start_of(ourselves).unwrap_or_default();
    format!("{ourselves}-{started}")
});

thread_local! {
    static IS_SERVING: Cell<bool> = const { Cell::new(false) };
}

/// Carries out a command of a worker: the programs that this thread starts meanwhile are known as those of this process.
pub(crate) fn while_serving<T>(work: impl FnOnce() -> T) -> T {
    let before = IS_SERVING.replace(true);
    let done = work();
    IS_SERVING.set(before);
    done
}

/// Marks a program whose environment was replaced, if this thread carries out a command of a worker.
pub(crate) fn mark_served(command: &mut Command) {
    if IS_SERVING.get() {
        command.env(SERVED_BY, &*SERVED_BY_US);
    }
}

/// The same in a directory of its own. The only place that sets the directory of a program, so that `PWD` always agrees
/// with it.
pub(crate) fn command_in(program: impl AsRef<OsStr>, directory: &Path) -> Command {
    let mut command = command(program);
    start_in(&mut command, directory);
    command
}

/// The same with the environment that our git has: where a worker calls us, that of its supervisor, which the worker cannot
/// change.
pub(crate) fn command_in_as_git(program: impl AsRef<OsStr>, directory: &Path) -> Command {
    let mut command = command(program);
    if let Some(environment) = environment_in_use() {
        command.env_clear().envs(environment.iter().map(|(name, value)| (name, value)));
        mark_served(&mut command);
    }
    start_in(&mut command, directory);
    command
}

/// Lets a program start in this directory, with a `PWD` that says so.
#[expect(clippy::disallowed_methods, reason = "this is the function that the rule points to")]
fn start_in(command: &mut Command, directory: &Path) {
    let absolute = std::path::absolute(directory);
    command.current_dir(directory).env_remove("OLDPWD");
    match absolute {
        Ok(absolute) => command.env("PWD", absolute),
        Err(_) => command.env_remove("PWD"),
    };
}

/// A program that takes our place, or is ours in everything: it has the whole of our environment.
#[expect(clippy::disallowed_methods, reason = "this is the door that the rule points to")]
pub(crate) fn command_with_everything(program: impl AsRef<OsStr>) -> Command {
    Command::new(program)
}

/// Runs a program to its end and gives its output. Its standard input is empty.
pub(crate) fn capture(mut command: Command) -> Result<Output, ProcessError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|source| ProcessError::Start { program: program.clone(), source })?;
    if output.status.success() {
        return Ok(output);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    // Programs explain at length; the line that names the cause is marked, or the last one.
    let marked = |line: &&str| line.starts_with("fatal:") || line.starts_with("error:");
    let spoken = || said.lines().map(str::trim).filter(|line| !line.is_empty());
    let telling = spoken().find(marked).or_else(|| spoken().next_back());
    let message = telling.map_or_else(|| output.status.to_string(), str::to_owned);
    Err(ProcessError::Failed { program, message })
}

/// The name of this machine.
pub fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// The operating system and the processor of this machine, as `uname -s` and `uname -m` name them.
pub fn built_for() -> (String, String) {
    let names = rustix::system::uname();
    let text = |name: &std::ffi::CStr| name.to_string_lossy().into_owned();
    (text(names.sysname()), text(names.machine()))
}

/// Whether a program of this name is on the path, and its version.
pub fn version_of(program: &str, flag: &str) -> Option<String> {
    let mut asked = command(program);
    asked.arg(flag);
    let output = capture(asked).ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().next().map(|line| line.trim().to_owned())
}

/// Whether a process was stopped by a signal, and waits to be continued. No where the kernel does not tell.
pub fn is_stopped(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The state follows the name, which may contain anything.
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with(['T', 't']))
}

/// Whether the programs that we start have this variable from us, with a value.
pub fn has_variable(name: &str) -> bool {
    std::env::var_os(name).is_some_and(|value| !value.is_empty())
}

/// The value of this variable that the programs that we start have from us, if it is text.
pub fn inherited_variable(name: &str) -> Option<String> {
    std::env::var_os(name)?.into_string().ok()
}

/// Whether a file is below the home directory of the programs that we start.
pub fn is_in_home(path: &str) -> bool {
    std::env::var_os("HOME").is_some_and(|home| Path::new(&home).join(path).exists())
}

/// Whether we are root.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Whether a program is there: on the path, or where its own path says.
pub fn is_installed(program: &str) -> bool {
    let is_program = |path: &Path| access(path, Access::EXEC_OK).is_ok() && path.is_file();
    if program.contains('/') {
        return is_program(Path::new(program));
    }
    // `PATH` as the programs that we start will have it.
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| is_program(&directory.join(program)))
}

/// Runs a program that talks to the person at the terminal.
pub(crate) fn interactive(mut command: Command, file: &Path) -> Result<(), ProcessError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let status = command
        .arg(file)
        .status()
        .map_err(|source| ProcessError::Start { program: program.clone(), source })?;
    if status.success() {
        Ok(())
    } else {
        Err(ProcessError::Failed { program, message: status.to_string() })
    }
}

/// Runs a program to its end; it prints where we print, and has nothing to read. Gives its exit status, or
/// 128 and the number of the signal that killed it.
pub fn run_along(argv: &[&str], directory: &Path) -> Result<u8, ProcessError> {
    let program = argv.first().copied().unwrap_or_default();
    let mut command = command_with_everything(program);
    start_in(&mut command, directory);
    command.args(argv.iter().skip(1)).stdin(Stdio::null());
    let status = command
        .status()
        .map_err(|source| ProcessError::Start { program: program.to_owned(), source })?;
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    Ok(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX))
}

/// Becomes another program that does not listen to `TERM`, nor does anything that it starts. Comes back only if
/// that fails.
pub fn exec_ignoring_term(program: &Path, arguments: &[&str]) -> ProcessError {
    // A signal that a shell ignores stays ignored in the program that it becomes.
    let mut command = command_with_everything("sh");
    command.args(["-c", "trap '' TERM; exec \"$@\"", "sh"]).arg(program).args(arguments);
    ProcessError::Start { program: program.display().to_string(), source: command.exec() }
}

/// Kills this process at once, without any message.
pub fn kill_this_process() {
    let _ = kill_process(getpid(), Signal::KILL);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_told_the_directory_that_it_starts_in_and_no_other() {
        let place = tempfile::tempdir().unwrap();
        let asked = command_in("env", place.path());
        let printed = String::from_utf8(capture(asked).unwrap().stdout).unwrap();
        let of = |name: &str| {
            let line = printed.lines().find_map(|line| line.strip_prefix(&format!("{name}=")));
            line.map(str::to_owned)
        };
        assert_eq!(of("PWD").as_deref(), place.path().to_str());
        assert_eq!(of("OLDPWD"), None);
        let names = |command: &Command| -> Vec<String> {
            let removed = command.get_envs().filter(|(_, value)| value.is_none());
            removed.map(|(name, _)| name.to_string_lossy().into_owned()).collect()
        };
        // Where a program stays where we are, the caller's `PWD` may be wrong: it is not passed on.
        if std::env::var_os("PWD").is_some() {
            assert!(names(&command("env")).contains(&"PWD".to_owned()));
        }
    }
}
