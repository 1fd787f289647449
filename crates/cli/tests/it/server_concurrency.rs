//! Many commands at once in a town on a PostgreSQL server: the same promises as on a file.

use std::collections::{BTreeSet, HashSet};

use gt_testkit::{FinishedProgram, Sandbox};

use crate::concurrency::{assert_gapless, at_once};
use crate::support::{Steps as _, assert_says, town_on_server};

/// The town is in order, and its log complete.
#[track_caller]
fn assert_sound(town: &Sandbox) {
    town.gt(["doctor"]).ok();
    assert_gapless(town);
}

/// How many of the commands succeeded.
fn succeeded(ran: &[FinishedProgram]) -> usize {
    ran.iter().filter(|ran| ran.code == 0).count()
}

#[test]
fn creates_closes_and_claims_at_once_all_do_what_they_say() {
    // Given a town on a server where four beads wait for four others,
    let town = town_on_server();
    assert!(!town.cwd().join(".gt/gt.db").exists(), "the store is not in a file");
    let pair = |number: usize| {
        let wait = format!(r#"[{{"depends_on_id":"hq-t{number}"}}]"#);
        [
            format!(r#"{{"id":"hq-t{number}","title":"Target"}}"#),
            format!(r#"{{"id":"hq-w{number}","title":"Waiting","dependencies":{wait}}}"#),
        ]
    };
    let waiting: Vec<String> = (0..4).flat_map(pair).collect();
    town.import(&waiting.join("\n"));
    town.bead("hq-claimed", &[]);

    // when some create, some close what is waited for, and some claim the same bead,
    let ran = at_once(12, |number| {
        let turn = (number / 3).to_string();
        let command = match number % 3 {
            0 => town.start_bd(&["create", "New", "--silent", "--label", "created"]),
            1 => town.start_bd(&["close", &format!("hq-t{turn}")]),
            _ => town.start_bd(&["update", "hq-claimed", "--claim", "--actor", &turn]),
        };
        command.start()
    });

    // then all succeed but the claims, of which one does; and the closes have freed who waited.
    let (claims, others): (Vec<_>, Vec<_>) =
        ran.into_iter().enumerate().partition(|(number, _)| number % 3 == 2);
    let ids: HashSet<String> = others
        .into_iter()
        .filter_map(|(number, ran)| Some((number % 3 == 0).then(|| ran.ok())?.line().to_owned()))
        .collect();
    assert_eq!(ids.len(), 4);
    let claims: Vec<FinishedProgram> = claims.into_iter().map(|(_, ran)| ran).collect();
    assert_eq!(succeeded(&claims), 1);
    let winner = claims.iter().position(|ran| ran.code == 0).unwrap().to_string();
    for ran in claims.iter().filter(|ran| ran.code != 0) {
        // Another line may say before that it waited for its turn.
        assert_says(&ran.stderr, &[&format!("issue already claimed by {winner}")]);
    }
    assert_eq!(town.show("hq-claimed")["assignee"], winner.as_str());
    let ready: BTreeSet<String> = town.ready().into_iter().collect();
    let mut expected: BTreeSet<String> = ids.into_iter().collect();
    expected.extend((0..4).map(|number| format!("hq-w{number}")));
    assert_eq!(ready, expected);
    assert_sound(&town);
}

#[test]
fn one_of_several_conflicting_commands_on_a_server_wins() {
    let town = town_on_server();
    for round in 0..4 {
        let (a, b) = (format!("hq-{round}a"), format!("hq-{round}b"));
        town.bead(&a, &[]);
        town.bead(&b, &[]);

        // Two dependencies that cross, and three claims of the same bead.
        let ran = at_once(5, |number| {
            let command = match number {
                0 => town.start_bd(&["dep", "add", &a, &b]),
                1 => town.start_bd(&["dep", "add", &b, &a]),
                _ => town.start_bd(&["update", &a, "--claim", "--actor", &number.to_string()]),
            };
            command.start()
        });

        assert_eq!(succeeded(&ran[..2]), 1, "round {round}\n{}\n{}", ran[0], ran[1]);
        assert_eq!(succeeded(&ran[2..]), 1, "round {round}");
    }
    assert_sound(&town);
}

#[test]
fn six_concurrent_installs_on_one_empty_database_agree() {
    let sandbox = crate::support::nowhere();
    let url = gt_testkit::Cluster::shared().fresh_database();

    let installed = at_once(6, |_| {
        let gt = sandbox.command(sandbox.gt_path()).args(["install", "town"]);
        gt.env("DATABASE_URL", &url).start()
    });

    for ran in installed {
        ran.ok();
    }
    let town = sandbox.in_dir("town");
    town.create("A task", &[]);
    assert_sound(&town);
}
