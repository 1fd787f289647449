//! Recomputing what is derived, to see whether it is true.

use std::collections::HashMap;
use std::ops::ControlFlow;

use gt_core::BeadId;

use super::beads::id_from;
use super::dependencies::{dependency_from, edge_columns};
use super::statements;
use crate::{Reader, StoreError};

statements! {
    EDGES = concat!("SELECT ", edge_columns!(), ", blocking FROM dependencies ORDER BY issue_id, depends_on_id");
    COUNTS = "SELECT id, open_blockers FROM beads ORDER BY id";
    PREFIXES = "SELECT prefix, beads FROM prefixes ORDER BY prefix";
    EVENTS = "SELECT COUNT(*), COALESCE(MIN(number), 0), COALESCE(MAX(number), 0) FROM events";
}

impl Reader<'_> {
    /// Every derived value that is not what it should be, in words; none in a healthy store.
    pub fn differences(&self) -> Result<Vec<String>, StoreError> {
        let mut differences = Vec::new();
        let mut blockers: HashMap<BeadId, i64> = HashMap::new();
        self.scan(EDGES, &[], |row| {
            let (edge, stored) = (dependency_from(row, 0)?, row.flag(8)?);
            let blocks = self.blocks_now(&edge, self.facts_of(&edge.target)?.as_ref())?;
            if blocks != stored {
                differences.push(format!(
                    "{} on {} ({}): stored as {}, should be {}",
                    edge.issue,
                    edge.target,
                    edge.kind,
                    word(stored),
                    word(blocks)
                ));
            }
            if blocks {
                *blockers.entry(edge.issue).or_default() += 1;
            }
            Ok(ControlFlow::Continue(()))
        })?;
        let mut prefixes: HashMap<String, i64> = HashMap::new();
        self.scan(COUNTS, &[], |row| {
            let (id, stored) = (id_from(row, 0)?, row.int(1)?);
            let counted = blockers.get(&id).copied().unwrap_or(0);
            if stored != counted {
                differences.push(format!("{id}: open_blockers is {stored}, should be {counted}"));
            }
            if !id.is_child()
                && let Some((space, _)) = id.as_str().rsplit_once('-')
            {
                *prefixes.entry(space.to_owned()).or_default() += 1;
            }
            Ok(ControlFlow::Continue(()))
        })?;
        let stored = self.rows(PREFIXES, &[], |row| Ok((row.text(0)?.to_owned(), row.int(1)?)))?;
        for (prefix, stored) in stored {
            let counted = prefixes.remove(&prefix).unwrap_or(0);
            if stored != counted {
                differences.push(format!("prefix {prefix}: {stored} beads, should be {counted}"));
            }
        }
        differences.extend(prefixes.into_keys().map(|p| format!("prefix {p} is not counted")));
        let numbers = self.first(EVENTS, &[], |row| Ok((row.int(0)?, row.int(1)?, row.int(2)?)))?;
        if let Some((count, first, last)) = numbers
            && count > 0
            && (last - first + 1 != count
                || u64::try_from(last).ok() != Some(self.last_event_number()?))
        {
            differences.push(format!("{count} events are numbered {first} to {last}"));
        }
        Ok(differences)
    }
}

fn word(blocks: bool) -> &'static str {
    if blocks { "blocking" } else { "not blocking" }
}
