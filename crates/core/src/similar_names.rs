//! Names that look like others: suggestions for typing errors.

/// The known name that looks most like `name`, if one does: about a third of it may be different.
pub fn closest<'k>(name: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let distances = known.into_iter().map(|known| (distance(name, known), known));
    let near = distances.filter(|(distance, known)| *distance <= known.len() / 3);
    near.min().map(|(_, known)| known)
}

/// Every name of lower-case letters, digits, `-`, `.` and `_` that differs from `name` by one slip: a character added,
/// left out, replaced, or swapped with its neighbour. The list has about 80 names per character, so a caller can look
/// all of them up by key where comparing with every known name would be too slow.
pub fn differs_by_one_edit(name: &str) -> Vec<String> {
    const SIGNS: &str = "abcdefghijklmnopqrstuvwxyz0123456789-._";
    let signs: Vec<char> = name.chars().take(100).collect();
    let with = |before: &[char], sign: Option<char>, after: &[char]| -> String {
        before.iter().copied().chain(sign).chain(after.iter().copied()).collect()
    };
    let mut found = Vec::new();
    for at in 0..=signs.len() {
        let (before, after) = signs.split_at(at);
        found.extend(SIGNS.chars().map(|sign| with(before, Some(sign), after)));
        let Some((_, rest)) = after.split_first() else { continue };
        found.push(with(before, None, rest));
        found.extend(SIGNS.chars().map(|sign| with(before, Some(sign), rest)));
        if let [first, second, rest @ ..] = after {
            let swapped = with(&[*second, *first], None, rest);
            found.push(with(before, None, &[]) + &swapped);
        }
    }
    found.retain(|other| other != name);
    found.sort_unstable();
    found.dedup();
    found
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
    fn names_one_slip_away_are_exactly_those_at_distance_one() {
        let near = differs_by_one_edit("we-1");
        for slip in ["we-2", "we1", "w-1", "we-12", "ew-1", "we-.1"] {
            assert!(near.iter().any(|name| name == slip), "{slip}");
        }
        for name in &near {
            assert_eq!(distance("we-1", name), 1, "{name}");
        }
        assert_eq!(differs_by_one_edit("").len(), 39);
    }

    #[test]
    fn only_similar_words_are_suggested() {
        let known = ["list", "run", "pause"];
        assert_eq!(closest("lits", known), Some("list"));
        assert_eq!(closest("rum", known), Some("run"));
        assert_eq!(closest("gt-abc", known), None);
    }
}
