//! The actor of a command, and its environment.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use gt_core::schedule::RunId;
use gt_core::work::{RunToken, TokenHash};
use gt_executors::calls::{SOCKETS, TOKEN_FILE};
use gt_executors::git;
use gt_store::Proof;

use crate::{OperationError, Result};

/// The variables of the process's environment that mean something to us, read once.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    values: HashMap<&'static str, String>,
}

/// The variable with the token that proves to be the worker of `GT_RUN`.
pub const RUN_TOKEN: &str = "GT_RUN_TOKEN";

/// The variable with the check that a process belongs to.
pub const CHECK: &str = "GT_CHECK";

/// The variable that says that a program of the rig is around a worker.
pub const WRAPPED: &str = "GT_WRAPPED";

/// The run of a process that belongs to a check: none that there can be. The hooks of git take a caller without a run for a
/// person.
pub const RUN_OF_CHECK: &str = "gt-check#1";

/// The environment of a process that belongs to no worker, although a worker's command started it.
pub const NOT_A_WORKER: [(&str, &str); 4] =
    [("GT_RUN", ""), (RUN_TOKEN, ""), (SOCKETS, ""), (TOKEN_FILE, "")];

/// The variables of a worker that its commands obey, also if another process carries them out.
const OF_CALLER: [&str; 12] = [
    "GT_ROLE",
    "GT_WORK_TOKEN",
    "GT_WORK_URL",
    "GT_WRAPPED",
    "BEADS_ACTOR",
    "BD_ACTOR",
    "BD_AGENT_MODE",
    "BD_JSON_ENVELOPE",
    "BD_NO_HOOKS",
    "CLAUDE_CODE",
    "CLAUDE_SESSION_ID",
    "GIT_AUTHOR_EMAIL",
];

/// The variables of a process that carries out commands of workers which these commands obey.
const OF_SERVER: [&str; 9] = [
    "PATH",
    "HOME",
    "LOGNAME",
    "USER",
    "XDG_CONFIG_HOME",
    "XDG_STATE_HOME",
    "GIT_CONFIG_GLOBAL",
    "GT_HOST_ID",
    "GT_MACHINE",
];

/// Every variable we look at.
const VARIABLES: [&str; 46] = [
    "PATH",
    "PORT",
    "DATABASE_URL",
    "PGPASSWORD",
    "GT_TOWN_ROOT",
    "GT_ROOT",
    "GT_RUN",
    "GT_RUN_TOKEN",
    "GT_CHECK",
    "GT_HOST_ID",
    SOCKETS,
    TOKEN_FILE,
    "GT_ROLE",
    "GT_SCRIPT",
    "GT_DAEMON",
    "GT_INSECURE",
    "GT_MACHINE",
    "GT_NOTICE_KEY",
    "GT_WRAPPED",
    "GT_WORK_URL",
    "GT_WORK_TOKEN",
    "NOTIFY_SOCKET",
    "WATCHDOG_PID",
    "WATCHDOG_USEC",
    "BEADS_DIR",
    "BEADS_DB",
    "BEADS_ACTOR",
    "BD_ACTOR",
    "BD_AGENT_MODE",
    "BD_JSON_ENVELOPE",
    "BD_NO_HOOKS",
    "CLAUDE_CODE",
    "CLAUDE_SESSION_ID",
    "GIT_AUTHOR_EMAIL",
    "GIT_CONFIG_GLOBAL",
    "XDG_CONFIG_HOME",
    "XDG_STATE_HOME",
    "HOME",
    "LOGNAME",
    "USER",
    "VISUAL",
    "EDITOR",
    "PAGER",
    "BROWSER",
    "DISPLAY",
    "WAYLAND_DISPLAY",
];

impl Environment {
    /// Reads the process's environment. Empty variables count as unset.
    #[expect(clippy::disallowed_methods, reason = "this is the door that the rule points to")]
    pub fn from_process() -> Self {
        let read = |name: &'static str| {
            let value = std::env::var(name).ok().filter(|value| !value.is_empty())?;
            Some((name, value))
        };
        Self { values: VARIABLES.into_iter().filter_map(read).collect() }
    }

    /// The value of a variable that is set.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str)
    }

    /// The same, but with this database.
    #[must_use]
    pub fn with_database(mut self, url: &str) -> Self {
        self.values.insert("DATABASE_URL", url.to_owned());
        self
    }

    /// The same, but with this home directory.
    #[cfg(test)]
    pub(crate) fn with_home(mut self, home: &Path) -> Self {
        self.values.insert("HOME", home.display().to_string());
        self
    }

    /// The variables that a command obeys which another process carries out.
    pub fn of_caller(&self) -> Vec<(String, String)> {
        let values = OF_CALLER.iter().filter_map(|name| Some((*name, self.get(name)?)));
        values.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    /// The environment of a command that this process carries out for the worker of a run of the town at `root`, with the
    /// variables of that worker. Variables that its commands do not obey are left out.
    #[must_use]
    pub fn for_call(
        &self,
        root: &Path,
        run: &RunId,
        token: &RunToken,
        variables: &[(String, String)],
    ) -> Self {
        let own = OF_SERVER.iter().filter_map(|name| Some((*name, self.get(name)?.to_owned())));
        let theirs = OF_CALLER.iter().filter_map(|name| {
            let (_, value) = variables.iter().rev().find(|(known, _)| known == name)?;
            (!value.is_empty()).then(|| (*name, value.clone()))
        });
        let identity = [
            ("GT_TOWN_ROOT", root.display().to_string()),
            ("GT_RUN", run.to_string()),
            (RUN_TOKEN, token.reveal()),
        ];
        Self { values: own.chain(theirs).chain(identity).collect() }
    }

    /// The sockets at which the commands of this worker are carried out; none if this is no worker.
    pub fn sockets(&self) -> Vec<PathBuf> {
        let sockets = self.get(SOCKETS).unwrap_or_default();
        sockets.split(':').filter(|path| !path.is_empty()).map(PathBuf::from).collect()
    }

    /// A variable that names a file or directory.
    pub fn path(&self, name: &str) -> Option<PathBuf> {
        self.get(name).map(PathBuf::from)
    }

    /// Where programs keep what they know about this user between calls; nothing if no variable says it.
    pub fn state_directory(&self) -> Option<PathBuf> {
        let home = || Some(self.path("HOME")?.join(".local").join("state"));
        Some(self.path("XDG_STATE_HOME").or_else(home)?.join("gt"))
    }

    /// The run whose worker this is, or was started by. The name is also used by others, with other values; and the
    /// command that a notice is sent to is told about a run, and is not its worker.
    pub fn acting_run(&self) -> Option<RunId> {
        let has_token = self.get(RUN_TOKEN).is_some() || self.get(TOKEN_FILE).is_some();
        let is_told = self.get("GT_NOTICE_KEY").is_some() && !has_token;
        let run = self.get("GT_RUN").filter(|_| !is_told);
        run.and_then(|run| RunId::parse(run).ok())
    }

    /// Whether a program of the rig is around this worker: a sandbox from which an origin need not be in reach.
    pub fn is_wrapped(&self) -> bool {
        self.get(WRAPPED).is_some()
    }

    /// Whether this is, or may be, a worker: it has the name of a run, or a token.
    pub fn may_be_worker(&self) -> bool {
        self.acting_run().is_some() || self.get(RUN_TOKEN).is_some() || self.get(SOCKETS).is_some()
    }

    /// The proof of being the worker of that run.
    pub(crate) fn proof(&self) -> Proof {
        match self.get(RUN_TOKEN) {
            None => Proof::Missing,
            // A value that is no token is the token of no run.
            Some(text) => Proof::Token(match RunToken::parse(text) {
                Some(token) => token.hash(),
                None => TokenHash::from_bytes([0; 32]),
            }),
        }
    }

    /// The polecat that runs this program, as `<rig>/polecats/<name>`, if one does.
    pub fn polecat(&self) -> Option<&str> {
        self.get("GT_ROLE").filter(|role| {
            let mut parts = role.split('/');
            parts.next().is_some() && parts.next() == Some("polecats") && parts.next().is_some()
        })
    }

    /// The person's editor, if one is named.
    pub fn editor(&self) -> Option<&str> {
        let named = |name| self.get(name).filter(|editor| !editor.trim().is_empty());
        named("VISUAL").or_else(|| named("EDITOR"))
    }

    /// The program that shows long texts to a person, if one is named.
    pub fn pager(&self) -> Option<&str> {
        self.get("PAGER").filter(|pager| !pager.trim().is_empty())
    }
}

/// The actor of a command, and its owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actor {
    /// The name that events and claims carry.
    pub name: String,
    /// The e-mail address of the person behind it; empty if unknown.
    pub owner: String,
}

impl Actor {
    /// The name of an actor that has none.
    pub const UNKNOWN: &str = "unknown";

    /// Finds out: what was asked for, else `BEADS_ACTOR`, `BD_ACTOR`, git's `user.name`, `$USER`.
    pub fn find(asked: Option<&str>, environment: &Environment, directory: &Path) -> Self {
        let named = asked
            .or_else(|| environment.get("BEADS_ACTOR"))
            .or_else(|| environment.get("BD_ACTOR"))
            .map(str::to_owned);
        let known_owner = environment.get("GIT_AUTHOR_EMAIL").map(str::to_owned);
        let from_git = if named.is_some() && known_owner.is_some() {
            git::GitIdentity::default()
        } else {
            let variables = git::Variables {
                config_global: environment.path("GIT_CONFIG_GLOBAL"),
                xdg_config_home: environment.path("XDG_CONFIG_HOME"),
            };
            git::identity(directory, environment.path("HOME").as_deref(), &variables)
        };
        let name = named
            .or(from_git.name)
            .or_else(|| environment.get("USER").map(str::to_owned))
            .or_else(|| environment.get("LOGNAME").map(str::to_owned))
            .unwrap_or_else(|| Self::UNKNOWN.to_owned());
        Self { name, owner: known_owner.or(from_git.email).unwrap_or_default() }
    }
}

/// Refuses a host identity from the environment that is not one.
pub(crate) fn check_host_id(given: &str) -> Result<()> {
    let is_one = !given.is_empty()
        && given.len() <= 64
        && given.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.'));
    if is_one {
        return Ok(());
    }
    Err(OperationError::rejected(
        "GT_HOST_ID is not an identity; use up to 64 letters, digits, dots and dashes, different on every host",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_valid_run_name_makes_a_process_its_worker() {
        let acting = |value: &str| {
            let values = HashMap::from([("GT_RUN", value.to_owned())]);
            Environment { values }.acting_run().map(|run| run.to_string())
        };
        assert_eq!(acting("gt-a#3").as_deref(), Some("gt-a#3"));
        for other in ["gt-a", "1", "0b0e3a38-4f1f-4f6e-8f3a-3d2f6a1c9e55"] {
            assert_eq!(acting(other), None);
        }
        assert_eq!(Environment::default().acting_run(), None);
    }
}
