//! Which store a town uses.

use std::path::Path;

use gt_core::{Timestamp, Uid};
use gt_store::{
    Authorship, Options, PostgresAddress, SettingScope, Store, StoreAddress, StoreError,
};

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
                let address = read(url, root, environment)?.ok_or_else(|| {
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
            Some(url) => read(url, directory, environment)?,
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
    pub(super) fn to_write_down(&self, environment: &Environment) -> Option<String> {
        match (&self.address, self.origin) {
            (_, AddressSource::Own) => None,
            (StoreAddress::File(path), _) => Some(format!("sqlite:{}", path.display())),
            (StoreAddress::Server(_), _) => environment.get(VARIABLE).map(str::to_owned),
        }
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
    pub(super) fn check_owner(&self, store: &Store, id: &str) -> Result<()> {
        if matches!(self.address, StoreAddress::File(_)) {
            return Ok(());
        }
        let owner = store.read(|reader| reader.setting(SettingScope::Store, TOWN_KEY))?;
        match owner {
            Some(owner) if owner != id => Err(OperationError::rejected(format!(
                "{} holds another town ({owner}, not {id}); unset {VARIABLE}, or name another \
                 database or schema",
                self.address
            ))),
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
            if let Some(owner) = writer.setting(SettingScope::Store, TOWN_KEY)? {
                return Ok((owner, true));
            }
            writer.put_setting(SettingScope::Store, TOWN_KEY, Some(&fresh))?;
            Ok((fresh, false))
        })
    }
}

/// Reads a URL or a path, which is relative to `base`; nothing if it is of a kind that we do not know.
fn read(url: &str, base: &Path, environment: &Environment) -> Result<Option<StoreAddress>> {
    let url = url.trim();
    let scheme = url.split_once(':').map(|(scheme, _)| scheme.to_ascii_lowercase());
    let is_scheme = |text: &String| text.chars().all(|c| c.is_ascii_alphanumeric() || c == '+');
    let path = match scheme.filter(is_scheme).as_deref() {
        Some("postgres" | "postgresql") => {
            let (scheme, rest) = url.split_at(url.find(':').unwrap_or_default());
            let url = format!("{}{rest}", scheme.to_ascii_lowercase());
            let server = PostgresAddress::parse(&url, environment.get("PGPASSWORD"))?;
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
