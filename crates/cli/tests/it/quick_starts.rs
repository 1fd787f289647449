//! The commands that people know by heart, word for word.

use gt_testkit::{FinishedProgram, Sandbox};

use crate::support::{
    Steps, assert_says, gastown, gastown_that_takes_time, let_work_end, part, wait_for_status,
};

/// Runs a line as it is written, without its comment.
#[track_caller]
fn line(town: &Sandbox, line: &str) -> FinishedProgram {
    let words = line.split('#').next().unwrap_or_default();
    let mut words = words.split_whitespace();
    assert_eq!(words.next(), Some("gt"), "{line}");
    town.command(town.gt_path()).args(words).run().ok()
}

/// The beads of the quick starts: tasks, an epic with a child, a convoy that tracks one.
fn furnish(town: &Sandbox) {
    for id in ["gt-abc", "gt-def", "gt-ghi", "gt-tracked"] {
        town.bead(id, &[]);
    }
    town.bead("gt-epic-123", &["--type", "epic"]);
    part(town, "gt-part", "gt-epic-123", &[]);
    town.bead("hq-cv-abc", &["--type", "convoy"]);
    town.bd(["dep", "add", "hq-cv-abc", "gt-tracked", "--type", "tracks"]).ok();
}

#[test]
fn the_quick_start_of_the_work_queue() {
    let town = gastown_that_takes_time();
    furnish(&town);

    line(&town, "gt config set queue.enabled true");
    assert_says(
        &line(&town, "gt queue gt-abc                    # Single task bead").stdout,
        &["✓ Scheduled gt-abc"],
    );
    let batch = line(&town, "gt queue gt-abc gt-def gt-ghi      # Batch task beads");
    assert_says(
        &batch.stdout,
        &["gt-abc: already scheduled", "✓ Scheduled gt-def", "✓ Scheduled gt-ghi"],
    );
    assert_says(
        &line(&town, "gt queue hq-cv-abc                 # Convoy").stdout,
        &["✓ Scheduled gt-tracked"],
    );
    assert_says(
        &line(&town, "gt queue gt-epic-123               # Epic").stdout,
        &["✓ Scheduled gt-part"],
    );
    assert_says(&line(&town, "gt queue status").stdout, &["Queued: 5 total, 5 ready\n"]);
    assert_says(
        &line(&town, "gt queue list").stdout,
        &["Queued beads: 5\n\ngastown (5):\n  gt-abc  gt-abc\n"],
    );
    let preview = line(&town, "gt queue run --dry-run    # Preview first");
    assert_says(&preview.stdout, &["Would dispatch: 5"]);
    assert_says(
        &line(&town, "gt queue run").stdout,
        &["Found 5 queued bead(s)\n", "Dispatched: 5\n"],
    );
    let_work_end(&town);
    for id in ["gt-abc", "gt-def", "gt-ghi", "gt-tracked", "gt-part"] {
        wait_for_status(&town, id, "closed");
    }
}

#[test]
fn the_minimal_example_of_the_work_queue() {
    let town = gastown();
    town.bead("gt-abc", &[]);

    line(&town, "gt queue gt-abc                   # Enqueue (adds gt:queued label + metadata)");
    let labels = &town.show("gt-abc")["labels"];
    assert!(labels.to_string().contains("gt:queued"), "{labels}");
    assert_says(&line(&town, "gt queue status").stdout, &["Queued: 1 total, 1 ready"]);
    line(
        &town,
        "gt queue run                      # Dispatches -> spawns polecat -> strips metadata",
    );
    wait_for_status(&town, "gt-abc", "closed");
}

#[test]
fn the_quick_start_of_the_scheduler() {
    let town = gastown_that_takes_time();
    furnish(&town);

    line(&town, "gt config set scheduler.max_polecats 5");
    assert_says(
        &line(&town, "gt sling gt-abc gastown # Single task bead").stdout,
        &["✓ Scheduled gt-abc → gastown"],
    );
    let batch = line(&town, "gt sling gt-abc gt-def gt-ghi gastown # Batch task beads");
    assert_says(
        &batch.stdout,
        &["gt-abc: already scheduled", "✓ Scheduled gt-def", "✓ Scheduled gt-ghi"],
    );
    assert_says(&line(&town, "gt sling hq-cv-abc # Convoy").stdout, &["✓ Scheduled gt-tracked"]);
    assert_says(&line(&town, "gt sling gt-epic-123 # Epic").stdout, &["✓ Scheduled gt-part"]);
    assert_says(&line(&town, "gt scheduler status").stdout, &["Queued: 5 total, 5 ready\n"]);
    assert_says(&line(&town, "gt scheduler list").stdout, &["Queued beads: 5"]);
    assert_says(
        &line(&town, "gt scheduler run --dry-run # Preview first").stdout,
        &["Would dispatch: 5"],
    );
    assert_says(&line(&town, "gt scheduler run").stdout, &["Dispatched: 5"]);
    let_work_end(&town);
    wait_for_status(&town, "gt-part", "closed");
}

#[test]
fn the_minimal_example_of_the_scheduler() {
    let town = gastown();
    town.bead("gt-abc", &[]);

    line(&town, "gt config set scheduler.max_polecats 5");
    line(&town, "gt sling gt-abc gastown # Defers: creates sling context bead");
    assert_says(&line(&town, "gt scheduler status").stdout, &["Queued: 1 total, 1 ready"]);
    line(&town, "gt scheduler run # Dispatches -> spawns polecat -> closes context");
    wait_for_status(&town, "gt-abc", "closed");
    line(&town, "gt scheduler pause");
    line(&town, "gt scheduler resume");
    line(&town, "gt scheduler clear");
    line(&town, "gt config set scheduler.max_polecats -1");
    line(&town, "gt config set scheduler.batch_size 2");
    line(&town, "gt config set scheduler.spawn_delay 3s");
}

#[test]
fn the_commands_of_the_dispatcher() {
    let town = gastown_that_takes_time();
    town.gt(["rig", "add", "beads", "--prefix", "bd"]).ok();
    let command = format!("{} {{bead}}", town.cwd().join("work.sh").display());
    town.gt(["config", "set", "rig.beads.command", &command]).ok();
    let ids: Vec<String> = (1..=8).map(|n| format!("gt-{n}")).collect();
    let more: Vec<String> = (1..=4).map(|n| format!("bd-{n}")).collect();
    for number in 1..=3 {
        town.bead(&format!("gt-r{number}"), &[]);
        town.gt(["sling", &format!("gt-r{number}")]).ok();
    }
    ids.iter().chain(&more).for_each(|id| town.bead(id, &[]));
    town.write("beads.txt", ids.join("\n"));
    line(&town, "gt sling mol-review --batch --on @beads.txt gastown --queue");
    town.command(town.gt_path()).arg("queue").args(&more).run().ok();

    assert_eq!(
        line(&town, "gt queue").stdout,
        "Queue Status:\n\n  Pending:  12 beads\n  Running:  3 polecats\n  Capacity: 3/10\n\n  By rig:\n    \
         gastown: 8\n    beads: 4\n"
    );
    let list = line(&town, "gt queue list").stdout;
    assert!(
        list.starts_with("Queued beads: 12\n\ngastown (8):\n  gt-1  gt-1  (queue gate"),
        "{list}"
    );
    assert_says(&list, &["\n\nbeads (4):\n  bd-1  bd-1"]);
    let run = line(&town, "gt queue run --queue-max-polecats 10 --spawn-batch-size 3").stdout;
    assert!(
        run.starts_with(
            "Found 12 queued bead(s)\nCapacity: 3/10 polecats running, 7 slots available\n\
             Dispatched: 7\nSkipped (capacity): 5\n"
        ),
        "{run}"
    );
    assert_eq!(line(&town, "gt queue clear").stdout, "Cleared 5 bead(s) from queue\n");
    line(&town, "gt queue run --queue-max-polecats 20");
    line(&town, "gt queue run --spawn-batch-size 8");
    line(&town, "gt queue run --queue-max-polecats 20 --spawn-batch-size 8");
    let_work_end(&town);
    wait_for_status(&town, "gt-1", "closed");
}
