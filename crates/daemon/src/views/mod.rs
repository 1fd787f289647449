//! The documents that commands and the HTTP API both answer with, made from what operations return.
//!
//! A document that only one of them knows is made where it is printed.

mod bead_page;
mod board;
mod convoys;
mod landings;
mod merge_request_story;
mod money;
mod past_convoys;
mod run_rows;
mod search;
mod town_head;
mod why;

pub use bead_page::bead_page;
pub use board::board_document;
pub use convoys::{
    convoy_document, convoy_status_document, current_convoy, estimate_document, lasted,
};
pub use landings::{flaky_uses, landings};
pub use merge_request_story::story_document;
pub use money::{account_uses, burn_document, cost_document};
pub use past_convoys::{
    past_convoy_document, past_graph_document, place_document, timeline_document,
};
pub use run_rows::{RunRowsRequest, run_row, run_rows};
pub use search::search;
pub use town_head::town_head;
pub use why::{absence_for, need_document, why_document};

use gt_api::{BudgetUseDocument, DaemonAbsenceDocument, ParkedDocument, UtcTime};
use gt_core::decide::{Budget, BudgetKind, BudgetScope, ParkHold};
use gt_core::schedule::Money;

use crate::daemon::DaemonAbsence;
use gt_scheduling::dispatch::Parked;

/// Ready beads while no daemon starts them.
pub fn absence_document(absence: Option<DaemonAbsence>) -> Option<DaemonAbsenceDocument> {
    absence.map(|absence| DaemonAbsenceDocument {
        text: absence.to_string(),
        ready: absence.ready,
        merge_requests: absence.requests,
        pull_requests: absence.pull_requests,
        remedy: absence.remedy(),
    })
}

/// The runtimes and accounts that get no work for a while.
pub fn parked_documents(parked: &[Parked]) -> Vec<ParkedDocument> {
    let document = |Parked { park, hold }: &Parked| {
        let parked = ParkedDocument {
            kind: park.means.kind.as_str().to_owned(),
            name: park.means.name.clone(),
            limit: park.is_limit(),
            reason: park.reason.clone(),
            since: park.closed.map(|closed| closed.since.into()),
            until: park.closed.map(|closed| closed.until.into()),
            ..ParkedDocument::default()
        };
        match hold {
            ParkHold::Trial(run) => ParkedDocument { trial: Some(run.to_string()), ..parked },
            ParkHold::Ramp(most, next) => ParkedDocument {
                max_runs: Some((*most).into()),
                more_at: Some((*next).into()),
                ..parked
            },
            ParkHold::Until(_) | ParkHold::Once => parked,
        }
    };
    parked.iter().map(document).collect()
}

/// A budget and how much of it is used.
pub fn budget_use(budget: &Budget) -> BudgetUseDocument {
    let kind = budget.set.kind;
    let amount = |amount: u64| {
        if kind.is_money() { Money(amount).to_string() } else { amount.to_string() }
    };
    let unit = match kind {
        BudgetKind::RunsPerHour => "runs",
        BudgetKind::TokensPerDay | BudgetKind::TokensInAll => "tokens",
        BudgetKind::CostPerDay | BudgetKind::CostPerMonth | BudgetKind::CostInAll => "dollars",
    };
    let window = match kind {
        BudgetKind::RunsPerHour => Some("hour"),
        BudgetKind::TokensPerDay | BudgetKind::CostPerDay => Some("day"),
        BudgetKind::CostPerMonth => Some("month"),
        BudgetKind::TokensInAll | BudgetKind::CostInAll => None,
    };
    let scope = match &budget.set.scope {
        BudgetScope::All => "town".to_owned(),
        BudgetScope::Rig(rig) => format!("rig {rig}"),
        BudgetScope::Account(account) => format!("account {account}"),
        BudgetScope::Bead(bead) => format!("bead {bead}"),
        BudgetScope::Convoy(convoy) => format!("convoy {convoy}"),
    };
    BudgetUseDocument {
        name: budget.set.setting(),
        scope,
        spent: amount(budget.used),
        held: amount(budget.held),
        limit: amount(budget.set.limit),
        unit: unit.to_owned(),
        window: window.map(str::to_owned),
        resets_at: budget.until.map(UtcTime),
        is_spent: budget.is_spent(),
    }
}
