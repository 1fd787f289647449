//! `gt sling`.

use gt_testkit::{FinishedProgram, Sandbox, wait_until};
use serde_json::{Value, json};

use crate::support::{
    Steps, assert_says, everything, gastown, gastown_that_takes_time, gastown_with, let_work_end,
    part, refusal, texts, wait_for_status,
};

/// `gt sling … --json`, with any exit code.
fn sling(town: &Sandbox, arguments: &[&str]) -> (i32, Value) {
    let ran = town.command(town.gt_path()).arg("sling").args(arguments).arg("--json").run();
    (ran.code, ran.json())
}

fn statuses(report: &Value) -> Vec<String> {
    texts(&report["entries"], "status")
}

fn defer(town: &Sandbox) {
    town.gt(["config", "set", "scheduler.max_polecats", "5"]).ok();
}

#[test]
fn in_direct_mode_a_bead_starts_at_once_and_closes_when_its_work_is_done() {
    let town = gastown();
    town.bead("gt-abc", &[]);

    let said = town.gt(["sling", "gt-abc", "gastown"]).ok();

    assert!(said.stdout.starts_with("✓ Started gt-abc (gt-abc#1)\nConvoy: hq-cv-"), "{said}");
    assert_eq!(said.stderr, "", "no hint to start a daemon");
    wait_for_status(&town, "gt-abc", "closed");
    assert_eq!(town.show("gt-abc")["outcome"], "success");
}

#[test]
fn with_a_cap_a_bead_is_scheduled_and_waits_for_a_daemon() {
    let town = gastown();
    defer(&town);
    town.bead("gt-abc", &[]);

    let said = town.gt(["sling", "gt-abc"]).ok();

    assert!(said.stdout.starts_with("✓ Scheduled gt-abc → gastown (hq-ctx-00001)\n"), "{said}");
    assert_eq!(
        said.stderr,
        "warning: no daemon is running; start it with gt up, or start what is ready with gt scheduler run\n"
    );
    assert_eq!(town.show("gt-abc")["status"], "open");

    let again = town.gt(["sling", "gt-abc"]).ok();
    assert_eq!(again.stdout, "gt-abc: already scheduled (hq-ctx-00001); nothing to do\n");
    assert_eq!(again.stderr, "");
    town.bead("gt-def", &[]);
    assert_eq!(town.gt(["sling", "gt-def", "--no-boot"]).ok().stderr, "");
}

#[test]
fn a_daemon_that_runs_is_not_asked_for() {
    let town = gastown();
    defer(&town);
    town.bead("gt-a", &[]);
    town.bead("gt-b", &[]);
    let lock = std::fs::File::create(town.cwd().join(".gt/daemon.lock")).unwrap();

    lock.lock().unwrap();
    assert_eq!(town.gt(["sling", "gt-a"]).ok().stderr, "");
    lock.unlock().unwrap();
    let said = town.gt(["sling", "gt-b"]).ok();
    assert_says(&said.stderr, &["no daemon is running"]);
}

#[test]
fn a_blocked_bead_is_scheduled_in_direct_mode_and_says_what_it_waits_for() {
    let town = gastown();
    town.bead("gt-a", &[]);
    town.bead("gt-b", &["--deps", "gt-a"]);

    let said = town.gt(["sling", "gt-b", "--no-convoy"]).ok();
    assert_eq!(
        said.stdout,
        "✓ Scheduled gt-b → gastown (hq-ctx-00001), waiting: blocked by gt-a\n"
    );
    let (_, report) = sling(&town, &["gt-b"]);
    assert_eq!(statuses(&report), ["noop"]);

    town.bead("gt-c", &["--deps", "gt-a"]);
    let (code, report) = sling(&town, &["gt-c"]);
    assert_eq!(code, 0);
    assert_eq!(
        report["entries"][0]["reasons"],
        json!([
            {"code": "blocked", "text": "blocked by gt-a"}
        ])
    );
    assert_eq!((&report["mode"], &report["paused"]), (&json!("direct"), &json!(false)));
}

#[test]
fn a_start_that_fails_is_told_and_the_bead_stays_scheduled() {
    let town = gastown();
    town.gt(["config", "set", "rig.gastown.command", "/nonexistent/program {bead}"]).ok();
    town.bead("gt-abc", &[]);

    let (code, report) = sling(&town, &["gt-abc"]);

    assert_eq!((code, statuses(&report)), (1, vec!["failed".to_owned()]));
    assert_says(
        report["entries"][0]["reasons"][0]["text"].as_str().unwrap(),
        &["/nonexistent/program"],
    );
    assert_eq!(town.show("gt-abc")["status"], "open");
    let list = town.gt_json(&["queue", "list"]);
    assert_eq!(list[0]["reasons"][0]["code"], "backoff");
    assert_eq!(list[0]["dispatch_failures"], 1);
}

#[test]
fn a_bead_without_a_slot_says_so_in_dry_run_and_sling() {
    let town = gastown_that_takes_time();
    town.gt(["config", "set", "rig.gastown.max_polecats", "1"]).ok();
    town.bead("gt-a", &["--priority", "3"]);
    town.bead("gt-b", &["--priority", "1"]);

    let dry = town.gt(["sling", "gt-a", "gt-b", "--dry-run"]).ok().stdout;
    let said = town.gt(["sling", "gt-a", "gt-b"]).ok().stdout;

    assert_says(&dry, &["Would schedule gt-a → gastown, waiting: no slot", "Would start gt-b"]);
    assert_says(&said, &["✓ Scheduled gt-a → gastown (hq-ctx-00001), waiting: no slot"]);
    assert_says(&said, &["✓ Started gt-b (gt-b#1)"]);
    let_work_end(&town);
}

#[test]
fn while_paused_a_direct_sling_schedules_and_says_so() {
    let town = gastown();
    town.bead("gt-abc", &[]);
    town.gt(["scheduler", "pause", "--actor", "mayor"]).ok();

    let said = town.gt(["sling", "gt-abc"]).ok();

    assert_says(&said.stdout, &["✓ Scheduled gt-abc → gastown"]);
    assert_says(&said.stderr, &["Paused by mayor since", "gt scheduler resume"]);
    assert_eq!(town.show("gt-abc")["status"], "open");
}

#[test]
fn an_unknown_name_stops_a_batch_before_anything_is_scheduled() {
    let town = gastown();
    town.bead("gt-a1", &[]);
    town.bead("gt-b", &[]);
    town.bead("gt-epic", &["--type", "epic"]);
    part(&town, "gt-part", "gt-epic", &[]);
    let last = town.last_event();

    for verb in ["sling", "queue"] {
        for (words, parts) in [
            // A mistyped rig, alone behind a bead and behind several.
            (
                &["gt-b", "gatsown"][..],
                &["\"gatsown\"", "did you mean gastown?", "known rigs: gastown"][..],
            ),
            (&["gt-b", "gt-a1", "gastow"], &["did you mean gastown?"]),
            (&["gt-epic", "gatsown"], &["did you mean gastown?"]),
            (
                &["gt-b", "nowhere"],
                &["no issue and no rig found matching \"nowhere\"", "known rigs"],
            ),
            // A mistyped id, in any place and beside any argument.
            (
                &["gt-b", "gt-a2", "gastown"],
                &["no issue found matching \"gt-a2\"; did you mean gt-a1?"],
            ),
            (&["gt-1a", "gt-b"], &["did you mean gt-a1?"]),
            (&["gt-b", "gt-nope", "gt-none", "gastown"], &["\"gt-nope\"", "\"gt-none\""]),
            (&["mol-review", "--on", "gt-b", "--on", "gt-nope"], &["\"gt-nope\""]),
        ] {
            for how in [&["--no-boot"][..], &["--dry-run"], &["--force"], &["--json"]] {
                let ran =
                    town.command(town.gt_path()).arg(verb).args(words).args(how).run().fails(1);
                assert_says(&ran.stderr, parts);
            }
        }
    }
    assert_eq!(town.last_event(), last, "nothing happened");
}

#[test]
fn skip_unknown_schedules_the_rest_of_a_batch() {
    let town = gastown();
    defer(&town);
    town.bead("gt-a", &[]);
    town.bead("gt-b", &[]);

    let words =
        ["sling", "gt-a", "gt-nope", "gt-b", "gt-a", "gastown", "--no-boot", "--skip-unknown"];
    let ran = town.gt(words).ok();

    let said = ["✓ Scheduled gt-a", "✓ Scheduled gt-b", "gt-a: named twice", "Skipped: 1 unknown"];
    assert_says(&ran.stdout, &said);
    assert_says(&ran.stderr, &["no issue found matching \"gt-nope\""]);
    let contexts = texts(&town.gt_json(&["queue", "list"]), "context");
    assert_eq!(contexts, ["hq-ctx-00001", "hq-ctx-00002"]);
    let convoys = town.ids(&["list", "--type", "convoy"]);
    assert_eq!(convoys.len(), 1, "one convoy for the whole command");

    let (code, report) = sling(&town, &["gt-a", "gt-b", "gastown"]);
    assert_eq!((code, statuses(&report)), (0, vec!["noop".to_owned(); 2]));

    let last = town.last_event();
    town.gt(["sling", "gt-nope", "gt-none", "--skip-unknown"]).fails(1);
    assert_eq!(town.last_event(), last, "a request of unknown names alone is refused");
}

#[test]
fn an_epic_goes_as_far_as_it_can() {
    let town = gastown_that_takes_time();
    town.bead("gt-epic", &["--type", "epic"]);
    for name in ["a", "b", "c", "d", "e"] {
        part(&town, &format!("gt-{name}"), "gt-epic", &[]);
    }
    part(&town, "gt-sub", "gt-epic", &["--type", "epic"]);
    part(&town, "gt-f", "gt-sub", &[]);
    town.bd(["close", "gt-a", "gt-b"]).ok();
    town.gt(["sling", "gt-c"]).ok();
    town.bd(["update", "gt-d", "--assignee", "ann"]).ok();

    let said = town.gt(["sling", "gt-epic"]).ok();

    assert_says(&said.stdout, &["✓ Started gt-e (gt-e#1)", "✓ Started gt-f (gt-f#1)"]);
    assert_says(
        &said.stdout,
        &["Skipped: 1 assigned, 2 closed, 1 of a type that is not dispatched, 1 running"],
    );
    let (code, report) = sling(&town, &["gt-epic"]);
    assert_eq!((code, &report["epic"]), (0, &json!("gt-epic")));
    assert!(statuses(&report).iter().all(|status| status == "skipped"), "{report}");
    let error = refusal(&town.gt(["sling", "gt-epic", "--args", "hurry", "--ralph"]));
    assert_eq!(error, "epic mode does not support: --ralph, --args");
    let error = refusal(&town.gt(["sling", "gt-epic", "gastown"]));
    assert_says(&error, &["gt-epic", "epic", "gastown"]);
    let_work_end(&town);
}

#[test]
fn a_convoy_sends_what_it_tracks_and_makes_no_convoy() {
    let town = gastown();
    defer(&town);
    town.bead("hq-cv-abc", &["--type", "convoy"]);
    town.bead("gt-a", &[]);
    town.bead("hq-b", &[]);
    for id in ["gt-a", "hq-b"] {
        town.bd(["dep", "add", "hq-cv-abc", id, "--type", "tracks"]).ok();
    }

    let said = town.gt(["sling", "hq-cv-abc", "--no-boot"]).ok();

    assert_eq!(
        said.stdout,
        "✓ Scheduled gt-a → gastown (hq-ctx-00001)\nSkipped: 1 not dispatchable\n"
    );
    assert_says(&said.stderr, &["Skipped hq-b", "town-level"]);
    assert_eq!(town.ids(&["list", "--type", "convoy"]), ["hq-cv-abc"]);
}

#[test]
fn a_formula_goes_on_beads_from_the_command_line_a_file_or_standard_input() {
    let town = gastown();
    defer(&town);
    for id in ["gt-a", "gt-b", "gt-c", "gt-d"] {
        town.bead(id, &[]);
    }
    town.write("beads.txt", "# first\ngt-a\n\n  gt-b   # with a remark\n");

    let ran =
        town.gt(["sling", "mol-review", "--batch", "--on", "@beads.txt", "gastown", "--queue"]);
    assert_says(&ran.ok().stdout, &["✓ Scheduled gt-a → gastown", "✓ Scheduled gt-b → gastown"]);
    let sling = |arguments: &[&str]| town.command(town.gt_path()).arg("sling").args(arguments);
    let ran = sling(&["mol-review", "--on", "-", "--on", "gt-d"]).stdin("gt-c\n").run().ok();
    assert_says(&ran.stdout, &["✓ Scheduled gt-c", "✓ Scheduled gt-d"]);

    assert_eq!(town.gt_json(&["queue", "list"]).as_array().unwrap().len(), 4);
    town.write("empty.txt", "# nothing\n");
    let error = refusal(&town.gt(["sling", "mol-review", "--on", "@empty.txt"]));
    assert_says(&error, &["empty.txt names no bead"]);
    let error = refusal(&town.gt(["sling", "mol-review", "--on", "@missing.txt"]));
    assert_says(&error, &["cannot read missing.txt"]);
    let error = refusal(&sling(&["mol-review", "--on", "-", "--stdin"]).stdin("gt-a").run());
    assert_says(&error, &["standard input can be read once"]);
}

#[test]
fn instructions_from_standard_input_reach_the_worker() {
    let town = gastown_with("cat > \"$GT_TOWN_ROOT/prompt-$1\"");
    town.bead("gt-a", &[]);
    let sling = town.command(town.gt_path()).args(["sling", "gt-a", "--stdin"]);

    sling.stdin("Begin with the tests.\n").run().ok();

    wait_for_status(&town, "gt-a", "closed");
    let prompt = std::fs::read_to_string(town.cwd().join("prompt-gt-a")).unwrap();
    assert_says(&prompt, &["gt-a", "Begin with the tests."]);
}

#[test]
fn a_run_that_fails_is_tried_again_as_often_as_was_said() {
    let town = gastown_with("echo x >> \"$GT_TOWN_ROOT/tries\"; exit 3");
    town.bead("gt-a", &[]);
    town.gt(["sling", "gt-a", "--retries", "2"]).ok();

    wait_until("the first run ended", || town.gt_json(&["queue", "list"])[0]["id"] == "gt-a");
    let ran = town.gt(["queue", "run", "--until-done"]).fails(1);

    assert_says(&ran.stderr, &["the runs of gt-a failed", "gt scheduler retry"]);
    let tries = std::fs::read_to_string(town.cwd().join("tries")).unwrap();
    assert_eq!(tries.lines().count(), 3);
    assert_eq!(town.show("gt-a")["outcome"], "failed");
}

#[test]
fn a_dry_run_says_what_would_happen_and_changes_nothing() {
    for (mode, line) in
        [("-1", "Would start gt-a → gastown"), ("3", "Would schedule gt-a → gastown")]
    {
        let town = gastown();
        town.gt(["config", "set", "scheduler.max_polecats", mode]).ok();
        town.bead("gt-a", &[]);
        town.bead("gt-b", &["--deps", "gt-a"]);
        town.bead("gt-epic", &["--type", "epic"]);
        part(&town, "gt-c", "gt-epic", &[]);
        town.gt(["queue", "gt-c"]).ok();
        let before = everything(&town);

        let said = town.gt(["sling", "gt-a", "gt-b", "--dry-run"]).ok();
        assert_says(
            &said.stdout,
            &[
                line,
                "Would schedule gt-b → gastown, waiting: blocked by gt-a",
                "Would make a convoy",
            ],
        );
        assert_eq!(said.stderr, "");
        town.gt(["sling", "gt-epic", "-n"]).ok();
        town.gt(["queue", "gt-a", "-n", "--json"]).ok();
        town.gt(["queue", "run", "--dry-run"]).ok();
        town.gt(["sling", "gt-a", "gt-nope", "-n"]).fails(1);

        assert_eq!(everything(&town), before);
    }
}

#[test]
fn unschedulable_beads_are_refused_with_the_reason() {
    let town = gastown();
    town.gt(["rig", "add", "beads", "--prefix", "bd"]).ok();
    town.gt(["rig", "add", "dry", "--prefix", "dr"]).ok();
    town.gt(["config", "set", "rig.beads.command", "/bin/true {bead}"]).ok();
    for id in ["gt-a", "gt-closed", "gt-taken", "hq-a", "bd-a", "dr-a"] {
        town.bead(id, &[]);
    }
    town.bead("gt-note", &["--type", "decision"]);
    town.bd(["close", "gt-closed"]).ok();
    town.bd(["update", "gt-taken", "--assignee", "ann"]).ok();
    town.gt(["rig", "dock", "beads"]).ok();
    let last = town.last_event();

    for (arguments, parts) in [
        (&["gt-nope"][..], &["no issue found", "gt-nope"][..]),
        (&["gt-a", "nowhere/nux"], &["nowhere", "known rigs: beads, dry, gastown"]),
        (&["gt-a", "beads"], &["gt-a", "gastown", "beads", "--force"]),
        (&["gt-closed", "--force"], &["gt-closed is closed", "bd reopen"]),
        (&["gt-taken"], &["assigned to ann", "--force"]),
        (&["hq-a"], &["town-level"]),
        (&["gt-note"], &["type decision"]),
        (&["bd-a"], &["docked", "gt rig undock beads"]),
        (&["dr-a"], &["rig.dry.command"]),
        (&["mol-review"], &["mol-review", "--on <bead>"]),
        (&["gt-a", "--formula", "mol-nope"], &["gt-a", "formula \"mol-nope\" not found"]),
        (
            &["gt-a", "--var", "colour=red"],
            &["mol-polecat-work has no variable \"colour\"", "issue"],
        ),
        (&["gt-a", "--account", "work"], &["account \"work\" not found"]),
        (&["--dry-run"], &["name what is to be slung"]),
        (&["mol-review", "--on", "gt-a", "nowhere"], &["nowhere", "known rigs"]),
    ] {
        let ran = town.command(town.gt_path()).arg("sling").args(arguments).run();
        assert_says(&refusal(&ran), parts);
    }
    let ran = town.gt(["sling", "gt-a", "nowhere", "--dry-run"]).fails(1);
    assert_says(&ran.stderr, &["no issue and no rig found matching \"nowhere\"", "known rigs"]);
    assert_eq!(town.last_event(), last, "nothing happened");
}

#[test]
fn a_base_branch_that_is_no_name_of_a_branch_is_refused_before_anything_is_scheduled() {
    let town = gastown();
    town.bead("gt-a", &[]);
    for verb in [&["sling", "gt-a"][..], &["queue", "gt-a"], &["convoy", "create", "All", "gt-a"]] {
        for wrong in ["a..b", "x.lock", "HEAD", "@{-1}"] {
            let gt = town.command(town.gt_path()).args(verb).args(["--base-branch", wrong]);
            let ran = gt.run().fails(2);
            assert_says(&ran.stderr, &["is not the name of a branch"]);
        }
    }
    assert_eq!(town.gt_json(&["scheduler", "list"]), json!([]));
    assert_eq!(town.gt_json(&["run", "list", "--all"]), json!([]));
}

#[test]
fn flags_that_contradict_each_other_are_refused_by_name() {
    let town = gastown();
    town.bead("gt-a", &[]);
    for flags in [
        &["--hook-raw-bead", "--formula", "mol-review"][..],
        &["--no-merge", "--merge", "mr"],
        &["--owned", "--no-convoy"],
        &["--stdin", "--args", "x"],
        &["--merge", "squash"],
        &["--var", "novalue"],
        &["--retries", "many"],
    ] {
        for verb in ["sling", "queue"] {
            let ran = town.command(town.gt_path()).args([verb, "gt-a"]).args(flags).run().fails(2);
            assert_says(&ran.stderr, &[flags[0]]);
        }
    }
}

#[test]
fn polecats_do_not_sling() {
    let town = gastown();
    town.bead("gt-a", &[]);
    let with_role = |role: &str| -> FinishedProgram {
        town.command(town.gt_path()).args(["sling", "gt-a", "-n"]).env("GT_ROLE", role).run()
    };

    assert_says(&refusal(&with_role("gastown/polecats/nux")), &["polecats do not sling", "nux"]);
    for verb in ["sling", "queue"] {
        let worker = town.command(town.gt_path()).args([verb, "gt-a", "-n"]);
        let worker = worker.env("GT_ROLE", "gastown/process").env("GT_RUN", "gt-z#1").run();
        assert_says(&refusal(&worker), &["polecats do not sling", "gt-z#1", "bd create"]);
    }
    with_role("gastown/crew/ann").ok();
    with_role("mayor").ok();
}

#[test]
fn a_live_run_is_never_overridden() {
    let town = gastown_that_takes_time();
    town.bead("gt-a", &[]);
    town.gt(["sling", "gt-a"]).ok();

    let same = town.gt(["sling", "gt-a", "gastown"]).ok();
    assert_says(&same.stdout, &["already with gastown/process (gt-a#1); nothing to do"]);
    for flags in [&["gt-a"][..], &["gt-a", "--force"], &["gt-a", "gastown/nux", "--force"]] {
        let error = refusal(&town.command(town.gt_path()).arg("sling").args(flags).run());
        assert_says(&error, &["gt-a#1", "gt unsling gt-a", "gt run cancel gt-a#1"]);
    }
    let_work_end(&town);
    wait_for_status(&town, "gt-a", "closed");
}

#[test]
fn a_parked_rig_takes_work_and_starts_none() {
    let town = gastown();
    town.gt(["rig", "park", "gastown"]).ok();
    town.bead("gt-a", &[]);

    let said = town.gt(["sling", "gt-a"]).ok();

    assert_says(&said.stdout, &["✓ Scheduled gt-a", "waiting: the rig gastown is parked"]);
    town.gt(["rig", "unpark", "gastown"]).ok();
    assert_says(&town.gt(["scheduler", "run"]).ok().stdout, &["Dispatched: 1"]);
}

#[test]
fn work_for_agents_that_ask_waits_for_them() {
    let town = gastown();
    let rig = town.gt_json(&["rig", "add", "inboxes", "--prefix", "ib", "--executor", "pull"]);
    assert_eq!(rig["executor"], "pull");
    town.bead("ib-a", &["--type", "decision"]);

    let said = town.gt(["sling", "ib-a"]).ok();

    assert_says(&said.stdout, &["✓ Scheduled ib-a", "waits for an agent to ask for it"]);
    town.bead("ib-b", &["--type", "gate"]);
    let error = refusal(&town.gt(["sling", "ib-b"]));
    assert_says(&error, &["type gate", "agents that ask for work are not given", "bd update ib-b"]);
    town.bead("ib-c", &[]);
    let error = refusal(&town.gt(["sling", "ib-c", "inboxes/polecats/nux"]));
    assert_says(&error, &["no polecats", "inboxes or inboxes/<agent>"]);
    let error = refusal(&town.gt(["rig", "add", "x", "--executor", "none"]));
    assert_says(&error, &["none", "later", "tmux, process or pull"]);
    town.gt(["rig", "add", "x", "--executor", "cloud"]).fails(2);
}

/// The beads that are dispatched to an agent and wait for it.
fn queue_of(town: &Sandbox, agent: &str) -> Vec<String> {
    texts(&town.gt_json(&["work", "list", "--agent", agent, "--status", "dispatched"]), "bead")
}

#[test]
fn a_bead_slung_to_an_agent_is_only_in_its_queue() {
    let town = gastown();
    town.gt(["rig", "add", "inboxes", "--prefix", "ib", "--executor", "pull"]).ok();
    for id in ["ib-first", "ib-later", "ib-own", "gt-a"] {
        town.bead(id, &[]);
    }
    town.bead("ib-blocked", &["--deps", "ib-first"]);

    // It is dispatched at once; again is nothing, and elsewhere is refused.
    town.gt(["sling", "ib-first", "inboxes/ann"]).ok();
    assert_eq!(queue_of(&town, "ann"), ["ib-first"]);
    assert_says(&town.gt(["sling", "ib-first", "inboxes/ann"]).ok().stdout, &["already with ann"]);
    assert_says(&refusal(&town.gt(["sling", "ib-first", "inboxes/bob"])), &["is with ann"]);
    // An agent that has had work is known by name.
    town.gt(["sling", "ib-own", "ann"]).ok();
    assert_eq!(queue_of(&town, "ann"), ["ib-first", "ib-own"]);
    assert_says(
        &refusal(&town.gt(["sling", "gt-a", "ann"])),
        &["ann", "starts its workers itself"],
    );

    // A blocked bead waits for that agent, also while others ask.
    let said = town.gt(["sling", "ib-blocked", "inboxes/ann"]).ok();
    assert_says(&said.stdout, &["✓ Scheduled ib-blocked", "blocked by ib-first"]);
    town.gt(["sling", "ib-later", "inboxes"]).ok();
    let taken = town.gt_json(&["work", "next", "--agent", "ann"]);
    assert_eq!(taken["item"]["bead"], "ib-first");
    town.gt(["work", "update", "ib-first", "--status", "completed"]).ok();
    let taken = town.gt_json(&["work", "next", "--agent", "bob"]);
    assert_eq!(taken["item"]["bead"], "ib-later");
    town.gt(["work", "update", "ib-later", "--status", "completed"]).ok();
    assert_eq!(town.gt_json(&["work", "next", "--agent", "bob"])["item"], Value::Null);
    town.gt(["scheduler", "run"]).ok();
    assert_eq!(queue_of(&town, "ann"), ["ib-own", "ib-blocked"]);
}

#[test]
fn a_rig_with_scheduled_work_or_live_runs_is_not_removed() {
    let town = gastown_that_takes_time();
    town.gt(["rig", "add", "other", "--prefix", "ot"]).ok();
    let command = format!("{} {{bead}}", town.cwd().join("work.sh").display());
    town.gt(["config", "set", "rig.other.command", &command]).ok();
    town.bead("gt-a", &[]);
    town.gt(["queue", "gt-a", "other", "--force"]).ok();

    let error = refusal(&town.gt(["rig", "remove", "other"]));
    assert_says(&error, &["other has 1 bead scheduled", "gt scheduler clear"]);
    assert_eq!(town.gt_json(&["rig", "status", "other"])["queued"], 1);
    town.gt(["queue", "run"]).ok();
    let error = refusal(&town.gt(["rig", "remove", "other"]));
    assert_says(&error, &["gt-a#1 is running in the rig other", "gt run cancel gt-a#1"]);

    let_work_end(&town);
    wait_for_status(&town, "gt-a", "closed");
    town.gt(["rig", "remove", "other"]).ok();
}
