//! The head line of a town.

use std::collections::BTreeMap;

use gt_api::{
    SpentDocument, TownDaemonDocument, TownHeadDocument, TownHostDocument, TownPauseDocument,
    TownProblemDocument,
};
use gt_core::board::BoardLane;
use gt_core::decide::HostState;

use super::{absence_document, budget_use, parked_documents};
use crate::daemon::{self, DaemonPresence, presence};
use crate::inbox::inbox_with;
use gt_scheduling::board::{BoardRequest, board_counts};
use gt_scheduling::costs::spent_lately;
use gt_scheduling::queue::{self, QueueStatus};
use gt_town::{Result, Town};

/// The head line of a town.
pub fn town_head(town: &Town, version: &str) -> Result<TownHeadDocument> {
    let status = queue::status(town)?;
    let counts: BTreeMap<&str, u64> = board_counts(town, &BoardRequest::default())?
        .into_iter()
        .map(|(lane, count)| (lane.as_str(), count))
        .collect();
    let lane = |lane: BoardLane| counts.get(lane.as_str()).copied().unwrap_or_default();
    let (last_event, rigs, seen) = town.read(|reader| {
        let rigs = reader.rigs()?.into_iter().map(|rig| rig.slug.to_string()).collect();
        Ok((reader.last_event_number()?, rigs, reader.fleet()?))
    })?;
    let hosts: Vec<TownHostDocument> = seen
        .into_iter()
        .filter(|host| host.state() != HostState::Removed)
        .map(|host| TownHostDocument {
            state: host.state().as_str().to_owned(),
            seen_seconds_ago: host.age.as_secs(),
            name: host.host.name,
        })
        .collect();
    let daemon = daemon_document(town, &status)?;
    Ok(TownHeadDocument {
        name: town.root().file_name().unwrap_or_default().to_string_lossy().into_owned(),
        version: version.to_owned(),
        now: town.now().into(),
        last_event,
        problems: problems(&status, &daemon),
        daemon,
        paused: status
            .paused
            .as_ref()
            .map(|pause| TownPauseDocument { by: pause.by.clone(), since: pause.at.into() }),
        cap: status.cap.map(Into::into),
        live: status.live.into(),
        ready: lane(BoardLane::Ready),
        scheduled: status.queued,
        scheduled_ready: status.ready,
        blocked: lane(BoardLane::Blocked),
        inbox: inbox_with(town, &status)?.len() as u64,
        spent_24h: SpentDocument::from(&spent_lately(town)?),
        budgets: status.budgets.iter().map(budget_use).collect(),
        parked: parked_documents(&status.parked),
        hosts,
        rigs,
    })
}

fn daemon_document(town: &Town, status: &QueueStatus) -> Result<TownDaemonDocument> {
    let absence = absence_document(daemon::absence(town, status)?);
    Ok(match presence(town.root()) {
        Ok(DaemonPresence::Running { pid, since, .. }) => TownDaemonDocument {
            running: true,
            pid,
            since: Some(since).filter(|since| !since.is_empty()),
            absence,
        },
        Ok(DaemonPresence::NotRunning) | Err(_) => {
            TownDaemonDocument { running: false, pid: None, since: None, absence }
        }
    })
}

fn problems(status: &QueueStatus, daemon: &TownDaemonDocument) -> Vec<TownProblemDocument> {
    let mut problems = Vec::new();
    let mut add = |code: &str, text: String, command: Option<String>| {
        problems.push(TownProblemDocument { code: code.to_owned(), text, command });
    };
    match &daemon.absence {
        Some(absence) => add("daemon", absence.text.clone(), Some(absence.remedy.clone())),
        None if !daemon.running => {
            add("daemon", "No daemon is running".to_owned(), Some("gt up".to_owned()));
        }
        None => {}
    }
    for parked in &status.parked {
        let (kind, name) = (parked.park.means.kind.as_str(), &parked.park.means.name);
        let text = format!("The {kind} {name} gets no work: {}", parked.park.reason);
        add("parked", text, Some(format!("gt deacon resume {kind} {name}")));
    }
    for budget in status.budgets.iter().filter(|budget| budget.is_spent()) {
        let setting = budget.set.setting();
        let text = format!("The budget {setting} is used up");
        add("budget", text, Some(format!("gt config set {setting} <n>")));
    }
    for reason in &status.short {
        add(reason.code(), reason.to_string(), None);
    }
    problems
}
