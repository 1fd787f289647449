//! The password of a store on a server, outside of every town and every worktree.
//!
//! A worker works inside of a town, and prints and commits the files that it finds. So `town.toml` has the address of the store
//! without its password. That is in a directory of the user, in a file that only the user can read.

use std::fs;
use std::path::PathBuf;

use gt_executors::private;
use gt_store::PostgresAddress;

use crate::{Environment, OperationError, Result};

/// Longest name of a file of credentials.
const NAME_BYTES_MAX: usize = 200;

/// Where the password for this address is kept; nothing if no variable says where the user keeps settings.
fn path(environment: &Environment, address: &str) -> Option<PathBuf> {
    let home = || Some(environment.path("HOME")?.join(".config"));
    let settings = environment.path("XDG_CONFIG_HOME").or_else(home)?;
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' };
    let name: String = address.chars().map(plain).take(NAME_BYTES_MAX).collect();
    Some(settings.join("gt").join("credentials").join(name))
}

/// The file that a password of this URL would be kept in, if that is not there yet: what a town that comes to nothing leaves.
pub(super) fn new_file(environment: &Environment, url: &str) -> Option<PathBuf> {
    let (address, Some(_)) = PostgresAddress::split_password(url) else { return None };
    path(environment, &address).filter(|path| !path.exists())
}

/// Keeps the password of a URL, and gives the URL without it. The URL stays as it is if it has none, or if there is no place
/// for it.
pub(super) fn keep(environment: &Environment, url: String) -> Result<String> {
    let (address, Some(_)) = PostgresAddress::split_password(&url) else { return Ok(url) };
    let Some(path) = path(environment, &address) else { return Ok(url) };
    let directory = path.parent().unwrap_or(&path);
    let kept = private::create_dir_all(directory)
        .and_then(|()| private::replace(&path, format!("{url}\n")));
    kept.map_err(|source| OperationError::File { action: "write", path, source })?;
    Ok(address)
}

/// The password that was kept for the address of a store.
pub(super) fn password_of(environment: &Environment, address: &str) -> Option<String> {
    let text = fs::read_to_string(path(environment, address)?).ok()?;
    let (kept, password) = PostgresAddress::split_password(text.trim());
    // Long or similar addresses may share a name.
    password.filter(|_| kept == address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_kept_apart_in_a_private_file_and_found_by_its_address() {
        let home = tempfile::tempdir().unwrap();
        let environment = Environment::default().with_home(home.path());
        let url = "postgres://me:s%2Fecret@db/town?schema=x";
        let address = keep(&environment, url.to_owned()).unwrap();
        assert_eq!(address, "postgres://me@db/town?schema=x");
        assert_eq!(password_of(&environment, &address).as_deref(), Some("s/ecret"));
        // Another address whose name is the same.
        assert_eq!(password_of(&environment, "postgres://me@db/town?schema-x"), None);
        let file = path(&environment, &address).unwrap();
        assert!(!private::is_open_to_others(&file).unwrap());
        assert!(!private::is_open_to_others(file.parent().unwrap()).unwrap());

        let plain = "postgres://me@db/other";
        assert_eq!(keep(&environment, plain.to_owned()).unwrap(), plain);
        assert_eq!(password_of(&environment, plain), None);
        assert_eq!(keep(&Environment::default(), url.to_owned()).unwrap(), url);
    }
}
