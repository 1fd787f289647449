//! `gt store`: backups, checks, sizes, in a file and on a server.

use std::fs;
use std::path::Path;

use gt_testkit::{Cluster, Sandbox};
use serde_json::{Value, json};

use crate::support::{
    Steps as _, assert_says, files_in, json_refusal, keys, nowhere, refusal, texts,
    town_on_file as town,
};

/// A town whose records are on a server, and the name of its database.
fn town_on_server() -> (Sandbox, String) {
    let url = Cluster::shared().fresh_database();
    let sandbox = nowhere();
    let install = sandbox.command(sandbox.gt_path()).args(["install", "town"]);
    install.env("DATABASE_URL", &url).run().ok();
    let database = url.rsplit('/').next().unwrap().to_owned();
    (sandbox.in_dir("town"), database)
}

/// A town in a file and one on a server, each with three beads, one of which waits.
fn towns() -> [Sandbox; 2] {
    let towns = [town(), town_on_server().0];
    towns.iter().for_each(furnish);
    towns
}

fn furnish(town: &Sandbox) {
    town.bead("hq-a", &["-l", "red", "--description", "Boil water"]);
    town.bead("hq-b", &["--deps", "hq-a"]);
    town.bead("hq-c", &[]);
    town.bd(["close", "hq-c"]).ok();
}

/// A new town with this file as its store.
fn restored(backup: &Path) -> Sandbox {
    let restored = town();
    for file in files_in(restored.cwd().join(".gt")) {
        if file.starts_with("gt.db") {
            fs::remove_file(restored.cwd().join(".gt").join(file)).unwrap();
        }
    }
    fs::copy(backup, restored.cwd().join(".gt/gt.db")).unwrap();
    restored
}

#[test]
fn a_backup_is_a_store_that_a_town_can_go_on_with() {
    for town in towns() {
        let export = town.export();

        let made = town.gt_json(&["store", "backup"]);

        assert_eq!(keys(&made), ["beads", "bytes", "events", "path", "schema_version"]);
        assert_eq!((&made["beads"], made["events"].as_u64()), (&json!(3), Some(town.last_event())));
        let path = Path::new(made["path"].as_str().unwrap());
        let name = path.file_name().unwrap().to_str().unwrap();
        assert_eq!(path.parent().unwrap(), town.cwd().join(".gt/backups"));
        assert!(name.starts_with("gt-2") && name.ends_with("Z.db"), "{name}");
        assert_eq!(files_in(path.parent().unwrap()), [name]);
        assert_eq!(made["bytes"], fs::metadata(path).unwrap().len());

        let restored = restored(path);
        assert_eq!(restored.export(), export);
        assert_eq!(restored.last_event(), town.last_event());
        restored.gt(["store", "check"]).ok();
        assert_eq!(restored.ready(), ["hq-a"]);
        restored.bd(["close", "hq-a"]).ok();
        assert_eq!(restored.ready(), ["hq-b"]);
    }
}

#[test]
fn a_backup_goes_where_it_is_told_and_replaces_nothing_by_itself() {
    for town in towns() {
        let said = town.gt(["store", "backup", "copy.db"]).ok();
        assert_says(&said.stdout, &["✓ Backed up 3 beads and ", "copy.db", "KiB"]);
        assert_eq!(said.stderr, "");

        let before = fs::read(town.cwd().join("copy.db")).unwrap();
        let error = refusal(&town.gt(["store", "backup", "copy.db"]));
        assert_says(&error, &["copy.db", "exists already", "--force"]);
        json_refusal(&town.gt(["store", "backup", "copy.db", "--json"]));
        assert_eq!(fs::read(town.cwd().join("copy.db")).unwrap(), before);

        town.bead("hq-d", &[]);
        let said = town.gt(["store", "backup", "copy.db", "--force"]).ok();
        assert_says(&said.stdout, &["4 beads"]);
        assert_eq!(town.gt(["store", "backup", "other.db", "-q"]).ok().stdout, "");

        town.write("letter", "Dear diary");
        let error = refusal(&town.gt(["store", "backup", "letter", "--force"]));
        assert_says(&error, &["letter", "not a gt store"]);
        assert_says(&refusal(&town.gt(["store", "backup", "no/such/x.db"])), &["no/such/x.db"]);
        assert_says(&refusal(&town.gt(["store", "backup", "."])), &["left as it is"]);
        assert_eq!(files_in(town.cwd()), [".gt", "copy.db", "letter", "other.db"]);
    }
    let town = town();
    let error = refusal(&town.gt(["store", "backup", ".gt/gt.db", "--force"]));
    assert_says(&error, &["it is the store itself"]);
}

#[test]
fn a_backup_without_room_leaves_nothing() {
    for town in towns() {
        let script = "trap '' XFSZ; ulimit -f 40; exec \"$0\" store backup copy.db";
        let error = refusal(&town.command("bash").args(["-c", script]).arg(town.gt_path()).run());
        assert_says(&error, &["the disk is full"]);
        assert_eq!(files_in(town.cwd()), [".gt"]);
    }
}

#[test]
fn a_healthy_store_passes_the_check() {
    for town in towns() {
        let found = town.gt_json(&["store", "check"]);
        assert_eq!(found["problems"], 0);
        for name in ["damage", "differences", "circles"] {
            assert_eq!(found[name], json!([]), "{name}");
        }
        let said = town.gt(["store", "check"]).ok();
        assert_says(&said.stdout, &["✓", "integrity", "intact", "derived values", "no circles"]);
    }
}

#[test]
fn a_derived_value_that_is_wrong_is_named_and_fails_the_check() {
    let (town, database) = town_on_server();
    furnish(&town);
    let sql = "SET search_path = gt; UPDATE beads SET open_blockers = 4 WHERE id = 'hq-b'";
    Cluster::shared().sql(&database, sql);

    let found = town.gt(["store", "check", "--json"]).fails(1).json();

    let expected =
        json!([{"about": "hq-b", "value": "open_blockers", "stored": "4", "computed": "1"}]);
    assert_eq!(found["differences"], expected);
    assert_eq!((&found["problems"], &found["difference_count"]), (&json!(1), &json!(1)));
    let said = town.gt(["store", "check"]).fails(1);
    assert_says(&said.stdout, &["✗", "hq-b: open_blockers is 4, should be 1"]);
    assert_says(&said.stderr, &["Error: 1 problem was found"]);
    // The doctor sees it too.
    let said = town.gt(["doctor"]).fails(1);
    assert_says(&said.stdout, &["hq-b: open_blockers is 4, should be 1", "gt store check"]);

    let sql = "SET search_path = gt; UPDATE beads SET open_blockers = 4";
    Cluster::shared().sql(&database, sql);
    let said = town.gt(["store", "check"]).fails(1);
    assert_says(&said.stderr, &["Error: 3 problems were found"]);
}

#[test]
fn a_circle_that_got_in_anyway_fails_the_check() {
    let (town, database) = town_on_server();
    furnish(&town);
    let sql = "SET search_path = gt; UPDATE beads SET open_blockers = 1 WHERE id = 'hq-a'; \
        INSERT INTO dependencies SELECT 'hq-a', 'hq-b', type, blocking, created_at, created_by, \
        metadata, thread_id, carried FROM dependencies";
    Cluster::shared().sql(&database, sql);

    let found = town.gt(["store", "check", "--json"]).fails(1).json();

    assert_eq!(found["circles"], json!([["hq-a", "hq-b"]]));
    assert_eq!(found["problems"], 1);
    assert_says(&town.gt(["store", "check"]).fails(1).stdout, &["hq-a → hq-b"]);
}

#[test]
fn a_damaged_file_fails_the_check() {
    let town = town();
    for number in 0..40 {
        town.bead(&format!("hq-{number}"), &["--description", &"x".repeat(3000)]);
    }
    town.gt(["store", "vacuum"]).ok();
    let path = town.cwd().join(".gt/gt.db");
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..middle + 8192].fill(0x5a);
    fs::write(&path, bytes).unwrap();

    let found = town.gt(["store", "check", "--json"]).fails(1);

    assert!(found.stdout.contains("damage"), "{found}");
    // A damaged store is not backed up: the copy could replace an older, good one.
    let error = refusal(&town.gt(["store", "backup", "copy.db"]));
    assert_says(&error, &["gt.db is damaged"]);
    assert_eq!(files_in(town.cwd()), [".gt"]);
}

#[test]
fn vacuuming_says_what_it_gained() {
    for town in towns() {
        let said = town.gt_json(&["store", "vacuum"]);
        assert_eq!(keys(&said), ["bytes_after", "bytes_before", "schema_version"]);
        assert!(said["bytes_after"].as_u64().unwrap() > 0, "{said}");
        assert_says(&town.gt(["store", "vacuum"]).ok().stdout, &["✓ Vacuumed: ", " after"]);
        town.gt(["store", "check"]).ok();
    }
}

/// How many rows `info` counts in a table.
#[track_caller]
fn rows(info: &Value, table: &str) -> u64 {
    let tables = info["tables"].as_array().unwrap();
    let found = tables.iter().find(|found| found["name"] == table);
    found.expect("such a table")["rows"].as_u64().unwrap()
}

#[test]
fn info_tells_where_how_large_and_how_fast() {
    for town in towns() {
        let last = town.last_event();

        let info = town.gt_json(&["store", "info"]);

        assert_eq!(info["root"], town.cwd().display().to_string());
        let file = fs::read_to_string(town.cwd().join(".gt/town.toml")).unwrap();
        assert_says(&file, &[info["town"].as_str().unwrap()]);
        assert_eq!(info["schema"], info["schema_known"]);
        assert_eq!((rows(&info, "beads"), rows(&info, "events")), (3, last));
        assert!(texts(&info["tables"], "name").contains(&"requests".to_owned()));
        assert!(info["bytes"].as_u64().unwrap() > 0);
        assert_eq!(info["events"]["last"].as_u64(), Some(last));
        assert_eq!(info["beads"]["last_7_days"], 3);
        assert_eq!(info["beads"]["per_day_in_30_days"], 0.1);
        let said = town.gt(["store", "info"]).ok();
        assert_says(&said.stdout, &["Engine", "schema", "Settings", "TABLE", "beads", "a day"]);
        if info["engine"] == "SQLite" {
            let store = town.cwd().join(".gt/gt.db");
            assert_eq!(info["place"], store.display().to_string());
            assert_eq!(info["settings"]["synchronous"], "full");
            assert_eq!(keys(&info["sizes"]), ["file", "free", "log"]);
        } else {
            assert_eq!(info["settings"]["synchronous_commit"], "on");
            assert!(info["tables"][0]["bytes"].as_u64().unwrap() > 0);
            assert_says(&said.stdout, &["SIZE", "PostgreSQL"]);
        }
    }
}

#[test]
fn info_shows_no_password() {
    let cluster = Cluster::shared();
    let url = cluster.fresh_database().replace("postgres@", "postgres:secret@");
    let sandbox = nowhere();
    let install = sandbox.command(sandbox.gt_path()).args(["install", "town"]);
    install.env("DATABASE_URL", &url).run().ok();
    let town = sandbox.in_dir("town");

    for flags in [&["store", "info"][..], &["store", "info", "--json"]] {
        let said = town.gt(flags).ok().stdout;
        assert_says(&said, &["postgres:"]);
        assert!(!said.contains("secret"), "{said}");
    }
}

#[test]
fn a_database_that_is_not_there_is_not_made_by_looking_at_it() {
    let sandbox = nowhere();
    let absent = [
        ("mistyped.db".to_owned(), "there is no store at"),
        (Cluster::shared().fresh_database(), "gt serve makes one"),
    ];
    for (url, says) in absent {
        for verb in [&["store", "check"][..], &["store", "info"], &["store", "backup", "copy.db"]] {
            let asked = sandbox.command(sandbox.gt_path()).env("DATABASE_URL", &url).args(verb);
            let error = refusal(&asked.run());
            assert_says(&error, &["DATABASE_URL", says]);
        }
    }
    assert_eq!(files_in(sandbox.cwd()), Vec::<String>::new());
}
