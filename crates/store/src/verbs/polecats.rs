//! Polecats: named places for workers.

use gt_core::port_range::polecat_place;
use gt_core::schedule::{Polecat, RunId, TreeState};
use gt_core::{RigSlug, Timestamp};

use super::statements;
use crate::engine::Row;
use crate::{Reader, StoreError, Writer};

macro_rules! columns {
    () => {
        "rig, name, host, tree, branch, last_run, created_at, updated_at"
    };
}

statements! {
    ALL = concat!("SELECT ", columns!(), " FROM polecats ORDER BY rig, name");
    OF_RIG = concat!("SELECT ", columns!(), " FROM polecats WHERE rig = ?1 ORDER BY updated_at, name");
    ONE = concat!("SELECT ", columns!(), " FROM polecats WHERE rig = ?1 AND name = ?2");
    PUT = concat!("INSERT INTO polecats (", columns!(), ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) \
        ON CONFLICT (rig, name) DO UPDATE SET host = excluded.host, tree = excluded.tree, branch = excluded.branch, \
        last_run = excluded.last_run, updated_at = excluded.updated_at");
    DELETE = "DELETE FROM polecats WHERE rig = ?1 AND name = ?2";
}

impl Reader<'_> {
    /// Every polecat, by rig and name.
    pub fn polecats(&self) -> Result<Vec<Polecat>, StoreError> {
        self.rows(ALL, &[], polecat_from)
    }

    /// The polecats of a rig, the one that rested longest first.
    pub fn polecats_of(&self, rig: &RigSlug) -> Result<Vec<Polecat>, StoreError> {
        self.rows(OF_RIG, &[rig.as_str().into()], polecat_from)
    }

    /// The polecat of this name.
    pub fn polecat(&self, rig: &RigSlug, name: &str) -> Result<Option<Polecat>, StoreError> {
        self.first(ONE, &[rig.as_str().into(), name.into()], polecat_from)
    }
}

impl Writer<'_> {
    /// Writes a polecat, new or changed. Its tree has a range of ports from then on.
    pub fn put_polecat(&mut self, polecat: &Polecat) -> Result<(), StoreError> {
        self.take_port_range(&polecat.rig, &polecat_place(&polecat.name))?;
        let last_run = polecat.last_run.as_ref().map(ToString::to_string).unwrap_or_default();
        self.apply(
            PUT,
            &[
                polecat.rig.as_str().into(),
                (&polecat.name).into(),
                (&polecat.host).into(),
                polecat.tree.as_str().into(),
                (&polecat.branch).into(),
                (&last_run).into(),
                polecat.created_at.into(),
                polecat.updated_at.into(),
            ],
        )
    }

    /// Forgets a polecat, whose name is free then. Its tree was moved away before.
    pub fn delete_polecat(&mut self, rig: &RigSlug, name: &str) -> Result<(), StoreError> {
        self.free_port_range(rig, &polecat_place(name))?;
        self.apply(DELETE, &[rig.as_str().into(), name.into()])
    }
}

/// A run that is named in a column; nothing for an empty one.
pub(super) fn run_or_none(text: &str) -> Result<Option<RunId>, StoreError> {
    Ok(Some(text).filter(|text| !text.is_empty()).map(RunId::parse).transpose()?)
}

fn polecat_from(row: &dyn Row) -> Result<Polecat, StoreError> {
    Ok(Polecat {
        rig: RigSlug::trusted(row.text(0)?.to_owned()),
        name: row.text(1)?.to_owned(),
        host: row.text(2)?.to_owned(),
        tree: TreeState::parse(row.text(3)?)?,
        branch: row.text(4)?.to_owned(),
        last_run: run_or_none(row.text(5)?)?,
        created_at: Timestamp::from_nanos(row.int(6)?),
        updated_at: Timestamp::from_nanos(row.int(7)?),
    })
}
