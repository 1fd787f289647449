//! Where finished work goes, also when several runs land at once or a process dies on the way.

use std::fs;

use gt_testkit::{Sandbox, wait_until};
use serde_json::json;

use crate::agents::{Stage as _, is_alive};
use crate::projects::{
    Origin as _, STAYS, Sessions, Worker, project_agent, town_with_project, town_with_project_by,
};
use crate::support::{Steps as _, assert_says, refusal, wait_for_status};
use crate::trees::{Trees as _, git};

/// A hook of the origin that kills the `gt` which pushes, once, and goes on with `then`.
fn kills_the_pusher(then: &str) -> String {
    format!(
        "if mkdir \"$stage/killed\" 2>/dev/null; then
    process=$$
    while [ \"$process\" -gt 1 ]; do
        process=$(cut -d ' ' -f 4 /proc/$process/stat)
        if [ \"$(cat /proc/$process/comm)\" = gt ]; then kill -9 \"$process\"; break; fi
    done
    {then}
fi
exit 0"
    )
}

#[test]
fn the_command_of_a_rig_that_ends_well_has_its_work_landed() {
    let town = town_with_project("echo tea > tea; rm README.md");
    town.create("Boil water", &["--id", "we-a", "--force"]);

    town.gt(["sling", "we-a"]).ok();
    wait_until("the bead is closed", || town.show("we-a")["status"] == "closed");

    assert_eq!(town.landed("main"), ["First commit", "Boil water"]);
    assert_eq!(town.landed_file("tea").as_deref(), Some("tea\n"));
    assert_eq!(town.landed_file("README.md"), None);
    let by = town.origin_git(&["log", "-1", "--format=%an|%cn|%b", "main"]).ok();
    assert_says(&by.stdout, &["web/polecats/", "we-a#1"]);
    let events = town.json(&["activity", "--bead", "we-a"]);
    let landed = events.as_array().unwrap().iter().find(|event| event["event_type"] == "landed");
    assert_eq!(landed.unwrap()["payload"]["branch"], "main", "{events}");
    town.assert_quiet();
}

#[test]
fn work_lands_on_the_branch_it_was_slung_for() {
    let town = town_with_project(STAYS);
    town.origin_git(&["branch", "next", "main"]).ok();
    let worker = Worker::begin(&town, "we-a", &["--base-branch", "next"]);
    worker.commit("tea", "tea\n", "Tea");

    assert_says(&worker.gt(&["done"]).ok().stdout, &["✓ we-a#1 is done: landed on next as"]);

    assert_eq!(town.landed("next"), ["First commit", "Tea"]);
    assert_eq!(town.landed("main"), ["First commit"]);
    assert_eq!(town.show("we-a")["status"], "closed");

    // The run says where that was, and what came of it.
    let landed = town.origin_git(&["rev-parse", "next"]).ok().line().to_owned();
    let run = town.run_of("we-a#1");
    assert_eq!((&run["branch"], &run["base_branch"]), (&json!(worker.branch), &json!("next")));
    assert_eq!(run["tree"], worker.tree.strip_prefix(town.cwd()).unwrap().display().to_string());
    assert_eq!(run["landed_commit"], json!(landed));
    let shown = town.gt(["run", "show", "we-a"]).ok().stdout;
    assert_says(&shown, &["tree", "web/polecats/", &worker.branch, &landed[..12]]);
}

#[test]
fn work_kept_on_its_branch_closes_the_bead() {
    let town = town_with_project(STAYS);

    let local = Worker::begin(&town, "we-a", &["--merge", "local"]);
    local.commit("tea", "tea\n", "Tea");
    let done = local.gt(&["done", "--json"]).ok().json();
    assert_eq!((&done["work"], &done["pushed"]), (&json!("kept"), &json!(false)));
    assert_eq!(done["branch"], local.branch.as_str());
    assert_eq!(town.show("we-a")["status"], "closed");
    assert_eq!(town.origin_references(), ["refs/heads/main"]);
    local.wait_until_gone();

    let pushed = Worker::begin(&town, "we-b", &["--no-merge"]);
    pushed.commit("milk", "milk\n", "Milk");
    assert_says(&pushed.gt(&["done"]).ok().stdout, &["we-b#1 is done: pushed as", &pushed.branch]);
    assert_eq!(town.landed(&pushed.branch), ["First commit", "Milk"]);
    assert_eq!(town.landed("main"), ["First commit"]);
    assert_eq!(town.show("we-b")["status"], "in_progress");
    assert_eq!(town.reasons("we-b"), ["held"]);
    assert_says(&town.gt(["why", "we-b"]).ok().stdout, &["we-b@1", "unmerged", "gt mq retry"]);
}

#[test]
fn unfinished_work_is_escalated_or_deferred() {
    let town = town_with_project(STAYS);
    let stuck = Worker::begin(&town, "we-a", &[]);
    stuck.write("half", "half of it\n");
    let later = Worker::begin(&town, "we-b", &[]);

    assert_says(
        &stuck.gt(&["done", "--status", "escalated", "-m", "which tea?"]).ok().stdout,
        &["a person is asked", "kept on"],
    );
    assert_says(&later.gt(&["done", "--status", "deferred"]).ok().stdout, &["for later"]);

    let (bead, assignee) = (town.show("we-a"), town.show("we-a")["assignee"].clone());
    assert_eq!(bead["status"], "blocked");
    assert!(assignee.is_null() || assignee == "", "{bead}");
    assert_eq!(town.show("we-b")["status"], "deferred");
    assert_eq!(town.reasons("we-b"), ["put-off"]);
    let why = town.gt(["why", "we-b"]).ok().stdout;
    assert_says(
        &why,
        &["deferred by its worker, web/polecats/", "bd undefer we-b", "gt sling we-b"],
    );
    assert!(!why.contains("cancelled by"), "{why}");
    assert_eq!(stuck.git(&["log", "-1", "--format=%s"]).ok().line(), "which tea?");
    assert_eq!(town.landed("main"), ["First commit"]);
    assert_says(&town.reasons("we-a").join(" "), &["escalated"]);
    let asked = town.why("we-a")["needs_you"][0].clone();
    assert_says(&asked.to_string(), &["we-a#1", "which tea?"]);
    town.cycle().ok();
    // Opening them is not asking for another run.
    for bead in ["we-a", "we-b"] {
        town.bd(["update", bead, "--status", "open"]).ok();
        let skipped = town.gt(["deacon", "redispatch", bead]);
        assert_eq!(skipped.code, 3, "{skipped}");
        assert_says(&skipped.stdout, &["only a person lifts that"]);
    }
    assert_eq!(town.reasons("we-b"), ["put-off"]);
    for bead in ["we-a", "we-b"] {
        assert_eq!(town.states(bead), ["cancelled"], "nothing starts it again by itself");
    }
}

#[test]
fn nothing_changed_is_nothing_to_land() {
    let town = town_with_project(STAYS);
    for (bead, flags) in
        [("we-a", &[][..]), ("we-b", &["--no-merge"]), ("we-c", &["--merge", "mr"])]
    {
        let worker = Worker::begin(&town, bead, flags);
        // It does not close quietly.
        assert_says(
            &refusal(&worker.gt(&["done"])),
            &["changed nothing", "gt done --no-changes -m"],
        );
        worker.gt(&["done", "--no-changes"]).fails(2);
        assert_says(&refusal(&worker.gt(&["done", "--no-changes", "-m", " "])), &["say why"]);
        assert_eq!(town.show(bead)["status"], "in_progress", "{bead}");
        let why = ["done", "--no-changes", "-m", "The parser takes them"];
        assert_says(&worker.gt(&why).ok().stdout, &["is done: nothing had changed"]);
        let shown = town.show(bead);
        assert_eq!(shown["status"], "closed", "{bead}");
        let reason = shown["close_reason"].as_str().unwrap();
        assert_says(reason, &[&worker.run, "without a change: The parser takes them"]);
        worker.wait_until_gone();
    }
    assert_eq!(town.origin_references(), ["refs/heads/main"]);
    assert_eq!(town.landed("main"), ["First commit"]);
}

#[test]
fn a_worker_that_has_changed_something_cannot_say_that_nothing_had_to_change() {
    let town = town_with_project(STAYS);
    let worker = Worker::begin(&town, "we-a", &[]);
    worker.write("tea", "tea\n");
    let why = ["done", "--no-changes", "-m", "It is right"];
    assert_says(&refusal(&worker.gt(&why)), &["has changed something", "without --no-changes"]);
    worker.git(&["add", "--all"]).ok();
    worker.git(&["commit", "--quiet", "-m", "Tea"]).ok();
    assert_says(&refusal(&worker.gt(&why)), &["has changed something"]);
    worker.gt(&["done"]).ok();
    assert_eq!(town.landed("main"), ["First commit", "Tea"]);
}

#[test]
fn commits_of_others_are_no_change_of_the_worker() {
    let town = town_with_project(STAYS);
    let worker = Worker::begin(&town, "we-a", &[]);
    town.person_lands("theirs", "1\n");
    let other = Worker::begin(&town, "we-b", &[]);
    worker.git(&["merge", "--quiet", "origin/main"]).ok();
    assert_says(&refusal(&worker.gt(&["done"])), &["we-a#1 changed nothing"]);
    worker.gt(&["done", "--no-changes", "-m", "They did it"]).ok();
    other.write("tea", "tea\n");
    other.gt(&["done"]).ok();
}

/// Work that begins together and ends together.
const TOGETHER: &str = "wait_for go; echo $bead > $bead; gt done";

fn all_land_once(town: &Sandbox, beads: &[String]) {
    for bead in beads {
        town.wait_for_agent(&format!("{bead}#1"));
    }
    town.allow("go");
    town.assert_quiet();

    let mut landed = town.landed("main").split_off(1);
    landed.sort();
    assert_eq!(landed, beads);
    for bead in beads {
        assert_eq!(town.show(bead)["status"], "closed");
        assert_eq!(town.states(bead), ["done"]);
        assert_eq!(town.landed_file(bead), Some(format!("{bead}\n")));
    }
    let merges = town.origin_git(&["rev-list", "--count", "--merges", "main"]).ok();
    assert_eq!(merges.line(), "0");
}

#[test]
fn ten_workers_that_land_at_once_all_land_once() {
    let town = town_with_project(TOGETHER);
    let beads: Vec<String> = (0..10).map(|number| format!("we-{number}")).collect();
    for bead in &beads {
        town.bead(bead, &[]);
        town.gt(["sling", bead]).ok();
    }
    all_land_once(&town, &beads);
}

#[test]
fn two_workers_in_sessions_that_land_at_once_all_land_once() {
    let town = town_with_project_by("tmux", TOGETHER);
    let sessions = Sessions::of(&town);
    let beads = ["we-a", "we-b"].map(str::to_owned);
    for bead in &beads {
        town.bead(bead, &[]);
        sessions.gt(&["sling", bead]).ok();
    }
    all_land_once(&town, &beads);
}

#[test]
fn a_conflict_names_the_files_and_a_rebase_puts_it_right() {
    let town = town_with_project(STAYS);
    let worker = Worker::begin(&town, "we-a", &[]);
    worker.write("README.md", "ours\n");
    town.person_lands("README.md", "theirs\n");
    town.person_lands("other", "other\n");

    let refused = refusal(&worker.gt(&["done"]));

    assert_says(&refused, &["others have changed README.md on main", "git rebase origin/main"]);
    assert_eq!(worker.state(), "running");
    assert_eq!(town.landed("main").len(), 3);
    // The command of the hint works, and begins from the base that was fetched a moment ago.
    assert_ne!(worker.git(&["rebase", "origin/main"]).code, 0, "there is something to resolve");
    assert_says(&refusal(&worker.gt(&["done"])), &["a rebase has begun", "git rebase --continue"]);
    worker.write("README.md", "both\n");
    worker.git(&["add", "README.md"]).ok();
    worker.git(&["-c", "core.editor=true", "rebase", "--continue"]).ok();
    worker.gt(&["done"]).ok();
    assert_eq!(town.landed_file("README.md").as_deref(), Some("both\n"));
    assert_eq!(town.landed_file("other").as_deref(), Some("other\n"));
    assert_eq!(town.landed("main").len(), 4);
}

#[test]
fn changes_that_only_a_merge_commit_has_land_too() {
    let fetch = ["fetch", "--quiet", "--refmap=", "--no-tags", "origin", "main"];
    // Given a merge that gt done commits, with a file that no other commit has,
    let town = town_with_project(STAYS);
    let worker = Worker::begin(&town, "we-a", &[]);
    town.person_lands("theirs", "theirs\n");
    worker.git(&fetch).ok();
    worker.git(&["merge", "--quiet", "--no-commit", "--no-ff", "FETCH_HEAD"]).ok();
    worker.write("precious", "precious\n");
    // and one that its worker has committed and amended, although it prefers no merges,
    let other = Worker::begin(&town, "we-b", &[]);
    other.commit("milk", "milk\n", "Milk");
    town.person_lands("more", "more\n");
    other.git(&fetch).ok();
    other.git(&["merge", "--quiet", "--no-edit", "FETCH_HEAD"]).ok();
    other.write("amended", "amended\n");
    other.git(&["add", "--all"]).ok();
    other.git(&["commit", "--quiet", "--amend", "--no-edit"]).ok();
    other.git(&["config", "merge.ff", "only"]).ok();

    // when others land before they do,
    town.person_lands("most", "most\n");
    worker.gt(&["done"]).ok();
    other.gt(&["done"]).ok();

    // then nothing of it is missing, and nothing of the others.
    for file in ["precious", "milk", "amended", "theirs", "more", "most"] {
        assert_eq!(town.landed_file(file), Some(format!("{file}\n")));
    }
    for bead in ["we-a", "we-b"] {
        assert_eq!(town.show(bead)["status"], "closed");
    }
    let first_parents = town.origin_git(&["log", "--first-parent", "--format=%s", "main"]).ok();
    assert_says(&first_parents.stdout, &["Merge the work of we-a@1", "changes most"]);
}

#[test]
fn a_conflict_of_work_with_merges_is_put_right_by_a_merge() {
    let town = town_with_project(STAYS);
    let worker = Worker::begin(&town, "we-a", &[]);
    town.person_lands("theirs", "theirs\n");
    worker.git(&["fetch", "--quiet", "--refmap=", "--no-tags", "origin", "main"]).ok();
    worker.git(&["merge", "--quiet", "--no-commit", "--no-ff", "FETCH_HEAD"]).ok();
    worker.write("precious", "precious\n");
    worker.write("README.md", "ours\n");
    town.person_lands("README.md", "theirs\n");

    let refused = refusal(&worker.gt(&["done"]));

    // A rebase would forget what only the merge has.
    assert_says(&refused, &["README.md", "run git merge origin/main", "gt done again"]);
    assert_ne!(worker.git(&["merge", "--quiet", "origin/main"]).code, 0, "there is a conflict");
    worker.write("README.md", "both\n");
    worker.gt(&["done"]).ok();
    assert_eq!(town.landed_file("README.md").as_deref(), Some("both\n"));
    assert_eq!(town.landed_file("precious").as_deref(), Some("precious\n"));
}

#[test]
fn commits_that_the_origin_dropped_do_not_land_again() {
    let town = town_with_project(STAYS);
    town.person_lands("secret", "secret\n");
    let worker = Worker::begin(&town, "we-a", &[]);
    let merging = Worker::begin(&town, "we-b", &[]);
    worker.commit("tea", "tea\n", "Tea");
    merging.commit("milk", "milk\n", "Milk");
    // A merge that has what no other commit has, and cannot be taken apart.
    merging.write("cream", "cream\n");
    merging.git(&["add", "--all"]).ok();
    let tree = merging.git(&["write-tree"]).ok();
    let make = ["commit-tree", tree.line(), "-p", "HEAD", "-p", "HEAD~1", "-m", "A merge"];
    let merge = merging.git(&make).ok();
    merging.git(&["reset", "--quiet", "--hard", merge.line()]).ok();
    town.origin_git(&["update-ref", "refs/heads/main", "main~1"]).ok();

    worker.gt(&["done"]).ok();
    merging.gt(&["done"]).ok();

    let landed = town.landed("main");
    assert_eq!((landed.len(), landed[1].as_str()), (3, "Tea"));
    assert_says(&landed[2], &["The work of we-b@1"]);
    assert_eq!(town.landed_file("secret"), None);
    for file in ["tea", "milk", "cream"] {
        assert_eq!(town.landed_file(file), Some(format!("{file}\n")));
    }
}

#[test]
fn a_conflict_with_an_origin_that_took_commits_back_is_put_right_without_them() {
    let town = town_with_project(STAYS);
    town.person_lands("secret", "secret\n");
    let worker = Worker::begin(&town, "we-a", &[]);
    worker.commit("README.md", "ours\n", "Ours");
    town.origin_git(&["update-ref", "refs/heads/main", "main~1"]).ok();
    let other = Worker::begin(&town, "we-b", &[]);
    other.commit("README.md", "theirs\n", "Theirs");
    other.gt(&["done"]).ok();

    let refused = refusal(&worker.gt(&["done"]));

    let base = worker.git(&["rev-parse", "HEAD~1"]).ok();
    let again = format!("git rebase --onto origin/main {}", base.line());
    assert_says(&refused, &["README.md", "taken back commits", &again, "gt done again"]);
    assert_ne!(worker.git(&["rebase", "--onto", "origin/main", base.line()]).code, 0);
    worker.write("README.md", "both\n");
    worker.git(&["add", "README.md"]).ok();
    worker.git(&["-c", "core.editor=true", "rebase", "--continue"]).ok();
    worker.gt(&["done"]).ok();
    assert_eq!(town.landed("main"), ["First commit", "Theirs", "Ours"]);
    assert_eq!(town.landed_file("README.md").as_deref(), Some("both\n"));
    assert_eq!(town.landed_file("secret"), None);
}

#[test]
fn a_branch_that_the_origin_has_deleted_is_not_made_again() {
    let town = town_with_project(STAYS);
    town.origin_git(&["branch", "next", "main"]).ok();
    let worker = Worker::begin(&town, "we-a", &["--base-branch", "next"]);
    worker.commit("tea", "tea\n", "Tea");
    town.origin_git(&["branch", "-D", "next"]).ok();

    let refused = refusal(&worker.gt(&["done"]));

    let parts = ["next is not at the origin any more", &worker.branch, "--status escalated"];
    assert_says(&refused, &parts);
    assert_eq!(town.origin_references(), ["refs/heads/main"]);
    assert_eq!(
        (worker.state(), town.show("we-a")["status"].clone()),
        ("running".to_owned(), json!("in_progress"))
    );
    // The command of the hint works, and keeps the work on its branch.
    let asked = worker.gt(&["done", "--status", "escalated", "-m", "next is gone"]).ok();
    assert_says(&asked.stdout, &["a person is asked", "kept on", &worker.branch]);
    assert_eq!(worker.git(&["log", "-1", "--format=%s", &worker.branch]).ok().line(), "Tea");
}

#[test]
fn work_that_began_before_its_branch_was_renamed_lands_on_the_new_one() {
    let town = town_with_project(STAYS);
    let plain = Worker::begin(&town, "we-a", &[]);
    let chosen = Worker::begin(&town, "we-b", &["--base-branch", "main"]);
    plain.commit("tea", "tea\n", "Add tea");
    chosen.commit("milk", "milk\n", "Add milk");
    town.origin_git(&["branch", "--move", "main", "trunk"]).ok();
    assert_says(&refusal(&plain.gt(&["done"])), &["main is not at the origin any more"]);

    town.gt(["rig", "set", "web", "branch", "trunk"]).ok();

    assert_says(&plain.gt(&["done"]).ok().stdout, &["landed on trunk"]);
    assert_eq!(town.landed("trunk"), ["First commit", "Add tea"]);
    plain.wait_until_gone();
    // A branch that was chosen is not replaced.
    assert_says(&refusal(&chosen.gt(&["done"])), &["main is not at the origin any more"]);
    chosen.gt(&["done", "--status", "escalated", "-m", "main is gone"]).ok();
    chosen.wait_until_gone();
}

#[test]
fn a_command_whose_branch_the_origin_has_deleted_is_for_a_person_and_kept() {
    let town = town_with_project(&format!("{STAYS}\necho tea > tea"));
    town.origin_git(&["branch", "next", "main"]).ok();
    let worker = Worker::begin(&town, "we-a", &["--base-branch", "next"]);
    town.origin_git(&["branch", "-D", "next"]).ok();

    town.allow("end-we-a");
    wait_for_status(&town, "we-a", "blocked");

    assert_eq!(town.states("we-a"), ["cancelled"]);
    assert_eq!(town.landed_file("tea"), None);
    let kept = git(&town, &town.shared(), &["show", &format!("{}:tea", worker.branch)]);
    assert_eq!(kept, "tea");
    let told = town.gt(["status"]).ok().stdout;
    assert_says(
        &told,
        &["next is not at the origin any more", &worker.branch, "gt rig set web branch"],
    );
}

#[test]
fn an_origin_that_cannot_move_its_branch_is_not_asked_a_hundred_times() {
    let town = town_with_project(STAYS);
    let worker = Worker::begin(&town, "we-a", &[]);
    worker.commit("tea", "tea\n", "Tea");
    town.origin_hook("pre-receive", "echo pushed >> \"$stage/pushes\"");
    // The lock file of a git that was killed there.
    let lock = town.root().join("origin.git/refs/heads/main.lock");
    fs::create_dir_all(lock.parent().unwrap()).unwrap();
    fs::write(&lock, "").unwrap();

    let done = worker.gt(&["done"]).ok().stdout;

    assert_says(&done, &["held: we-a@1", "it does not move main", "main.lock"]);
    let pushes = fs::read_to_string(town.stage("pushes")).unwrap().lines().count();
    assert_eq!(pushes, 3);
    assert_eq!((worker.state().as_str(), town.landed("main").len()), ("done", 1));
    fs::remove_file(&lock).unwrap();
    town.gt(["mq", "retry", "we-a"]).ok();
    town.gt(["mq", "run"]).ok();
    assert_eq!(
        (town.show("we-a")["status"].clone(), town.landed("main").len()),
        ("closed".into(), 2)
    );
}

#[test]
fn an_origin_that_does_not_want_it_says_why() {
    let town = town_with_project(STAYS);
    town.origin_hook("pre-receive", "echo 'sign the agreement first'; [ -e \"$stage/signed\" ]");
    let worker = Worker::begin(&town, "we-a", &[]);
    worker.commit("tea", "tea\n", "Tea");

    let done = worker.gt(&["done"]).ok().stdout;

    assert_says(&done, &["held: we-a@1: origin refused", "sign the agreement first"]);
    assert_says(&town.gt(["why", "we-a"]).ok().stdout, &["has not landed", "sign the agreement"]);
    assert_eq!((worker.state(), town.landed("main").len()), ("done".to_owned(), 1));
    // Nothing is done again: it lands when the origin takes it.
    town.allow("signed");
    town.gt(["mq", "retry", "we-a"]).ok();
    town.gt(["mq", "run"]).ok();
    assert_eq!(town.landed("main"), ["First commit", "Tea"]);
    assert_eq!(town.states("we-a"), ["done"]);
}

#[test]
fn an_origin_that_is_away_is_waited_for() {
    let town = town_with_project(STAYS);
    let workers = [Worker::begin(&town, "we-a", &[]), Worker::begin(&town, "we-b", &[])];
    workers[0].commit("tea", "tea\n", "Tea");
    workers[1].commit("milk", "milk\n", "Milk");
    town.origin_is_there(false);

    for worker in &workers {
        let done = worker.gt(&["done"]).ok().stdout;
        assert_says(&done, &["held", "origin unreachable", "origin.git"]);
        assert_eq!(worker.state(), "done");
    }
    // Their work is neither lost nor done again: it waits.
    for worker in &workers {
        worker.wait_until_gone();
    }
    town.cycle().ok();
    assert_eq!(town.show("we-a")["status"], "in_progress");

    town.origin_is_there(true);
    for bead in ["we-a", "we-b"] {
        town.gt(["mq", "retry", bead]).ok();
    }
    town.gt(["mq", "run"]).ok();
    assert_eq!(town.landed("main"), ["First commit", "Tea", "Milk"]);
    for bead in ["we-a", "we-b"] {
        assert_eq!(town.show(bead)["status"], "closed");
        assert_eq!(town.states(bead), ["done"]);
    }
}

#[test]
fn a_command_that_is_done_while_the_origin_is_away_is_not_done_again() {
    let town = town_with_project("wait_for go; echo tea > tea");
    town.bead("we-a", &[]);
    town.gt(["sling", "we-a"]).ok();
    town.wait_for_agent("we-a#1");
    town.origin_is_there(false);
    let supervisor = town.supervisor_of("we-a#1");
    town.allow("go");
    wait_until("its supervisor has ended", || !is_alive(&supervisor));

    town.cycle().ok();
    assert_eq!(town.states("we-a"), ["done"]);
    assert_eq!(town.reasons("we-a"), ["held"]);
    town.origin_is_there(true);
    town.gt(["mq", "retry", "we-a"]).ok();
    town.gt(["mq", "run"]).ok();

    assert_eq!(town.landed("main"), ["First commit", "we-a"]);
    assert_eq!(town.story(), ["+ we-a#1", "- we-a#1"]);
}

/// A worker whose `gt done` was killed in this hook of the origin, which then did the rest of it.
pub(crate) fn cut_off<'t>(town: &'t Sandbox, hook: &str, then: &str) -> Worker<'t> {
    let worker = Worker::begin(town, "we-a", &[]);
    worker.commit("tea", "tea\n", "Tea");
    // Not a plain step forward, so that what is pushed is another commit than what was accepted.
    town.person_lands("other", "other\n");
    let then = format!("touch \"$stage/hook-is-over\"; {then}");
    town.origin_hook(hook, &kills_the_pusher(&then));
    assert_ne!(worker.gt(&["done"]).code, 0);
    wait_until("the push is over", || town.stage("hook-is-over").exists());
    assert_eq!(worker.state(), "done");
    worker
}

#[test]
fn work_whose_processes_die_after_the_push_lands_once() {
    let expected = ["First commit", "A person changes other", "Tea"];

    // All processes die: the next cycle finds it there.
    let town = town_with_project(STAYS);
    cut_off(&town, "post-receive", "").kill_all();
    town.person_lands("more", "more\n");
    town.cycle().ok();
    assert_eq!(town.landed("main")[..3], expected);
    assert_eq!((town.landed("main").len(), town.states("we-a")), (4, vec!["done".to_owned()]));
    assert_eq!(town.show("we-a")["status"], "closed");

    // The agent dies: its supervisor finds it there.
    let town = town_with_project(STAYS);
    cut_off(&town, "post-receive", "");
    town.signal("KILL", &town.agent_of("we-a"));
    town.assert_quiet();
    assert_eq!(
        (town.landed("main"), town.states("we-a")),
        (expected.map(str::to_owned).to_vec(), vec!["done".to_owned()])
    );

    // No other process dies: the next cycle finds it there, and the worker cannot do it twice.
    let town = town_with_project(STAYS);
    let worker = cut_off(&town, "post-receive", "");
    assert_says(&refusal(&worker.gt(&["done"])), &["we-a#1 is done already"]);
    town.cycle().ok();
    assert_eq!(
        (town.landed("main"), town.show("we-a")["status"].clone()),
        (expected.map(str::to_owned).to_vec(), json!("closed"))
    );
}

#[test]
fn work_whose_processes_die_before_the_push_arrives_lands_once() {
    let expected = ["First commit", "A person changes other", "Tea"];
    let town = town_with_project(STAYS);
    let worker = cut_off(&town, "pre-receive", "exit 1");
    assert_eq!(town.landed("main").len(), 2);
    worker.kill_all();

    town.cycle().ok();

    assert_eq!(town.landed("main"), expected);
    assert_eq!(
        (worker.state(), town.show("we-a")["status"].clone()),
        ("done".to_owned(), json!("closed"))
    );
}

#[test]
fn a_kept_branch_does_not_land_after_a_crash() {
    let town = town_with_project(STAYS);
    let worker = Worker::begin(&town, "we-a", &["--no-merge"]);
    worker.commit("tea", "tea\n", "Tea");
    let then = "touch \"$stage/hook-is-over\"";
    town.origin_hook("post-receive", &kills_the_pusher(then));
    worker.gt(&["done"]);
    wait_until("the push is over", || town.stage("hook-is-over").exists());
    worker.kill_all();

    town.cycle().ok();

    assert_eq!(worker.state(), "done");
    assert_eq!(town.landed(&worker.branch), ["First commit", "Tea"]);
    assert_eq!(town.landed("main"), ["First commit"]);
}

#[test]
fn a_supervisor_that_dies_during_gt_done_changes_nothing() {
    let town = town_with_project("echo tea > tea; gt done > $stage/said; wait_for \"end-$bead\"");
    let waits = "touch \"$stage/pushing\"; while [ ! -e \"$stage/go\" ]; do sleep 0.02; done";
    town.origin_hook("pre-receive", waits);
    town.bead("we-a", &[]);
    town.gt(["sling", "we-a"]).ok();
    wait_until("it pushes", || town.stage("pushing").exists());

    town.signal("KILL", &town.supervisor_of("we-a#1"));
    town.cycle().ok();
    assert_eq!(town.states("we-a"), ["done"], "its work is accepted");
    assert_eq!(town.landed("main"), ["First commit"]);
    town.allow("go");

    // Its supervisor carried the command out, so the next pass brings it to its end.
    wait_until("the bead is closed", || {
        town.cycle();
        town.show("we-a")["status"] == "closed"
    });
    assert_eq!(town.landed("main"), ["First commit", "we-a"]);
    // Only a run that needs its worktree ends its agent.
    let agent = town.agent_of("we-a");
    assert!(is_alive(&agent));
    project_agent(&town, "echo milk > milk");
    town.bead("we-b", &[]);
    let _ = town.gt(["sling", "we-b"]);
    wait_until("the agent is ended", || !is_alive(&agent));
    wait_until("the other has landed", || {
        town.cycle();
        town.show("we-b")["status"] == "closed"
    });
    assert_eq!(town.landed("main"), ["First commit", "we-a", "we-b"]);
}
