//! Names of beads in other projects, which in a town with one store are beads like any other.

use gt_core::{BeadId, Dependency};

use gt_town::Result;

/// The bead that `external:<rig>:<id>` names, if it could name one.
fn named(target: &BeadId) -> Option<BeadId> {
    let (_, id) = target.as_str().strip_prefix("external:")?.split_once(':')?;
    BeadId::parse(id).ok()
}

/// Lets edges to beads of other projects lead to those beads, where they exist. Says what was done.
pub(super) fn resolve(
    edges: &mut Vec<Dependency>,
    mut exists: impl FnMut(&BeadId) -> Result<bool>,
) -> Result<Vec<String>> {
    let mut done = Vec::new();
    for at in (0..edges.len()).rev() {
        let Some(id) = named(&edges[at].target) else { continue };
        if id == edges[at].issue || !exists(&id)? {
            continue;
        }
        if edges.iter().any(|edge| edge.target == id) {
            done.push(format!(
                "dropped a {} dependency on {}: there is one on {id}",
                edges[at].kind, edges[at].target
            ));
            edges.remove(at);
        } else {
            done.push(format!("its dependency on {} leads to {id}", edges[at].target));
            edges[at].target = id;
        }
    }
    done.reverse();
    Ok(done)
}

#[cfg(test)]
mod tests {
    use gt_core::{DependencyType, Timestamp};

    use super::*;

    fn edge(target: &str) -> Dependency {
        Dependency {
            issue: BeadId::trusted("hq-cv-a".to_owned()),
            target: BeadId::trusted(target.to_owned()),
            kind: DependencyType::Tracks,
            created_at: Timestamp::from_nanos(0),
            created_by: String::new(),
            metadata: String::new(),
            thread_id: String::new(),
            carried: Vec::new(),
        }
    }

    #[test]
    fn external_names_of_existing_beads_become_their_ids() {
        let mut edges: Vec<Dependency> = [
            "external:web:we-1",
            "external:web:we-2",
            "we-2",
            "external:web:absent-1",
            "external:capability",
            "external:web:hq-cv-a",
            "external:api:we-1",
        ]
        .map(edge)
        .to_vec();

        let done = resolve(&mut edges, |id| Ok(id.as_str() != "absent-1"));

        let targets: Vec<&str> = edges.iter().map(|edge| edge.target.as_str()).collect();
        assert_eq!(
            targets,
            [
                "we-2",
                "external:web:absent-1",
                "external:capability",
                "external:web:hq-cv-a",
                "we-1"
            ]
        );
        assert_eq!(done.map(|done| done.len()).ok(), Some(3));
    }
}
