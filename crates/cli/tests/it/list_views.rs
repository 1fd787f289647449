//! `bd list --tree` and `bd list --format dot`: lists that show what belongs together.

use crate::support::{Steps as _, assert_says, refusal, town};

#[test]
fn parts_stand_under_what_they_are_a_part_of() {
    let town = town();
    town.bead("hq-other", &["-p", "0"]);
    town.bead("hq-e", &["-t", "epic", "-p", "1"]);
    town.create("First", &["--parent", "hq-e", "-p", "0"]);
    town.create("Deep", &["--parent", "hq-e.1"]);

    let said = town.bd(["list", "--tree"]).ok();

    let ids: Vec<String> = said
        .stdout
        .lines()
        .map(|line| line.split("  P").next().unwrap_or_default().trim_end().to_owned())
        .collect();
    assert_eq!(ids, ["hq-other", "hq-e", "  hq-e.1", "    hq-e.1.1"]);
    assert_eq!(town.json(&["list", "--tree"]), town.json(&["list"]));
    town.bd(["close", "hq-e", "--force"]).ok();
    let said = town.bd(["list", "--tree", "--type", "task"]).ok();
    assert_says(&said.stdout, &["hq-e.1 ", "\n  hq-e.1.1 "]);
    assert_eq!(town.bd(["list", "--tree", "--label", "x"]).ok().line(), "No issues found.");
    assert_says(&town.bd(["list", "--tree", "-n", "1"]).ok().stderr, &["--limit 0"]);
}

#[test]
fn a_list_can_be_drawn() {
    let town = town();
    town.bead("hq-a", &[]);
    town.bead("hq-b", &["--deps", "hq-a"]);
    town.bd(["update", "hq-a", "--title", "say \"hi\" \\"]).ok();

    let dot = town.bd(["list", "--sort", "id", "--format", "dot"]).ok();

    assert_eq!(
        dot.stdout,
        "digraph beads {\n  \
           \"hq-a\" [label=\"hq-a: say \\\"hi\\\" \\\\ (open)\"]\n  \
           \"hq-b\" [label=\"hq-b: hq-b (open)\"]\n  \
           \"hq-b\" -> \"hq-a\" [label=\"blocks\"]\n\
         }\n"
    );
    assert_eq!(town.bd(["list", "--format", "digraph"]).ok().stdout, "hq-b hq-a\n");
    let error = refusal(&town.bd(["ready", "--format", "dot"]));
    assert_says(&error, &["only bd list prints --format dot"]);
}
