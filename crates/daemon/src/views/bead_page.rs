//! A bead with everything that a person may want to know of it.

use gt_api::{BeadPageDocument, MergeRequestDocument, RawJson};

use super::run_rows::rows_of;
use super::{absence_for, why_document};
use gt_beads::beads::{LabelsOf, ShownBeadParts, show};
use gt_scheduling::queue;
use gt_town::{OperationError, Result, Town};

/// How many runs and merge requests of a bead are shown.
const EACH_SHOWN: usize = 50;

/// A bead with everything that its card shows.
pub fn bead_page(town: &Town, input: &str) -> Result<BeadPageDocument> {
    let why = queue::why(town, input)?;
    let id = why.bead.id.clone();
    let details = show(town, &[id.to_string()])?.into_iter().next();
    let details = details.ok_or_else(|| OperationError::NoBead(input.to_owned()))??;
    let targets = details.dependencies.iter().filter_map(|(_, bead)| bead.as_ref());
    let dependents = details.dependents.iter().map(|(_, bead)| bead);
    let labels = &LabelsOf::read(town, targets.chain(dependents))?;
    let parts =
        ShownBeadParts { about: &details, labels, dependents: true, comments: true, long: true };
    let (mut runs, mut requests) =
        town.read(|reader| Ok((reader.runs_of(&id)?, reader.merge_requests_of(&id)?)))?;
    runs.truncate(EACH_SHOWN);
    requests.truncate(EACH_SHOWN);
    let title = why.bead.title.as_str();
    let requests =
        requests.iter().map(|request| MergeRequestDocument::new(request, title, None)).collect();
    Ok(BeadPageDocument {
        bead: RawJson::record(parts.json()),
        why: why_document(&why, absence_for(town, &why)?),
        runs: rows_of(town, &runs)?,
        requests,
    })
}
