//! Which writes of a worker are heard: `GT_RUN`, its token, and the rights of workers.

use gt_testkit::{FinishedProgram, Sandbox};

use crate::agents::{Stage as _, town_with_agent};
use crate::support::{Steps as _, assert_says, everything, part, refusal};

/// Commands that change something which is not the worker's, with what their refusal says. `we-1` is the worker's bead.
const FOREIGN: &[(&[&str], &str)] = &[
    (&["bd", "close", "we-2"], "we-2"),
    (&["bd", "close", "we-2", "--force"], "we-2"),
    (&["bd", "update", "we-2", "--title", "mine"], "we-2"),
    (&["bd", "update", "we-2", "--parent", "we-1"], "we-2"),
    (&["bd", "update", "we-2", "--claim"], "we-2"),
    (&["bd", "delete", "we-2", "--force"], "we-2"),
    (&["bd", "delete", "we-1", "--force"], "we-1"),
    (&["bd", "reopen", "we-3"], "we-3"),
    (&["bd", "defer", "we-2"], "we-2"),
    (&["bd", "label", "add", "we-2", "mine"], "we-2"),
    (&["bd", "dep", "add", "we-2", "we-1"], "we-2"),
    (&["bd", "dep", "add", "we-2", "we-1", "--type", "parent-child"], "we-2"),
    (&["bd", "create", "New", "--deps", "blocks:we-2"], "we-2"),
    (&["bd", "config", "set", "a.b", "c"], "setting"),
    (&["bd", "kv", "set", "a", "b"], "setting"),
    (&["gt", "config", "set", "scheduler.max_polecats", "7"], "setting"),
    (&["gt", "config", "set", "worker.rights", "operator"], "setting"),
    (&["gt", "rig", "add", "other"], "rig"),
    (&["gt", "rig", "park", "web"], "rigs"),
    (&["gt", "config", "set", "rig.web.checks", ""], "setting"),
    (&["gt", "config", "set", "rig.web.protect", "docs/"], "setting"),
    (&["gt", "token", "create", "mine", "--scope", "admin"], "token"),
    (&["gt", "config", "account", "add", "mine", "--config-dir", "/tmp"], "account"),
    (&["gt", "scheduler", "pause"], "scheduler"),
    (&["gt", "scheduler", "run"], "dispatch cycle"),
    (&["gt", "run", "cancel", "we-4"], "we-4"),
    (&["gt", "unsling", "we-4"], "we-4"),
    (&["gt", "convoy", "create", "Mine", "we-2"], ""),
    (&["gt", "host", "adopt"], ""),
    (&["gt", "store", "backup"], "store"),
    (&["gt", "store", "vacuum"], "store"),
    (&["gt", "config", "agent", "set", "mine", "command", "sh"], "runtime"),
    (&["gt", "down"], "daemon"),
    (&["gt", "up"], "daemon"),
    (&["gt", "daemon", "run"], "daemon"),
    (&["gt", "daemon", "install"], "daemon"),
];

/// Commands of a worker's own work.
const OWN: &[&[&str]] = &[
    &["bd", "update", "we-1", "--notes", "half way"],
    &["bd", "label", "add", "we-1", "hard"],
    &["bd", "comments", "add", "we-1", "a comment"],
    &["bd", "comments", "add", "we-2", "a comment for others"],
    &["bd", "update", "we-1.1", "--title", "A part"],
    &["bd", "close", "we-1.1"],
    &["bd", "reopen", "we-1.1"],
    &["bd", "dep", "add", "we-1", "we-2"],
    &["bd", "dep", "remove", "we-1", "we-2"],
    &["bd", "dep", "remove", "we-1.1", "we-1"],
    &["bd", "create", "Found", "--id", "we-found", "--force", "--deps", "discovered-from:we-1"],
    &["bd", "update", "we-found", "--priority", "1"],
    &["bd", "create", "Part", "--parent", "we-found"],
    &["bd", "close", "we-found.1"],
    &["bd", "close", "we-found"],
    &["bd", "delete", "we-found", "--force"],
    &["gt", "mail", "send", "mayor", "-s", "Hello", "-m", "there"],
    &["gt", "nudge", "mayor", "Hello"],
    &["gt", "escalate", "Which one?"],
    &["gt", "mail", "inbox"],
    &["gt", "prime"],
];

/// A town with a worker of `we-1` and one of `we-4`, a part of `we-1`, and beads of others.
fn town_at_work() -> Sandbox {
    let town = town_with_agent("wait_for end");
    for bead in ["we-1", "we-2", "we-3", "we-4"] {
        town.bead(bead, &[]);
    }
    part(&town, "we-1.1", "we-1", &[]);
    town.bd(["close", "we-3"]).ok();
    for bead in ["we-1", "we-4"] {
        town.gt(["sling", bead]).ok();
        town.wait_for_agent(&format!("{bead}#1"));
    }
    town
}

fn as_worker(
    town: &Sandbox,
    arguments: &[&str],
    run: &str,
    token: Option<&str>,
) -> FinishedProgram {
    let (program, arguments) = arguments.split_first().unwrap();
    let program = if *program == "bd" { town.bd_path() } else { town.gt_path().to_owned() };
    let command = town.command(program).args(arguments).env("GT_RUN", run);
    let command = command.env("GT_ROLE", "web/process").env("BD_ACTOR", "web/process");
    match token {
        Some(token) => command.env("GT_RUN_TOKEN", token).run(),
        None => command.run(),
    }
}

fn state(town: &Sandbox) -> (impl PartialEq + std::fmt::Debug + use<>, String) {
    let lists = [
        &["config", "list"][..],
        &["rig", "list"],
        &["token", "list"],
        &["config", "account", "list"],
    ];
    let lists: Vec<String> = lists.iter().map(|list| town.gt(*list).ok().stdout).collect();
    (everything(town), lists.join("\n"))
}

#[test]
fn live_worker_changes_its_own_work_alone() {
    let town = town_at_work();
    let token = town.token_of("we-1#1");
    let before = state(&town);
    for (arguments, says) in FOREIGN {
        let refused = as_worker(&town, arguments, "we-1#1", Some(&token));
        assert_eq!(refused.code, 1, "{arguments:?}: {refused}");
        assert_says(&refused.stderr, &[says]);
    }
    assert_eq!(state(&town), before);
    assert!(!town.cwd().join("other").exists(), "the directory of a refused rig was made");

    for arguments in OWN {
        as_worker(&town, arguments, "we-1#1", Some(&token)).ok();
    }
    // The token alone names the run too.
    let update = town.start_bd(&["update", "we-2", "--title", "mine"]).env("GT_RUN_TOKEN", &token);
    assert_says(&refusal(&update.run()), &["we-2", "the worker of we-1#1", "worker.rights beads"]);
    town.allow("end");
    town.assert_quiet();
}

#[test]
fn reports_of_an_ended_or_unproven_worker_are_refused() {
    let town = town_at_work();
    let (own, other) = (town.token_of("we-1#1"), town.token_of("we-4#1"));
    let all = || FOREIGN.iter().map(|(arguments, _)| *arguments).chain(OWN.iter().copied());
    let assert_deaf = |run: &str, token: Option<&str>, says: &str| {
        let before = state(&town);
        for arguments in all() {
            let refused = as_worker(&town, arguments, run, token);
            assert_eq!(refused.code, 1, "{arguments:?} as {run}: {refused}");
            // A bead that it never got to create, and a rule that is older than tokens.
            let otherwise = ["no issue found", "polecats do not sling"];
            if !otherwise.iter().any(|other| refused.stderr.contains(other)) {
                assert_says(&refused.stderr, &[says]);
            }
        }
        assert_eq!(state(&town), before, "{run}");
    };

    assert_deaf("we-1#1", None, "GT_RUN_TOKEN");
    assert_deaf("we-1#1", Some(&other), "GT_RUN_TOKEN");
    assert_deaf("we-1#1", Some("nonsense"), "GT_RUN_TOKEN");
    assert_deaf("we-9#1", Some(&own), "we-9#1");

    town.gt(["run", "cancel", "we-1"]).ok();
    assert_deaf("we-1#1", Some(&own), "we-1#1 was cancelled");

    town.gt(["sling", "we-1"]).ok();
    town.wait_for_agent("we-1#2");
    assert_deaf("we-1#1", Some(&own), "we-1#1 is over");
    // The token of an earlier run opens nothing under the name of the next.
    assert_deaf("we-1#2", Some(&own), "GT_RUN_TOKEN");
    let next = town.token_of("we-1#2");
    assert_ne!(next, own);
    as_worker(&town, OWN[0], "we-1#2", Some(&next)).ok();
    town.allow("end");
    town.assert_quiet();
}

#[test]
fn rights_of_workers_are_widened_by_a_setting() {
    let town = town_at_work();
    let token = town.token_of("we-1#1");
    let worker = |arguments: &[&str]| as_worker(&town, arguments, "we-1#1", Some(&token));
    let update = ["bd", "update", "we-2", "--title", "Seen"];
    assert_says(&refusal(&worker(&update)), &["worker.rights beads"]);

    town.gt(["config", "set", "worker.rights", "beads"]).ok();
    worker(&update).ok();
    assert_says(&refusal(&worker(&["gt", "config", "set", "serve.bind", ""])), &["setting"]);
    assert_says(&refusal(&town.gt(["config", "set", "worker.rights", "all"])), &["operator"]);

    town.gt(["config", "set", "worker.rights", "operator"]).ok();
    worker(&["gt", "config", "set", "scheduler.batch_size", "3"]).ok();
    worker(&["gt", "scheduler", "pause"]).ok();
    worker(&["gt", "rig", "add", "other"]).ok();
    town.allow("end");
    town.assert_quiet();
}

#[test]
fn token_of_a_run_is_shown_to_its_worker_alone() {
    let town = town_at_work();
    let token = town.token_of("we-1#1");
    assert_eq!(token.len(), "gtr_".len() + 64);
    for arguments in [
        &["run", "show", "we-1", "--json"][..],
        &["feed", "--json"],
        &["config", "list", "--json"],
        &["doctor", "--json"],
    ] {
        let shown = town.command(town.gt_path()).args(arguments).run();
        assert!(!shown.stdout.contains(&token), "{arguments:?}");
    }
    assert!(!town.export().contains(&token));
    town.allow("end");
    town.assert_quiet();
}
