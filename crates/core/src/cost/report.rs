//! Spending, grouped as people ask.

use std::collections::{BTreeMap, BTreeSet};

use super::SpendingChange;
use crate::schedule::RunId;
use crate::{BeadId, Invalid};

/// The grouping of the lines of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CostGrouping {
    /// Runs.
    Run,
    /// Beads.
    Bead,
    /// Convoys. A bead of two convoys counts in both.
    Convoy,
    /// Rigs.
    Rig,
    /// Accounts.
    Account,
    /// Models.
    Model,
    /// Days.
    Day,
}

impl CostGrouping {
    /// Every one.
    pub const ALL: [Self; 7] =
        [Self::Run, Self::Bead, Self::Convoy, Self::Rig, Self::Account, Self::Model, Self::Day];

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Bead => "bead",
            Self::Convoy => "convoy",
            Self::Rig => "rig",
            Self::Account => "account",
            Self::Model => "model",
            Self::Day => "day",
        }
    }

    /// Reads a name.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let found = Self::ALL.into_iter().find(|grouping| grouping.as_str() == text);
        found.ok_or_else(|| {
            let names = Self::ALL.map(Self::as_str).join(", ");
            Invalid::new(format!("{text:?} is none of {names}"))
        })
    }
}

/// Something that was spent, with the lines that it belongs to.
#[derive(Debug, Clone)]
pub struct SpentItem<'a> {
    /// The names of its lines. One without a name belongs to the line with an empty name.
    pub lines: Vec<String>,
    /// The run.
    pub run: &'a RunId,
    /// How much, of which model.
    pub change: &'a SpendingChange,
}

/// A line of a report.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CostLine {
    /// The group; empty for everything that belongs to none.
    pub name: String,
    /// The number of runs.
    pub runs: u64,
    /// The number of beads.
    pub beads: u64,
    /// How many of the beads are done.
    pub done_beads: u64,
    /// The cost of those that are done, in millionths.
    pub done_cost: i64,
    /// The sum. Its model is empty.
    pub spent: SpendingChange,
}

impl CostLine {
    /// All tokens.
    pub fn tokens(&self) -> u64 {
        self.spent.tokens()
    }

    /// The cost of each bead that is done, in millionths. The cost of other beads is no part of it.
    pub fn cost_of_done_bead(&self) -> Option<u64> {
        u64::try_from(self.done_cost).ok()?.checked_div(self.done_beads)
    }
}

#[derive(Default)]
struct LineSum<'a> {
    runs: BTreeSet<&'a RunId>,
    spent: SpendingChange,
    done_cost: i64,
}

impl<'a> LineSum<'a> {
    fn add(&mut self, item: &SpentItem<'a>, done: &BTreeSet<BeadId>) {
        self.runs.insert(item.run);
        if done.contains(&item.run.bead) {
            self.done_cost = self.done_cost.saturating_add(item.change.cost);
        }
        self.spent.add_change(item.change);
    }

    fn line(self, name: String, done: &BTreeSet<BeadId>) -> CostLine {
        let beads: BTreeSet<&BeadId> = self.runs.iter().map(|run| &run.bead).collect();
        CostLine {
            name,
            runs: self.runs.len() as u64,
            beads: beads.len() as u64,
            done_beads: beads.iter().filter(|bead| done.contains(**bead)).count() as u64,
            done_cost: self.done_cost,
            spent: self.spent,
        }
    }
}

/// The lines of a report, sorted by name, and the sum of everything.
pub fn cost_report(items: &[SpentItem<'_>], done: &BTreeSet<BeadId>) -> (Vec<CostLine>, CostLine) {
    let mut lines: BTreeMap<&str, LineSum<'_>> = BTreeMap::new();
    let mut all = LineSum::default();
    for item in items {
        all.add(item, done);
        for name in &item.lines {
            lines.entry(name).or_default().add(item, done);
        }
    }
    let lines = lines.into_iter().map(|(name, sum)| sum.line(name.to_owned(), done)).collect();
    (lines, all.line(String::new(), done))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(model: &str, input: i64, cost: i64) -> SpendingChange {
        SpendingChange { model: model.to_owned(), input, cost, ..SpendingChange::default() }
    }

    #[test]
    fn what_is_in_two_lines_counts_once_in_the_sum() {
        let runs = ["gt-a#1", "gt-a#2", "gt-b#1"].map(|run| RunId::parse(run).unwrap());
        let changes = [change("opus", 10, 1_000), change("", 5, 0), change("opus", 7, 500)];
        let lines = [vec!["x", "y"], vec!["x"], vec![""]];
        let items: Vec<SpentItem<'_>> = runs
            .iter()
            .zip(&changes)
            .zip(lines)
            .map(|((run, change), lines)| SpentItem {
                lines: lines.into_iter().map(str::to_owned).collect(),
                run,
                change,
            })
            .collect();
        let done = BTreeSet::from([runs[2].bead.clone()]);
        let (lines, all) = cost_report(&items, &done);
        let shown: Vec<_> =
            lines.iter().map(|line| (line.name.as_str(), line.runs, line.tokens())).collect();
        assert_eq!(shown, [("", 1, 7), ("x", 2, 15), ("y", 1, 10)]);
        assert_eq!((all.runs, all.beads, all.done_beads, all.tokens()), (3, 2, 1, 22));
        // Only gt-b is done, and it has cost less than everything together.
        assert_eq!(all.cost_of_done_bead(), Some(500));
        assert_eq!(lines[1].cost_of_done_bead(), None);
    }
}
