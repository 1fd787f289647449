//! A store that is not ours, a disk that is full, a place that cannot be written.

use std::fs;
use std::path::PathBuf;

use gt_testkit::{FinishedProgram, Sandbox};

use crate::support::{
    Steps as _, assert_says, files_in, json_refusal, refusal, town_on_file as town,
};

fn store(town: &Sandbox) -> PathBuf {
    town.cwd().join(".gt/gt.db")
}

/// Expects that no command does anything with what is in place of the store.
#[track_caller]
fn assert_refused_untouched(town: &Sandbox, why: &str) {
    let contents = fs::read(store(town)).unwrap();
    let files = files_in(town.cwd().join(".gt"));
    for command in [&["bd", "list"][..], &["bd", "create", "x"], &["status"]] {
        let error = refusal(&town.gt(command));
        assert_says(&error, &["gt.db", why]);
    }
    assert_says(&town.gt(["doctor"]).fails(1).stdout, &["gt.db", why]);
    json_refusal(&town.bd(["list", "--json"]));
    assert_eq!(fs::read(store(town)).unwrap(), contents, "it was touched");
    assert_eq!(files_in(town.cwd().join(".gt")), files, "files came or went");
}

/// Puts this in place of the store.
fn replace_store(town: &Sandbox, contents: &[u8]) {
    for file in files_in(town.cwd().join(".gt")) {
        if file.starts_with("gt.db") {
            fs::remove_file(town.cwd().join(".gt").join(file)).unwrap();
        }
    }
    fs::write(store(town), contents).unwrap();
}

#[test]
fn a_file_that_is_no_database_is_refused_untouched() {
    let town = town();
    for contents in [&b"hello, I am a letter"[..], b"S", b"SQLite format 2\0", &[0; 4096]] {
        replace_store(&town, contents);
        assert_refused_untouched(&town, "not an SQLite database");
    }
}

#[test]
fn a_database_of_another_program_is_refused_untouched() {
    let town = town();
    // The header of an SQLite file; the mark of the program that made it stays zero.
    let mut file = b"SQLite format 3\0".to_vec();
    file.extend([0x10, 0x00, 1, 1, 0, 64, 32, 32]);
    file.resize(4096, 0);
    replace_store(&town, &file);

    assert_refused_untouched(&town, "another program");
}

#[test]
fn a_store_that_is_missing_or_no_file_is_named() {
    let town = town();
    replace_store(&town, b"");
    for command in [&["list"][..], &["create", "x"]] {
        assert_says(&refusal(&town.bd(command)), &["gt.db"]);
    }
    fs::remove_file(store(&town)).unwrap();
    assert_says(&refusal(&town.bd(["list"])), &["there is no store", "gt.db"]);
    fs::create_dir(store(&town)).unwrap();
    assert_says(&refusal(&town.bd(["list"])), &["gt.db", "not a regular file"]);
    town.bd(["create", "x"]).fails(1);
    assert_eq!(files_in(store(&town)), [""; 0]);
}

#[test]
fn a_damaged_store_is_said_to_be_damaged() {
    let town = town();
    town.bead("hq-a", &[]);
    let mut header = fs::read(store(&town)).unwrap();
    header.truncate(100);
    // A header of ours, and then nothing that makes sense.
    header.resize(64 * 1024, 0xab);
    replace_store(&town, &header);

    for command in [&["bd", "list"][..], &["bd", "create", "x"], &["status"]] {
        let error = refusal(&town.gt(command));
        assert_says(&error, &["gt.db", "damaged"]);
    }
}

/// Runs a command that may write no file larger than this many kibibytes.
fn with_room_for(town: &Sandbox, kibibytes: u32, command: &[&str]) -> FinishedProgram {
    let script = format!("trap '' XFSZ; ulimit -f {kibibytes}; exec \"$@\"");
    let bash = town.command("bash").args(["-c", &script, "bash"]);
    bash.arg(town.gt_path()).args(command).run()
}

#[test]
fn a_full_disk_is_said_to_be_full_and_nothing_is_half_written() {
    let town = town();
    town.bead("hq-a", &["-l", "x"]);
    town.write("in.jsonl", "{\"id\":\"hq-i\",\"title\":\"i\"}\n".repeat(100));
    let before = (town.export(), town.last_event());

    for kibibytes in [1, 16, 64] {
        for command in [
            &["bd", "create", "full", "-l", "a,b"][..],
            &["bd", "update", "hq-a", "--title", "full", "--add-label", "y"],
            &["bd", "close", "hq-a"],
            &["bd", "import", "in.jsonl"],
            &["bd", "delete", "hq-a", "--force"],
            &["rig", "add", "web"],
            &["config", "set", "queue.enabled", "true"],
        ] {
            let error = refusal(&with_room_for(&town, kibibytes, command));
            assert_says(&error, &["the disk is full", "nothing was changed"]);
        }
        let create = ["bd", "create", "full", "--json"];
        json_refusal(&with_room_for(&town, kibibytes, &create));
    }

    assert_eq!((town.export(), town.last_event()), before);
    town.gt(["doctor"]).ok();
    town.create("There is room again", &[]);
    assert_eq!(town.last_event(), before.1 + 1);
}

#[test]
fn a_disk_that_fills_up_during_a_large_import_leaves_nothing_of_it() {
    let town = town();
    town.bead("hq-a", &[]);
    let before = (town.export(), town.last_event());
    let lines: Vec<String> = (0..5000)
        .map(|number| {
            format!(r#"{{"id":"hq-{number}","title":"t","description":"{}"}}"#, "x".repeat(1000))
        })
        .collect();
    town.write("in.jsonl", lines.join("\n"));

    let error = refusal(&with_room_for(&town, 3000, &["bd", "import", "in.jsonl"]));

    assert_says(&error, &["the disk is full"]);
    assert_eq!((town.export(), town.last_event()), before);
    town.gt(["doctor"]).ok();
    town.bd(["import", "in.jsonl"]).ok();
}

#[test]
fn a_town_that_did_not_fit_can_be_installed_later() {
    let sandbox = crate::support::nowhere();
    for kibibytes in [0, 1, 16, 64] {
        let place = format!("town{kibibytes}");
        let error = refusal(&with_room_for(&sandbox, kibibytes, &["install", &place]));
        assert_says(&error, &["the disk is full"]);
        refusal(&sandbox.in_dir(&place).bd(["list"]));

        sandbox.gt(["install", &place]).ok();
        sandbox.in_dir(&place).create("A task", &[]);
    }
}

#[test]
fn locks_that_cannot_be_taken_stop_writers_and_not_readers() {
    let town = town();
    town.bead("hq-a", &[]);
    for lock in ["next.lock", "write.lock"] {
        let path = town.cwd().join(".gt").join(lock);
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        let error = refusal(&town.bd(["create", "x"]));
        assert_says(&error, &[lock]);
        assert_eq!(town.ids(&["list"]), ["hq-a"]);
        fs::remove_dir(&path).unwrap();
    }
    town.bd(["create", "x"]).ok();
}

#[test]
fn paths_that_cannot_be_written_are_refused() {
    // Not even the superuser makes files there.
    let town = town();
    for command in [
        &["install", "/proc/self/town"][..],
        &["bd", "export", "-o", "/proc/self/out.jsonl"],
        &["bd", "-C", "/proc/self", "init"],
    ] {
        refusal(&town.gt(command));
    }
}
