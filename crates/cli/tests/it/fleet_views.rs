//! Several hosts of one town: what a person sees of them.

use gt_testkit::{Cluster, Sandbox, wait_until};
use serde_json::Value;

use crate::support::{Steps as _, assert_says, nowhere, town_on_file};

fn grade_of(checks: &Value, name: &str) -> Vec<String> {
    let all = checks.as_array().expect("checks are an array").iter();
    let named = all.filter(|check| check["check"] == name);
    named.map(|check| check["grade"].as_str().expect("a grade").to_owned()).collect()
}

fn install(sandbox: &Sandbox, url: &str, place: &str) {
    sandbox.command(sandbox.gt_path()).env("DATABASE_URL", url).args(["install", place]).run().ok();
}

#[test]
fn doctor_looks_at_the_hosts_of_a_town_together() {
    let (sandbox, url) = (nowhere(), Cluster::shared().fresh_database());
    for place in ["one", "two"] {
        install(&sandbox, &url, place);
    }
    let (one, two) = (sandbox.in_dir("one"), sandbox.in_dir("two"));
    one.gt(["rig", "add", "gear", "--prefix", "gr"]).ok();

    // No host is at work yet, so no host can run the rig.
    let before = two.gt(["doctor", "--fleet", "--json"]).fails(1).json();
    assert_eq!(grade_of(&before, "rig"), ["problem"]);
    assert_eq!(grade_of(&before, "schema"), ["good"]);
    assert_eq!(grade_of(&before, "clock"), ["good"]);
    // Servers of tests run without fsync, and the checks know that.
    assert_says(&before.to_string(), &["fsync"]);

    // A rig and a setting that do not exist are told at once, and by every host; the host works all the same.
    let file = one.cwd().join("settings/config.json");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, r#"{"host": {"rigs": "gear,gaer", "max_polecat": 1}}"#).unwrap();
    let told = one.gt(["up"]).ok().stderr;
    assert_says(&told, &["names gaer", "gt rig list", "host.max_polecat, which is no setting"]);
    let remarks = || grade_of(&two.gt(["doctor", "--fleet", "--json"]).json(), "host");
    wait_until("the unknown rig is seen", || remarks() == ["good", "warning"]);
    one.gt(["down"]).ok();
    std::fs::remove_file(&file).unwrap();

    one.gt(["up"]).ok();
    let hosts = || grade_of(&two.gt(["doctor", "--fleet", "--json"]).json(), "host");
    wait_until("the host is seen", || hosts() == ["good"]);
    let after = two.gt(["doctor", "--fleet", "--json"]).ok().json();
    assert_eq!(grade_of(&after, "rig"), Vec::<String>::new());
    one.gt(["down"]).ok();

    // A host that was removed is not missed.
    let listed = two.gt(["host", "list", "--json"]).ok().json();
    let id = listed[0]["id"].as_str().expect("one is listed");
    two.gt(["host", "remove", id]).ok();
    assert_says(&one.gt(["up"]).ok().stderr, &["was removed", "gt host resume"]);
    one.gt(["down"]).ok();
    let without = two.gt(["doctor", "--fleet", "--json"]).fails(1).json();
    assert_eq!(grade_of(&without, "host"), Vec::<String>::new());
    assert_eq!(grade_of(&without, "rig"), ["problem"]);
}

#[test]
fn the_fleet_of_a_town_on_a_file_is_one_host() {
    let town = town_on_file();
    assert_says(&town.gt(["doctor", "--fleet"]).ok().stdout, &["this host is the only one"]);
    town.gt(["rig", "add", "web"]).ok();
    let told = town.gt(["config", "set", "rig.web.host", "forge"]).ok().stderr;
    assert_says(&told, &["no host of this town is called forge"]);
    let own = town.gt_json(&["host", "show"])["host"].as_str().unwrap().to_owned();
    assert_eq!(town.gt(["config", "set", "rig.web.host", &own]).ok().stderr, "");
}

#[test]
fn an_install_over_a_town_names_the_store_that_it_does_not_use() {
    let (town, url) = (town_on_file(), Cluster::shared().fresh_database());
    town.gt(["store", "migrate", &url]).ok();
    let install = |url: &str| {
        let command = town.command(town.gt_path()).env("DATABASE_URL", url);
        command.args(["install", "."]).run().ok()
    };
    assert_eq!(install(&url).stderr, "");
    let told = install("postgres://db.example/other");
    assert_says(&told.stdout, &["is a town already"]);
    let (is_on, named) = ("this town is on postgres://", "names postgres://db.example/other");
    assert_says(&told.stderr, &[is_on, named, "gt store migrate"]);
}

#[test]
fn the_end_of_a_runs_output_is_readable_from_another_host() {
    let (sandbox, url) = (nowhere(), Cluster::shared().fresh_database());
    for place in ["one", "two"] {
        install(&sandbox, &url, place);
    }
    let (one, two) = (sandbox.in_dir("one"), sandbox.in_dir("two"));
    let script = sandbox.write_script(
        "work.sh",
        "echo first line\nhead -c 100000 /dev/zero | tr '\\0' 'x'\necho\necho last words",
    );
    one.gt(["rig", "add", "gear", "--prefix", "gr"]).ok();
    one.gt(["config", "set", "rig.gear.command", &script.display().to_string()]).ok();
    one.bead("gr-a", &["--rig", "gear"]);
    one.gt(["sling", "gr-a", "gear"]).ok();
    // The end is kept after the run has ended.
    wait_until("the output is kept", || {
        let log = two.gt(["run", "log", "gr-a"]);
        log.code == 0 && log.stdout.ends_with("last words\n")
    });

    let all = one.gt(["run", "log", "gr-a"]).ok().stdout;
    let log = two.gt(["run", "log", "gr-a"]).ok();

    assert!(all.starts_with("first line") && all.len() > 100_000);
    assert_eq!(log.stdout, "last words\n");
    assert_says(&log.stderr, &["gr-a#1", "the first", "alone"]);
    assert_eq!(two.gt(["run", "log", "gr-a", "--tail", "0"]).ok().stdout, "");
}

#[test]
fn the_output_of_a_live_run_is_readable_from_another_host() {
    let (sandbox, url) = (nowhere(), Cluster::shared().fresh_database());
    for place in ["one", "two"] {
        install(&sandbox, &url, place);
    }
    let (one, two) = (sandbox.in_dir("one"), sandbox.in_dir("two"));
    let go = sandbox.root().join("go");
    let wait = format!("while [ ! -e '{}' ]; do sleep 0.05; done", go.display());
    let say = sandbox.root().join("say");
    let silent = format!("while [ ! -e '{}' ]; do sleep 0.05; done", say.display());
    let work = format!("{silent}\necho at work\n{wait}\necho done");
    let script = sandbox.write_script("work.sh", &work);
    one.gt(["rig", "add", "gear", "--prefix", "gr"]).ok();
    one.gt(["config", "set", "rig.gear.command", &script.display().to_string()]).ok();
    one.bead("gr-a", &["--rig", "gear"]);
    one.gt(["sling", "gr-a", "gear"]).ok();

    wait_until("it runs", || two.gt_json(&["run", "show", "gr-a"])["state"] == "running");
    let silent = two.gt(["run", "log", "gr-a"]).ok();
    assert_says(&silent.stderr, &["nothing that gr-a#1 has printed has arrived here"]);
    let from_the_start = two.command(two.gt_path()).args(["run", "log", "gr-a", "-f"]).start();
    std::fs::write(say, "").unwrap();
    wait_until("its output is seen while it runs", || {
        two.gt(["run", "log", "gr-a"]).stdout == "at work\n"
    });
    let log = two.gt(["run", "log", "gr-a"]).ok();
    assert_says(&log.stderr, &["gr-a#1", "up to 30 s delay"]);
    assert_eq!(two.gt_json(&["run", "show", "gr-a"])["state"], "running");
    let following = two.command(two.gt_path()).args(["run", "log", "gr-a", "--follow"]).start();
    std::fs::write(go, "").unwrap();
    for reader in [following, from_the_start] {
        assert_eq!(reader.wait().ok().stdout, "at work\ndone\n");
    }
}
