//! Ids as people write them: whole, without the prefix, a part, or the alias.

use gt_core::{BeadId, Timestamp, Uid};

use crate::support::{Steps as _, assert_says, refusal, town, town_with_rigs};

#[test]
fn a_part_that_no_other_bead_shares_is_enough() {
    let town = town();
    town.bead("hq-kettle", &[]);
    town.bead("hq-teapot", &[]);

    for part in ["hq-kettle", "kettle", "ket", "ttl"] {
        assert_eq!(town.ids(&["show", part]), ["hq-kettle"], "{part}");
    }
    // Everywhere, not only in show.
    town.bd(["update", "kett", "--title", "Kettle"]).ok();
    town.bd(["dep", "add", "pot", "kett"]).ok();
    town.bd(["label", "add", "pot", "hot"]).ok();
    town.bd(["close", "kett"]).ok();
    assert_eq!(town.show("pot")["dependencies"][0]["status"], "closed");
}

#[test]
fn a_part_that_several_share_is_ambiguous() {
    let town = town();
    for id in ["hq-tea1", "hq-tea2", "hq-tea3"] {
        town.bead(id, &[]);
    }

    let error = refusal(&town.bd(["show", "tea"]));

    assert_says(&error, &["\"tea\" is ambiguous", "hq-tea1", "hq-tea2", "(3 match)"]);
}

#[test]
fn a_whole_id_is_never_ambiguous() {
    let town = town();
    town.bead("hq-tea", &[]);
    town.bead("hq-tea2", &[]);
    town.bead("hq-tea.1", &[]);

    assert_eq!(town.ids(&["show", "hq-tea"]), ["hq-tea"]);
    assert_eq!(town.ids(&["show", "tea"]), ["hq-tea"], "with its prefix");
}

#[test]
fn the_prefix_of_the_directory_is_tried_first() {
    let town = town_with_rigs(&["web"]);
    town.bead("hq-x1", &[]);
    town.bead("we-x1", &[]);

    assert_eq!(town.ids(&["show", "x1"]), ["hq-x1"]);
    assert_eq!(town.in_dir("web").ids(&["show", "x1"]), ["we-x1"]);
}

#[test]
fn an_id_without_a_match_is_not_found() {
    let town = town();
    town.bead("hq-a", &[]);
    for input in ["nope", "hq-none", "%", "_", "hq-%"] {
        let error = refusal(&town.bd(["show", input]));
        assert_eq!(error, format!("no issue found matching \"{input}\""));
    }
}

#[test]
fn an_invalid_id_is_refused() {
    let town = town();
    town.bead("hq-a", &[]);
    let long = "x".repeat(300);
    for input in ["", " ", "a b", "a\nb", "\u{1b}[31m", &long] {
        let error = refusal(&town.bd(["show", input]));
        assert_says(&error, &["is not a bead id"]);
    }
}

#[test]
fn the_alias_is_as_good_as_the_id() {
    let town = town();
    town.bead("hq-kettle", &[]);
    let created = town.show("hq-kettle")["created_at"].clone();
    let created = Timestamp::parse(created.as_str().unwrap()).unwrap();
    let alias = Uid::of_bead(&BeadId::parse("hq-kettle").unwrap(), created).to_string();

    assert_eq!(town.ids(&["show", &alias]), ["hq-kettle"]);
    town.bd(["close", &alias]).ok();
    assert_eq!(town.show("hq-kettle")["status"], "closed");
}

#[test]
fn the_beginning_of_an_id_is_enough_and_capitals_do_not_matter() {
    let town = town();
    town.bead("hq-qwerty", &[]);
    town.bead("hq-qwaser", &[]);

    for input in ["hq-qwe", "HQ-QWERTY", "qwe", "QWERTY"] {
        assert_eq!(town.show(input)["id"], "hq-qwerty", "{input}");
    }
    let error = refusal(&town.bd(["show", "hq-qw"]));
    assert_says(&error, &["ambiguous", "hq-qwerty", "hq-qwaser"]);
}
