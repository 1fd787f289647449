//! Trees that were moved to the trash, and rescues of others.

use gt_core::event::{RescuedWork, TreeDeadline, TreePlace};
use gt_core::schedule::{Rescued, RunId, TrashState, Trashed};
use gt_core::{EventPayload, Json, NewEvent, RigSlug, Timestamp};

use super::beads::id_from;
use super::contexts::{as_int, count};
use super::polecats::run_or_none;
use super::settings::SettingScope;
use super::statements;
use crate::engine::Row;
use crate::{Reader, StoreError, Writer};

macro_rules! trash_columns {
    () => {
        "number, rig, name, host, path, branch, run, reason, state, moved_at, moved_by, purge_at"
    };
}

macro_rules! rescue_columns {
    () => {
        "bead, epoch, rig, host, reference, saved, base, bytes, left_out, created_at"
    };
}

statements! {
    NEXT = "UPDATE counters SET value = value + 1 WHERE name = 'trash'";
    NUMBER = "SELECT value FROM counters WHERE name = 'trash'";
    INSERT = concat!("INSERT INTO trash (", trash_columns!(), ") \
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)");
    SET_STATE = "UPDATE trash SET state = ?2, path = ?3 WHERE number = ?1";
    KEPT = concat!("SELECT ", trash_columns!(), " FROM trash WHERE state IN ('moving', 'kept') ORDER BY number DESC");
    PUT_RESCUE = concat!("INSERT INTO rescues (", rescue_columns!(), ") \
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) ON CONFLICT (bead, epoch) DO UPDATE SET host = excluded.host, \
        reference = excluded.reference, saved = excluded.saved, base = excluded.base, bytes = excluded.bytes, \
        left_out = excluded.left_out, created_at = excluded.created_at");
    RESCUES = concat!("SELECT ", rescue_columns!(), " FROM rescues ORDER BY created_at DESC, bead, epoch");
    RESCUE = concat!("SELECT ", rescue_columns!(), " FROM rescues WHERE bead = ?1 AND epoch = ?2");
}

impl Reader<'_> {
    /// The trees that are, or are about to be, moved away, the last first.
    pub fn trash(&self) -> Result<Vec<Trashed>, StoreError> {
        self.rows(KEPT, &[], trashed_from)
    }

    /// When the deletion of a tree was announced, if it was.
    pub fn purge_announced_at(&self, trashed: &Trashed) -> Result<Option<Timestamp>, StoreError> {
        let told = self.setting(SettingScope::Store, &announced_key(trashed.number))?;
        Ok(told.map(|told| Timestamp::parse(&told)).transpose()?)
    }

    /// The rescues, the last first.
    pub fn rescues(&self) -> Result<Vec<Rescued>, StoreError> {
        self.rows(RESCUES, &[], rescued_from)
    }

    /// The rescue of a run.
    pub fn rescue_of(&self, run: &RunId) -> Result<Option<Rescued>, StoreError> {
        self.first(RESCUE, &[(&run.bead).into(), i64::from(run.epoch).into()], rescued_from)
    }
}

impl Writer<'_> {
    /// Writes down that a tree is about to be moved away, and gives it its number.
    pub fn insert_trash(&mut self, trashed: &Trashed) -> Result<Trashed, StoreError> {
        self.apply(NEXT, &[])?;
        let trashed = Trashed { number: count(self.number(NUMBER, &[])?), ..trashed.clone() };
        let run = trashed.run.as_ref().map(ToString::to_string).unwrap_or_default();
        self.execute(
            INSERT,
            &[
                as_int(trashed.number).into(),
                trashed.rig.as_str().into(),
                (&trashed.name).into(),
                (&trashed.host).into(),
                (&trashed.path).into(),
                (&trashed.branch).into(),
                (&run).into(),
                (&trashed.reason).into(),
                trashed.state.as_str().into(),
                trashed.moved_at.into(),
                (&trashed.moved_by).into(),
                trashed.purge_at.into(),
            ],
        )?;
        Ok(trashed)
    }

    /// Writes down the state and the place of a tree that was moved to the trash.
    pub fn set_trash_state(
        &mut self,
        trashed: &Trashed,
        state: TrashState,
    ) -> Result<(), StoreError> {
        let params = [as_int(trashed.number).into(), state.as_str().into(), (&trashed.path).into()];
        self.execute(SET_STATE, &params)?;
        if !matches!(state, TrashState::Moving | TrashState::Kept) {
            self.put_setting(SettingScope::Store, &announced_key(trashed.number), None)?;
        }
        let place = TreePlace {
            polecat: trashed.name.clone(),
            path: trashed.path.clone(),
            reason: trashed.reason.clone(),
        };
        let payload = match state {
            TrashState::Moving => return Ok(()),
            TrashState::Kept => EventPayload::TreeMoved(place),
            TrashState::Restored => EventPayload::TreeRestored(place),
            TrashState::Purged => EventPayload::TreePurged(place),
        };
        let bead = trashed.run.as_ref().map(|run| run.bead.clone());
        let (rig, run) = (Some(trashed.rig.clone()), trashed.run.clone());
        self.record(NewEvent { bead, rig, run, payload });
        Ok(())
    }

    /// Announces that a tree is deleted after `until`.
    pub fn announce_purge(
        &mut self,
        trashed: &Trashed,
        until: Timestamp,
    ) -> Result<(), StoreError> {
        let now = self.now().to_string();
        self.put_setting(SettingScope::Store, &announced_key(trashed.number), Some(&now))?;
        let payload = EventPayload::TreeDue(TreeDeadline {
            polecat: trashed.name.clone(),
            path: trashed.path.clone(),
            number: trashed.number.to_string(),
            until,
        });
        let bead = trashed.run.as_ref().map(|run| run.bead.clone());
        let (rig, run) = (Some(trashed.rig.clone()), trashed.run.clone());
        self.record(NewEvent { bead, rig, run, payload });
        Ok(())
    }

    /// Writes down the rescue of a run; a second time replaces the first.
    pub fn put_rescue(&mut self, rescued: &Rescued) -> Result<(), StoreError> {
        let left_out: Vec<Json> = rescued.left_out.iter().map(|line| Json::string(line)).collect();
        let left_out = Json::array(&left_out);
        self.execute(
            PUT_RESCUE,
            &[
                (&rescued.run.bead).into(),
                i64::from(rescued.run.epoch).into(),
                rescued.rig.as_str().into(),
                (&rescued.host).into(),
                (&rescued.reference).into(),
                (&rescued.commit).into(),
                (&rescued.base).into(),
                as_int(rescued.bytes).into(),
                left_out.as_str().into(),
                rescued.created_at.into(),
            ],
        )?;
        let payload = EventPayload::Rescued(RescuedWork {
            reference: rescued.reference.clone(),
            commit: rescued.commit.clone(),
            left_out: rescued.left_out.clone(),
        });
        self.record(NewEvent {
            bead: Some(rescued.run.bead.clone()),
            rig: Some(rescued.rig.clone()),
            run: Some(rescued.run.clone()),
            payload,
        });
        Ok(())
    }
}

/// Where it is noted that people were told of a tree.
fn announced_key(number: u64) -> String {
    format!("trash.told.{number}")
}

fn trashed_from(row: &dyn Row) -> Result<Trashed, StoreError> {
    let text = |column| -> Result<String, StoreError> { Ok(row.text(column)?.to_owned()) };
    Ok(Trashed {
        number: count(row.int(0)?),
        rig: RigSlug::trusted(text(1)?),
        name: text(2)?,
        host: text(3)?,
        path: text(4)?,
        branch: text(5)?,
        run: run_or_none(row.text(6)?)?,
        reason: text(7)?,
        state: TrashState::parse(row.text(8)?)?,
        moved_at: Timestamp::from_nanos(row.int(9)?),
        moved_by: text(10)?,
        purge_at: Timestamp::from_nanos(row.int(11)?),
    })
}

fn rescued_from(row: &dyn Row) -> Result<Rescued, StoreError> {
    let text = |column| -> Result<String, StoreError> { Ok(row.text(column)?.to_owned()) };
    let damaged = || StoreError::Corrupt("what was left out of a rescue".to_owned());
    let left_out = Json::trusted(text(8)?).elements().ok_or_else(damaged)?;
    let left_out = left_out.iter().map(|line| line.to_text().ok_or_else(damaged));
    let epoch = u32::try_from(row.int(1)?).map_err(|_| damaged())?;
    Ok(Rescued {
        run: RunId { bead: id_from(row, 0)?, epoch },
        rig: RigSlug::trusted(text(2)?),
        host: text(3)?,
        reference: text(4)?,
        commit: text(5)?,
        base: text(6)?,
        bytes: count(row.int(7)?),
        left_out: left_out.collect::<Result<_, _>>()?,
        created_at: Timestamp::from_nanos(row.int(9)?),
    })
}
