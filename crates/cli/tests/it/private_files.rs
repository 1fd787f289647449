//! Nothing of `.gt`, and no backup, can be read by others, with any umask.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use gt_testkit::{FinishedProgram, Sandbox};

use crate::agents::{Stage as _, set_agent};
use crate::projects::town_with_project;
use crate::support::{Steps as _, assert_says, nowhere, wait_for_status};

/// `gt` with a umask that takes nothing from others.
fn open_handed(town: &Sandbox, arguments: &[&str]) -> FinishedProgram {
    let script = "umask 000; exec \"$0\" \"$@\"";
    town.command("sh").args(["-c", script]).arg(town.gt_path()).args(arguments).run()
}

fn open_to_others(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut waiting = vec![directory.to_owned()];
    while let Some(path) = waiting.pop() {
        let metadata = fs::symlink_metadata(&path).unwrap();
        if metadata.is_symlink() {
            continue;
        }
        if metadata.permissions().mode() & 0o077 != 0 {
            found.push(path.clone());
        }
        if metadata.is_dir() {
            waiting.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
    }
    found.sort();
    found
}

#[test]
fn files_of_a_town_are_private_with_any_umask() {
    let town = nowhere();
    let root = town.make_dir(town.root().join("town"));
    open_handed(&town, &["install", root.to_str().unwrap()]).ok();
    let town = town.in_dir(&root);
    open_handed(&town, &["rig", "add", "web"]).ok();
    set_agent(&town, "");
    open_handed(&town, &["config", "set", "notify.secret", "hush"]).ok();
    open_handed(&town, &["config", "account", "add", "work", "--env", "API_KEY=hush"]).ok();
    town.bead("we-a", &[]);
    open_handed(&town, &["sling", "we-a", "--account", "work"]).ok();
    wait_for_status(&town, "we-a", "closed");
    open_handed(&town, &["store", "backup"]).ok();
    let backup = town.root().join("backup.db");
    open_handed(&town, &["store", "backup", backup.to_str().unwrap()]).ok();

    assert_eq!(open_to_others(&root.join(".gt")), Vec::<PathBuf>::new());
    assert_eq!(fs::metadata(&backup).unwrap().permissions().mode() & 0o777, 0o600);
    for arguments in
        [&["config", "list"][..], &["config", "list", "--json"], &["doctor"], &["feed", "--json"]]
    {
        let shown = town.command(town.gt_path()).args(arguments).run();
        assert!(!shown.stdout.contains("hush"), "{arguments:?}");
    }
    town.assert_quiet();
}

#[test]
fn existing_town_is_tightened_when_it_is_opened() {
    let town = crate::support::town();
    town.bead("hq-a", &[]);
    let directory = town.cwd().join(".gt");
    let open = |path: &Path| fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
    open(&directory.join("town.toml"));
    open(&directory);
    assert!(!open_to_others(&directory).is_empty());

    let doctor = town.gt(["doctor"]).ok();

    assert_says(&doctor.stdout, &["read by its owner alone"]);
    assert_eq!(open_to_others(&directory), Vec::<PathBuf>::new());
}

#[test]
fn files_about_a_rig_and_a_runtime_are_private_with_any_umask() {
    let town = town_with_project("echo tea > tea");
    town.bead("we-a", &[]);
    open_handed(&town, &["config", "agent", "set", "claude", "environment.API_KEY", "hush"]).ok();

    open_handed(&town, &["sling", "we-a"]).ok();
    wait_for_status(&town, "we-a", "closed");
    town.assert_quiet();

    assert!(town.cwd().join(".gt/fence/web").is_dir());
    assert_eq!(open_to_others(&town.cwd().join(".gt")), Vec::<PathBuf>::new());
}
