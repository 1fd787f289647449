//! Every setting passes through its layers.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use gt_core::RigSlug;
use gt_core::checks::{parse_checks, parse_path_patterns};
use gt_core::cost::PriceTable;
use gt_core::hosting::PullRequestTrust;
use gt_core::schedule::Money;
use gt_core::settings::{
    ACCESSORS, Accessor, KEYS, Setting, SettingKind, SettingOrigin, parse_bytes,
};
use gt_store::{Options, SettingScope};
use gt_town::town::install;
use gt_town::{Actor, Environment, SystemClock, Town, settings};

/// The files with settings, the weakest first.
const FILES: [&str; 2] = ["mayor/town-settings.json", "settings/config.json"];

const RIG: &str = "web";

fn town(directory: &Path) -> Town {
    let (root, environment) = (directory.join("town"), Environment::default());
    let actor = Actor { name: "tester".to_owned(), owner: String::new() };
    let clock = Arc::new(SystemClock);
    install(&root, &environment, &actor, &*clock).unwrap();
    Town::open(&root, &root, &environment, actor, clock, Options::default(), Arc::new(())).unwrap()
}

fn put_in_file(town: &Town, file: &str, name: &str, value: &str) {
    let path = town.root().join(file);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, format!("{{{name:?}: {value:?}}}")).unwrap();
}

fn put_in_store(town: &Town, name: &str, value: Option<&str>) {
    town.write(|writer| Ok(writer.put_setting(SettingScope::Town, name, value)?)).unwrap();
}

/// A value that is not the default, and what Rust prints for it.
fn another(setting: &Setting) -> (String, String) {
    match setting.kind {
        SettingKind::Bool => {
            let other = (setting.default != "true").to_string();
            (other.clone(), other)
        }
        SettingKind::Integer { max, .. } => (max.to_string(), max.to_string()),
        SettingKind::Decimal => ("2.5".to_owned(), format!("{:?}", Money(2_500_000))),
        SettingKind::Duration => ("77s".to_owned(), format!("{:?}", Duration::from_secs(77))),
        SettingKind::Bytes => ("5MiB".to_owned(), parse_bytes("5MiB").unwrap().to_string()),
        SettingKind::Choice(words) => {
            let other = words.iter().find(|word| **word != setting.default).unwrap();
            ((*other).to_owned(), format!("{other:?}"))
        }
        SettingKind::WebAddress => quoted("https://example.com/hook"),
        SettingKind::WorkerRights => quoted("beads"),
        SettingKind::PullRequestTrust => {
            ("ada".to_owned(), format!("{:?}", PullRequestTrust::parse("ada").unwrap()))
        }
        SettingKind::Prices => {
            ("another=1/2".to_owned(), format!("{:?}", PriceTable::parse("another=1/2").unwrap()))
        }
        SettingKind::Networks => quoted("10.0.0.7"),
        SettingKind::Checks => {
            let value = r#"[{"name":"test","command":"npm test","timeout":"5m"}]"#;
            (value.to_owned(), format!("{:?}", parse_checks(value).unwrap()))
        }
        SettingKind::PathPatterns => (
            "src/**,*.lock".to_owned(),
            format!("{:?}", parse_path_patterns("src/**,*.lock").unwrap()),
        ),
        SettingKind::HostingProvider
        | SettingKind::ForkOwner
        | SettingKind::PlainName
        | SettingKind::PlainNames
        | SettingKind::Text
        | SettingKind::Command
        | SettingKind::CommandWrap
        | SettingKind::Runtime
        | SettingKind::Secret => quoted("another"),
    }
}

fn quoted(text: &str) -> (String, String) {
    (text.to_owned(), format!("{text:?}"))
}

/// The value that the code gets, and the origin that is shown to people.
fn in_force(town: &Town, accessor: &Accessor, name: &str) -> (String, SettingOrigin) {
    let rig = RigSlug::parse(RIG).unwrap();
    let layers = settings::layers(town).unwrap();
    ((accessor.read)(&layers, &rig).unwrap(), layers.get(name).unwrap().origin)
}

#[test]
fn every_setting_counts_from_each_of_its_layers() {
    let directory = tempfile::tempdir().unwrap();
    let town = town(directory.path());
    for (setting, accessor) in KEYS.iter().zip(ACCESSORS) {
        assert_eq!(setting.name, accessor.setting);
        let name = setting.name.replace('*', RIG);
        let (default, origin) = in_force(&town, accessor, &name);
        assert_eq!(origin, SettingOrigin::Default, "{name}");
        let (value, expected) = another(setting);
        assert_ne!(default, expected, "{name}");

        for file in FILES {
            put_in_file(&town, file, &name, &value);
            let told = in_force(&town, accessor, &name);
            if setting.is_store_only() {
                assert_eq!(told, (default.clone(), SettingOrigin::Default), "{name} in {file}");
            } else {
                assert_eq!(
                    told,
                    (expected.clone(), SettingOrigin::File(file.to_owned())),
                    "{name}"
                );
            }
        }
        if setting.is_file_only() {
            put_in_store(&town, &name, Some(setting.default));
            assert_eq!(in_force(&town, accessor, &name).0, expected, "{name}");
            put_in_store(&town, &name, None);
            for file in FILES {
                std::fs::remove_file(town.root().join(file)).unwrap();
            }
            continue;
        }
        // The store is over the files: first with the default, then with the other value.
        put_in_store(&town, &name, Some(setting.default));
        assert_eq!(in_force(&town, accessor, &name), (default, SettingOrigin::Store), "{name}");
        for file in FILES {
            std::fs::remove_file(town.root().join(file)).unwrap();
        }
        put_in_store(&town, &name, Some(&value));
        assert_eq!(in_force(&town, accessor, &name), (expected, SettingOrigin::Store), "{name}");
        put_in_store(&town, &name, None);
    }
}
