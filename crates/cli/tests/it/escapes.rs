//! Children of agents that hide: they leave their session, close what they inherited and clear their environment.

use std::fs;

use gt_testkit::{Sandbox, wait_until};

use crate::agents::{Stage as _, is_alive};
use crate::projects::{STAYS, Worker, town_with_project_by};
use crate::support::{Steps as _, assert_says, refusal, texts};
use crate::trees::Trees as _;

/// An agent with such a child, which stays in the tree.
const ESCAPES: &str = r#"
setsid env -i bash -c '
    trap "" TERM
    for fd in /proc/self/fd/*; do n=${fd##*/}; [ "$n" -gt 2 ] && eval "exec $n>&-"; done
    echo $$ > "$0/new-escaped"
    mv "$0/new-escaped" "$0/escaped"
    while [ -d "$0" ] && [ ! -e "$0/leave" ]; do sleep 0.02; done
' "$stage" > /dev/null 2>&1 < /dev/null &
says_where
wait_for "go-$bead"
"#;

/// Whether runs have control groups here, as `gt doctor` says.
fn has_control_groups(town: &Sandbox) -> bool {
    let checks = town.gt_json(&["doctor"]);
    let all = checks.as_array().unwrap().iter();
    let check = all.into_iter().find(|check| check["check"] == "control groups").unwrap();
    assert_eq!(check["grade"], "good");
    let detail = check["detail"].as_str().unwrap();
    assert!(!detail.is_empty());
    detail.starts_with("each run has one")
}

/// A town in which a run has lost its supervisor and its agent, and an escaped child is left; the child.
#[track_caller]
fn cut_off(executor: &str, control_groups: bool) -> (Sandbox, String) {
    let town = town_with_project_by(executor, ESCAPES);
    town.gt(["config", "set", "recovery.cooldown", "0s"]).ok();
    town.gt([
        "config",
        "set",
        "worker.control_groups",
        if control_groups { "true" } else { "false" },
    ])
    .ok();
    let worker = Worker::begin(&town, "we-a", &[]);
    worker.write("precious", "precious\n");
    wait_until("its child has escaped", || town.stage("escaped").exists());
    let escaped = fs::read_to_string(town.stage("escaped")).unwrap().trim().to_owned();
    let (supervisor, agent) = (town.supervisor_of("we-a#1"), town.agent_of("we-a"));
    town.signal("KILL", &supervisor);
    town.signal("KILL", &agent);
    wait_until("both are gone", || !is_alive(&supervisor) && !is_alive(&agent));
    assert!(is_alive(&escaped));
    (town, escaped)
}

/// The first run is not joined by another while the child is seen, and is recovered when the child has left.
#[track_caller]
fn is_not_joined(town: &Sandbox, escaped: &str) {
    for _ in 0..3 {
        town.cycle().ok();
        assert_eq!(town.states("we-a"), ["running"]);
    }
    assert!(is_alive(escaped), "a process that is only seen is sent no signal");
    let needs = town.gt_json(&["status"])["needs_you"].clone();
    assert_eq!(texts(&needs, "code"), ["still-seen"]);
    assert_says(needs[0]["what"].as_str().unwrap(), &["we-a#1", escaped]);
    assert_says(needs[0]["remedy"].as_str().unwrap(), &["ps -o", escaped]);
    assert_says(&refusal(&town.gt(["run", "cancel", "we-a"])), &["we-a#1", escaped]);

    town.allow("leave");
    wait_until("the child has left", || !is_alive(escaped));
}

#[test]
fn no_second_agent_starts_beside_a_child_that_is_seen_in_the_tree() {
    for executor in ["process", "tmux"] {
        let (town, escaped) = cut_off(executor, false);
        is_not_joined(&town, &escaped);
        // Its cancellation was wanted meanwhile.
        town.cycle().ok();
        assert_eq!(town.states("we-a"), ["cancelled"]);
        assert_eq!(town.rescued("we-a#1", "precious"), "precious");
        town.assert_quiet();
    }
}

#[test]
fn a_lost_run_is_ended_by_its_control_group_and_recovered() {
    for executor in ["process", "tmux"] {
        let (town, escaped) = cut_off(executor, true);
        if has_control_groups(&town) {
            town.cycle().ok();
            assert!(!is_alive(&escaped));
        } else {
            for _ in 0..3 {
                town.cycle().ok();
                assert_eq!(town.states("we-a"), ["running"]);
            }
            town.allow("leave");
            wait_until("the child has left", || !is_alive(&escaped));
            town.cycle().ok();
        }
        Worker::of(&town, "we-a#2");
        assert_eq!(town.states("we-a"), ["running", "lost"]);
        assert_eq!(town.rescued("we-a#1", "precious"), "precious");
        town.gt(["run", "cancel", "we-a"]).ok();
        town.assert_quiet();
    }
}

#[test]
fn a_person_in_the_tree_of_a_lost_run_is_never_ended() {
    for control_groups in [true, false] {
        let town = town_with_project_by("process", STAYS);
        town.gt(["config", "set", "recovery.cooldown", "0s"]).ok();
        let value = if control_groups { "true" } else { "false" };
        town.gt(["config", "set", "worker.control_groups", value]).ok();
        let worker = Worker::begin(&town, "we-a", &[]);
        let person = town.command("sleep").arg("600").dir(&worker.tree).start();
        let shell = person.id().to_string();
        town.signal("KILL", &town.supervisor_of("we-a#1"));
        town.signal("KILL", &town.agent_of("we-a"));
        worker.wait_until_gone();

        town.cycle().ok();

        assert!(is_alive(&shell));
        if control_groups && has_control_groups(&town) {
            // It is certain that the person is no part of the run, so the bead goes on in another tree.
            let now = town.run_of("we-a");
            assert_eq!(now["state"], "running");
            let second = Worker::of(&town, now["id"].as_str().unwrap());
            assert_ne!(second.tree, worker.tree);
            assert!(is_alive(&shell));
        } else {
            assert_eq!(town.states("we-a"), ["running"]);
            assert_eq!(texts(&town.gt_json(&["status"])["needs_you"], "code"), ["still-seen"]);
        }
        town.signal("KILL", &shell);
        drop(person.wait());
        town.cycle().ok();
        wait_until("the bead has an agent", || town.states("we-a")[0] == "running");
        town.gt(["run", "cancel", "we-a"]).ok();
        town.assert_quiet();
    }
}
