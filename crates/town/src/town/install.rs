//! Making a town, or a stand-alone store.

use std::path::{Path, PathBuf};

use gt_core::{Clock, Prefix, Rig, RigSlug};
use gt_executors::private;
use gt_store::{Authorship, Options, Store, StoreAddress};

use super::database::{TownDatabase, is_same_store};
use super::file::{self, TownFile};
use super::{DIRECTORY, enclosing_town};
use crate::{Actor, Environment, OperationError, Result};

/// The result of an installation.
#[derive(Debug)]
pub struct Installed {
    /// The town's directory.
    pub root: PathBuf,
    /// Whether it is new; an existing town is left as it is.
    pub is_new: bool,
    /// The server its records are on, if not in a file of its own.
    pub server: Option<String>,
    /// Whether that server held the town already, and this is one more host of it.
    pub joined: bool,
    /// The store of an existing town and the one that `DATABASE_URL` names, if that is another server.
    pub not_on: Option<(String, String)>,
}

/// Makes a town in `directory`.
pub fn install(
    directory: &Path,
    environment: &Environment,
    actor: &Actor,
    clock: &dyn Clock,
) -> Result<Installed> {
    refuse_inside_a_town(directory)?;
    std::fs::create_dir_all(directory).map_err(|source| OperationError::File {
        action: "create",
        path: directory.to_owned(),
        source,
    })?;
    let root = directory.canonicalize().map_err(|source| OperationError::File {
        action: "find",
        path: directory.to_owned(),
        source,
    })?;
    if enclosing_town(&root).is_some() {
        // A user who installs again wants to know whether the town works.
        let file = file::read(&root)?;
        file::move_password(&root, &file, environment)?;
        let database = TownDatabase::of_town(&root, &file, environment, &root)?;
        Store::open(&database.address, clock.now(), Options::default())
            .map_err(|error| database.explain(error, &root))?;
        let named = TownDatabase::of_environment(environment, &root).ok().flatten();
        let is_other = |named: &StoreAddress| {
            matches!(named, StoreAddress::Server(_)) && !is_same_store(named, &database.address)
        };
        let named = named.map(|named| named.address).filter(is_other);
        let not_on = named.map(|named| (database.address.to_string(), named.to_string()));
        return Ok(Installed { root, is_new: false, server: None, joined: false, not_on });
    }
    let by = Authorship { actor: actor.name.clone(), at: clock.now(), worker: None };
    let ((), server, joined) = make(&root, environment, &by, TownJoining::Welcome, |_| Ok(()))?;
    Ok(Installed { root, is_new: true, server, joined, not_on: None })
}

/// Makes `directory` a host of the town with this identity, whose store is at `url`. Nothing is made if the store holds another
/// town. `before` is told the file that is new with the password, if there is one.
pub fn join(
    directory: &Path,
    (url, town): (&str, &str),
    environment: &Environment,
    actor: &Actor,
    clock: &dyn Clock,
    before: impl FnOnce(Option<PathBuf>) -> Result<()>,
) -> Result<Installed> {
    let environment = environment.clone().with_database(url);
    let database = TownDatabase::of_environment(&environment, directory)?
        .filter(|database| matches!(database.address, StoreAddress::Server(_)))
        .ok_or_else(|| {
            OperationError::rejected("the address of the store is not one of PostgreSQL")
        })?;
    let store = Store::open(&database.address, clock.now(), Options::default())?;
    let owner = store.read(|reader| Ok::<_, OperationError>(reader.marks()?.town))?;
    match owner {
        Some(owner) if owner == town => {}
        Some(_) => {
            return Err(OperationError::rejected(format!(
                "{} holds another town than this one; name the address of this town's store with --store",
                database.address
            )));
        }
        None => {
            return Err(OperationError::rejected(format!(
                "{} holds no town; name the address of this town's store with --store",
                database.address
            )));
        }
    }
    drop(store);
    before(super::credentials::new_file(&environment, url))?;
    install(directory, &environment, actor, clock)
}

/// Asked before anything is made, so that nothing has to be unmade.
fn refuse_inside_a_town(directory: &Path) -> Result<()> {
    let made = directory.ancestors().find_map(|at| at.canonicalize().ok());
    let Some(existing) = made.as_deref().and_then(enclosing_town) else {
        return Ok(());
    };
    if directory.canonicalize().is_ok_and(|root| root == existing) {
        return Ok(());
    }
    Err(OperationError::rejected(format!(
        "{} is inside the town {}; towns do not nest",
        directory.display(),
        existing.display()
    )))
}

/// Makes a stand-alone store in `directory`: a town of one rig, whose directory is the town's. Gives the
/// prefix of its ids, and the server it is on if it is on one.
pub fn start_store(
    directory: &Path,
    prefix: Option<&str>,
    environment: &Environment,
    actor: &Actor,
    clock: &dyn Clock,
) -> Result<(Prefix, Option<String>)> {
    let name: String = directory
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' })
        .collect();
    let name = name.trim_matches(['-', '_']).to_owned();
    let prefix = match prefix {
        Some(prefix) => {
            let prefix = Prefix::parse(prefix)?;
            crate::rig_names::refuse_reserved(&prefix)?;
            prefix
        }
        None => Prefix::derive(&name, |_| false).map_err(|_| {
            OperationError::rejected(
                "this directory's name gives no prefix; give one with --prefix",
            )
        })?,
    };
    let slug = RigSlug::parse(&name).or_else(|_| RigSlug::parse(&format!("{prefix}-rig")))?;
    let now = clock.now();
    let rig = Rig::new(slug, &name, prefix.clone(), ".", now);
    let by = Authorship { actor: actor.name.clone(), at: now, worker: None };
    make(directory, environment, &by, TownJoining::Refused, |store| {
        store.write(&by, |writer| {
            // An earlier installation may have come this far, and no further.
            let existing = writer.rigs()?.into_iter().find(|rig| rig.path == ".");
            if let Some(existing) = existing {
                return Ok(existing.prefix);
            }
            writer.insert_rig(&rig)?;
            Ok(prefix)
        })
    })
    .map(|(prefix, server, _)| (prefix, server))
}

fn server_of(store: &Store) -> Option<String> {
    match store.address()? {
        StoreAddress::Server(server) => Some(server.shown().to_owned()),
        StoreAddress::File(_) => None,
    }
}

/// Whether a store that holds a town already may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TownJoining {
    Welcome,
    /// Two repositories would find their beads mixed.
    Refused,
}

/// Makes a town; gives the server it is on, if it is on one, and says whether that held it already.
fn make<T>(
    root: &Path,
    environment: &Environment,
    by: &Authorship,
    joining: TownJoining,
    furnish: impl FnOnce(&Store) -> Result<T>,
) -> Result<(T, Option<String>, bool)> {
    let directory = root.join(DIRECTORY);
    let make_directory = || {
        let made = private::create_dir_all(&directory).and_then(|()| private::tighten(&directory));
        made.map_err(|source| OperationError::File {
            action: "create",
            path: directory.clone(),
            source,
        })
    };
    let database = TownDatabase::of_new_town(root, environment, root)?;
    // A server that cannot be used leaves nothing behind here.
    if matches!(database.address, StoreAddress::File(_)) {
        make_directory()?;
    }
    let store = Store::create(&database.address, by.at, Options::default())?;
    let (id, joined) = database.town_id(&store, by)?;
    if joined && joining == TownJoining::Refused {
        return Err(OperationError::rejected(format!(
            "{} holds a town already; join it with gt install, or give this store a schema of its own \
             by adding ?schema=<name> to the URL",
            database.address
        )));
    }
    make_directory()?;
    let furnished = furnish(&store)?;
    // A town inside a git repository stays out of its history.
    let ignore = directory.join(".gitignore");
    private::write(&ignore, "*\n").map_err(|source| OperationError::File {
        action: "write",
        path: ignore,
        source,
    })?;
    let database_url = database.to_write_down(environment)?;
    file::write(root, &TownFile { id, database_url })?;
    Ok((furnished, server_of(&store), joined))
}
