//! Every worker has a tree of its own, and finds in it what it needs.

use std::fs;
use std::path::{Path, PathBuf};

use gt_testkit::{Sandbox, wait_until};
use serde_json::Value;

use crate::agents::{Stage as _, is_alive, wait_until_landed};
use crate::support::{Steps as _, assert_says, texts, town};

/// The end of an agent that may have had nothing to do: it says so, because a run without a change does not close quietly.
pub(crate) const SAYS_NO_CHANGES: &str = "
if [ -z \"$(git status --porcelain)\" ] && [ \"$(git rev-list --count HEAD --not --remotes)\" = 0 ]; then
    gt done --no-changes -m 'The test wants no change' > /dev/null
fi
";

/// A town with the rig `web` (prefix `we`) on the branch `main` of a repository that is called `origin.git` and
/// ignores `*.log`. [`Trees::script`] sets the script of its worker for a bead.
pub(crate) fn town_with_trees(executor: &str) -> Sandbox {
    let town = town();
    let seed = town.git_repository("seed");
    fs::write(seed.join(".gitignore"), "*.log\n").unwrap();
    git(&town, &seed, &["add", "--all"]);
    git(&town, &seed, &["commit", "--quiet", "--message", "Ignore logs"]);
    let origin = town.root().join("origin.git");
    let words = ["clone", "--quiet", "--bare"];
    town.command("git").args(words).arg(&seed).arg(&origin).run().ok();
    add_web(&town, &origin, executor);
    town
}

fn add_web(town: &Sandbox, origin: &Path, executor: &str) {
    let add = town.start_gt(&["rig", "add", "web"]).arg(origin);
    add.args(["--prefix", "we", "--executor", executor]).run().ok();
    town.make_dir("steps");
    let worker = town.write_script(
        "worker.sh",
        &format!(
            "steps=\"$GT_TOWN_ROOT/steps/$1.sh\"\nif [ -e \"$steps\" ]; then . \"$steps\"; fi\n{SAYS_NO_CHANGES}"
        ),
    );
    let command = format!("'{}' {{bead}}", worker.display());
    town.gt(["config", "set", "rig.web.command", &command]).ok();
    town.gt(["config", "set", "worker.kill_grace", "300ms"]).ok();
}

/// The output of git in a directory.
#[track_caller]
pub(crate) fn git(town: &Sandbox, directory: &Path, arguments: &[&str]) -> String {
    let answer = town.command("git").args(arguments).dir(directory).run().ok();
    answer.stdout.trim_end().to_owned()
}

#[test]
fn a_run_ends_with_the_directory_of_its_town_and_does_not_make_it_again() {
    let town = town_with_trees("process");
    town.script("we-a", "echo x > begun; while :; do sleep 0.05; done");
    town.begin("we-a");
    let supervisor = town.supervisor_of("we-a#1");

    // The supervisor may write a file meanwhile.
    wait_until("the town is gone", || {
        let _ = fs::remove_dir_all(town.cwd());
        !town.cwd().exists()
    });

    wait_until("its supervisor has ended", || !is_alive(&supervisor));
    assert!(!town.cwd().exists(), "the town was made again");
}

/// Steps of tests with worktrees.
pub(crate) trait Trees {
    /// A new bead whose worker does this; the first of the names it is known by.
    fn script(&self, bead: &str, script: &str);
    /// Slings a bead with these flags and waits until its run has ended; how it ended.
    fn work(&self, bead: &str, flags: &[&str]) -> String;
    /// Slings a bead and waits until its worker has begun and made the file `begun` in its tree.
    fn begin(&self, bead: &str);
    /// The tree of a polecat of `web`.
    fn tree(&self, polecat: &str) -> PathBuf;
    /// The repository that the trees of `web` share.
    fn shared(&self) -> PathBuf;
    /// The polecats of `web`.
    fn polecats(&self) -> Value;
    /// The worktrees in the trash.
    fn trash(&self) -> Value;
    /// The file as it is in what was saved of a run.
    fn rescued(&self, run: &str, file: &str) -> String;
}

impl Trees for Sandbox {
    #[track_caller]
    fn script(&self, bead: &str, script: &str) {
        self.write(&format!("steps/{bead}.sh"), script);
        self.bead(bead, &[]);
    }

    #[track_caller]
    fn work(&self, bead: &str, flags: &[&str]) -> String {
        self.start_gt(&["sling", bead]).args(flags).run().ok();
        wait_until(&format!("the run of {bead} has ended"), || {
            let state = self.run_of(bead)["state"].clone();
            !["starting", "running"].contains(&state.as_str().unwrap())
        });
        wait_until_landed(self);
        self.run_of(bead)["state"].as_str().unwrap().to_owned()
    }

    #[track_caller]
    fn begin(&self, bead: &str) {
        self.start_gt(&["sling", bead]).run().ok();
        let begun = || {
            let polecats = fs::read_dir(self.cwd().join("web/polecats")).unwrap().flatten();
            polecats.map(|home| home.path().join("rig/begun")).any(|file| file.exists())
        };
        wait_until(&format!("the worker of {bead} has begun"), begun);
    }

    fn tree(&self, polecat: &str) -> PathBuf {
        self.cwd().join("web/polecats").join(polecat).join("rig")
    }

    fn shared(&self) -> PathBuf {
        self.cwd().join("web/.repo.git")
    }

    #[track_caller]
    fn polecats(&self) -> Value {
        self.gt_json(&["polecat", "list", "--rig", "web"])
    }

    #[track_caller]
    fn trash(&self) -> Value {
        self.gt_json(&["polecat", "list", "--trash"])
    }

    #[track_caller]
    fn rescued(&self, run: &str, file: &str) -> String {
        let rescue = self.gt_json(&["rescue", "show", run]);
        let object = format!("{}:{file}", rescue["reference"].as_str().unwrap());
        git(self, &self.shared(), &["show", &object])
    }
}

/// A script that waits until the test says so, or is over.
pub(crate) const WAIT: &str = "\ntouch begun\nwhile [ -e \"$GT_TOWN_ROOT/.gt\" ] && [ ! -e \"$GT_TOWN_ROOT/go\" ]; do sleep 0.05; done\n";

#[test]
fn a_run_works_on_a_branch_of_its_own_and_an_idle_tree_is_used_again() {
    let town = town_with_trees("process");
    town.script("we-1", "pwd; git branch --show-current; echo one > one.txt; echo x > kept.log");
    town.script("we-2", "pwd; git branch --show-current; cat one.txt kept.log; echo two > two.txt");
    assert_eq!(town.work("we-1", &[]), "done");
    assert_eq!(town.work("we-2", &[]), "done");

    let printed = town.gt(["polecat", "log", "we-1"]).ok().stdout;
    let tree = town.tree("furiosa").display().to_string();
    assert_says(&printed, &[&tree, "polecat/furiosa/we-1@"]);
    // The second run found what the first one landed, and what it left that is ignored.
    let printed = town.gt(["polecat", "log", "web/furiosa"]).ok().stdout;
    assert_says(&printed, &[&tree, "polecat/furiosa/we-2@", "one\nx\n"]);
    assert_eq!(texts(&town.polecats(), "name"), ["furiosa"]);
    assert_eq!(town.trash().as_array().unwrap().len(), 0);
    let landed = git(&town, &town.root().join("origin.git"), &["ls-tree", "--name-only", "main"]);
    assert_says(&landed, &["one.txt", "two.txt"]);
}

#[test]
fn files_of_a_failed_run_are_saved_and_the_next_run_gets_a_clean_tree() {
    let town = town_with_trees("process");
    let mess = "echo changed >> README.md; echo new > new.txt; echo ignored > build.log; mkfifo pipe; exit 3";
    town.script("we-1", mess);
    town.script("we-2", "ls; git status --short");
    assert_eq!(town.work("we-1", &[]), "failed");
    assert_eq!(town.rescued("we-1", "new.txt"), "new");
    assert!(town.rescued("we-1#1", "README.md").ends_with("changed"));
    // The worktree stays as it is until a run needs it.
    assert!(town.tree("furiosa").join("new.txt").exists());

    assert_eq!(town.work("we-2", &[]), "done");
    assert_eq!(town.gt(["polecat", "log", "we-2"]).ok().stdout, "README.md\n");
    let trash = town.trash();
    assert_eq!(texts(&trash, "run"), ["we-1#1"]);
    let kept = town.cwd().join(trash[0]["path"].as_str().unwrap()).join("tree");
    for file in ["new.txt", "build.log", "pipe", "README.md"] {
        assert!(kept.join(file).symlink_metadata().is_ok(), "{file} in {}", kept.display());
    }
}

#[test]
fn commits_of_a_failed_run_are_saved_wherever_its_head_was() {
    let town = town_with_trees("process");
    let commit = "git add -A; git commit -qm own;";
    town.script("we-1", &format!("git switch -q --detach; echo a > a.txt; {commit} exit 1"));
    town.script("we-2", &format!("echo b > b.txt; {commit} echo c > c.txt; exit 1"));
    assert_eq!(town.work("we-1", &[]), "failed");
    assert_eq!(town.rescued("we-1", "a.txt"), "a");
    assert_eq!(town.work("we-2", &[]), "failed");
    assert_eq!(town.rescued("we-2", "b.txt"), "b");
    assert_eq!(town.rescued("we-2", "c.txt"), "c");
}

#[test]
fn repositories_inside_a_tree_keep_their_commits() {
    let town = town_with_trees("process");
    let library = town.git_repository("library");
    let script = format!(
        "git init -q nested; cd nested; echo n > n.txt; git add -A; git commit -qm nested; cd ..\n\
         git -c protocol.file.allow=always submodule --quiet add '{}' sub; git commit -qm sub\n\
         cd sub; echo s > s.txt; git add -A; git commit -qm inside; cd ..\n\
         exit 1",
        library.display()
    );
    town.script("we-1", &script);
    town.script("we-2", "");
    assert_eq!(town.work("we-1", &[]), "failed");
    let before = |inside: &str, tree: &Path| git(&town, &tree.join(inside), &["rev-parse", "HEAD"]);
    let tree = town.tree("furiosa");
    let (nested, sub) = (before("nested", &tree), before("sub", &tree));
    for commit in [&nested, &sub] {
        git(&town, &town.shared(), &["cat-file", "-e", commit]);
    }
    // Another run moves the tree away; it comes back as it was.
    assert_eq!(town.work("we-2", &[]), "done");
    town.gt(["polecat", "nuke", "web/furiosa"]).ok();
    town.gt(["polecat", "undelete", "#1"]).ok();
    assert_eq!((before("nested", &tree), before("sub", &tree)), (nested, sub));
    assert_eq!(git(&town, &tree.join("sub"), &["status", "--short"]), "");
}

#[test]
fn work_begins_from_the_branch_that_was_named() {
    let town = town_with_trees("process");
    let seed = town.root().join("seed");
    git(&town, &seed, &["switch", "--quiet", "-c", "next"]);
    fs::write(seed.join("next.txt"), "next\n").unwrap();
    git(&town, &seed, &["add", "--all"]);
    git(&town, &seed, &["commit", "--quiet", "--message", "Next"]);
    git(&town, &seed, &["push", "--quiet", "../origin.git", "next"]);
    town.script("we-1", "cat next.txt");
    assert_eq!(town.work("we-1", &["--base-branch", "next"]), "done");
    assert_eq!(town.gt(["polecat", "log", "we-1"]).ok().stdout, "next\n");

    town.bead("we-2", &[]);
    let ran = town.gt(["sling", "we-2", "--base-branch", "gone"]);
    assert_says(&format!("{ran}"), &["no branch gone", "--base-branch"]);
}

#[test]
fn a_run_begins_at_the_last_known_base_without_its_origin() {
    let town = town_with_trees("process");
    town.script("we-1", "exit 1");
    town.script("we-2", "echo two > two.txt; exit 1");
    let origin = town.root().join("origin.git");
    let away = town.root().join("away.git");
    fs::rename(&origin, &away).unwrap();
    let ran = town.gt(["sling", "we-1"]);
    assert_says(&format!("{ran}"), &["the repository of the rig web", "origin.git"]);
    fs::rename(&away, &origin).unwrap();
    town.gt(["scheduler", "clear", "--bead", "we-1"]).ok();
    assert_eq!(town.work("we-1", &[]), "failed");

    fs::rename(&origin, &away).unwrap();
    assert_eq!(town.work("we-2", &[]), "failed");
    assert_eq!(town.rescued("we-2", "two.txt"), "two");
}

#[test]
fn an_origin_that_was_never_reached_is_waited_for() {
    let town = town_with_trees("process");
    let (origin, away) = (town.root().join("origin.git"), town.root().join("away.git"));
    fs::rename(&origin, &away).unwrap();
    town.script("we-1", "echo one > one.txt");
    let ran = town.gt(["sling", "we-1"]);
    assert_says(&format!("{ran}"), &["the repository of the rig web", "origin.git"]);
    for _ in 0..4 {
        town.gt(["scheduler", "run"]).ok();
    }
    let why = town.why("we-1");
    assert_eq!(why["context"]["failures"], 0, "{why}");
    assert_says(&town.gt(["why", "we-1"]).ok().stdout, &["cannot reach", "origin.git"]);
    // Other worktrees have the same origin: no other polecat is tried.
    assert_eq!(texts(&town.polecats(), "name"), ["furiosa"]);

    fs::rename(&away, &origin).unwrap();
    wait_until("it has landed", || {
        town.gt(["scheduler", "run"]).ok();
        town.show("we-1")["status"] == "closed"
    });
    assert_says(&git(&town, &origin, &["ls-tree", "--name-only", "main"]), &["one.txt"]);
}

#[test]
fn a_rig_that_is_added_again_with_another_repository_lands_there() {
    let town = town_with_trees("process");
    town.script("we-1", "echo one > one.txt");
    assert_eq!(town.work("we-1", &[]), "done");
    let (seed, other) = (town.root().join("seed"), town.root().join("other.git"));
    fs::write(seed.join("other.txt"), "other\n").unwrap();
    git(&town, &seed, &["add", "--all"]);
    git(&town, &seed, &["commit", "--quiet", "--message", "Other"]);
    git(&town, &seed, &["clone", "--quiet", "--bare", ".", "../other.git"]);
    town.gt(["rig", "remove", "web"]).ok();
    add_web(&town, &other, "process");
    let away = town.root().join("away.git");
    fs::rename(&other, &away).unwrap();
    town.script("we-2", "cat other.txt; echo two > two.txt");
    // The fetched commits belong to the former repository, so no run begins with them.
    let ran = town.gt(["sling", "we-2"]);
    assert_says(&format!("{ran}"), &["the repository of the rig web", "other.git"]);
    fs::rename(&away, &other).unwrap();
    wait_until("it has landed", || {
        town.gt(["scheduler", "run"]).ok();
        town.show("we-2")["status"] == "closed"
    });

    assert_eq!(town.gt(["polecat", "log", "we-2"]).ok().stdout, "other\n");
    let landed = |at: &Path| git(&town, at, &["ls-tree", "--name-only", "main"]);
    assert_eq!(landed(&other), ".gitignore\nREADME.md\nother.txt\ntwo.txt");
    assert_eq!(landed(&town.root().join("origin.git")), ".gitignore\nREADME.md\none.txt");
}

#[test]
fn a_setup_command_and_an_overlay_come_before_the_worker() {
    let town = town_with_trees("process");
    town.write("overlay/.env", "SECRET=1\n");
    town.write("overlay/config/local file.toml", "x = 1\n");
    town.gt(["config", "set", "rig.web.overlay", "overlay"]).ok();
    town.gt(["config", "set", "rig.web.setup", "echo $GT_RIG-$GT_BRANCH > setup.log"]).ok();
    town.script("we-1", "cat .env 'config/local file.toml' setup.log; echo done > done.txt");
    assert_eq!(town.work("we-1", &[]), "done");
    let printed = town.gt(["run", "log", "we-1"]).ok().stdout;
    assert_says(&printed, &["SECRET=1\nx = 1\n", "web-polecat/furiosa/we-1@"]);
    let landed =
        git(&town, &town.root().join("origin.git"), &["ls-tree", "-r", "--name-only", "main"]);
    assert_eq!(landed, ".gitignore\nREADME.md\ndone.txt");

    // It is done for a tree that is used again, too; and what fails there is why the start failed.
    town.gt(["config", "set", "rig.web.setup", "echo first; echo no such compiler >&2; exit 4"])
        .ok();
    town.bead("we-2", &[]);
    let ran = town.gt(["sling", "we-2"]);
    assert_says(&format!("{ran}"), &["rig.web.setup failed", "4", "no such compiler"]);
    let shown = town.gt(["run", "show", "we-2"]).ok().stdout;
    assert_says(&shown, &["Setup of its tree", "  first\n  no such compiler\n"]);
    assert_eq!(town.gt_json(&["run", "show", "we-2"])["setup_output"], "first\nno such compiler\n");
    assert_eq!(town.gt(["run", "log", "we-2"]).ok().stdout, "first\nno such compiler\n");
    assert_says(&town.gt(["why", "we-2"]).ok().stdout, &["no such compiler", "gt run log we-2#1"]);
    town.gt(["config", "set", "rig.web.setup", "echo more >> README.md"]).ok();
    town.bead("we-3", &[]);
    let ran = town.gt(["sling", "we-3"]);
    assert_says(&format!("{ran}"), &["rig.web.setup changes README.md"]);
    town.gt(["config", "set", "rig.web.setup", ""]).ok();
    town.write("overlay/README.md", "mine\n");
    town.bead("we-4", &[]);
    let ran = town.gt(["sling", "we-4"]);
    assert_says(&format!("{ran}"), &["rig.web.overlay", "README.md is in the repository too"]);
    assert_eq!(texts(&town.polecats(), "name"), ["furiosa"]);
}

#[test]
fn ignored_files_that_a_checkout_names_are_in_every_tree() {
    let town = town();
    let checkout = town.git_repository("checkout");
    let files = [
        (".gitignore", ".env*\ncache/\n"),
        (".worktreeinclude", ".env*\n/cache/\nlink/\nnotes.txt\n"),
        (".env", "KEY=1\n"),
        ("app/.env.local", "KEY=2\n"),
        ("cache/a", "cached\n"),
        ("notes.txt", "not ignored\n"),
    ];
    for (path, text) in files {
        fs::create_dir_all(checkout.join(path).parent().unwrap()).unwrap();
        fs::write(checkout.join(path), text).unwrap();
    }
    git(&town, &checkout, &["add", ".gitignore", ".worktreeinclude"]);
    git(&town, &checkout, &["commit", "--quiet", "--message", "Name local files"]);
    add_web(&town, &checkout, "process");
    town.write("overlay/.env", "KEY=overlay\n");
    town.gt(["config", "set", "rig.web.overlay", "overlay"]).ok();
    town.gt(["rig", "check", "add", "web", "files", "cat .env cache/a"]).ok();
    let script =
        "cat .env app/.env.local cache/a; ls notes.txt; git status --porcelain; echo x > x.txt";
    town.script("we-1", script);
    assert_eq!(town.work("we-1", &[]), "done");
    wait_until_landed(&town);
    let printed = town.gt(["run", "log", "we-1"]).ok().stdout;
    assert_says(&printed, &["KEY=overlay\nKEY=2\ncached\n"]);
    assert!(printed.ends_with("No such file or directory\n"), "{printed}");
    let landed = git(&town, &checkout, &["ls-tree", "-r", "--name-only", "main"]);
    assert_eq!(landed, ".gitignore\n.worktreeinclude\nREADME.md\nx.txt");

    // The checkout of a rig whose origin is elsewhere is a setting.
    let other = town.git_repository("other");
    for (path, text) in
        [(".gitignore", ".env\n"), (".worktreeinclude", ".env\n"), (".env", "KEY=3\n")]
    {
        fs::write(other.join(path), text).unwrap();
    }
    town.gt(["config", "unset", "rig.web.overlay"]).ok();
    town.gt(["config", "set", "rig.web.checkout", &other.display().to_string()]).ok();
    town.script("we-2", "cat .env; echo y > y.txt");
    assert_eq!(town.work("we-2", &[]), "done");
    assert_eq!(town.gt(["run", "log", "we-2"]).ok().stdout, "KEY=3\n");
}

#[test]
fn each_tree_has_ports_of_its_own() {
    let town = town_with_trees("process");
    town.gt(["config", "set", "ports.base", "30000"]).ok();
    town.gt([
        "config",
        "set",
        "rig.web.setup",
        "echo setup $GT_PORT_BASE $GT_PORT_COUNT > setup.log",
    ])
    .ok();
    town.gt(["rig", "check", "add", "web", "port", "echo check $GT_PORT_BASE $GT_PORT_COUNT"]).ok();
    let works = "cat setup.log; echo agent $GT_PORT_BASE $GT_PORT_COUNT; echo x > begun; \
        while [ ! -e \"$GT_TOWN_ROOT/go\" ]; do sleep 0.05; done; rm begun; echo x > x.txt";
    town.script("we-1", works);
    town.script("we-2", works);
    town.begin("we-1");
    town.begin("we-2");
    town.write("go", "");
    wait_until_landed(&town);
    let printed = |run: &str| town.gt(["run", "log", run]).ok().stdout;
    assert_eq!(printed("we-1"), "setup 30000 10\nagent 30000 10\n");
    assert_eq!(printed("we-2"), "setup 30010 10\nagent 30010 10\n");
    let checked = town.gt(["rig", "check", "run", "main", "--rig", "web", "--json"]).ok().json();
    let log = fs::read_to_string(town.cwd().join(checked[0]["log"].as_str().unwrap())).unwrap();
    assert_says(&log, &["check 30020 10"]);

    town.gt(["config", "set", "ports.count", "0"]).ok();
    town.script("we-3", "echo \"none: ${GT_PORT_BASE-none}\"");
    assert_eq!(town.work("we-3", &[]), "done");
    assert_says(&printed("we-3"), &["none: none"]);
}

#[test]
fn a_polecat_that_was_asked_for_gets_the_work_and_reserved_names_are_refused() {
    let town = town_with_trees("process");
    town.script("we-1", "");
    town.script("we-2", "");
    assert_eq!(town.work("we-1", &["web/toast"]), "done");
    assert_eq!(texts(&town.polecats(), "name"), ["toast"]);
    for wrong in ["web/witness", "web/a b", "web/.."] {
        let ran = town.gt(["sling", "we-2", wrong]);
        assert_eq!(ran.code, 1, "{wrong}\n{ran}");
    }
}

#[test]
fn many_at_once_get_different_polecats_and_after_the_names_come_numbers() {
    let town = town_with_trees("process");
    town.gt(["config", "set", "scheduler.spawn_parallelism", "8"]).ok();
    let ids: Vec<String> = (1..=60).map(|number| format!("we-{number}")).collect();
    for id in &ids {
        town.write(&format!("steps/{id}.sh"), WAIT);
    }
    let line = |id: &String| format!(r#"{{"id":"{id}","title":"{id}"}}"#);
    town.import(&ids.iter().map(line).collect::<Vec<_>>().join("\n"));
    let all: Vec<&str> = ["sling"].into_iter().chain(ids.iter().map(String::as_str)).collect();
    town.start_gt(&all).run().ok();
    let polecats = town.polecats();
    let mut names = texts(&polecats, "name");
    assert_eq!(names.len(), 60);
    names.dedup();
    assert_eq!(names.len(), 60);
    assert!(names.contains(&"57".to_owned()) && names.contains(&"60".to_owned()), "{names:?}");
    assert!(texts(&polecats, "state").iter().all(|state| state == "working"));
    town.write("go", "");
    wait_until("all have ended", || town.gt_json(&["run", "list"]).as_array().unwrap().is_empty());
}

#[test]
fn peek_shows_the_screen_of_a_worker() {
    let town = town_with_trees("tmux");
    let worker = town.cwd().join("worker.sh");
    let runtime = format!(
        "command = \"'{}' {{bead}} {{prompt}}\"\nprompt = \"argument\"\nexit_zero = \"done\"\n",
        worker.display()
    );
    town.write(".gt/runtimes/screen.toml", runtime);
    town.gt(["config", "unset", "rig.web.command"]).ok();
    town.gt(["config", "set", "rig.web.runtime", "screen"]).ok();
    town.script("we-1", &format!("tty; echo hello from the screen{WAIT}"));
    town.begin("we-1");
    wait_until("its session shows what it printed", || {
        let peeked = town.gt_json(&["polecat", "peek", "web/furiosa", "-n", "5"]);
        peeked["source"] == "session"
            && peeked["output"].as_str().unwrap().contains("hello from the screen")
    });
    town.write("go", "");
    wait_until("we-1 is done", || town.run_of("we-1")["state"] == "done");
    assert_says(&town.gt(["polecat", "log", "we-1"]).ok().stdout, &["hello from the screen"]);
}
