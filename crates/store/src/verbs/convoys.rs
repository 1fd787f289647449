//! Convoys and epics: the counts of their members, and the limits of convoys.
//!
//! The states of the beads that a convoy tracks, or that are parts of an epic, are counted beside it. A verb that changes a
//! count marks the container ([`Writer::take_touched_container`]); the layer above decides whether it is over.

use std::collections::HashMap;

use gt_core::decide::{ConvoyState, Members, TargetFacts};
use gt_core::event::{
    BeadChanged, CapChange, ChangedFields, ConvoyTotals, EdgeChange, PauseChanged,
};
use gt_core::{
    Bead, BeadChangeKind, BeadId, Dependency, DependencyType, EventPayload, NewEvent, Outcome,
    RigSlug, Status, Timestamp,
};

use super::beads::id_from;
use super::contexts::count;
use super::hydrate::{IDS_PER_STATEMENT, placeholders};
use super::statements;
use crate::engine::{Param, Row};
use crate::{Pause, Reader, StoreError, Writer};

/// The columns of a tally, in the order [`tally_from`] reads them.
macro_rules! tally_columns {
    () => {
        "c.id, c.members, c.open_members, c.failed_members, c.landings, c.cap, c.paused_by, c.paused_at, c.fed_at"
    };
}

statements! {
    OF_BEAD = concat!("SELECT ", tally_columns!(), " FROM dependencies d JOIN convoys c ON c.id = d.issue_id \
        WHERE d.depends_on_id = ?1 AND d.type = 'tracks' \
        UNION ALL SELECT ", tally_columns!(), " FROM dependencies d JOIN convoys c ON c.id = d.depends_on_id \
        WHERE d.issue_id = ?1 AND d.type = 'parent-child' \
        UNION ALL SELECT m.id, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL FROM dependencies d \
        JOIN beads m ON m.id = d.depends_on_id AND m.issue_type = 'molecule' \
        WHERE d.issue_id = ?1 AND d.type = 'parent-child' ORDER BY 1");
    ONE = concat!("SELECT ", tally_columns!(), " FROM convoys c WHERE c.id = ?1");
    ALL = concat!("SELECT ", tally_columns!(), " FROM convoys c ORDER BY c.id");
    LIMITING = concat!("SELECT ", tally_columns!(), " FROM convoys c WHERE c.cap > 0 OR c.paused_at IS NOT NULL \
        ORDER BY c.id");
    COUNT_TRACKED = "SELECT COUNT(*), COALESCE(SUM(CASE WHEN b.status <> 'closed' THEN 1 ELSE 0 END), 0), \
        COALESCE(SUM(CASE WHEN b.status = 'closed' AND b.outcome = 'failed' THEN 1 ELSE 0 END), 0) \
        FROM dependencies d JOIN beads b ON b.id = d.depends_on_id WHERE d.issue_id = ?1 AND d.type = 'tracks'";
    COUNT_PARTS = "SELECT COUNT(*), COALESCE(SUM(CASE WHEN b.status <> 'closed' THEN 1 ELSE 0 END), 0), \
        COALESCE(SUM(CASE WHEN b.status = 'closed' AND b.outcome = 'failed' THEN 1 ELSE 0 END), 0) \
        FROM dependencies d JOIN beads b ON b.id = d.issue_id WHERE d.depends_on_id = ?1 AND d.type = 'parent-child'";
    PUT = "INSERT INTO convoys (id, members, open_members, failed_members, landings) VALUES (?1, ?2, ?3, ?4, ?5) \
        ON CONFLICT (id) DO UPDATE SET members = excluded.members, open_members = excluded.open_members, \
        failed_members = excluded.failed_members, landings = excluded.landings";
    LIMIT = "UPDATE convoys SET cap = ?2, paused_by = ?3, paused_at = ?4 WHERE id = ?1";
    FED = "UPDATE convoys SET fed_at = ?2 WHERE id = ?1";
    COUNTED_ONES = "SELECT c.id FROM beads c WHERE c.issue_type = 'convoy' AND EXISTS \
        (SELECT 1 FROM dependencies d WHERE d.issue_id = c.id AND d.type = 'tracks') \
        UNION ALL SELECT c.id FROM beads c WHERE c.issue_type = 'epic' AND EXISTS \
        (SELECT 1 FROM dependencies d WHERE d.depends_on_id = c.id AND d.type = 'parent-child') ORDER BY 1";
    CAPPED_RUNS = "SELECT r.bead, c.id FROM runs r JOIN dependencies d ON d.depends_on_id = r.bead AND d.type = 'tracks' \
        JOIN convoys c ON c.id = d.issue_id AND c.cap > 0 \
        WHERE r.state IN ('starting', 'running', 'blocked') ORDER BY r.bead, c.id";
    IDLE = concat!("SELECT ", tally_columns!(), " FROM beads v JOIN convoys c ON c.id = v.id \
        WHERE v.issue_type = 'convoy' AND v.status <> 'closed' AND v.status NOT LIKE 'staged%' \
        AND c.members > 0 AND c.open_members = 0 ORDER BY c.id");
    PAUSED = "SELECT d.depends_on_id, c.id, c.paused_by, c.paused_at FROM convoys c \
        JOIN dependencies d ON d.issue_id = c.id AND d.type = 'tracks' \
        WHERE c.paused_at IS NOT NULL ORDER BY d.depends_on_id, c.id";
}

/// The open convoys whose unscheduled beads are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unscheduled<'a> {
    /// Members of all convoys.
    Anywhere,
    /// Members of this convoy.
    In(&'a BeadId),
    /// This bead, in all convoys.
    Bead(&'a BeadId),
    /// The beads of this rig, in all convoys.
    Of(&'a RigSlug),
}

/// The counts and limits of a convoy or an epic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConvoyTally {
    /// The convoy, or the epic.
    pub convoy: BeadId,
    /// How the beads stand that it tracks.
    pub members: Members,
    /// How often it has landed.
    pub landings: u64,
    /// How many of its beads may be worked on at once; 0 for any number.
    pub cap: u32,
    /// Nothing of it starts while this is set.
    pub paused: Option<Pause>,
    /// When stranded members of it were last scheduled.
    pub fed_at: Option<Timestamp>,
}

impl ConvoyTally {
    /// The tally of a convoy without limits.
    fn plain(convoy: &BeadId, members: Members) -> Self {
        let convoy = convoy.clone();
        Self { convoy, members, landings: 0, cap: 0, paused: None, fed_at: None }
    }

    /// Whether anything of it may have to wait because of it.
    pub fn limits(&self) -> bool {
        self.cap > 0 || self.paused.is_some()
    }
}

fn tally_from(row: &dyn Row) -> Result<ConvoyTally, StoreError> {
    let members =
        Members { total: count(row.int(1)?), open: count(row.int(2)?), failed: count(row.int(3)?) };
    let paused = match (row.text_or_null(6)?, row.int_or_null(7)?) {
        (Some(by), Some(at)) => Some(Pause { by: by.to_owned(), at: Timestamp::from_nanos(at) }),
        _ => None,
    };
    Ok(ConvoyTally {
        convoy: id_from(row, 0)?,
        members,
        landings: count(row.int(4)?),
        cap: u32::try_from(row.int(5)?).unwrap_or(u32::MAX),
        paused,
        fed_at: row.int_or_null(8)?.map(Timestamp::from_nanos),
    })
}

/// How one bead counts: open, and failed.
fn counts(facts: &TargetFacts) -> (u64, u64) {
    let is_closed = facts.status == Status::Closed;
    let is_failed = is_closed && facts.outcome == Some(Outcome::Failed);
    (u64::from(!is_closed), u64::from(is_failed))
}

/// The bead that counts members, and its member, of an edge that makes one.
pub(super) fn membership(edge: &Dependency) -> Option<(&BeadId, &BeadId)> {
    match edge.kind {
        DependencyType::Tracks => Some((&edge.issue, &edge.target)),
        DependencyType::ParentChild => Some((&edge.target, &edge.issue)),
        _ => None,
    }
}

impl Reader<'_> {
    /// For each of these beads that a convoy tracks which is not over: that convoy, the first by its id.
    pub fn open_convoys_of(&self, beads: &[BeadId]) -> Result<HashMap<BeadId, BeadId>, StoreError> {
        let mut found = HashMap::new();
        for page in beads.chunks(IDS_PER_STATEMENT) {
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

    /// These beads with each convoy that tracks them, also if it is over.
    pub fn convoys_of(&self, beads: &[BeadId]) -> Result<Vec<(BeadId, BeadId)>, StoreError> {
        let mut found = Vec::new();
        for page in beads.chunks(IDS_PER_STATEMENT) {
            let (list, params) = placeholders(page);
            let sql = format!(
                "SELECT d.depends_on_id, d.issue_id FROM dependencies d \
                 JOIN beads b ON b.id = d.issue_id \
                 WHERE d.depends_on_id IN ({list}) AND d.type = 'tracks' \
                 AND b.issue_type = 'convoy' ORDER BY d.depends_on_id, d.issue_id"
            );
            let pair = |row: &dyn Row| Ok((id_from(row, 0)?, id_from(row, 1)?));
            found.extend(self.rows(&sql, &params, pair)?);
        }
        Ok(found)
    }

    /// The tally of a convoy; nothing if it has never tracked anything.
    pub fn convoy_tally(&self, convoy: &BeadId) -> Result<Option<ConvoyTally>, StoreError> {
        self.first(ONE, &[convoy.into()], tally_from)
    }

    /// The tally of every convoy.
    pub fn convoy_tallies(&self) -> Result<Vec<ConvoyTally>, StoreError> {
        self.rows(ALL, &[], tally_from)
    }

    /// The tally of every convoy that is paused or has a cap.
    pub fn limiting_convoys(&self) -> Result<Vec<ConvoyTally>, StoreError> {
        self.rows(LIMITING, &[], tally_from)
    }

    /// The beads with a live run that are in convoys with a cap, with each of those.
    pub fn runs_under_convoy_caps(&self) -> Result<Vec<(BeadId, BeadId)>, StoreError> {
        self.rows(CAPPED_RUNS, &[], |row| Ok((id_from(row, 0)?, id_from(row, 1)?)))
    }

    /// The beads that convoys track which are paused, each before its convoy.
    pub fn paused_members(&self) -> Result<Vec<(BeadId, BeadId, Pause)>, StoreError> {
        self.rows(PAUSED, &[], |row| {
            let pause =
                Pause { by: row.text(2)?.to_owned(), at: Timestamp::from_nanos(row.int(3)?) };
            Ok((id_from(row, 0)?, id_from(row, 1)?, pause))
        })
    }

    /// The open beads that a convoy under way tracks and that are not scheduled, each behind its convoy.
    pub fn unscheduled_members(
        &self,
        which: Unscheduled<'_>,
    ) -> Result<Vec<(BeadId, BeadId)>, StoreError> {
        let (condition, params): (&str, Vec<Param<'_>>) = match which {
            Unscheduled::Anywhere => ("", Vec::new()),
            Unscheduled::In(convoy) => (" AND c.id = ?1", vec![convoy.into()]),
            Unscheduled::Bead(bead) => (" AND d.depends_on_id = ?1", vec![bead.into()]),
            Unscheduled::Of(rig) => (" AND b.rig = ?1", vec![rig.as_str().into()]),
        };
        let sql = format!(
            "SELECT d.issue_id, b.id FROM convoys c JOIN beads v ON v.id = c.id \
             JOIN dependencies d ON d.issue_id = c.id AND d.type = 'tracks' JOIN beads b ON b.id = d.depends_on_id \
             WHERE c.open_members > 0 AND v.issue_type = 'convoy' AND v.status <> 'closed' \
             AND v.status NOT LIKE 'staged%' AND b.status = 'open'{condition} \
             AND COALESCE(CAST(v.metadata -> 'auto' AS TEXT), '') <> 'true' \
             AND NOT EXISTS (SELECT 1 FROM contexts x WHERE x.bead = b.id AND x.closed_at IS NULL) \
             ORDER BY d.issue_id, b.id"
        );
        self.rows(&sql, &params, |row| Ok((id_from(row, 0)?, id_from(row, 1)?)))
    }

    /// The convoys that are under way although nothing of them is open: the first look for those that should land.
    pub fn convoys_without_open_members(&self) -> Result<Vec<ConvoyTally>, StoreError> {
        self.rows(IDLE, &[], tally_from)
    }

    /// Counts the states of the beads that a convoy tracks, or that are parts of any other bead.
    pub fn count_members(&self, container: &Bead) -> Result<Members, StoreError> {
        let sql = if container.issue_type.is_convoy() { COUNT_TRACKED } else { COUNT_PARTS };
        let counted = self.first(sql, &[(&container.id).into()], |row| {
            Ok(Members {
                total: count(row.int(0)?),
                open: count(row.int(1)?),
                failed: count(row.int(2)?),
            })
        })?;
        Ok(counted.unwrap_or_default())
    }

    /// The convoys that track something, and the epics that have parts.
    pub(super) fn counted_containers(&self) -> Result<Vec<BeadId>, StoreError> {
        self.rows(COUNTED_ONES, &[], |row| id_from(row, 0))
    }
}

impl Writer<'_> {
    /// Lets a convoy track these beads, each named once, to which it has no edge yet. Such an edge never blocks, so
    /// nothing has to be asked. The event of the convoy lists them.
    pub fn track(&mut self, convoy: &BeadId, beads: &[BeadId]) -> Result<(), StoreError> {
        let mut added = Vec::new();
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
            self.mark(bead);
            added.push(EdgeChange::added(&edge));
        }
        // Whether a worker may do this is judged by the events of the beads that it schedules.
        self.as_consequence(|writer| {
            writer.record_edges_with_bead(convoy, added, BeadChangeKind::Updated)
        })?;
        self.recount(convoy)
    }

    /// Counts again the states of the beads that a convoy tracks, or that are parts of an epic.
    pub(super) fn recount(&mut self, id: &BeadId) -> Result<(), StoreError> {
        let container = self.bead(id)?.filter(is_counted);
        let Some(container) = container else { return Ok(()) };
        let members = self.count_members(&container)?;
        self.note_touched(TouchedContainer::counted(id, members, true));
        let landings = self.convoy_tally(id)?.map_or(0, |tally| tally.landings);
        self.put_tally(&ConvoyTally { landings, ..ConvoyTally::plain(id, members) })
    }

    /// Counts one bead more or less, without counting the ten thousand others again.
    pub(super) fn count_member(
        &mut self,
        (container, member): (&BeadId, &BeadId),
        joins: bool,
    ) -> Result<(), StoreError> {
        let Some(mut tally) = self.convoy_tally(container)? else { return self.recount(container) };
        // Only beads that are there count.
        if let Some(facts) = self.facts_of(member)? {
            let (open, failed) = counts(&facts);
            let Members { total, open: all_open, failed: all_failed } = &mut tally.members;
            for (all, one) in [(total, 1), (all_open, open), (all_failed, failed)] {
                *all = if joins { *all + one } else { all.saturating_sub(one) };
            }
            self.put_tally(&tally)?;
        }
        self.note_touched(TouchedContainer::counted(container, tally.members, joins));
        Ok(())
    }

    /// Counts again every convoy or epic that counts this new bead, and the members of the bead itself.
    pub(super) fn recount_around(&mut self, bead: &BeadId) -> Result<(), StoreError> {
        let edges = self.edges_to(bead)?.into_iter();
        for edge in edges.filter(|edge| edge.kind == DependencyType::Tracks) {
            self.recount(&edge.issue)?;
        }
        self.recount(bead)
    }

    /// Says how many beads of a convoy may be worked on at once (0 for any number), and whether nothing of it starts.
    pub fn limit_convoy(
        &mut self,
        convoy: &Bead,
        cap: u32,
        paused: Option<&Pause>,
    ) -> Result<(), StoreError> {
        let before = if let Some(tally) = self.convoy_tally(&convoy.id)? {
            tally
        } else {
            self.recount(&convoy.id)?;
            ConvoyTally::plain(&convoy.id, Members::default())
        };
        let (by, at) = (paused.map(|pause| pause.by.as_str()), paused.map(|pause| pause.at));
        self.mark_members_of(&convoy.id)?;
        self.apply(LIMIT, &[(&convoy.id).into(), i64::from(cap).into(), by.into(), at.into()])?;
        let bead = Some(convoy.id.clone());
        let title = convoy.title.to_string();
        if before.paused.is_some() != paused.is_some() {
            let changed = PauseChanged { title: Some(title.clone()) };
            let payload = if paused.is_some() {
                EventPayload::Paused(changed)
            } else {
                EventPayload::Resumed(changed)
            };
            self.record(NewEvent { bead: bead.clone(), rig: None, run: None, payload });
        }
        if before.cap != cap {
            let cap = Some(CapChange { from: before.cap, to: cap });
            let changes = Box::new(ChangedFields { cap, ..ChangedFields::default() });
            let changed = BeadChanged { title, changes, dependencies: Vec::new() };
            let payload = EventPayload::Updated(changed);
            self.record(NewEvent { bead, rig: None, run: None, payload });
        }
        Ok(())
    }

    /// Notes that the stranded members of a convoy were scheduled just now.
    pub fn note_fed(&mut self, convoy: &BeadId) -> Result<(), StoreError> {
        self.apply(FED, &[convoy.into(), self.now().into()])
    }

    /// A convoy that is over, or goes, holds up no bead any more. A landed convoy keeps its limits, because it is
    /// open again with the first of its beads.
    pub(super) fn lift_limits(&mut self, convoy: &Bead) -> Result<(), StoreError> {
        if !convoy.issue_type.is_convoy() {
            return Ok(());
        }
        let is_landed = ConvoyState::of(convoy) == ConvoyState::Landed;
        match self.convoy_tally(&convoy.id)? {
            Some(tally) if tally.limits() && (tally.members.open > 0 || !is_landed) => {
                self.limit_convoy(convoy, 0, None)
            }
            _ => Ok(()),
        }
    }

    fn put_tally(&mut self, tally: &ConvoyTally) -> Result<(), StoreError> {
        let ConvoyTally { convoy, members, landings, .. } = tally;
        let numbers = [members.total, members.open, members.failed, *landings];
        let [total, open, failed, landings] =
            numbers.map(|number| i64::try_from(number).unwrap_or(i64::MAX));
        let params = [convoy.into(), total.into(), open.into(), failed.into(), landings.into()];
        self.apply(PUT, &params)
    }

    /// Counts a bead whose state has changed for every convoy that tracks it and for its epic. Returns them, and the
    /// molecules that the bead is a step of.
    pub(super) fn count_change(
        &mut self,
        bead: &BeadId,
        before: &TargetFacts,
        after: &TargetFacts,
    ) -> Result<Vec<TouchedContainer>, StoreError> {
        let ((was_open, was_failed), (is_open, is_failed)) = (counts(before), counts(after));
        if (was_open, was_failed) == (is_open, is_failed) {
            return Ok(Vec::new());
        }
        let less_is_done = was_open + was_failed == 0;
        let mut touched = Vec::new();
        for (id, tally) in self.rows(OF_BEAD, &[bead.into()], container_from)? {
            let mut members = None;
            if let Some(mut tally) = tally {
                let Members { open, failed, .. } = &mut tally.members;
                *open = (*open + is_open).saturating_sub(was_open);
                *failed = (*failed + is_failed).saturating_sub(was_failed);
                self.put_tally(&tally)?;
                members = Some(tally.members);
            }
            touched.push(TouchedContainer { id, members, less_is_done });
        }
        Ok(touched)
    }

    /// Closes a convoy as landed, counts the landing and tells of it. `new` is the convoy as it is then.
    pub fn land_convoy(&mut self, old: &Bead, new: &Bead) -> Result<(), StoreError> {
        let tally = self.convoy_tally(&old.id)?;
        let tally = tally.unwrap_or_else(|| ConvoyTally::plain(&old.id, Members::default()));
        let landings = tally.landings + 1;
        self.put_tally(&ConvoyTally { landings, ..tally.clone() })?;
        self.save_bead(old, new, BeadChangeKind::Closed)?;
        let spent = self.spent_by_members(&old.id)?;
        let payload = EventPayload::ConvoyLanded(ConvoyTotals {
            title: old.title.to_string(),
            landing: landings,
            members: tally.members.total,
            failed: tally.members.failed,
            open: tally.members.open,
            since: old.created_at,
            seconds: self.now().since(old.created_at).as_secs(),
            tokens: spent.known_tokens(),
            cost: spent.known_cost().map(|cost| cost.to_string()),
        });
        self.record(NewEvent { bead: Some(old.id.clone()), rig: None, run: None, payload });
        Ok(())
    }
}

/// A convoy, an epic or a molecule whose members have changed in this transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TouchedContainer {
    /// The container.
    pub id: BeadId,
    /// The states of its members now; nothing for a molecule, whose steps are not counted beside it.
    pub members: Option<Members>,
    /// A member joined, or a member that was done is not done any more.
    pub less_is_done: bool,
}

impl TouchedContainer {
    fn counted(id: &BeadId, members: Members, less_is_done: bool) -> Self {
        Self { id: id.clone(), members: Some(members), less_is_done }
    }
}

/// A container of a bead; with its tally if its members are counted.
fn container_from(row: &dyn Row) -> Result<(BeadId, Option<ConvoyTally>), StoreError> {
    let is_counted = row.int_or_null(1)?.is_some();
    Ok((id_from(row, 0)?, is_counted.then(|| tally_from(row)).transpose()?))
}

/// Whether the members of a bead are counted.
fn is_counted(bead: &Bead) -> bool {
    bead.issue_type.is_convoy() || bead.issue_type.is_epic()
}
