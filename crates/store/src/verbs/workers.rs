//! The check that every write of a worker passes before it is committed.

use std::cell::RefCell;
use std::collections::HashSet;

use gt_core::decide::{
    BeadRelation, Right, WorkerProof, WorkerRights, admit_worker, check_refused, right_needed,
    right_refused, table_right,
};
use gt_core::schedule::{Run, RunId};
use gt_core::work::TokenHash;
use gt_core::{BeadId, EventPayload, NewEvent};

use super::statements;
use crate::{Proof, Reader, StoreError, Worker, Writer};

statements! {
    TOKEN = "SELECT token_hash FROM runs WHERE bead = ?1 AND epoch = ?2";
    OF_TOKEN = "SELECT bead, epoch FROM runs WHERE token_hash = ?1 AND token_hash <> '' LIMIT 1";
    SET_TOKEN = "UPDATE runs SET token_hash = ?3 WHERE bead = ?1 AND epoch = ?2 AND state IN ('running', 'blocked')";
    PARENTS = "SELECT depends_on_id FROM dependencies WHERE issue_id = ?1 AND type = 'parent-child'";
    CREATOR = "SELECT worker FROM run_beads WHERE bead = ?1";
    CREATED = "INSERT INTO run_beads (bead, worker) VALUES (?1, ?2) ON CONFLICT (bead) DO NOTHING";
}

/// The value that the store writes for runs that an older program has started.
const STARTED_BEFORE_TOKENS: &str = "older";

/// A worker whose writes are being checked.
#[derive(Debug)]
pub(crate) struct WorkerGuard {
    run: RunId,
    rights: WorkerRights,
    /// How many of the waiting events were checked.
    checked: usize,
    /// The store follows up on the worker's change, and is not limited by its rights.
    is_consequence: bool,
    created: HashSet<BeadId>,
    /// Beads that were the worker's before this transaction changed their edges.
    kin: RefCell<HashSet<BeadId>>,
    /// Edges of this transaction. They make no bead the worker's own.
    new_edges: HashSet<(BeadId, BeadId)>,
}

impl Reader<'_> {
    /// The run of a worker that is still heard, or the sentence that it is not.
    pub fn worker_run(&self, worker: &Worker) -> Result<Run, StoreError> {
        let id = &worker.run;
        if let Proof::Check(name) = &worker.proof {
            return Err(StoreError::Worker(check_refused(name)));
        }
        let run = self.run(id)?;
        let is_live = run.as_ref().is_some_and(|run| run.state.is_live());
        let live = if is_live { None } else { self.live_run(&id.bead)? };
        let evidence = self.evidence(worker, run.as_ref())?;
        admit_worker(id, run.as_ref(), live.as_ref(), evidence)
            .map_err(|refusal| StoreError::Worker(refusal.0))?;
        run.ok_or_else(|| StoreError::Worker(format!("this town has no run {id}")))
    }

    fn evidence(&self, worker: &Worker, run: Option<&Run>) -> Result<WorkerProof, StoreError> {
        let shown = match &worker.proof {
            Proof::Vouched => return Ok(WorkerProof::Valid),
            Proof::Token(hash) => Some(hash),
            Proof::Missing | Proof::Check(_) => None,
        };
        // No process of ours is the worker of such a run, so that none has a token to show.
        let has_no_process = run.is_some_and(|run| !run.executor.takes_slot());
        let params = [worker.bead().into(), i64::from(worker.run.epoch).into()];
        let kept = self.first(TOKEN, &params, |row| Ok(row.text(0)?.to_owned()))?;
        Ok(match (kept.as_deref(), shown) {
            (Some(STARTED_BEFORE_TOKENS), None) => WorkerProof::Valid,
            (_, None) if has_no_process => WorkerProof::Valid,
            (_, None) => WorkerProof::Missing,
            (kept, Some(shown)) => {
                let kept = kept.and_then(TokenHash::from_digits);
                let is_same = kept.is_some_and(|kept| kept.matches(shown));
                if is_same { WorkerProof::Valid } else { WorkerProof::Wrong }
            }
        })
    }

    /// The run, live or over, whose token has this hash.
    pub fn run_of_token(&self, hash: &TokenHash) -> Result<Option<RunId>, StoreError> {
        self.first(OF_TOKEN, &[(&hash.digits()).into()], |row| {
            let epoch = u32::try_from(row.int(1)?)
                .map_err(|_| StoreError::Corrupt("an epoch that is no small number".to_owned()))?;
            Ok(RunId { bead: super::beads::id_from(row, 0)?, epoch })
        })
    }

    /// Refuses a worker that is not heard any more, and one that lacks this right.
    pub fn require_right(
        &self,
        worker: &Worker,
        right: Right,
        change: &str,
    ) -> Result<(), StoreError> {
        self.worker_run(worker)?;
        if self.worker_rights()?.allow(right) {
            return Ok(());
        }
        Err(StoreError::Worker(right_refused(&worker.run, right, change)))
    }

    pub(crate) fn guard(&self, worker: &Worker) -> Result<WorkerGuard, StoreError> {
        self.worker_run(worker)?;
        Ok(WorkerGuard {
            run: worker.run.clone(),
            rights: self.worker_rights()?,
            checked: 0,
            is_consequence: false,
            created: HashSet::new(),
            kin: RefCell::default(),
            new_edges: HashSet::new(),
        })
    }

    /// How a bead is related to the worker. The walk goes up to the parents; edges of this transaction do not count,
    /// because a worker could adopt any bead with one.
    fn kinship(&self, guard: &WorkerGuard, bead: &BeadId) -> Result<BeadRelation, StoreError> {
        let own = &guard.run.bead;
        if bead == own {
            return Ok(BeadRelation::Own);
        }
        let mut waiting = vec![bead.clone()];
        let mut seen = HashSet::new();
        while let Some(bead) = waiting.pop() {
            if bead == *own || guard.created.contains(&bead) || guard.kin.borrow().contains(&bead) {
                return Ok(BeadRelation::Offspring);
            }
            if !seen.insert(bead.clone()) {
                continue;
            }
            let creator =
                self.first(CREATOR, &[(&bead).into()], |row| Ok(row.text(0)?.to_owned()))?;
            if creator.is_some_and(|creator| creator == own.as_str()) {
                return Ok(BeadRelation::Offspring);
            }
            let parents =
                self.rows(PARENTS, &[(&bead).into()], |row| super::beads::id_from(row, 0))?;
            let is_old =
                |parent: &BeadId| !guard.new_edges.contains(&(bead.clone(), parent.clone()));
            waiting.extend(parents.into_iter().filter(is_old));
        }
        Ok(BeadRelation::Stranger)
    }
}

impl WorkerGuard {
    /// The events that were checked are written, and wait no more.
    pub(crate) fn forget_checked(&mut self) {
        self.checked = 0;
    }

    fn refuse(&self, right: Right, change: &str) -> Result<(), StoreError> {
        if self.is_consequence || self.rights.allow(right) {
            return Ok(());
        }
        Err(StoreError::Worker(right_refused(&self.run, right, change)))
    }

    /// Refuses a statement on a table that needs a right that the worker lacks.
    pub(crate) fn check_statement(&self, sql: &str) -> Result<(), StoreError> {
        let Some(table) = written_table(sql) else { return Ok(()) };
        match table_right(table) {
            Some(right) => self.refuse(right, &format!("a change of the town's {table}")),
            None => Ok(()),
        }
    }
}

/// The table that a statement writes.
fn written_table(sql: &str) -> Option<&str> {
    let mut words = sql.split_whitespace();
    while let Some(word) = words.next() {
        match word {
            "INTO" | "UPDATE" => return words.next().filter(|table| *table != "SET"),
            "DELETE" => {
                words.next();
                return words.next();
            }
            _ => {}
        }
    }
    None
}

impl Writer<'_> {
    /// Gives a run that has a worker this token; the token before it is void. `false` if the run has no worker.
    pub fn set_run_token(&mut self, run: &RunId, hash: &TokenHash) -> Result<bool, StoreError> {
        let digits = hash.digits();
        let params = [(&run.bead).into(), i64::from(run.epoch).into(), (&digits).into()];
        self.touch_run(run)?;
        Ok(self.execute(SET_TOKEN, &params)? > 0)
    }

    /// Applies the consequences of a change. The worker's changes so far are checked first; the consequences are the
    /// store's own.
    pub fn as_consequence<T, E: From<StoreError>>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, E>,
    ) -> Result<T, E> {
        self.check_worker()?;
        let before = self.set_consequence(true);
        let done = work(self);
        self.set_consequence(before);
        done
    }

    fn set_consequence(&mut self, is_consequence: bool) -> bool {
        let events = self.recorded().len();
        self.guard_mut().is_some_and(|guard| {
            guard.checked = events;
            std::mem::replace(&mut guard.is_consequence, is_consequence)
        })
    }

    /// Checks a write to a run that tells no event.
    pub(super) fn touch_run(&self, run: &RunId) -> Result<(), StoreError> {
        let Some(guard) = self.guard() else { return Ok(()) };
        if guard.run == *run || self.kinship(guard, &run.bead)? != BeadRelation::Stranger {
            return Ok(());
        }
        guard.refuse(Right::Queue, &format!("a change of {run}"))
    }

    /// Checks a write to a bead that tells no event.
    pub(super) fn touch_kin(&self, bead: &BeadId) -> Result<(), StoreError> {
        let Some(guard) = self.guard().filter(|guard| !guard.is_consequence) else { return Ok(()) };
        // The event that tells of a new bead comes with it, or after it.
        let is_new = |event: &NewEvent| {
            matches!(event.payload, EventPayload::Created(_)) && event.bead.as_ref() == Some(bead)
        };
        if self.recorded().iter().any(is_new) {
            return Ok(());
        }
        if self.kinship(guard, bead)? != BeadRelation::Stranger {
            guard.kin.borrow_mut().insert(bead.clone());
            return Ok(());
        }
        guard.refuse(Right::Beads, &format!("a change of {bead}"))
    }

    /// Notes an edge that this transaction writes, after it was checked.
    pub(super) fn note_edge(&mut self, issue: &BeadId, target: &BeadId) {
        if let Some(guard) = self.guard_mut() {
            guard.new_edges.insert((issue.clone(), target.clone()));
        }
    }

    /// Checks the worker's changes since the last check.
    pub(crate) fn check_worker(&mut self) -> Result<(), StoreError> {
        let Some(guard) = self.guard() else { return Ok(()) };
        let (first, own) = (guard.checked, guard.run.clone());
        let events: Vec<NewEvent> = self.recorded().get(first..).unwrap_or_default().to_vec();
        let created: Vec<BeadId> = events
            .iter()
            .filter(|event| matches!(event.payload, EventPayload::Created(_)))
            .filter_map(|event| event.bead.clone())
            .collect();
        if let Some(guard) = self.guard_mut() {
            guard.created.extend(created.iter().cloned());
        }
        for event in &events {
            let Some(guard) = self.guard() else { break };
            let kinship = match &event.bead {
                Some(bead) => self.kinship(guard, bead)?,
                None => BeadRelation::Stranger,
            };
            if let Some(right) = right_needed(&own, event, kinship) {
                guard.refuse(right, &change_in_words(event))?;
            }
        }
        for bead in &created {
            // A bead may be created and deleted in one transaction.
            if self.bead_exists(bead)? {
                self.apply(CREATED, &[bead.into(), (&own.bead).into()])?;
            }
        }
        let checked = first + events.len();
        if let Some(guard) = self.guard_mut() {
            guard.checked = checked;
        }
        Ok(())
    }
}

fn change_in_words(event: &NewEvent) -> String {
    let kind = event.kind().as_str().replace('_', " ");
    match (&event.bead, &event.rig) {
        (Some(bead), _) => format!("the change \"{kind}\" of {bead}"),
        (None, Some(rig)) => format!("the change \"{kind}\" of the rig {rig}"),
        (None, None) => format!("the change \"{kind}\""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_statement_that_writes_names_its_table() {
        let names: HashSet<&str> = crate::TABLES.iter().map(|table| table.name).collect();
        for sql in super::super::all_statements() {
            let writes = ["INSERT ", "UPDATE ", "DELETE "].iter().any(|verb| sql.starts_with(verb));
            let table = written_table(sql).filter(|table| names.contains(table));
            assert_eq!(writes, table.is_some(), "{sql}");
        }
    }

    #[test]
    fn only_known_tables_are_open_to_workers() {
        let open: Vec<&str> = crate::TABLES
            .iter()
            .map(|table| table.name)
            .filter(|table| table_right(table).is_none())
            .collect();
        for closed in ["settings", "rigs", "tokens", "accounts", "scheduler", "hosts", "lanes"] {
            assert!(!open.contains(&closed), "{closed}");
        }
        assert!(open.contains(&"beads") && open.contains(&"messages"), "{open:?}");
    }
}
