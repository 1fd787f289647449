//! Inside the crates of the operations, modules depend on each other one way.

use std::collections::{BTreeMap, BTreeSet};

use gt_tidy::assert_none;
use gt_tidy::workspace::{SourceFile, files};

/// The crates whose top-level modules are layers.
const LAYERED: [&str; 6] = ["town", "beads", "scheduling", "workqueue", "execution", "daemon"];

/// The text without comments. A reference in a comment is a link, not a dependency.
fn code(file: &SourceFile) -> String {
    let lines = file.text.lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

/// The first names of the paths that begin with `crate::` in this text.
fn first_names(text: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for rest in text.split("crate::").skip(1) {
        match rest.strip_prefix('{') {
            None => names.extend(name_at(rest)),
            Some(group) => {
                let (mut depth, mut is_first) = (0_u32, true);
                for (at, c) in group.char_indices() {
                    match c {
                        '{' => depth += 1,
                        '}' if depth == 0 => break,
                        '}' => depth -= 1,
                        ',' if depth == 0 => is_first = true,
                        c if is_first && depth == 0 && !c.is_whitespace() => {
                            names.extend(name_at(&group[at..]));
                            is_first = false;
                        }
                        _ => {}
                    }
                }
            }
        }
    }
    names
}

fn name_at(text: &str) -> Option<String> {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    (end > 0).then(|| text[..end].to_owned())
}

/// The module of each name that the root of a crate gives to others: `pub use town::Town;`.
fn reexports(root: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for rest in root.split("pub use ").skip(1) {
        let Some((path, _)) = rest.split_once(';') else { continue };
        let Some((module, names)) = path.split_once("::") else { continue };
        for name in names.trim_matches(['{', '}']).split(',').map(str::trim) {
            let name = name.rsplit(" as ").next().unwrap_or(name);
            found.insert(name.to_owned(), module.to_owned());
        }
    }
    found
}

/// For each top-level module of a crate, those that it names.
fn edges(package: &str, all: &[SourceFile]) -> BTreeMap<String, BTreeSet<String>> {
    let source = format!("crates/{package}/src/");
    let root = all.iter().find(|file| file.path == format!("{source}lib.rs"));
    let given = root.map(|root| reexports(&root.text)).unwrap_or_default();
    let mut edges: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for file in all {
        let Some(path) = file.path.strip_prefix(&source).filter(|path| *path != "lib.rs") else {
            continue;
        };
        let module = path.split('/').next().unwrap_or(path).trim_end_matches(".rs").to_owned();
        let named = first_names(&code(file)).into_iter();
        let named = named.map(|name| given.get(&name).cloned().unwrap_or(name));
        let others = edges.entry(module.clone()).or_default();
        others.extend(named.filter(|name| *name != module));
    }
    let modules: BTreeSet<String> = edges.keys().cloned().collect();
    for named in edges.values_mut() {
        named.retain(|name| modules.contains(name));
    }
    edges
}

/// The modules that are left when those without dependencies among the rest are taken away again and again: those on a
/// cycle, and those that depend on them.
fn on_cycles(mut edges: BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    loop {
        let free: Vec<String> = edges
            .iter()
            .filter(|(_, named)| named.is_empty())
            .map(|(name, _)| name.clone())
            .collect();
        if free.is_empty() {
            return edges.into_iter().map(|(name, named)| format!("{name} -> {named:?}")).collect();
        }
        for name in &free {
            edges.remove(name);
        }
        for named in edges.values_mut() {
            named.retain(|name| !free.contains(name));
        }
    }
}

#[test]
fn modules_depend_one_way() {
    let all: Vec<SourceFile> = files().into_iter().filter(SourceFile::is_rust).collect();
    for package in LAYERED {
        let edges = edges(package, &all);
        assert!(edges.len() > 1, "crates/{package} has modules");
        let findings = on_cycles(edges);
        let wrong = format!("modules of crates/{package} that depend on each other in a circle:");
        assert_none(&wrong, &findings);
    }
}

#[test]
fn circles_are_found() {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let edges = BTreeMap::from([
        ("a".to_owned(), names(&["b"])),
        ("b".to_owned(), names(&["a"])),
        ("c".to_owned(), names(&[])),
    ]);
    assert_eq!(on_cycles(edges).len(), 2);
    assert_eq!(
        first_names("use crate::{Town, beads::{self, x}}; crate::rigs::y(); use crate::hosts;"),
        names(&["Town", "beads", "hosts", "rigs"])
    );
}
