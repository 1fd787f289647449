//! The environment of a git that reads from other repositories for a worker.
//!
//! Variables choose programs in more ways than a list can name: the editor of a rebase, a library, a filter of the pager. So
//! this git has the environment of the run's supervisor, and of the worker's own only the variables that are named here.

use std::ffi::{OsStr, OsString};
use std::process::Command;

use gt_core::secret_mask::is_credential_name;

use super::environment::WITHHELD;

/// Where git is on most machines.
pub(super) const USUAL_PATH: &str = "/usr/local/bin:/usr/bin:/bin:/opt/homebrew/bin";

/// The variables of a worker that say where and how git works, and name no program. Its settings are among them: they are
/// looked at one by one.
const OF_WORKER: [&str; 44] = [
    "PWD",
    "TMPDIR",
    "GIT_DIR",
    "GIT_COMMON_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
    "GIT_CEILING_DIRECTORIES",
    "GIT_DISCOVERY_ACROSS_FILESYSTEM",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_PARAMETERS",
    "GIT_LITERAL_PATHSPECS",
    "GIT_GLOB_PATHSPECS",
    "GIT_NOGLOB_PATHSPECS",
    "GIT_ICASE_PATHSPECS",
    "GIT_NO_REPLACE_OBJECTS",
    "GIT_NO_LAZY_FETCH",
    "GIT_OPTIONAL_LOCKS",
    "GIT_MERGE_AUTOEDIT",
    "GIT_REFLOG_ACTION",
    "GIT_TERMINAL_PROMPT",
    "GIT_LFS_SKIP_SMUDGE",
    "GIT_AUTHOR_NAME",
    "GIT_AUTHOR_EMAIL",
    "GIT_AUTHOR_DATE",
    "GIT_COMMITTER_NAME",
    "GIT_COMMITTER_EMAIL",
    "GIT_COMMITTER_DATE",
    "BD_ACTOR",
    "BEADS_ACTOR",
    "LANG",
    "LANGUAGE",
    "TERM",
    "COLUMNS",
    "TZ",
    "http_proxy",
    "https_proxy",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "no_proxy",
    "NO_PROXY",
];

/// The same, by how their names begin.
const OF_WORKER_PREFIXES: [&str; 4] = ["GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_", "GT_", "LC_"];

/// Whether a worker's variable goes before that of the supervisor.
fn is_of_worker(name: &OsStr) -> bool {
    // It names a script.
    let is_script = name == "GT_BASH_ENV";
    let named = |name: &str| {
        OF_WORKER.contains(&name) || OF_WORKER_PREFIXES.iter().any(|start| name.starts_with(start))
    };
    !is_script && name.to_str().is_some_and(named)
}

/// Variables that say which servers are trusted.
const TRUST: [&str; 6] = [
    "GIT_SSL_CAINFO",
    "GIT_SSL_CAPATH",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "CURL_CA_BUNDLE",
    "NIX_SSL_CERT_FILE",
];

/// Whether a worker's variable counts where the supervisor has none of that name: a credential, and not a program that asks
/// for one, or a certificate.
fn is_fallback(name: &OsStr) -> bool {
    let is_credential = |name: &str| {
        !name.ends_with("ASKPASS") && (WITHHELD.contains(&name) || is_credential_name(name))
    };
    name.to_str().is_some_and(|name| TRUST.contains(&name) || is_credential(name))
}

/// Gives `git` the environment `saved` of the supervisor, with the named variables of this process. Where nothing was saved
/// any more, it has the usual programs and no settings of the person.
pub(super) fn take_environment(git: &mut Command, saved: Vec<(OsString, OsString)>) {
    let of_process =
        |wanted: fn(&OsStr) -> bool| std::env::vars_os().filter(move |(name, _)| wanted(name));
    git.env_clear();
    git.env("PATH", USUAL_PATH);
    git.envs(of_process(is_fallback)).envs(saved).envs(of_process(is_of_worker));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_a_worker_that_choose_programs_do_not_stay() {
        for name in [
            "PATH",
            "HOME",
            "XDG_CONFIG_HOME",
            "GIT_EXEC_PATH",
            "GIT_SSH_COMMAND",
            "GIT_SEQUENCE_EDITOR",
            "GIT_ASKPASS",
            "SSH_ASKPASS",
            "GIT_PAGER",
            "LESSOPEN",
            "LD_PRELOAD",
            "LD_LIBRARY_PATH",
            "DYLD_INSERT_LIBRARIES",
            "BASH_ENV",
            "GT_BASH_ENV",
            "BASH_FUNC_git%%",
            "GIT_CONFIG_GLOBAL",
            "GIT_TRACE_REDACT",
            "GNUPGHOME",
        ] {
            assert!(!is_of_worker(OsStr::new(name)), "{name}");
            assert!(!is_fallback(OsStr::new(name)), "{name}");
        }
        for name in ["GIT_DIR", "GIT_CONFIG_KEY_3", "GIT_AUTHOR_NAME", "GT_SOCKET", "LC_ALL"] {
            assert!(is_of_worker(OsStr::new(name)), "{name}");
        }
        for name in ["GH_TOKEN", "SSH_AUTH_SOCK", "MY_PASSWORD", "SSL_CERT_FILE"] {
            assert!(is_fallback(OsStr::new(name)), "{name}");
            assert!(!is_of_worker(OsStr::new(name)), "{name}");
        }
    }
}
