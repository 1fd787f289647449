//! `gt config` with the files of older versions, and in an editor.

use std::fs;

use gt_testkit::{FinishedProgram, Sandbox};
use serde_json::json;

use crate::support::{Steps as _, assert_says, files_in, refusal, texts, town, town_with_rigs};

const CONFIG: &str = "settings/config.json";
const TOWN_SETTINGS: &str = "mayor/town-settings.json";

/// The value in force and where it comes from.
#[track_caller]
fn in_force(town: &Sandbox, key: &str) -> (String, String) {
    let resolved = town.gt_json(&["config", "get", key]);
    let text = |field: &str| resolved[field].as_str().unwrap().to_owned();
    (text("value"), text("origin"))
}

#[track_caller]
fn assert_in_force(town: &Sandbox, key: &str, value: &str, origin: &str) {
    assert_eq!(in_force(town, key), (value.to_owned(), origin.to_owned()), "{key}");
}

#[test]
fn the_store_is_over_the_files_over_the_defaults() {
    let town = town();
    town.write(
        CONFIG,
        r#"{"scheduler": {"max_polecats": 7, "batch_size": 2}, "other": {"x": [1]}}"#,
    );
    town.write(
        TOWN_SETTINGS,
        r#"{"scheduler.max_polecats": 9, "queue_max_polecats": "4", "queue.enabled": true}"#,
    );
    town.gt(["config", "set", "scheduler.batch_size", "1"]).ok();

    assert_in_force(&town, "scheduler.batch_size", "1", "store");
    assert_in_force(&town, "scheduler.max_polecats", "7", CONFIG);
    assert_in_force(&town, "queue.max_polecats", "4", TOWN_SETTINGS);
    assert_in_force(&town, "queue.enabled", "true", TOWN_SETTINGS);
    assert_in_force(&town, "scheduler.order", "priority", "default");

    town.gt(["config", "unset", "scheduler.batch_size"]).ok();
    assert_in_force(&town, "scheduler.batch_size", "2", CONFIG);
}

#[test]
fn flat_nested_and_older_names_are_read_alike() {
    for contents in [
        r#"{"queue": {"batch_size": 3}}"#,
        r#"{"queue.batch_size": 3}"#,
        r#"{"scheduler": {"batch_size": "3"}}"#,
    ] {
        let town = town();
        town.write(CONFIG, contents);
        assert_in_force(&town, "scheduler.batch_size", "3", CONFIG);
    }
    let town = town_with_rigs(&["web"]);
    town.write(CONFIG, r#"{"rig": {"web": {"max_polecats": 2}}}"#);
    assert_in_force(&town, "rig.web.max_polecats", "2", CONFIG);
}

#[test]
fn a_null_in_a_file_says_nothing() {
    let town = town();
    town.write(CONFIG, r#"{"scheduler": {"max_polecats": null}}"#);

    assert_in_force(&town, "scheduler.max_polecats", "-1", "default");
}

#[test]
fn a_file_that_cannot_be_read_is_an_error_never_unlimited() {
    for (contents, problem) in [
        ("not JSON", "is not JSON"),
        ("", "is not JSON"),
        ("[1]", "object"),
        ("5", "object"),
        (r#"{"scheduler": {"max_polecats": "many"}}"#, "whole number"),
        (r#"{"scheduler": {"max_polecats": 2.5}}"#, "whole number"),
        (r#"{"scheduler": {"max_polecats": [5]}}"#, "scheduler.max_polecats"),
        (r#"{"scheduler": {"max_polecats": {}}}"#, "scheduler.max_polecats"),
        (r#"{"queue": {"enabled": "perhaps"}}"#, "queue.enabled"),
    ] {
        let town = town();
        town.write(CONFIG, contents);
        for command in [
            &["config", "get", "queue.max_polecats"][..],
            &["config", "list"],
            &["config", "import"],
        ] {
            let error = refusal(&town.gt(command));
            assert_says(&error, &[CONFIG, problem]);
        }
    }
}

#[test]
fn a_directory_in_place_of_a_file_is_an_error() {
    let town = town();
    town.make_dir(TOWN_SETTINGS);

    let error = refusal(&town.gt(["config", "list"]));

    assert_says(&error, &["cannot read", TOWN_SETTINGS]);
}

#[test]
fn values_of_files_can_be_taken_into_the_store() {
    let town = town();
    town.write(CONFIG, r#"{"scheduler": {"max_polecats": 7}}"#);
    town.write(TOWN_SETTINGS, r#"{"scheduler.max_polecats": 9, "queue.enabled": true}"#);

    let imported = town.gt_json(&["config", "import"]);

    assert_eq!(texts(&imported, "key"), ["scheduler.max_polecats", "queue.enabled"]);
    assert_in_force(&town, "scheduler.max_polecats", "7", "store");
    assert_in_force(&town, "queue.enabled", "true", "store");
    assert_eq!(town.gt_json(&["config", "import"]), json!([]));
    let files = fs::read_to_string(town.cwd().join(CONFIG)).unwrap();
    assert_eq!(files, r#"{"scheduler": {"max_polecats": 7}}"#, "read only");
}

#[test]
fn an_import_with_an_unknown_rig_changes_nothing() {
    let town = town();
    town.write(CONFIG, r#"{"queue.enabled": true, "rig": {"nope": {"max_polecats": 2}}}"#);

    let error = refusal(&town.gt(["config", "import"]));

    assert_says(&error, &["nope"]);
    assert_eq!(town.last_event(), 0);
}

/// `gt config edit` with an editor that does this to the file `$1`.
fn edit(town: &Sandbox, script: &str) -> FinishedProgram {
    let editor = town.write_script("editor", script);
    let edit = town.command(town.gt_path()).args(["config", "edit"]);
    edit.env("EDITOR", &editor).run()
}

#[test]
fn settings_can_be_changed_in_an_editor() {
    let town = town();
    town.gt(["config", "set", "queue.enabled", "true"]).ok();
    town.gt(["config", "set", "scheduler.order", "fifo"]).ok();

    // One changed, one removed, one added; the rest is comments.
    let edited = edit(
        &town,
        "sed -i -e 's/^queue.enabled = true/queue.enabled = off/' -e '/^scheduler.order/d' \"$1\"\n\
         echo 'queue.batch_size = 4' >> \"$1\"",
    )
    .ok();

    assert_says(&edited.stdout, &["3 settings changed"]);
    assert_in_force(&town, "queue.enabled", "false", "store");
    assert_in_force(&town, "scheduler.order", "priority", "default");
    assert_in_force(&town, "scheduler.batch_size", "4", "store");
}

#[test]
fn the_editor_sees_every_setting_and_leaving_it_alone_changes_nothing() {
    let town = town();
    town.gt(["config", "set", "queue.enabled", "true"]).ok();
    let before = town.last_event();
    let files = files_in(town.cwd().join(".gt"));

    let edited = edit(&town, "cp \"$1\" seen").ok();

    assert_says(&edited.stdout, &["0 settings changed"]);
    assert_eq!(town.last_event(), before);
    assert_eq!(files_in(town.cwd().join(".gt")), files);
    let seen = fs::read_to_string(town.cwd().join("seen")).unwrap();
    assert_says(&seen, &["\nqueue.enabled = true\n", "\n# scheduler.order = priority\n"]);
}

#[test]
fn an_edited_file_with_errors_is_kept() {
    let town = town();
    for (line, problem) in [
        ("queue.enabled = perhaps", "line 1: queue.enabled"),
        ("no.such.setting = 1", "line 1: unknown setting"),
        ("just words", "line 1"),
        ("rig.nope.max_polecats = 1", "nope"),
    ] {
        let edited = edit(&town, &format!("echo '{line}' > \"$1\"")).fails(1);
        assert_says(&edited.stderr, &["what you wrote is kept in", problem]);
        let kept = edited.stderr.lines().next().unwrap();
        let path = kept.rsplit(' ').next().unwrap();
        assert_eq!(fs::read_to_string(path).unwrap(), format!("{line}\n"));
    }
    assert_eq!(town.last_event(), 0);
}

#[test]
fn an_editor_that_fails_changes_nothing_and_leaves_nothing() {
    let town = town();
    let files = files_in(town.cwd().join(".gt"));

    let failed = edit(&town, "exit 3");
    assert_says(&refusal(&failed), &["editor failed"]);
    let missing = town.command(town.gt_path()).args(["config", "edit"]);
    let missing = missing.env("EDITOR", "/nowhere/editor").run();
    assert_says(&refusal(&missing), &["cannot start /nowhere/editor"]);

    assert_eq!(files_in(town.cwd().join(".gt")), files);
    assert_eq!(town.last_event(), 0);
}

#[test]
fn visual_is_over_editor_and_may_have_arguments() {
    let town = town();
    let editor =
        town.write_script("editor", "[ \"$1\" = --wait ] && echo 'queue.enabled = yes' > \"$2\"");
    let edit = town.command(town.gt_path()).args(["config", "edit"]);

    edit.env("VISUAL", format!("{} --wait", editor.display()))
        .env("EDITOR", "/nowhere/editor")
        .run()
        .ok();

    assert_in_force(&town, "queue.enabled", "true", "store");
}
