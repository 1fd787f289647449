//! Workers damage the repository that they share, by mistake or on purpose, and no work is lost.

use std::fs;

use gt_testkit::wait_until;

use crate::projects::{Origin as _, STAYS, Worker, town_with_project};
use crate::support::{Steps as _, assert_says, town};
use crate::trees::{Trees as _, git, town_with_trees};

#[test]
fn settings_of_a_worker_send_no_landing_elsewhere() {
    let town = town_with_project(STAYS);
    let origin = town.root().join("origin.git");
    let elsewhere = town.root().join("elsewhere.git");
    let clone = town.command("git").args(["clone", "--quiet", "--bare"]);
    clone.arg(&origin).arg(&elsewhere).run().ok();
    let (origin, elsewhere) = (origin.to_str().unwrap(), elsewhere.to_str().unwrap());
    let first = Worker::begin(&town, "we-a", &[]);
    first.git(&["config", &format!("url.{elsewhere}.insteadOf"), origin]).ok();
    first.git(&["config", "core.fileMode", "false"]).ok();
    first.git(&["update-index", "--assume-unchanged", "README.md"]).ok();
    let excludes = town.write("excludes", "*\n");
    first.git(&["config", "core.excludesFile", excludes.to_str().unwrap()]).ok();
    first.write("README.md", "changed\n");
    first.write("tea", "tea\n");

    assert_says(&first.gt(&["done"]).ok().stdout, &["landed on main as"]);

    assert_eq!(town.show("we-a")["status"], "closed");
    assert_eq!(town.landed_file("tea").as_deref(), Some("tea\n"));
    assert_eq!(town.landed_file("README.md").as_deref(), Some("changed\n"));
    let elsewhere = git(&town, elsewhere.as_ref(), &["log", "--format=%s", "main"]);
    assert_eq!(elsewhere, "First commit");
}

#[test]
fn a_rig_goes_on_when_a_worker_has_broken_the_shared_repository() {
    let breaks = [
        "git config core.repositoryformatversion 1; git config extensions.evil true",
        ": > \"$GT_TOWN_ROOT/web/.repo.git/config\"",
    ];
    for broken in breaks {
        let town = town_with_trees("process");
        town.script("we-1", &format!("echo one > one.txt; {broken}"));
        town.script("we-2", "echo two > two.txt; git log -1 > seen.log");

        assert_eq!(town.work("we-1", &[]), "done", "{broken}");
        assert_eq!(town.work("we-2", &[]), "done", "{broken}");

        let origin = town.root().join("origin.git");
        let landed = git(&town, &origin, &["ls-tree", "--name-only", "main"]);
        assert_says(&landed, &["one.txt", "two.txt"]);
        town.gt(["doctor"]).ok();
    }
}

#[test]
fn work_lands_although_its_worker_has_damaged_the_packed_references() {
    let town = town_with_trees("process");
    let damage =
        "git pack-refs --all; echo nonsense >> \"$GT_TOWN_ROOT/web/.repo.git/packed-refs\"";
    town.script("we-1", &format!("echo one > one.txt; {damage}"));

    assert_eq!(town.work("we-1", &[]), "done");

    let origin = town.root().join("origin.git");
    assert_says(&git(&town, &origin, &["ls-tree", "--name-only", "main"]), &["one.txt"]);
    town.gt(["doctor"]).ok();
}

#[test]
fn a_missing_repository_is_named_by_status_and_doctor_and_made_again() {
    let town = town_with_trees("process");
    town.script("we-1", "echo one > one.txt");
    town.script("we-2", "echo two > two.txt");
    assert_eq!(town.work("we-1", &[]), "done");

    fs::remove_dir_all(town.shared()).unwrap();
    assert_says(&town.gt(["status"]).ok().stdout, &["the repository of the rig web is damaged"]);
    let doctor = town.gt(["doctor"]);
    assert_ne!(doctor.code, 0, "{doctor}");
    assert_says(&doctor.stdout, &["web/.repo.git"]);

    assert_eq!(town.work("we-2", &[]), "done");
    wait_until("the rig is whole", || town.gt(["doctor"]).code == 0);
}

#[test]
fn a_repository_with_long_hashes_is_worked_in() {
    let town = town();
    let seed = town.root().join("seed");
    town.make_dir(&seed);
    git(&town, &seed, &["init", "--quiet", "--initial-branch=main", "--object-format=sha256"]);
    fs::write(seed.join("README.md"), "read\n").unwrap();
    git(&town, &seed, &["add", "--all"]);
    git(&town, &seed, &["commit", "--quiet", "--message", "First commit"]);
    let clone = town.command("git").args(["clone", "--quiet", "--bare"]);
    clone.arg(&seed).arg(town.root().join("origin.git")).run().ok();
    town.gt(["rig", "add", "web", "../origin.git", "--executor", "process"]).ok();
    town.gt(["config", "set", "rig.web.command", "sh -c 'echo tea > tea'"]).ok();
    town.create("Boil water", &["--id", "we-a", "--force"]);

    town.gt(["sling", "we-a"]).ok();
    wait_until("the bead is closed", || town.show("we-a")["status"] == "closed");

    assert_eq!(town.landed("main"), ["First commit", "Boil water"]);
}

#[test]
fn a_branch_must_have_the_name_of_a_branch() {
    let town = town();
    town.git_repository("project");
    for name in ["", "a..b", "-x", "a b", "x.lock", "a//b", "HEAD", "@{1}", "end."] {
        let branch = format!("--branch={name}");
        let added = town.gt(["rig", "add", "web", "../project", &branch]);
        assert_ne!(added.code, 0, "{name:?}: {added}");
        assert_says(&added.stderr, &["is not the name of a branch"]);
    }
}
