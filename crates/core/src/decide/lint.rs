//! The sections that a bead of its type should have and lacks.

use crate::{Bead, IssueType};

/// A section that an agent expects in a bead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BeadSection {
    /// The task, in full.
    Description,
    /// The steps that show the bug.
    StepsToReproduce,
    /// The criteria by which the work is accepted.
    AcceptanceCriteria,
    /// How one knows that all of it was worth it.
    SuccessCriteria,
}

impl BeadSection {
    /// The heading under which it stands in a description.
    pub fn heading(self) -> &'static str {
        match self {
            Self::Description => "Description",
            Self::StepsToReproduce => "Steps to Reproduce",
            Self::AcceptanceCriteria => "Acceptance Criteria",
            Self::SuccessCriteria => "Success Criteria",
        }
    }

    /// The sections that beads of a type should have.
    pub fn required(issue_type: &IssueType) -> &'static [Self] {
        match issue_type.as_str() {
            "bug" => &[Self::Description, Self::StepsToReproduce, Self::AcceptanceCriteria],
            "task" | "feature" | "story" => &[Self::Description, Self::AcceptanceCriteria],
            "epic" => &[Self::Description, Self::SuccessCriteria],
            // Of types of a team's own we know nothing else; machinery describes itself.
            "convoy" | "event" => &[],
            _ if issue_type.is_work() => &[Self::Description],
            _ => &[],
        }
    }

    /// Whether `bead` has it: in its own field, or under a heading in the description.
    pub fn is_in(self, bead: &Bead) -> bool {
        match self {
            Self::Description => !bead.description.trim().is_empty(),
            Self::StepsToReproduce => has_heading(&bead.description, self.heading()),
            Self::AcceptanceCriteria | Self::SuccessCriteria => {
                !bead.acceptance_criteria.trim().is_empty()
                    || has_heading(&bead.description, self.heading())
            }
        }
    }
}

/// The sections that `bead` lacks, in the order in which a reader would look for them.
pub fn missing_sections(bead: &Bead) -> Vec<BeadSection> {
    let required = BeadSection::required(&bead.issue_type).iter().copied();
    required.filter(|section| !section.is_in(bead)).collect()
}

/// Whether a line of `text` is this heading: `## Heading`, `**Heading**`, `Heading:`, in any case.
fn has_heading(text: &str, heading: &str) -> bool {
    text.lines().any(|line| {
        let line = line.trim();
        let is_marked = line.starts_with(['#', '*']) || line.trim_end_matches('*').ends_with(':');
        let name = line.trim_matches(|c: char| "#*: \t".contains(c));
        // The text behind a colon on the same line belongs to the heading.
        let (before, is_announced) = match line.split_once(':') {
            Some((before, after)) => (before, !after.trim_matches(['*', ' ']).is_empty()),
            None => ("", false),
        };
        let before = before.trim_matches(|c: char| "#* \t".contains(c));
        (is_marked && name.eq_ignore_ascii_case(heading))
            || (is_announced && before.eq_ignore_ascii_case(heading))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn headings_are_found_as_people_write_them() {
        for text in [
            "## Acceptance Criteria\n- works",
            "Intro\n\n# acceptance criteria",
            "**Acceptance criteria**",
            "**Acceptance criteria:** it works",
            "Acceptance Criteria:\n- works",
            "acceptance criteria: it works",
            "### Acceptance Criteria:",
        ] {
            assert!(has_heading(text, "Acceptance Criteria"), "{text}");
        }
        for text in [
            "",
            "the acceptance criteria are unclear",
            "Acceptance Criteria",
            "## Acceptance",
            "## No acceptance criteria",
        ] {
            assert!(!has_heading(text, "Acceptance Criteria"), "{text}");
        }
    }

    #[test]
    fn only_work_must_have_anything() {
        let of = |name: &str| BeadSection::required(&IssueType::parse(name).unwrap()).len();
        assert_eq!((of("bug"), of("task"), of("epic"), of("chore")), (3, 2, 2, 1));
        assert_eq!((of("message"), of("gate"), of("convoy"), of("of-our-own")), (0, 0, 0, 1));
    }

    proptest! {
        #[test]
        fn no_text_breaks_the_search_for_headings(text in ".{0,60}") {
            let _ = has_heading(&text, "Acceptance Criteria");
        }

        #[test]
        fn a_heading_is_found_wherever_it_stands(before in "[a-z \n]{0,20}", after in "[a-z \n]{0,20}") {
            let text = format!("{before}\n## Steps to Reproduce\n{after}");
            prop_assert!(has_heading(&text, "Steps to Reproduce"));
        }
    }
}
