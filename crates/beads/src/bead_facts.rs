//! The facts that readiness depends on besides the bead itself.

use std::collections::{BTreeSet, HashMap};

use gt_core::decide::{ReadinessFacts, SchedulingFacts};
use gt_core::merging::{AcceptedBlocker, MergeRequest};
use gt_core::schedule::Run;
use gt_core::{Bead, BeadId, RigSlug, Timestamp};
use gt_store::{BeadRow, BlockerFacts, Reader};

use gt_town::Result;

/// The surroundings of a bead that readiness looks at.
pub struct BeadFacts {
    blockers: BlockerFacts,
    parent_deferred: Option<(Timestamp, BeadId)>,
    request: Option<MergeRequest>,
    /// The open blockers whose work is accepted and has not landed.
    accepted: Vec<AcceptedBlocker>,
}

impl BeadFacts {
    /// The merge request of the bead that is not over.
    pub fn request(&self) -> Option<&MergeRequest> {
        self.request.as_ref()
    }

    /// The open blockers, without those from whose accepted commits work for this branch of a rig can begin.
    pub fn blockers_unless_accepted(&self, rig: &RigSlug, target: &str) -> Vec<BeadId> {
        let begin = AcceptedBlocker::to_begin_from(&self.accepted, rig, target);
        let left = self.blockers.open.iter();
        left.filter(|bead| begin.iter().all(|begin| begin.bead != **bead)).cloned().collect()
    }

    /// Of a bead whose edges are known.
    pub fn of_row(reader: &Reader<'_>, row: &BeadRow) -> Result<Self> {
        Self::of(reader, &row.bead, row.parents())
    }

    /// Of many beads whose edges are known, in their order; asked a page at a time.
    pub fn of_rows(reader: &Reader<'_>, rows: &[&BeadRow]) -> Result<Vec<Self>> {
        let blocked = rows.iter().filter(|row| row.bead.open_blockers > 0);
        let blocked: Vec<BeadId> = blocked.map(|row| row.bead.id.clone()).collect();
        let mut blockers = reader.blockers_of(&blocked)?;
        let mut accepted = reader.accepted_blockers_of(&blocked)?;
        let parents: BTreeSet<&BeadId> = rows.iter().flat_map(|row| row.parents()).collect();
        let parents: Vec<BeadId> = parents.into_iter().cloned().collect();
        let dates = reader.defer_dates_of(&parents)?;
        let requests = reader.open_merge_requests()?;
        let mut requests: HashMap<BeadId, MergeRequest> =
            requests.into_iter().map(|request| (request.id.bead.clone(), request)).collect();
        let facts = |row: &&BeadRow| {
            let deferred =
                row.parents().filter_map(|parent| Some((*dates.get(parent)?, parent.clone())));
            let blockers = blockers.remove(&row.bead.id).unwrap_or_default();
            let request = requests.remove(&row.bead.id);
            let accepted = accepted.remove(&row.bead.id).unwrap_or_default();
            Self { blockers, parent_deferred: deferred.max(), request, accepted }
        };
        Ok(rows.iter().map(facts).collect())
    }

    /// The beads that block it now, the failed ones last.
    pub fn blocked_by(&self) -> impl Iterator<Item = &BeadId> {
        self.blockers.open.iter().chain(&self.blockers.failed)
    }

    /// Of a bead alone.
    pub fn of_bead(reader: &Reader<'_>, bead: &Bead) -> Result<Self> {
        let parents = reader.parents(&bead.id)?;
        Self::of(reader, bead, parents.iter())
    }

    fn of<'p>(
        reader: &Reader<'_>,
        bead: &Bead,
        parents: impl Iterator<Item = &'p BeadId>,
    ) -> Result<Self> {
        let blockers = if bead.open_blockers > 0 {
            reader.blockers(&bead.id)?
        } else {
            BlockerFacts::default()
        };
        let mut parent_deferred = None;
        for parent in parents {
            let until = reader.bead(parent)?.and_then(|parent| parent.defer_until);
            parent_deferred = parent_deferred.max(until.map(|until| (until, parent.clone())));
        }
        let request = reader.open_merge_request(&bead.id)?;
        let accepted = if blockers.open.is_empty() {
            Vec::new()
        } else {
            let mut accepted = reader.accepted_blockers_of(std::slice::from_ref(&bead.id))?;
            accepted.remove(&bead.id).unwrap_or_default()
        };
        Ok(Self { blockers, parent_deferred, request, accepted })
    }

    /// The facts that readiness depends on.
    pub fn readiness<'a>(&'a self, bead: &'a Bead) -> ReadinessFacts<'a> {
        ReadinessFacts {
            status: &bead.status,
            issue_type: &bead.issue_type,
            pinned: bead.pinned,
            ephemeral: bead.ephemeral,
            defer_until: bead.defer_until,
            parent_deferred: self.parent_deferred.as_ref().map(|(until, parent)| (parent, *until)),
            open_blockers: &self.blockers.open,
            failed_blockers: &self.blockers.failed,
        }
    }

    /// The facts on which a start depends.
    pub fn scheduling<'a>(&'a self, bead: &'a Bead, run: Option<&'a Run>) -> SchedulingFacts<'a> {
        SchedulingFacts {
            readiness: self.readiness(bead),
            assignee: &bead.assignee,
            run,
            paused: None,
            request: self.request.as_ref(),
        }
    }
}
