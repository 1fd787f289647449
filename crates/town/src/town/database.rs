//! Which store a town uses.

use std::path::Path;

use gt_core::{Timestamp, Uid};
use gt_store::{
    Authorship, Options, PostgresAddress, SettingScope, Store, StoreAddress, StoreError, StoreMarks,
};

use super::credentials;
use super::file::TownFile;
use super::{DIRECTORY, STORE};
use crate::{Environment, OperationError, Result};

/// Where the store of a town is, and who says so.
#[derive(Debug)]
pub(super) struct TownDatabase {
    pub(super) address: StoreAddress,
    origin: AddressSource,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AddressSource {
    /// Nothing is configured: the file in the town's own directory.
    Own,
    /// `town.toml`. A town that has decided is not led astray by a variable.
    Town,
    /// `DATABASE_URL`.
    Environment,
}

/// The variable that names a database.
const VARIABLE: &str = "DATABASE_URL";
/// The variable with the password for an address that has none.
const PASSWORD: &str = "PGPASSWORD";
/// The setting of the store that says whose it is, so that two towns do not share one by accident.
const TOWN_KEY: &str = "town";

impl TownDatabase {
    /// The store of the town at `root`.
    pub(super) fn of_town(
        root: &Path,
        file: &TownFile,
        environment: &Environment,
        directory: &Path,
    ) -> Result<Self> {
        match &file.database_url {
            Some(url) => {
                let address = address_of(url, root, environment)?.ok_or_else(|| {
                    let scheme = url.split(':').next().unwrap_or_default();
                    OperationError::rejected(format!(
                        "town.toml names a {scheme} database; it can be a path, sqlite: or postgres:"
                    ))
                })?;
                Ok(Self { address, origin: AddressSource::Town })
            }
            None => Self::of_new_town(root, environment, directory),
        }
    }

    /// The store that a town at `root` gets.
    pub(super) fn of_new_town(
        root: &Path,
        environment: &Environment,
        directory: &Path,
    ) -> Result<Self> {
        let own = || StoreAddress::File(root.join(DIRECTORY).join(STORE));
        let named = Self::of_environment(environment, directory)?;
        Ok(named.unwrap_or_else(|| Self { address: own(), origin: AddressSource::Own }))
    }

    /// The store that the environment names, if it names one.
    pub(super) fn of_environment(
        environment: &Environment,
        directory: &Path,
    ) -> Result<Option<Self>> {
        // Other programs use the variable too; a database of a kind that we do not know is theirs.
        let named = match environment.get(VARIABLE) {
            Some(url) => read(url, directory, environment.get(PASSWORD))?,
            None => None,
        };
        Ok(named.map(|address| Self { address, origin: AddressSource::Environment }))
    }

    /// Opens the store, or makes it and the directory it is to be in.
    pub(super) fn create(&self, now: Timestamp, options: Options) -> Result<Store> {
        if let StoreAddress::File(path) = &self.address
            && let Some(directory) = path.parent()
        {
            std::fs::create_dir_all(directory).map_err(|source| OperationError::File {
                action: "create",
                path: directory.to_owned(),
                source,
            })?;
        }
        Store::create(&self.address, now, options).map_err(|source| OperationError::Database {
            variable: VARIABLE,
            fix: "name a path, sqlite:<path> or postgres://user@host/database".to_owned(),
            source: Box::new(source),
        })
    }

    /// Opens the store that the environment names, which must be there.
    pub(super) fn open(&self, now: Timestamp, options: Options) -> Result<Store> {
        Store::open(&self.address, now, options).map_err(|source| OperationError::Database {
            variable: VARIABLE,
            fix: "name a store that is there; gt serve makes one".to_owned(),
            source: Box::new(source),
        })
    }

    /// The address to write to `town.toml`, so that the store is found again without the variable.
    /// Its password is kept elsewhere.
    pub(super) fn to_write_down(&self, environment: &Environment) -> Result<Option<String>> {
        Ok(match (&self.address, self.origin) {
            (_, AddressSource::Own) => None,
            (StoreAddress::File(path), _) => Some(format!("sqlite:{}", path.display())),
            (StoreAddress::Server(_), _) => {
                let url = environment.get(VARIABLE).map(|url| normal(url.trim()));
                url.map(|url| credentials::keep(environment, url)).transpose()?
            }
        })
    }

    /// Explains why a store could not be opened that only the environment asked for.
    pub(super) fn explain(&self, error: StoreError, root: &Path) -> OperationError {
        if self.origin != AddressSource::Environment {
            return error.into();
        }
        OperationError::Database {
            variable: VARIABLE,
            fix: format!(
                "unset it to use the town's own file; if it belongs to another program, write \
                 database_url = \"sqlite:{DIRECTORY}/{STORE}\" into {}",
                root.join(DIRECTORY).join(super::file::NAME).display()
            ),
            source: Box::new(error),
        }
    }

    /// Refuses the store of another town.
    pub(super) fn check_owner(&self, marks: &StoreMarks, id: &str) -> Result<()> {
        if matches!(self.address, StoreAddress::File(_)) {
            return Ok(());
        }
        match &marks.town {
            Some(owner) if owner != id => {
                let next = match self.origin {
                    AddressSource::Own | AddressSource::Environment => {
                        format!("unset {VARIABLE}, or name another database or schema")
                    }
                    AddressSource::Town => {
                        "write the address of this town's store into .gt/town.toml".to_owned()
                    }
                };
                Err(OperationError::rejected(format!(
                    "{} holds another town ({owner}, not {id}); {next}",
                    self.address
                )))
            }
            _ => Ok(()),
        }
    }

    /// The id of the town whose store this is, and whether it was there before. The first to come
    /// writes it down; another host that comes later joins.
    pub(super) fn town_id(&self, store: &Store, by: &Authorship) -> Result<(String, bool)> {
        let fresh = Uid::fresh().to_string();
        if matches!(self.address, StoreAddress::File(_)) {
            return Ok((fresh, false));
        }
        store.write(by, |writer| {
            let marks = writer.marks()?;
            if let Some(fence) = marks.fence {
                let reason = fence.reason(&self.address.to_string());
                return Err(StoreError::Fenced(reason).into());
            }
            if let Some(owner) = marks.town {
                return Ok((owner, true));
            }
            writer.put_setting(SettingScope::Store, TOWN_KEY, Some(&fresh))?;
            Ok((fresh, false))
        })
    }
}

/// The URL by which another host reaches the store of a town, with the password that this host uses. `named` is the address for
/// that host, if it is not the one that this host uses; it has no password.
pub(super) fn url_for_others(
    file: &TownFile,
    named: Option<&str>,
    environment: &Environment,
) -> Result<String> {
    let own = file.database_url.as_deref().or_else(|| environment.get(VARIABLE));
    let own = normal(own.unwrap_or_default().trim());
    let (address, within) = PostgresAddress::split_password(&own);
    let kept = within.or_else(|| credentials::password_of(environment, &address));
    let password = kept.or_else(|| environment.get(PASSWORD).map(ToOwned::to_owned));
    let url = match named {
        None => address,
        Some(named) => {
            let (url, given) = PostgresAddress::split_password(&normal(named.trim()));
            if given.is_some() {
                return Err(OperationError::rejected(
                    "--store has a password, which other programs can read in the arguments; leave it out: the other host gets \
                     the one that this host uses, or PGPASSWORD",
                ));
            }
            PostgresAddress::parse(&url, password.as_deref())?;
            url
        }
    };
    Ok(match password {
        Some(password) => PostgresAddress::with_password(&url, &password),
        None => url,
    })
}

/// A URL with its scheme in small letters.
pub(super) fn normal(url: &str) -> String {
    let (scheme, rest) = url.split_at(url.find(':').unwrap_or_default());
    format!("{}{rest}", scheme.to_ascii_lowercase())
}

/// Reads the address of a store as a user gives it, with the password that is kept for it. A path is relative to `base`.
pub(super) fn address_of(
    url: &str,
    base: &Path,
    environment: &Environment,
) -> Result<Option<StoreAddress>> {
    let kept = credentials::password_of(environment, &normal(url.trim()));
    read(url, base, kept.as_deref().or_else(|| environment.get(PASSWORD)))
}

/// Whether two addresses are, as far as can be told without asking, of the same store.
pub(super) fn is_same_store(one: &StoreAddress, other: &StoreAddress) -> bool {
    match (one, other) {
        (StoreAddress::File(one), StoreAddress::File(other)) => {
            let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
            real(one) == real(other)
        }
        (StoreAddress::Server(one), StoreAddress::Server(other)) => one.shown() == other.shown(),
        _ => false,
    }
}

/// Reads a URL, perhaps with this password, or a path, which is relative to `base`; nothing if it is of a kind that we do not
/// know.
fn read(url: &str, base: &Path, password: Option<&str>) -> Result<Option<StoreAddress>> {
    let url = url.trim();
    let scheme = url.split_once(':').map(|(scheme, _)| scheme.to_ascii_lowercase());
    let is_scheme = |text: &String| text.chars().all(|c| c.is_ascii_alphanumeric() || c == '+');
    let path = match scheme.filter(is_scheme).as_deref() {
        Some("postgres" | "postgresql") => {
            let url = normal(url);
            let server = PostgresAddress::parse(&url, password)?;
            return Ok(Some(StoreAddress::Server(Box::new(server))));
        }
        Some("sqlite") => {
            let path = &url["sqlite:".len()..];
            path.strip_prefix("//").unwrap_or(path)
        }
        Some(_) => return Ok(None),
        None => url,
    };
    if path.is_empty() || path.contains('=') || path == ":memory:" {
        return Err(OperationError::rejected(
            "the address of a database is a path, sqlite:<path> or postgres://user@host/database",
        ));
    }
    Ok(Some(StoreAddress::File(base.join(path))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_host_gets_the_password_that_this_host_uses() {
        let file = TownFile {
            id: "t".to_owned(),
            database_url: Some("postgres://gt:a%2Fb@db/town?schema=x".to_owned()),
        };
        let nothing = Environment::default();
        let url = url_for_others(&file, None, &nothing).unwrap();
        assert_eq!(url, "postgres://gt@db/town?schema=x&password=a%2Fb");
        let (address, password) = PostgresAddress::split_password(&url);
        assert_eq!(address, "postgres://gt@db/town?schema=x");
        assert_eq!(password.as_deref(), Some("a/b"));
        let url = url_for_others(&file, Some("postgres://gt@10.0.0.1/town"), &nothing).unwrap();
        assert_eq!(url, "postgres://gt@10.0.0.1/town?password=a%2Fb");
        let error = url_for_others(&file, Some("postgres://gt:x@db/town"), &nothing).unwrap_err();
        assert!(error.to_string().contains("leave it out"), "{error}");
        assert!(url_for_others(&file, Some("mysql://db"), &nothing).is_err());
        let file = TownFile { database_url: Some("postgres://gt@db/town".to_owned()), ..file };
        assert_eq!(url_for_others(&file, None, &nothing).unwrap(), "postgres://gt@db/town");
    }
}
