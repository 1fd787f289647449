//! The variables of our caller's environment that the programs we start must not get.
//!
//! Git tells its aliases and hooks by variables in which repository they were called, and people set others for one
//! command. A supervisor, a session, an agent and our own git work in another repository, and long after that command.

use std::ffi::OsStr;
use std::process::Command;

use crate::calls::{SOCKETS, TOKEN_FILE};
use crate::git::fence::{NO_PROTOCOL, PROTOCOLS};
use crate::process::SERVED_BY;

/// Variables that concern our caller alone.
const CALLER_VARIABLES: [&str; 48] = [
    // Where the caller is and was. Some agents trust `PWD` more than the directory that they start in, and would work
    // there: `process::command_in` sets it.
    "PWD",
    "OLDPWD",
    // Which repository, and which parts of it; all that `git rev-parse --local-env-vars` prints.
    "GIT_DIR",
    "GIT_COMMON_DIR",
    "GIT_WORK_TREE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_QUARANTINE_PATH",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
    "GIT_INTERNAL_SUPER_PREFIX",
    "GIT_SHALLOW_FILE",
    "GIT_GRAFT_FILE",
    "GIT_REPLACE_REF_BASE",
    "GIT_NO_REPLACE_OBJECTS",
    "GIT_ATTR_SOURCE",
    "GIT_CEILING_DIRECTORIES",
    "GIT_DEFAULT_HASH",
    "GIT_DEFAULT_REF_FORMAT",
    // Settings of one command. They would go before those of the repository.
    "GIT_CONFIG",
    "GIT_CONFIG_PARAMETERS",
    "GIT_CONFIG_COUNT",
    "GIT_LITERAL_PATHSPECS",
    "GIT_GLOB_PATHSPECS",
    "GIT_NOGLOB_PATHSPECS",
    "GIT_ICASE_PATHSPECS",
    "GIT_AUTHOR_DATE",
    "GIT_COMMITTER_DATE",
    "GIT_REFLOG_ACTION",
    // Which programs it calls. `GIT_SSH` and the like would override `core.sshCommand`, and so the
    // time limits that we give ssh.
    "GIT_EXEC_PATH",
    "GIT_EDITOR",
    "GIT_SEQUENCE_EDITOR",
    "GIT_EXTERNAL_DIFF",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_SSH_VARIANT",
    "GIT_PROXY_COMMAND",
    // The socket on which a service reports that it is alive. A program that it starts must not
    // report instead.
    "NOTIFY_SOCKET",
    "WATCHDOG_PID",
    "WATCHDOG_USEC",
    // A command that is started by hand is not the daemon, even in a shell that the daemon started.
    "GT_DAEMON",
    // A program that a worker's command starts (a supervisor, a hook, a daemon) is not that worker.
    "GT_RUN",
    "GT_RUN_TOKEN",
    SOCKETS,
    TOKEN_FILE,
    // A program that one of these starts is of another process.
    SERVED_BY,
];

/// The prefixes of further variables that concern our caller alone: those that belong to a
/// `…_COUNT`, and those for a program that tells people about a run and is not its worker.
const CALLER_VARIABLE_PREFIXES: [&str; 4] =
    ["GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_", "GIT_PUSH_OPTION_", "GT_NOTICE_"];

/// Whether a variable concerns our caller alone.
pub(crate) fn is_caller_variable(name: &OsStr, value: &OsStr) -> bool {
    // Where the caller is a worker, its fence is its own. A list of protocols that a person has set stays.
    let is_fence = name == PROTOCOLS && value == NO_PROTOCOL;
    is_fence
        || name.to_str().is_some_and(|name| {
            CALLER_VARIABLES.contains(&name)
                || CALLER_VARIABLE_PREFIXES.iter().any(|start| name.starts_with(start))
        })
}

/// Removes from a program's environment the variables that concern our caller alone. Variables set
/// later stay.
pub(crate) fn remove_caller_variables(command: &mut Command) {
    for (name, value) in std::env::vars_os() {
        if is_caller_variable(&name, &value) {
            command.env_remove(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::{capture, command};

    #[test]
    fn everything_that_git_calls_local_to_a_repository_is_forgotten() {
        let mut git = command("git");
        git.args(["rev-parse", "--local-env-vars"]);
        let printed = String::from_utf8(capture(git).unwrap().stdout).unwrap();
        assert!(printed.contains("GIT_DIR"));
        for name in printed.lines() {
            assert!(is_caller_variable(OsStr::new(name), OsStr::new("")), "{name}");
        }
    }

    #[test]
    fn numbered_settings_are_forgotten_and_those_of_a_person_are_kept() {
        for name in
            ["GIT_CONFIG_KEY_0", "GIT_CONFIG_VALUE_12", "GIT_PUSH_OPTION_COUNT", "GT_NOTICE_KEY"]
        {
            assert!(is_caller_variable(OsStr::new(name), OsStr::new("")), "{name}");
        }
        for name in ["GIT_CONFIG_GLOBAL", "GIT_ASKPASS", "GIT_AUTHOR_NAME", "PATH"] {
            assert!(!is_caller_variable(OsStr::new(name), OsStr::new("")), "{name}");
        }
    }
}
