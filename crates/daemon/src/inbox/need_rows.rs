//! Needs of runs, beads, runtimes and rigs as rows.

use gt_core::RunId;
use gt_core::inbox::{InboxItem, InboxKind, InboxObject};
use gt_store::Reader;

use super::{BeadTitles, EACH_MAX, plain};
use gt_scheduling::needs::Need;
use gt_town::Result;

/// How many waiting beads a row names.
const BLOCKED_NAMED_MAX: usize = 20;

/// The rows of these needs.
pub(super) fn need_rows(
    reader: &Reader<'_>,
    titles: &mut BeadTitles,
    needs: Vec<Need>,
) -> Result<Vec<InboxItem>> {
    let parks = reader.parks()?;
    let mut rows = Vec::new();
    for need in needs.into_iter().take(EACH_MAX * InboxKind::ALL.len()) {
        let (what, remedy, commands) = (need.what(), need.remedy(), commands_of(&need));
        let (kind, object) = kind_and_object(&need);
        let mut row = InboxItem { what, remedy, commands, ..plain(kind, object) };
        match &need {
            Need::Parked(means, why) => {
                let park = parks.iter().find(|park| park.means == *means);
                row.since = park.and_then(|park| park.closed).map(|closed| closed.since);
                row.context.detail.clone_from(why);
            }
            Need::OutOfAttempts(bead, _)
            | Need::CircuitBroken(bead, _)
            | Need::Quarantined(bead, _) => {
                row.bead = Some(bead.clone());
                row.context.blocks = reader.beads_blocked_by(bead, BLOCKED_NAMED_MAX)?;
                let last = reader.runs_of(bead)?.into_iter().next();
                let context = reader.latest_context(bead)?;
                let closed = context.as_ref().and_then(|context| context.closed.as_ref());
                row.since = match &need {
                    Need::OutOfAttempts(..) => last.as_ref().and_then(|run| run.ended_at),
                    _ => closed.map(|closed| closed.at),
                };
                row.context.detail = match &need {
                    Need::CircuitBroken(_, why) | Need::Quarantined(_, why) => why.clone(),
                    _ => last.map(|run| run.reason).unwrap_or_default(),
                };
            }
            Need::Headless(run, left) | Need::Seen(run, left) | Need::NotGone(run, left) => {
                of_run(reader, &mut row, run)?;
                row.context.processes.clone_from(left);
            }
            Need::Unsupervised(run, agent) => {
                of_run(reader, &mut row, run)?;
                row.context.processes = vec![*agent];
            }
            Need::Stalled(run, silence) => {
                of_run(reader, &mut row, run)?;
                row.since = Some(silence.since);
            }
            Need::DamagedRepository(rig, problem) => {
                row.rig = Some(rig.clone());
                row.context.detail.clone_from(problem);
            }
            Need::HostAway(_) | Need::NotTold(_) => {}
        }
        if let Some(bead) = row.bead.clone() {
            let (title, rig) = titles.of(reader, &bead)?;
            (row.title, row.rig) = (title, row.rig.or(rig));
        }
        rows.push(row);
    }
    Ok(rows)
}

fn of_run(reader: &Reader<'_>, row: &mut InboxItem, run: &RunId) -> Result<()> {
    row.bead = Some(run.bead.clone());
    if let Some(run) = reader.run(run)? {
        row.since = run.ended_at;
        row.rig = Some(run.rig);
    }
    Ok(())
}

fn kind_and_object(need: &Need) -> (InboxKind, InboxObject) {
    let bead = |bead: &gt_core::BeadId| InboxObject::Bead(bead.clone());
    let run = |run: &RunId| InboxObject::Run(run.clone());
    match need {
        Need::Parked(means, _) => (InboxKind::Parked, InboxObject::Means(means.clone())),
        Need::OutOfAttempts(id, _) => (InboxKind::AttemptsUsedUp, bead(id)),
        Need::CircuitBroken(id, _) => (InboxKind::CircuitBroken, bead(id)),
        Need::Quarantined(id, _) => (InboxKind::Quarantined, bead(id)),
        Need::Headless(id, _) => (InboxKind::Headless, run(id)),
        Need::Seen(id, _) => (InboxKind::StillSeen, run(id)),
        Need::Unsupervised(id, _) => (InboxKind::Unsupervised, run(id)),
        Need::NotGone(id, _) => (InboxKind::NotGone, run(id)),
        Need::Stalled(id, _) => (InboxKind::Stalled, run(id)),
        Need::NotTold(_) => (InboxKind::NotTold, InboxObject::Town),
        Need::HostAway(_) => (InboxKind::HostAway, InboxObject::Town),
        Need::DamagedRepository(rig, _) => {
            (InboxKind::DamagedRepository, InboxObject::Rig(rig.clone()))
        }
    }
}

fn commands_of(need: &Need) -> Vec<String> {
    match need {
        Need::Parked(means, _) => {
            vec![format!("gt deacon resume {} {}", means.kind.as_str(), means.name)]
        }
        Need::OutOfAttempts(bead, _) => {
            vec![
                format!("gt run list {bead}"),
                format!("gt scheduler retry {bead}"),
                format!("bd close {bead}"),
            ]
        }
        Need::CircuitBroken(bead, _) | Need::Quarantined(bead, _) => {
            vec![
                format!("gt why {bead}"),
                format!("gt scheduler retry {bead}"),
                format!("bd close {bead}"),
            ]
        }
        Need::Headless(run, _) | Need::Unsupervised(run, _) => {
            vec![format!("gt run show {run}"), format!("gt run cancel {run}")]
        }
        Need::Seen(run, _) | Need::NotGone(run, _) => vec![format!("gt run show {run}")],
        Need::Stalled(RunId { bead, .. }, _) => vec![
            format!("gt peek {bead}"),
            format!("gt nudge {bead} <text>"),
            format!("gt run cancel {bead}"),
        ],
        Need::NotTold(_) => vec!["gt outbox list".to_owned(), "gt outbox retry".to_owned()],
        Need::HostAway(_) => vec!["gt host list".to_owned()],
        Need::DamagedRepository(..) => vec!["gt doctor".to_owned()],
    }
}
