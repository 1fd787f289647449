//! Dependencies: between our crates they point one way; on others they are few and justified. Licences, banned packages
//! and sources are in `deny.toml`, which `scripts/deny` checks.

use gt_tidy::assert_none;
use gt_tidy::manifest::{entries, is_inherited, is_ours, lists_dependencies};
use gt_tidy::policy::{
    DATABASE_DRIVERS, LAYERS, MAY_USE_DATABASES, MayUse, ROOT_MANIFESTS, WELL_KNOWN,
};
use gt_tidy::workspace::{array, files, own_metadata, read, text};
use serde_json::Value;

/// The dependencies that a package is built with. Tests may use more, because nothing is built upon them.
fn shipped_dependencies(package: &Value) -> impl Iterator<Item = &str> {
    array(package, "dependencies")
        .iter()
        .filter(|dependency| dependency["kind"] != "dev")
        .map(|dependency| text(dependency, "name"))
}

#[test]
fn crates_depend_on_each_other_one_way() {
    let metadata = own_metadata();
    let packages = array(&metadata, "packages");
    let ours: Vec<&str> = packages.iter().map(|package| text(package, "name")).collect();
    let mut findings = Vec::new();
    for package in packages {
        let name = text(package, "name");
        let Some(layer) = LAYERS.iter().find(|layer| layer.package == name) else {
            findings.push(format!(
                "{name} has no place yet: add it to LAYERS in crates/tidy/src/policy.rs"
            ));
            continue;
        };
        let MayUse::Only(allowed) = layer.may_use else {
            continue;
        };
        let allowed: Vec<String> =
            allowed.split_whitespace().map(|name| format!("gt-{name}")).collect();
        for dependency in shipped_dependencies(package) {
            if ours.contains(&dependency) && !allowed.iter().any(|name| name == dependency) {
                let allowed =
                    if allowed.is_empty() { "none of ours".to_owned() } else { allowed.join(", ") };
                findings.push(format!(
                    "{name} -> {dependency}: {name} may depend on {allowed}, because {}",
                    layer.why
                ));
            }
        }
    }
    for layer in LAYERS {
        if !ours.contains(&layer.package) {
            findings.push(format!("{} is in LAYERS but not in the workspace", layer.package));
        }
    }
    assert_none("dependencies between our crates point from the outside in:", &findings);
}

#[test]
fn databases_are_used_by_the_store_alone() {
    let metadata = own_metadata();
    let mut findings = Vec::new();
    for package in array(&metadata, "packages") {
        let name = text(package, "name");
        let driver = shipped_dependencies(package).find(|name| DATABASE_DRIVERS.contains(name));
        if let (Some(driver), false) = (driver, MAY_USE_DATABASES.contains(&name)) {
            let fix = "give gt-store a verb for what it needs";
            findings.push(format!("{name} depends on {driver}: {fix}"));
        }
    }
    assert_none("databases are behind gt-store:", &findings);
}

#[test]
fn every_dependency_is_justified() {
    let manifest = read("Cargo.toml");
    let dependencies = entries(&manifest, |section| section == "workspace.dependencies");
    assert!(!dependencies.is_empty(), "Cargo.toml lists no dependencies");
    let findings: Vec<String> = dependencies
        .iter()
        .filter(|entry| !entry.commented && !is_ours(entry))
        .filter(|entry| !WELL_KNOWN.contains(&entry.name.as_str()))
        .map(|entry| format!("Cargo.toml:{}: {}", entry.line, entry.name))
        .collect();
    assert_none("say in a comment on the line above why we need it:", &findings);
}

#[test]
fn versions_are_named_in_the_root_manifest_alone() {
    let mut findings = Vec::new();
    for file in files() {
        if ROOT_MANIFESTS.contains(&file.path.as_str()) || !file.path.ends_with("Cargo.toml") {
            continue;
        }
        for entry in entries(&file.text, lists_dependencies) {
            if !is_inherited(&entry) {
                findings.push(format!("{}:{}: {}", file.path, entry.line, entry.name));
            }
        }
    }
    assert_none(
        "write `name.workspace = true`, with the version and its reason in the root Cargo.toml:",
        &findings,
    );
}
