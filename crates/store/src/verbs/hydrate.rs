//! Beads with everything a list shows of them, a page at a time.

use std::collections::{HashMap, HashSet};

use gt_core::{Bead, BeadId, Dependency, DependencyType};

use super::beads::{self, bead_from, id_from};
use super::dependencies::{dependency_from, edge_columns};
use crate::engine::Param;
use crate::{Reader, StoreError};

/// A bead with its labels, dependencies and counts.
#[derive(Debug, Clone)]
pub struct BeadRow {
    /// The bead.
    pub bead: Bead,
    /// Its labels, sorted.
    pub labels: Vec<String>,
    /// Its dependencies.
    pub dependencies: Vec<Dependency>,
    /// How many beads depend on it with type `blocks`.
    pub dependents_blocked: u64,
    /// How many beads depend on it in any way.
    pub dependents: u64,
    /// How many comments it has.
    pub comments: u64,
}

impl BeadRow {
    /// How many beads it depends on with type `blocks`.
    pub fn dependencies_blocking(&self) -> u64 {
        self.dependencies.iter().filter(|edge| edge.kind == DependencyType::Blocks).count() as u64
    }

    /// The bead it is a part of.
    pub fn parent(&self) -> Option<&BeadId> {
        self.parents().next()
    }

    /// The beads it is a part of; imported ones may have several.
    pub fn parents(&self) -> impl Iterator<Item = &BeadId> {
        let parts = self.dependencies.iter();
        let parts = parts.filter(|edge| edge.kind == DependencyType::ParentChild);
        parts.map(|edge| &edge.target)
    }
}

/// Placeholders are padded to one of these sizes, so that a few prepared statements serve all. Not to
/// many more than are needed: for a long list PostgreSQL would rather read a small table as a whole.
const SIZES: [usize; 6] = [1, 4, 16, 32, 64, 256];

/// How many ids one statement asks for.
pub(super) const IDS_PER_STATEMENT: usize = SIZES[SIZES.len() - 1];

impl Reader<'_> {
    /// The beads with these ids, in this order; absent ones are left out.
    pub fn bead_rows(&self, ids: &[BeadId]) -> Result<Vec<BeadRow>, StoreError> {
        let mut found = Vec::with_capacity(ids.len());
        for page in ids.chunks(IDS_PER_STATEMENT) {
            let mut beads = self.page_of_beads(page)?;
            let mut labels = self.page_of_labels(page)?;
            let mut edges = self.page_of_edges(page)?;
            let dependents = self.page_of_counts(page, DEPENDENTS)?;
            let comments = self.page_of_counts(page, COMMENTS)?;
            for id in page {
                let Some(bead) = beads.remove(id) else {
                    continue;
                };
                let (all, blocked) = dependents.get(id).copied().unwrap_or((0, 0));
                found.push(BeadRow {
                    bead,
                    labels: labels.remove(id).unwrap_or_default(),
                    dependencies: edges.remove(id).unwrap_or_default(),
                    dependents_blocked: blocked,
                    dependents: all,
                    comments: comments.get(id).map_or(0, |(count, _)| *count),
                });
            }
        }
        Ok(found)
    }

    /// Those of these ids that a bead has.
    pub fn existing<'i>(
        &self,
        ids: impl IntoIterator<Item = &'i BeadId>,
    ) -> Result<HashSet<BeadId>, StoreError> {
        self.among(("id", "beads"), ids)
    }

    /// Those of these ids that an edge points to.
    pub(super) fn awaited<'i>(
        &self,
        ids: impl IntoIterator<Item = &'i BeadId>,
    ) -> Result<HashSet<BeadId>, StoreError> {
        self.among(("depends_on_id", "dependencies"), ids)
    }

    fn among<'i>(
        &self,
        (column, table): (&str, &str),
        ids: impl IntoIterator<Item = &'i BeadId>,
    ) -> Result<HashSet<BeadId>, StoreError> {
        let mut found = HashSet::new();
        let mut page = Vec::with_capacity(IDS_PER_STATEMENT);
        let mut ids = ids.into_iter().peekable();
        while let Some(id) = ids.next() {
            page.push(id.clone());
            if page.len() == page.capacity() || ids.peek().is_none() {
                let (list, params) = placeholders(&page);
                let sql =
                    format!("SELECT DISTINCT {column} FROM {table} WHERE {column} IN ({list})");
                found.extend(self.rows(&sql, &params, |row| id_from(row, 0))?);
                page.clear();
            }
        }
        Ok(found)
    }

    fn page_of_beads(&self, ids: &[BeadId]) -> Result<HashMap<BeadId, Bead>, StoreError> {
        let (list, params) = placeholders(ids);
        let sql = format!("SELECT {} FROM beads WHERE id IN ({list})", beads::COLUMNS);
        let found = self.rows(&sql, &params, bead_from)?;
        Ok(found.into_iter().map(|bead| (bead.id.clone(), bead)).collect())
    }

    fn page_of_labels(&self, ids: &[BeadId]) -> Result<HashMap<BeadId, Vec<String>>, StoreError> {
        let (list, params) = placeholders(ids);
        let sql = format!(
            "SELECT bead, label FROM bead_labels WHERE bead IN ({list}) ORDER BY bead, label"
        );
        let mut found: HashMap<BeadId, Vec<String>> = HashMap::new();
        let labels =
            self.rows(&sql, &params, |row| Ok((id_from(row, 0)?, row.text(1)?.to_owned())))?;
        for (id, label) in labels {
            found.entry(id).or_default().push(label);
        }
        Ok(found)
    }

    fn page_of_edges(
        &self,
        ids: &[BeadId],
    ) -> Result<HashMap<BeadId, Vec<Dependency>>, StoreError> {
        let (list, params) = placeholders(ids);
        let sql = format!(
            "SELECT {} FROM dependencies WHERE issue_id IN ({list}) ORDER BY issue_id, depends_on_id",
            edge_columns!()
        );
        let mut found: HashMap<BeadId, Vec<Dependency>> = HashMap::new();
        for edge in self.rows(&sql, &params, dependency_from)? {
            found.entry(edge.issue.clone()).or_default().push(edge);
        }
        Ok(found)
    }

    fn page_of_counts(
        &self,
        ids: &[BeadId],
        (select, group): (&str, &str),
    ) -> Result<HashMap<BeadId, (u64, u64)>, StoreError> {
        let (list, params) = placeholders(ids);
        let sql = format!("{select} WHERE {group} IN ({list}) GROUP BY {group}");
        let counts = self.rows(&sql, &params, |row| {
            let count = |column| -> Result<u64, StoreError> {
                Ok(u64::try_from(row.int(column)?).unwrap_or(0))
            };
            Ok((id_from(row, 0)?, (count(1)?, count(2)?)))
        })?;
        Ok(counts.into_iter().collect())
    }
}

const DEPENDENTS: (&str, &str) = (
    "SELECT depends_on_id, COUNT(*), COUNT(CASE WHEN type = 'blocks' THEN 1 END) \
     FROM dependencies",
    "depends_on_id",
);
const COMMENTS: (&str, &str) = ("SELECT bead, COUNT(*), 0 FROM comments", "bead");

/// `?1, ?2, …` for at least as many ids as given, and the parameters, padded by repeating the last.
pub(super) fn placeholders(ids: &[BeadId]) -> (String, Vec<Param<'_>>) {
    let (list, size) = placeholders_after(0, ids.len());
    let params = (0..size).filter_map(|at| ids.get(at).or(ids.last()).map(Param::from)).collect();
    (list, params)
}

/// The placeholders for so many values after the first `before` parameters, and for how many they stand.
pub(super) fn placeholders_after(before: usize, count: usize) -> (String, usize) {
    let size = SIZES.into_iter().find(|size| *size >= count).unwrap_or(count);
    let list: Vec<String> = (1..=size).map(|number| format!("?{}", before + number)).collect();
    (list.join(", "), size)
}
