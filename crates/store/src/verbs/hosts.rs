//! The directories that work on a town.

use super::statements;
use crate::{Reader, StoreError, Writer};

statements! {
    ALL = "SELECT id, name, machine, path, incarnation, unixepoch('now') - seen_at_s FROM hosts ORDER BY id";
    SEEN = "INSERT INTO hosts (id, name, machine, path, incarnation, seen_at_s) \
        VALUES (?1, ?2, ?3, ?4, ?5, unixepoch('now')) \
        ON CONFLICT (id) DO UPDATE SET name = excluded.name, machine = excluded.machine, path = excluded.path, \
        incarnation = excluded.incarnation, seen_at_s = excluded.seen_at_s";
    FORGET = "DELETE FROM hosts WHERE id = ?1";
    ADOPT_RUNS = "UPDATE runs SET host = ?2 WHERE host LIKE ?1 AND state IN ('starting', 'running', 'blocked')";
    ADOPT_POLECATS = "UPDATE polecats SET host = ?2 WHERE host LIKE ?1";
    ADOPT_TRASH = "UPDATE trash SET host = ?2 WHERE host LIKE ?1";
    ADOPT_RESCUES = "UPDATE rescues SET host = ?2 WHERE host LIKE ?1";
}

/// A directory that works on a town, as it was seen last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostRow {
    /// Its identity.
    pub id: String,
    /// The name of its machine.
    pub name: String,
    /// The id of its machine; empty where there is none.
    pub machine: String,
    /// Its path.
    pub path: String,
    /// An id that tells this start of the machine, or this container, apart from others with the same identity.
    pub incarnation: String,
}

impl Reader<'_> {
    /// Every host, with how many seconds ago it was seen by the store's clock.
    pub fn hosts(&self) -> Result<Vec<(HostRow, i64)>, StoreError> {
        self.rows(ALL, &[], |row| {
            let text = |column| -> Result<String, StoreError> { Ok(row.text(column)?.to_owned()) };
            let host = HostRow {
                id: text(0)?,
                name: text(1)?,
                machine: text(2)?,
                path: text(3)?,
                incarnation: text(4)?,
            };
            Ok((host, row.int(5)?))
        })
    }
}

impl Writer<'_> {
    /// Notes that a host is there now.
    pub fn host_seen(&mut self, host: &HostRow) -> Result<(), StoreError> {
        let HostRow { id, name, machine, path, incarnation } = host;
        let params = [id.into(), name.into(), machine.into(), path.into(), incarnation.into()];
        self.apply(SEEN, &params)
    }

    /// Gives the live runs, polecats and saved trees of one identity to the host of another. Says how many runs.
    pub fn adopt_host(&mut self, former: &str, host: &str) -> Result<u64, StoreError> {
        let of_former = format!("%/{former}");
        let params = [(&of_former).into(), host.into()];
        let runs = self.execute(ADOPT_RUNS, &params)?;
        for table in [ADOPT_POLECATS, ADOPT_TRASH, ADOPT_RESCUES] {
            self.execute(table, &params)?;
        }
        self.execute(FORGET, &[former.into()])?;
        Ok(runs)
    }
}
