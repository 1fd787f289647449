//! The environment in which our git works for a worker: that of the supervisor, kept beside the run's other files.
//!
//! A worker's environment lacks the credentials of the origin, and agents change the rest of it: some hide the settings of
//! the person. Landing must not depend on either.

use std::cell::RefCell;
use std::ffi::{OsStr, OsString};
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;

use gt_core::secret_mask::is_credential_name;

use crate::environment::is_caller_variable;

/// Credentials of origins. A worker does not get them unless its runtime or account sets them.
pub const WITHHELD: [&str; 14] = [
    "SSH_AUTH_SOCK",
    "SSH_AGENT_PID",
    "SSH_ASKPASS",
    "GIT_ASKPASS",
    "GH_TOKEN",
    "GITHUB_TOKEN",
    "GH_ENTERPRISE_TOKEN",
    "GITHUB_ENTERPRISE_TOKEN",
    "GITLAB_TOKEN",
    "GITLAB_ACCESS_TOKEN",
    "GITEA_TOKEN",
    "BITBUCKET_TOKEN",
    "CI_JOB_TOKEN",
    "CI_PUSH_TOKEN",
];

/// Variables that may hold the credentials of the store. A worker never gets them from us.
pub const STORE_CREDENTIALS: [&str; 2] = ["DATABASE_URL", "PGPASSWORD"];

/// The names of those credentials of origins that this process has.
pub fn withheld_here() -> Vec<&'static str> {
    present_here(&WITHHELD)
}

/// The names of those variables that this process has.
pub fn present_here(names: &[&'static str]) -> Vec<&'static str> {
    names.iter().copied().filter(|name| std::env::var_os(name).is_some()).collect()
}

/// The names of the variables of this process, and of the environment that our git has instead, that hold credentials by their
/// names. Ours and the settings of git are left out: they are given or withheld by name.
pub fn credentials_here() -> Vec<String> {
    let saved = environment_in_use();
    let saved = saved.iter().flat_map(|saved| saved.iter().map(|(name, _)| name.clone()));
    let names = std::env::vars_os().map(|(name, _)| name).chain(saved);
    let names = names.filter_map(|name| name.into_string().ok());
    let is_known = |name: &str| name.starts_with("GT_") || name.starts_with("GIT_CONFIG_");
    let mut names: Vec<String> =
        names.filter(|name| !is_known(name) && is_credential_name(name)).collect();
    names.sort();
    names.dedup();
    names
}

/// The `BASH_ENV` of this process.
pub fn bash_env_here() -> Option<String> {
    std::env::var_os("BASH_ENV").and_then(|value| value.into_string().ok())
}

/// Keeps the environment of this process, without the variables that concern its caller alone, for
/// [`use_environment`]. Only the user can read it.
pub fn save_environment(path: &Path) -> io::Result<()> {
    let mut text = Vec::new();
    for (name, value) in std::env::vars_os() {
        let is_ours = name.as_bytes().starts_with(b"GT_");
        let is_of_store = STORE_CREDENTIALS.iter().any(|known| name == OsStr::new(known));
        if is_caller_variable(&name, &value) || is_ours || is_of_store {
            continue;
        }
        text.extend_from_slice(name.as_bytes());
        text.push(b'=');
        text.extend_from_slice(value.as_bytes());
        text.push(0);
    }
    // A file that is there may have other permissions.
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(&text)
}

/// Reads the file of [`save_environment`].
pub(crate) fn read_environment(path: &Path) -> io::Result<Vec<(OsString, OsString)>> {
    let text = fs::read(path)?;
    let entries = text.split(|byte| *byte == 0);
    let pair = |entry: &[u8]| {
        let equals = entry.iter().position(|byte| *byte == b'=')?;
        let of = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
        Some((of(&entry[..equals]), of(&entry[equals + 1..])))
    };
    Ok(entries.filter_map(pair).collect())
}

/// Variables with their values.
type SavedVariables = Arc<[(OsString, OsString)]>;

thread_local! {
    /// A process that carries out the commands of workers acts for several runs, each command on a thread of its own.
    static ENVIRONMENT: RefCell<Option<SavedVariables>> = const { RefCell::new(None) };
}

/// Lets our git have the environment that was saved there from now on, instead of that of this process, where this thread
/// starts it. Without the file it keeps that of this process.
pub fn use_environment(path: &Path) {
    if let Ok(saved) = read_environment(path) {
        ENVIRONMENT.set(Some(saved.into()));
    }
}

/// The environment that our git has instead of that of this process.
pub(crate) fn environment_in_use() -> Option<SavedVariables> {
    ENVIRONMENT.with_borrow(Clone::clone)
}

/// The path on which git is looked for.
pub fn path_in_use() -> Option<OsString> {
    match environment_in_use() {
        Some(saved) => {
            let path = saved.iter().find(|(name, _)| name == OsStr::new("PATH"));
            path.map(|(_, path)| path.clone())
        }
        None => std::env::var_os("PATH"),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn an_environment_comes_back_and_only_its_user_can_read_it() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("saved");
        fs::write(&path, "readable by all").unwrap();
        save_environment(&path).unwrap();
        let saved = read_environment(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let path = saved.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.clone());
        assert_eq!(path, std::env::var_os("PATH"));
        assert!(!saved.iter().any(|(name, _)| name == "PWD"));
    }
}
