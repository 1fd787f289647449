//! Whether a text mentions a bead.

use crate::BeadId;

/// Whether `text` names `id`, in any case, and not only a longer id that begins or ends like it.
pub fn mentions(text: &str, id: &BeadId) -> bool {
    let (text, id) = (text.to_ascii_lowercase(), id.as_str().to_ascii_lowercase());
    text.match_indices(&id).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let mut after = text[at + id.len()..].chars();
        let (next, second) = (after.next(), after.next());
        let goes_on = match next {
            // `gt-a.1` is another bead, but a full stop ends a sentence; so with hyphens.
            Some('.' | '-') => second.is_some_and(char::is_alphanumeric),
            Some('_') => true,
            Some(c) => c.is_alphanumeric(),
            None => false,
        };
        !goes_on && !before.is_some_and(|c| c.is_alphanumeric() || "-_.".contains(c))
    })
}

/// The text with other ids in place of those for which `other` has one; nothing if there is no such id in it. An id is found as
/// [`mentions`] finds it.
pub fn rewrite_ids(text: &str, other: impl Fn(&str) -> Option<BeadId>) -> Option<String> {
    let is_part = |c: char| c.is_alphanumeric() || "-_.".contains(c);
    let mut rewritten = String::new();
    let mut is_rewritten = false;
    let mut rest = text;
    while !rest.is_empty() {
        let word = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        // A full stop or a hyphen that ends the word belongs to the sentence.
        let name = rest[..word].trim_end_matches(['.', '-']);
        if let Some(id) = other(&name.to_ascii_lowercase()) {
            rewritten.push_str(id.as_str());
            is_rewritten = true;
        } else {
            rewritten.push_str(name);
        }
        let gap = rest[word..].find(is_part).map_or(rest.len(), |gap| word + gap);
        rewritten.push_str(&rest[name.len()..gap]);
        rest = &rest[gap..];
    }
    is_rewritten.then_some(rewritten)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn says(text: &str) -> bool {
        mentions(text, &BeadId::parse("gt-a1").unwrap())
    }

    #[test]
    fn an_id_is_found_as_a_word() {
        for text in [
            "gt-a1",
            "see gt-a1.",
            "(GT-A1)",
            "gt-a1, gt-b",
            "gt-a1: done",
            "gt-a1—",
            "gt-a12 gt-a1",
        ] {
            assert!(says(text), "{text}");
        }
        for text in
            ["", "gt-a", "gt-a12", "gt-a1.2", "gt-a1-x", "xgt-a1", "hq-gt-a1", "gt-a1_x", "gt-a1é"]
        {
            assert!(!says(text), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_breaks_the_search(text in ".{0,60}") {
            says(&text);
        }

        #[test]
        fn a_word_of_its_own_is_always_found(before in ".{0,20}", after in ".{0,20}") {
            let text = format!("{before} gt-a1 {after}");
            prop_assert!(says(&text));
        }
    }

    #[test]
    fn only_whole_ids_are_rewritten() {
        let other = |id: &str| (id == "gt-a1").then(|| BeadId::parse("gt-new").unwrap());
        for (text, expected) in [
            ("see gt-a1.", "see gt-new."),
            ("(GT-A1), gt-a12 gt-a1.2", "(gt-new), gt-a12 gt-a1.2"),
            ("gt-a1— ü gt-a1", "gt-new— ü gt-new"),
        ] {
            assert_eq!(rewrite_ids(text, other).as_deref(), Some(expected));
        }
        for text in ["", "x-gt-a1", "gt-a1_b", "gt-a", "..."] {
            assert_eq!(rewrite_ids(text, other), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_text_without_an_id_of_ours_stays(text in ".*") {
            prop_assert_eq!(rewrite_ids(&text, |_| None), None);
        }

        #[test]
        fn a_rewritten_text_mentions_the_new_id(before in "[ (]?", after in "[ ,.)]?") {
            let text = format!("{before}gt-a1{after}");
            let (old, new) = (BeadId::parse("gt-a1").unwrap(), BeadId::parse("gt-b").unwrap());
            let told = rewrite_ids(&text, |id| (id == old.as_str()).then(|| new.clone())).unwrap();
            prop_assert!(mentions(&told, &new) && !mentions(&told, &old));
        }
    }
}
