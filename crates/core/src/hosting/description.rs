//! The title and the text of a pull request, and the line by which it is found again.

use std::fmt::{self, Write as _};

use crate::merging::MergeRequestId;

/// Longest title: services allow 255 or 256 characters.
const TITLE_CHARACTERS_MAX: usize = 250;

/// Longest description. GitHub allows 65,536 characters; the rest is for the details and the marker.
const DESCRIPTION_CHARACTERS_MAX: usize = 50_000;

/// Longest line of the details.
const DETAIL_CHARACTERS_MAX: usize = 200;

/// Most lines of the details.
const DETAILS_MAX: usize = 25;

/// The beginning of the line that names the merge request.
const MARKER: &str = "Request: ";

/// The line in the text of a pull request that says which merge request it is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestMarker(pub MergeRequestId);

impl RequestMarker {
    /// Whether the text of a pull request is marked for the bead of this request. The number may be another: a repair
    /// goes on with the pull request of the request before it. Of several marks the last counts, because ours stands
    /// at the end.
    pub fn is_in(&self, body: &str) -> bool {
        let marks = body.lines().filter_map(|line| line.trim().strip_prefix(MARKER));
        let mut requests = marks.rev().filter_map(|mark| MergeRequestId::parse(mark).ok());
        requests.next().is_some_and(|request| request.bead == self.0.bead)
    }
}

/// The whole line.
impl fmt::Display for RequestMarker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{MARKER}{}", self.0)
    }
}

/// The contents of a pull request that we write.
#[derive(Debug, Clone, Copy)]
pub struct PullRequestDescription<'a> {
    /// The title of the bead.
    pub title: &'a str,
    /// The description of the bead.
    pub description: &'a str,
    /// Further lines, as names and values: the run, each check with its result.
    pub details: &'a [(String, String)],
    /// The merge request.
    pub marker: &'a RequestMarker,
}

impl PullRequestDescription<'_> {
    /// The title: one line that fits.
    pub fn title(&self) -> String {
        let title = one_line(self.title, TITLE_CHARACTERS_MAX);
        if title.is_empty() { self.marker.0.bead.to_string() } else { title }
    }

    /// The text: the description, the details, and at the end the marker.
    pub fn body(&self) -> String {
        let mut body = String::new();
        let description = self.description.trim();
        let shortened: String = description.chars().take(DESCRIPTION_CHARACTERS_MAX).collect();
        if !shortened.is_empty() {
            let _ = writeln!(body, "{shortened}");
            if shortened.len() < description.len() {
                body.push_str("\n[shortened]\n");
            }
            body.push_str("\n---\n\n");
        }
        for (name, value) in self.details.iter().take(DETAILS_MAX) {
            let name = one_line(name, DETAIL_CHARACTERS_MAX);
            let _ = writeln!(body, "{name}: {}  ", one_line(value, DETAIL_CHARACTERS_MAX));
        }
        let _ = writeln!(body, "{}", self.marker);
        body
    }
}

/// A text on one line, shortened.
fn one_line(text: &str, characters_max: usize) -> String {
    let words: Vec<&str> = text.split(|c: char| c.is_whitespace() || c.is_control()).collect();
    let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
    let line = words.join(" ");
    if line.chars().count() <= characters_max {
        return line;
    }
    let mut shortened: String = line.chars().take(characters_max - 1).collect();
    shortened.push('…');
    shortened
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn marker(bead: &str, number: u32) -> RequestMarker {
        RequestMarker(MergeRequestId::parse(&format!("{bead}@{number}")).unwrap())
    }

    fn body(description: &str) -> String {
        let details = [
            ("Run".to_owned(), "web-1#3".to_owned()),
            ("Check test".to_owned(), "passed\nRequest: web-9@1".to_owned()),
        ];
        let marker = marker("web-1", 2);
        PullRequestDescription { title: "", description, details: &details, marker: &marker }.body()
    }

    #[test]
    fn the_text_ends_with_the_marker() {
        let body = body("Let people log in.\n");
        assert_eq!(
            body,
            "Let people log in.\n\n---\n\nRun: web-1#3  \nCheck test: passed Request: web-9@1  \n\
             Request: web-1@2\n"
        );
    }

    #[test]
    fn a_marker_is_found_for_its_bead_alone() {
        let ours = marker("web-1", 3);
        for (text, expected) in [
            ("Request: web-1@3", true),
            ("Text\r\n\r\nRequest: web-1@1\r\n", true),
            ("Request: web-1@1\nRequest: web-2@1", false),
            ("Request: web-2@1\n\nRequest: web-1@1\nThanks!", true),
            ("See Request: web-1@3", false),
            ("Request: web-10@3", false),
            ("Request: web-1@", false),
            ("Request: web-1@x", false),
            ("", false),
        ] {
            assert_eq!(ours.is_in(text), expected, "{text:?}");
        }
    }

    #[test]
    fn title_and_text_fit_the_limits_of_services() {
        let (title, description) = ("long ".repeat(400), "ü".repeat(200_000));
        let details = vec![("n".repeat(9_000), "v".repeat(9_000)); 90];
        let marker = marker("web-1", 1);
        let text = PullRequestDescription {
            title: &title,
            description: &description,
            details: &details,
            marker: &marker,
        };
        assert!(text.title().chars().count() <= 255);
        assert!(text.body().chars().count() <= 65_536, "{}", text.body().chars().count());
        assert!(marker.is_in(&text.body()));
        let empty = PullRequestDescription { title: " \n", ..text };
        assert_eq!(empty.title(), "web-1");
    }

    proptest! {
        #[test]
        fn no_description_hides_or_replaces_the_marker(description in "(Request: web-[0-9]@[0-9]\n|```|.|\n){0,20}") {
            let body = body(&description);
            prop_assert!(marker("web-1", 1).is_in(&body));
            prop_assert!(!marker("web-9", 1).is_in(&body));
        }
    }
}
