//! `bd import` of directories: dumps of tables, and `.beads` of other tools.

use std::fs;

use gt_testkit::Sandbox;
use serde_json::json;

use crate::support::{
    Steps as _, assert_says, copy_fixture, files_in, fixture, refusal, strings, texts, town,
};

/// A town, and a copy of the dump beside it that may be changed.
fn dump() -> Sandbox {
    let town = town();
    copy_fixture(&town, "dump", "dump");
    town
}

#[test]
fn a_dump_of_tables_becomes_beads_with_all_that_belongs_to_them() {
    let town = town();
    town.gt(["rig", "add", "dump", "--prefix", "du"]).ok();

    let summary = town.json(&["import", fixture("dump").to_str().unwrap()]);

    assert_eq!(summary["source"], "table-dump");
    assert_eq!((&summary["created"], &summary["skipped"]), (&json!(4), &json!(1)));
    assert_eq!(summary["old_queue_state"], 1);
    assert_eq!(town.ids(&["list", "--rig", "dump", "--all", "--include-infra"]).len(), 4);
    let first = town.show("du-1");
    assert_eq!(first["labels"], json!(["a", "z"]));
    assert_eq!(texts(&first["dependencies"], "id"), ["du-2"]);
    assert_eq!(first["created_at"], "2026-01-05T08:00:00Z");
    assert_eq!(texts(&town.json(&["comments", "du-1"]), "id"), ["1", "2"]);
    let closed = town.show("du-2");
    assert_eq!(closed["closed_at"], "2026-01-06T09:30:00.25Z");
    assert_eq!(closed["metadata"], json!({"k": [1.0, "ü"]}));
    let agent = town.show("du-agent");
    for (field, value) in [
        ("hook_bead", json!("du-1")),
        ("role_bead", json!("du-role")),
        ("agent_state", json!("working")),
        ("last_activity", json!("2026-01-06 10:00:00")),
        ("role_type", json!("polecat")),
        ("rig", json!("dump")),
        ("crystallizes", json!(1)),
        ("quality_score", json!(0.75)),
        ("ephemeral", json!(true)),
    ] {
        assert_eq!(agent[field], value, "{field}");
    }
    let gate = town.show("du-gate");
    assert_eq!(
        (&gate["timeout"], &gate["waiters"]),
        (&json!(90_000_000_000_u64), &json!(["du/witness"]))
    );
    for absent in ["timeout_ns", "content_hash", "source_repo", "hook_bead", "metadata", "sender"] {
        assert_eq!(gate.get(absent), None, "{absent}");
    }
    assert_says(&town.export(), &[r#""metadata":"{\"gate\":\"any-children\"}","thread_id":"t""#]);
    town.gt(["doctor"]).ok();
}

#[test]
fn the_parts_of_a_dump_that_are_left_out_are_told() {
    let town = town();

    let summary = town.json(&["import", fixture("dump").to_str().unwrap()]);

    let left_out = strings(&summary["left_out"]).join("\n");
    assert_says(
        &left_out,
        &["du-nobody: it is not in the dump", "3 events of the old history", "metadata.json"],
    );
    assert_says(
        strings(&summary["remarks"])[0],
        &["begin with \"du\"", "gt rig add <name> --prefix du"],
    );
    assert_eq!(town.bd(["config", "get", "types.custom"]).ok().line(), "agent,role");
    assert_eq!(summary["settings"]["compaction_enabled"], "false");
    assert_eq!(summary["settings"]["kv.other"], "v");
    assert_eq!(summary["memories"], 1);
    assert_says(
        &town.export(),
        &[r#"{"_type":"memory","key":"house \u003crule\u003e","value":"say \"please\" \u0026 ü"}"#],
    );
}

#[test]
fn existing_settings_stay_and_conflicts_are_listed() {
    let town = town();
    town.bd(["config", "set", "types.custom", "mine"]).ok();
    town.bd(["config", "set", "compaction_enabled", "false"]).ok();

    let summary = town.json(&["import", fixture("dump").to_str().unwrap()]);

    let conflicts = strings(&summary["conflicts"]);
    assert_eq!(conflicts.len(), 1);
    assert_says(conflicts[0], &["types.custom", "\"mine\" here", "\"agent,role\""]);
    assert_eq!(town.bd(["config", "get", "types.custom"]).ok().line(), "mine");
    assert_eq!(summary["settings_unchanged"], 1);
}

#[test]
fn a_wrong_row_is_named_and_nothing_comes() {
    for (file, text, said) in [
        (
            "issues.jsonl",
            "{\"id\":\"du-1\",\"title\":\"a\"}\n\n{\"title\":\"b\"}\n",
            "issues.jsonl:3: field \"id\": missing",
        ),
        ("issues.jsonl", "{\"id\":", "issues.jsonl:1: not valid JSON"),
        (
            "labels.jsonl",
            "{\"issue_id\":\"du-1\",\"label\":\"a\"}\n{\"label\":\"b\"}",
            "labels.jsonl:2: field \"issue_id\": missing",
        ),
        ("comments.jsonl", "[", "comments.jsonl:1:"),
        (
            "dependencies.json",
            "[{\"issue_id\":\"du-1\"}]",
            "dependencies.json:1: field \"depends_on_id\": missing",
        ),
        (
            "dependencies.json",
            "[\n{\"issue_id\":\"du-1\"},\n",
            "dependencies.json:3: not valid JSON",
        ),
        ("config.jsonl", "5", "config.jsonl:1: expected an object"),
    ] {
        let town = dump();
        town.write(&format!("dump/{file}"), text);

        assert_says(&refusal(&town.bd(["import", "dump"])), &[said, "nothing was imported"]);

        assert_eq!((town.export(), town.last_event()), (String::new(), 0), "{said}");
        assert_eq!(town.bd(["config", "list"]).ok().stdout, "", "{said}");
    }
}

#[test]
fn bytes_that_are_no_text_are_refused_in_every_table() {
    for file in
        ["issues.jsonl", "labels.jsonl", "dependencies.json", "comments.jsonl", "config.jsonl"]
    {
        let town = dump();
        town.write(&format!("dump/{file}"), b"\x00\xff\xfe binary");
        assert_says(&refusal(&town.bd(["import", "dump"])), &[file]);
        assert_eq!(town.export(), "", "{file}");
    }
}

#[test]
fn wrong_rows_can_be_left_out() {
    let town = dump();
    town.write("dump/labels.jsonl", "{\"label\":\"b\"}\n{\"issue_id\":\"du-1\",\"label\":\"a\"}\n");

    let summary = town.json(&["import", "dump", "--skip-invalid"]);

    assert_says(strings(&summary["left_out"])[0], &["labels.jsonl:1: field \"issue_id\": missing"]);
    assert_eq!(town.show("du-1")["labels"], json!(["a"]));
}

#[test]
fn a_table_in_two_files_is_refused() {
    let town = dump();
    town.write("dump/labels.json", "[]");
    assert_says(
        &refusal(&town.bd(["import", "dump"])),
        &["labels.jsonl", "labels.json", "same table"],
    );
}

#[test]
fn a_dump_may_be_arrays_and_have_wisps() {
    let town = town();
    town.write(
        "dump/issues.json",
        r#"[ {"id":"du-1", "title":"a", "priority":2}, {"id":"du-2","title":"b","priority":2} ]"#,
    );
    town.write("dump/labels.json", r#"{"rows":[{"issue_id":"du-1","label":"x"}]}"#);
    town.write("dump/wisps.json", r#"[{"id":"du-wisp-1","title":"w","ephemeral":1}]"#);
    town.write("dump/wisp_labels.json", r#"[{"issue_id":"du-wisp-1","label":"y"}]"#);

    let summary = town.json(&["import", "dump"]);

    assert_eq!(summary["created"], 3);
    assert_eq!(summary["left_out"], json!([]));
    assert_eq!(town.show("du-1")["labels"], json!(["x"]));
    assert_eq!(town.show("du-wisp-1")["labels"], json!(["y"]));
}

#[test]
fn many_rows_are_joined() {
    let town = town();
    let rows = |row: &dyn Fn(u32) -> String| (0..3000).map(row).collect::<Vec<_>>().join("\n");
    town.write(
        "dump/issues.jsonl",
        rows(&|n| format!(r#"{{"id":"du-{n}","title":"t","priority":2,"ephemeral":0}}"#)),
    );
    town.write(
        "dump/labels.jsonl",
        rows(&|n| format!(r#"{{"issue_id":"du-{n}","label":"l{}"}}"#, n % 5)),
    );
    town.write(
        "dump/dependencies.jsonl",
        rows(&|n| {
            format!(r#"{{"issue_id":"du-{}","depends_on_id":"du-{n}","type":"blocks"}}"#, n + 1)
        }),
    );

    let summary = town.json(&["import", "dump"]);

    assert_eq!(
        (&summary["created"], summary["left_out"].as_array().unwrap().len()),
        (&json!(3000), 1)
    );
    assert_eq!(town.ready(), ["du-0"]);
    assert_eq!(town.ids(&["list", "--label", "l3", "--limit", "0"]).len(), 600);
}

#[test]
fn a_project_leads_to_its_beads_even_through_a_redirect() {
    for path in ["project", "project/.beads", "elsewhere", "elsewhere/.beads"] {
        let town = town();
        let summary = town.json(&["import", fixture(path).to_str().unwrap()]);
        assert_eq!(summary["source"], "beads-directory");
        assert_eq!(summary["created"], 2, "{path}");
        assert!(strings(&summary["files"])[0].ends_with("elsewhere/.beads/issues.jsonl"));
        assert_eq!(summary["settings"], json!({"no-push": "true", "sync.mode": "git-portable"}));
        assert_says(
            &strings(&summary["left_out"]).join("\n"),
            &[
                "config.yaml, line 5, 6",
                "beads.left.jsonl",
                "interactions.jsonl",
                "the route of el-",
            ],
        );
        assert_eq!(town.ready(), ["el-1"]);
    }
}

#[test]
fn nothing_is_written_into_the_beads_of_others() {
    let town = town();
    copy_fixture(&town, "elsewhere", "elsewhere");
    let before = files_in(town.cwd().join("elsewhere/.beads"));

    town.bd(["import", "elsewhere"]).ok();

    assert_eq!(files_in(town.cwd().join("elsewhere/.beads")), before);
}

#[test]
fn redirects_are_followed_three_times_and_never_in_a_circle() {
    let town = town();
    town.write("end/.beads/issues.jsonl", r#"{"id":"hq-a","title":"a"}"#);
    town.write("c/.beads/redirect", "../end/.beads");
    town.write("b/.beads/redirect", "\n# two\n../c/.beads\n");
    town.write("a/.beads/redirect", "../b/.beads");
    town.write("far/.beads/redirect", "../a/.beads");
    town.write("x/.beads/redirect", "../y");
    town.write("y/.beads/redirect", "../x/.beads");
    town.write("self/.beads/redirect", ".beads");
    town.write("lost/.beads/redirect", "../nowhere/.beads");

    assert_eq!(town.json(&["import", "a"])["created"], 1);
    for (path, said) in [
        ("far", "too many"),
        ("x", "back to where it began"),
        ("self", "back to where it began"),
        ("lost", "no directory"),
    ] {
        assert_says(&refusal(&town.bd(["import", path])), &["redirect", said]);
    }
}

#[test]
fn the_file_of_beads_is_the_one_the_directory_means() {
    let line = |id: &str| format!("{{\"id\":\"{id}\",\"title\":\"t\"}}\n");
    for (files, expected) in [
        (vec![("beads.jsonl", line("hq-b"))], Some("hq-b")),
        (vec![("own.jsonl", line("hq-o")), ("deletions.jsonl", line("hq-d"))], Some("hq-o")),
        (vec![("issues.jsonl", String::new()), ("beads.jsonl", line("hq-b"))], Some("hq-b")),
        (vec![("issues.jsonl", line("hq-i")), ("own.jsonl", line("hq-o"))], Some("hq-i")),
        (
            vec![
                ("issues.jsonl", line("hq-i")),
                ("beads.jsonl", line("hq-b")),
                ("metadata.json", r#"{"jsonl_export":"beads.jsonl"}"#.to_owned()),
            ],
            Some("hq-b"),
        ),
        (vec![("issues.jsonl", line("hq-i")), ("beads.jsonl", line("hq-b"))], None),
        (vec![("one.jsonl", line("hq-1")), ("two.jsonl", line("hq-2"))], None),
    ] {
        let town = town();
        for (name, text) in &files {
            town.write(&format!(".beads/{name}"), text);
        }
        let ran = town.bd(["import", ".beads"]);
        match expected {
            Some(id) => {
                ran.ok();
                assert_eq!(town.ids(&["list"]), [id], "{files:?}");
            }
            None => {
                assert_says(&refusal(&ran), &["several files of beads", "give the file itself"]);
            }
        }
    }
}

#[test]
fn a_database_without_lines_is_named_with_what_to_do() {
    for (file, text) in
        [("beads.db", ""), ("metadata.json", r#"{"backend":"dolt","dolt_database":"x"}"#)]
    {
        let town = town();
        town.write(&format!(".beads/{file}"), text);
        let error = refusal(&town.bd(["import", "."]));
        assert_says(&error, &["in a database", "bd export -o"]);
    }
    let town = town();
    town.write(".beads/beads.db", "");
    town.write(".beads/issues.jsonl", r#"{"id":"hq-a","title":"a"}"#);
    let summary = town.json(&["import", "."]);
    assert_says(strings(&summary["remarks"])[0], &["the database", "was not read"]);
    town.make_dir("empty/.beads");
    assert_says(&refusal(&town.bd(["import", "empty"])), &["no JSONL file"]);
}

#[test]
fn a_backup_stands_in_for_a_database() {
    let town = town();
    copy_fixture(&town, "dump", "repo/.beads/backup");
    town.write("repo/.beads/metadata.json", r#"{"backend":"dolt","dolt_database":"du"}"#);
    town.write("repo/.beads/sync_base.jsonl", r#"{"id":"du-9","title":"old"}"#);

    let summary = town.json(&["import", "repo"]);

    assert_eq!((&summary["source"], &summary["created"]), (&json!("beads-directory"), &json!(4)));
    assert_says(strings(&summary["remarks"])[0], &["come from its backup"]);
    assert_eq!(town.show("du-1")["labels"], json!(["a", "z"]));

    town.write("repo/.beads/issues.jsonl", r#"{"id":"du-5","title":"e"}"#);
    let summary = town.json(&["import", "repo"]);
    assert_eq!(summary["created"], 1);
    assert_says(strings(&summary["remarks"])[0], &["the backup", "was not read", "/backup"]);
}

#[test]
fn invalid_routes_are_told_up_to_a_limit() {
    let town = town();
    copy_fixture(&town, "elsewhere", "elsewhere");
    town.write("elsewhere/.beads/routes.jsonl", "{\"id\":\"el-1\",\"title\":\"a\"}\n".repeat(100));

    let summary = town.json(&["import", "elsewhere"]);

    let told = strings(&summary["left_out"]).join("\n");
    assert_says(&told, &["routes.jsonl:1: field \"prefix\": missing", "95 more lines"]);
    assert_eq!(told.matches("routes.jsonl").count(), 6);
}

#[test]
fn a_damaged_beads_directory_leaves_nothing_behind() {
    for (file, text, said) in [
        (
            "issues.jsonl",
            "{\"id\":\"el-1\",\"title\":\"a\"}\n{\"id\":\"el-2\",",
            "issues.jsonl:2: not valid JSON",
        ),
        ("metadata.json", "{\n\"x\":", "metadata.json:2: not valid JSON"),
        ("config.yaml", "\u{0}\u{1}", ""),
    ] {
        let town = town();
        copy_fixture(&town, "elsewhere", "elsewhere");
        town.write(&format!("elsewhere/.beads/{file}"), text);
        let ran = town.bd(["import", "elsewhere"]);
        if said.is_empty() {
            ran.ok();
            continue;
        }
        assert_says(&refusal(&ran), &[said]);
        assert_eq!((town.export(), town.last_event()), (String::new(), 0));
    }
}

#[test]
fn a_directory_that_cannot_be_read_is_named() {
    let town = town();
    fs::create_dir_all(town.cwd().join(".beads/issues.jsonl")).unwrap();
    fs::create_dir_all(town.cwd().join(".beads/config.yaml")).unwrap();
    assert_says(&refusal(&town.bd(["import", "."])), &["config.yaml"]);
}
