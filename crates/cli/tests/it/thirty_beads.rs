//! Thirty beads in three waves over two rigs, with everything that can keep finished work from landing: conflicts, a broken
//! check, a review, and a target that an outside push turns red.

use std::path::PathBuf;

use gt_testkit::{Sandbox, wait_until};

use crate::agents::Stage as _;
use crate::projects::{Origin as _, town_with_project};
use crate::support::Steps as _;

/// The work of each bead. Two pairs write the same file at the same time, and merge what has landed when they do it again. One
/// bead breaks the check until it is repaired. Some wait, so that the target can turn red under them.
const WORK: &str = r#"
case "$bead" in
    we-3 | we-4 | ap-3 | ap-4)
        case "$run" in
            *#1) wait_for "pair-${bead%-*}" ;;
            *) git merge --quiet -X theirs -m Merge origin/main ;;
        esac
        echo "$bead" > shared
        ;;
    we-5)
        case "$run" in
            *#1) echo oops > oops ;;
            *) rm -f oops ;;
        esac
        ;;
    we-6 | we-7 | we-8) wait_for wave-2 ;;
esac
echo "$bead" > "$bead"
"#;

/// Records each commit that the branch `main` of an origin is moved to, and whether its tree is red.
const RECORD_TIPS: &str = r#"
while read -r old new reference; do
    [ "$reference" = refs/heads/main ] || continue
    if git ls-tree --name-only "$new" | grep -qxE "broken|oops"; then colour=red; else colour=green; fi
    echo "$colour $(git log -1 --format=%s "$new")" >> "$stage/tips"
done
"#;

fn ids() -> Vec<String> {
    (1..=15).flat_map(|number| [format!("we-{number}"), format!("ap-{number}")]).collect()
}

/// A town with the rigs `web` and `api`, thirty beads, and a check in each rig.
fn town_with_thirty_beads() -> Sandbox {
    let town = town_with_project(WORK);
    let other = town.root().join("origin-api.git");
    let clone = town.command("git").args(["clone", "--quiet", "--bare"]);
    clone.arg(town.root().join("project")).arg(&other).run().ok();
    let add = ["rig", "add", "api", "../origin-api.git", "--prefix", "ap", "--executor", "process"];
    town.gt(add).ok();
    let command = town.gt_json(&["config", "get", "rig.web.command"])["value"].clone();
    town.gt(["config", "set", "rig.api.command", command.as_str().unwrap()]).ok();
    town.gt(["config", "set", "scheduler.max_polecats", "5"]).ok();
    for rig in ["web", "api"] {
        town.gt(["rig", "check", "add", rig, "whole", "test ! -e broken && test ! -e oops"]).ok();
    }
    town.origin_hook("post-receive", RECORD_TIPS);
    let hook = std::fs::read(town.root().join("origin.git/hooks/post-receive")).unwrap();
    let place = town.write_script("../origin-api.git/hooks/post-receive", "true");
    std::fs::write(place, hook).unwrap();
    for number in 1..=15 {
        for prefix in ["we", "ap"] {
            let id = format!("{prefix}-{number}");
            if number <= 5 {
                town.bead(&id, &[]);
            } else {
                // The next wave needs one bead of each rig.
                let needs = format!("we-{0},ap-{0}", number - 5);
                town.bead(&id, &["--deps", &needs]);
            }
        }
    }
    town
}

/// Waits until an agent of a bead has begun, in any run: a start that finds processes of another run in its tree is made again.
fn wait_until_begun(town: &Sandbox, bead: &str) {
    let begins = format!("+ {bead}#");
    wait_until("an agent has begun", || town.story().iter().any(|line| line.starts_with(&begins)));
}

/// A clone of the origin of `web` in which a person works.
fn person_of(town: &Sandbox) -> PathBuf {
    let place = town.root().join("person");
    let clone = town.command("git").args(["clone", "--quiet"]);
    clone.arg(town.root().join("origin.git")).arg(&place).run().ok();
    place
}

/// The person commits everything and pushes it, again if work has landed meanwhile.
fn person_pushes(town: &Sandbox, message: &str) {
    let place = town.root().join("person");
    let git = |arguments: &[&str]| town.command("git").args(arguments).dir(&place).run();
    git(&["add", "--all"]).ok();
    git(&["commit", "--quiet", "--message", message]).ok();
    wait_until("the push is taken", || {
        git(&["pull", "--quiet", "--rebase"]).ok();
        git(&["push", "--quiet", "origin", "HEAD:main"]).code == 0
    });
}

#[test]
fn thirty_beads_land_and_every_tip_that_we_push_is_green() {
    let town = town_with_thirty_beads();
    town.gt(["sling", "we-2", "--review"]).ok();
    let ids = ids();
    town.start_gt(&["sling"]).args(&ids).run().ok();
    town.gt(["up"]).ok();

    for bead in ["we-3", "we-4", "ap-3", "ap-4"] {
        wait_until_begun(&town, bead);
    }
    town.allow("pair-we");
    town.allow("pair-ap");
    let is_waiting = || !town.gt_json(&["review", "list"]).as_array().unwrap().is_empty();
    wait_until("the review is wanted", is_waiting);
    town.gt(["review", "approve", "we-2", "-m", "Fine"]).ok();

    // An outside push turns the target red: nothing lands, and no request is blamed.
    wait_until_begun(&town, "we-6");
    let person = person_of(&town);
    std::fs::write(person.join("broken"), "by a person\n").unwrap();
    person_pushes(&town, "A person breaks main");
    town.allow("wave-2");
    wait_until("the target is red", || town.gt(["mq", "list"]).ok().stdout.contains("is red"));
    std::fs::remove_file(person.join("broken")).unwrap();
    person_pushes(&town, "A person mends main");

    wait_until("everything has landed", || {
        let open = town.gt_json(&["bd", "list", "--status", "open,in_progress,blocked,hooked"]);
        let open = open.as_array().unwrap().iter();
        open.filter(|bead| bead["issue_type"] != "convoy").count() == 0
    });

    for id in &ids {
        let bead = town.show(id);
        assert_eq!(
            (&bead["status"], &bead["outcome"]),
            (&"closed".into(), &"success".into()),
            "{id}"
        );
        let origin = if id.starts_with("we") { "origin.git" } else { "origin-api.git" };
        let place = town.root().join(origin);
        let show = town.command("git").arg("--git-dir").arg(place);
        let landed = show.args(["show", &format!("main:{id}")]).run().ok();
        assert_eq!(landed.line(), id);
    }
    // The work that broke the check was repaired, and one of each pair was done on top of the other.
    assert!(town.states("we-5").len() > 1);
    for pair in [["we-3", "we-4"], ["ap-3", "ap-4"]] {
        let runs: usize = pair.iter().map(|bead| town.states(bead).len()).sum();
        assert!(runs >= 3, "{pair:?} {runs}");
    }
    let tips = std::fs::read_to_string(town.stage("tips")).unwrap();
    let red: Vec<&str> = tips.lines().filter(|tip| tip.starts_with("red")).collect();
    assert_eq!(red, ["red A person breaks main"], "{tips}");
    town.assert_quiet();
}
