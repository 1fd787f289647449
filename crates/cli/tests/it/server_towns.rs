//! Towns on a server: how one is made, joined and told from others.

use std::fs;

use gt_testkit::{Cluster, FinishedProgram, Sandbox};

use crate::support::{
    Steps as _, assert_says, files_in, nowhere, refusal, town_on_file, town_on_server,
};

fn url() -> String {
    Cluster::shared().fresh_database()
}

fn bd_with_url(sandbox: &Sandbox, url: &str, arguments: &[&str]) -> FinishedProgram {
    sandbox.bd_with("DATABASE_URL", url, arguments)
}

fn install(sandbox: &Sandbox, url: &str, place: &str) -> FinishedProgram {
    sandbox.command(sandbox.gt_path()).env("DATABASE_URL", url).args(["install", place]).run()
}

#[test]
fn a_second_host_joins_and_sees_the_same_beads() {
    let (sandbox, url) = (nowhere(), url());
    assert_says(&install(&sandbox, &url, "one").ok().stdout, &["Made a town", "postgres://"]);
    assert_says(&install(&sandbox, &url, "two").ok().stdout, &["Joined the town"]);

    sandbox.in_dir("one").bead("hq-a", &[]);

    assert_eq!(sandbox.in_dir("two").ids(&["list"]), ["hq-a"]);
}

#[test]
fn a_town_remembers_its_server_and_is_not_led_astray() {
    let town = town_on_server();
    town.bead("hq-a", &[]);
    let elsewhere = url();

    assert_says(&bd_with_url(&town, &elsewhere, &["list"]).ok().stdout, &["hq-a"]);
}

#[test]
fn a_foreign_database_url_is_refused_or_ignored() {
    let town = town_on_file();
    town.bead("hq-a", &[]);

    let error = refusal(&bd_with_url(&town, &url(), &["list"]));
    assert_says(&error, &["DATABASE_URL", "unset it", "database_url = \"sqlite:.gt/gt.db\""]);
    for other in ["mysql://app@db/shop", "jdbc:postgresql://db/shop", "file:./dev.db"] {
        assert_says(&bd_with_url(&town, other, &["list"]).ok().stdout, &["hq-a"]);
    }
    let error = refusal(&bd_with_url(&town, "host=db dbname=shop", &["list"]));
    assert_says(&error, &["postgres://user@host/database"]);
}

#[test]
fn a_town_file_that_names_the_store_of_another_town_is_refused() {
    let (sandbox, own, other) = (nowhere(), url(), url());
    install(&sandbox, &own, "one").ok();
    install(&sandbox, &other, "two").ok();
    let one = sandbox.in_dir("one");
    let file = one.cwd().join(".gt/town.toml");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace(&own, &other)).unwrap();

    for refused in [one.bd(["create", "Lost"]), one.gt(["up"]), one.gt(["scheduler", "run"])] {
        let error = refusal(&refused);
        assert_says(&error, &["holds another town", "this town's store into .gt/town.toml"]);
        assert!(!error.contains("DATABASE_URL"), "{error}");
        assert!(!error.contains("its log is"), "a daemon that never worked has no log: {error}");
    }

    let two = sandbox.in_dir("two");
    assert_eq!(two.ids(&["list", "--all"]), [""; 0]);
    assert_eq!(two.gt_json(&["host", "list"]), serde_json::json!([]), "nothing joined");
}

#[test]
fn the_scheme_may_be_spelled_in_any_case() {
    let (sandbox, url) = (nowhere(), url());
    let shouted = format!(" {}", url.replace("postgres:", "POSTGRES:"));
    assert_says(&install(&sandbox, &shouted, "one").ok().stdout, &["on postgres://"]);
}

#[test]
fn a_stand_alone_store_says_where_it_is_and_does_not_join() {
    let (sandbox, url) = (nowhere(), url());
    let made = bd_with_url(&sandbox, &url, &["init", "--prefix", "aa"]).ok();
    assert_says(&made.stdout, &["on postgres://", "prefix aa"]);

    let other = nowhere();
    let error = refusal(&bd_with_url(&other, &url, &["init", "--prefix", "bb"]));

    assert_says(&error, &["holds a town already", "gt install", "?schema="]);
    assert_eq!(files_in(other.cwd()), Vec::<String>::new());
}

#[test]
fn a_server_that_cannot_be_reached_leaves_nothing_behind() {
    let sandbox = nowhere();
    let unreachable = "postgres://me:secret@127.0.0.1:1/town";

    let error = refusal(&install(&sandbox, unreachable, "."));

    assert_says(&error, &["cannot reach postgres://me@127.0.0.1:1/town"]);
    assert!(!error.contains("secret"), "{error}");
    assert_eq!(files_in(sandbox.cwd()), Vec::<String>::new());
}

#[test]
fn installing_again_shows_what_is_broken() {
    let town = town_on_file();
    town.gt(["install", "."]).ok();

    std::fs::remove_file(town.cwd().join(".gt/gt.db")).expect("the store is a file");

    assert_says(&refusal(&town.gt(["install", "."])), &["there is no store"]);
}
