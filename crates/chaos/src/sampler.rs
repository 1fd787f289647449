//! A thread that counts agents all the time, from the process table alone.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::processes::{ProcessKind, ProcessTable, TownProcess};

/// The pause between two looks.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(5);

/// How many violations are enough to stop.
const FOUND_MAX: usize = 5;

/// The results of the counting.
#[derive(Debug, Default)]
pub(crate) struct SampleResult {
    /// How often it has counted.
    pub(crate) looks: u64,
    /// How many agents there were at most.
    pub(crate) most: usize,
    /// The violations.
    pub(crate) violations: Vec<String>,
}

impl SampleResult {
    /// Adds agents and escaped children that were there at one moment.
    fn add(&mut self, workers: &[TownProcess], cap: usize) {
        self.looks += 1;
        let (agents, escaped): (Vec<&TownProcess>, Vec<&TownProcess>) =
            workers.iter().partition(|process| process.kind == ProcessKind::Agent);
        let bead_of = |process: &TownProcess| {
            let run = process.run.as_deref().unwrap_or_default();
            run.split('#').next().unwrap_or(run).to_owned()
        };
        for child in escaped {
            let is_beside =
                |agent: &&&TownProcess| bead_of(agent) == bead_of(child) && agent.run != child.run;
            if let Some(agent) = agents.iter().find(is_beside) {
                self.violation(format!("{agent} works beside {child}"));
            }
        }
        self.most = self.most.max(agents.len());
        let mut by_bead: BTreeMap<&str, Vec<&TownProcess>> = BTreeMap::new();
        for agent in agents.iter().copied() {
            let run = agent.run.as_deref().unwrap_or_default();
            by_bead.entry(run.split('#').next().unwrap_or(run)).or_default().push(agent);
        }
        if agents.len() > cap {
            self.violation(format!(
                "{} agents at once, cap {cap}: {}",
                agents.len(),
                list(agents.iter().copied())
            ));
        }
        for (bead, of_bead) in by_bead.into_iter().filter(|(_, agents)| agents.len() > 1) {
            self.violation(format!("{bead} has several agents at once: {}", list(of_bead)));
        }
    }

    fn violation(&mut self, found: String) {
        if self.violations.len() < FOUND_MAX {
            self.violations.push(found);
        }
    }
}

fn list<'a>(agents: impl IntoIterator<Item = &'a TownProcess>) -> String {
    let texts: Vec<String> = agents.into_iter().map(TownProcess::to_string).collect();
    texts.join(", ")
}

/// A thread that counts until it is told to stop.
#[derive(Debug)]
pub(crate) struct Sampler {
    over: Arc<AtomicBool>,
    thread: JoinHandle<SampleResult>,
}

impl Sampler {
    /// Begins to count the agents of the sandbox below `root`.
    pub(crate) fn start(root: &Path, cap: usize) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let (mut table, is_over) = (ProcessTable::of(root), Arc::clone(&over));
        let thread = thread::spawn(move || {
            let mut counted = SampleResult::default();
            while !is_over.load(Ordering::Relaxed) {
                counted.add(&table.workers_at_once(), cap);
                thread::sleep(SAMPLE_INTERVAL);
            }
            counted
        });
        Self { over, thread }
    }

    /// Ends the counting, and returns the results.
    pub(crate) fn stop(self) -> SampleResult {
        self.over.store(true, Ordering::Relaxed);
        self.thread.join().expect("the counting thread does not panic")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_agents_than_the_cap_and_two_of_one_bead_are_found() {
        let agent = |run: &str| TownProcess::sample(ProcessKind::Agent, run);
        let escaped = |run: &str| TownProcess::sample(ProcessKind::Escaped, run);
        let mut counted = SampleResult::default();
        counted.add(&[agent("we-1#1"), agent("we-2#4")], 2);
        assert_eq!((counted.most, counted.violations.len()), (2, 0));
        counted.add(&[agent("we-1#1"), agent("we-2#4"), agent("we-3#1")], 2);
        assert_eq!((counted.most, counted.violations.len()), (3, 1));
        counted.add(&[agent("we-1#1"), agent("we-1#2")], 2);
        assert_eq!((counted.looks, counted.violations.len()), (3, 2));
        counted.add(&[agent("we-1#1"), escaped("we-1#1"), escaped("we-2#1")], 1);
        assert_eq!(counted.violations.len(), 2);
        counted.add(&[agent("we-1#2"), escaped("we-1#1")], 1);
        assert_eq!(counted.violations.len(), 3);
    }
}
