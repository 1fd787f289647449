//! `gt cost`: what runs have used and cost.

use gt_testkit::wait_until;
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

#[test]
fn a_convoy_and_the_notices_tell_what_its_runs_have_cost() {
    // Given one bead that is done and one that fails at first, in a convoy,
    let town =
        gastown_with("echo 'tokens used: 600'; echo 'cost: 0.25'; [ $GT_RUN != gt-b#1 ] || exit 1");
    understand_output(&town);
    let program = town.write_script("tell", "cat >> told; echo >> told");
    town.gt(["config", "set", "notify.command", &format!("'{}'", program.display())]).ok();
    for bead in ["gt-a", "gt-b"] {
        town.bead(bead, &[]);
    }
    let convoy = town.gt_json(&["convoy", "create", "Tea", "gt-a", "gt-b"])["convoy"].clone();
    let convoy = convoy.as_str().unwrap();
    town.gt(["wait", "gt-a"]).ok();
    assert_eq!(town.gt(["wait", "gt-b"]).code, 1);

    // Then its status has the sum and the share of each bead,
    let status = town.gt_json(&["convoy", "status", convoy]);
    let one = json!({"tokens": 600, "cost": "0.25", "unpriced": 0});
    assert_eq!(status["spent"], json!({"tokens": 1200, "cost": "0.50", "unpriced": 0}));
    assert_eq!((&status["tracked"][0]["spent"], &status["tracked"][1]["spent"]), (&one, &one));
    let text = town.gt(["convoy", "status", convoy]).ok().stdout;
    assert_says(&text, &["Spent: $0.50 for 1200 tokens", "$0.25"]);

    // and people read it in what they are told.
    let told = || -> Vec<serde_json::Value> {
        let told = std::fs::read_to_string(town.cwd().join("told")).unwrap_or_default();
        told.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    };
    let of = |kind: &str| told().into_iter().find(|notice| notice["kind"] == kind);
    wait_until("people are told of the failure", || of("failed").is_some());
    let failed = of("failed").unwrap();
    assert_eq!(failed["spent"], one);
    assert_says(failed["message"].as_str().unwrap(), &["gt-b failed ($0.25 for 600 tokens)"]);
    town.gt(["convoy", "retry", convoy]).ok();
    town.cycle().ok();
    town.gt(["wait", "gt-b"]).ok();
    wait_until("people are told of the landing", || of("convoy-landed").is_some());
    let landed = of("convoy-landed").unwrap();
    assert_eq!(landed["details"]["cost"], "0.75");
    assert_says(landed["message"].as_str().unwrap(), &["($0.75 for 1800 tokens): 2 of 2 beads"]);
}

#[test]
fn telemetry_tells_the_usage_of_a_run_while_it_goes_on() {
    // Given an agent that tells of a request twice, one stranger, a record of another run, and one that makes no sense,
    let town = gastown_with(
        r#"
send() { curl --silent --output /dev/null --header "$1" --data "$2" "$OTEL_EXPORTER_OTLP_ENDPOINT/v1/logs"; }
record() { printf '{"timeUnixNano":"1","attributes":[{"key":"event.name","value":{"stringValue":"api_request"}},
    {"key":"model","value":{"stringValue":"gpt-5"}},{"key":"input_tokens","value":{"intValue":"%s"}}]}' "$1"; }
logs() { printf '{"resourceLogs":[{"resource":{"attributes":[{"key":"gt.run","value":{"stringValue":"%s"}}]},
    "scopeLogs":[{"logRecords":[%s]}]}]}' "${2-${OTEL_RESOURCE_ATTRIBUTES#gt.run=}}" "$1"; }
known=$(echo "$OTEL_EXPORTER_OTLP_HEADERS" | sed 's/=/: /')
send "$known" "$(logs "$(record 1000000)")"
send "$known" "$(logs "$(record 1000000)")"
send "$known" "$(logs "$(record -5)")"
send "Authorization: Bearer mine" "$(logs "$(record 7000000)")"
send "$known" "$(logs "$(record 9000000)" 'gt-b#1')"
while [ ! -e "$GT_TOWN_ROOT/go" ] && [ -d "$GT_TOWN_ROOT" ]; do sleep 0.02; done
"#,
    );
    town.write(".gt/runtimes/custom.toml", "[telemetry]\nOTEL_LOGS_EXPORTER = 'otlp'\n");
    town.bead("gt-a", &[]);

    town.gt(["sling", "gt-a"]).ok();

    // Then it counts once, at the price of its model, before the run is over.
    wait_until("it is told", || town.run_of("gt-a#1")["tokens"] == 1_000_000);
    assert_eq!(town.run_of("gt-a#1")["cost"], "1.25");
    town.write("go", "");
    town.gt(["wait", "gt-a"]).ok();
    let bill = town.gt_json(&["cost", "--by", "model"]);
    assert_eq!(bill["lines"][0]["name"], "gpt-5");
    assert_eq!(
        (&bill["total"]["cost"], &bill["total"]["priced"]),
        (&json!("1.25"), &json!("1.25"))
    );
    let feed = town.gt_json(&["feed", "--limit", "50"]).to_string();
    assert_says(&feed, &["1 telemetry messages were not from the run", "1 telemetry records"]);
    assert_says(&feed, &["1 telemetry records named another run and do not count"]);
    let lines = town.gt(["feed", "--limit", "50"]).ok().stdout;
    assert_says(&lines, &["gt-a#1 · 1000000 tokens · $1.25 · 1 telemetry messages were not"]);
}

#[test]
fn bad_reports_of_an_agent_lose_no_run_and_are_told() {
    // Given an agent whose telemetry and output disagree, with an unknown model, absurd and negative numbers, an event of
    // an unknown type, and an output that ends in the middle of an event,
    let town = gastown_with(
        r#"
record='{"timeUnixNano":"1","attributes":[{"key":"event.name","value":{"stringValue":"api_request"}},
    {"key":"model","value":{"stringValue":"home-made"}},{"key":"input_tokens","value":{"intValue":"1000"}}]}'
curl --silent --output /dev/null --header "$(echo "$OTEL_EXPORTER_OTLP_HEADERS" | sed 's/=/: /')" \
    --data "{\"resourceLogs\":[{\"scopeLogs\":[{\"logRecords\":[$record]}]}]}" "$OTEL_EXPORTER_OTLP_ENDPOINT/v1/logs"
echo '{"type":"of tomorrow"}'
echo '{"type":"result","result":"Done.","modelUsage":{"home-made":{"inputTokens":"900","outputTokens":-1,"cacheReadInputTokens":99999999999999999999}}}'
printf '{"type":"assistant","message":{"con'
"#,
    );
    town.write(
        ".gt/runtimes/custom.toml",
        "transcript = 'claude'\n[telemetry]\nOTEL_LOGS_EXPORTER = 'otlp'\n",
    );
    town.bead("gt-a", &[]);

    town.gt(["sling", "gt-a"]).ok();
    town.gt(["wait", "gt-a"]).ok();

    // Then the run is done, the larger source counts, and everything else is told.
    wait_until("its usage is known", || town.run_of("gt-a#1")["tokens"] == 1000);
    assert_eq!(town.states("gt-a"), ["done"]);
    let run = town.gt(["run", "show", "gt-a"]).ok().stdout;
    assert_says(&run, &["no price is known", "another source has 100 tokens less"]);
    let log = town.gt(["run", "log", "gt-a"]).ok().stdout;
    assert_says(
        &log,
        &["outputTokens is -1", "cacheReadInputTokens is 1e+20", "\"of tomorrow\" is not known"],
    );
    assert_says(&log, &["the output ends in the middle of an event"]);
    let bill = town.gt(["cost"]).ok().stdout;
    assert_says(&bill, &["1000 tokens of home-made have no price", "cost.prices"]);
    town.gt(["config", "set", "cost.prices", "other=1/2"]).ok();
    assert_says(
        &town.gt(["cost"]).ok().stdout,
        &["home-made=<input>/<output>' prices later ones", "'other=1"],
    );
    town.gt(["config", "set", "cost.prices", "home-made=1/2"]).ok();
    assert_says(&town.gt(["cost"]).ok().stdout, &["home-made had no price when they were used"]);
}

#[test]
fn telemetry_that_a_person_sends_elsewhere_stays_there() {
    let town = gastown_with("env > \"$GT_TOWN_ROOT/environment\"");
    town.write(
        ".gt/runtimes/custom.toml",
        "[telemetry]\nOTEL_LOGS_EXPORTER = 'otlp'\n[environment]\nOTEL_EXPORTER_OTLP_ENDPOINT = 'http://mine'\n",
    );
    town.bead("gt-a", &[]);
    town.gt(["sling", "gt-a"]).ok();
    town.gt(["wait", "gt-a"]).ok();

    let environment = std::fs::read_to_string(town.cwd().join("environment")).unwrap();
    assert_says(&environment, &["OTEL_EXPORTER_OTLP_ENDPOINT=http://mine\n"]);
    assert!(!environment.contains("OTEL_LOGS_EXPORTER"), "{environment}");
}
