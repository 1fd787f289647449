//! Paths and cycles in the dependency graph.

use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::Hash;

use crate::BeadId;

/// A shortest path from `start` to `goal`, both included, where `next` names the successors of a node.
///
/// `next` may fail (it usually asks a store); its error ends the search.
pub fn find_path<N: Clone + Eq + Hash, E>(
    start: &N,
    goal: &N,
    next: impl FnMut(&N) -> Result<Vec<N>, E>,
) -> Result<Option<Vec<N>>, E> {
    find_path_to(start, |node| node == goal, next)
}

/// A shortest path from `start` to the nearest node that `is_goal` accepts, both included. Otherwise like
/// [`find_path`].
pub fn find_path_to<N: Clone + Eq + Hash, E>(
    start: &N,
    is_goal: impl Fn(&N) -> bool,
    mut next: impl FnMut(&N) -> Result<Vec<N>, E>,
) -> Result<Option<Vec<N>>, E> {
    let mut came_from: HashMap<N, Option<N>> = HashMap::from([(start.clone(), None)]);
    let mut queue = VecDeque::from([start.clone()]);
    while let Some(node) = queue.pop_front() {
        if is_goal(&node) {
            let mut path = vec![node.clone()];
            let mut at = &node;
            while let Some(Some(previous)) = came_from.get(at) {
                path.push(previous.clone());
                at = previous;
            }
            path.reverse();
            return Ok(Some(path));
        }
        for successor in next(&node)? {
            if !came_from.contains_key(&successor) {
                came_from.insert(successor.clone(), Some(node.clone()));
                queue.push_back(successor);
            }
        }
    }
    Ok(None)
}

/// How many beads of a path are shown before and after those that are left out.
const SHOWN_FIRST: usize = 7;
const SHOWN_LAST: usize = 2;

/// A path of beads as people read it; a long one without its middle.
pub fn shown_path(path: &[BeadId]) -> String {
    let joined = |part: &[BeadId]| part.iter().map(BeadId::as_str).collect::<Vec<_>>().join(" → ");
    match path.len().checked_sub(SHOWN_FIRST + SHOWN_LAST) {
        None | Some(0) => joined(path),
        Some(more) => {
            let (first, last) = (&path[..SHOWN_FIRST], &path[path.len() - SHOWN_LAST..]);
            format!("{} → … {more} more … → {}", joined(first), joined(last))
        }
    }
}

/// One cycle per strongly connected component of the graph, as a path whose last node leads back to
/// its first. `edges[n]` lists the successors of node `n`.
pub fn cycles(edges: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mut found = Vec::new();
    for component in components(edges) {
        let inside: HashSet<usize> = component.iter().copied().collect();
        let Some(&start) = component.iter().min() else {
            continue;
        };
        if inside.len() == 1 && !edges[start].contains(&start) {
            continue;
        }
        // Within a component every node reaches every other, so some successor leads back.
        let cycle = edges[start].iter().filter(|node| inside.contains(node)).find_map(|&first| {
            let next = |node: &usize| {
                let within = edges[*node].iter().copied().filter(|n| inside.contains(n));
                Ok::<_, std::convert::Infallible>(within.collect())
            };
            let Ok(path) = find_path(&first, &start, next);
            path
        });
        if let Some(mut path) = cycle {
            path.rotate_right(1);
            found.push(path);
        }
    }
    found.sort();
    found
}

/// The nodes in layers: a node comes right after the last of its successors. Nodes in a cycle, and
/// those that lead to one, are in none. `edges[n]` lists the successors of node `n`.
pub fn waves(edges: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mut waiting: Vec<usize> = edges.iter().map(Vec::len).collect();
    let mut leading_to = vec![Vec::new(); edges.len()];
    for (node, targets) in edges.iter().enumerate() {
        for target in targets {
            leading_to[*target].push(node);
        }
    }
    let mut waves = Vec::new();
    let mut wave: Vec<usize> = (0..edges.len()).filter(|node| waiting[*node] == 0).collect();
    while !wave.is_empty() {
        let mut next = Vec::new();
        for node in &wave {
            for after in &leading_to[*node] {
                waiting[*after] -= 1;
                if waiting[*after] == 0 {
                    next.push(*after);
                }
            }
        }
        next.sort_unstable();
        waves.push(std::mem::replace(&mut wave, next));
    }
    waves
}

/// Tarjan's strongly connected components, without recursion: a chain of a million beads must not
/// overflow the stack.
fn components(edges: &[Vec<usize>]) -> Vec<Vec<usize>> {
    const UNSEEN: usize = usize::MAX;
    let count = edges.len();
    let (mut index, mut low) = (vec![UNSEEN; count], vec![0; count]);
    let mut on_stack = vec![false; count];
    let (mut stack, mut found, mut counter) = (Vec::new(), Vec::new(), 0);
    for root in 0..count {
        if index[root] != UNSEEN {
            continue;
        }
        let mut work = vec![(root, 0)];
        while let Some((node, position)) = work.pop() {
            if position == 0 {
                index[node] = counter;
                low[node] = counter;
                counter += 1;
                stack.push(node);
                on_stack[node] = true;
            }
            if let Some(&successor) = edges[node].get(position) {
                work.push((node, position + 1));
                if index[successor] == UNSEEN {
                    work.push((successor, 0));
                } else if on_stack[successor] {
                    low[node] = low[node].min(index[successor]);
                }
                continue;
            }
            if low[node] == index[node] {
                let mut component = Vec::new();
                while let Some(member) = stack.pop() {
                    on_stack[member] = false;
                    component.push(member);
                    if member == node {
                        break;
                    }
                }
                found.push(component);
            }
            if let Some(&(parent, _)) = work.last() {
                low[parent] = low[parent].min(low[node]);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_cycle_is_shown_as_a_path() {
        let edges = vec![vec![1], vec![2], vec![0, 3], vec![]];
        assert_eq!(cycles(&edges), vec![vec![0, 1, 2]]);
    }

    #[test]
    fn waves_follow_the_longest_way() {
        let edges = vec![vec![], vec![0], vec![0, 1], vec![], vec![4], vec![4]];
        assert_eq!(waves(&edges), vec![vec![0, 3], vec![1], vec![2]]);
    }

    #[test]
    fn a_self_loop_is_a_cycle() {
        assert_eq!(cycles(&[vec![0]]), vec![vec![0]]);
    }

    #[test]
    fn a_long_path_is_shown_without_its_middle() {
        let path = |length: u32| {
            let ids = (0..length).map(|n| BeadId::parse(&format!("we-{n}")).unwrap());
            shown_path(&ids.collect::<Vec<_>>())
        };
        assert_eq!(path(2), "we-0 → we-1");
        assert!(path(9).ends_with("we-6 → we-7 → we-8"), "{}", path(9));
        assert!(path(3000).ends_with("we-6 → … 2991 more … → we-2998 → we-2999"));
        assert!(path(3000).len() < 200);
    }

    #[test]
    fn a_long_chain_does_not_overflow_the_stack() {
        let edges: Vec<Vec<usize>> =
            (0..200_000).map(|n| if n < 199_999 { vec![n + 1] } else { vec![] }).collect();
        assert!(cycles(&edges).is_empty());
    }

    proptest! {
        #[test]
        fn there_is_one_real_cycle_per_component_that_has_one(
            edges in prop::collection::vec(prop::collection::vec(0_usize..12, 0..4), 12)
        ) {
            let mut oracle = petgraph::Graph::<(), ()>::new();
            let nodes: Vec<_> = (0..edges.len()).map(|_| oracle.add_node(())).collect();
            for (from, targets) in edges.iter().enumerate() {
                for to in targets {
                    oracle.add_edge(nodes[from], nodes[*to], ());
                }
            }
            let cyclic = petgraph::algo::tarjan_scc(&oracle).into_iter()
                .filter(|c| c.len() > 1 || oracle.contains_edge(c[0], c[0])).count();
            let found = cycles(&edges);
            prop_assert_eq!(found.len(), cyclic);
            for cycle in found {
                for (at, node) in cycle.iter().enumerate() {
                    prop_assert!(edges[*node].contains(&cycle[(at + 1) % cycle.len()]));
                }
            }
        }
    }
}
