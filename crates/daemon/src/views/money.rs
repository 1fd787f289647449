//! Spending, and the rest of the limits of accounts.

use std::time::Duration;

use gt_api::{
    AccountUseDocument, BurnDocument, BurnHourDocument, CostDocument, CostLineDocument,
    UnpricedDocument, UsageWindowDocument, UtcTime,
};
use gt_core::cost::{CostGrouping, PriceTable, SeenWindow};
use gt_core::schedule::{ParkSubject, ParkSubjectKind, Run};

use gt_scheduling::costs::CostReport;
use gt_scheduling::dispatch::Parked;
use gt_scheduling::queue;
use gt_scheduling::usage_windows::current_windows;
use gt_town::{Result, Town};

const HOUR: Duration = Duration::from_hours(1);

/// The cost of runs, line by line.
pub fn cost_document(grouping: CostGrouping, report: &CostReport) -> CostDocument {
    CostDocument {
        by: grouping.as_str().to_owned(),
        lines: report.lines.iter().map(CostLineDocument::from).collect(),
        total: (&report.total).into(),
        unpriced: report
            .unpriced
            .iter()
            .map(|(model, tokens)| UnpricedDocument { model: model.clone(), tokens: *tokens })
            .collect(),
        done_without_usage: report.done_without_usage,
        prices_as_of: PriceTable::as_of().to_owned(),
    }
}

/// Spending in each of the last hours; the last one ends now.
pub fn burn_document(town: &Town, hours: u32) -> Result<BurnDocument> {
    let from = town.now().minus(HOUR * hours);
    let spent = town.read(|reader| Ok(reader.spent_by_hour(from)?))?;
    let hour = |number: u32| {
        let of_hour = spent.iter().find(|(at, _)| *at == u64::from(number));
        let of_hour = of_hour.map(|(_, spent)| *spent).unwrap_or_default();
        BurnHourDocument {
            from: from.plus(HOUR * number).into(),
            cost: of_hour.cost.to_string(),
            tokens: of_hour.tokens,
            unpriced_tokens: of_hour.unpriced,
        }
    };
    Ok(BurnDocument { hours: (0..hours).map(hour).collect() })
}

/// The accounts, and the runtimes that are parked or have told of a window.
pub fn account_uses(town: &Town) -> Result<Vec<AccountUseDocument>> {
    let parked = queue::status(town)?.parked;
    let windows = current_windows(town)?;
    let (accounts, live) = town.read(|reader| Ok((reader.accounts()?, reader.live_runs()?)))?;
    let mut subjects: Vec<(ParkSubject, Option<u64>)> = accounts
        .iter()
        .map(|account| {
            let cap = Some(u64::from(account.max_runs)).filter(|cap| *cap > 0);
            (ParkSubject::account(&account.handle), cap)
        })
        .collect();
    let told = windows.iter().map(|(subject, _)| subject);
    for subject in told.chain(parked.iter().map(|parked| &parked.park.means)) {
        if !subjects.iter().any(|(known, _)| known == subject) {
            subjects.push((subject.clone(), None));
        }
    }
    let uses = subjects.iter().map(|(subject, cap)| {
        let runs = live.iter().filter(|run| ParkSubject::of_run(run).contains(subject));
        account_use(subject, *cap, runs, &parked, &windows)
    });
    Ok(uses.collect())
}

fn account_use<'r>(
    subject: &ParkSubject,
    cap: Option<u64>,
    runs: impl Iterator<Item = &'r Run>,
    parked: &[Parked],
    windows: &[(ParkSubject, SeenWindow)],
) -> AccountUseDocument {
    let park = parked.iter().find(|parked| parked.park.means == *subject);
    let own = windows.iter().filter(|(of, _)| of == subject);
    AccountUseDocument {
        name: subject.name.clone(),
        kind: match subject.kind {
            ParkSubjectKind::Account => "account",
            ParkSubjectKind::Runtime => "runtime",
        }
        .to_owned(),
        runs: runs.count() as u64,
        cap,
        state: if park.is_some() { "parked" } else { "open" }.to_owned(),
        reason: park.map(|parked| parked.park.reason.clone()).unwrap_or_default(),
        parked_until: park
            .and_then(|parked| parked.park.closed)
            .map(|closed| UtcTime(closed.until)),
        windows: own.map(|(_, seen)| UsageWindowDocument::from(seen)).collect(),
    }
}
