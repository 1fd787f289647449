//! The branches on which the work of convoys comes together.

use crate::BeadId;

/// The beginning of the names of the branches of convoys.
const INTEGRATION_PREFIX: &str = "integration/";

/// The branch on which the work of a convoy comes together before it goes to its base.
pub fn integration_branch(convoy: &BeadId) -> String {
    format!("{INTEGRATION_PREFIX}{convoy}")
}

/// The convoy whose work comes together on a branch of this name.
pub fn convoy_of_branch(branch: &str) -> Option<BeadId> {
    branch.strip_prefix(INTEGRATION_PREFIX).and_then(|id| BeadId::parse(id).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_branch_of_a_convoy_names_it() {
        let convoy = BeadId::parse("hq-cv-x1y2z").unwrap();
        assert_eq!(convoy_of_branch(&integration_branch(&convoy)), Some(convoy));
        for other in ["main", "integration", "integration/", "feature/hq-cv-x1y2z"] {
            assert_eq!(convoy_of_branch(other), None, "{other}");
        }
    }
}
