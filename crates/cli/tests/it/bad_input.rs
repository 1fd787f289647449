//! Wrong input of people and programs: one line of error, exit code 1, nothing half-written.

use gt_testkit::TestClock;
use serde_json::json;

use crate::support::{Steps as _, assert_says, json_refusal, refusal, town};

#[test]
fn a_title_is_one_line_of_1_to_500_bytes() {
    let town = town();
    town.bead("hq-a", &[]);
    let long = "é".repeat(251);
    for (title, reason) in [
        ("", "cannot be empty"),
        ("  \n", "cannot be empty"),
        ("two\nlines", "one line"),
        ("a\ttab", "one line"),
        ("an \u{1b}[31mescape", "one line"),
        (long.as_str(), "at most 500 bytes, this one has 502"),
    ] {
        for command in [&["create", title][..], &["update", "hq-a", "--title", title]] {
            let error = refusal(&town.bd(command));
            assert_says(&error, &["title", reason]);
        }
        let error = json_refusal(&town.bd(["create", title, "--json"]));
        assert_says(&error, &["title", reason]);
    }
    assert_eq!(town.show("hq-a")["title"], "hq-a");
    assert_eq!(town.last_event(), 1);
}

#[test]
fn a_title_may_be_written_in_any_script() {
    let town = town();
    let longest = "x".repeat(500);
    for title in ["🫖 tea", "שלום עולם", "مرحبا", "日本語", "e\u{301}", "<b>&\"'\\", &longest]
    {
        let id = town.create(title, &[]);
        assert_eq!(town.show(&id)["title"], title);
        let listed = town.bd(["list", "--id", &id]).ok();
        assert_says(&listed.stdout, &[title]);
    }
}

#[test]
fn no_text_holds_a_nul() {
    let town = town();
    town.bead("hq-a", &[]);
    town.write("nul.txt", "a\0b");
    town.write("nul.md", "## A\na\0b\n");
    town.write("nul.jsonl", r#"{"title":"A","metadata":"\u0000"}"#);
    town.write("nul.batch", "comment hq-a fine\ncomment hq-a a\0b\n");
    let before = town.export();
    for command in [
        &["create", "A task", "--body-file", "nul.txt"][..],
        &["create", "A task", "--design-file", "nul.txt"],
        &["update", "hq-a", "--body-file", "nul.txt"],
        &["comments", "add", "hq-a", "-f", "nul.txt"],
        &["close", "hq-a", "--reason-file", "nul.txt"],
        &["create", "--file", "nul.md"],
        &["create", "--file", "nul.jsonl"],
        &["batch", "nul.batch"],
        &["create", "A task", "--metadata", r#"{"a":"\u0000"}"#],
        &["update", "hq-a", "--metadata", r#"{"a":"\u0000"}"#],
    ] {
        let error = refusal(&town.bd(command));
        assert_says(&error, &["NUL"]);
    }
    assert_eq!(town.export(), before);
}

#[test]
fn metadata_is_json() {
    let town = town();
    town.bead("hq-a", &[]);
    town.write("broken.json", "{\n  \"a\": \n}");
    for metadata in ["nope", "{", "{'a':1}", "{} {}", "", "@broken.json", "NaN"] {
        for command in [
            &["create", "A task", "--metadata", metadata][..],
            &["update", "hq-a", "--metadata", metadata],
        ] {
            let error = refusal(&town.bd(command));
            assert_says(&error, &["metadata", "not valid JSON"]);
        }
    }
    let error = refusal(&town.bd(["create", "A task", "--metadata", "@missing.json"]));
    assert_says(&error, &["cannot read missing.json"]);
    for field in ["novalue", "=x"] {
        let error = refusal(&town.bd(["update", "hq-a", "--set-metadata", field]));
        assert_says(&error, &["key=value"]);
    }
    assert_eq!(town.ids(&["list"]), ["hq-a"]);
}

#[test]
fn a_priority_is_0_to_4() {
    let town = town();
    town.bead("hq-a", &[]);
    for priority in ["5", "-1", "P5", "high", "", "1.5", "99999999999999999999"] {
        for command in [
            &["create", "A task", "--priority", priority][..],
            &["update", "hq-a", "-p", priority],
            &["list", "--priority", priority],
            &["ready", "-p", priority],
        ] {
            let error = refusal(&town.bd(command));
            assert_says(&error, &["priority"]);
        }
    }
    assert_eq!(town.ids(&["list"]), ["hq-a"]);
}

#[test]
fn a_time_is_a_date_a_timestamp_or_a_distance() {
    let town = town();
    town.bead("hq-a", &[]);
    for time in [
        "someday",
        "2026-13-01",
        "2026-02-30",
        "2026-05-31T25:00:00Z",
        "+",
        "+2",
        "+2 parsecs",
        "+99999999999999999999d",
        "9999-01-01",
        "0001-01-01",
        "٢٠٢٦-٠١-٠١",
    ] {
        for flag in ["--due", "--defer"] {
            let error = refusal(&town.bd(["create", "A task", flag, time]));
            assert_says(&error, &[time.trim_start_matches('+')]);
            refusal(&town.bd(["update", "hq-a", flag, time]));
        }
    }
    assert_eq!(town.ids(&["list"]), ["hq-a"]);
}

#[test]
fn names_are_short_and_printable() {
    let town = town();
    town.bead("hq-a", &[]);
    let long = "x".repeat(51);
    for kind in ["", "a\nb", long.as_str()] {
        let error = refusal(&town.bd(["create", "A task", "--type", kind]));
        assert_says(&error, &["is not a valid issue type"]);
    }
    let error = refusal(&town.bd(["create", "A task", "-a", "a\nb"]));
    assert_says(&error, &["is not a valid assignee"]);
    let error = refusal(&town.bd(["create", "A task", "-l", "ok,a\nb"]));
    assert_says(&error, &["is not a valid label"]);
    let error = refusal(&town.bd(["update", "hq-a", "--status", "Not A Status"]));
    assert_says(&error, &["is not a status", "in_progress"]);
    assert_eq!(town.ids(&["list"]), ["hq-a"]);
}

#[test]
fn numbers_are_numbers() {
    let town = town();
    for command in [
        &["create", "A task", "--estimate=x"][..],
        &["create", "A task", "--estimate=-5"],
        &["create", "A task", "--estimate=99999999999"],
        &["activity", "--after=x"],
        &["dep", "tree", "hq-a", "--max-depth=-1"],
    ] {
        let wrong = town.bd(command).fails(1);
        assert_says(&wrong.stderr, &["Error: invalid value"]);
    }
}

#[test]
fn an_id_looks_like_one() {
    let town = town();
    let long = format!("hq-{}", "x".repeat(200));
    for id in ["", "nohyphen", "-abc", "hq abc", "hq-\u{e4}", "hq-a,b", "hq-a\nb", &long] {
        let error = refusal(&town.bd(["create", "A task", &format!("--id={id}"), "--force"]));
        assert_says(&error, &["bead id"]);
    }
    assert_eq!(town.last_event(), 0);
}

#[test]
fn files_are_text_that_can_be_read() {
    let town = town();
    town.bead("hq-a", &[]);
    town.make_dir("directory");
    town.write("binary", b"\xff\xfe\0");
    for (file, reason) in
        [("missing", "No such file"), ("directory", "directory"), ("binary", "UTF-8")]
    {
        for command in [
            &["create", "A task", "--body-file", file][..],
            &["create", "A task", "--design-file", file],
            &["update", "hq-a", "--body-file", file],
            &["comments", "add", "hq-a", "-f", file],
            &["close", "hq-a", "--reason-file", file],
            &["delete", "--from-file", file],
            &["create", "--file", file],
            &["create", "--graph", file],
            &["dep", "add", "--file", file],
            &["batch", file],
        ] {
            let error = refusal(&town.bd(command));
            assert_says(&error, &[file, reason]);
        }
    }
    assert_eq!(town.show("hq-a")["status"], "open");
}

#[test]
fn arguments_that_are_no_text_are_refused() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;
    let town = town();
    let bytes = OsStr::from_bytes(b"\xff\xfe");

    let refused = town.bd([OsStr::new("create"), bytes]).fails(1);

    assert_says(&refused.stderr, &["Error: invalid UTF-8"]);
    assert_eq!(town.last_event(), 0);
}

#[test]
fn contradicting_flags_are_refused() {
    let town = town();
    town.bead("hq-a", &[]);
    for command in [
        &["list", "--assignee", "x", "--no-assignee"][..],
        &["list", "--pinned", "--no-pinned"],
        &["list", "--parent", "hq-a", "--no-parent"],
        &["ready", "--explain", "--claim"],
        &["update", "hq-a", "--ephemeral", "--persistent"],
        &["update", "hq-a", "--history", "--no-history"],
        &["comments", "add", "hq-a", "text", "-f", "file"],
    ] {
        let wrong = town.bd(command).fails(1);
        assert_says(&wrong.stderr, &["Error: ", "cannot be used with"]);
    }
}

#[test]
fn much_text_is_fine() {
    let town = town();
    let long = "line\n".repeat(40_000);

    let create = town.start_bd(&["create", "Long", "--stdin", "--silent"]);
    let id = create.stdin(long.clone()).run().ok().line().to_owned();

    assert_eq!(town.show(&id)["description"], long);
}

#[test]
fn the_largest_numbers_are_numbers_like_any_other() {
    let town = town();
    town.bead("hq-a", &[]);
    let largest = u64::MAX.to_string();
    for command in [
        &["list", "--limit", &largest][..],
        &["ready", "--limit", &largest],
        &["search", "a", "--limit", &largest],
        &["activity", "--limit", &largest],
        &["dep", "tree", "hq-a", "--max-depth", &largest],
    ] {
        let printed = town.start_bd(command).arg("--json").run().ok();
        assert_eq!(printed.json().as_array().unwrap().len(), 1, "{command:?}");
    }
    assert_eq!(town.json(&["activity", "--after", &largest]), json!([]));
    let far = town.create("Far", &["--due", "+106751d"]);
    assert_says(town.show(&far)["due_at"].as_str().unwrap(), &["2262-04-11"]);
    let export = town.export();
    assert_eq!(town.import(&export)["unchanged"], 2);
}

#[test]
fn a_directory_that_is_gone_is_no_place_to_work_in() {
    let town = town();
    town.make_dir("gone");
    for program in [town.bd_path().join("list"), town.gt_path().join("status")] {
        let (path, command) = (program.parent().unwrap(), program.file_name().unwrap());
        let bash = town.command("bash").dir("gone");
        let script = "rmdir ../gone && \"$0\" \"$1\"; code=$?; mkdir ../gone; exit $code";
        let error = refusal(&bash.args(["-c", script]).arg(path).arg(command).run());
        assert_says(&error, &["the current directory is gone"]);
    }
}

#[test]
fn closed_standard_error_keeps_the_exit_code() {
    let town = town();
    for (command, code) in [
        ("bd show hq-none", 1),
        ("bd list --no-such-flag", 1),
        ("bd create ''", 1),
        ("bd update hq-none --title x", 1),
        ("--no-such-flag", 2),
        ("", 2),
    ] {
        for redirection in ["2>/dev/full", "2>&-", "2> >(true)"] {
            let script = format!("'{}' {command} {redirection}", town.gt_path().display());
            town.command("bash").args(["-c", &script]).run().fails(code);
        }
    }
}

#[test]
fn a_clock_beyond_the_calendar_is_an_error() {
    let town = town();
    let year = 366 * 24 * 60 * 60;
    for years in [300, 9_000, 200_000, -100] {
        let clock = TestClock::wrong_by(&town, years * year);
        for command in [town.start_bd(&["create", "Late"]), town.start_bd(&["list"])] {
            let ran = clock.read_by(command).run().fails(1);
            assert!(ran.stderr.contains("the clock of this machine"), "{years}: {}", ran.stderr);
        }
    }
    town.bd(["create", "On time"]).ok();
}
