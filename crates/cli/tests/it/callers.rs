//! The environment of the process that calls `gt` does not reach a worker.

use std::fs;

use crate::agents::Stage as _;
use crate::support::{Steps as _, assert_says};
use crate::trees::{Trees as _, git, town_with_trees};
use gt_testkit::wait_until;

#[test]
fn a_worker_knows_nothing_of_the_repository_in_which_it_was_slung() {
    for executor in ["process", "tmux"] {
        let town = town_with_trees(executor);
        let here = town.git_repository("here");
        town.script(
            "we-1",
            "tr '\\0' '\\n' < /proc/$PPID/environ > \"$GT_TOWN_ROOT/supervisor.env\"
             env > \"$GT_TOWN_ROOT/agent.env\"
             echo one > one.txt; git add one.txt; git commit --quiet --message One",
        );

        // As git calls its aliases and hooks, and as people call things that need something special.
        let sling = town.start_gt(&["sling", "we-1"]).env("GIT_DIR", here.join(".git"));
        let sling = sling.env("GIT_INDEX_FILE", here.join(".git/index")).env("GIT_EDITOR", "false");
        let sling = sling.env("GIT_CONFIG_COUNT", "1").env("GIT_CONFIG_KEY_0", "core.hooksPath");
        let sling = sling.env("GIT_CONFIG_VALUE_0", "nowhere").env("GIT_SSH_COMMAND", "false");
        let sling = sling.env("GIT_CONFIG_PARAMETERS", "'user.name'='intruder'");
        sling.env("COLOUR", "red").run().ok();
        wait_until("its work has landed", || town.show("we-1")["status"] == "closed");

        assert_eq!(town.states("we-1"), ["done"]);
        let origin = town.root().join("origin.git");
        assert_eq!(git(&town, &origin, &["log", "-1", "--format=%s", "main"]), "One");
        assert_eq!(git(&town, &here, &["log", "--format=%s", "--all"]), "First commit");
        assert_eq!(git(&town, &here, &["status", "--porcelain"]), "");
        for who in ["supervisor", "agent"] {
            let environment = fs::read_to_string(town.cwd().join(format!("{who}.env"))).unwrap();
            assert_says(&environment, &["COLOUR=red", "GIT_CONFIG_GLOBAL="]);
            let of_the_caller = |line: &&str| {
                let names = ["GIT_DIR=", "GIT_INDEX_FILE=", "GIT_EDITOR=", "GIT_SSH"];
                // The fence of the rig comes with settings as well.
                line.ends_with("=nowhere")
                    || line.starts_with("GIT_CONFIG_PARAMETERS=")
                    || names.iter().any(|name| line.starts_with(name))
            };
            assert_eq!(environment.lines().find(of_the_caller), None, "{executor}: {who}");
        }
    }
}

#[test]
fn a_notice_command_is_not_taken_for_the_worker() {
    let town = town_with_trees("process");
    town.script("we-1", "exit 3");
    assert_eq!(town.work("we-1", &[]), "failed");
    let told = town.start_bd(&["comments", "add", "we-1", "I look at it"]);
    told.env("GT_RUN", "we-1#1").env("GT_NOTICE_KEY", "1").run().ok();

    // And what it starts is: a worker that a notice led to is a worker.
    town.script("we-2", "bd close we-2 > \"$GT_TOWN_ROOT/told\" 2>&1");
    let path = format!("{}:/usr/bin:/bin", town.bd_path().parent().unwrap().display());
    let sling = town.start_gt(&["sling", "we-2"]).env("GT_NOTICE_KEY", "1").env("PATH", path);
    sling.run().ok();
    wait_until("it has ended", || town.show("we-2")["status"] == "closed");
    let told = fs::read_to_string(town.cwd().join("told")).unwrap();
    assert_says(&told, &["finish with gt done"]);
}
