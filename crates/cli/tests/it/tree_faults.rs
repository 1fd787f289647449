//! A process may die at any moment: no line that a worker wrote is lost. It is in its worktree, in the trash, or saved.

use std::fs;
use std::path::PathBuf;

use gt_testkit::{Sandbox, wait_until};

use crate::agents::Stage as _;
use crate::support::{Steps as _, assert_says, files_in, texts};
use crate::trees::{Trees as _, WAIT, git, town_with_trees};

/// Everything that a worker wrote: in its tree, in the trash, or saved.
#[track_caller]
fn assert_not_lost(town: &Sandbox, bead: &str, file: &str, text: &str) {
    let mut places = vec![town.cwd().join("web/polecats")];
    places.push(town.cwd().join("web/.trash"));
    let found = places.iter().any(|place| {
        let words = ["-rlF", "--include", file, text];
        place.is_dir() && !town.command("grep").args(words).arg(place).run().stdout.is_empty()
    });
    let is_saved = || {
        let references =
            git(town, &town.shared(), &["for-each-ref", "--format=%(refname)", "refs/"]);
        references.lines().any(|reference| {
            let object = format!("{reference}:{file}");
            let shown = town.command("git").args(["show", &object]).dir(town.shared()).run();
            shown.stdout.contains(text)
        })
    };
    assert!(
        found || is_saved(),
        "{text:?} of {bead} is nowhere: {:?}\n{}\n{}",
        files_in(town.cwd().join("web")),
        town.gt(["run", "list", "--all", "--json"]).stdout,
        town.gt(["feed", "--limit", "0"]).stdout,
    );
}

#[test]
fn work_survives_the_death_of_worker_and_supervisor() {
    for executor in ["process", "tmux"] {
        let town = town_with_trees(executor);
        town.gt(["config", "set", "recovery.cooldown", "0s"]).ok();
        let victims = ["worker", "supervisor", "both"];
        for (number, victim) in victims.iter().enumerate() {
            let bead = format!("we-{number}");
            let text = format!("precious {executor} {victim}");
            // The second run of the same bead adds nothing.
            let script = format!(
                "echo $$ > \"$GT_TOWN_ROOT/worker.pid\"; echo $PPID > \"$GT_TOWN_ROOT/parent.pid\"\n\
                 case \"$GT_RUN\" in *'#1') ;; *) gt done --no-changes -m again; exit 0;; esac\n\
                 echo '{text}' > work.txt; echo '{text}' > build.log{WAIT}"
            );
            town.script(&bead, &script);
            town.begin(&bead);
            let process = |file: &str| fs::read_to_string(town.cwd().join(file)).unwrap();
            let (worker, parent) = (process("worker.pid"), process("parent.pid"));
            let all = format!("{} {}", worker.trim(), parent.trim());
            match *victim {
                "worker" => town.signal("KILL", worker.trim()),
                "supervisor" => town.signal("KILL", parent.trim()),
                _ => town.signal("KILL", &all),
            }
            town.signal("KILL", worker.trim());
            wait_until(&format!("{bead} was recovered after its {victim} was killed"), || {
                town.gt(["scheduler", "run"]).ok();
                town.states(&bead).first().is_some_and(|state| state == "done")
            });
            assert_not_lost(&town, &bead, "work.txt", &text);
            assert_not_lost(&town, &bead, "build.log", &text);
        }
    }
}

/// A `git` that stands before the real one on the path, and kills itself (and its parent process, if `caller`) once, when
/// it is asked for something that has `word` in it.
fn town_with_fragile_git(word: &str, caller: bool) -> (Sandbox, String) {
    let town = town_with_trees("process");
    let real = town.command("sh").args(["-c", "command -v git"]).run().ok().line().to_owned();
    let once = town.root().join("killed");
    let victims = if caller { "$PPID $$" } else { "$$" };
    town.make_dir("bin");
    town.write_script(
        "bin/git",
        &format!(
            "case \" $* \" in *' {word} '*) if mkdir '{}' 2>/dev/null; then\n\
             '{real}' \"$@\" & pid=$!; sleep 0.01; kill -9 $pid 2>/dev/null; kill -9 {victims}; fi;; esac\n\
             exec '{real}' \"$@\"",
            once.display()
        ),
    );
    let path = town.command("sh").args(["-c", "echo $PATH"]).run().ok().line().to_owned();
    let path = format!("{}:{path}", town.cwd().join("bin").display());
    (town, path)
}

#[test]
fn git_that_dies_in_the_middle_costs_a_try_and_no_work() {
    for caller in [false, true] {
        for word in ["worktree", "reset", "switch", "update-ref", "status", "commit-tree"] {
            let (town, path) = town_with_fragile_git(word, caller);
            let mut later = 0;
            // Its tree is clean afterwards, and used again.
            town.script("we-0", "echo zero > zero.txt");
            town.script("we-1", "echo precious-1 > work.txt; echo precious-1 > build.log; exit 1");
            town.script("we-2", "echo precious-2 > work.txt; exit 1");
            town.script("we-3", "echo precious-3 > other.txt");
            for bead in ["we-0", "we-1", "we-2", "we-3"] {
                let ran = town.start_gt(&["sling", bead]).env("PATH", &path).run();
                wait_until(&format!("{bead} has ended ({word}, {caller})\n{ran}"), || {
                    // The clock goes ahead, so that the test need not wait for the next try of a start.
                    later += 10;
                    let cycle = town.start_gt_later(&["scheduler", "run"], later);
                    let _ = cycle.env("PATH", &path).run();
                    town.show(bead)["status"] == "closed"
                });
            }
            assert_not_lost(&town, "we-1", "work.txt", "precious-1");
            assert_not_lost(&town, "we-1", "build.log", "precious-1");
            assert_not_lost(&town, "we-2", "work.txt", "precious-2");
            assert_not_lost(&town, "we-3", "other.txt", "precious-3");
            assert!(town.root().join("killed").exists(), "git {word} was never called");
            let doctor = town.gt(["doctor"]).stdout;
            assert!(!doctor.contains("being moved away"), "{word} {caller}\n{doctor}");
        }
    }
}

/// Another moment each time, from before anything has happened until after the worker has begun.
fn some_moment(round: u64) {
    std::thread::sleep(std::time::Duration::from_millis(round * 37 % 400));
}

#[test]
fn a_process_that_starts_work_may_be_killed_at_any_moment() {
    for (executor, rounds) in [("process", 14), ("tmux", 10)] {
        starts_are_killed(executor, rounds);
    }
}

fn starts_are_killed(executor: &str, rounds: u64) {
    let town = town_with_trees(executor);
    town.gt(["config", "set", "recovery.cooldown", "0s"]).ok();
    for round in 0..rounds {
        let bead = format!("we-{round}");
        // The first one fails and leaves something, so that every start finds a tree that has to be moved away.
        let text = format!("precious {round}");
        town.script(
            &bead,
            &format!("echo '{text}' >> work.txt; echo '{text}' > build.log; exit 1"),
        );
        let sling = town.start_gt(&["sling", &bead]).start();
        some_moment(round);
        sling.kill();
        wait_until(&format!("{bead} has ended"), || {
            let _ = town.gt(["sling", &bead]);
            let _ = town.gt(["scheduler", "run"]);
            town.show(&bead)["status"] == "closed"
        });
    }
    for round in 0..rounds {
        assert_not_lost(&town, "any", "work.txt", &format!("precious {round}"));
        assert_not_lost(&town, "any", "build.log", &format!("precious {round}"));
    }
    // Where something of a killed one is still at work, the next one goes elsewhere; but not every kill costs a place.
    let polecats = texts(&town.polecats(), "name");
    assert!(polecats.len() <= 4, "{polecats:?}");
}

#[test]
fn concurrent_nukes_take_no_tree_from_a_running_worker() {
    let town = town_with_trees("process");
    for round in 0..10 {
        let bead = format!("we-{round}");
        let text = format!("precious {round}");
        // The worker finds its own text in its worktree after a while.
        let script = format!(
            "echo '{text}' > work.txt; sleep 0.05; grep -q '{text}' work.txt && exit 1; exit 77"
        );
        town.script(&bead, &script);
        let sling = town.start_gt(&["sling", &bead]).start();
        let nukes: Vec<_> =
            (0..3).map(|_| town.start_gt(&["polecat", "nuke", "web/furiosa"]).start()).collect();
        some_moment(round);
        let mut nukes = nukes.into_iter();
        nukes.next().unwrap().kill();
        for nuke in nukes {
            let _ = nuke.wait();
        }
        let _ = sling.wait();
        wait_until(&format!("{bead} has ended"), || {
            let _ = town.gt(["scheduler", "run"]);
            town.show(&bead)["status"] == "closed"
        });
        assert_eq!(town.run_of(&bead)["exit_code"], 1, "{}", town.run_of(&bead));
    }
    town.gt(["scheduler", "run"]).ok();
    for round in 0..10 {
        assert_not_lost(&town, "any", "work.txt", &format!("precious {round}"));
    }
    let trash = town.trash();
    assert!(texts(&trash, "state").iter().all(|state| state == "kept"), "{trash}");
    for one in trash.as_array().unwrap() {
        let kept = town.cwd().join(one["path"].as_str().unwrap());
        assert!(kept.join("tree/.git").exists() && kept.join("git/HEAD").exists(), "{one}");
    }
}

/// A small file system at a directory, until it is dropped.
pub(crate) struct SmallDisk(PathBuf);

impl SmallDisk {
    /// With room for so many megabytes. Nothing where mounting is not allowed, and then it says so.
    #[expect(clippy::print_stderr, reason = "the log must show which test was skipped")]
    pub(crate) fn at(sandbox: &Sandbox, directory: PathBuf, megabytes: u32) -> Option<Self> {
        let size = format!("size={megabytes}m");
        let mount = sandbox.command("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]);
        if mount.arg(&directory).run().code == 0 {
            return Some(Self(directory));
        }
        eprintln!("not tried: mounting is not allowed here");
        None
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let sandbox = crate::support::nowhere();
        let _ = sandbox.command("umount").arg("-l").arg(&self.0).run();
    }
}

#[test]
fn a_disk_that_is_full_stops_the_work_and_loses_none() {
    let town = town_with_trees("process");
    let Some(_disk) = SmallDisk::at(&town, town.cwd().join("web"), 6) else { return };
    let fill = "head -c 30000000 /dev/zero > fill.log";
    town.script(
        "we-1",
        &format!("echo precious-1 > work.txt; echo precious-1 > build.log; {fill}; exit 1"),
    );
    town.script("we-2", "echo precious-2 > other.txt; exit 1");
    assert_eq!(town.work("we-1", &[]), "failed");
    assert_not_lost(&town, "we-1", "work.txt", "precious-1");
    // The next one cannot even begin, and says why.
    let ran = town.gt(["sling", "we-2"]);
    assert_says(&format!("{ran}"), &["No space left on device"]);
    assert_not_lost(&town, "we-1", "work.txt", "precious-1");
    assert_not_lost(&town, "we-1", "build.log", "precious-1");

    let find = town.command("find").arg(town.cwd().join("web"));
    find.args(["-name", "fill.log", "-delete"]).run().ok();
    town.gt(["scheduler", "clear", "--bead", "we-2"]).ok();
    assert_eq!(town.work("we-2", &[]), "failed");
    assert_not_lost(&town, "we-1", "work.txt", "precious-1");
    assert_not_lost(&town, "we-1", "build.log", "precious-1");
    assert_not_lost(&town, "we-2", "other.txt", "precious-2");
}

#[test]
fn a_tree_without_its_git_data_is_moved_away_and_made_again() {
    for lost in ["web/.repo.git", "web/.repo.git/worktrees"] {
        let town = town_with_trees("process");
        town.script("we-1", "echo one > one.txt");
        town.work("we-1", &[]);
        let kept = town.tree("furiosa").join("kept.log");
        fs::write(&kept, "not in git").unwrap();

        fs::remove_dir_all(town.cwd().join(lost)).unwrap();
        town.script("we-2", "echo two > two.txt");
        town.work("we-2", &[]);

        assert_eq!(town.run_of("we-2")["state"], "done", "without {lost}");
        assert_not_lost(&town, "we-1", "kept.log", "not in git");
    }
}
