//! Settings.

use gt_core::decide::WorkerRights;
use gt_core::event::SettingValues;
use gt_core::settings::{Layers, SettingOrigin};
use gt_core::{EventPayload, Invalid, settings};

use super::statements;
use crate::{Reader, StoreError, Writer};

statements! {
    ALL = "SELECT key, value FROM settings WHERE scope = ?1 ORDER BY key";
    ONE = "SELECT value FROM settings WHERE scope = ?1 AND key = ?2";
    PUT = "INSERT INTO settings (scope, key, value, updated_at, updated_by) \
        VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (scope, key) DO UPDATE SET \
        value = excluded.value, updated_at = excluded.updated_at, updated_by = excluded.updated_by";
    DELETE = "DELETE FROM settings WHERE scope = ?1 AND key = ?2";
    MARKS = "SELECT key, value FROM settings WHERE scope = 'store' AND key IN ('town', 'fence')";
    PUT_MARK_SQL = "INSERT INTO settings (scope, key, value, updated_at, updated_by) VALUES ('store', ?1, ?2, ?3, 'gt') \
        ON CONFLICT (scope, key) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at";
    REMOVE_MARK_SQL = "DELETE FROM settings WHERE scope = 'store' AND key = ?1";
}

/// Writes one of the store's own facts.
pub(crate) const PUT_MARK: &str = PUT_MARK_SQL;
/// Removes one of the store's own facts.
pub(crate) const REMOVE_MARK: &str = REMOVE_MARK_SQL;

/// The owner of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingScope {
    /// The typed settings of the town.
    Town,
    /// The settings of `bd config`.
    Beads,
    /// The memories of an imported file.
    Memory,
    /// The store's own facts.
    Store,
    /// The values of `bd kv`.
    Values,
    /// Imported data for a capability that uses it later.
    Imported,
    /// The records of beads that were deleted, by their ids.
    Tombstone,
    /// The environments of accounts that were removed: their keys still stand in the logs of runs.
    FormerAccount,
}

impl SettingScope {
    fn as_str(self) -> &'static str {
        match self {
            Self::Town => "gt",
            Self::Beads => "bd",
            Self::Memory => "memory",
            Self::Store => "store",
            Self::Values => "kv",
            Self::Imported => "import",
            Self::Tombstone => "tombstone",
            Self::FormerAccount => "former-account",
        }
    }
}

/// A condition in SQL: `work.claim` lets an agent have any item that fits. `below` says so in the layers below the store's.
///
/// It is a part of the one statement that makes an offer, because a statement more would cost every claim a round trip.
pub(super) fn any_item_may_be_claimed(below: bool) -> &'static str {
    if below {
        "NOT EXISTS (SELECT 1 FROM settings s WHERE s.scope = 'gt' AND s.key = 'work.claim' AND s.value = 'dispatched')"
    } else {
        "EXISTS (SELECT 1 FROM settings s WHERE s.scope = 'gt' AND s.key = 'work.claim' AND s.value = 'any')"
    }
}

impl Reader<'_> {
    /// The settings in force: those in the store over the layers below it. An inner error names a wrong value.
    pub fn settings_over(&self, below: &Layers) -> Result<Result<Layers, Invalid>, StoreError> {
        let set = self.settings(SettingScope::Town)?;
        let mut layers = below.clone();
        Ok(layers.add(set, &SettingOrigin::Store).map(|()| layers))
    }

    /// The rights of workers beyond their own work. They are set in the store alone: workers can write files.
    pub(super) fn worker_rights(&self) -> Result<WorkerRights, StoreError> {
        let text = self.setting(SettingScope::Town, "worker.rights")?.unwrap_or_default();
        WorkerRights::parse(&text).map_err(|invalid| StoreError::Corrupt(invalid.0))
    }

    /// Everything that was set.
    pub fn settings(&self, scope: SettingScope) -> Result<Vec<(String, String)>, StoreError> {
        self.rows(ALL, &[scope.as_str().into()], |row| {
            Ok((row.text(0)?.to_owned(), row.text(1)?.to_owned()))
        })
    }

    /// One value, if it was set.
    pub fn setting(&self, scope: SettingScope, key: &str) -> Result<Option<String>, StoreError> {
        let params = [scope.as_str().into(), key.into()];
        self.first(ONE, &params, |row| Ok(row.text(0)?.to_owned()))
    }
}

impl Writer<'_> {
    /// Sets a value, or removes it; says whether that changed anything.
    pub fn put_setting(
        &mut self,
        scope: SettingScope,
        key: &str,
        value: Option<&str>,
    ) -> Result<bool, StoreError> {
        let old = self.setting(scope, key)?;
        if old.as_deref() == value {
            return Ok(false);
        }
        let name = [scope.as_str().into(), key.into()];
        match value {
            Some(value) => {
                let [scope, key] = name;
                let params = [scope, key, value.into(), self.now().into(), self.actor().into()];
                self.execute(PUT, &params)?
            }
            None => self.execute(DELETE, &name)?,
        };
        // Nothing happened in the town, or the deletion of the bead or of the account tells it.
        if matches!(
            scope,
            SettingScope::Store | SettingScope::Tombstone | SettingScope::FormerAccount
        ) {
            return Ok(true);
        }
        let text = |value: &str| match scope {
            // Imported data of other tools may hold keys to accounts; the log lives longer.
            SettingScope::Imported => "…".to_owned(),
            SettingScope::Town => settings::shown(key, value).into_owned(),
            _ => value.to_owned(),
        };
        self.record_of_town(EventPayload::SettingChanged(SettingValues {
            scope: scope.as_str().to_owned(),
            key: key.to_owned(),
            old: old.as_deref().map(text),
            new: value.map(text),
        }));
        Ok(true)
    }
}
