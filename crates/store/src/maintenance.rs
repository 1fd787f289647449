//! Maintenance of a store as a whole.

use std::path::{Path, PathBuf};

use gt_core::Timestamp;

use crate::backend::Backend;
use crate::backup::{IfFileExists, write_aside};
use crate::copy::{OnCopyProgress, TABLES};
use crate::engine::sqlite::{Access, open_connection};
use crate::engine::{EngineFacts, Upkeep};
use crate::transaction::Reader;
use crate::{Difference, Growth, Store, StoreError, Totals};

/// A backup that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backup {
    /// The file.
    pub path: PathBuf,
    /// The number of things in it.
    pub totals: Totals,
    /// Its size.
    pub bytes: u64,
}

/// The result of a full check.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoreCheckResult {
    /// The damage that the database finds in itself.
    pub damage: Vec<String>,
    /// Settings that work but put data at risk.
    pub warnings: Vec<String>,
}

/// The size of a store before and after.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VacuumResult {
    /// Before, in bytes.
    pub before: u64,
    /// After, in bytes.
    pub after: u64,
}

/// The size of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableSize {
    /// Its name.
    pub name: &'static str,
    /// How many rows it has.
    pub rows: u64,
    /// How many bytes it takes with its indexes, if the database keeps count.
    pub bytes: Option<u64>,
}

/// Everything about a store that is not in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreDescription {
    /// Where it is, without a password; nothing if it is in memory.
    pub place: Option<String>,
    /// The facts that the database reports about itself.
    pub engine: EngineFacts,
    /// Its schema.
    pub schema: i64,
    /// Its tables.
    pub tables: Vec<TableSize>,
    /// The numbers of the first and the last event; zeros if there are none.
    pub event_numbers: (u64, u64),
    /// How fast the log grows.
    pub events: Growth,
    /// How fast beads come.
    pub beads: Growth,
}

impl Store {
    /// Writes one consistent state of the store to a store in a file, while others go on writing.
    pub fn back_up(
        &self,
        to: &Path,
        existing: IfFileExists,
        now: Timestamp,
        progress: OnCopyProgress<'_>,
    ) -> Result<Backup, StoreError> {
        if let Backend::File(file) = self.place()
            && is_same_file(file.path(), to)
        {
            let why = "it is the store itself; name another file";
            return Err(StoreError::NotReplaced { path: to.to_owned(), why });
        }
        let totals = write_aside(to, existing, |aside| {
            let expected = self.place().with_upkeep(|link, reader| {
                // The first thing that is read decides which state this is.
                let totals = reader.totals()?;
                link.copy_into(aside, now, progress)?;
                Ok(totals)
            })?;
            let copy = open_connection(aside, Access::Read)?;
            let found = Reader::new(&copy).totals()?;
            if found != expected {
                let why = format!("the copy has {found:?} instead of {expected:?}");
                return Err(StoreError::Corrupt(why));
            }
            Ok(found)
        });
        let totals = totals.map_err(|error| match (error, self.path()) {
            // Pages are copied as they are.
            (StoreError::Damaged(_), Some(path)) => StoreError::Damaged(path.to_owned()),
            (error, _) => error,
        })?;
        let bytes = std::fs::metadata(to).map_or(0, |about| about.len());
        Ok(Backup { path: to.to_owned(), totals, bytes })
    }

    /// Settings of the database that could lose or damage committed data.
    pub fn warnings(&self) -> Result<Vec<String>, StoreError> {
        self.place().with_upkeep(|link, _| link.warnings())
    }

    /// Checks everything: the files and indexes, by the database itself; whether everything of
    /// the schema is there; and whether every derived value is correct.
    pub fn examine(
        &self,
        different: &mut dyn FnMut(Difference),
    ) -> Result<StoreCheckResult, StoreError> {
        self.place().with_upkeep(|link, reader| {
            let mut found = StoreCheckResult { damage: link.damage()?, warnings: link.warnings()? };
            let missing = link.missing()?;
            found.damage.extend(missing.iter().map(|name| format!("{name} is missing")));
            // With tables or files that cannot be read, the rest would only fail.
            let readable = found.damage.is_empty();
            match check_rows(link, reader, &mut found, different) {
                Err(error) if !readable => {
                    found.damage.push(format!("not everything could be looked at: {error}"));
                }
                checked => checked?,
            }
            Ok(found)
        })
    }

    /// Gives the room of deleted rows back to the disk or to new rows, while writers wait (in a
    /// file) or go on (on a server).
    pub fn vacuum(&self) -> Result<VacuumResult, StoreError> {
        let bytes = || self.place().with_upkeep(|link, _| Ok(link.facts()?.bytes));
        let before = bytes()?;
        self.place().vacuum()?;
        Ok(VacuumResult { before, after: bytes()? })
    }

    /// Says where the store is, how large it is and how fast it grows.
    pub fn describe(&self, now: Timestamp) -> Result<StoreDescription, StoreError> {
        let place = self.address().map(|address| address.to_string());
        self.place().with_upkeep(|link, reader| {
            let engine = link.facts()?;
            let bytes_of = |name: &str| {
                engine.table_bytes.iter().find(|(table, _)| table == name).map(|(_, bytes)| *bytes)
            };
            let size = |table: &crate::CopiedTable| {
                let (name, bytes) = (table.name, bytes_of(table.name));
                Ok(TableSize { name, rows: reader.count_rows(table)?, bytes })
            };
            let tables = TABLES.iter().map(size).collect::<Result<_, StoreError>>()?;
            Ok(StoreDescription {
                place,
                engine,
                schema: reader.level()?.0,
                tables,
                event_numbers: reader.event_numbers()?,
                events: reader.growth_of_events(now)?,
                beads: reader.growth_of_beads(now)?,
            })
        })
    }
}

fn check_rows(
    link: &dyn Upkeep,
    reader: &Reader<'_>,
    found: &mut StoreCheckResult,
    different: &mut dyn FnMut(Difference),
) -> Result<(), StoreError> {
    for reference in link.references()? {
        let orphans = reader.orphans(&reference)?;
        found.damage.extend(orphans);
    }
    let (wrong, first) = reader.wrong_aliases()?;
    if let Some(first) = first {
        found.warnings.push(format!(
            "{wrong} beads would get another UUID by an export and import, for example {first}"
        ));
    }
    reader.for_each_difference(different)
}

fn is_same_file(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    }
}
