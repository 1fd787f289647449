//! How far epics are.

use gt_core::{Bead, DependencyType, IssueType};
use gt_store::{BeadFilter, BeadOrder, Reader};

use super::{Close, ClosedBead, close};
use gt_town::{Result, Town};

/// The reason of an epic that is closed because its parts are.
pub const ALL_PARTS_CLOSED: &str = "All children completed";

/// An epic that is not closed, and how far it is.
#[derive(Debug, Clone)]
pub struct EpicProgress {
    /// The epic.
    pub epic: Bead,
    /// Its labels.
    pub labels: Vec<String>,
    /// How many direct parts it has.
    pub total: u64,
    /// How many of them are closed.
    pub closed: u64,
}

impl EpicProgress {
    /// Whether all of its parts are closed; an epic without parts is not finished.
    pub fn can_close(&self) -> bool {
        self.total > 0 && self.closed == self.total
    }
}

/// Every epic that is not closed.
pub fn open_epics(town: &Town) -> Result<Vec<EpicProgress>> {
    let epics = BeadFilter {
        types: vec![IssueType::trusted("epic".to_owned())],
        order: BeadOrder::Priority,
        ..BeadFilter::everything()
    };
    town.read(|reader| {
        let mut found = Vec::new();
        for row in reader.bead_rows(&reader.find(&epics)?)? {
            if row.bead.closed_at.is_none() {
                let (total, closed) = parts(reader, &row.bead)?;
                found.push(EpicProgress { epic: row.bead, labels: row.labels, total, closed });
            }
        }
        Ok(found)
    })
}

fn parts(reader: &Reader<'_>, epic: &Bead) -> Result<(u64, u64)> {
    let (mut total, mut closed) = (0, 0);
    for edge in reader.edges_to(&epic.id)? {
        if edge.kind == DependencyType::ParentChild
            && let Some(part) = reader.bead(&edge.issue)?
        {
            total += 1;
            closed += u64::from(part.closed_at.is_some());
        }
    }
    Ok((total, closed))
}

/// Closes the epics whose parts are all closed.
pub fn close_finished_epics(town: &Town, reason: &str) -> Result<Vec<Result<ClosedBead>>> {
    let finished = open_epics(town)?.into_iter().filter(EpicProgress::can_close);
    let ids: Vec<String> = finished.map(|progress| progress.epic.id.to_string()).collect();
    close(town, &ids, &Close { reasons: vec![reason.to_owned()], ..Close::default() })
}
