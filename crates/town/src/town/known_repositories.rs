//! The towns that the repositories of this user belong to.
//!
//! A file in the user's state directory names them. Nothing inside a repository does: a clone must not choose a town.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use gt_executors::{git, private};

use super::enclosing_town;
use crate::{Environment, OperationError, Result};

/// Repositories and their towns, by their paths.
type KnownRepositories = BTreeMap<String, String>;

/// The town that the nearest known repository at or above `directory` belongs to, else the one of the repository whose linked
/// worktree it is in. Nothing if that town is gone.
pub fn town_of(directory: &Path, environment: &Environment) -> Option<PathBuf> {
    let known = read(&path_in(environment)?);
    let directory = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
    let town = directory.ancestors().find_map(|at| known.get(at.to_str()?)).or_else(|| {
        let repository = git::repository_of_worktree(&directory)?;
        known.get(repository.to_str()?)
    })?;
    enclosing_town(Path::new(town)).filter(|root| root == Path::new(town))
}

/// Writes down that commands in a repository mean this town. Gives the other town that they meant before, if it is there.
pub fn remember(
    environment: &Environment,
    repository: &str,
    town: &Path,
) -> Result<Option<PathBuf>> {
    let town = town.to_string_lossy().into_owned();
    let before = change(environment, |known| known.insert(repository.to_owned(), town.clone()))?;
    let before = before.flatten().filter(|before| *before != town).map(PathBuf::from);
    Ok(before.filter(|before| enclosing_town(before).is_some()))
}

/// Forgets a repository, if it belongs to this town.
pub fn forget(environment: &Environment, repository: &str, town: &Path) -> Result<()> {
    change(environment, |known| {
        known.retain(|path, kept| path != repository || Path::new(kept) != town);
    })?;
    Ok(())
}

/// Changes the file, one process at a time. Only its user can read or write it. Nothing if the user has no state directory.
fn change<T>(
    environment: &Environment,
    act: impl FnOnce(&mut KnownRepositories) -> T,
) -> Result<Option<T>> {
    let Some(path) = path_in(environment) else { return Ok(None) };
    let failed = |source| OperationError::File { action: "write", path: path.clone(), source };
    let directory = path.parent().unwrap_or(&path);
    private::create_dir_all(directory).map_err(failed)?;
    // The directory of an earlier program may be open to others.
    private::tighten(directory).map_err(failed)?;
    let mut options = private::options();
    let lock = options.write(true).create(true).truncate(false);
    let lock = lock.open(path.with_extension("lock")).map_err(failed)?;
    lock.lock().map_err(failed)?;
    let before = read(&path);
    let mut known = before.clone();
    let result = act(&mut known);
    if known != before {
        let text = toml::to_string(&known)
            .map_err(|error| failed(std::io::Error::other(error.to_string())))?;
        private::replace(&path, text).map_err(failed)?;
    }
    Ok(Some(result))
}

/// The contents of the file. One that is not there, or that cannot be read, names nothing.
fn read(path: &Path) -> KnownRepositories {
    let text = fs::read_to_string(path).unwrap_or_default();
    toml::from_str(&text).unwrap_or_default()
}

fn path_in(environment: &Environment) -> Option<PathBuf> {
    Some(environment.state_directory()?.join("repositories.toml"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn the_towns_of_repositories_are_private_also_where_they_were_not() {
        let home = tempfile::tempdir().unwrap();
        let environment = Environment::default().with_home(home.path());
        let town = home.path().join("town");
        let path = path_in(&environment).unwrap();
        let directory = path.parent().unwrap();
        fs::create_dir_all(directory).unwrap();
        fs::write(&path, "").unwrap();
        for open in [directory, &path] {
            fs::set_permissions(open, fs::Permissions::from_mode(0o777)).unwrap();
        }

        remember(&environment, "/src/web", &town).unwrap();

        let files = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
        for private in files.chain([directory.to_owned()]) {
            assert!(!private::is_open_to_others(&private).unwrap(), "{}", private.display());
        }
        assert!(read(&path).contains_key("/src/web"));
    }
}
