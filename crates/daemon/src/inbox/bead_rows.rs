//! Beads that their workers gave back, or that failed.

use std::collections::BTreeSet;

use gt_core::inbox::{InboxContext, InboxItem, InboxKind, InboxObject};
use gt_core::schedule::{DoneStatus, RunLimit};
use gt_core::{Bead, BeadId, Run, RunState, Timestamp};
use gt_store::Reader;

use super::{EACH_MAX, plain};
use gt_town::Result;

/// How many waiting beads a row names.
const BLOCKED_NAMED_MAX: usize = 20;

/// The rows of such beads.
pub(super) fn bead_rows(reader: &Reader<'_>, now: Timestamp) -> Result<Vec<InboxItem>> {
    let mut rows = Vec::new();
    for id in reader.runs_handed_back(EACH_MAX)? {
        let Some((run, bead)) = reader.run(&id)?.zip(reader.bead(&id.bead)?) else { continue };
        if reader.open_merge_request(&bead.id)?.is_some() {
            continue;
        }
        let Some(kind) = kind_of(reader, &run, &bead, now)? else { continue };
        rows.push(handed_back(kind, &run, &bead));
    }
    let mut failed_beads = reader.failed_blockers(EACH_MAX)?;
    let others = reader.failed_beads(EACH_MAX)?;
    failed_beads.extend(others);
    let failed_beads: BTreeSet<BeadId> = failed_beads.into_iter().collect();
    let rescues = if failed_beads.is_empty() { Vec::new() } else { reader.rescues()? };
    for id in failed_beads {
        let Some(bead) = reader.bead(&id)? else { continue };
        let is_saved = rescues.iter().any(|rescued| rescued.run.bead == id);
        rows.push(failed(&bead, is_saved));
    }
    for row in &mut rows {
        if let Some(bead) = &row.bead {
            row.context.blocks = reader.beads_blocked_by(bead, BLOCKED_NAMED_MAX)?;
        }
        if row.kind == InboxKind::Failed && !row.context.blocks.is_empty() {
            row.what.push_str(", and others wait for it");
        }
    }
    Ok(rows)
}

/// The kind of a bead whose worker has gone without deciding it.
fn kind_of(
    reader: &Reader<'_>,
    run: &Run,
    bead: &Bead,
    now: Timestamp,
) -> Result<Option<InboxKind>> {
    Ok(match (run.state, run.said) {
        (RunState::Cancelled, Some(DoneStatus::Escalated)) | (RunState::Failed, _) => {
            Some(InboxKind::Escalated)
        }
        (RunState::Cancelled, Some(DoneStatus::Deferred)) => {
            let is_later = bead.defer_until.is_some_and(|until| until > now);
            (!is_later).then_some(InboxKind::PutOff)
        }
        (RunState::Lost, _) => run.over_limit.map(|_| InboxKind::OverLimit),
        (RunState::Done, _) => {
            let context = reader.context_by_number(run.context)?;
            let waits = context.is_some_and(|context| context.waits_for_review_by_hand(run));
            waits.then_some(InboxKind::Review)
        }
        _ => None,
    })
}

/// The usage of a run against the limit that it was over, in words.
fn amount_used(run: &Run) -> String {
    let used = match run.over_limit {
        Some(RunLimit::Cost) => run.usage.cost.map(|cost| format!("spent {}", cost.dollars())),
        Some(RunLimit::Tokens) => run.usage.tokens.map(|tokens| format!("used {tokens} tokens")),
        Some(RunLimit::Time) | None => None,
    };
    used.map(|used| format!(" after it had {used}")).unwrap_or_default()
}

fn handed_back(kind: InboxKind, run: &Run, bead: &Bead) -> InboxItem {
    let id = &bead.id;
    let sling = format!("gt sling {id}");
    let retry = format!("gt scheduler retry {id}");
    let (what, commands) = match kind {
        InboxKind::Escalated if run.state == RunState::Failed => (
            format!("escalated: {} came to nothing: {}", run.id, run.reason),
            vec![format!("gt run log {}", run.id), sling, format!("bd close {id}")],
        ),
        InboxKind::Escalated => (
            format!("escalated: {id} was given back by {} and asks for a person", run.agent),
            vec![format!("gt why {id}"), retry, format!("bd close {id}")],
        ),
        InboxKind::OverLimit => {
            let setting = run.over_limit.map(RunLimit::setting).unwrap_or_default();
            (
                format!(
                    "over limit: {} was over {setting} and was ended{}; its work is kept",
                    run.id,
                    amount_used(run)
                ),
                vec![format!("gt run log {}", run.id), retry, format!("bd close {id}")],
            )
        }
        InboxKind::PutOff => (
            format!("put off: {id} was put off by {}", run.agent),
            vec![format!("gt why {id}"), retry, format!("bd close {id}")],
        ),
        _ => (
            format!("review: {id} is done and waits for a person's review"),
            vec![format!("bd show {id}"), format!("bd close {id}"), sling],
        ),
    };
    InboxItem {
        bead: Some(id.clone()),
        rig: bead.rig.clone(),
        title: bead.title.to_string(),
        what,
        remedy: commands.join(", then "),
        commands,
        since: run.ended_at,
        context: InboxContext { detail: run.reason.clone(), ..InboxContext::default() },
        ..plain(kind, InboxObject::Bead(id.clone()))
    }
}

fn failed(bead: &Bead, is_saved: bool) -> InboxItem {
    let id = &bead.id;
    let retry = format!("gt scheduler retry {id}");
    let mut commands = vec![retry.clone(), format!("bd close {id}"), format!("gt run list {id}")];
    commands.extend(is_saved.then(|| format!("gt rescue show {id}")));
    InboxItem {
        bead: Some(id.clone()),
        rig: bead.rig.clone(),
        title: bead.title.to_string(),
        what: match bead.close_reason.lines().next() {
            Some(why) => format!("failed: {id} failed ({why})"),
            None => format!("failed: {id} failed"),
        },
        remedy: format!("{retry} tries it again; bd close {id} leaves it, and lets others go on"),
        commands,
        since: bead.closed_at,
        context: InboxContext { detail: bead.close_reason.clone(), ..InboxContext::default() },
        ..plain(InboxKind::Failed, InboxObject::Bead(id.clone()))
    }
}
