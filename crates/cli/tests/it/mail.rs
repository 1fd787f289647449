//! Messages with receipts: `gt mail`, `gt nudge`, `gt escalate`.

use gt_testkit::{FinishedProgram, Sandbox, wait_until};
use serde_json::{Value, json};

use crate::agents::Stage as _;
use crate::support::{
    Steps as _, assert_says, everything, gastown, json_refusal, keys, refusal, texts,
};

const MAX: &str = "gastown/crew/max";

/// A town in which max has gt-a as the run gt-a#1.
fn town_with_work() -> Sandbox {
    let town = gastown();
    town.bead("gt-a", &[]);
    town.gt(["sling", "gt-a", MAX]).ok();
    town
}

/// `gt` as the worker of gt-a#1.
fn worker(town: &Sandbox, arguments: &[&str]) -> FinishedProgram {
    town.start_gt(arguments).env("GT_RUN", "gt-a#1").env("BD_ACTOR", MAX).run()
}

fn receipt(town: &Sandbox, id: &str) -> Value {
    town.gt_json(&["mail", "show", id])["receipt"].clone()
}

#[test]
fn a_message_is_queued_then_delivered_then_seen() {
    let town = town_with_work();

    let sent = town.gt(["mail", "send", "gt-a", "-s", "News", "-m", "The API has changed"]).ok();
    assert_says(&sent.stdout, &["✓ Sent msg-1 to gt-a", "gt mail show msg-1"]);
    assert_eq!(receipt(&town, "msg-1"), "queued");

    let inbox = worker(&town, &["mail", "inbox"]).ok().stdout;
    assert_says(&inbox, &["msg-1", "Test Person", "delivered", "News"]);
    assert!(!inbox.contains("The API"), "{inbox}");
    assert_eq!(receipt(&town, "msg-1"), "delivered");

    let read = worker(&town, &["mail", "read", "1"]).ok().stdout;
    assert_says(
        &read,
        &["msg-1  News", "mail from Test Person to gt-a about gt-a", "The API has changed"],
    );
    let shown = town.gt_json(&["mail", "show", "msg-1"]);
    assert_eq!(
        keys(&shown),
        [
            "bead",
            "body",
            "created_at",
            "delivered_at",
            "from",
            "id",
            "kind",
            "receipt",
            "schema_version",
            "seen_at",
            "subject",
            "to"
        ]
    );
    assert_eq!((&shown["receipt"], &shown["kind"]), (&json!("seen"), &json!("mail")));
    let said = town.gt(["mail", "show", "msg-1"]).ok().stdout;
    assert_says(&said, &["queued", "delivered", "seen"]);
    let instants = said.split_whitespace().filter(|word| word.ends_with('Z') && word.contains('T'));
    assert_eq!(
        instants.collect::<Vec<_>>(),
        [""; 0],
        "a time that is not local, or finer than a second"
    );
    assert_says(
        &worker(&town, &["mail", "inbox"]).ok().stdout,
        &["Nothing unread for gastown/crew/max, gt-a"],
    );
    let all = worker(&town, &["mail", "inbox", "--all", "--json"]).ok().json();
    assert_eq!(texts(&all, "id"), ["msg-1"]);
    let story = town.json(&[
        "activity",
        "--bead",
        "gt-a",
        "--type",
        "message_sent,message_delivered,message_seen",
    ]);
    assert_eq!(texts(&story, "event_type"), ["message_sent", "message_delivered", "message_seen"]);
    assert!(story[0]["payload"].get("body").is_none(), "{story}");
}

#[test]
fn only_the_recipient_marks_a_message_as_seen() {
    let town = town_with_work();
    town.gt(["mail", "send", MAX, "-s", "News"]).ok();

    // The sender reads it, and another person.
    town.gt(["mail", "read", "msg-1"]).ok();
    town.gt(["mail", "inbox", MAX]).ok();
    town.start_gt(&["mail", "read", "1"]).env("GT_ROLE", "gastown/crew/ann").run().ok();
    assert_eq!(receipt(&town, "1"), "queued");

    let mine = town.start_gt(&["mail", "inbox", "--mark"]).env("GT_ROLE", MAX).run().ok().stdout;
    assert_says(&mine, &["msg-1  News"]);
    assert_eq!(receipt(&town, "1"), "seen");
}

#[test]
fn a_reply_goes_back_to_the_sender() {
    let town = town_with_work();
    town.gt(["mail", "send", "gt-a#1", "-s", "Which port?"]).ok();

    worker(&town, &["mail", "reply", "msg-1", "-m", "8080"]).ok();
    let answer = town.gt_json(&["mail", "show", "msg-2"]);
    assert_eq!(
        (&answer["from"], &answer["to"], &answer["subject"], &answer["reply_to"]),
        (&json!("gt-a#1"), &json!("mayor"), &json!("Re: Which port?"), &json!("msg-1"))
    );
    assert_eq!(receipt(&town, "msg-1"), "seen", "what is answered was read");

    // And back again, to the worker that has the bead by then.
    town.gt(["mail", "reply", "msg-2", "-m", "Thanks"]).ok();
    let thanks = town.gt_json(&["mail", "show", "msg-3"]);
    assert_eq!((&thanks["to"], &thanks["subject"]), (&json!("gt-a"), &json!("Re: Which port?")));
    // Adding to one's own words goes where those went.
    town.gt(["mail", "reply", "msg-3", "-m", "Really"]).ok();
    assert_eq!(town.gt_json(&["mail", "show", "msg-4"])["to"], "gt-a");
    town.gt(["run", "cancel", "gt-a"]).ok();
    let refused = refusal(&town.gt(["mail", "reply", "msg-2", "-m", "Still there?"]));
    assert_says(&refused, &["gt-a has no worker", "bd comments add gt-a"]);
}

#[test]
fn a_message_to_a_bead_reaches_its_next_worker() {
    let town = town_with_work();
    town.gt(["nudge", "gt-a", "Mind the gap"]).ok();
    town.gt(["run", "cancel", "gt-a"]).ok();
    town.gt(["sling", "gt-a", "gastown/crew/ann"]).ok();

    let inbox =
        town.start_gt(&["mail", "inbox", "--json"]).env("GT_RUN", "gt-a#2").run().ok().json();

    assert_eq!(texts(&inbox, "body"), ["Mind the gap"]);
    assert_eq!((&inbox[0]["kind"], &inbox[0]["receipt"]), (&json!("nudge"), &json!("delivered")));
}

#[test]
fn a_message_to_an_unknown_recipient_is_refused() {
    let town = town_with_work();
    town.bead("gt-b", &[]);
    town.gt(["run", "cancel", "gt-a"]).ok();
    town.gt(["sling", "gt-a", MAX]).ok();
    let before = everything(&town);
    for (to, parts) in [
        (
            "absent",
            &["\"absent\" is neither an address nor a bead", "mayor", "<rig>/crew/<name>"][..],
        ),
        ("gt-b", &["gt-b has no worker", "bd comments add gt-b"]),
        ("gt-a#1", &["gt-a#1 has ended (cancelled)", "write to gt-a#2"]),
        ("web/witness", &["rig \"web\" not found; known rigs: gastown"]),
        (
            "gastown/polecats/toast",
            &["no worker gastown/polecats/toast", "polecats of gastown are: none"],
        ),
        ("gastown/toast", &["no worker gastown/polecats/toast"]),
        ("gastown/crew", &["is not an address"]),
        ("gastown/a/b/c", &["is not an address"]),
        ("", &["is not an address"]),
    ] {
        assert_says(&refusal(&town.gt(["mail", "send", to, "-s", "Hello"])), parts);
        assert_says(&json_refusal(&town.gt(["nudge", to, "Hello", "--json"])), parts);
    }
    for (arguments, part) in [
        (&["mail", "send", "mayor", "-s", " "][..], "a subject cannot be empty"),
        (&["mail", "send", "mayor", "-s", "a\nb"], "a subject is one line"),
        (&["nudge", "mayor", " "], "the message is empty"),
        (&["nudge", "mayor", "\u{1b}[2J"], "control characters"),
        (&["escalate", " "], "say what you need a person for"),
        (&["escalate", "gt-z", "Help"], "gt-z"),
        (&["mail", "read", "msg-9"], "there is no message msg-9"),
        (&["mail", "show", "news"], "messages look like msg-17"),
        (&["mail", "reply", "9", "-m", "Yes"], "there is no message msg-9"),
    ] {
        assert_says(&refusal(&town.gt(arguments)), &[part]);
    }
    assert_eq!(everything(&town), before);
    for to in
        ["mayor", "deacon", "gastown/witness", "gastown/refinery", "gastown/crew/ann", "gt-a#2"]
    {
        town.gt(["mail", "send", to, "-s", "Hello"]).ok();
    }
}

#[test]
fn a_nudge_can_wait_until_it_is_seen() {
    let town = town_with_work();
    let waiting =
        town.start_gt(&["nudge", "gt-a", "How far?", "--wait", "--timeout", "5m"]).start();
    wait_until("it is queued", || waiting.stdout().contains("msg-1 is queued"));
    worker(&town, &["prime"]).ok();
    assert_says(&waiting.wait().ok().stdout, &["✓ gt-a has seen msg-1"]);

    let late = town.gt(["nudge", "gt-a", "Still there?", "--wait", "--timeout", "1ms"]).fails(1);
    assert_says(&late.stderr, &["the time is up: msg-2 is queued", "gt mail show msg-2"]);

    let gone = town.start_gt(&["nudge", "gt-a", "Hello?", "--wait"]).start();
    wait_until("it is queued", || gone.stdout().contains("msg-3 is queued"));
    town.gt(["run", "cancel", "gt-a"]).ok();
    assert_says(
        &gone.wait().fails(1).stderr,
        &["msg-3 was not read", "gt-a has no worker any more"],
    );
}

#[test]
fn a_long_message_comes_from_standard_input() {
    let town = town_with_work();
    let send =
        town.start_gt(&["mail", "send", MAX, "-s", "Report", "-m", "-"]).stdin("one\n\ntwo\n");
    send.run().ok();
    let nudge = town.start_gt(&["nudge", "gt-a", "-"]).stdin("three\n");
    nudge.run().ok();
    let inbox = worker(&town, &["mail", "inbox", "--mark", "--json"]).ok().json();
    // A message to the address of the polecat is for its worker too.
    assert_eq!(texts(&inbox, "body"), ["one\n\ntwo", "three"]);
    assert_eq!((receipt(&town, "1"), receipt(&town, "2")), (json!("seen"), json!("seen")));
}

#[test]
fn an_escalation_reaches_a_person() {
    let town = town_with_work();
    let told = town.cwd().join("told");
    let program = town
        .write_script("tell.sh", &format!("echo \"$GT_NOTICE_KEY $1\" >> '{}'", told.display()));
    town.gt(["config", "set", "notify.command", &program.display().to_string()]).ok();
    town.gt(["escalate", "The disk is nearly full", "--severity", "low"]).ok();

    let asked =
        worker(&town, &["escalate", "Which API is right?\nThere are two.", "-s", "critical"]).ok();

    assert_says(&asked.stdout, &["✓ Asked for a person about gt-a as msg-2 (critical)"]);
    let message = town.gt_json(&["mail", "show", "msg-2"]);
    assert_eq!(
        (
            &message["kind"],
            &message["severity"],
            &message["from"],
            &message["to"],
            &message["bead"]
        ),
        (
            &json!("escalation"),
            &json!("critical"),
            &json!("gt-a#1"),
            &json!("mayor"),
            &json!("gt-a")
        )
    );
    // The most severe comes first.
    let status = town.gt_json(&["status"]);
    assert_eq!(texts(&status["needs_you"], "id"), ["msg-2", "msg-1"]);
    assert_says(
        &town.gt(["status"]).ok().stdout,
        &[
            "Needs you",
            "! gt-a [critical] Which API is right? (gt mail read msg-2)",
            "[low] The disk",
        ],
    );
    assert_eq!(texts(&town.why("gt-a")["needs_you"], "id"), ["msg-2"]);
    assert_says(&town.gt(["why", "gt-a"]).ok().stdout, &["Needs you", "gt mail read msg-2"]);
    assert_says(&town.gt(["feed"]).ok().stdout, &["! gt-a help wanted"]);
    let notices = || std::fs::read_to_string(&told).unwrap_or_default();
    wait_until("both were told", || notices().lines().count() >= 2);
    assert_says(&notices(), &["help-wanted:msg-1", "help-wanted:msg-2"]);

    // Reading it is hearing it; answering reaches the worker.
    town.gt(["mail", "read", "msg-2"]).ok();
    assert_eq!(texts(&town.gt_json(&["status"])["needs_you"], "id"), ["msg-1"]);
    assert_eq!(town.why("gt-a")["needs_you"], json!([]));
    town.gt(["mail", "reply", "msg-2", "-m", "The second one"]).ok();
    assert_says(&worker(&town, &["prime"]).ok().stdout, &["The second one"]);
}

#[test]
fn an_escalation_of_a_closed_bead_needs_no_person() {
    let town = town_with_work();
    worker(&town, &["escalate", "Help"]).ok();
    town.bd(["close", "gt-a", "--actor", MAX]).ok();
    assert_eq!(town.gt_json(&["status"])["needs_you"], json!([]));
    // The message is still there.
    assert_eq!(texts(&town.gt_json(&["mail", "inbox"]), "id"), ["msg-1"]);
}

#[test]
fn messages_are_no_beads() {
    let town = town_with_work();
    let before = town.export();
    town.gt(["mail", "send", "mayor", "-s", "Hello"]).ok();
    worker(&town, &["escalate", "Help"]).ok();
    assert_eq!(town.export(), before);
    assert_eq!(town.gt(["doctor"]).ok().code, 0);
}
