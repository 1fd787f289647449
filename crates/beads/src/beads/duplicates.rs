//! Beads that are closed because another replaces them: duplicates, and superseded beads.

use std::collections::BTreeMap;

use gt_core::{Bead, BeadId, DependencyType};
use gt_store::{BeadFilter, BeadOrder, StatusFilter, Writer};

use super::{Close, close_in};
use crate::dependencies::put_in;
use crate::lookup::resolve_in;
use gt_core::schedule::Run;
use gt_town::{OperationError, Result, Town};

/// Why another bead replaces a bead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replacement {
    /// The other says the same.
    DuplicateOf,
    /// The other takes its place.
    SupersededBy,
}

impl Replacement {
    fn edge(self) -> DependencyType {
        let name = match self {
            Self::DuplicateOf => "duplicates",
            Self::SupersededBy => "supersedes",
        };
        DependencyType::trusted(name)
    }

    fn reason(self, other: &BeadId) -> String {
        match self {
            Self::DuplicateOf => format!("Duplicate of {other}"),
            Self::SupersededBy => format!("Superseded by {other}"),
        }
    }
}

/// A bead that was replaced.
#[derive(Debug, Clone)]
pub struct ReplacedBead {
    /// The bead that was closed.
    pub closed: BeadId,
    /// The bead that replaces it.
    pub kept: BeadId,
    /// The run that was cancelled for it in the store. The caller ends its processes.
    pub cancelled: Option<Run>,
}

/// Links a bead to the one that stands for it, and closes it, in one transaction.
pub fn replace(town: &Town, input: &str, by: &str, why: Replacement) -> Result<ReplacedBead> {
    town.write(|writer| {
        let closed = resolve_in(town, writer, input)?;
        let kept = resolve_in(town, writer, by)?;
        replace_in(town, writer, closed, kept, why)
    })
}

fn replace_in(
    town: &Town,
    writer: &mut Writer<'_>,
    closed: BeadId,
    kept: BeadId,
    why: Replacement,
) -> Result<ReplacedBead> {
    if closed == kept {
        return Err(OperationError::rejected(format!("{closed} cannot stand for itself")));
    }
    put_in(writer, closed.clone(), kept.clone(), &why.edge(), true)?;
    let how = Close { reasons: vec![why.reason(&kept)], force: true, ..Close::default() };
    let cancelled = close_in(writer, &closed, &how, 0, town.acting_run())?.cancelled;
    Ok(ReplacedBead { closed, kept, cancelled })
}

/// Beads that are not closed and say the same.
#[derive(Debug, Clone)]
pub struct DuplicateGroup {
    /// The beads, with how many others refer to each by a dependency; the one to keep comes first.
    pub beads: Vec<(Bead, u64)>,
}

/// Groups of beads with the same title, description, design and acceptance criteria.
pub fn duplicates(town: &Town) -> Result<Vec<DuplicateGroup>> {
    let current =
        BeadFilter { status: StatusFilter::Current, order: BeadOrder::Id, ..BeadFilter::default() };
    town.read(|reader| {
        let mut groups: BTreeMap<[String; 5], Vec<(Bead, u64)>> = BTreeMap::new();
        for row in reader.bead_rows(&reader.find(&current)?)? {
            let bead = &row.bead;
            let key = [
                bead.title.as_str(),
                &bead.description,
                &bead.design,
                &bead.acceptance_criteria,
                bead.status.as_str(),
            ]
            .map(str::to_owned);
            groups.entry(key).or_default().push((row.bead, row.dependents));
        }
        let groups = groups.into_values().filter(|beads| beads.len() > 1);
        Ok(groups
            .map(|mut beads| {
                // The bead with the most dependents loses the least; of equals the smallest id stays.
                beads.sort_by(|(a, of_a), (b, of_b)| {
                    of_b.cmp(of_a).then_with(|| a.id.as_str().cmp(b.id.as_str()))
                });
                DuplicateGroup { beads }
            })
            .collect())
    })
}

/// Closes every bead of these groups but the first as a duplicate of it, with its parts handed over to that.
pub fn merge_duplicates(town: &Town, groups: &[DuplicateGroup]) -> Result<Vec<ReplacedBead>> {
    town.write(|writer| {
        let mut replaced = Vec::new();
        for group in groups {
            let mut ids = group.beads.iter().map(|(bead, _)| bead.id.clone());
            let Some(kept) = ids.next() else { continue };
            for closed in ids {
                for edge in writer.edges_to(&closed)? {
                    if edge.kind == DependencyType::ParentChild {
                        writer.remove_dependency(&edge, true)?;
                        put_in(writer, edge.issue, kept.clone(), &edge.kind, false)?;
                    }
                }
                let why = Replacement::DuplicateOf;
                replaced.push(replace_in(town, writer, closed, kept.clone(), why)?);
            }
        }
        Ok(replaced)
    })
}
