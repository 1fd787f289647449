//! Moving a store to another database, and the fence that keeps writers out of a store that its town does not use.
//!
//! At every moment at most one of the two stores takes writes. The copy is fenced until its original is; the commit that
//! fences the original is the moment of the move.

use std::path::{Path, PathBuf};

use gt_core::Timestamp;

use crate::backend::{Backend, ServerBackend};
use crate::backup::{IfFileExists, with_suffix, write_aside};
use crate::copy::{OnCopyProgress, TABLES, copy_rows, verify_rows};
use crate::engine::schema::SQLITE;
use crate::engine::sqlite::{
    Access, FileKind, inspect, kind_of, make_backup_directory, migrate, open_connection,
};
use crate::engine::{LEVEL, TransactionConnection};
use crate::transaction::Reader;
use crate::verbs::{FENCE_KEY, FORGET_HOSTS, PUT_MARK, REMOVE_MARK, TOWN_KEY};
use crate::{Options, Store, StoreAddress, StoreError, StoreMarks, WriteMode};

/// Why a store takes no writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreFence {
    /// Its rows are being copied from another store, which its town still uses.
    Incoming,
    /// Its town uses the store at this address, which is shown without a password.
    Moved(String),
}

const INCOMING: &str = "incoming";
const MOVED: &str = "moved ";

impl StoreFence {
    /// The fence that is written down like this. One that a later program wrote keeps writers out like any other.
    pub(crate) fn parse(text: &str) -> Self {
        match text.strip_prefix(MOVED) {
            Some(to) => Self::Moved(to.to_owned()),
            None => Self::Incoming,
        }
    }

    fn to_text(&self) -> String {
        match self {
            Self::Incoming => INCOMING.to_owned(),
            Self::Moved(to) => format!("{MOVED}{to}"),
        }
    }

    /// Why nothing is written to the store at `place`, and how to proceed.
    pub fn reason(&self, place: &str) -> String {
        match self {
            Self::Incoming => format!(
                "a move of a town to {place} is not finished, and the town still uses its former store; repeat \
                 gt store migrate there"
            ),
            Self::Moved(to) => format!(
                "the town at {place} has moved to {to}; nothing was changed. Restart what still uses the former store, and \
                 write the new address as database_url into .gt/town.toml where it names the former one"
            ),
        }
    }
}

/// The rows that a move has copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CopiedRows {
    /// How many tables.
    pub tables: u64,
    /// How many rows in all of them.
    pub rows: u64,
}

impl Store {
    /// Moves the town with this id to the store at `to`, while no other process writes: copies every row, compares
    /// counts and checksums of each table, and then lets this store refuse all writes. `ready` is asked when no other
    /// process can write any more, before anything is done.
    ///
    /// If this fails, this store stays as it was. The new store takes no writes before [`Store::lift_fence`]; a move that
    /// was interrupted begins again.
    pub fn move_to<E: From<StoreError>>(
        &self,
        to: &StoreAddress,
        town: &str,
        now: Timestamp,
        ready: impl FnOnce(&Reader<'_>) -> Result<(), E>,
        progress: OnCopyProgress<'_>,
    ) -> Result<CopiedRows, E> {
        let place = self.address().map_or_else(String::new, |address| address.to_string());
        self.place().write(WriteMode::Alone, |group| {
            let from = group.link();
            let reader = Reader::new(from);
            if let Some(fence) = reader.marks()?.fence {
                return Err(StoreError::Fenced(fence.reason(&place)).into());
            }
            let (found, needed) = reader.level()?;
            if found > LEVEL {
                // It still serves us, but holds data that we do not know and would lose.
                let needed = needed.max(found);
                return Err(StoreError::TooNew { place, found, needed, known: LEVEL }.into());
            }
            ready(&reader)?;
            let filling = Filling { from, town, now };
            let copied = match to {
                StoreAddress::Server(server) => {
                    let target = ServerBackend::create(server, now, Options::default())?;
                    Backend::Server(Box::new(target)).write(WriteMode::Alone, |group| {
                        let copied = filling.fill(group.link(), server.shown(), progress)?;
                        Ok::<_, StoreError>((copied, true))
                    })?
                }
                StoreAddress::File(path) => filling.fill_file(path, progress)?,
            };
            fence(from, town, now, &StoreFence::Moved(to.to_string()), &place)?;
            Ok((copied, true))
        })
    }

    /// Lets writes into a store that a move has filled.
    pub fn lift_fence(&self) -> Result<(), StoreError> {
        self.place().write(WriteMode::Alone, |group| {
            let link = group.link();
            if Reader::new(link).marks()?.fence != Some(StoreFence::Incoming) {
                return Ok(((), false));
            }
            link.lower_fence(&fenced_tables())?;
            if let Some(StoreAddress::File(_)) = self.address() {
                // A file has one host, which renews no lease: every other one would be away for ever.
                link.execute(FORGET_HOSTS, &[])?;
            }
            link.execute(REMOVE_MARK, &[FENCE_KEY.into()])?;
            Ok(((), true))
        })
    }
}

fn fenced_tables() -> Vec<&'static str> {
    TABLES.iter().map(|table| table.name).collect()
}

/// Writes down whose store this is and why it takes no writes, and lets it refuse them.
fn fence(
    link: &dyn TransactionConnection,
    town: &str,
    now: Timestamp,
    fence: &StoreFence,
    place: &str,
) -> Result<(), StoreError> {
    for (key, value) in [(TOWN_KEY, town), (FENCE_KEY, &fence.to_text())] {
        link.execute(PUT_MARK, &[key.into(), value.into(), now.into()])?;
    }
    link.raise_fence(&fenced_tables(), &fence.reason(place))
}

/// A store whose rows go into another.
struct Filling<'f> {
    from: &'f dyn TransactionConnection,
    town: &'f str,
    now: Timestamp,
}

impl Filling<'_> {
    /// Fills the store of a transaction, unless it holds anything but an earlier attempt.
    fn fill(
        &self,
        to: &dyn TransactionConnection,
        place: &str,
        progress: OnCopyProgress<'_>,
    ) -> Result<CopiedRows, StoreError> {
        let reader = Reader::new(to);
        let marks = reader.marks()?;
        let (found, needed) = reader.level()?;
        if found > LEVEL {
            let (place, needed) = (place.to_owned(), needed.max(found));
            return Err(StoreError::TooNew { place, found, needed, known: LEVEL });
        }
        let is_earlier_attempt = self.is_own(&marks) && marks.fence == Some(StoreFence::Incoming);
        if !is_earlier_attempt {
            self.refuse_used(&reader, &marks, place)?;
        }
        to.lower_fence(&fenced_tables())?;
        let copied = self.copy(to, progress)?;
        fence(to, self.town, self.now, &StoreFence::Incoming, place)?;
        Ok(copied)
    }

    fn copy(
        &self,
        to: &dyn TransactionConnection,
        progress: OnCopyProgress<'_>,
    ) -> Result<CopiedRows, StoreError> {
        let tallies = copy_rows(self.from, to, &mut |done, total| progress(done, 2 * total))?;
        // A new table has no statistics, and the plan for each of its rows would be a guess.
        to.refresh_statistics()?;
        let verified = &mut |done, total| progress(total + done, 2 * total);
        verify_rows(self.from, to, &tallies, verified)?;
        let rows = tallies.iter().map(|tally| tally.rows).sum();
        Ok(CopiedRows { tables: tallies.len() as u64, rows })
    }

    fn is_own(&self, marks: &StoreMarks) -> bool {
        marks.town.as_deref() == Some(self.town)
    }

    fn refuse_used(
        &self,
        reader: &Reader<'_>,
        marks: &StoreMarks,
        place: &str,
    ) -> Result<(), StoreError> {
        let refused = |why: String| Err(StoreError::NotEmpty { place: place.to_owned(), why });
        match &marks.town {
            Some(_) if self.is_own(marks) => {
                return refused("holds an older state of this town".to_owned());
            }
            Some(other) => return refused(format!("holds another town ({other})")),
            None => {}
        }
        let totals = reader.totals()?;
        if totals.beads + totals.events > 0 || reader.has_rigs()? {
            return refused("is not empty".to_owned());
        }
        Ok(())
    }

    /// Fills a store in a new file. A former store of the same town that lies there is kept under another name.
    fn fill_file(
        &self,
        path: &Path,
        progress: OnCopyProgress<'_>,
    ) -> Result<CopiedRows, StoreError> {
        if matches!(kind_of(path)?, FileKind::Store | FileKind::Foreign(_)) {
            inspect(path)?;
            self.clear_place(path)?;
        }
        let place = path.display().to_string();
        write_aside(path, IfFileExists::Keep, |aside| {
            let doing = "fill the store";
            let file = open_connection(aside, Access::Create)?;
            // If this fails, the whole file goes, so it needs no journal on its way.
            file.batch("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;", doing)?;
            migrate(&file, aside, SQLITE, self.now)?;
            file.begin_writing()?;
            let copied = self.copy(&file, progress)?;
            fence(&file, self.town, self.now, &StoreFence::Incoming, &place)?;
            file.commit(None)?;
            file.batch("PRAGMA journal_mode = WAL;", doing)?;
            Ok(copied)
        })
    }

    /// Makes room for a new file where a store of this town lies that the town does not use.
    fn clear_place(&self, path: &Path) -> Result<(), StoreError> {
        let file = open_connection(path, Access::Write)?;
        let reader = Reader::new(&file);
        let marks = reader.marks()?;
        let refused = |why| Err(StoreError::NotReplaced { path: path.to_owned(), why });
        if !self.is_own(&marks) {
            return self
                .refuse_used(&reader, &marks, &path.display().to_string())
                .and_then(|()| refused("it is a store already; name another file"));
        }
        let to = match marks.fence {
            // It was never in use, and begins again.
            Some(StoreFence::Incoming) => None,
            Some(StoreFence::Moved(_)) => Some(self.name_of_former(path)?),
            None => return refused("it holds an older state of this town; name another file"),
        };
        file.shorten_log(0);
        drop(file);
        let log = with_suffix(path, "-wal");
        if std::fs::metadata(&log).is_ok_and(|about| about.len() > 0) {
            return refused("another program has it open; end that and try again");
        }
        let io = |action| move |source| StoreError::Io { action, path: path.to_owned(), source };
        match to {
            Some(to) => std::fs::rename(path, to).map_err(io("rename"))?,
            None => std::fs::remove_file(path).map_err(io("remove"))?,
        }
        for suffix in ["-wal", "-shm"] {
            // They are empty now, and belong to the file that is gone.
            let _ = std::fs::remove_file(with_suffix(path, suffix));
        }
        Ok(())
    }

    /// A name beside the backups of a town, so that nothing is replaced.
    fn name_of_former(&self, path: &Path) -> Result<PathBuf, StoreError> {
        let directory = make_backup_directory(path)?;
        Ok(directory.join(format!("gt-moved-{}.db", self.now.as_nanos())))
    }
}
