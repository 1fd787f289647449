//! Messages and results when the database server fails.

use gt_testkit::{Cluster, wait_until};
use serde_json::json;

use crate::support::{Steps as _, assert_says, refusal, texts, town_on};

/// The name of the database in a URL without parameters.
fn database(url: &str) -> &str {
    url.rsplit('/').next().unwrap()
}

#[test]
fn a_follower_outlives_a_restart_of_the_server_and_says_so_once() {
    // Given a follower,
    let cluster = Cluster::start("");
    let town = town_on(&format!("{}?reconnect_wait=100ms", cluster.url("postgres")));
    town.bead("hq-a", &[]);
    let follower = town.start_bd(&["activity", "--follow", "--json", "-t", "created"]).start();
    wait_until("the past is shown", || follower.stdout().lines().count() == 1);

    // when the server goes away and comes back,
    cluster.stop();
    wait_until("it is noticed", || follower.stderr().contains("waiting for it"));
    let away = refusal(&town.bd(["list"]));
    cluster.start_server();
    town.bead("hq-b", &[]);
    town.bead("hq-c", &[]);

    // then others heard why, and the follower misses nothing.
    assert_says(&away, &["cannot reach", "check the address, and that the server is running"]);
    wait_until("the news is shown", || follower.stdout().lines().count() >= 3);
    let followed = follower.kill();
    assert_eq!(followed.stderr.lines().count(), 1, "{followed}");
    assert_eq!(texts(&json!(followed.json_lines()), "issue_id"), ["hq-a", "hq-b", "hq-c"]);
}

#[test]
fn a_change_whose_connection_is_killed_is_refused_whole_and_safe_to_repeat() {
    // Given a server that ends each connection that commits a bead,
    let url = Cluster::shared().fresh_database();
    let town = town_on(&url);
    Cluster::shared().sql(
        database(&url),
        "CREATE FUNCTION end_me() RETURNS trigger LANGUAGE plpgsql AS
            'BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END';
         CREATE CONSTRAINT TRIGGER end_me AFTER INSERT ON gt.beads
            DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION end_me()",
    );
    let ask = ["create", "Fix it", "--silent", "--idempotency-key", "k"];
    let before = town.last_event();

    // when a bead is made, then the refusal says that nothing was changed,
    let said = refusal(&town.bd(ask));
    assert_says(&said, &["broke", "nothing was changed"]);
    assert_eq!(town.last_event(), before);

    // and repeating it makes it once.
    Cluster::shared().sql(database(&url), "DROP TRIGGER end_me ON gt.beads");
    let id = town.bd(ask).ok().line().to_owned();
    assert_eq!(town.bd(ask).ok().line(), id);
    assert_eq!(town.ids(&["list"]), [id]);
}

#[test]
fn a_server_without_room_is_said_in_words() {
    let url = Cluster::shared().fresh_database();
    let town = town_on(&url);
    Cluster::shared().sql(
        database(&url),
        "CREATE FUNCTION no_room() RETURNS trigger LANGUAGE plpgsql AS
            'BEGIN RAISE ''no room'' USING ERRCODE = ''53100''; END';
         CREATE TRIGGER no_room BEFORE INSERT ON gt.events
            FOR EACH ROW EXECUTE FUNCTION no_room()",
    );
    let said = refusal(&town.bd(["create", "Fix it"]));
    assert_says(&said, &["the disk is full; nothing was changed"]);
    assert_eq!(town.ids(&["list"]), [""; 0]);
}
