//! `gt config`: typed settings, their names and values. `bd config`: free ones.

use serde_json::json;

use crate::support::{
    Steps as _, assert_says, json_refusal, keys, refusal, texts, town, town_with_rigs,
};

#[test]
fn a_setting_is_set_read_and_unset() {
    let town = town();

    let set = town.gt(["config", "set", "scheduler.max_polecats", "5"]).ok();
    assert_eq!(set.line(), "Set scheduler.max_polecats = 5");
    let get = town.gt(["config", "get", "scheduler.max_polecats"]).ok();
    assert_eq!(get.stdout, "5\n");

    town.gt(["config", "unset", "scheduler.max_polecats"]).ok();
    let get = town.gt(["config", "get", "scheduler.max_polecats"]).ok();
    assert_eq!(get.stdout, "-1\n");
    let again = town.gt(["config", "unset", "scheduler.max_polecats"]).ok();
    assert_says(&again.stdout, &["was not set"]);
}

#[test]
fn negative_numbers_need_no_quoting() {
    let town = town();
    town.gt(["config", "set", "scheduler.max_polecats", "3"]).ok();

    town.gt(["config", "set", "scheduler.max_polecats", "-1"]).ok();

    let get = town.gt(["config", "get", "scheduler.max_polecats"]).ok();
    assert_eq!(get.line(), "-1");
}

#[test]
fn older_names_mean_the_same_setting() {
    let town = town();
    for (alias, name, value) in [
        ("queue.batch_size", "scheduler.batch_size", "3"),
        ("queue.spawn_delay", "scheduler.spawn_delay", "2s"),
        ("polecat_spawn_batch_size", "scheduler.spawn_parallelism", "7"),
        ("queue_max_polecats", "queue.max_polecats", "4"),
    ] {
        town.gt(["config", "set", alias, value]).ok();
        for asked in [alias, name] {
            let get = town.gt(["config", "get", asked]).ok();
            assert_eq!(get.line(), value, "{asked}");
            let json = town.gt_json(&["config", "get", asked]);
            assert_eq!(json["key"], name);
        }
        town.gt(["config", "unset", alias]).ok();
        assert_eq!(town.gt_json(&["config", "get", name])["origin"], "default");
    }
}

#[test]
fn values_are_kept_in_one_spelling() {
    let town = town();
    for (key, given, kept) in [
        ("queue.enabled", "YES", "true"),
        ("queue.enabled", "1", "true"),
        ("queue.enabled", "on", "true"),
        ("queue.enabled", "off", "false"),
        ("queue.enabled", "no", "false"),
        ("queue.enabled", "0", "false"),
        ("scheduler.spawn_delay", "120s", "2m"),
        ("scheduler.spawn_delay", "1h30m", "1h30m"),
        ("rescue.max", "268435456", "256MiB"),
        ("scheduler.order", "fifo", "fifo"),
    ] {
        let set = town.gt(["config", "set", key, given]).ok();
        assert_eq!(set.line(), format!("Set {key} = {kept}"));
    }
}

#[test]
fn values_of_the_wrong_type_are_refused_and_change_nothing() {
    let town = town();
    for (key, value, wanted) in [
        ("scheduler.max_polecats", "many", "whole number"),
        ("scheduler.max_polecats", "-2", "whole number from -1"),
        ("scheduler.max_polecats", "1.5", "whole number"),
        ("scheduler.max_polecats", "", "whole number"),
        ("queue.enabled", "maybe", "true/yes/1/on"),
        ("scheduler.spawn_delay", "3", "duration"),
        ("scheduler.spawn_delay", "-3s", "duration"),
        ("scheduler.spawn_delay", "99999999999999999999s", "duration"),
        ("scheduler.order", "random", "priority, fifo"),
        ("rescue.max", "big", "size"),
        ("recovery.max_attempts", "0", "whole number from 1"),
    ] {
        let error = refusal(&town.gt(["config", "set", key, value]));
        assert_says(&error, &[key, wanted]);
    }
    assert_eq!(town.last_event(), 0);
}

#[test]
fn an_unknown_setting_is_answered_with_the_known_ones() {
    let town = town();
    for command in [
        &["config", "get", "scheduler.max_polecat"][..],
        &["config", "set", "scheduler.max_polecat", "3"],
        &["config", "unset", "scheduler.max_polecat"],
    ] {
        let error = refusal(&town.gt(command));
        assert_says(
            &error,
            &[
                "unknown setting",
                "did you mean scheduler.max_polecats?",
                "queue.enabled",
                "rig.*.max_polecats",
            ],
        );
    }
    let error = json_refusal(&town.gt(["config", "get", "nonsense", "--json"]));
    assert_says(&error, &["unknown setting \"nonsense\"", "queue.enabled"]);
}

#[test]
fn settings_of_a_rig_need_the_rig() {
    let town = town_with_rigs(&["web"]);

    town.gt(["config", "set", "rig.web.max_polecats", "3"]).ok();

    let get = town.gt(["config", "get", "rig.web.max_polecats"]).ok();
    assert_eq!(get.line(), "3");
    let error = refusal(&town.gt(["config", "set", "rig.nope.max_polecats", "3"]));
    assert_says(&error, &["nope", "known rigs: web"]);
    let error = refusal(&town.gt(["config", "set", "rig.*.max_polecats", "3"]));
    assert_says(&error, &["rig.<name>.max_polecats"]);
}

#[test]
fn the_list_has_every_setting_with_value_and_origin() {
    let town = town_with_rigs(&["web"]);
    town.gt(["config", "set", "rig.web.command", "make it so"]).ok();

    let list = town.gt_json(&["config", "list"]);

    let names = texts(&list, "key");
    for name in ["scheduler.max_polecats", "events.keep", "rig.web.command"] {
        assert!(names.iter().any(|known| known == name), "{name}");
    }
    for entry in list.as_array().unwrap() {
        assert_eq!(keys(entry), ["default", "help", "key", "origin", "value"]);
        let is_set = entry["key"] == "rig.web.command";
        let origin = if is_set { "store" } else { "default" };
        assert_eq!(entry["origin"], origin, "{entry}");
    }
    let said = town.gt(["config", "list"]).ok();
    assert_says(&said.stdout, &["SETTING", "VALUE", "FROM", "make it so", "store", "default"]);
}

#[test]
fn every_change_is_an_event_and_no_change_is_none() {
    let town = town();

    town.gt(["config", "set", "queue.enabled", "true"]).ok();
    town.gt(["config", "set", "queue.enabled", "on"]).ok();
    town.gt(["config", "unset", "queue.enabled"]).ok();
    town.gt(["config", "unset", "queue.enabled"]).ok();

    let events = town.events();
    assert_eq!(events.len(), 2, "{events:?}");
    for event in &events {
        assert_eq!(event["event_type"], "setting_changed");
        assert_eq!(event["payload"]["key"], "queue.enabled");
    }
    assert_eq!(events[0]["payload"]["new"], "true");
}

#[test]
fn bd_remembers_what_scripts_tell_it() {
    let town = town();

    let set = town.bd(["config", "set", "my.key", "my value"]).ok();
    assert_eq!(set.line(), "Set my.key = my value");
    assert_eq!(town.bd(["config", "get", "my.key"]).ok().line(), "my value");
    let json = town.json(&["config", "get", "my.key"]);
    assert_eq!(json, json!({"key": "my.key", "value": "my value", "schema_version": 1}));
    assert_eq!(town.json(&["config", "list"]), json!({"my.key": "my value", "schema_version": 1}));

    town.bd(["config", "unset", "my.key"]).ok();
    assert_eq!(town.bd(["config", "get", "my.key"]).ok().line(), "my.key (not set)");
    assert_eq!(town.json(&["config", "list"]), json!({"schema_version": 1}));
}

#[test]
fn free_keys_are_not_settings_of_the_town() {
    let town = town();
    town.bd(["config", "set", "queue.enabled", "unchecked"]).ok();

    let get = town.gt(["config", "get", "queue.enabled"]).ok();

    assert_eq!(get.line(), "false");
}

#[test]
fn a_free_key_needs_a_name() {
    let town = town();
    for key in ["", "  ", "a\nb"] {
        let error = refusal(&town.bd(["config", "set", key, "x"]));
        assert_says(&error, &["is not a key"]);
    }
}

#[test]
fn a_status_of_ones_own_must_be_registered() {
    let town = town();
    town.bead("hq-a", &[]);

    let error = refusal(&town.bd(["update", "hq-a", "--status", "review"]));
    assert_says(&error, &["unknown status", "bd config set status.custom"]);
    assert_eq!(town.show("hq-a")["status"], "open");

    town.bd(["config", "set", "status.custom", "testing:wip,review:active"]).ok();
    town.bd(["update", "hq-a", "--status", "review"]).ok();
    assert_eq!(town.ids(&["list", "--status", "review"]), ["hq-a"]);
    assert_eq!(town.ready(), [""; 0], "only open beads are ready");
}

#[test]
fn the_hint_for_a_new_status_keeps_the_existing_ones() {
    let town = town();
    town.bead("hq-a", &[]);
    town.bd(["config", "set", "status.custom", "testing:wip"]).ok();

    let error = refusal(&town.bd(["update", "hq-a", "--status", "review"]));

    assert_says(&error, &["bd config set status.custom testing:wip,review"]);
}

#[test]
fn a_status_of_ones_own_must_be_a_name() {
    let town = town();
    for value in ["Bad Name", "review:sometimes", "9lives", "a,,b", "open"] {
        let error = refusal(&town.bd(["config", "set", "status.custom", value]));
        assert_says(&error, &["status.custom"]);
    }
    assert_eq!(town.last_event(), 0);
    town.bd(["config", "set", "status.custom", ""]).ok();
}

#[test]
fn a_setting_of_a_rig_that_is_not_there_has_no_value() {
    let town = town();

    let ran = town.gt(["config", "get", "rig.nope.max_polecats"]).fails(1);

    assert!(ran.stderr.contains("rig \"nope\" not found"), "{}", ran.stderr);
}

#[test]
fn an_edit_leaves_alone_what_others_set_meanwhile() {
    let town = town();
    town.gt(["config", "set", "scheduler.batch_size", "4"]).ok();
    let gt = town.gt_path().display().to_string();
    let editor = town.write_script(
        "editor",
        &format!(
            "'{gt}' -q config set recovery.max_attempts 7\necho 'scheduler.order = fifo' >> \"$1\""
        ),
    );

    town.command(&gt).args(["config", "edit"]).env("EDITOR", &editor).run().ok();

    for (name, value) in
        [("recovery.max_attempts", "7"), ("scheduler.order", "fifo"), ("scheduler.batch_size", "4")]
    {
        assert_eq!(town.gt(["config", "get", name]).ok().line(), value, "{name}");
    }

    let rival = town.write_script(
        "rival",
        &format!("'{gt}' -q config set scheduler.batch_size 9\nsed -i 's/batch_size = 4/batch_size = 5/' \"$1\""),
    );
    let refused = town.command(&gt).args(["config", "edit"]).env("EDITOR", &rival).run().fails(1);

    assert!(refused.stderr.contains("changed by another process"), "{refused}");
    assert_eq!(town.gt(["config", "get", "scheduler.batch_size"]).ok().line(), "9");
}

#[test]
fn a_command_of_a_rig_that_a_runtime_overrides_is_told() {
    let town = crate::support::town_with_rigs(&["web", "api"]);
    let said = town.gt(["config", "set", "rig.web.command", "true"]).ok();
    assert_eq!(said.stderr, "");

    let told = "rig.web.command is set and not used: worker.runtime = claude counts";
    let said = town.gt(["config", "set", "worker.runtime", "claude"]).ok();
    assert_says(&said.stderr, &[told, "gt config set rig.web.runtime custom"]);
    for name in ["rig.web.command", "worker.runtime"] {
        assert_says(&town.gt(["config", "get", name]).ok().stderr, &[told]);
    }
    assert_says(&town.gt(["config", "list"]).ok().stderr, &[told]);
    assert_says(&town.gt(["doctor"]).stdout, &[told]);
    assert_eq!(town.gt(["config", "get", "rig.api.command"]).ok().stderr, "");

    town.gt(["config", "set", "rig.web.runtime", "custom"]).ok();
    assert_eq!(town.gt(["config", "get", "rig.web.command"]).ok().stderr, "");
}

#[test]
fn a_hosting_service_is_known_before_it_is_set() {
    let town = town_with_rigs(&["web"]);

    let refused = refusal(&town.gt(["config", "set", "rig.web.hosting", "gihub"]));

    assert_says(&refused, &["rig.web.hosting", ".gt/hosting/gihub.toml", "gh or glab"]);
    assert_eq!(town.gt(["config", "get", "rig.web.hosting"]).ok().line(), "");
    town.gt(["config", "set", "rig.web.hosting", "gh"]).ok();
}

#[test]
fn an_address_that_nothing_can_listen_on_is_warned_of() {
    let town = town();
    let said = town.gt(["config", "set", "serve.bind", "127.0.0.1:web"]).ok();
    assert_says(&said.stderr, &["warning: the daemon cannot serve there", "127.0.0.1:8080"]);
    let said = town.gt(["config", "set", "serve.bind", "127.0.0.1:0"]).ok();
    assert_eq!(said.stderr, "");
}
