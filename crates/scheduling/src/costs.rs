//! The cost of runs.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use gt_core::cost::{CostGrouping, CostLine, Spent, SpentItem, cost_report};
use gt_core::{BeadId, Timestamp};
use gt_store::SpendingEntry;
use gt_town::{Result, Town};

/// Spending in a time.
#[derive(Debug, Clone)]
pub struct CostReport {
    /// The lines, sorted by name.
    pub lines: Vec<CostLine>,
    /// Everything together.
    pub total: CostLine,
    /// The models whose tokens have no price, each with the number of its tokens.
    pub unpriced: Vec<(String, u64)>,
    /// How many beads were done in that time whose runs reported no usage.
    pub done_without_usage: u64,
}

/// Spending in the last 24 hours.
pub fn spent_lately(town: &Town) -> Result<Spent> {
    let from = town.now().minus(Duration::from_hours(24));
    town.read(|reader| Ok(reader.spent_from(from)?))
}

/// Spending from one moment until before another. `day_of` names the day of a moment where the reader is.
pub fn costs(
    town: &Town,
    grouping: CostGrouping,
    from: Timestamp,
    until: Timestamp,
    day_of: impl Fn(Timestamp) -> String,
) -> Result<CostReport> {
    let (entries, done, convoys, done_without_usage) = town.read(|reader| {
        let entries = reader.spending(from, until)?;
        let beads: BTreeSet<&BeadId> = entries.iter().map(|entry| &entry.run.bead).collect();
        let beads: Vec<BeadId> = beads.into_iter().cloned().collect();
        let mut convoys: HashMap<BeadId, Vec<String>> = HashMap::new();
        if grouping == CostGrouping::Convoy {
            for (bead, convoy) in reader.convoys_of(&beads)? {
                convoys.entry(bead).or_default().push(convoy.to_string());
            }
        }
        let done = reader.done_among(&beads)?;
        Ok((entries, done, convoys, reader.done_without_usage(from, until)?))
    })?;
    let lines_of = |entry: &SpendingEntry| match grouping {
        CostGrouping::Run => vec![entry.run.to_string()],
        CostGrouping::Bead => vec![entry.run.bead.to_string()],
        CostGrouping::Convoy => {
            convoys.get(&entry.run.bead).cloned().unwrap_or_else(|| vec![String::new()])
        }
        CostGrouping::Rig => vec![entry.rig.to_string()],
        CostGrouping::Account => vec![entry.account.clone()],
        CostGrouping::Model => vec![entry.change.model.clone()],
        CostGrouping::Day => vec![day_of(entry.at)],
    };
    let items: Vec<SpentItem<'_>> = entries
        .iter()
        .map(|entry| SpentItem { lines: lines_of(entry), run: &entry.run, change: &entry.change })
        .collect();
    let (lines, total) = cost_report(&items, &done);
    let mut unpriced: HashMap<&str, i64> = HashMap::new();
    for entry in &entries {
        *unpriced.entry(&entry.change.model).or_default() += entry.change.unpriced;
    }
    let mut unpriced: Vec<(String, u64)> = unpriced
        .into_iter()
        .filter_map(|(model, tokens)| Some((model.to_owned(), u64::try_from(tokens).ok()?)))
        .filter(|(_, tokens)| *tokens > 0)
        .collect();
    unpriced.sort();
    Ok(CostReport { lines, total, unpriced, done_without_usage })
}
