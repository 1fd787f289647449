//! `bd defer` and `bd undefer`: putting beads off.

use serde_json::Value;

use crate::support::{Steps as _, assert_says, json_refusal, refusal, texts, town};

#[test]
fn a_deferred_bead_is_not_ready_until_it_is_taken_up_again() {
    let town = town();
    town.bead("hq-a", &[]);

    let said = town.bd(["defer", "hq-a"]).ok();

    assert_eq!(said.line(), "✓ Deferred hq-a");
    assert_eq!(town.show("hq-a")["status"], "deferred");
    assert_eq!(town.show("hq-a")["defer_until"], Value::Null);
    assert!(town.ready().is_empty());
    town.bd(["undefer", "hq-a"]).ok();
    assert_eq!(town.show("hq-a")["status"], "open");
    assert_eq!(town.ready(), ["hq-a"]);
}

#[test]
fn a_date_may_be_given_as_everywhere() {
    let town = town();
    for (id, when, told, until) in [
        ("hq-a", "2199-05-31", "2199-05-31 00:00:00", "2199-05-31T00:00:00Z"),
        ("hq-b", "2199-05-31T12:00:00Z", "2199-05-31 12:00:00", "2199-05-31T12:00:00Z"),
    ] {
        town.bead(id, &[]);
        let said = town.bd(["defer", id, "--until", when]).ok();
        assert_says(&said.stdout, &["until", told]);
        assert_eq!(town.show(id)["defer_until"], until);
    }
    town.bd(["defer", "hq-a", "--until", "+2d"]).ok();
    assert_ne!(town.show("hq-a")["defer_until"], "2199-05-31T00:00:00Z", "a new date counts");
    town.bd(["defer", "hq-b"]).ok();
    assert_eq!(town.show("hq-b")["defer_until"], Value::Null, "no date means no date");
    town.bd(["undefer", "hq-a"]).ok();
    assert_eq!(town.show("hq-a")["defer_until"], Value::Null);
}

#[test]
fn a_time_that_has_passed_is_told() {
    let town = town();
    town.bead("hq-a", &[]);

    let said = town.bd(["defer", "hq-a", "--until", "2020-01-01"]).ok();

    assert_says(&said.stderr, &["warning", "has passed"]);
    assert_eq!(town.ready(), ["hq-a"]);
    assert_says(&refusal(&town.bd(["defer", "hq-a", "--until", "soon"])), &["is not a time"]);
}

#[test]
fn deferring_a_deferred_bead_changes_nothing() {
    let town = town();
    town.bead("hq-a", &[]);
    town.bead("hq-b", &["--defer", "2199-01-01"]);
    town.bd(["defer", "hq-a"]).ok();
    let before = town.last_event();

    assert_eq!(town.bd(["defer", "hq-a", "--reason", "x"]).ok().line(), "hq-a is deferred already");
    let again = ["defer", "hq-b", "--until", "2199-01-01"];
    assert_says(
        &town.bd(again).ok().stdout,
        &["hq-b is deferred until 2199-01-01 00:00:00 already"],
    );
    assert_eq!(
        texts(&town.json(&["defer", "hq-a"]), "id"),
        ["hq-a"],
        "programs get it all the same"
    );
    assert_eq!(town.last_event(), before);
    town.bd(["undefer", "hq-a"]).ok();
    let before = town.last_event();
    assert_eq!(town.bd(["undefer", "hq-a"]).ok().line(), "hq-a is not deferred");
    assert_eq!(town.last_event(), before);
}

#[test]
fn each_bead_stands_alone_and_programs_get_an_array() {
    let town = town();
    town.bead("hq-a", &[]);
    town.bead("hq-b", &[]);
    town.bead("hq-closed", &[]);
    town.bd(["close", "hq-closed"]).ok();

    let ran = town.bd(["defer", "hq-a", "nope", "hq-closed", "hq-b", "--json"]).ok();

    assert_eq!(texts(&ran.json(), "id"), ["hq-a", "hq-b"]);
    assert_eq!(texts(&ran.json(), "status"), ["deferred", "deferred"]);
    assert_says(
        &ran.stderr,
        &[
            "Error: no issue found matching \"nope\"",
            "Error: cannot defer hq-closed: it is closed; open it again first with bd reopen",
        ],
    );
    assert_says(&json_refusal(&town.bd(["defer", "--json", "nope"])), &["no issue found"]);
    town.bd(["undefer", "nope"]).fails(1);
    assert_eq!(town.bd(["undefer", "hq-closed"]).ok().line(), "hq-closed is not deferred");
    town.bd(["defer"]).fails(1);
}

#[test]
fn undeferring_a_bead_in_progress_removes_only_the_date() {
    let town = town();
    town.bead("hq-a", &[]);
    town.bd(["update", "hq-a", "--status", "in_progress", "--defer", "2199-01-01"]).ok();

    town.bd(["undefer", "hq-a"]).ok();

    assert_eq!(town.show("hq-a")["status"], "in_progress");
    assert_eq!(town.show("hq-a")["defer_until"], Value::Null);
}

#[test]
fn the_reason_is_kept_and_the_change_is_an_event() {
    let town = town();
    town.bead("hq-a", &[]);
    let before = town.last_event();

    town.bd(["defer", "hq-a", "--reason", "after the release"]).ok();

    let comments = town.json(&["comments", "hq-a"]);
    assert_eq!(comments[0]["text"], "Deferred: after the release");
    let after = before.to_string();
    let events = town.json(&["activity", "--after", &after]);
    assert_eq!(events[0]["event_type"], "status_changed", "{events}");
}

#[test]
fn a_time_is_taken_as_it_is_shown() {
    let town = town();
    town.bead("hq-a", &[]);

    let said = town.bd(["defer", "hq-a", "--until", "2199-05-31 12:30:01"]).ok();

    assert_eq!(said.line(), "✓ Deferred hq-a until 2199-05-31 12:30:01");
    assert_eq!(town.show("hq-a")["defer_until"], "2199-05-31T12:30:01Z");
    town.bd(["update", "hq-a", "--due", "2199-06-01 08:00"]).ok();
    assert_eq!(town.show("hq-a")["due_at"], "2199-06-01T08:00:00Z");
    // The example in the refusal is one that is taken.
    let refused = town.start_bd(&["defer", "hq-a", "--until", "soon"]).env("TZ", "EST5").run();
    assert_says(&refusal(&refused), &["\"2026-05-31T12:34:56Z\""]);
}
