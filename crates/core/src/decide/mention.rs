//! Does a text speak of a bead?

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
}
