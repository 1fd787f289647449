//! Names that look like others: what a slip of the fingers may have meant.

/// The known name that looks most like `name`, if one does: about a third of it may be different.
pub fn closest<'k>(name: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let distances = known.into_iter().map(|known| (distance(name, known), known));
    let near = distances.filter(|(distance, known)| *distance <= known.len() / 3);
    near.min().map(|(_, known)| known)
}

/// How many signs have to be added, left out, replaced or swapped with their neighbour.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    let mut last = None;
    for (i, from) in a.chars().take(200).enumerate() {
        let mut next = vec![i + 1];
        for (j, to) in b.iter().enumerate() {
            let replaced = row[j] + usize::from(from != *to);
            let mut least = replaced.min(row[j + 1] + 1).min(next[j] + 1);
            if j > 0 && last == Some(*to) && b[j - 1] == from {
                least = least.min(before[j - 1] + 1);
            }
            next.push(least);
        }
        before = std::mem::replace(&mut row, next);
        last = Some(from);
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_counted() {
        for (a, b, slips) in
            [("", "ab", 2), ("list", "list", 0), ("lits", "list", 1), ("größe", "grösse", 2)]
        {
            assert_eq!(distance(a, b), slips, "{a} {b}");
            assert_eq!(distance(b, a), slips, "{b} {a}");
        }
    }

    #[test]
    fn only_what_is_near_is_suggested() {
        let known = ["list", "run", "pause"];
        assert_eq!(closest("lits", known), Some("list"));
        assert_eq!(closest("rum", known), Some("run"));
        assert_eq!(closest("gt-abc", known), None);
    }
}
