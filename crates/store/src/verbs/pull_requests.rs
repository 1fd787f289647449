//! Pull requests that are followed, the tips of their branches, and what their repairs answer.

use std::collections::BTreeSet;

use gt_core::formula::WordSet as _;
use gt_core::hosting::{
    FeedbackTrust, HostedCheck, HostedCheckState, PullRequestFeedback, PullRequestFeedbackKind,
    PullRequestRepair, PullRequestReviewState, PullRequestTip, ShownFeedback, TrackedPullRequest,
};
use gt_core::merging::MergeRequestId;
use gt_core::{BeadId, Timestamp};

use super::beads::id_from;
use super::contexts::{as_int, count};
use super::statements;
use crate::engine::{Param, Row};
use crate::{Reader, StoreError, Writer};

statements! {
    ONE = "SELECT bead, branch, fingerprint, due_at, repaired_head, waits_for FROM pull_requests \
        WHERE bead = ?1 AND branch = ?2";
    SAVE = "INSERT INTO pull_requests (bead, branch, fingerprint, due_at, repaired_head, waits_for) \
        VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (bead, branch) DO UPDATE SET fingerprint = excluded.fingerprint, \
        due_at = excluded.due_at, repaired_head = excluded.repaired_head, waits_for = excluded.waits_for";
    TIPS = "SELECT commit_id, accepted FROM pull_request_tips WHERE bead = ?1 AND branch = ?2 ORDER BY position";
    LAST_TIP = "SELECT COALESCE(MAX(position), 0) FROM pull_request_tips WHERE bead = ?1 AND branch = ?2";
    ADD_TIP = "INSERT INTO pull_request_tips (bead, branch, position, commit_id, accepted) \
        VALUES (?1, ?2, ?3, ?4, ?5)";
    REPAIR = "SELECT kind, name, author, body, file, line, address FROM pull_request_repairs \
        WHERE bead = ?1 AND request = ?2 ORDER BY position";
    REPAIRED = "SELECT name FROM pull_request_repairs WHERE bead = ?1 AND kind <> 'check' ORDER BY request, position";
    LAST_REPAIR = "SELECT COALESCE(MAX(position), 0) FROM pull_request_repairs WHERE bead = ?1 AND request = ?2";
    ADD_REPAIR = "INSERT INTO pull_request_repairs (bead, request, position, kind, name, author, body, file, line, \
        address) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
    TEXTS = "SELECT name, author, trust, body, file, line, address, submitted_at FROM pull_request_texts \
        WHERE bead = ?1 AND branch = ?2 ORDER BY position";
    DROP_TEXTS = "DELETE FROM pull_request_texts WHERE bead = ?1 AND branch = ?2";
    ADD_TEXT = "INSERT INTO pull_request_texts (bead, branch, position, name, author, trust, body, file, line, address, \
        submitted_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)";
}

impl Reader<'_> {
    /// The pull request of a bead with this branch.
    pub fn pull_request(
        &self,
        bead: &BeadId,
        branch: &str,
    ) -> Result<Option<TrackedPullRequest>, StoreError> {
        self.first(ONE, &[bead.into(), branch.into()], |row| {
            Ok(TrackedPullRequest {
                bead: id_from(row, 0)?,
                branch: row.text(1)?.to_owned(),
                fingerprint: row.text(2)?.to_owned(),
                due_at: Timestamp::from_nanos(row.int(3)?),
                repaired_head: row.text(4)?.to_owned(),
                waits_for: row.text(5)?.to_owned(),
            })
        })
    }

    /// The commits that were the tip of the branch of a pull request, the oldest first.
    pub fn pull_request_tips(
        &self,
        bead: &BeadId,
        branch: &str,
    ) -> Result<Vec<PullRequestTip>, StoreError> {
        self.rows(TIPS, &[bead.into(), branch.into()], |row| {
            Ok(PullRequestTip {
                commit: row.text(0)?.to_owned(),
                accepted: row.text(1)?.to_owned(),
            })
        })
    }

    /// The feedback that the repair of a request is to answer.
    pub fn pull_request_repair(
        &self,
        request: &MergeRequestId,
    ) -> Result<PullRequestRepair, StoreError> {
        let params = [(&request.bead).into(), i64::from(request.number).into()];
        let mut repair = PullRequestRepair::default();
        for item in self.rows(REPAIR, &params, item_from)? {
            match item {
                RepairItem::Check(check) => repair.checks.push(check),
                RepairItem::Feedback(feedback) => repair.feedback.push(feedback),
            }
        }
        Ok(repair)
    }

    /// The texts on a pull request that start no repair, as the last look found them.
    pub fn pull_request_texts(
        &self,
        bead: &BeadId,
        branch: &str,
    ) -> Result<Vec<ShownFeedback>, StoreError> {
        self.rows(TEXTS, &[bead.into(), branch.into()], |row| {
            Ok(ShownFeedback {
                id: row.text(0)?.to_owned(),
                author: row.text(1)?.to_owned(),
                trust: FeedbackTrust::parse(row.text(2)?)?,
                body: row.text(3)?.to_owned(),
                file: row.text(4)?.to_owned(),
                line: row.int_or_null(5)?.map(count),
                address: row.text(6)?.to_owned(),
                submitted_at: row.int_or_null(7)?.map(Timestamp::from_nanos),
            })
        })
    }

    /// The identities of the texts that have had a repair of this bead.
    pub fn repaired_feedback(&self, bead: &BeadId) -> Result<BTreeSet<String>, StoreError> {
        let names = self.rows(REPAIRED, &[bead.into()], |row| Ok(row.text(0)?.to_owned()))?;
        Ok(names.into_iter().collect())
    }
}

impl Writer<'_> {
    /// Saves what is kept of a pull request.
    pub fn save_pull_request(&mut self, pull: &TrackedPullRequest) -> Result<(), StoreError> {
        let params: [Param<'_>; 6] = [
            (&pull.bead).into(),
            (&pull.branch).into(),
            (&pull.fingerprint).into(),
            pull.due_at.into(),
            (&pull.repaired_head).into(),
            (&pull.waits_for).into(),
        ];
        self.apply(SAVE, &params)
    }

    /// Adds a tip of the branch of a pull request, after all others.
    pub fn add_pull_request_tip(
        &mut self,
        bead: &BeadId,
        branch: &str,
        tip: &PullRequestTip,
    ) -> Result<(), StoreError> {
        let last = self.number(LAST_TIP, &[bead.into(), branch.into()])?;
        let params: [Param<'_>; 5] = [
            bead.into(),
            branch.into(),
            last.saturating_add(1).into(),
            (&tip.commit).into(),
            (&tip.accepted).into(),
        ];
        self.apply(ADD_TIP, &params)
    }

    /// Replaces the texts on a pull request that start no repair.
    pub fn set_pull_request_texts(
        &mut self,
        bead: &BeadId,
        branch: &str,
        texts: &[ShownFeedback],
    ) -> Result<(), StoreError> {
        self.apply(DROP_TEXTS, &[bead.into(), branch.into()])?;
        for (position, text) in (1_i64..).zip(texts) {
            let params: [Param<'_>; 11] = [
                bead.into(),
                branch.into(),
                position.into(),
                (&text.id).into(),
                (&text.author).into(),
                text.trust.as_str().into(),
                (&text.body).into(),
                (&text.file).into(),
                text.line.map(as_int).into(),
                (&text.address).into(),
                text.submitted_at.into(),
            ];
            self.apply(ADD_TEXT, &params)?;
        }
        Ok(())
    }

    /// Adds what the repair of a request is to answer.
    pub fn add_pull_request_repair(
        &mut self,
        request: &MergeRequestId,
        repair: &PullRequestRepair,
    ) -> Result<(), StoreError> {
        let number = i64::from(request.number);
        let mut position = self.number(LAST_REPAIR, &[(&request.bead).into(), number.into()])?;
        for check in &repair.checks {
            position = position.saturating_add(1);
            let link = check.link.as_deref().unwrap_or_default();
            let params: [Param<'_>; 10] = [
                (&request.bead).into(),
                number.into(),
                position.into(),
                "check".into(),
                (&check.name).into(),
                "".into(),
                "".into(),
                "".into(),
                None::<i64>.into(),
                link.into(),
            ];
            self.apply(ADD_REPAIR, &params)?;
        }
        for text in &repair.feedback {
            position = position.saturating_add(1);
            let params: [Param<'_>; 10] = [
                (&request.bead).into(),
                number.into(),
                position.into(),
                kind_name(text.kind).into(),
                (&text.id).into(),
                (&text.author).into(),
                (&text.body).into(),
                text.file.as_deref().unwrap_or_default().into(),
                text.line.map(as_int).into(),
                text.url.as_deref().unwrap_or_default().into(),
            ];
            self.apply(ADD_REPAIR, &params)?;
        }
        Ok(())
    }
}

enum RepairItem {
    Check(HostedCheck),
    Feedback(PullRequestFeedback),
}

fn kind_name(kind: PullRequestFeedbackKind) -> &'static str {
    match kind {
        PullRequestFeedbackKind::Review(PullRequestReviewState::ChangesRequested) => {
            "changes_requested"
        }
        PullRequestFeedbackKind::Review(_) => "review",
        PullRequestFeedbackKind::LineComment => "line_comment",
        PullRequestFeedbackKind::Conversation => "conversation",
    }
}

fn item_from(row: &dyn Row) -> Result<RepairItem, StoreError> {
    let text = |column| -> Result<String, StoreError> { Ok(row.text(column)?.to_owned()) };
    let some = |text: String| Some(text).filter(|text| !text.is_empty());
    let kind = match row.text(0)? {
        "check" => {
            return Ok(RepairItem::Check(HostedCheck {
                name: text(1)?,
                state: HostedCheckState::Failed,
                link: some(text(6)?),
                ended_at: None,
            }));
        }
        "changes_requested" => {
            PullRequestFeedbackKind::Review(PullRequestReviewState::ChangesRequested)
        }
        "review" => PullRequestFeedbackKind::Review(PullRequestReviewState::Commented),
        "line_comment" => PullRequestFeedbackKind::LineComment,
        "conversation" => PullRequestFeedbackKind::Conversation,
        other => {
            return Err(StoreError::Corrupt(format!("\"{other}\" is no part of a repair")));
        }
    };
    // Only texts that start a repair are kept; how that was decided is not.
    Ok(RepairItem::Feedback(PullRequestFeedback {
        id: text(1)?,
        kind,
        author: text(2)?,
        is_bot: false,
        may_write: true,
        access: String::new(),
        body: text(3)?,
        file: some(text(4)?),
        line: row.int_or_null(5)?.map(count),
        url: some(text(6)?),
        submitted_at: None,
        is_resolved: false,
    }))
}
