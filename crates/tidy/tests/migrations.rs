//! A migration that was released is never changed: stores exist that it has made.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use gt_tidy::assert_none;
use gt_tidy::workspace::{output, root};

/// Where the migrations lie, in one directory for each kind of database.
const DIRECTORY: &str = "crates/store/migrations";

/// The checksum of each migration, as `sha256sum` writes them.
const CHECKSUMS: &str = "crates/store/migrations/CHECKSUMS";

/// Reads lines of `<sha256>  <path>` into the checksum of each path.
fn parse(listing: &str) -> BTreeMap<&str, &str> {
    let lines = listing.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.filter_map(|line| line.split_once("  ")).map(|(sum, path)| (path, sum)).collect()
}

/// The paths of all migrations, from their directory.
fn migrations() -> Vec<String> {
    let directory = root().join(DIRECTORY);
    let mut found = Vec::new();
    for database in names_in(&directory) {
        let inside = directory.join(&database);
        if inside.is_dir() {
            let names = names_in(&inside).into_iter();
            let is_sql =
                |name: &String| Path::new(name).extension().is_some_and(|end| end == "sql");
            found.extend(names.filter(is_sql).map(|name| format!("{database}/{name}")));
        }
    }
    found.sort();
    found
}

fn names_in(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory)
        .unwrap_or_else(|error| panic!("cannot list {}: {error}", directory.display()));
    entries
        .map(|entry| entry.expect("a directory can be listed").file_name())
        .map(|name| name.to_string_lossy().into_owned())
        .collect()
}

#[test]
fn migrations_are_never_changed() {
    let migrations = migrations();
    assert!(
        migrations.iter().any(|path| path.starts_with("sqlite/")),
        "there are no migrations for SQLite in {DIRECTORY}"
    );
    let paths: Vec<String> = migrations.iter().map(|path| format!("{DIRECTORY}/{path}")).collect();
    let arguments: Vec<&str> = paths.iter().map(String::as_str).collect();
    let listing = output("sha256sum", &arguments);
    let actual = parse(&listing);
    // Without the file nothing is recorded, and the findings say how to change that.
    let recorded = fs::read_to_string(root().join(CHECKSUMS)).unwrap_or_default();
    let recorded = parse(&recorded);

    let mut findings = Vec::new();
    for (path, full_path) in migrations.iter().zip(&arguments) {
        let sum = actual.get(full_path);
        match recorded.get(path.as_str()) {
            None => findings.push(format!(
                "{path} is not recorded; once it is final: \
                 (cd {DIRECTORY} && sha256sum {path} >> CHECKSUMS)"
            )),
            Some(recorded) if Some(recorded) != sum => findings.push(format!(
                "{path} was changed; take the change back and write a new migration instead"
            )),
            Some(_) => {}
        }
    }
    for path in recorded.keys().filter(|path| !migrations.iter().any(|known| known == *path)) {
        findings.push(format!("{path} is gone; stores that have run it still need it"));
    }
    assert_none("migrations are immutable:", &findings);
}

#[test]
fn checksums_are_read_as_they_are_written() {
    let listing = "# a comment\n\nabc  sqlite/0001_a.sql\ndef  sqlite/0002_b.sql\n";
    let parsed = parse(listing);
    assert_eq!(parsed.len(), 2);
    assert_eq!(parsed["sqlite/0002_b.sql"], "def");
}
