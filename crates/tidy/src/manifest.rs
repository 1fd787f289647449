//! Manifests read as text, because the rules are about the text itself: comments, and
//! where a version is named.

/// A dependency as it is written in a manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManifestEntry {
    /// The name in front of the equals sign.
    pub name: String,
    /// The line it begins on, from 1.
    pub line: usize,
    /// Whether the line above is a comment.
    pub commented: bool,
    /// The text after the equals sign, on this line.
    pub value: String,
}

/// The entries of every section whose name `wanted` accepts. A section of its own, such as
/// `[dependencies.serde]`, is an entry of `dependencies` with an empty value.
pub fn entries(manifest: &str, wanted: impl Fn(&str) -> bool) -> Vec<ManifestEntry> {
    let mut entries = Vec::new();
    let mut inside = false;
    let mut open_brackets = 0_usize;
    let mut commented = false;
    for (index, line) in manifest.lines().enumerate() {
        let line = line.trim();
        let was_commented = std::mem::replace(&mut commented, line.starts_with('#'));
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let mut entry = |name: &str, value: &str| {
            entries.push(ManifestEntry {
                name: name.trim().trim_matches('"').to_owned(),
                line: index + 1,
                commented: was_commented,
                value: value.trim().to_owned(),
            });
        };
        if open_brackets == 0 && line.starts_with('[') {
            let section = line.trim_matches(['[', ']']);
            inside = wanted(section);
            if let Some((parent, name)) = section.rsplit_once('.')
                && wanted(parent)
            {
                entry(name, "");
            }
            continue;
        }
        if inside
            && open_brackets == 0
            && let Some((key, value)) = line.split_once('=')
        {
            // `serde.workspace = true` says the same as `serde = { workspace = true }`.
            match key.split_once('.') {
                Some((name, rest)) => entry(name, &format!("{rest}={value}")),
                None => entry(key, value),
            }
        }
        // The lines after an open bracket belong to the same entry.
        let count = |brackets: [char; 2]| line.matches(brackets).count();
        open_brackets = (open_brackets + count(['[', '{'])).saturating_sub(count([']', '}']));
    }
    entries
}

/// Whether a section lists dependencies, for all platforms or for some.
pub fn lists_dependencies(section: &str) -> bool {
    let last = section.rsplit('.').next().unwrap_or(section);
    matches!(last, "dependencies" | "dev-dependencies" | "build-dependencies")
}

/// Whether an entry takes its version from the workspace.
pub fn is_inherited(entry: &ManifestEntry) -> bool {
    entry.value.replace(' ', "").contains("workspace=true")
}

/// Whether an entry names a crate in this repository.
pub fn is_ours(entry: &ManifestEntry) -> bool {
    entry.value.replace(' ', "").contains("path=\"crates/")
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str = r#"
[package]
name = "x"

[workspace.dependencies]
ours = { path = "crates/ours" }

# Why this one.
one = "1"
two = { version = "2", features = [
    "a = b",
    "c",
] }

# A heading, not a reason.

three.workspace = true

[workspace.dependencies.four]
version = "4"

[features]
five = []
"#;

    fn workspace() -> Vec<ManifestEntry> {
        entries(MANIFEST, |section| section == "workspace.dependencies")
    }

    #[test]
    fn entries_are_found_with_their_lines() {
        let found: Vec<(String, usize)> =
            workspace().into_iter().map(|entry| (entry.name, entry.line)).collect();
        let expected = [("ours", 6), ("one", 9), ("two", 10), ("three", 17), ("four", 19)];
        assert_eq!(found, expected.map(|(name, line)| (name.to_owned(), line)));
    }

    #[test]
    fn a_comment_counts_for_the_next_line_only() {
        let commented: Vec<bool> = workspace().iter().map(|entry| entry.commented).collect();
        assert_eq!(commented, [false, true, false, false, false]);
    }

    #[test]
    fn ours_and_inherited_are_told_apart() {
        let entries = workspace();
        assert!(is_ours(&entries[0]));
        assert!(!is_ours(&entries[1]));
        assert!(is_inherited(&entries[3]));
        assert!(!is_inherited(&entries[1]));
    }

    #[test]
    fn sections_of_dependencies_are_known() {
        assert!(lists_dependencies("dependencies"));
        assert!(lists_dependencies("dev-dependencies"));
        assert!(lists_dependencies("target.'cfg(any())'.dependencies"));
        assert!(!lists_dependencies("package"));
        assert!(!lists_dependencies("dependencies.serde"));
    }
}
