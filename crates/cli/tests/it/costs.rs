//! `gt cost`: what runs have used and cost.

use serde_json::json;

use crate::agents::Stage as _;
use crate::capacity::understand_output;
use crate::support::{Steps as _, assert_says, gastown_with};

#[test]
fn what_agents_report_is_a_bill_by_bead_day_model_and_convoy() {
    let town =
        gastown_with("echo 'tokens used: 600'; case $GT_RUN in gt-a*) echo 'cost: 0.25';; esac");
    understand_output(&town);
    for bead in ["gt-a", "gt-b"] {
        town.bead(bead, &[]);
    }
    assert_says(&town.gt(["cost"]).ok().stdout, &["No run has reported"]);
    town.gt(["sling", "gt-a"]).ok();
    town.gt(["sling", "gt-b"]).ok();
    town.gt(["wait", "gt-a", "gt-b"]).ok();

    let by_bead = town.gt_json(&["cost", "--by", "bead"]);
    let lines: Vec<_> = by_bead["lines"]
        .as_array()
        .unwrap()
        .iter()
        .map(|line| (&line["name"], &line["tokens"], &line["cost"], &line["unpriced"]))
        .collect();
    assert_eq!(
        lines,
        [
            (&json!("gt-a"), &json!(600), &json!("0.25"), &json!(0)),
            (&json!("gt-b"), &json!(600), &json!("0.00"), &json!(600)),
        ]
    );
    let total = &by_bead["total"];
    assert_eq!((&total["runs"], &total["done_beads"]), (&json!(2), &json!(2)));
    assert_eq!(total["cost_per_done_bead"], "0.125");
    assert_eq!(by_bead["unpriced"], json!([{"model": "", "tokens": 600}]));
    for grouping in ["run", "convoy", "rig", "account", "model", "day"] {
        let report = town.gt_json(&["cost", "--by", grouping, "--since", "1h"]);
        assert_eq!(report["total"]["tokens"], 1200, "{grouping}");
    }
    assert_eq!(town.gt_json(&["cost", "--since", "2200-01-01"])["lines"], json!([]));

    let text = town.gt(["cost", "--by", "rig"]).ok().stdout;
    assert_says(&text, &["RIG", "TOKENS", "$0.25+", "2 beads done, $0.125 each", "600 tokens"]);
}
