//! Windows of subscriptions: what agents tell of them, and the accounts that are parked before all of one is used.

use gt_testkit::wait_until;
use serde_json::{Value, json};

use crate::agents::Stage as _;
use crate::support::{Steps as _, assert_says, gastown_with};

/// The accounts, by name.
fn account(town: &gt_testkit::Sandbox, handle: &str) -> Value {
    let all = town.gt_json(&["config", "account", "list"]);
    let found = all.as_array().unwrap().iter().find(|account| account["handle"] == handle);
    found.cloned().unwrap()
}

#[test]
fn an_account_is_parked_before_all_of_its_window_is_used() {
    // Given an agent whose service says while it works that 96 % of a window are used,
    let town = gastown_with(
        r#"
printf '{"type":"rate_limit_event","rate_limit_info":{"status":"allowed_warning","rateLimitType":"five_hour","utilization":%s,"resetsAt":%s}}\n' \
    "$USED" $(($(date +%s) + 3600))
while [ ! -e "$GT_TOWN_ROOT/go" ] && [ -d "$GT_TOWN_ROOT" ]; do sleep 0.02; done
"#,
    );
    town.gt(["config", "agent", "set", "custom", "transcript", "claude"]).ok();
    town.gt(["config", "account", "add", "work", "--env", "USED=0.96"]).ok();
    town.gt(["config", "account", "add", "lab", "--env", "USED=0.94"]).ok();
    for (bead, handle) in [("gt-a", "work"), ("gt-b", "lab")] {
        town.bead(bead, &[]);
        town.gt(["sling", bead, "--account", handle]).ok();
    }

    // Then its account has the window, and starts nothing more until that begins anew.
    let used = |handle| account(&town, handle)["windows"][0]["used_percent"].clone();
    wait_until("both are told", || (used("work"), used("lab")) == (json!(96), json!(94)));
    let window = account(&town, "work")["windows"][0].clone();
    assert_eq!((&window["name"], &window["length_seconds"]), (&json!("five_hour"), &json!(18_000)));
    let text = town.gt(["config", "account", "list"]).ok().stdout;
    assert_says(&text, &["work  five_hour: 96 % used, limited until", "lab  five_hour: 94 % used"]);
    town.gt(["config", "set", "scheduler.max_polecats", "9"]).ok();
    for (bead, handle) in [("gt-c", "work"), ("gt-d", "lab")] {
        town.bead(bead, &[]);
        town.gt(["sling", bead, "--account", handle]).ok();
    }
    town.cycle().ok();
    assert_eq!(town.reasons("gt-c"), ["account-limited"]);
    let until = town.gt_json(&["scheduler", "list"])[0]["reasons"][0]["until"].clone();
    assert_eq!(until, window["resets_at"]);
    assert_eq!(
        (town.states("gt-a"), town.states("gt-d")),
        (vec!["running".into()], vec!["running".into()])
    );
    town.write("go", "");
    town.gt(["wait", "gt-a", "gt-b", "gt-d"]).ok();
}

#[test]
fn a_session_file_of_codex_tells_what_the_output_does_not() {
    // Given an agent that ends before the end of its turn, as Codex does when it is stopped,
    let town = gastown_with(
        r#"
directory="$CODEX_HOME/sessions/2026/11/18"
mkdir -p "$directory"
echo '{"type":"thread.started","thread_id":"019a-1"}'
{
    echo '{"timestamp":"2026-11-18T00:00:00Z","type":"turn_context","payload":{"model":"gpt-5"}}'
    echo '{"timestamp":"2026-11-18T00:00:01Z","type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":1000000,"output_tokens":0}},"rate_limits":{"primary":{"used_percent":12.5,"window_minutes":300,"resets_at":4102444800}}}}'
} > "$directory/rollout-2026-11-18T00-00-00-019a-1.jsonl"
echo '{"type":"event_msg"}' > "$directory/rollout-2026-11-18T00-00-00-019a-2.jsonl"
"#,
    );
    town.gt(["config", "agent", "set", "custom", "transcript", "codex"]).ok();
    let home = town.cwd().join("codex home").display().to_string();
    town.gt(["config", "account", "add", "work", "--env", &format!("CODEX_HOME={home}")]).ok();
    town.bead("gt-a", &[]);
    town.gt(["sling", "gt-a", "--account", "work"]).ok();
    town.gt(["wait", "gt-a"]).ok();

    // Then its usage counts, with the model, and its window is known and does not park the account.
    let run = town.run_of("gt-a#1");
    assert_eq!((&run["tokens"], &run["cost"]), (&json!(1_000_000), &json!("1.25")));
    assert_eq!(town.gt_json(&["cost", "--by", "model"])["lines"][0]["name"], "gpt-5");
    let window = &account(&town, "work")["windows"][0];
    assert_eq!((&window["name"], &window["used_percent"]), (&json!("primary"), &json!(12)));
    assert_eq!(town.gt_json(&["scheduler", "status"])["parked"], json!([]));
}
