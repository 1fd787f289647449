//! `bd kv`: values that scripts keep in the store.

use serde_json::json;

use crate::support::{Steps as _, assert_says, refusal, town};

#[test]
fn a_value_is_kept_until_it_is_cleared() {
    let town = town();

    town.bd(["kv", "set", "last run", "-1 ü"]).ok();

    assert_eq!(town.bd(["kv", "get", "last run"]).ok().stdout, "-1 ü\n");
    assert_eq!(
        town.json(&["kv", "get", "last run"]),
        json!({"key": "last run", "found": true, "value": "-1 ü", "schema_version": 1})
    );
    assert_eq!(town.json(&["kv", "list"]), json!({"last run": "-1 ü", "schema_version": 1}));
    assert_eq!(town.bd(["kv", "list"]).ok().line(), "last run = -1 ü");
    assert_eq!(town.bd(["kv", "clear", "last run"]).ok().line(), "Cleared last run");
    assert_eq!(town.bd(["kv", "clear", "last run"]).ok().line(), "last run was not set");
    assert_eq!(town.json(&["kv", "clear", "x"])["deleted"], false);
}

#[test]
fn an_unset_key_is_a_failure() {
    let town = town();

    assert_says(&refusal(&town.bd(["kv", "get", "x"])), &["x is not set"]);
    let ran = town.bd(["kv", "get", "x", "--json"]).fails(1);
    assert_eq!(ran.json(), json!({"key": "x", "found": false, "value": "", "schema_version": 1}));
    refusal(&town.bd(["kv", "set", "", "x"]));
}

#[test]
fn values_and_configuration_are_kept_apart() {
    let town = town();
    town.bd(["kv", "set", "status.custom", "anything: goes"]).ok();

    assert_eq!(town.json(&["config", "list"]), json!({"schema_version": 1}));
    town.bd(["config", "set", "a", "1"]).ok();
    town.bd(["kv", "get", "a"]).fails(1);
}
