//! The store as a whole: backups, checks, sizes.

use std::path::{Path, PathBuf};

use gt_core::decide::Right;
use gt_core::{BeadId, Timestamp};

use crate::dependencies::BlockingGraph;
use gt_town::{OperationError, Result, Town};

pub use gt_store::{
    Backup, Difference, Growth, IfFileExists, OnCopyProgress, SCHEMA_LEVEL, StoreDescription,
    TableSize, VacuumResult,
};

/// How many differences are kept. There may be as many as rows.
const DIFFERENCES_MAX: usize = 1_000;

/// Derived values that are not what they should be.
#[derive(Debug, Clone, Default)]
pub struct Differences {
    /// How many there are.
    pub count: u64,
    /// The first of them.
    pub first: Vec<Difference>,
}

impl Differences {
    fn add(&mut self, difference: Difference) {
        self.count += 1;
        if self.first.len() < DIFFERENCES_MAX {
            self.first.push(difference);
        }
    }
}

/// The result of a check of the whole store.
#[derive(Debug, Clone)]
pub struct StoreVerdict {
    /// The damage that the database itself reports.
    pub damage: Vec<String>,
    /// Derived values that are not what they should be.
    pub differences: Differences,
    /// Circles of dependencies, none of whose beads can ever be ready.
    pub circles: Vec<Vec<BeadId>>,
    /// Conditions that work but may cause trouble later.
    pub warnings: Vec<String>,
}

impl StoreVerdict {
    /// How many things are wrong.
    pub fn problems(&self) -> u64 {
        (self.damage.len() + self.circles.len()) as u64 + self.differences.count
    }
}

/// Everything about the store of a town that is not in it.
#[derive(Debug, Clone)]
pub struct TownStoreInfo {
    /// Tells the town apart from others.
    pub town: String,
    /// The town's directory.
    pub root: PathBuf,
    /// The store.
    pub store: StoreDescription,
}

/// Writes the store, as it is now, to a file that is a store itself. Others may go on writing.
pub fn backup(
    town: &Town,
    to: Option<&Path>,
    existing: IfFileExists,
    progress: OnCopyProgress<'_>,
) -> Result<Backup> {
    town.require_right(Right::Store, "a backup of the store")?;
    let now = town.now();
    let to = match to {
        Some(path) => path.to_owned(),
        None => default_place(town, now)?,
    };
    Ok(town.store().back_up(&to, existing, now, progress)?)
}

fn default_place(town: &Town, now: Timestamp) -> Result<PathBuf> {
    if !town.has_directory() {
        return Err(OperationError::rejected(
            "there is no town here that has a place for backups; name the file, as in gt store backup /data/backup.db",
        ));
    }
    let directory = town.backups();
    gt_executors::private::create_dir_all(&directory).map_err(|source| OperationError::File {
        action: "create",
        path: directory.clone(),
        source,
    })?;
    let stamp = now.to_jiff().strftime("%Y%m%dT%H%M%S%.3fZ");
    Ok(directory.join(format!("gt-{stamp}.db")))
}

/// Looks at everything in the store and recomputes every derived value.
pub fn check(town: &Town) -> Result<StoreVerdict> {
    let mut differences = Differences::default();
    let found = town.store().examine(&mut |difference| differences.add(difference))?;
    let circles = circles(town)?;
    let (damage, warnings) = (found.damage, found.warnings);
    Ok(StoreVerdict { damage, differences, circles, warnings })
}

/// Recomputes every derived value.
pub fn differences(town: &Town) -> Result<Differences> {
    let mut differences = Differences::default();
    town.read(|reader| {
        Ok(reader.for_each_difference(&mut |difference| differences.add(difference))?)
    })?;
    Ok(differences)
}

/// One circle of blocking dependencies per tangle.
pub fn circles(town: &Town) -> Result<Vec<Vec<BeadId>>> {
    town.read(|reader| Ok(BlockingGraph::read(reader)?.circles()))
}

/// Gives back the room of what is gone.
pub fn vacuum(town: &Town) -> Result<VacuumResult> {
    town.require_right(Right::Store, "a compaction of the store")?;
    Ok(town.store().vacuum()?)
}

/// Says where the store is, how large it is and how fast it grows.
pub fn info(town: &Town) -> Result<TownStoreInfo> {
    Ok(TownStoreInfo {
        town: town.id().to_owned(),
        root: town.root().to_owned(),
        store: town.store().describe(town.now())?,
    })
}
