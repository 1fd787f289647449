//! The beads that must be over before a bead can be over: the graph in which a cycle is a deadlock.

use crate::bead::{DependencyType, Gate};

/// An edge of a bead: its type, its gate and its target.
pub type WaitEdge<N> = (DependencyType, Gate, N);

/// The beads that one bead waits for, given its edges and, if it is an epic, its unfinished parts.
///
/// An edge that can block leads to its target. A `waits-for` with the gate `all-children` also leads to the unfinished
/// children of its target, which `children` names. An epic closes with its last part, so it leads to its parts. The gate
/// `any-children` adds nothing: which child ends the wait is open.
pub fn waits<N: Clone + Ord, E>(
    edges: &[WaitEdge<N>],
    parts: Vec<N>,
    mut children: impl FnMut(&N) -> Result<Vec<N>, E>,
) -> Result<Vec<N>, E> {
    let mut found = parts;
    for (kind, gate, target) in edges.iter().filter(|(kind, ..)| kind.can_block()) {
        found.push(target.clone());
        if *kind == DependencyType::WaitsFor && *gate == Gate::AllChildren {
            found.extend(children(target)?);
        }
    }
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use proptest::prelude::*;

    use super::super::graph::cycles;
    use super::*;

    /// Open beads: the parent of each (always an earlier one), whether each is an epic, and their edges.
    #[derive(Debug, Clone)]
    struct Beads {
        parents: Vec<Option<usize>>,
        epics: Vec<bool>,
        edges: Vec<(usize, DependencyType, usize)>,
    }

    impl Beads {
        fn children(&self, of: usize) -> Vec<usize> {
            (0..self.parents.len()).filter(|at| self.parents[*at] == Some(of)).collect()
        }

        fn graph(&self) -> Vec<Vec<usize>> {
            let of = |at: usize| {
                let edges = self.edges.iter().filter(|(from, ..)| *from == at);
                let edges: Vec<WaitEdge<usize>> = edges
                    .map(|(_, kind, target)| (kind.clone(), Gate::AllChildren, *target))
                    .collect();
                let parts = if self.epics[at] { self.children(at) } else { Vec::new() };
                let Ok(found) =
                    waits(&edges, parts, |target| Ok::<_, Infallible>(self.children(*target)));
                found
            };
            (0..self.parents.len()).map(of).collect()
        }

        /// Closes every bead that nothing holds up, again and again, and says whether some bead is never closed.
        fn never_ends(&self) -> bool {
            let count = self.parents.len();
            let mut closed = vec![false; count];
            loop {
                let is_free = |at: usize| {
                    let all_closed = |beads: Vec<usize>| beads.iter().all(|bead| closed[*bead]);
                    let free_of_edges = self.edges.iter().filter(|(from, ..)| *from == at).all(
                        |(_, kind, target)| match kind {
                            DependencyType::WaitsFor => {
                                closed[*target] && all_closed(self.children(*target))
                            }
                            kind if kind.can_block() => closed[*target],
                            _ => true,
                        },
                    );
                    free_of_edges && (!self.epics[at] || all_closed(self.children(at)))
                };
                let next: Vec<usize> =
                    (0..count).filter(|at| !closed[*at] && is_free(*at)).collect();
                if next.is_empty() {
                    return closed.contains(&false);
                }
                for at in next {
                    closed[at] = true;
                }
            }
        }
    }

    fn beads() -> impl Strategy<Value = Beads> {
        let kind = prop_oneof![
            Just(DependencyType::Blocks),
            Just(DependencyType::WaitsFor),
            Just(DependencyType::ConditionalBlocks),
            Just(DependencyType::Tracks),
        ];
        let parents = prop::collection::vec(prop::option::of(0_usize..100), 8);
        let edges = prop::collection::vec((0_usize..8, kind, 0_usize..8), 0..7);
        (parents, prop::collection::vec(any::<bool>(), 8), edges).prop_map(
            |(parents, epics, edges)| {
                let parents = parents.into_iter().enumerate();
                let parents =
                    parents.map(|(at, parent)| parent.filter(|_| at > 0).map(|parent| parent % at));
                let edges = edges.into_iter().filter(|(from, _, to)| from != to).collect();
                Beads { parents: parents.collect(), epics, edges }
            },
        )
    }

    #[test]
    fn two_children_that_wait_for_each_others_parents_are_a_cycle() {
        // 0 and 1 are parents, 2 is a part of 0, 3 is a part of 1.
        let edges = vec![(2, DependencyType::WaitsFor, 1), (3, DependencyType::WaitsFor, 0)];
        let beads =
            Beads { parents: vec![None, None, Some(0), Some(1)], epics: vec![false; 4], edges };
        assert_eq!(cycles(&beads.graph()), vec![vec![2, 3]]);
        assert!(beads.never_ends());
    }

    #[test]
    fn the_gate_any_children_leads_to_the_target_alone() {
        let edges = [(DependencyType::WaitsFor, Gate::AnyChildren, 1)];
        let Ok(found) = waits(&edges, vec![5], |_| Ok::<_, Infallible>(vec![2, 3]));
        assert_eq!(found, [1, 5]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]
        #[test]
        fn there_is_a_cycle_exactly_where_some_bead_is_never_closed(beads in beads()) {
            prop_assert_eq!(!cycles(&beads.graph()).is_empty(), beads.never_ends());
        }
    }
}
