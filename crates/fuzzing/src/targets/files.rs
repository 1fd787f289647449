//! Small files around the beads, and the address of a database.

use std::error::Error;

use gt_core::Json;
use gt_executors::git::GitIdentity;
use gt_records::{
    flat_settings, json_settings, parse_route, pause_remark, redirect_target, rig_entries,
};
use gt_store::PostgresAddress;
use gt_town::{SettingScope, TownFile, settings};

use crate::promise::{accepted, tells_on_one_line, text, two_texts};

/// Routes, redirects and flat settings beside beads; and the values of `bd config`.
pub(super) fn places(input: &[u8]) {
    let Some(file) = text(input) else { return };
    if let Some(target) = redirect_target(file) {
        assert!(!target.is_empty() && target.trim() == target && !target.contains('\n'));
    }
    let (found, others) = flat_settings(file);
    let lines = file.lines().count();
    assert!(found.len() <= lines && others.len() <= lines);
    assert!(others.iter().all(|number| (1..=lines).contains(number)));
    assert!(others.is_sorted(), "{others:?}");
    for (key, value) in &found {
        accepted(settings::check_free(SettingScope::Beads, key, value));
    }
    for line in file.lines() {
        if let Some(Some(route)) = accepted(parse_route(line)) {
            assert!(!route.path.is_empty() && !route.path.chars().any(char::is_control));
        }
    }
    if let Some((key, value)) = two_texts(input) {
        accepted(settings::check_free(SettingScope::Beads, key, value));
        accepted(settings::check_free(SettingScope::Beads, "status.custom", key));
    }
}

pub(super) const RIGS: &[&str] = &[
    "{\"rigs\":{",
    "\"web\":{",
    "\"git_url\":",
    "\"local_repo\":",
    "\"beads\":{\"prefix\":",
    "\"added_at\":\"2026-01-01T00:00:00Z\"",
    "\"paused\":true",
    "\"paused_by\":",
    "\"paused_at\":",
    "\"default_branch\":",
];

/// The registry of rigs and the pause state of a Gas Town.
pub(super) fn gas_town(input: &[u8]) {
    let Some(file) = text(input) else { return };
    if let Ok(value) = serde_json::from_str(file)
        && let Some(rigs) = rig_entries(&value)
    {
        assert!(rigs.is_sorted_by(|a, b| a.name < b.name), "a rig is there twice");
        for rig in rigs {
            assert_eq!(rig.clone().or(rig.clone()), rig);
        }
    }
    if let Some(json) = accepted(Json::parse(file)) {
        tells_on_one_line(&pause_remark(&json));
    }
}

/// `town.toml`.
pub(super) fn town_file(input: &[u8]) {
    let Some(file) = text(input) else { return };
    if let Some(town) = accepted(TownFile::parse(file)) {
        let written = town.to_text().expect("a town file has only texts");
        assert_eq!(TownFile::parse(&written), Ok(town), "{written}");
    }
}

/// The JSON files of older programs.
pub(super) fn settings_file(input: &[u8]) {
    let Some(file) = text(input) else { return };
    for base in ["", "rig.web"] {
        if let Some(found) = accepted(json_settings(file, base)) {
            for (name, _) in &found.known {
                assert!(gt_core::settings::lookup(name).is_ok(), "{name}");
            }
        }
    }
}

pub(super) const URLS: &[&str] = &[
    "postgres://",
    "postgresql://",
    "postgres:",
    "me:",
    "@db/town",
    ":5432",
    "?schema=",
    "&pool_max=",
    "&pooler=transaction",
    "&sslmode=verify-full",
    "&sslrootcert=%2F",
    "&password=",
    "password=",
    "%70assword=",
    "host=",
    " dbname=",
    "%",
    "%zz",
    "%ff",
    "[::1]",
    "&options=",
    "&application_name=",
];

/// A password that must never be shown.
const PASSWORD: &str = "hunter2";

/// The URL of a database. A password is never shown, in any part of the URL.
pub(super) fn database_url(input: &[u8]) {
    let Some((before, behind)) = two_texts(input) else { return };
    if before.contains(PASSWORD) || behind.contains(PASSWORD) {
        return;
    }
    // Behind another question mark it would be the value of something else.
    let path = before.replace('?', "");
    for url in [
        format!("{before}{behind}"),
        format!("postgres://{before}:{PASSWORD}@{behind}"),
        format!("postgres://me:{before}{PASSWORD}{behind}@db/town"),
        format!("postgres://me@db/{path}?password={PASSWORD}&{behind}"),
        format!("postgres://me@db/{path}?{behind}&p%61ssword={PASSWORD}"),
        format!("postgres:{before} password={PASSWORD} {behind}"),
    ] {
        for separate in [None, Some(PASSWORD)] {
            match PostgresAddress::parse(&url, separate) {
                Ok(server) => {
                    tells_on_one_line(&server.shown());
                    hides(&url, server.shown());
                    hides(&url, &format!("{server:?}"));
                }
                Err(error) => {
                    tells_on_one_line(&error);
                    hides(&url, &format!("{error:?}"));
                    let mut cause: Option<&dyn Error> = Some(&error);
                    while let Some(error) = cause {
                        hides(&url, &error.to_string());
                        cause = error.source();
                    }
                }
            }
        }
    }
}

#[track_caller]
fn hides(url: &str, shown: &str) {
    assert!(!shown.contains(PASSWORD), "{url:?} gives the password away: {shown}");
}

/// A configuration file of git.
pub(super) fn git_config(input: &[u8]) {
    let Some(file) = text(input) else { return };
    let Some(found) = GitIdentity::parse(file) else { return };
    for value in [found.name, found.email].into_iter().flatten() {
        assert!(!value.is_empty() && !value.contains('\n') && value.trim() == value);
    }
}
