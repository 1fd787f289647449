//! `bd close` and `bd reopen`.

use serde_json::json;

use crate::support::{Steps as _, assert_says, error_line, json_refusal, refusal, texts, town};

#[test]
fn a_bead_is_closed_with_a_reason() {
    let town = town();
    town.bead("hq-a", &[]);
    town.bead("hq-b", &[]);

    let said = town.bd(["close", "hq-a", "--reason", "merged"]).ok();
    let json = town.json(&["close", "hq-b"]);

    assert_eq!(said.line(), "✓ Closed hq-a: merged");
    let bead = town.show("hq-a");
    assert_eq!((&bead["status"], &bead["close_reason"]), (&json!("closed"), &json!("merged")));
    assert!(bead["closed_at"].is_string());
    assert_eq!(texts(&json, "id"), ["hq-b"]);
    assert_eq!(json[0]["close_reason"], "Closed", "if nothing is said");
}

#[test]
fn reasons_go_by_many_names_and_from_files() {
    let town = town();
    town.write("why.txt", "from a file\n");
    for flags in [
        ["-r", "why"],
        ["-m", "why"],
        ["--resolution", "why"],
        ["--comment", "why"],
        ["--reason-file", "why.txt"],
    ] {
        let id = town.create("A task", &[]);
        town.start_bd(&["done", &id]).args(flags).run().ok();
        let reason = town.show(&id)["close_reason"].clone();
        assert_says(
            reason.as_str().unwrap(),
            &[if flags[0].ends_with("file") { "from a file" } else { "why" }],
        );
    }
}

#[test]
fn each_bead_has_its_reason_and_the_last_serves_for_the_rest() {
    let town = town();
    for id in ["hq-a", "hq-b", "hq-c"] {
        town.bead(id, &[]);
    }

    town.bd(["close", "hq-a", "hq-b", "hq-c", "-r", "one", "-r", "two"]).ok();

    let reasons = texts(&town.json(&["show", "hq-a", "hq-b", "hq-c"]), "close_reason");
    assert_eq!(reasons, ["one", "two", "two"]);
}

#[test]
fn the_session_is_kept() {
    let town = town();
    town.bead("hq-a", &[]);
    town.bead("hq-b", &[]);

    town.bd(["close", "hq-a", "--session", "s1"]).ok();
    town.bd_with("CLAUDE_SESSION_ID", "s2", &["close", "hq-b"]).ok();

    assert_eq!(town.show("hq-a")["closed_by_session"], "s1");
    assert_eq!(town.show("hq-b")["closed_by_session"], "s2");
}

#[test]
fn a_blocked_bead_is_not_closed_without_force() {
    let town = town();
    town.bead("hq-a", &[]);
    town.bead("hq-b", &["--deps", "hq-a"]);

    let error = refusal(&town.bd(["close", "hq-b"]));
    assert_eq!(error, "cannot close hq-b: blocked by open issues [hq-a] (use --force to override)");
    let error = json_refusal(&town.bd(["close", "hq-b", "--json"]));
    assert_says(&error, &["blocked by open issues [hq-a]"]);
    assert_eq!(town.show("hq-b")["status"], "open");

    town.bd(["close", "hq-b", "--force"]).ok();
    assert_eq!(town.show("hq-b")["status"], "closed");
}

#[test]
fn epics_with_open_parts_and_pinned_beads_are_not_closed() {
    let town = town();
    town.bead("hq-e", &["-t", "epic"]);
    town.create("Part", &["--parent", "hq-e"]);
    town.bead("hq-p", &[]);
    town.bd(["update", "hq-p", "--status", "pinned"]).ok();

    for (id, reason) in [("hq-e", "open children"), ("hq-p", "pinned")] {
        let error = refusal(&town.bd(["close", id]));
        assert_says(&error, &[id, reason, "--force"]);
        town.bd(["close", id, "--force"]).ok();
        assert_eq!(town.show(id)["status"], "closed");
    }
}

#[test]
fn parts_hold_up_only_epics() {
    let town = town();
    town.bead("hq-t", &[]);
    town.create("Part", &["--parent", "hq-t"]);

    town.bd(["close", "hq-t"]).ok();
}

#[test]
fn templates_are_never_closed() {
    let town = town();
    town.import(r#"{"id":"hq-t","title":"Pattern","is_template":true}"#);

    for flags in [&["close", "hq-t"][..], &["close", "hq-t", "--force"]] {
        let error = refusal(&town.bd(flags));
        assert_says(&error, &["hq-t", "template"]);
    }
}

#[test]
fn a_name_that_means_nothing_stops_the_whole_command() {
    let town = town();
    town.bead("hq-a", &[]);

    let error = refusal(&town.bd(["close", "hq-a", "hq-none"]));

    assert_says(&error, &["no issue found matching \"hq-none\""]);
    assert_eq!(town.show("hq-a")["status"], "open");
}

#[test]
fn a_refused_bead_does_not_stop_the_others() {
    let town = town();
    town.bead("hq-a", &[]);
    town.bead("hq-b", &["--deps", "hq-a"]);
    town.bead("hq-c", &[]);

    let closed = town.bd(["close", "hq-b", "hq-c", "--json"]).ok();

    assert_eq!(texts(&closed.json(), "id"), ["hq-c"]);
    assert_says(&error_line(&closed), &["cannot close hq-b"]);
}

#[test]
fn blockers_may_be_closed_before_what_they_block_in_one_command() {
    let town = town();
    town.bead("hq-a", &[]);
    town.bead("hq-b", &["--deps", "hq-a"]);

    town.bd(["close", "hq-a", "hq-b"]).ok();

    assert_eq!(town.show("hq-b")["status"], "closed");
}

#[test]
fn closing_again_replaces_reason_and_outcome() {
    let town = town();
    town.bead("hq-a", &[]);
    town.bd(["close", "hq-a", "-r", "first", "--outcome", "failed"]).ok();
    assert_eq!(town.show("hq-a")["outcome"], "failed");

    town.bd(["close", "hq-a", "-r", "second"]).ok();

    let bead = town.show("hq-a");
    assert_eq!(bead["close_reason"], "second");
    assert_eq!(bead.get("outcome"), None);
}

#[test]
fn close_suggests_beads_that_become_ready() {
    let town = town();
    town.bead("hq-a", &[]);
    town.bead("hq-x", &[]);
    town.bead("hq-b", &["--deps", "hq-a"]);
    town.bead("hq-c", &["--deps", "hq-a,hq-x"]);

    let closed = town.json(&["close", "hq-a", "--suggest-next"]);

    assert_eq!(texts(&closed["closed"], "id"), ["hq-a"]);
    assert_eq!(closed["unblocked"], json!(["hq-b"]));
    let said = town.bd(["close", "hq-x", "--suggest-next"]).ok();
    assert_says(&said.stdout, &["✓ Closed hq-x", "hq-c"]);
}

#[test]
fn a_molecule_is_over_when_its_last_step_is() {
    let town = town();
    town.bead("hq-m", &["-t", "molecule"]);
    town.create("One", &["--parent", "hq-m"]);
    town.create("Two", &["--parent", "hq-m"]);

    town.bd(["close", "hq-m.1"]).ok();
    assert_eq!(town.show("hq-m")["status"], "open");
    let said = town.bd(["close", "hq-m.2"]).ok();

    assert_says(&said.stdout, &["✓ Closed hq-m: all steps complete"]);
    assert_eq!(town.show("hq-m")["close_reason"], "all steps complete");
}

#[test]
fn an_epic_closes_with_its_last_part_unless_that_is_switched_off() {
    let town = town();
    town.bead("hq-e", &["-t", "epic"]);
    for title in ["One", "Two", "Three"] {
        town.create(title, &["--parent", "hq-e"]);
    }
    town.bd(["close", "hq-e.2"]).ok();
    town.bd(["close", "hq-e.3", "--outcome", "failed"]).ok();
    let shown = town.bd(["show", "hq-e"]).ok().stdout;
    assert_says(&shown, &["parts: 1/3 done, failed: 1"]);
    town.bd(["close", "hq-e.1"]).ok();
    assert_eq!(town.show("hq-e")["status"], "open", "one of them failed");

    town.bd(["close", "hq-e.3", "--outcome", "success"]).ok();

    let epic = town.show("hq-e");
    assert_eq!(
        (&epic["status"], &epic["close_reason"]),
        (&"closed".into(), &"all parts are done".into())
    );
    town.bd(["reopen", "hq-e.1"]).ok();
    assert_eq!(town.show("hq-e")["status"], "open");
    town.gt(["config", "set", "epics.auto_close", "false"]).ok();
    town.bd(["close", "hq-e.1"]).ok();
    assert_eq!(town.show("hq-e")["status"], "open");
    assert_eq!(town.json(&["stats"])["summary"]["epics_eligible_for_closure"], 1);
}

#[test]
fn a_closed_bead_is_opened_again() {
    let town = town();
    town.bead("hq-a", &[]);
    town.bd(["close", "hq-a", "-r", "merged", "--outcome", "failed"]).ok();

    let reopened = town.json(&["reopen", "hq-a", "--reason", "it came back"]);

    assert_eq!(reopened[0]["status"], "open");
    let bead = town.show("hq-a");
    for field in ["closed_at", "close_reason", "outcome", "defer_until"] {
        assert_eq!(bead.get(field), None, "{field}");
    }
    let comments = texts(&town.json(&["comments", "hq-a"]), "text");
    assert_eq!(comments, ["Reopened: it came back"]);
    let kinds = texts(&json!(town.events()), "event_type");
    assert!(kinds.contains(&"reopened".to_owned()), "{kinds:?}");
}

#[test]
fn reopening_an_open_bead_changes_nothing() {
    let town = town();
    town.bead("hq-a", &[]);
    let before = town.last_event();

    let reopened = town.bd(["reopen", "hq-a", "--json"]).ok();

    assert_eq!(reopened.json(), json!([]));
    assert_eq!(reopened.stderr, "hq-a is already open\n");
    assert_eq!(town.last_event(), before);
}

#[test]
fn any_error_makes_reopen_fail_though_the_others_are_opened() {
    let town = town();
    town.bead("hq-a", &[]);
    town.bd(["close", "hq-a"]).ok();

    let reopened = town.bd(["reopen", "hq-none", "hq-a", "--json"]).fails(1);

    assert_eq!(texts(&reopened.json(), "id"), ["hq-a"]);
    assert_says(&error_line(&reopened), &["hq-none"]);
    assert_eq!(town.show("hq-a")["status"], "open");
    let error = json_refusal(&town.bd(["reopen", "hq-none", "--json"]));
    assert_says(&error, &["hq-none"]);
}

#[test]
fn a_reason_with_a_nul_opens_nothing() {
    let town = town();
    town.bead("hq-a", &[]);
    town.write("nul.txt", "a\0b");

    let error = refusal(&town.bd(["close", "hq-a", "--reason-file", "nul.txt"]));

    assert_says(&error, &["reason", "NUL"]);
    assert_eq!(town.show("hq-a")["status"], "open");
}

#[test]
fn a_molecule_with_a_failed_step_has_failed() {
    let town = town();
    town.bead("hq-mol", &["-t", "molecule"]);
    town.bead("hq-after", &["--deps", "hq-mol"]);
    for step in ["hq-1", "hq-2"] {
        town.bead(step, &[]);
        town.bd(["update", step, "--parent", "hq-mol"]).ok();
    }

    town.bd(["close", "hq-1", "--outcome", "failed"]).ok();
    town.bd(["close", "hq-2"]).ok();

    let molecule = town.show("hq-mol");

    assert_eq!((&molecule["status"], &molecule["outcome"]), (&json!("closed"), &json!("failed")));
    assert!(!town.ready().contains(&"hq-after".to_owned()));
}

#[test]
fn a_list_of_tasks_is_finished_as_far_as_it_goes_and_says_how_far() {
    let town = town();
    town.bead("hq-a", &[]);
    town.bead("hq-b", &["--deps", "hq-a"]);
    town.bead("hq-c", &[]);
    town.bead("hq-d", &[]);

    let said = town.bd(["todo", "done", "hq-b", "hq-c"]).fails(1);

    assert_says(&said.stderr, &["cannot close hq-b", "hq-a"]);
    assert_eq!(said.stdout, "✓ Closed hq-c\n");
    assert_eq!(town.show("hq-c")["status"], "closed");
    let said = town.bd(["todo", "done", "hq-b", "hq-d", "--json"]).fails(1);
    assert_eq!(texts(&said.json(), "id"), ["hq-d"]);
}
