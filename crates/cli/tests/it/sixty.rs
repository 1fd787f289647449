//! Sixty beads in four waves over three rigs, with failures, a crash of a worker and one of the daemon: it lands exactly as the
//! plan says.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use gt_testkit::{Sandbox, wait_until};
use serde_json::{Value, json};

use crate::agents::{Stage as _, peak, set_agent};
use crate::daemon::process;
use crate::support::{Steps as _, texts, town_with_rigs};

const WAVES: usize = 4;
const WIDTH: usize = 15;
const RIGS: [(&str, &str); 3] = [("web", "we"), ("api", "ap"), ("ops", "op")];
const CAP: usize = 6;

/// The bead at a place of a wave; the beads of a wave are in different rigs.
fn bead(wave: usize, at: usize) -> String {
    format!("{}-{wave}x{at}", RIGS[at % RIGS.len()].1)
}

/// The beads of the wave before for which a bead waits.
fn needs(wave: usize, at: usize) -> Vec<String> {
    if wave == 1 {
        return Vec::new();
    }
    [at, (at + 1) % WIDTH, (at + 7) % WIDTH].map(|at| bead(wave - 1, at)).to_vec()
}

/// These fail the first time; so does what waits for them wait.
const FAILING: [(usize, usize); 2] = [(1, 4), (2, 9)];
/// The worker of this one is killed the first time.
const CRASHING: (usize, usize) = (2, 2);

fn town_with_sixty() -> (Sandbox, String) {
    let town = town_with_rigs(&RIGS.map(|(name, _)| name));
    let failing = FAILING.map(|(wave, at)| bead(wave, at)).join("|");
    let crashing = bead(CRASHING.0, CRASHING.1);
    let script = format!(
        "case $run in\n\
         *'#1') case $bead in\n\
         {failing}) echo \"x $run\" >> \"$stage/story\"; exit 3 ;;\n\
         {crashing}) echo \"x $run\" >> \"$stage/story\"; kill -9 $$ ;;\n\
         esac ;;\n\
         esac\n\
         case $bead in *-2x*) wait_for second ;; esac"
    );
    set_agent(&town, &script);
    let command = town.gt(["config", "get", "rig.web.command"]).ok().stdout;
    for (rig, _) in &RIGS[1..] {
        town.gt(["config", "set", &format!("rig.{rig}.command"), command.trim()]).ok();
    }
    let made = "\"created_at\":\"2026-01-01T00:00:00Z\"";
    let mut lines = format!(
        "{{\"id\":\"we-epic\",\"title\":\"Sixty\",\"status\":\"open\",\"issue_type\":\"epic\",{made},\
         \"updated_at\":\"2026-01-01T00:00:00Z\"}}\n"
    );
    for (wave, at) in places() {
        let id = bead(wave, at);
        let edge = |kind: &str, target: &str| {
            format!(
                "{{\"issue_id\":\"{id}\",\"depends_on_id\":\"{target}\",\"type\":\"{kind}\",{made}}}"
            )
        };
        let needed = needs(wave, at);
        let mut edges: Vec<String> = needed.iter().map(|need| edge("blocks", need)).collect();
        edges.push(edge("parent-child", "we-epic"));
        writeln!(
            lines,
            "{{\"id\":\"{id}\",\"title\":\"{id}\",\"status\":\"open\",\"issue_type\":\"task\",{made},\
             \"updated_at\":\"2026-01-01T00:00:00Z\",\"dependencies\":[{}]}}",
            edges.join(",")
        )
        .unwrap();
    }
    town.import(&lines);
    town.gt(["config", "set", "scheduler.max_polecats", &CAP.to_string()]).ok();
    let staged = town.gt_json(&["convoy", "stage", "we-epic"]);
    let mut planned: Vec<Vec<String>> = staged["waves"]
        .as_array()
        .unwrap()
        .iter()
        .map(|wave| texts(&wave["tasks"], "id"))
        .collect();
    for wave in &mut planned {
        wave.sort();
    }
    let mut expected: Vec<Vec<String>> =
        (1..=WAVES).map(|wave| (0..WIDTH).map(|at| bead(wave, at)).collect()).collect();
    for wave in &mut expected {
        wave.sort();
    }
    assert_eq!(planned, expected);
    (town, staged["convoy_id"].as_str().unwrap().to_owned())
}

fn places() -> impl Iterator<Item = (usize, usize)> {
    (1..=WAVES).flat_map(|wave| (0..WIDTH).map(move |at| (wave, at)))
}

fn status(town: &Sandbox, convoy: &str) -> Value {
    town.gt_json(&["convoy", "status", convoy])
}

/// The beads that wait because these failed: all that depend on one of them, directly or not.
fn behind(failed: &[String]) -> Vec<String> {
    let mut held: Vec<String> = failed.to_vec();
    for (wave, at) in places() {
        if needs(wave, at).iter().any(|need| held.contains(need)) {
            held.push(bead(wave, at));
        }
    }
    held.retain(|bead| !failed.contains(bead));
    held.sort();
    held
}

#[test]
fn sixty_beads_in_four_waves_over_three_rigs_land_as_the_plan_says() {
    let (town, convoy) = town_with_sixty();
    town.gt(["config", "set", "daemon.scan_every", "1h"]).ok();
    town.gt(["up"]).ok();
    town.gt(["convoy", "launch", &convoy, "--force"]).ok();
    // In the middle of it the daemon is killed, and another one goes on.
    wait_until("the second wave is under way", || {
        town.story().iter().any(|line| line.contains("-2x"))
    });
    town.signal("KILL", &process(&town));
    town.allow("second");
    wait_until("the next daemon runs", || town.gt(["up"]).code == 0);

    let first = [bead(FAILING[0].0, FAILING[0].1)];
    let held = behind(&first);
    let second_fails = !held.contains(&bead(FAILING[1].0, FAILING[1].1));
    let failed: Vec<String> = FAILING
        .iter()
        .take(1 + usize::from(second_fails))
        .map(|(wave, at)| bead(*wave, *at))
        .collect();
    let held = behind(&failed);
    let done = WAVES * WIDTH - held.len() - failed.len();
    wait_until("everything that can be done is done", || {
        let shown = status(&town, &convoy);
        (&shown["completed"], &shown["failed"]) == (&json!(done), &json!(failed.len()))
    });

    // A failed bead stops the beads that wait for it, and no others.
    let shown = status(&town, &convoy);
    assert_eq!(shown["status"], "open");
    let tracked = shown["tracked"].as_array().unwrap();
    let mut waiting: Vec<String> = tracked
        .iter()
        .filter(|one| one["state"] == "blocked")
        .map(|one| one["id"].as_str().unwrap().to_owned())
        .collect();
    waiting.sort();
    assert_eq!(waiting, held);

    while status(&town, &convoy)["status"] != "closed" {
        town.gt(["convoy", "retry", &convoy]).ok();
        wait_until("it has landed, or something has failed again", || {
            let shown = status(&town, &convoy);
            shown["status"] == "closed" || shown["failed"].as_u64() > Some(0)
        });
    }

    let shown = status(&town, &convoy);
    assert_eq!((&shown["close_reason"], &shown["landings"]), (&json!("landed"), &json!(1)));
    assert_eq!((&shown["completed"], &shown["total"]), (&json!(60), &json!(60)));
    assert_eq!(town.show("we-epic")["status"], "closed", "so is its epic");
    town.gt(["down"]).ok();
    town.assert_quiet();

    // Each was begun after everything that it needs had ended, once, or twice if it failed or its worker died.
    let story = town.story();
    let ended = |line: &String| line.replacen("x ", "- ", 1);
    let at_once = peak(&story.iter().map(ended).collect::<Vec<_>>());
    assert!(at_once <= CAP, "{at_once} at once");
    let mut begun: BTreeMap<&str, usize> = BTreeMap::new();
    for (line, text) in story.iter().enumerate() {
        let Some(run) = text.strip_prefix("+ ") else { continue };
        let (bead_of, _) = run.split_once('#').unwrap();
        *begun.entry(bead_of).or_default() += 1;
        let place = places().find(|(wave, at)| bead(*wave, *at) == bead_of).unwrap();
        for need in needs(place.0, place.1) {
            let ended = story[..line].iter().any(|line| line.starts_with(&format!("- {need}#")));
            assert!(ended, "{run} began before {need} had ended");
        }
    }
    for (wave, at) in places() {
        let twice = FAILING.contains(&(wave, at)) || CRASHING == (wave, at);
        let bead = bead(wave, at);
        assert_eq!(begun.get(bead.as_str()), Some(&(1 + usize::from(twice))), "{bead}");
    }
    town.gt(["doctor"]).ok();
}
