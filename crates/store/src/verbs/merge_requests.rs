//! Merge requests, their candidates, queues and reviews.

use std::collections::HashMap;

use gt_core::event::{QueueChange, RequestChange, ReviewDetails};
use gt_core::merging::{
    AcceptedBlocker, Candidate, CandidatePart, CandidateState, MergeMethod, MergeRequest,
    MergeRequestId, PullRequestName, QueueStop, RequestPurpose, RequestState, Review,
    ReviewDecision,
};
use gt_core::{BeadId, EventPayload, NewEvent, RigSlug, Timestamp};

use super::beads::id_from;
use super::contexts::{as_int, count};
use super::hydrate::{IDS_PER_STATEMENT, placeholders, placeholders_after};
use super::statements;
use crate::engine::{Param, Row};
use crate::{Reader, StoreError, Writer};

/// The columns of a request, in the order [`request_from`] reads them.
macro_rules! request_columns {
    () => {
        "bead, number, epoch, rig, target, branch, accepted, base, merge, review, state, held, detail, position, top, \
         fix, tries, rebuilds, candidate, landed, retry_at, pull_branch, pull_number, pull_address, created_at, changed_at, check_run, purpose"
    };
}

/// The columns of a request and, after them, what stops its queue.
macro_rules! read_columns {
    () => {
        concat!(
            request_columns!(),
            ", (SELECT q.paused_at FROM merge_queues q WHERE q.rig = merge_requests.rig AND q.target = merge_requests.target), \
             (SELECT q.paused_by FROM merge_queues q WHERE q.rig = merge_requests.rig AND q.target = merge_requests.target), \
             (SELECT q.red_check FROM merge_queues q WHERE q.rig = merge_requests.rig AND q.target = merge_requests.target \
             AND q.red_since IS NOT NULL), \
             (SELECT MIN(m.bead) FROM dependencies d JOIN merge_requests m ON m.bead = d.depends_on_id \
             AND m.purpose = 'work' AND m.rig = merge_requests.rig AND m.target = merge_requests.target \
             AND (m.state NOT IN ('landed', 'cancelled', 'superseded') OR (m.state = 'cancelled' AND EXISTS \
             (SELECT 1 FROM runs r WHERE r.bead = merge_requests.bead AND r.created_at BETWEEN m.created_at AND m.changed_at))) \
             WHERE d.issue_id = merge_requests.bead AND d.type = 'blocks' AND d.blocking = 1 \
             AND merge_requests.state = 'queued')"
        )
    };
}

macro_rules! open {
    () => {
        "state NOT IN ('landed', 'cancelled', 'superseded')"
    };
}

macro_rules! candidate_columns {
    () => {
        "number, rig, target, base, tip, tree, state, builder, created_at, changed_at"
    };
}

macro_rules! review_columns {
    () => {
        "number, bead, request, actor, decision, accepted, base, file, line, body, created_at"
    };
}

macro_rules! queue_columns {
    () => {
        "rig, target, builder, lease_s, paused_at, paused_by, red_commit, red_check, red_since"
    };
}

statements! {
    ONE = concat!("SELECT ", read_columns!(), " FROM merge_requests WHERE bead = ?1 AND number = ?2");
    OF_BEAD = concat!("SELECT ", read_columns!(), " FROM merge_requests WHERE bead = ?1 ORDER BY number DESC");
    OPEN_OF = concat!("SELECT ", read_columns!(), " FROM merge_requests WHERE bead = ?1 AND ", open!());
    OPEN = concat!("SELECT ", read_columns!(), " FROM merge_requests WHERE ", open!(), " ORDER BY rig, target, position");
    LINE = concat!("SELECT ", read_columns!(), " FROM merge_requests WHERE rig = ?1 AND target = ?2 AND ", open!(),
        " ORDER BY position");
    IN_REVIEW = "SELECT COUNT(*) FROM merge_requests WHERE state = 'review'";
    LANDED_AS = concat!("SELECT ", read_columns!(), " FROM merge_requests WHERE state = 'landed' AND landed >= ?1 \
        AND landed < ?2 ORDER BY position DESC LIMIT ?3");
    LANDED_ON = concat!("SELECT ", read_columns!(), " FROM merge_requests WHERE target = ?1 AND state = 'landed' \
        ORDER BY position");
    PAGE = concat!("SELECT ", read_columns!(), " FROM merge_requests WHERE position < ?1 AND (?2 = '' OR rig = ?2) \
        AND (?3 = '' OR state = ?3 OR (?3 = 'open' AND ", open!(), ")) ORDER BY position DESC LIMIT ?4");
    LAST_NUMBER = "SELECT COALESCE(MAX(number), 0) FROM merge_requests WHERE bead = ?1";
    INSERT = concat!("INSERT INTO merge_requests (", request_columns!(), ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, \
        ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28)");
    SAVE = "UPDATE merge_requests SET accepted = ?3, review = ?4, state = ?5, held = ?6, detail = ?7, top = ?8, fix = ?9, \
        tries = ?10, rebuilds = ?11, candidate = ?12, landed = ?13, retry_at = ?14, pull_branch = ?15, pull_number = ?16, \
        pull_address = ?17, changed_at = CASE WHEN state = ?5 AND held = ?6 THEN changed_at ELSE ?18 END, check_run = ?21, target = ?22, merge = ?23, base = ?24 WHERE bead = ?1 AND number = ?2 AND state = ?19 AND held = ?20";
    CANDIDATE = concat!("SELECT ", candidate_columns!(), " FROM candidates WHERE number = ?1");
    CANDIDATES_LANDING = concat!("SELECT ", candidate_columns!(), " FROM candidates WHERE rig = ?1 AND target = ?2 \
        AND state = 'landing' ORDER BY number");
    INSERT_CANDIDATE = concat!("INSERT INTO candidates (", candidate_columns!(), ") \
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)");
    SET_CANDIDATE = "UPDATE candidates SET state = ?2, changed_at = ?3 WHERE number = ?1 AND state = 'landing'";
    PARTS = "SELECT bead, request, before, after FROM candidate_requests WHERE candidate = ?1 ORDER BY position";
    INSERT_PART = "INSERT INTO candidate_requests (candidate, position, bead, request, before, after) \
        VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    CHECKS = "SELECT name, check_run, cached FROM candidate_checks WHERE candidate = ?1 ORDER BY name";
    INSERT_CHECK = "INSERT INTO candidate_checks (candidate, name, check_run, cached) VALUES (?1, ?2, ?3, ?4)";
    REVIEWS = concat!("SELECT ", review_columns!(), " FROM reviews WHERE bead = ?1 AND request = ?2 ORDER BY number");
    INSERT_REVIEW = concat!("INSERT INTO reviews (", review_columns!(), ") \
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)");
    QUEUE = concat!("SELECT ", queue_columns!(), " FROM merge_queues WHERE rig = ?1 AND target = ?2");
    QUEUES = concat!("SELECT ", queue_columns!(), " FROM merge_queues ORDER BY rig, target");
    MAKE_QUEUE = concat!("INSERT INTO merge_queues (", queue_columns!(), ") \
        VALUES (?1, ?2, '', 0, NULL, '', '', '', NULL) ON CONFLICT (rig, target) DO NOTHING");
    LEASE = "UPDATE merge_queues SET builder = ?3, lease_s = ?4 WHERE rig = ?1 AND target = ?2 \
        AND (builder IN ('', ?3) OR lease_s <= ?5)";
    HAS_LEASE = "SELECT COUNT(*) FROM merge_queues WHERE rig = ?1 AND target = ?2 AND builder = ?3 \
        AND lease_s > ?4";
    RELEASE = "UPDATE merge_queues SET builder = '', lease_s = 0 WHERE rig = ?1 AND target = ?2 AND builder = ?3";
    PAUSE = "UPDATE merge_queues SET paused_at = ?3, paused_by = ?4 WHERE rig = ?1 AND target = ?2";
    RED = "UPDATE merge_queues SET red_commit = ?3, red_check = ?4, red_since = ?5 WHERE rig = ?1 AND target = ?2";
    NEXT = "UPDATE counters SET value = value + 1 WHERE name = ?1";
    NUMBER = "SELECT value FROM counters WHERE name = ?1";
}

/// How many requests are read that landed as commits which begin in the same way.
const LANDED_AS_MAX: i64 = 100;

/// The line of a target branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergeQueueRow {
    /// The rig.
    pub rig: RigSlug,
    /// The target branch.
    pub target: String,
    /// The process that builds for it; empty for none.
    pub builder: String,
    /// Until when, in seconds of the store's clock.
    pub lease_s: i64,
    /// When a person paused it, and who.
    pub paused: Option<(Timestamp, String)>,
    /// The failing check of the target itself, if one is known.
    pub red: Option<RedTarget>,
}

/// Which requests are listed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestFilter {
    /// Only those of this rig.
    pub rig: Option<RigSlug>,
    /// Only those in the state of this name; `open` for all that are not over.
    pub state: Option<String>,
}

/// A check that fails on the target itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedTarget {
    /// The commit of the target.
    pub commit: String,
    /// The check.
    pub check: String,
    /// Since when.
    pub since: Timestamp,
}

/// A check that a candidate has passed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CandidateCheck {
    /// The check.
    pub name: String,
    /// The number of the run of the check that passed.
    pub check_run: u64,
    /// Whether that run was for another candidate with the same content.
    pub cached: bool,
}

impl Reader<'_> {
    /// The blockers of each of these beads whose work is accepted and has not landed.
    pub fn accepted_blockers_of(
        &self,
        beads: &[BeadId],
    ) -> Result<HashMap<BeadId, Vec<AcceptedBlocker>>, StoreError> {
        let mut found: HashMap<BeadId, Vec<AcceptedBlocker>> = HashMap::new();
        for page in beads.chunks(IDS_PER_STATEMENT) {
            let (list, params) = placeholders(page);
            let sql = format!(
                "SELECT d.issue_id, m.bead, m.rig, m.target, m.accepted FROM dependencies d \
                 JOIN merge_requests m ON m.bead = d.depends_on_id AND m.purpose = 'work' \
                 AND m.state NOT IN ('landed', 'cancelled', 'superseded') \
                 WHERE d.issue_id IN ({list}) AND d.type = 'blocks' AND d.blocking = 1 ORDER BY d.issue_id, m.bead"
            );
            let rows = self.rows(&sql, &params, |row| {
                let blocker = AcceptedBlocker {
                    bead: id_from(row, 1)?,
                    rig: RigSlug::trusted(row.text(2)?.to_owned()),
                    target: row.text(3)?.to_owned(),
                    accepted: row.text(4)?.to_owned(),
                };
                Ok((id_from(row, 0)?, blocker))
            })?;
            for (bead, blocker) in rows {
                found.entry(bead).or_default().push(blocker);
            }
        }
        Ok(found)
    }

    /// The request of this name.
    pub fn merge_request(&self, id: &MergeRequestId) -> Result<Option<MergeRequest>, StoreError> {
        self.first(ONE, &[(&id.bead).into(), i64::from(id.number).into()], request_from)
    }

    /// Every request of a bead, the newest first.
    pub fn merge_requests_of(&self, bead: &BeadId) -> Result<Vec<MergeRequest>, StoreError> {
        self.rows(OF_BEAD, &[bead.into()], request_from)
    }

    /// The request of a bead that is not over.
    pub fn open_merge_request(&self, bead: &BeadId) -> Result<Option<MergeRequest>, StoreError> {
        self.first(OPEN_OF, &[bead.into()], request_from)
    }

    /// How many requests wait for a review.
    pub fn waiting_reviews(&self) -> Result<u64, StoreError> {
        Ok(count(self.number(IN_REVIEW, &[])?))
    }

    /// Every request that is not over, by queue and place in line.
    pub fn open_merge_requests(&self) -> Result<Vec<MergeRequest>, StoreError> {
        self.rows(OPEN, &[], request_from)
    }

    /// The requests of one queue that are not over, by place in line.
    pub fn merge_line(&self, rig: &RigSlug, target: &str) -> Result<Vec<MergeRequest>, StoreError> {
        self.rows(LINE, &[rig.as_str().into(), target.into()], request_from)
    }

    /// The last requests that landed as a commit that begins so, the newest first.
    pub fn merge_requests_landed_as(&self, start: &str) -> Result<Vec<MergeRequest>, StoreError> {
        let end = format!("{start}g");
        self.rows(LANDED_AS, &[start.into(), (&end).into(), LANDED_AS_MAX.into()], request_from)
    }

    /// The requests that landed as one of these commits, by place in line.
    pub fn merge_requests_landed_as_any(
        &self,
        commits: &[&str],
    ) -> Result<Vec<MergeRequest>, StoreError> {
        let mut found = Vec::new();
        for page in commits.chunks(IDS_PER_STATEMENT) {
            let (list, size) = placeholders_after(0, page.len());
            let params: Vec<Param<'_>> = (0..size)
                .filter_map(|at| page.get(at).or(page.last()).map(|commit| (*commit).into()))
                .collect();
            let sql = format!(
                "SELECT {} FROM merge_requests WHERE state = 'landed' AND landed IN ({list})",
                read_columns!()
            );
            found.extend(self.rows(&sql, &params, request_from)?);
        }
        found.sort_by_key(|request| request.position);
        Ok(found)
    }

    /// The requests of all rigs that have landed on branches of this name, by place in line.
    pub fn merge_requests_landed_on(&self, target: &str) -> Result<Vec<MergeRequest>, StoreError> {
        self.rows(LANDED_ON, &[target.into()], request_from)
    }

    /// Requests older than a place in line, the newest first.
    pub fn merge_requests_before(
        &self,
        before: Option<u64>,
        filter: &RequestFilter,
        limit: usize,
    ) -> Result<Vec<MergeRequest>, StoreError> {
        let rig = filter.rig.as_ref().map_or("", RigSlug::as_str);
        let state = filter.state.as_deref().unwrap_or_default();
        let before = before.map_or(i64::MAX, as_int);
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.rows(PAGE, &[before.into(), rig.into(), state.into(), limit.into()], request_from)
    }

    /// The candidate of this number.
    pub fn candidate(&self, number: u64) -> Result<Option<Candidate>, StoreError> {
        let found = self.first(CANDIDATE, &[as_int(number).into()], candidate_from)?;
        found.map(|candidate| self.with_parts(candidate)).transpose()
    }

    /// The candidates of a queue whose push is not confirmed.
    pub fn landing_candidates(
        &self,
        rig: &RigSlug,
        target: &str,
    ) -> Result<Vec<Candidate>, StoreError> {
        let found =
            self.rows(CANDIDATES_LANDING, &[rig.as_str().into(), target.into()], candidate_from)?;
        found.into_iter().map(|candidate| self.with_parts(candidate)).collect()
    }

    fn with_parts(&self, mut candidate: Candidate) -> Result<Candidate, StoreError> {
        candidate.parts = self.rows(PARTS, &[as_int(candidate.number).into()], |row| {
            Ok(CandidatePart {
                request: MergeRequestId { bead: id_from(row, 0)?, number: small(row, 1)? },
                before: row.text(2)?.to_owned(),
                after: row.text(3)?.to_owned(),
            })
        })?;
        Ok(candidate)
    }

    /// The checks that a candidate has passed.
    pub fn candidate_checks(&self, candidate: u64) -> Result<Vec<CandidateCheck>, StoreError> {
        self.rows(CHECKS, &[as_int(candidate).into()], |row| {
            Ok(CandidateCheck {
                name: row.text(0)?.to_owned(),
                check_run: count(row.int(1)?),
                cached: row.flag(2)?,
            })
        })
    }

    /// The reviews of a request, the oldest first.
    pub fn reviews_of(&self, id: &MergeRequestId) -> Result<Vec<Review>, StoreError> {
        self.rows(REVIEWS, &[(&id.bead).into(), i64::from(id.number).into()], review_from)
    }

    /// The line of a target branch, if there ever was a request for it.
    pub fn merge_queue(
        &self,
        rig: &RigSlug,
        target: &str,
    ) -> Result<Option<MergeQueueRow>, StoreError> {
        self.first(QUEUE, &[rig.as_str().into(), target.into()], queue_from)
    }

    /// Every line that there ever was a request for.
    pub fn merge_queues(&self) -> Result<Vec<MergeQueueRow>, StoreError> {
        self.rows(QUEUES, &[], queue_from)
    }

    /// Whether this builder has the lease of a queue now, by the store's clock.
    pub fn has_queue_lease(
        &self,
        rig: &RigSlug,
        target: &str,
        builder: &str,
    ) -> Result<bool, StoreError> {
        let now_s = self.store_clock_s()?;
        let params = [rig.as_str().into(), target.into(), builder.into(), now_s.into()];
        Ok(self.number(HAS_LEASE, &params)? == 1)
    }
}

impl Writer<'_> {
    /// Adds a request with the next number of its bead and the last place in line. Its id, position and times are given here;
    /// the rest is as the caller says.
    pub fn insert_merge_request(
        &mut self,
        request: MergeRequest,
    ) -> Result<MergeRequest, StoreError> {
        let last = self.number(LAST_NUMBER, &[(&request.id.bead).into()])?;
        let number = u32::try_from(last).ok().and_then(|last| last.checked_add(1));
        let number = number.ok_or_else(|| corrupt("the number of a merge request"))?;
        let request = MergeRequest {
            id: MergeRequestId { bead: request.id.bead.clone(), number },
            position: self.next_number("merge_requests")?,
            created_at: self.now(),
            changed_at: self.now(),
            ..request
        };
        let params: [Param<'_>; 28] = [
            (&request.id.bead).into(),
            i64::from(request.id.number).into(),
            i64::from(request.epoch.unwrap_or(0)).into(),
            request.rig.as_str().into(),
            (&request.target).into(),
            (&request.branch).into(),
            (&request.accepted).into(),
            (&request.base).into(),
            request.method.as_str().into(),
            request.review.into(),
            request.state.as_str().into(),
            held_name(&request).into(),
            (&request.detail).into(),
            as_int(request.position).into(),
            request.top.into(),
            request.fix.into(),
            i64::from(request.tries).into(),
            i64::from(request.rebuilds).into(),
            request.candidate.map(as_int).into(),
            (&request.landed).into(),
            request.retry_at.into(),
            (&request.pull_request.branch).into(),
            request.pull_request.number.map(as_int).into(),
            (&request.pull_request.address).into(),
            request.created_at.into(),
            request.changed_at.into(),
            request.check_run.map(as_int).into(),
            request.purpose.as_str().into(),
        ];
        self.apply(INSERT, &params)?;
        self.apply(MAKE_QUEUE, &[request.rig.as_str().into(), (&request.target).into()])?;
        self.mark_dependents_of(&request.id.bead)?;
        self.record_request(&request, None);
        Ok(request)
    }

    /// Saves a request in its new state, unless its state is not `old` any more. A change of the state is an event.
    pub fn save_merge_request(
        &mut self,
        old: RequestState,
        request: &MergeRequest,
    ) -> Result<bool, StoreError> {
        let held = old.held().map_or("", |reason| reason.as_str());
        let params: [Param<'_>; 24] = [
            (&request.id.bead).into(),
            i64::from(request.id.number).into(),
            (&request.accepted).into(),
            request.review.into(),
            request.state.as_str().into(),
            held_name(request).into(),
            (&request.detail).into(),
            request.top.into(),
            request.fix.into(),
            i64::from(request.tries).into(),
            i64::from(request.rebuilds).into(),
            request.candidate.map(as_int).into(),
            (&request.landed).into(),
            request.retry_at.into(),
            (&request.pull_request.branch).into(),
            request.pull_request.number.map(as_int).into(),
            (&request.pull_request.address).into(),
            self.now().into(),
            old.as_str().into(),
            held.into(),
            request.check_run.map(as_int).into(),
            (&request.target).into(),
            request.method.as_str().into(),
            (&request.base).into(),
        ];
        if self.execute(SAVE, &params)? == 0 {
            return Ok(false);
        }
        if old.is_open() != request.state.is_open() {
            self.mark_dependents_of(&request.id.bead)?;
        }
        if old != request.state {
            self.record_request(request, Some(old));
        }
        Ok(true)
    }

    /// Records the intent to push a candidate; returns it with its number.
    pub fn insert_candidate(
        &mut self,
        candidate: Candidate,
        checks: &[CandidateCheck],
    ) -> Result<Candidate, StoreError> {
        let number = self.next_number("candidates")?;
        let now = self.now();
        let candidate = Candidate { number, created_at: now, changed_at: now, ..candidate };
        let params: [Param<'_>; 10] = [
            as_int(number).into(),
            candidate.rig.as_str().into(),
            (&candidate.target).into(),
            (&candidate.base).into(),
            (&candidate.tip).into(),
            (&candidate.tree).into(),
            candidate.state.as_str().into(),
            (&candidate.builder).into(),
            now.into(),
            now.into(),
        ];
        self.apply(INSERT_CANDIDATE, &params)?;
        for (position, part) in (1_i64..).zip(&candidate.parts) {
            let params = [
                as_int(number).into(),
                position.into(),
                (&part.request.bead).into(),
                i64::from(part.request.number).into(),
                (&part.before).into(),
                (&part.after).into(),
            ];
            self.apply(INSERT_PART, &params)?;
        }
        for check in checks {
            let run = as_int(check.check_run);
            let params =
                [as_int(number).into(), (&check.name).into(), run.into(), check.cached.into()];
            self.apply(INSERT_CHECK, &params)?;
        }
        Ok(candidate)
    }

    /// Ends a push: it landed, or the origin does not have it. `false` if it had ended already.
    pub fn end_candidate(
        &mut self,
        number: u64,
        state: CandidateState,
    ) -> Result<bool, StoreError> {
        let params = [as_int(number).into(), state.as_str().into(), self.now().into()];
        Ok(self.execute(SET_CANDIDATE, &params)? == 1)
    }

    /// Gives the lease of a queue to a builder for so many seconds of the store's clock. A lease of another that has run out
    /// still counts for `grace` seconds: a push of its builder may be on its way.
    pub fn lease_queue(
        &mut self,
        rig: &RigSlug,
        target: &str,
        builder: &str,
        seconds: i64,
        grace: i64,
    ) -> Result<bool, StoreError> {
        self.apply(MAKE_QUEUE, &[rig.as_str().into(), target.into()])?;
        let now_s = self.store_clock_s()?;
        let (until_s, over_s) = (now_s.saturating_add(seconds), now_s.saturating_sub(grace));
        let params =
            [rig.as_str().into(), target.into(), builder.into(), until_s.into(), over_s.into()];
        Ok(self.execute(LEASE, &params)? == 1)
    }

    /// Gives the lease of a queue back.
    pub fn release_queue(
        &mut self,
        rig: &RigSlug,
        target: &str,
        builder: &str,
    ) -> Result<(), StoreError> {
        self.apply(RELEASE, &[rig.as_str().into(), target.into(), builder.into()])
    }

    /// Pauses or resumes a queue. `false` if it is so already.
    pub fn pause_queue(
        &mut self,
        rig: &RigSlug,
        target: &str,
        paused_by: Option<&str>,
    ) -> Result<bool, StoreError> {
        self.apply(MAKE_QUEUE, &[rig.as_str().into(), target.into()])?;
        let Some(queue) = self.merge_queue(rig, target)? else { return Ok(false) };
        if queue.paused.is_some() == paused_by.is_some() {
            return Ok(false);
        }
        let paused_at = paused_by.map(|_| self.now());
        let paused = paused_at.zip(paused_by.map(str::to_owned));
        let params = [
            rig.as_str().into(),
            target.into(),
            paused_at.into(),
            paused_by.unwrap_or_default().into(),
        ];
        self.apply(PAUSE, &params)?;
        self.record_queue(&MergeQueueRow { paused, ..queue });
        Ok(true)
    }

    /// Records that a check fails on the target itself, or that none does any more. `false` if that is known.
    pub fn set_red_target(
        &mut self,
        rig: &RigSlug,
        target: &str,
        red: Option<(&str, &str)>,
    ) -> Result<bool, StoreError> {
        self.apply(MAKE_QUEUE, &[rig.as_str().into(), target.into()])?;
        let Some(queue) = self.merge_queue(rig, target)? else { return Ok(false) };
        let known = queue.red.as_ref().map(|red| (red.commit.as_str(), red.check.as_str()));
        if known == red {
            return Ok(false);
        }
        let since = red.map(|_| queue.red.as_ref().map_or_else(|| self.now(), |red| red.since));
        let (commit, check) = red.unwrap_or_default();
        let params =
            [rig.as_str().into(), target.into(), commit.into(), check.into(), since.into()];
        self.apply(RED, &params)?;
        let red = since.map(|since| RedTarget {
            commit: commit.to_owned(),
            check: check.to_owned(),
            since,
        });
        self.record_queue(&MergeQueueRow { red, ..queue });
        Ok(true)
    }

    /// Adds a review; its number and time are given here.
    pub fn insert_review(&mut self, review: Review, rig: &RigSlug) -> Result<Review, StoreError> {
        let review =
            Review { number: self.next_number("reviews")?, created_at: self.now(), ..review };
        let params: [Param<'_>; 11] = [
            as_int(review.number).into(),
            (&review.request.bead).into(),
            i64::from(review.request.number).into(),
            (&review.actor).into(),
            review.decision.as_str().into(),
            (&review.accepted).into(),
            (&review.base).into(),
            (&review.file).into(),
            review.line.map(i64::from).into(),
            (&review.body).into(),
            review.created_at.into(),
        ];
        self.apply(INSERT_REVIEW, &params)?;
        self.record(NewEvent {
            bead: Some(review.request.bead.clone()),
            rig: Some(rig.clone()),
            run: None,
            payload: EventPayload::Reviewed(ReviewDetails {
                request: review.request.to_string(),
                decision: review.decision.as_str().to_owned(),
                commit: review.accepted.clone(),
                file: review.file.clone(),
                line: review.line,
                body: review.body.clone(),
            }),
        });
        Ok(review)
    }

    pub(super) fn next_number(&mut self, counter: &str) -> Result<u64, StoreError> {
        self.apply(NEXT, &[counter.into()])?;
        Ok(count(self.number(NUMBER, &[counter.into()])?))
    }

    fn record_request(&mut self, request: &MergeRequest, old: Option<RequestState>) {
        let is_landed = request.state == RequestState::Landed;
        let change = RequestChange {
            request: request.id.to_string(),
            target: request.target.clone(),
            old: old.map(|old| old.as_str().to_owned()),
            new: request.state.as_str().to_owned(),
            held: request.state.held().map(|reason| reason.as_str().to_owned()),
            detail: request.detail.clone(),
            commit: if is_landed { request.landed.clone() } else { request.accepted.clone() },
        };
        let payload = match old {
            None => EventPayload::RequestOpened(change),
            Some(_) => EventPayload::RequestChanged(change),
        };
        self.record(NewEvent {
            bead: Some(request.id.bead.clone()),
            rig: Some(request.rig.clone()),
            run: request.run(),
            payload,
        });
    }

    fn record_queue(&mut self, queue: &MergeQueueRow) {
        let (red_commit, red_check) = match &queue.red {
            Some(red) => (red.commit.clone(), red.check.clone()),
            None => (String::new(), String::new()),
        };
        self.record(NewEvent {
            bead: None,
            rig: Some(queue.rig.clone()),
            run: None,
            payload: EventPayload::QueueChanged(QueueChange {
                target: queue.target.clone(),
                paused: queue.paused.is_some(),
                red_commit,
                red_check,
            }),
        });
    }
}

fn held_name(request: &MergeRequest) -> &'static str {
    request.state.held().map_or("", |reason| reason.as_str())
}

fn corrupt(what: &str) -> StoreError {
    StoreError::Corrupt(format!("{what} is no small number"))
}

fn small(row: &dyn Row, column: usize) -> Result<u32, StoreError> {
    u32::try_from(row.int(column)?).map_err(|_| corrupt("a number of a merge request"))
}

fn instant(row: &dyn Row, column: usize) -> Result<Option<Timestamp>, StoreError> {
    Ok(row.int_or_null(column)?.map(Timestamp::from_nanos))
}

fn request_from(row: &dyn Row) -> Result<MergeRequest, StoreError> {
    let text = |column| -> Result<String, StoreError> { Ok(row.text(column)?.to_owned()) };
    Ok(MergeRequest {
        id: MergeRequestId { bead: id_from(row, 0)?, number: small(row, 1)? },
        epoch: Some(small(row, 2)?).filter(|epoch| *epoch > 0),
        rig: RigSlug::trusted(text(3)?),
        target: text(4)?,
        branch: text(5)?,
        accepted: text(6)?,
        base: text(7)?,
        method: MergeMethod::parse(row.text(8)?)?,
        review: row.flag(9)?,
        state: RequestState::parse(row.text(10)?, row.text(11)?)?,
        detail: text(12)?,
        position: count(row.int(13)?),
        top: row.flag(14)?,
        fix: row.flag(15)?,
        tries: small(row, 16)?,
        rebuilds: small(row, 17)?,
        candidate: row.int_or_null(18)?.map(count),
        landed: text(19)?,
        retry_at: instant(row, 20)?,
        pull_request: PullRequestName {
            branch: text(21)?,
            number: row.int_or_null(22)?.map(count),
            address: text(23)?,
        },
        created_at: Timestamp::from_nanos(row.int(24)?),
        changed_at: Timestamp::from_nanos(row.int(25)?),
        check_run: row.int_or_null(26)?.map(count),
        purpose: RequestPurpose::parse(row.text(27)?)?,
        queue_stop: QueueStop {
            paused: instant(row, 28)?.zip(row.text_or_null(29)?.map(str::to_owned)),
            red_check: row.text_or_null(30)?.map(str::to_owned),
            blocker: row.text_or_null(31)?.map(|_| id_from(row, 31)).transpose()?,
        },
    })
}

fn candidate_from(row: &dyn Row) -> Result<Candidate, StoreError> {
    let text = |column| -> Result<String, StoreError> { Ok(row.text(column)?.to_owned()) };
    Ok(Candidate {
        number: count(row.int(0)?),
        rig: RigSlug::trusted(text(1)?),
        target: text(2)?,
        base: text(3)?,
        tip: text(4)?,
        tree: text(5)?,
        state: CandidateState::parse(row.text(6)?)?,
        builder: text(7)?,
        parts: Vec::new(),
        created_at: Timestamp::from_nanos(row.int(8)?),
        changed_at: Timestamp::from_nanos(row.int(9)?),
    })
}

fn review_from(row: &dyn Row) -> Result<Review, StoreError> {
    let text = |column| -> Result<String, StoreError> { Ok(row.text(column)?.to_owned()) };
    Ok(Review {
        number: count(row.int(0)?),
        request: MergeRequestId { bead: id_from(row, 1)?, number: small(row, 2)? },
        actor: text(3)?,
        decision: ReviewDecision::parse(row.text(4)?)?,
        accepted: text(5)?,
        base: text(6)?,
        file: text(7)?,
        line: row.int_or_null(8)?.and_then(|line| u32::try_from(line).ok()),
        body: text(9)?,
        created_at: Timestamp::from_nanos(row.int(10)?),
    })
}

fn queue_from(row: &dyn Row) -> Result<MergeQueueRow, StoreError> {
    let text = |column| -> Result<String, StoreError> { Ok(row.text(column)?.to_owned()) };
    let (commit, check) = (text(6)?, text(7)?);
    Ok(MergeQueueRow {
        rig: RigSlug::trusted(text(0)?),
        target: text(1)?,
        builder: text(2)?,
        lease_s: row.int(3)?,
        paused: instant(row, 4)?.zip(Some(text(5)?)),
        red: instant(row, 8)?.map(|since| RedTarget { commit, check, since }),
    })
}
