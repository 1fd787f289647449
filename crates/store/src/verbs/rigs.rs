//! Rigs.

use gt_core::event::{RigFieldChanged, RigNamed};
use gt_core::{
    BeadId, EventPayload, ExecutorKind, Json, NewEvent, Prefix, Rig, RigSlug, RigState, Timestamp,
    Uid,
};

use super::statements;
use crate::engine::{Param, Row};
use crate::{Reader, StoreError, Writer};

/// The columns of a rig, in the order [`rig_from`] reads them.
macro_rules! rig_columns {
    () => {
        "slug, uid, prefix, title, path, repo, default_branch, executor, state, external_ref, \
         settings, created_at, updated_at"
    };
}

statements! {
    ALL = concat!("SELECT ", rig_columns!(), " FROM rigs ORDER BY slug");
    ONE = concat!("SELECT ", rig_columns!(), " FROM rigs WHERE slug = ?1");
    BY_UID = concat!("SELECT ", rig_columns!(), " FROM rigs WHERE uid = ?1");
    INSERT = concat!("INSERT INTO rigs (", rig_columns!(), ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)");
    SET_STATE = "UPDATE rigs SET state = ?2, updated_at = ?3 WHERE slug = ?1";
    CHANGE = "UPDATE rigs SET title = ?2, default_branch = ?3, executor = ?4, external_ref = ?5, updated_at = ?6, prefix = ?7 WHERE slug = ?1";
    DELETE = "DELETE FROM rigs WHERE slug = ?1";
    WITHOUT_RIG = "SELECT id FROM beads WHERE rig IS NULL AND id > ?1 AND id < ?2 ORDER BY id";
    ADOPT = "UPDATE beads SET rig = ?2 WHERE id = ?1";
    COUNTS = "SELECT status, COUNT(*) FROM beads WHERE rig = ?1 AND ephemeral = 0 GROUP BY status ORDER BY status";
}

/// How many beads of a rig have each status.
pub type RigCounts = Vec<(String, i64)>;

impl Reader<'_> {
    /// Every rig, by name.
    pub fn rigs(&self) -> Result<Vec<Rig>, StoreError> {
        self.rows(ALL, &[], rig_from)
    }

    /// The rig of this name.
    pub fn rig(&self, slug: &str) -> Result<Option<Rig>, StoreError> {
        self.first(ONE, &[slug.into()], rig_from)
    }

    /// The rig with this alias.
    pub fn rig_by_uid(&self, uid: &Uid) -> Result<Option<Rig>, StoreError> {
        self.first(BY_UID, &[Param::Blob(uid.as_bytes())], rig_from)
    }

    /// How many beads of a rig have each status.
    pub fn rig_counts(&self, slug: &RigSlug) -> Result<RigCounts, StoreError> {
        self.rows(COUNTS, &[slug.as_str().into()], |row| Ok((row.text(0)?.to_owned(), row.int(1)?)))
    }

    /// The rig whose prefix is the longest that fits `id`.
    pub fn rig_of_id(&self, id: &BeadId) -> Result<Option<RigSlug>, StoreError> {
        let rigs = self.rigs()?;
        let fitting = rigs.into_iter().filter(|rig| id.has_prefix(rig.prefix.as_str()));
        Ok(fitting.max_by_key(|rig| rig.prefix.as_str().len()).map(|rig| rig.slug))
    }
}

impl Writer<'_> {
    /// Adds a rig. Beads that already have its prefix, and no rig, become its own.
    pub fn insert_rig(&mut self, rig: &Rig) -> Result<(), StoreError> {
        self.execute(
            INSERT,
            &[
                rig.slug.as_str().into(),
                Param::Blob(rig.uid.as_bytes()),
                rig.prefix.as_str().into(),
                (&rig.title).into(),
                (&rig.path).into(),
                (&rig.repo).into(),
                (&rig.default_branch).into(),
                rig.executor.as_str().into(),
                rig.state.as_str().into(),
                (&rig.external_ref).into(),
                rig.settings.as_str().into(),
                rig.created_at.into(),
                rig.updated_at.into(),
            ],
        )?;
        self.mark_contexts_in(&rig.slug)?;
        let (from, to) = (format!("{}-", rig.prefix), format!("{}.", rig.prefix));
        let unclaimed = self.rows(WITHOUT_RIG, &[(&from).into(), (&to).into()], |row| {
            super::beads::id_from(row, 0)
        })?;
        for id in unclaimed {
            if self.rig_of_id(&id)?.as_ref() == Some(&rig.slug) {
                self.execute(ADOPT, &[(&id).into(), rig.slug.as_str().into()])?;
            }
        }
        let (prefix, repo) = (rig.prefix.to_string(), Some(rig.repo.clone()));
        self.record_rig(rig, EventPayload::RigAdded(RigNamed { prefix, repo }));
        Ok(())
    }

    /// Parks, docks or reactivates a rig.
    pub fn set_rig_state(&mut self, rig: &Rig, state: RigState) -> Result<(), StoreError> {
        let params = [rig.slug.as_str().into(), state.as_str().into(), self.now().into()];
        self.execute(SET_STATE, &params)?;
        let (old, new) = (rig.state.as_str().to_owned(), state.as_str().to_owned());
        let changed = RigFieldChanged { field: None, old, new };
        self.record_rig(rig, EventPayload::RigChanged(changed));
        Ok(())
    }

    /// Gives a rig another title, branch, executor, prefix or name elsewhere, with an event for each that is another one.
    pub fn change_rig(&mut self, old: &Rig, new: &Rig) -> Result<(), StoreError> {
        self.execute(
            CHANGE,
            &[
                old.slug.as_str().into(),
                (&new.title).into(),
                (&new.default_branch).into(),
                new.executor.as_str().into(),
                (&new.external_ref).into(),
                self.now().into(),
                new.prefix.as_str().into(),
            ],
        )?;
        if old.executor != new.executor {
            self.mark_contexts_in(&old.slug)?;
        }
        for (field, old_value, new_value) in [
            ("title", old.title.as_str(), new.title.as_str()),
            ("default_branch", &old.default_branch, &new.default_branch),
            ("executor", old.executor.as_str(), new.executor.as_str()),
            ("external_ref", &old.external_ref, &new.external_ref),
            ("prefix", old.prefix.as_str(), new.prefix.as_str()),
        ] {
            if old_value == new_value {
                continue;
            }
            let changed = RigFieldChanged {
                field: Some(field.to_owned()),
                old: old_value.to_owned(),
                new: new_value.to_owned(),
            };
            self.record_rig(old, EventPayload::RigChanged(changed));
        }
        Ok(())
    }

    /// Removes a rig. Its beads stay, without one.
    pub fn delete_rig(&mut self, rig: &Rig) -> Result<(), StoreError> {
        self.execute(DELETE, &[rig.slug.as_str().into()])?;
        self.mark_contexts_in(&rig.slug)?;
        let named = RigNamed { prefix: rig.prefix.to_string(), repo: None };
        self.record_rig(rig, EventPayload::RigRemoved(named));
        Ok(())
    }

    fn record_rig(&mut self, rig: &Rig, payload: EventPayload) {
        self.record(NewEvent { bead: None, rig: Some(rig.slug.clone()), run: None, payload });
    }
}

fn rig_from(row: &dyn Row) -> Result<Rig, StoreError> {
    let text = |column| -> Result<String, StoreError> { Ok(row.text(column)?.to_owned()) };
    let uid = row
        .blob(1)?
        .try_into()
        .map_err(|_| StoreError::Corrupt("a uid that is not 16 bytes long".to_owned()))?;
    Ok(Rig {
        slug: RigSlug::trusted(text(0)?),
        uid: Uid::from_bytes(uid),
        prefix: Prefix::trusted(text(2)?),
        title: text(3)?,
        path: text(4)?,
        repo: text(5)?,
        default_branch: text(6)?,
        executor: ExecutorKind::parse(row.text(7)?)?,
        state: RigState::parse(row.text(8)?)?,
        external_ref: text(9)?,
        settings: Json::trusted(text(10)?),
        created_at: Timestamp::from_nanos(row.int(11)?),
        updated_at: Timestamp::from_nanos(row.int(12)?),
    })
}
