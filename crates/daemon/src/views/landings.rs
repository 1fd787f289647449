//! Work that has landed, and checks that are not to be trusted.

use std::collections::BTreeMap;

use gt_api::{FlakyUseDocument, LandingDocument};
use gt_core::checks::CheckRun;
use gt_store::RequestFilter;

use gt_execution::merge_queue::flaky_checks;
use gt_town::{Result, Town};

/// The last requests that landed, the newest first, before a place in line; and the place of the last of them.
pub fn landings(
    town: &Town,
    before: Option<u64>,
    limit: usize,
) -> Result<(Vec<LandingDocument>, Option<u64>)> {
    town.read(|reader| {
        let filter = RequestFilter { rig: None, state: Some("landed".to_owned()) };
        let mut landed = reader.merge_requests_before(before, &filter, limit.saturating_add(1))?;
        let is_more = landed.len() > limit;
        landed.truncate(limit);
        let next = landed.last().filter(|_| is_more).map(|request| request.position);
        let mut documents = Vec::new();
        for request in landed {
            let title = reader.bead(&request.id.bead)?.map(|bead| bead.title.to_string());
            let (checks, batch) = match request.candidate {
                Some(number) => {
                    let checks = reader.candidate_checks(number)?.into_iter();
                    let batch = reader.candidate(number)?.map_or(1, |one| one.parts.len());
                    (checks.map(|check| check.name).collect(), batch as u64)
                }
                None => (Vec::new(), 1),
            };
            documents.push(LandingDocument {
                request: request.id.to_string(),
                bead: request.id.bead.to_string(),
                title: title.unwrap_or_default(),
                rig: request.rig.to_string(),
                target: request.target,
                commit: request.landed,
                at: request.changed_at.into(),
                checks,
                batch,
            });
        }
        Ok((documents, next))
    })
}

/// The checks that passed lately after they had failed on the same tree, the last one first.
pub fn flaky_uses(town: &Town) -> Result<Vec<FlakyUseDocument>> {
    let mut found: BTreeMap<(String, String), (u64, CheckRun)> = BTreeMap::new();
    for run in flaky_checks(town)? {
        let key = (run.rig.to_string(), run.name.clone());
        let (flips, last) = found.entry(key).or_insert_with(|| (0, run.clone()));
        *flips += 1;
        if run.started_at > last.started_at {
            *last = run;
        }
    }
    let mut found: Vec<(u64, CheckRun)> = found.into_values().collect();
    found.sort_by_key(|(_, run)| std::cmp::Reverse(run.started_at));
    let document = |(flips, run): (u64, CheckRun)| FlakyUseDocument {
        rig: run.rig.to_string(),
        check: run.name,
        flips,
        last_at: run.started_at.into(),
        commit: run.commit,
    };
    Ok(found.into_iter().map(document).collect())
}
