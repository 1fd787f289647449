//! A list as an outline: parts under their parents.

/// Puts every item under its parent and keeps the order among siblings. `parents` says where in the list
/// each item's parent stands, if it is there. The answer is every item, with how deep it stands.
pub fn outline(parents: &[Option<usize>]) -> Vec<(usize, usize)> {
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); parents.len()];
    let parent_of = |item: usize| parents[item].filter(|parent| *parent < parents.len());
    for item in 0..parents.len() {
        if let Some(parent) = parent_of(item) {
            children[parent].push(item);
        }
    }
    let mut placed = vec![false; parents.len()];
    let mut outline = Vec::with_capacity(parents.len());
    // The items that no root reaches are parts of each other in a cycle; the first of them counts as a root.
    let tops = (0..parents.len()).filter(|item| parent_of(*item).is_none());
    for top in tops.chain(0..parents.len()) {
        let mut waiting = vec![(top, 0)];
        while let Some((item, depth)) = waiting.pop() {
            if std::mem::replace(&mut placed[item], true) {
                continue;
            }
            outline.push((item, depth));
            waiting.extend(children[item].iter().rev().map(|child| (*child, depth + 1)));
        }
    }
    outline
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn parts_stand_under_their_parent() {
        // 0, 1 under 3, 2 under 0, 3, 4 under 1.
        let parents = [None, Some(3), Some(0), None, Some(1)];
        assert_eq!(outline(&parents), [(0, 0), (2, 1), (3, 0), (1, 1), (4, 2)]);
    }

    #[test]
    fn a_circle_begins_somewhere() {
        assert_eq!(outline(&[Some(1), Some(0), None]), [(2, 0), (0, 0), (1, 1)]);
        assert_eq!(outline(&[Some(0)]), [(0, 0)]);
    }

    proptest! {
        #[test]
        fn every_item_has_one_place_below_its_parent(
            parents in proptest::collection::vec(proptest::option::of(0_usize..30), 0..25)
        ) {
            let placed = outline(&parents);
            let mut items: Vec<usize> = placed.iter().map(|(item, _)| *item).collect();
            items.sort_unstable();
            prop_assert_eq!(items, (0..parents.len()).collect::<Vec<_>>());
            for (at, (item, depth)) in placed.iter().enumerate() {
                if *depth > 0 {
                    let above = placed[..at].iter().rev().find(|(_, above)| above < depth);
                    prop_assert_eq!(above.map(|(parent, _)| *parent), parents[*item]);
                }
            }
        }
    }
}
