//! Checks that the files of a repository suggest.

use serde_json::Value;

use super::{CHECK_TIMEOUT_DEFAULT, CheckDefinition};

/// The files at the top of a repository that [`suggest_checks`] looks at.
pub const SUGGESTION_FILES: [&str; 19] = [
    "Cargo.toml",
    "package.json",
    "package-lock.json",
    "pnpm-lock.yaml",
    "yarn.lock",
    "pyproject.toml",
    "pytest.ini",
    "tox.ini",
    "setup.cfg",
    "go.mod",
    "GNUmakefile",
    "makefile",
    "Makefile",
    "justfile",
    "Justfile",
    ".justfile",
    "uv.lock",
    "poetry.lock",
    "conftest.py",
];

/// The text that `npm init` writes for a project without tests.
const NO_TESTS: &str = "no test specified";

/// The checks for a repository with these files at its top, each with its name and contents. The same tests are not
/// suggested twice: targets of make and just count where no language has tests of its own.
pub fn suggest_checks(files: &[(String, String)]) -> Vec<CheckDefinition> {
    let content = |name: &str| {
        let found = files.iter().find(|(file, _)| file == name);
        found.map(|(_, content)| content.as_str())
    };
    let first = |names: &[&str]| names.iter().find_map(|name| content(name));
    let mut suggested: Vec<(&str, &str, String)> = Vec::new();
    if let Some(package) = content("package.json") {
        let scripts = scripts_of(package);
        let runner = if content("pnpm-lock.yaml").is_some() {
            "pnpm"
        } else if content("yarn.lock").is_some() {
            "yarn"
        } else {
            "npm"
        };
        let has = |name: &str| scripts.iter().any(|script| script == name);
        if has("lint") {
            suggested.push((runner, "lint", format!("{runner} run lint")));
        }
        if has("test") {
            suggested.push((runner, "test", format!("{runner} test")));
        }
    }
    if content("Cargo.toml").is_some() {
        suggested.push(("cargo", "test", "cargo test".to_owned()));
    }
    if content("go.mod").is_some() {
        suggested.push(("go", "test", "go test ./...".to_owned()));
    }
    let python = ["pyproject.toml", "tox.ini", "setup.cfg"];
    let names_pytest = |name: &&str| content(name).is_some_and(|text| text.contains("pytest"));
    if first(&["pytest.ini", "conftest.py"]).is_some() || python.iter().any(names_pytest) {
        let command = if content("uv.lock").is_some() {
            "uv run pytest"
        } else if content("poetry.lock").is_some() {
            "poetry run pytest"
        } else {
            "pytest"
        };
        suggested.push(("python", "test", command.to_owned()));
    }
    if !suggested.iter().any(|(_, name, _)| *name == "test") {
        let make = first(&["GNUmakefile", "makefile", "Makefile"]).unwrap_or_default();
        let just = first(&["justfile", "Justfile", ".justfile"]).unwrap_or_default();
        if has_recipe(just, "test") {
            suggested.push(("just", "test", "just test".to_owned()));
        } else if has_recipe(make, "test") {
            suggested.push(("make", "test", "make test".to_owned()));
        } else if has_recipe(make, "check") {
            suggested.push(("make", "check", "make check".to_owned()));
        }
    }
    let mut checks: Vec<CheckDefinition> = Vec::new();
    for (tool, name, command) in suggested {
        let is_taken = checks.iter().any(|check| check.name == name);
        let name = if is_taken { format!("{tool}-{name}") } else { name.to_owned() };
        let check = CheckDefinition::new(&name, &command, CHECK_TIMEOUT_DEFAULT, 0, Vec::new());
        checks.extend(check.ok());
    }
    checks
}

/// The names of the scripts of a `package.json` that do something.
fn scripts_of(package: &str) -> Vec<String> {
    let package: Value = serde_json::from_str(package).unwrap_or_default();
    let scripts = package.get("scripts").and_then(Value::as_object);
    let real = scripts.into_iter().flatten().filter(|(_, command)| {
        command.as_str().is_some_and(|text| !text.trim().is_empty() && !text.contains(NO_TESTS))
    });
    real.map(|(name, _)| name.clone()).collect()
}

/// Whether a makefile or justfile has a target of this name.
fn has_recipe(text: &str, name: &str) -> bool {
    text.lines().any(|line| {
        let Some((targets, rest)) = line.split_once(':') else { return false };
        let is_recipe = !line.starts_with([' ', '\t', '#']) && !rest.starts_with('=');
        let target = targets.trim_start_matches('@');
        let mut words = target.split_whitespace();
        is_recipe && !target.contains('=') && words.any(|word| word == name)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn suggested(files: &[(&str, &str)]) -> Vec<String> {
        let own = |(name, text): &(&str, &str)| ((*name).to_owned(), (*text).to_owned());
        let files: Vec<(String, String)> = files.iter().map(own).collect();
        suggest_checks(&files).iter().map(|one| format!("{}: {}", one.name, one.command)).collect()
    }

    #[test]
    fn each_kind_of_project_has_its_commands() {
        let package = r#"{"scripts": {"test": "jest", "lint": "eslint .", "build": "x"}}"#;
        for (files, expected) in [
            (vec![("Cargo.toml", "[package]")], vec!["test: cargo test"]),
            (vec![("package.json", package)], vec!["lint: npm run lint", "test: npm test"]),
            (
                vec![("package.json", package), ("pnpm-lock.yaml", "")],
                vec!["lint: pnpm run lint", "test: pnpm test"],
            ),
            (
                vec![("package.json", package), ("yarn.lock", "")],
                vec!["lint: yarn run lint", "test: yarn test"],
            ),
            (vec![("go.mod", "module x")], vec!["test: go test ./..."]),
            (vec![("pyproject.toml", "[tool.pytest.ini_options]")], vec!["test: pytest"]),
            (vec![("pytest.ini", ""), ("uv.lock", "")], vec!["test: uv run pytest"]),
            (vec![("Makefile", "all:\n\ttrue\ntest: all\n\trun\n")], vec!["test: make test"]),
            (vec![("Makefile", "check:\n\trun\n")], vec!["check: make check"]),
            (vec![("justfile", "default: test\n\ntest *args:\n  run\n")], vec!["test: just test"]),
            (
                vec![("Cargo.toml", ""), ("package.json", package), ("Makefile", "test:\n")],
                vec!["lint: npm run lint", "test: npm test", "cargo-test: cargo test"],
            ),
        ] {
            assert_eq!(suggested(&files), expected, "{files:?}");
        }
    }

    #[test]
    fn a_project_without_tests_gets_no_suggestion() {
        let empty = r#"{"scripts": {"test": "echo \"Error: no test specified\" && exit 1"}}"#;
        for files in [
            vec![],
            vec![("package.json", empty)],
            vec![("package.json", "not json")],
            vec![("pyproject.toml", "[project]")],
            vec![("Makefile", "test := 1\nTEST: x\n\ttest: y\n# test: z\n")],
            vec![("justfile", "test := 'x'\n")],
        ] {
            assert_eq!(suggested(&files), Vec::<String>::new(), "{files:?}");
        }
    }

    proptest! {
        #[test]
        fn no_file_makes_it_panic_and_names_are_unique(
            texts in prop::collection::vec((0..SUGGESTION_FILES.len(), ".{0,60}"), 0..6),
        ) {
            let files: Vec<(String, String)> =
                texts.into_iter().map(|(at, text)| (SUGGESTION_FILES[at].to_owned(), text)).collect();
            let checks = suggest_checks(&files);
            let mut names: Vec<&str> = checks.iter().map(|check| check.name.as_str()).collect();
            names.sort_unstable();
            names.dedup();
            prop_assert_eq!(names.len(), checks.len());
        }
    }
}
