//! Finding beads, runs, convoys and merge requests by a part of their name or title.

use gt_api::SearchHitDocument;
use gt_core::merging::MergeRequestId;
use gt_core::schedule::{Run, RunId};
use gt_core::{Bead, BeadId, IssueType, Status};
use gt_store::{BeadFilter, Reader, StatusFilter};

use gt_town::{Result, Town};

/// Objects with this text in their name or title, exact names first, then open beads, then closed ones. Each kind gives at most
/// `limit`, and so does the whole.
pub fn search(town: &Town, text: &str, limit: usize) -> Result<Vec<SearchHitDocument>> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(Vec::new());
    }
    town.read(|reader| {
        let mut hits = exact(reader, text)?;
        let open = StatusFilter::Current;
        for (types, status) in
            [(vec![IssueType::trusted("convoy".to_owned())], open.clone()), (Vec::new(), open)]
        {
            hits.extend(beads(reader, text, types, status, limit)?);
        }
        for run in reader.live_runs()? {
            if contains(&run.agent, text) || contains(run.id.bead.as_str(), text) {
                hits.push(run_hit(reader, &run)?);
            }
        }
        if hits.len() < limit {
            // The others were looked through already.
            let rest = StatusFilter::OneOf(vec![Status::Closed, Status::Pinned]);
            hits.extend(beads(reader, text, Vec::new(), rest, limit)?);
        }
        let mut seen: Vec<(String, String)> = Vec::new();
        hits.retain(|hit| {
            let key = (hit.kind.clone(), hit.id.clone());
            let is_new = !seen.contains(&key);
            seen.push(key);
            is_new
        });
        hits.truncate(limit);
        Ok(hits)
    })
}

fn contains(text: &str, part: &str) -> bool {
    text.to_lowercase().contains(&part.to_lowercase())
}

/// Everything with exactly this name.
fn exact(reader: &Reader<'_>, text: &str) -> Result<Vec<SearchHitDocument>> {
    let mut hits = Vec::new();
    if let Ok(id) = BeadId::parse(text)
        && let Some(bead) = reader.bead(&id)?
    {
        hits.push(bead_hit(&bead));
        for request in reader.merge_requests_of(&id)?.into_iter().take(1) {
            hits.push(request_hit(&request.id, request.state.as_str(), &bead));
        }
    }
    if let Ok(id) = RunId::parse(text)
        && let Some(run) = reader.run(&id)?
    {
        hits.push(run_hit(reader, &run)?);
    }
    if let Ok(id) = MergeRequestId::parse(text)
        && let Some(request) = reader.merge_request(&id)?
        && let Some(bead) = reader.bead(&id.bead)?
    {
        hits.push(request_hit(&request.id, request.state.as_str(), &bead));
    }
    Ok(hits)
}

fn beads(
    reader: &Reader<'_>,
    text: &str,
    types: Vec<IssueType>,
    status: StatusFilter,
    limit: usize,
) -> Result<Vec<SearchHitDocument>> {
    let text = Some(text.to_owned());
    let filter = BeadFilter { text, types, status, limit: Some(limit), ..BeadFilter::default() };
    let rows = reader.bead_rows(&reader.find(&filter)?)?;
    Ok(rows.iter().map(|row| bead_hit(&row.bead)).collect())
}

fn bead_hit(bead: &Bead) -> SearchHitDocument {
    let (kind, page) =
        if bead.issue_type.is_convoy() { ("convoy", "convoys") } else { ("bead", "beads") };
    SearchHitDocument {
        kind: kind.to_owned(),
        id: bead.id.to_string(),
        title: bead.title.to_string(),
        state: bead.status.to_string(),
        rig: bead.rig.as_ref().map(ToString::to_string),
        url: format!("{page}/{}", bead.id),
    }
}

fn run_hit(reader: &Reader<'_>, run: &Run) -> Result<SearchHitDocument> {
    let title = reader.bead(&run.id.bead)?.map(|bead| bead.title.to_string());
    Ok(SearchHitDocument {
        kind: "run".to_owned(),
        id: run.id.to_string(),
        title: title.unwrap_or_default(),
        state: run.state.as_str().to_owned(),
        rig: Some(run.rig.to_string()),
        url: format!("runs/{}", run.id.to_string().replace('#', "%23")),
    })
}

fn request_hit(id: &MergeRequestId, state: &str, bead: &Bead) -> SearchHitDocument {
    SearchHitDocument {
        kind: "merge-request".to_owned(),
        id: id.to_string(),
        title: bead.title.to_string(),
        state: state.to_owned(),
        rig: bead.rig.as_ref().map(ToString::to_string),
        url: format!("queue/{id}"),
    }
}
