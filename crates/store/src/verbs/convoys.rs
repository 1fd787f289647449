//! Convoys: beads that track others, so that these can be looked after together.
//!
//! How the beads stand that a convoy tracks is kept beside it: the change of one of them counts, and the one that completes
//! it lets it land in the same transaction.

use std::collections::HashMap;

use gt_core::decide::{
    ConvoyChange, ConvoyState, LANDED, Members, TargetFacts, convoy_change, is_owned,
};
use gt_core::{
    Bead, BeadId, Dependency, DependencyType, EventKind, Json, NewEvent, Outcome, Status,
};

use super::beads::id_from;
use super::contexts::count;
use super::hydrate::{PAGE, placeholders};
use super::statements;
use crate::engine::Row;
use crate::{Reader, StoreError, Writer};

statements! {
    OF_BEAD = "SELECT c.id, c.members, c.open_members, c.failed_members, c.landings FROM dependencies d \
        JOIN convoys c ON c.id = d.issue_id WHERE d.depends_on_id = ?1 AND d.type = 'tracks' ORDER BY c.id";
    ONE = "SELECT id, members, open_members, failed_members, landings FROM convoys WHERE id = ?1";
    ALL = "SELECT id, members, open_members, failed_members, landings FROM convoys ORDER BY id";
    COUNTED = "SELECT COUNT(*), COALESCE(SUM(CASE WHEN b.status <> 'closed' THEN 1 ELSE 0 END), 0), \
        COALESCE(SUM(CASE WHEN b.status = 'closed' AND b.outcome = 'failed' THEN 1 ELSE 0 END), 0) \
        FROM dependencies d JOIN beads b ON b.id = d.depends_on_id WHERE d.issue_id = ?1 AND d.type = 'tracks'";
    PUT = "INSERT INTO convoys (id, members, open_members, failed_members, landings) VALUES (?1, ?2, ?3, ?4, ?5) \
        ON CONFLICT (id) DO UPDATE SET members = excluded.members, open_members = excluded.open_members, \
        failed_members = excluded.failed_members, landings = excluded.landings";
    WITH_TRACKS = "SELECT c.id FROM beads c WHERE c.issue_type = 'convoy' AND EXISTS \
        (SELECT 1 FROM dependencies d WHERE d.issue_id = c.id AND d.type = 'tracks') ORDER BY c.id";
}

/// What is kept beside a convoy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tally {
    /// The convoy.
    pub convoy: BeadId,
    /// How the beads stand that it tracks.
    pub members: Members,
    /// How often it has landed.
    pub landings: u64,
}

fn tally_from(row: &dyn Row) -> Result<Tally, StoreError> {
    let members =
        Members { total: count(row.int(1)?), open: count(row.int(2)?), failed: count(row.int(3)?) };
    Ok(Tally { convoy: id_from(row, 0)?, members, landings: count(row.int(4)?) })
}

/// How one bead counts.
fn counts(facts: &TargetFacts) -> (u64, u64) {
    let is_closed = facts.status == Status::Closed;
    let is_failed = is_closed && facts.outcome == Some(Outcome::Failed);
    (u64::from(!is_closed), u64::from(is_failed))
}

impl Reader<'_> {
    /// For each of these beads that a convoy tracks which is not over: that convoy, the first by its id.
    pub fn open_convoys_of(&self, beads: &[BeadId]) -> Result<HashMap<BeadId, BeadId>, StoreError> {
        let mut found = HashMap::new();
        for page in beads.chunks(PAGE) {
            let (list, params) = placeholders(page);
            let sql = format!(
                "SELECT d.depends_on_id, d.issue_id FROM dependencies d \
                 JOIN beads b ON b.id = d.issue_id \
                 WHERE d.depends_on_id IN ({list}) AND d.type = 'tracks' \
                 AND b.issue_type = 'convoy' AND b.status <> 'closed' ORDER BY d.issue_id"
            );
            let pairs = self.rows(&sql, &params, |row| Ok((id_from(row, 0)?, id_from(row, 1)?)))?;
            for (bead, convoy) in pairs {
                found.entry(bead).or_insert(convoy);
            }
        }
        Ok(found)
    }

    /// What is kept beside a convoy; nothing if it has never tracked anything.
    pub fn convoy_tally(&self, convoy: &BeadId) -> Result<Option<Tally>, StoreError> {
        self.first(ONE, &[convoy.into()], tally_from)
    }

    /// What is kept beside every convoy.
    pub fn convoy_tallies(&self) -> Result<Vec<Tally>, StoreError> {
        self.rows(ALL, &[], tally_from)
    }

    /// Counts how the beads stand that a convoy tracks.
    pub(super) fn count_members(&self, convoy: &BeadId) -> Result<Members, StoreError> {
        let counted = self.first(COUNTED, &[convoy.into()], |row| {
            Ok(Members {
                total: count(row.int(0)?),
                open: count(row.int(1)?),
                failed: count(row.int(2)?),
            })
        })?;
        Ok(counted.unwrap_or_default())
    }

    /// The convoys that track something.
    pub(super) fn tracking_convoys(&self) -> Result<Vec<BeadId>, StoreError> {
        self.rows(WITH_TRACKS, &[], |row| id_from(row, 0))
    }
}

impl Writer<'_> {
    /// Lets a convoy track these beads, each named once, to which it has no edge yet. Such an edge never blocks, so
    /// nothing has to be asked; the convoy itself is what is told about.
    pub fn track(&mut self, convoy: &BeadId, beads: &[BeadId]) -> Result<(), StoreError> {
        for bead in beads {
            let edge = Dependency {
                issue: convoy.clone(),
                target: bead.clone(),
                kind: DependencyType::Tracks,
                created_at: self.now(),
                created_by: self.actor().to_owned(),
                metadata: String::new(),
                thread_id: String::new(),
                carried: Vec::new(),
            };
            self.insert_edge(&edge, false)?;
        }
        self.recount(convoy)
    }

    /// Counts again how the beads stand that a convoy tracks. What follows from it is not done: others decide whether it may.
    pub(super) fn recount(&mut self, convoy: &BeadId) -> Result<(), StoreError> {
        if !self.bead(convoy)?.is_some_and(|bead| bead.issue_type.is_convoy()) {
            return Ok(());
        }
        let members = self.count_members(convoy)?;
        let landings = self.convoy_tally(convoy)?.map_or(0, |tally| tally.landings);
        self.put_tally(&Tally { convoy: convoy.clone(), members, landings })
    }

    /// Counts again for every convoy that tracks this bead, which has just come.
    pub(super) fn recount_convoys_of(&mut self, bead: &BeadId) -> Result<(), StoreError> {
        let edges = self.edges_to(bead)?.into_iter();
        for edge in edges.filter(|edge| edge.kind == DependencyType::Tracks) {
            self.recount(&edge.issue)?;
        }
        Ok(())
    }

    fn put_tally(&mut self, tally: &Tally) -> Result<(), StoreError> {
        let Tally { convoy, members, landings } = tally;
        let numbers = [members.total, members.open, members.failed, *landings];
        let [total, open, failed, landings] =
            numbers.map(|number| i64::try_from(number).unwrap_or(i64::MAX));
        let params = [convoy.into(), total.into(), open.into(), failed.into(), landings.into()];
        self.apply(PUT, &params)
    }

    /// Counts a bead that stands differently now for every convoy that tracks it.
    pub(super) fn count_change(
        &mut self,
        bead: &BeadId,
        before: &TargetFacts,
        after: &TargetFacts,
    ) -> Result<Vec<Tally>, StoreError> {
        let ((was_open, was_failed), (is_open, is_failed)) = (counts(before), counts(after));
        if (was_open, was_failed) == (is_open, is_failed) {
            return Ok(Vec::new());
        }
        let mut tallies = self.rows(OF_BEAD, &[bead.into()], tally_from)?;
        for tally in &mut tallies {
            let Members { open, failed, .. } = &mut tally.members;
            *open = (*open + is_open).saturating_sub(was_open);
            *failed = (*failed + is_failed).saturating_sub(was_failed);
            self.put_tally(tally)?;
        }
        Ok(tallies)
    }

    /// Does what follows for a convoy from how its members stand.
    pub fn settle_convoy(&mut self, tally: &Tally) -> Result<Option<ConvoyChange>, StoreError> {
        let old = self.bead(&tally.convoy)?.filter(|bead| bead.issue_type.is_convoy());
        let Some(old) = old else { return Ok(None) };
        let change = convoy_change(ConvoyState::of(&old), is_owned(&old), tally.members);
        match change {
            None => {}
            Some(ConvoyChange::Lands) => self.land_convoy(&old, tally)?,
            Some(ConvoyChange::Reopens) => {
                let new = Bead {
                    status: Status::Open,
                    outcome: None,
                    closed_at: None,
                    close_reason: String::new(),
                    updated_at: self.now().max(old.updated_at),
                    ..old.clone()
                };
                self.save_bead(&old, &new, EventKind::Reopened)?;
            }
        }
        Ok(change)
    }

    /// Closes a convoy because everything it tracks is done, and tells so.
    pub fn land_convoy(&mut self, old: &Bead, tally: &Tally) -> Result<(), StoreError> {
        let now = self.now();
        let new = Bead {
            status: Status::Closed,
            outcome: Some(Outcome::Success),
            closed_at: Some(now),
            close_reason: LANDED.to_owned(),
            updated_at: now.max(old.updated_at),
            ..old.clone()
        };
        let landings = tally.landings + 1;
        self.put_tally(&Tally { landings, ..tally.clone() })?;
        self.save_bead(old, &new, EventKind::Closed)?;
        let number = |number: u64| Json::trusted(number.to_string());
        let payload = [
            ("title", Json::string(old.title.as_str())),
            ("landing", number(landings)),
            ("members", number(tally.members.total)),
            ("since", Json::string(&old.created_at.to_string())),
        ];
        let payload = Json::object(&payload.map(|(name, value)| (name.to_owned(), value)));
        let bead = Some(old.id.clone());
        self.record(NewEvent {
            kind: EventKind::ConvoyLanded,
            bead,
            rig: None,
            run: None,
            payload,
        });
        Ok(())
    }
}
