//! Which work items, in which order.

use sha2::{Digest, Sha256};

use super::status::WorkStatus;
use crate::{ExecutorKind, IssueType, RigSlug, Timestamp};

/// Which work items. The default is all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkFilter {
    /// Only those that stand like one of these; empty for all.
    pub statuses: Vec<WorkStatus>,
    /// Only items that this agent has, or is to have.
    pub agent: Option<String>,
    /// Only items of this project.
    pub project: Option<RigSlug>,
    /// Only items created after this, or for statuses that are an end, ended after this.
    pub since: Option<Timestamp>,
    /// Only this kind of work.
    pub kind: Option<IssueType>,
    /// Only items that this actor submitted.
    pub created_by: Option<String>,
    /// Only those with this in their description.
    pub text: Option<String>,
    /// Only items of rigs with this executor.
    pub executor: Option<ExecutorKind>,
}

/// In which order work items are listed. Ties are broken so that the order is always the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkOrder {
    /// Most urgent first, then oldest first.
    Urgency,
    /// Oldest first.
    Age,
}

impl WorkFilter {
    /// The order of the items that this admits: a client that asks for news reads a history, every other one a queue.
    pub fn order(&self) -> WorkOrder {
        if self.since.is_some() { WorkOrder::Age } else { WorkOrder::Urgency }
    }

    /// The statuses that are asked for, each once.
    pub fn wanted(&self) -> Vec<WorkStatus> {
        let is_wanted = |status: &&WorkStatus| {
            self.statuses.is_empty() || self.statuses.iter().any(|wanted| wanted == *status)
        };
        WorkStatus::ALL.iter().filter(is_wanted).copied().collect()
    }

    /// A hash of this filter, so that a client cannot continue a list with a cursor of another list.
    pub(super) fn fingerprint(&self) -> u32 {
        let Self { statuses: _, agent, project, since, kind, created_by, text, executor } = self;
        let mut hash = Sha256::new();
        let mut add = |part: Option<&str>| {
            hash.update(part.map_or(u64::MAX, |part| part.len() as u64).to_le_bytes());
            hash.update(part.unwrap_or_default().as_bytes());
        };
        for status in self.wanted() {
            add(Some(status.as_str()));
        }
        add(agent.as_deref());
        add(project.as_ref().map(RigSlug::as_str));
        add(since.map(|since| since.as_nanos().to_string()).as_deref());
        add(kind.as_ref().map(IssueType::as_str));
        add(created_by.as_deref());
        add(text.as_deref());
        add(executor.map(ExecutorKind::as_str));
        let digest = hash.finalize();
        u32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_with_a_start_time_reads_a_history() {
        let all = WorkFilter::default();
        assert_eq!(all.order(), WorkOrder::Urgency);
        assert_eq!(all.wanted(), WorkStatus::ALL);
        let since = WorkFilter { since: Some(Timestamp::from_nanos(1)), ..all };
        assert_eq!(since.order(), WorkOrder::Age);
    }

    #[test]
    fn every_field_tells_filters_apart() {
        let text = || Some("x".to_owned());
        let all = WorkFilter::default;
        let filters = [
            all(),
            WorkFilter { statuses: vec![WorkStatus::Queued], ..all() },
            WorkFilter { agent: text(), ..all() },
            WorkFilter { project: Some(RigSlug::trusted("x".to_owned())), ..all() },
            WorkFilter { since: Some(Timestamp::from_nanos(1)), ..all() },
            WorkFilter { kind: Some(IssueType::trusted("x".to_owned())), ..all() },
            WorkFilter { created_by: text(), ..all() },
            WorkFilter { text: text(), ..all() },
            WorkFilter { executor: Some(ExecutorKind::Pull), ..all() },
        ];
        for (at, filter) in filters.iter().enumerate() {
            for (other_at, other) in filters.iter().enumerate() {
                assert_eq!(filter.fingerprint() == other.fingerprint(), at == other_at);
            }
        }
    }
}
