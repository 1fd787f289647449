//! Beads: reading one, writing one.

use gt_core::decide::{IdSeed, TargetFacts};
use gt_core::event::{BeadChanged, BeadCreated, BeadDeleted, ChangedFields, EdgeChange};
use gt_core::{
    Bead, BeadChangeKind, BeadId, Carried, Dependency, DependencyType, EventKind, EventPayload,
    IssueType, Json, NewEvent, Outcome, Prefix, Priority, RigSlug, Status, Timestamp, Title, Uid,
};

use super::convoys::membership;
use super::statements;
use crate::engine::{Param, Row};
use crate::transaction::UnusedId;
use crate::{Reader, StoreError, Writer};

/// The columns of a bead, in the order [`bead_from`] reads them.
pub(super) const COLUMNS: &str = "id, uid, rig, status, outcome, priority, issue_type, assignee, created_at, updated_at, \
        started_at, closed_at, due_at, defer_until, ephemeral, no_history, pinned, is_template, \
        estimated_minutes, title, owner, created_by, close_reason, external_ref, metadata, \
        description, design, acceptance_criteria, notes, carried, open_blockers";

statements! {
    INSERT = "INSERT INTO beads (id, uid, rig, status, outcome, priority, issue_type, assignee, \
        created_at, updated_at, started_at, closed_at, due_at, defer_until, ephemeral, \
        no_history, pinned, is_template, estimated_minutes, title, owner, created_by, \
        close_reason, external_ref, metadata, description, design, acceptance_criteria, notes, \
        carried, open_blockers) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, \
        ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30, ?31)";
    UPDATE = "UPDATE beads SET rig = ?2, status = ?3, outcome = ?4, priority = ?5, issue_type = ?6, \
        assignee = ?7, created_at = ?8, updated_at = ?9, started_at = ?10, closed_at = ?11, \
        due_at = ?12, defer_until = ?13, ephemeral = ?14, no_history = ?15, pinned = ?16, \
        is_template = ?17, estimated_minutes = ?18, title = ?19, owner = ?20, created_by = ?21, \
        close_reason = ?22, external_ref = ?23, metadata = ?24, description = ?25, design = ?26, \
        acceptance_criteria = ?27, notes = ?28, carried = ?29 WHERE id = ?1";
    DELETE = "DELETE FROM beads WHERE id = ?1";
    EXISTS = "SELECT 1 FROM beads WHERE id = ?1";
    ID_USES = "SELECT 1 FROM beads WHERE id = ?1 UNION ALL \
        SELECT 2 FROM (SELECT 1 FROM dependencies WHERE depends_on_id = ?1 LIMIT 1) awaited";
    BY_UID = "SELECT id FROM beads WHERE uid = ?1";
    FACTS = "SELECT status, outcome FROM beads WHERE id = ?1";
    CONTAINING = "SELECT id FROM beads WHERE lower(id) LIKE ?1 ESCAPE '\\' ORDER BY id LIMIT 200";
    TOUCH = "UPDATE beads SET updated_at = ?2 WHERE id = ?1 AND updated_at < ?2";
    PREFIX_COUNT = "SELECT beads FROM prefixes WHERE prefix = ?1";
    PREFIX_MORE = "INSERT INTO prefixes (prefix, beads) VALUES (?1, ?2) \
        ON CONFLICT (prefix) DO UPDATE SET beads = prefixes.beads + excluded.beads";
    PREFIX_LESS = "UPDATE prefixes SET beads = beads - 1 WHERE prefix = ?1 AND beads > 0";
    NAME_AND_RIG = "SELECT title, rig FROM beads WHERE id = ?1";
    LAST_CHILD = "SELECT last_child FROM beads WHERE id = ?1";
    SET_LAST_CHILD = "UPDATE beads SET last_child = ?2 WHERE id = ?1";
    KEEP_LAST_CHILD = "UPDATE beads SET last_child = ?2 WHERE id = ?1 AND last_child < ?2";
    TAKE = "UPDATE beads SET status = ?2, assignee = ?3, started_at = ?4, updated_at = ?5 WHERE id = ?1";
    CHILD_IDS = "SELECT id FROM beads WHERE id > ?1 AND id < ?2";
}

/// The statement that asks for a bead.
pub(super) fn one() -> String {
    format!("SELECT {COLUMNS} FROM beads WHERE id = ?1")
}

/// The blockers of a bead, by the action that would unblock it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BlockerFacts {
    /// Not over yet (or over, but with children that are not).
    pub open: Vec<BeadId>,
    /// Closed as failed.
    pub failed: Vec<BeadId>,
}

impl BlockerFacts {
    /// Brings them into the order in which people count.
    pub(super) fn sort(&mut self) {
        self.open.sort_by(BeadId::natural_order);
        self.failed.sort_by(BeadId::natural_order);
    }
}

impl Reader<'_> {
    /// The bead with exactly this id.
    pub fn bead(&self, id: &BeadId) -> Result<Option<Bead>, StoreError> {
        self.first(&one(), &[id.into()], bead_from)
    }

    /// Whether there is a bead with exactly this id.
    pub fn bead_exists(&self, id: &BeadId) -> Result<bool, StoreError> {
        self.any(EXISTS, &[id.into()])
    }

    /// The bead with this alias.
    pub fn bead_by_uid(&self, uid: &Uid) -> Result<Option<BeadId>, StoreError> {
        self.first(BY_UID, &[Param::Blob(uid.as_bytes())], |row| id_from(row, 0))
    }

    /// Ids that contain `text` somewhere after a `-` (anywhere, if it has one itself), at most 200.
    pub fn ids_containing(&self, text: &str) -> Result<Vec<BeadId>, StoreError> {
        let anywhere = super::find::contains(text);
        let pattern = if text.contains('-') { anywhere } else { format!("%-{anywhere}") };
        self.rows(CONTAINING, &[(&pattern).into()], |row| id_from(row, 0))
    }

    pub(super) fn facts_of(&self, id: &BeadId) -> Result<Option<TargetFacts>, StoreError> {
        self.first(FACTS, &[id.into()], |row| facts_from(row, 0))
    }

    /// A free id for a new bead: short, and longer only as the prefix fills up.
    pub fn free_id(&self, prefix: &Prefix, seed: &IdSeed<'_>) -> Result<BeadId, StoreError> {
        let ask = || self.number(PREFIX_COUNT, &[prefix.as_str().into()]);
        let count = match self.known() {
            Some(known) => known.ids_counted(prefix.as_str(), ask)?,
            None => ask()?,
        };
        for id in seed.candidates(prefix, u64::try_from(count).unwrap_or(0)) {
            if let Some(vacancy) = self.vacancy(&id)? {
                if let Some(known) = self.known() {
                    known.found_vacant(vacancy);
                }
                return Ok(id);
            }
        }
        Err(StoreError::Corrupt(format!("no free id is left for the prefix {prefix}")))
    }

    /// The facts about an unused id; nothing if a bead has it.
    fn vacancy(&self, id: &BeadId) -> Result<Option<UnusedId>, StoreError> {
        if let Some(vacancy) = self.known().and_then(|known| known.vacancy_of(id)) {
            return Ok(Some(vacancy));
        }
        let uses = self.rows(ID_USES, &[id.into()], |row| row.int(0))?;
        let awaited = uses.contains(&2);
        Ok((!uses.contains(&1)).then(|| UnusedId { id: id.clone(), awaited }))
    }
}

impl Writer<'_> {
    /// Adds a bead. Beads that already depend on its id are blocked by it from now on.
    pub fn insert_bead(&mut self, bead: &Bead, kind: EventKind) -> Result<(), StoreError> {
        let Some(vacancy) = self.vacancy(&bead.id)? else {
            return Err(StoreError::AlreadyExists(bead.id.clone()));
        };
        self.insert_row(bead, 0)?;
        if let Some(space) = bead.id_space() {
            self.count_ids(space, 1)?;
        }
        if vacancy.awaited {
            if bead.defer_until.is_some() {
                self.mark_parts_of(&bead.id)?;
            }
            self.refresh_edges_to(&bead.id)?;
            self.recount_around(&bead.id)?;
        }
        self.record_new(bead, &[], kind);
        Ok(())
    }

    /// Writes the row of a bead whose id is known to be free.
    pub(super) fn insert_row(&mut self, bead: &Bead, blockers: usize) -> Result<(), StoreError> {
        refuse_contradiction(bead)?;
        with_columns(bead, |columns| {
            let blockers = i64::try_from(blockers).unwrap_or(i64::MAX);
            let mut columns = columns.to_vec();
            columns.push(blockers.into());
            self.apply(INSERT, &columns)
        })
    }

    /// Counts `more` top-level ids of a pool.
    pub(super) fn count_ids(&mut self, space: &str, more: i64) -> Result<(), StoreError> {
        if let Some(known) = self.known() {
            known.count_ids(space, more);
        }
        self.apply(PREFIX_MORE, &[space.into(), more.into()])
    }

    /// Tells of a bead that is new here.
    pub(super) fn record_new(&mut self, bead: &Bead, edges: &[Dependency], kind: EventKind) {
        let dependencies = edges.iter().map(EdgeChange::added).collect();
        let created = BeadCreated { dependencies, ..BeadCreated::of(bead) };
        self.record(bead_event(bead, EventPayload::of_new(kind, created)));
    }

    /// Writes a changed bead. `kind` is the kind of change; the event lists the differences from `old`.
    /// Nothing is written when nothing differs. The containers of the bead count it anew and are marked; see
    /// [`Writer::take_touched_container`].
    pub fn save_bead(
        &mut self,
        old: &Bead,
        new: &Bead,
        kind: BeadChangeKind,
    ) -> Result<bool, StoreError> {
        let changes = ChangedFields::between(old, new);
        if changes.is_empty() {
            return Ok(false);
        }
        refuse_contradiction(new)?;
        let written = if is_only_taken(old, new) {
            self.execute(TAKE, &taken(new))?
        } else {
            with_columns(new, |columns| {
                let without_uid: Vec<Param<'_>> =
                    columns[..1].iter().chain(&columns[2..]).copied().collect();
                self.execute(UPDATE, &without_uid)
            })?
        };
        if written == 0 {
            return Err(StoreError::Corrupt(format!("{} is gone and cannot be changed", new.id)));
        }
        // An imported bead stays as it was elsewhere, and changes nothing that was imported before.
        let comes_in = kind == BeadChangeKind::Imported;
        // The cause before its effects: the events of unblocked beads come after it.
        self.record_changes(new, changes, kind);
        if decides_waits(old, new) {
            self.mark(&new.id);
        }
        if old.defer_until != new.defer_until {
            self.mark_parts_of(&new.id)?;
        }
        if old.issue_type != new.issue_type {
            self.recount(&new.id)?;
        }
        if (&old.status, old.outcome) != (&new.status, new.outcome) {
            self.refresh_after_state_of(&new.id)?;
            if new.status == Status::Closed {
                self.lift_limits(new)?;
            }
            let [before, after] = [old, new].map(TargetFacts::of);
            let touched = self.count_change(&new.id, &before, &after)?;
            for touched in touched.into_iter().filter(|_| !comes_in) {
                self.note_touched(touched);
            }
        }
        Ok(true)
    }

    /// Writes that an agent has a bead now that was open. It does less than [`Writer::save_bead`], because no edge
    /// depends on whether an open bead is being worked on, and the caller closes the context of the bead.
    pub(super) fn take_bead(&mut self, old: &Bead, new: &Bead) -> Result<(), StoreError> {
        self.apply(TAKE, &taken(new))?;
        self.record_changes(new, ChangedFields::between(old, new), BeadChangeKind::StatusChanged);
        Ok(())
    }

    fn record_changes(&mut self, new: &Bead, changes: ChangedFields, kind: BeadChangeKind) {
        let (title, changes) = (new.title.to_string(), Box::new(changes));
        let changed = BeadChanged { title, changes, dependencies: Vec::new() };
        self.record(bead_event(new, EventPayload::of_change(kind, changed)));
    }

    /// Tells of edges that came or went together with their bead: in the event of the bead if it is not written yet,
    /// else in an event of this kind.
    pub(super) fn record_edges_with_bead(
        &mut self,
        bead: &BeadId,
        mut edges: Vec<EdgeChange>,
        kind: BeadChangeKind,
    ) -> Result<(), StoreError> {
        edges.retain(|edge| edge.old != edge.new);
        if edges.is_empty() {
            return Ok(());
        }
        // The edges must not be told before an event that changes the same ones.
        let last = self.recorded_mut().iter_mut().rev().find_map(|event| {
            let is_about = event.bead.as_ref() == Some(bead);
            match &mut event.payload {
                EventPayload::Deleted(_) => Some(None),
                EventPayload::DependencyAdded(_)
                | EventPayload::DependencyChanged(_)
                | EventPayload::DependencyRemoved(_)
                    if is_about =>
                {
                    Some(None)
                }
                payload if is_about => payload.dependencies_mut().map(Some),
                _ => None,
            }
        });
        if let Some(Some(known)) = last {
            merge_edges(known, edges);
            return Ok(());
        }
        let named = self.first(NAME_AND_RIG, &[bead.into()], |row| {
            let rig = row.text_or_null(1)?.map(|slug| RigSlug::trusted(slug.to_owned()));
            Ok((row.text(0)?.to_owned(), rig))
        })?;
        let (title, rig) = named.unwrap_or_default();
        let changed = BeadChanged { title, changes: Box::default(), dependencies: edges };
        let payload = EventPayload::of_change(kind, changed);
        self.record(NewEvent { bead: Some(bead.clone()), rig, run: None, payload });
        Ok(())
    }

    /// Removes a bead, its labels, comments and every edge from and to it, and forgets the requests
    /// that made it.
    pub fn delete_bead(&mut self, bead: &Bead) -> Result<(), StoreError> {
        let (own, others) = (self.edges_from(&bead.id)?, self.edges_to(&bead.id)?);
        let payload = EventPayload::Deleted(BeadDeleted::of(bead, &own, &others));
        self.record(bead_event(bead, payload));
        self.as_consequence(|writer| writer.remove_bead(bead, &own, others))
    }

    fn remove_bead(
        &mut self,
        bead: &Bead,
        own: &[Dependency],
        others: Vec<Dependency>,
    ) -> Result<(), StoreError> {
        // It leaves its parents first, and the edges of waiting beads go before those of its parts: otherwise a waiting bead
        // would be told of a family that is only just falling apart.
        let (to_parents, own): (Vec<_>, Vec<_>) =
            own.iter().partition(|edge| edge.kind == DependencyType::ParentChild);
        for edge in to_parents {
            self.leave_parent(edge)?;
        }
        let (waiting, others): (Vec<_>, Vec<_>) =
            others.into_iter().partition(|edge| edge.kind.can_block());
        for edge in waiting.iter().chain(&others) {
            self.take_edge_away(edge)?;
        }
        // Its other edges go with it: nothing is unblocked by being deleted.
        for member in
            own.into_iter().filter_map(membership).filter(|(_, member)| **member == bead.id)
        {
            self.count_member(member, false)?;
        }
        self.lift_limits(bead)?;
        self.forget_requests(&bead.id)?;
        self.execute(DELETE, &[(&bead.id).into()])?;
        if let Some(space) = bead.id_space() {
            if let Some(known) = self.known() {
                known.count_ids(space, -1);
            }
            self.apply(PREFIX_LESS, &[space.into()])?;
        } else if let Some((parent, number)) = child_number(&bead.id) {
            self.apply(KEEP_LAST_CHILD, &[parent.into(), number.into()])?;
        }
        Ok(())
    }

    /// Notes that something around the bead changed just now.
    pub fn touch_bead(&mut self, id: &BeadId) -> Result<(), StoreError> {
        self.touch_bead_at(id, self.now())
    }

    /// Notes that the bead, or something around it, changed at this time; one that changed later stays
    /// as it is.
    pub fn touch_bead_at(&mut self, id: &BeadId, at: Timestamp) -> Result<(), StoreError> {
        self.apply(TOUCH, &[id.into(), at.into()])
    }

    /// The id of the next child of `parent`. Numbers of deleted children are not given again.
    pub fn next_child_id(&mut self, parent: &BeadId) -> Result<BeadId, StoreError> {
        let mut last = self.number(LAST_CHILD, &[parent.into()])?;
        if last == 0 {
            let (from, to) = (format!("{parent}."), format!("{parent}/"));
            let numbers = self.rows(CHILD_IDS, &[(&from).into(), (&to).into()], |row| {
                Ok(row.text(0)?[from.len()..].parse::<u32>().unwrap_or(0))
            })?;
            last = numbers.into_iter().max().unwrap_or(0).into();
        }
        while let Ok(number) = u32::try_from(last + 1) {
            last += 1;
            let id = parent.child(number);
            if !self.bead_exists(&id)? {
                self.apply(SET_LAST_CHILD, &[parent.into(), last.into()])?;
                return Ok(id);
            }
        }
        Err(StoreError::Corrupt(format!("no number is left for another child of {parent}")))
    }
}

/// The schema refuses it too, but on a server only later, when it would take others along.
fn refuse_contradiction(bead: &Bead) -> Result<(), StoreError> {
    let closed = bead.status == Status::Closed;
    if closed == bead.closed_at.is_some() && (closed || bead.outcome.is_none()) {
        return Ok(());
    }
    Err(StoreError::Corrupt(format!(
        "{} would be {}, closed at {:?}, as {:?}",
        bead.id, bead.status, bead.closed_at, bead.outcome
    )))
}

/// The parent's id and the number of `gt-abc.3`, as [`Writer::next_child_id`] would give it.
fn child_number(id: &BeadId) -> Option<(&str, i64)> {
    let (parent, number) = id.as_str().rsplit_once('.')?;
    Some((parent, number.parse::<u32>().ok()?.into()))
}

pub(super) fn bead_event(bead: &Bead, payload: EventPayload) -> NewEvent {
    NewEvent { bead: Some(bead.id.clone()), rig: bead.rig.clone(), run: None, payload }
}

pub(super) fn id_from(row: &dyn Row, column: usize) -> Result<BeadId, StoreError> {
    Ok(BeadId::trusted(row.text(column)?.to_owned()))
}

pub(super) fn facts_from(row: &dyn Row, column: usize) -> Result<TargetFacts, StoreError> {
    Ok(TargetFacts {
        status: Status::parse(row.text(column)?)?,
        outcome: row.text_or_null(column + 1)?.map(Outcome::parse).transpose()?,
    })
}

pub(super) fn carried_from(text: Option<&str>) -> Carried {
    text.and_then(|text| Json::trusted(text.to_owned()).fields()).unwrap_or_default()
}

pub(super) fn carried_text(carried: &Carried) -> Option<String> {
    (!carried.is_empty()).then(|| Json::object(carried).to_string())
}

/// Reads a bead from a row of [`COLUMNS`].
pub(super) fn bead_from(row: &dyn Row) -> Result<Bead, StoreError> {
    let instant =
        |column| -> Result<Timestamp, StoreError> { Ok(Timestamp::from_nanos(row.int(column)?)) };
    let maybe_instant = |column| -> Result<Option<Timestamp>, StoreError> {
        Ok(row.int_or_null(column)?.map(Timestamp::from_nanos))
    };
    let text = |column| -> Result<String, StoreError> { Ok(row.text(column)?.to_owned()) };
    let maybe_text = |column| -> Result<Option<String>, StoreError> {
        Ok(row.text_or_null(column)?.map(str::to_owned))
    };
    let small = |number: i64| {
        u32::try_from(number)
            .map_err(|_| StoreError::Corrupt(format!("{number} is not a small number")))
    };
    let uid = row
        .blob(1)?
        .try_into()
        .map_err(|_| StoreError::Corrupt("a uid that is not 16 bytes long".to_owned()))?;
    Ok(Bead {
        id: id_from(row, 0)?,
        uid: Uid::from_bytes(uid),
        rig: maybe_text(2)?.map(RigSlug::trusted),
        status: Status::parse(row.text(3)?)?,
        outcome: row.text_or_null(4)?.map(Outcome::parse).transpose()?,
        priority: Priority::new(row.int(5)?)?,
        issue_type: IssueType::trusted(text(6)?),
        assignee: text(7)?,
        created_at: instant(8)?,
        updated_at: instant(9)?,
        started_at: maybe_instant(10)?,
        closed_at: maybe_instant(11)?,
        due_at: maybe_instant(12)?,
        defer_until: maybe_instant(13)?,
        ephemeral: row.flag(14)?,
        no_history: row.flag(15)?,
        pinned: row.flag(16)?,
        is_template: row.flag(17)?,
        estimated_minutes: row.int_or_null(18)?.map(small).transpose()?,
        title: Title::trusted(text(19)?),
        owner: text(20)?,
        created_by: text(21)?,
        close_reason: text(22)?,
        external_ref: maybe_text(23)?,
        metadata: maybe_text(24)?.map(Json::trusted),
        description: text(25)?,
        design: text(26)?,
        acceptance_criteria: text(27)?,
        notes: text(28)?,
        carried: carried_from(row.text_or_null(29)?),
        open_blockers: small(row.int(30)?)?,
    })
}

/// Whether of what stands in the columns only that has changed which [`TAKE`] writes. That happens between every bead and
/// its worker, and a statement that writes all columns takes several times as long to prepare.
fn is_only_taken(old: &Bead, new: &Bead) -> bool {
    let Bead { status, assignee, started_at, updated_at, .. } = new.clone();
    Bead { status, assignee, started_at, updated_at, ..old.clone() } == *new
}

/// Whether the wait of a bead's context, or its place in line, may be another one after this change.
fn decides_waits(old: &Bead, new: &Bead) -> bool {
    old.status != new.status
        || old.assignee != new.assignee
        || old.issue_type != new.issue_type
        || old.priority != new.priority
        || old.defer_until != new.defer_until
        || (old.pinned, old.ephemeral) != (new.pinned, new.ephemeral)
}

/// The parameters of [`TAKE`].
fn taken(bead: &Bead) -> [Param<'_>; 5] {
    [
        (&bead.id).into(),
        bead.status.as_str().into(),
        (&bead.assignee).into(),
        bead.started_at.into(),
        bead.updated_at.into(),
    ]
}

/// Hands the columns of `bead` to `run`, in the order of [`COLUMNS`] without the derived last one.
fn with_columns<T>(bead: &Bead, run: impl FnOnce(&[Param<'_>]) -> T) -> T {
    let carried = carried_text(&bead.carried);
    run(&[
        (&bead.id).into(),
        Param::Blob(bead.uid.as_bytes()),
        bead.rig.as_ref().map(RigSlug::as_str).into(),
        bead.status.as_str().into(),
        bead.outcome.map(Outcome::as_str).into(),
        bead.priority.number().into(),
        bead.issue_type.as_str().into(),
        (&bead.assignee).into(),
        bead.created_at.into(),
        bead.updated_at.into(),
        bead.started_at.into(),
        bead.closed_at.into(),
        bead.due_at.into(),
        bead.defer_until.into(),
        bead.ephemeral.into(),
        bead.no_history.into(),
        bead.pinned.into(),
        bead.is_template.into(),
        bead.estimated_minutes.map(i64::from).into(),
        bead.title.as_str().into(),
        (&bead.owner).into(),
        (&bead.created_by).into(),
        (&bead.close_reason).into(),
        bead.external_ref.as_ref().into(),
        bead.metadata.as_ref().map(Json::as_str).into(),
        (&bead.description).into(),
        (&bead.design).into(),
        (&bead.acceptance_criteria).into(),
        (&bead.notes).into(),
        carried.as_ref().into(),
    ])
}

/// The names of the fields that differ; the time of the last change is not one.
pub fn differing_fields(old: &Bead, new: &Bead) -> Vec<&'static str> {
    ChangedFields::between(old, new).names()
}

/// Adds changes of edges to those that an event lists; a change that is undone is not listed.
fn merge_edges(known: &mut Vec<EdgeChange>, more: Vec<EdgeChange>) {
    // A convoy may bring ten thousand at once.
    if known.is_empty() {
        *known = more;
        return;
    }
    for edge in more {
        match known.iter().position(|known| known.depends_on_id == edge.depends_on_id) {
            Some(place) if known[place].old == edge.new => drop(known.remove(place)),
            Some(place) => known[place].new = edge.new,
            None => known.push(edge),
        }
    }
}
