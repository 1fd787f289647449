//! Patterns of paths, as `.gitignore` writes them, without negation and character classes.

use std::fmt;

use crate::Invalid;

/// Longest pattern, in bytes.
const PATTERN_BYTES_MAX: usize = 1_000;

/// A pattern such as `src/**`, `*.rs` or `docs/`. `*` and `?` stand for characters of one name, `**` for any number of
/// directories. A pattern with a `/` before its end begins at the top of the repository; any other one matches at every
/// depth. A pattern that matches a directory matches everything in it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PathPattern(String);

impl PathPattern {
    /// Checks a pattern that a person wrote.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let names = text.strip_prefix('/').unwrap_or(text);
        let names = names.strip_suffix('/').unwrap_or(names);
        let is_name = |name: &str| !name.is_empty() && name != "." && name != "..";
        let is_pattern = text.len() <= PATTERN_BYTES_MAX
            && !text.starts_with('!')
            && !text.contains(|c: char| c.is_control() || "[]{}\\,".contains(c))
            && names.split('/').all(is_name);
        if is_pattern {
            return Ok(Self(text.to_owned()));
        }
        Err(Invalid(format!(
            "\"{}\" is not a pattern of paths; write it like src/**, *.rs or docs/, with *, ** and ? only",
            text.chars().take(60).collect::<String>().escape_debug()
        )))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether a path of the repository, such as `src/main.rs`, matches.
    pub fn matches(&self, path: &str) -> bool {
        let (text, directories_only) = match self.0.strip_suffix('/') {
            Some(text) => (text, true),
            None => (self.0.as_str(), false),
        };
        let anchored = text.contains('/');
        let text = text.strip_prefix('/').unwrap_or(text);
        let mut pattern: Vec<&str> = text.split('/').collect();
        if !anchored {
            pattern.insert(0, "**");
        }
        let path: Vec<&str> = path.split('/').collect();
        let longest = path.len() - usize::from(directories_only);
        (1..=longest).any(|length| names_match(&pattern, &path[..length]))
    }
}

impl fmt::Display for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether the names of a path match the names of a pattern, all of them.
fn names_match(pattern: &[&str], path: &[&str]) -> bool {
    wildcard_match(
        pattern,
        path,
        |name| *name == "**",
        |name, part| {
            let (name, part): (Vec<char>, Vec<char>) =
                (name.chars().collect(), part.chars().collect());
            wildcard_match(&name, &part, |c| *c == '*', |c, other| *c == '?' || c == other)
        },
    )
}

/// Whether `items` match `pattern`, in which some elements stand for any number of items. Takes at most the product of
/// both lengths.
fn wildcard_match<P, I>(
    pattern: &[P],
    items: &[I],
    is_wildcard: impl Fn(&P) -> bool,
    is_match: impl Fn(&P, &I) -> bool,
) -> bool {
    let (mut at, mut item) = (0, 0);
    let mut last_wildcard: Option<(usize, usize)> = None;
    while item < items.len() {
        match pattern.get(at) {
            Some(one) if is_wildcard(one) => {
                last_wildcard = Some((at, item));
                at += 1;
            }
            Some(one) if is_match(one, &items[item]) => {
                at += 1;
                item += 1;
            }
            _ => match &mut last_wildcard {
                Some((wildcard, taken)) => {
                    *taken += 1;
                    (at, item) = (*wildcard + 1, *taken);
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(is_wildcard)
}

/// Reads patterns that are separated by commas.
pub fn parse_path_patterns(text: &str) -> Result<Vec<PathPattern>, Invalid> {
    let words = text.split(',').map(str::trim).filter(|word| !word.is_empty());
    words.map(PathPattern::parse).collect()
}

/// Writes patterns as [`parse_path_patterns`] reads them.
pub fn write_path_patterns(patterns: &[PathPattern]) -> String {
    patterns.iter().map(PathPattern::as_str).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn matches(pattern: &str, path: &str) -> bool {
        PathPattern::parse(pattern).unwrap().matches(path)
    }

    #[test]
    fn patterns_match_as_in_gitignore() {
        for (pattern, path) in [
            ("src/**", "src/main.rs"),
            ("src/**", "src/a/b.rs"),
            ("src", "src/a/b.rs"),
            ("src", "web/src/a.js"),
            ("src/", "src/a"),
            ("/src", "src/a"),
            ("*.rs", "a/b/c.rs"),
            ("/*.toml", "Cargo.toml"),
            ("a/**/z", "a/z"),
            ("a/**/z", "a/b/c/z"),
            ("**/test_*.py", "x/test_a.py"),
            ("**/test_*.py", "test_a.py"),
            ("fil?.txt", "file.txt"),
            ("*", "anything/at/all"),
            (".github/workflows/", ".github/workflows/ci.yml"),
            ("*a*b*", "xaxxbx"),
        ] {
            assert!(matches(pattern, path), "{pattern} {path}");
        }
        for (pattern, path) in [
            ("src/**", "web/src/a.js"),
            ("/src", "web/src/a"),
            ("src/", "src"),
            ("*.rs", "a.rst"),
            ("a/*", "b/c"),
            ("a/*/z", "a/z"),
            ("fil?.txt", "fil.txt"),
            ("src", "source/a"),
        ] {
            assert!(!matches(pattern, path), "{pattern} {path}");
        }
    }

    #[test]
    fn what_is_no_pattern_is_refused_with_an_example() {
        for wrong in ["", "/", "a//b", "../x", "a/./b", "!a", "[a-z]", "{a,b}", "a\\b", "a\nb"] {
            let said = PathPattern::parse(wrong).unwrap_err().0;
            assert!(said.contains("src/**"), "{wrong}: {said}");
        }
    }

    proptest! {
        #[test]
        fn every_path_matches_itself_and_its_directories(names in prop::collection::vec("[a-z.]{0,2}[a-z]", 1..5)) {
            let path = names.join("/");
            for length in 1..=names.len() {
                let pattern = format!("/{}", names[..length].join("/"));
                prop_assert!(matches(&pattern, &path), "{} {}", pattern, path);
            }
        }

        #[test]
        fn lists_read_back(patterns in prop::collection::vec("[a-z*?]{1,6}(/[a-z*]{1,4}){0,2}/?", 0..4)) {
            let parsed: Vec<PathPattern> =
                patterns.iter().map(|one| PathPattern::parse(one).unwrap()).collect();
            prop_assert_eq!(parse_path_patterns(&write_path_patterns(&parsed)).unwrap(), parsed);
        }

        #[test]
        fn matching_ends(pattern in "[a*?/]{1,40}", path in "[a/]{0,80}") {
            if let Ok(pattern) = PathPattern::parse(&pattern) {
                pattern.matches(&path);
            }
        }
    }
}
