//! Readers of source text that several tests use.

/// The names of the tests in a file, in words.
pub(crate) fn tests_of(source: &str) -> Vec<String> {
    let mut lines = source.lines().map(str::trim);
    let mut found = Vec::new();
    while lines.any(|line| line == "#[test]") {
        let declared = lines.find_map(|line| line.strip_prefix("fn "));
        let name = declared.and_then(|rest| rest.split('(').next()).unwrap_or_default();
        found.push(name.replace('_', " "));
    }
    found
}
