//! `bd batch`: many changes, one transaction.

use serde_json::json;

use crate::support::{Steps as _, assert_says, json_refusal, refusal, texts, town};

#[test]
fn every_kind_of_line_does_what_its_command_does() {
    let town = town();
    for id in ["hq-a", "hq-b", "hq-c", "hq-d"] {
        town.bead(id, &[]);
    }
    town.bd(["close", "hq-d"]).ok();
    town.bd(["dep", "add", "hq-c", "hq-a", "-t", "related"]).ok();
    town.bd(["label", "add", "hq-c", "old"]).ok();
    town.write(
        "changes.txt",
        "# what happened today\n\
         close hq-a hq-b merged into main\n\
         \n\
         update hq-c status=in_progress title=\"A = B\" --add-label soon assignee=ann\n\
         create 'It is \"new\"' type=bug priority=1 labels=x,y --id hq-new\n\
         dep add hq-new hq-c\n\
         dep add hq-new hq-d related\n\
         dep remove hq-c hq-a\n\
         label add hq-c hq-new team\n\
         label remove hq-c old\n\
         comment hq-c the cause - is \"up stream\"\n\
         \x20 reopen hq-d --reason \"it came back\"\n",
    );

    let done = town.json(&["batch", "changes.txt"]);

    assert_eq!(texts(&done, "command")[..3], ["close", "update", "create"]);
    assert_eq!(done[0], json!({"line": 2, "command": "close", "ids": ["hq-a", "hq-b"]}));
    assert_eq!(done[2], json!({"line": 5, "command": "create", "ids": ["hq-new"]}));
    assert_eq!(done[3]["ids"], json!(["hq-new", "hq-c"]));
    assert_eq!(town.show("hq-a")["close_reason"], "merged into main");
    assert_eq!(town.show("hq-b")["close_reason"], "merged into main");
    let changed = town.show("hq-c");
    assert_eq!((&changed["status"], &changed["title"]), (&json!("in_progress"), &json!("A = B")));
    assert_eq!(
        (&changed["assignee"], &changed["labels"]),
        (&json!("ann"), &json!(["soon", "team"]))
    );
    assert_eq!(changed.get("dependencies"), None);
    let new = town.show("hq-new");
    assert_eq!((&new["title"], &new["issue_type"]), (&json!("It is \"new\""), &json!("bug")));
    assert_eq!(new["labels"], json!(["team", "x", "y"]));
    assert_eq!(new["dependencies"].as_array().unwrap().len(), 2);
    assert_eq!(town.json(&["comments", "hq-c"])[0]["text"], "the cause - is up stream");
    assert_eq!(town.show("hq-d")["status"], "open");
}

#[test]
fn a_wrong_line_undoes_all_and_is_named() {
    let town = town();
    town.bead("hq-a", &[]);
    town.bead("hq-b", &[]);
    town.bead("hq-epic", &["-t", "epic"]);
    town.create("Part", &["--parent", "hq-epic"]);
    let before = (town.export(), town.last_event());
    for (line, said) in [
        ("close hq-nothing", "no issue found matching \"hq-nothing\""),
        ("close hq-b hq-typo", "no issue found matching \"hq-typo\""),
        ("close hq-epic", "cannot close hq-epic"),
        ("update hq-b colour=red", "unknown flag: --colour"),
        ("update hq-b", "nothing that is to change"),
        ("update hq-b status=unheard", "unknown status \"unheard\""),
        ("update hq-b priority=9", "priority 9 is not between"),
        ("create", "give a title"),
        ("create x --dry-run", "not for one line of a batch"),
        ("create x --file plan.md", "cannot be used with"),
        ("close hq-b --claim-next", "not for a batch"),
        ("dep add hq-b hq-b", "cannot depend on itself"),
        ("dep tree hq-b", "a batch takes dep add"),
        ("label list hq-b", "lists nothing"),
        ("comment hq-b", "TEXT"),
        ("delete hq-b", "unrecognized subcommand 'delete'"),
        ("update hq-b --stdin", "standard input is the batch itself"),
        ("update hq-b --metadata @-", "standard input is the batch itself"),
        ("close 'hq-b", "the ' at column 7 is never closed"),
        ("create --help", "explains nothing"),
    ] {
        let input = format!("close hq-a done\n\n{line}\nclose hq-b\n");
        let error = refusal(&town.start_bd(&["batch"]).stdin(input).run());
        assert_says(&error, &["standard input:3: ", said]);
    }
    assert_eq!((town.export(), town.last_event()), before);
    town.write("bad.txt", "close hq-a\nclose hq-none\n");
    assert_says(
        &json_refusal(&town.bd(["batch", "bad.txt", "--json"])),
        &["bad.txt:2: no issue found"],
    );
    assert_says(&refusal(&town.bd(["batch", "absent.txt"])), &["cannot read absent.txt"]);
}

#[test]
fn lines_see_what_the_lines_before_them_did() {
    let town = town();
    let lines = "create Epic --id hq-e type=epic\n\
                 create First --parent hq-e\n\
                 create Second --parent hq-e --deps hq-e.1\n\
                 close hq-e.1\n\
                 close hq-e.2\n\
                 close hq-e all of it\n";

    town.start_bd(&["batch", "-"]).stdin(lines).run().ok();

    assert_eq!(town.show("hq-e")["close_reason"], "all of it");
    assert_eq!(town.ready(), Vec::<String>::new());
}

#[test]
fn a_batch_can_be_rehearsed() {
    let town = town();
    town.bead("hq-a", &[]);
    let before = (town.export(), town.last_event());

    let shown =
        town.start_bd(&["batch", "--dry-run"]).stdin("close hq-a\ncreate x --id hq-x\n").run().ok();

    assert_eq!(shown.stdout, "Would do line 1: close hq-a\nWould do line 2: create hq-x\n");
    assert_eq!((town.export(), town.last_event()), before);
}

#[test]
fn values_that_look_like_fields_stay_values() {
    let town = town();
    town.bead("hq-a", &[]);
    town.bead("hq-b", &[]);
    let lines = "update hq-a --notes a=b --design \"c=d\" acceptance=e=f\n\
                 update hq-b -d x=y set_metadata=k=7\n\
                 create \"x=y\" --id hq-x description=\"- z\"\n";

    town.start_bd(&["batch"]).stdin(lines).run().ok();

    let first = town.show("hq-a");
    assert_eq!((&first["notes"], &first["design"]), (&json!("a=b"), &json!("c=d")));
    assert_eq!(first["acceptance_criteria"], "e=f");
    let second = town.show("hq-b");
    assert_eq!((&second["description"], &second["metadata"]), (&json!("x=y"), &json!({"k": 7})));
    assert_eq!(
        (&town.show("hq-x")["title"], &town.show("hq-x")["description"]),
        (&json!("x=y"), &json!("- z"))
    );
}

#[test]
fn unknown_targets_are_noted_as_by_single_commands() {
    let town = town();
    town.bead("hq-a", &[]);

    let lines = "dep add hq-a zz-far\ncreate x --deps related:zz-off --id hq-x\n";
    let ran = town.start_bd(&["batch"]).stdin(lines).run().ok();

    assert_says(
        &ran.stderr,
        &["note: zz-far does not exist here", "note: zz-off does not exist here"],
    );
}

#[test]
fn a_batch_without_lines_does_nothing() {
    let town = town();

    assert_eq!(
        town.start_bd(&["batch"]).stdin("# nothing\n\n").run().ok().stdout,
        "Nothing to do\n"
    );
    assert_eq!(town.start_bd(&["batch", "--json"]).stdin("").run().ok().json(), json!([]));
}
