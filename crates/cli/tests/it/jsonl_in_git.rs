//! `.beads/issues.jsonl` beside the code: kept current, merged by git, and taken over.

use std::fs;
use std::path::Path;

use gt_testkit::{FinishedProgram, Sandbox, wait_until};
use serde_json::Value;

use crate::support::{Steps as _, assert_says, nowhere, refusal};

/// How many beads each clone of the large merge changes.
const CHANGED_BEADS: usize = 200;

/// A repository with a town at its top that keeps its file current.
fn repository(name: &str) -> Sandbox {
    let place = nowhere();
    let repo = place.in_dir(place.git_repository(name));
    repo.bd(["init", "--prefix", "we"]).ok();
    repo.bd(["config", "set", "export.auto", "true"]).ok();
    repo
}

/// Git that finds our `bd`.
fn git(repo: &Sandbox, arguments: &[&str]) -> FinishedProgram {
    let programs = repo.bd_path().parent().map(Path::to_owned).unwrap();
    repo.command("git").args(arguments).path_first(programs).run()
}

fn file(repo: &Sandbox) -> String {
    fs::read_to_string(repo.cwd().join(".beads/issues.jsonl")).unwrap_or_default()
}

fn records(repo: &Sandbox) -> Vec<Value> {
    file(repo).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn the_file_follows_each_change_sorted_and_stable() {
    let repo = repository("repo");
    repo.bead("we-b", &[]);
    repo.bead("we-a", &[]);
    wait_until("both beads are in the file", || records(&repo).len() == 2);
    assert_eq!(records(&repo)[0]["id"], "we-a");
    assert_eq!(
        repo.bd(["sync"]).ok().line(),
        format!("{} is current", repo.cwd().join(".beads/issues.jsonl").display())
    );
    let before = file(&repo);
    // The same content again: nothing is written.
    repo.bd(["config", "set", "other", "1"]).ok();
    repo.bd(["sync"]).ok();
    assert_eq!(file(&repo), before);
    repo.bd(["update", "we-a", "--title", "New"]).ok();
    wait_until("the change is in the file", || file(&repo).contains("\"New\""));
    // Another clone may get the same labels in another order, and its line is the same.
    for label in ["z", "b"] {
        repo.bd(["label", "add", "we-a", label]).ok();
    }
    wait_until("the labels are in the file", || file(&repo).contains(r#"["b","z"]"#));
    let path = repo.cwd().join(".beads/issues.jsonl");
    let current = file(&repo);
    fs::write(&path, current.replace(r#"["b","z"]"#, r#"["z","b"]"#)).unwrap();
    repo.bd(["sync"]).ok();
    assert_eq!(file(&repo), current);
}

#[test]
fn a_file_that_git_changed_is_not_overwritten_but_taken_over() {
    let repo = repository("repo");
    repo.bead("we-a", &[]);
    wait_until("the bead is in the file", || records(&repo).len() == 1);
    let path = repo.cwd().join(".beads/issues.jsonl");
    let foreign = r#"{"id":"we-z","title":"From a clone","updated_at":"2026-01-01T00:00:00Z"}"#;
    fs::write(&path, format!("{}{foreign}\n", file(&repo))).unwrap();

    let said = refusal(&repo.start_bd(&["export", "--watch"]).run());
    assert_says(&said, &["was changed by git or another program", "bd sync"]);
    let synced = repo.bd(["sync"]).ok();
    assert_says(&synced.stdout, &["Took over 1 new bead"]);
    assert_eq!(repo.show("we-z")["title"], "From a clone");
    assert_eq!(records(&repo).len(), 2);

    // Older than the store: the store keeps its own, and the file gets it back.
    repo.bd(["update", "we-z", "--title", "Newer"]).ok();
    wait_until("the change is in the file", || file(&repo).contains("Newer"));
    fs::write(&path, format!("{foreign}\n")).unwrap();
    repo.bd(["sync"]).ok();
    assert_eq!(repo.show("we-z")["title"], "Newer");
    assert_eq!(records(&repo).len(), 2);

    fs::write(&path, "<<<<<<< ours\n{\"id\":\"we-a\"}\n").unwrap();
    assert_says(&refusal(&repo.start_bd(&["sync"]).run()), &["line 1 is a conflict marker"]);
    fs::write(&path, "{\"id\":\"we-a\",\"title\":\"a\"}\n{\"id\":\"we-b\",\"ti").unwrap();
    let said = refusal(&repo.start_bd(&["sync"]).run());
    assert_says(&said, &["issues.jsonl:2:", "nothing was taken over", "git checkout -- "]);
    assert!(file(&repo).ends_with("\"ti"), "the file stays as it is");
}

#[test]
fn a_town_elsewhere_keeps_the_file_in_the_repository_of_its_rig() {
    let place = nowhere();
    let repo = place.in_dir(place.git_repository("repo"));
    let town = place.root().join("town");
    repo.gt(["install", town.to_str().unwrap()]).ok();
    place.in_dir(&town).gt(["rig", "add", "web", repo.cwd().to_str().unwrap()]).ok();

    let set = repo.bd(["config", "set", "export.auto", "true"]).ok();

    assert_says(&set.stderr, &["export.path = ", "repo/.beads/issues.jsonl"]);
    repo.bd(["create", "From the repository"]).ok();
    wait_until("the bead is in the file", || records(&repo).len() == 1);
    assert!(!town.join(".beads/issues.jsonl").exists());
    let at = repo.cwd().join(".beads/issues.jsonl").display().to_string();
    assert_says(&repo.bd(["sync"]).ok().stdout, &[&at, "is current"]);

    let other = refusal(&repo.bd(["config", "set", "export.path", "/etc/profile"]));
    assert_says(&other, &["does not end in .beads/issues.jsonl"]);
    // A directory of another machine is not made here.
    repo.bd(["config", "set", "export.path", "/nonexistent/repo/.beads/issues.jsonl"]).ok();
    assert_says(&refusal(&repo.bd(["sync"])), &["does not exist on this machine", "export.path"]);
    assert!(!Path::new("/nonexistent").exists());
}

#[test]
fn a_file_that_was_there_before_the_setting_is_kept_current() {
    let place = nowhere();
    let repo = place.in_dir(place.git_repository("repo"));
    repo.bd(["init", "--prefix", "we"]).ok();
    repo.bead("we-a", &[]);
    repo.bd(["export", "-o", ".beads/issues.jsonl"]).ok();
    assert_says(&refusal(&repo.bd(["config", "set", "export.auto", "maybe"])), &["yes or no"]);

    let set = repo.bd(["config", "set", "export.auto", "True"]).ok();

    assert_says(&set.stderr, &["took over 0 new beads"]);
    repo.bead("we-b", &[]);
    wait_until("the new bead is in the file", || records(&repo).len() == 2);
    // A commit right after a change has it, although the file follows a moment later.
    repo.bead("we-c", &[]);
    repo.bd(["hooks", "run", "pre-commit"]).ok();
    assert_eq!(records(&repo).len(), 3);

    fs::write(repo.cwd().join(".beads/issues.jsonl"), "").unwrap();
    let found = repo.bd(["doctor", "--check", "export"]).ok();
    assert_says(&found.stdout, &["was changed by git or another program", "bd sync"]);
    repo.bd(["sync"]).ok();
    assert_says(&repo.bd(["doctor", "--check", "export"]).ok().stdout, &["is kept current"]);
}

#[test]
fn the_driver_replaces_ordinary_files_alone() {
    let repo = repository("repo");
    for name in ["base", "theirs"] {
        fs::write(repo.cwd().join(name), "").unwrap();
    }
    let link = repo.cwd().join("link");
    std::os::unix::fs::symlink("/dev/null", &link).unwrap();

    let refused = repo.bd(["merge-driver", "base", "link", "theirs"]);

    assert_says(&refusal(&refused), &["is no ordinary file"]);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
}

#[test]
fn a_change_to_what_a_clock_that_was_ahead_wrote_reaches_the_other_clone() {
    let (one, other) = (repository("one"), repository("other"));
    let ahead = r#"{"id":"we-z","title":"Ahead","created_at":"2026-01-01T00:00:00Z","updated_at":"2099-01-01T00:00:00Z"}"#;
    let path = |repo: &Sandbox| repo.cwd().join(".beads/issues.jsonl");
    for repo in [&one, &other] {
        fs::create_dir_all(repo.cwd().join(".beads")).unwrap();
        fs::write(path(repo), format!("{ahead}\n")).unwrap();
        repo.bd(["sync"]).ok();
    }
    one.bd(["update", "we-z", "--title", "Later"]).ok();
    wait_until("the change is in the file", || file(&one).contains("Later"));

    fs::copy(path(&one), path(&other)).unwrap();
    other.bd(["sync"]).ok();

    assert_eq!(other.show("we-z")["title"], "Later");
    assert_eq!(file(&other), file(&one));
}

#[test]
fn the_driver_is_installed_in_repositories_alone() {
    let place = nowhere();
    assert_says(
        &refusal(&place.start_bd(&["merge-driver", "--install"]).run()),
        &["in no git repository"],
    );
    let plain = place.in_dir(place.git_repository("plain"));
    plain.bd(["hooks", "install"]).ok();
    assert!(
        !plain.cwd().join(".gitattributes").exists(),
        "a repository that keeps no file is left alone"
    );
    let repo = repository("repo");
    repo.bd(["hooks", "install"]).ok();
    let attributes = fs::read_to_string(repo.cwd().join(".gitattributes")).unwrap();
    assert_eq!(attributes, ".beads/issues.jsonl merge=beads\n");
    repo.bd(["merge-driver", "--install"]).ok();
    assert_eq!(fs::read_to_string(repo.cwd().join(".gitattributes")).unwrap(), attributes);
    assert_says(
        &git(&repo, &["config", "merge.beads.driver"]).ok().stdout,
        &["bd merge-driver %O %A %B"],
    );
}

/// A line for a bead with a title and notes.
fn line(number: usize, title: &str, notes: &str, at: &str) -> String {
    format!(
        r#"{{"id":"we-{number:03}","title":"{title} {number}","notes":"{notes}","status":"open","priority":2,"x_unknown":{number},"updated_at":"{at}"}}"#
    ) + "\n"
}

#[test]
fn git_merges_two_clones_with_two_hundred_changed_beads_both_ways() {
    let place = nowhere();
    let origin = place.in_dir(place.git_repository("origin"));
    origin.bd(["merge-driver", "--install"]).ok();
    origin.make_dir(origin.cwd().join(".beads"));
    let all = |title: &str, notes: &str, at: &str| -> String {
        let lines: Vec<String> =
            (0..CHANGED_BEADS).map(|number| line(number, title, notes, at)).collect();
        lines.concat()
    };
    let path = |repo: &Sandbox| repo.cwd().join(".beads/issues.jsonl");
    fs::write(path(&origin), all("Title", "none", "2026-01-01T00:00:00Z")).unwrap();
    git(&origin, &["add", "--all"]).ok();
    git(&origin, &["commit", "--quiet", "-m", "Beads"]).ok();
    let clones = ["one", "two"].map(|name| {
        let target = place.root().join(name);
        git(&origin, &["clone", "--quiet", ".", target.to_str().unwrap()]).ok();
        let clone = place.in_dir(&target);
        clone.bd(["merge-driver", "--install"]).ok();
        clone
    });
    let [one, two] = &clones;
    // One changes all titles, the other all notes; bead 7 gets two titles.
    fs::write(path(one), all("One", "none", "2026-01-02T00:00:00Z")).unwrap();
    let theirs = all("Title", "two", "2026-01-03T00:00:00Z").replace("\"Title 7\"", "\"Two 7\"");
    fs::write(path(two), theirs).unwrap();
    for clone in &clones {
        git(clone, &["commit", "--quiet", "--all", "-m", "Changes"]).ok();
    }

    let merge = |into: &Sandbox, from: &Sandbox| {
        git(into, &["fetch", "--quiet", from.cwd().to_str().unwrap(), "main"]).ok();
        git(into, &["merge", "--quiet", "--no-edit", "FETCH_HEAD"]).ok();
    };
    let before = git(one, &["rev-parse", "main"]).ok().line().to_owned();
    merge(one, two);
    git(one, &["branch", "merged"]).ok();
    let aside = place.root().join("aside");
    git(one, &["clone", "--quiet", ".", aside.to_str().unwrap()]).ok();
    let aside = place.in_dir(&aside);
    git(&aside, &["reset", "--quiet", "--hard", &before]).ok();
    merge(two, &aside);

    assert_eq!(file(one), file(two), "the direction of the merge does not matter");
    let merged = records(one);
    assert_eq!(merged.len(), CHANGED_BEADS);
    for (number, record) in merged.iter().enumerate() {
        let title = if number == 7 { "Two 7".to_owned() } else { format!("One {number}") };
        assert_eq!(
            (record["title"].as_str().unwrap(), &record["notes"]),
            (title.as_str(), &"two".into())
        );
        assert_eq!(record["x_unknown"], number);
    }
    assert_says(&merged[7]["comments"].to_string(), &["bd merge-driver", "changed title", "One 7"]);

    // A town takes the result over.
    one.bd(["init", "--prefix", "we"]).ok();
    one.bd(["import", ".beads/issues.jsonl"]).ok();
    assert_eq!(one.show("we-011")["notes"], "two");
}

#[test]
fn a_merged_file_is_what_the_next_export_would_write() {
    let place = nowhere();
    let one = repository("one");
    for id in ["we-a", "we-b", "we-c", "we-d"] {
        one.bead(id, &[]);
    }
    one.bd(["merge-driver", "--install"]).ok();
    one.bd(["sync"]).ok();
    git(&one, &["add", "--all"]).ok();
    git(&one, &["commit", "--quiet", "-m", "Beads"]).ok();
    let directory = place.root().join("two");
    one.command("git").args(["clone", "--quiet", "."]).arg(&directory).run().ok();
    let two = place.in_dir(&directory);
    two.bd(["init", "--prefix", "we"]).ok();
    two.bd(["config", "set", "export.auto", "true"]).ok();
    two.bd(["merge-driver", "--install"]).ok();
    for (clone, name, status) in [(&one, "one", "in_progress"), (&two, "two", "closed")] {
        clone.bd(["update", "we-a", "--title", name, "--add-label", name]).ok();
        clone.bd(["update", "we-b", "--status", status, "--add-label", "both"]).ok();
        clone.bd(["comment", "we-c", &format!("from {name}")]).ok();
        clone.bd(["dep", "add", "we-d", if name == "one" { "we-a" } else { "we-c" }]).ok();
        clone.bd(["sync"]).ok();
        git(clone, &["commit", "--quiet", "--all", "-m", name]).ok();
    }

    git(&one, &["fetch", "--quiet", directory.to_str().unwrap(), "main"]).ok();
    git(&one, &["merge", "--quiet", "--no-edit", "FETCH_HEAD"]).ok();
    let merged = file(&one);
    one.bd(["sync"]).ok();

    assert_eq!(file(&one), merged);
    assert_eq!(git(&one, &["status", "--porcelain", "--untracked-files=no"]).ok().stdout, "");
    assert_eq!(one.show("we-a")["comment_count"], 1, "the title that lost");
    assert_eq!(one.show("we-d")["dependency_count"], 2);
}

#[test]
fn a_merge_that_cannot_be_done_leaves_our_side_and_a_conflict() {
    let place = nowhere();
    let [base, ours, theirs] = ["base", "ours", "theirs"].map(|name| place.cwd().join(name));
    fs::write(&base, "").unwrap();
    fs::write(&ours, "{\"id\":\"a\"}\n").unwrap();
    fs::write(&theirs, "{\"id\":\"a\"}\n{\"id\":\"a\"}\n").unwrap();
    let files = [&base, &ours, &theirs].map(|path| path.to_str().unwrap().to_owned());
    let mut arguments = vec!["merge-driver"];
    arguments.extend(files.iter().map(String::as_str));
    let said = refusal(&place.start_bd(&arguments).run());
    assert_says(&said, &["our side stays", "their side has a twice, on lines 1 and 2"]);
    assert_eq!(fs::read_to_string(&ours).unwrap(), "{\"id\":\"a\"}\n");
}

#[test]
fn a_bead_that_one_clone_deleted_does_not_come_back_from_the_other() {
    let repo = repository("repo");
    for id in ["we-a", "we-b", "we-c"] {
        repo.bead(id, &[]);
    }
    repo.bead("we-w", &["--deps", "we-a"]);
    wait_until("the beads are in the file", || records(&repo).len() == 4);
    let path = repo.cwd().join(".beads/issues.jsonl");
    let before = file(&repo);
    repo.bd(["delete", "we-a", "--force"]).ok();
    wait_until("the deletion is in the file", || records(&repo)[0]["status"] == "tombstone");
    let with_tombstone = file(&repo);

    // The other clone still has the bead, as it was: the deletion counts.
    fs::write(&path, &before).unwrap();
    let synced = repo.json(&["sync"]);
    assert_eq!((&synced["created"], &synced["kept"]), (&0.into(), &2.into()));
    assert_says(&refusal(&repo.bd(["show", "we-a"])), &["no issue found"]);
    assert_eq!(
        repo.json(&["blocked"]),
        Value::Array(Vec::new()),
        "nothing waits for a bead that is gone"
    );
    assert_eq!(file(&repo), with_tombstone);
    // A change that is later than the deletion brings it back.
    let changed = r#"{"id":"we-a","title":"Changed later","updated_at":"2200-01-01T00:00:00Z"}"#;
    let others: Vec<&str> = with_tombstone.lines().skip(1).collect();
    fs::write(&path, format!("{changed}\n{}\n", others.join("\n"))).unwrap();
    repo.bd(["sync"]).ok();
    assert_eq!(repo.show("we-a")["title"], "Changed later");

    // The other clone deleted two beads, and one was changed here since.
    let gone = |id: &str, at: &str| {
        format!(
            r#"{{"id":"{id}","title":"{id}","status":"tombstone","updated_at":"{at}","deleted_at":"{at}","x":1}}"#
        )
    };
    let deleted = [
        gone("we-b", "2200-01-01T00:00:00Z"),
        gone("we-c", "2020-01-01T00:00:00Z"),
        gone("we-never", "2200-01-01T00:00:00Z"),
    ];
    fs::write(&path, deleted.join("\n") + "\n").unwrap();
    assert_eq!(repo.json(&["sync"])["deleted"], 1);
    assert_says(&refusal(&repo.bd(["show", "we-b"])), &["no issue found"]);
    assert_eq!(repo.show("we-c")["status"], "open");
    // Deletions of other clones are passed on as they are.
    assert_says(&file(&repo), &[&deleted[0], &deleted[2]]);
    // An import alone takes nothing away, and brings back what the person asks for.
    repo.start_bd(&["import", "-"]).stdin(before).run().ok();
    assert_eq!(repo.show("we-b")["status"], "open");
    assert!(!repo.export().contains("tombstone"));
}
