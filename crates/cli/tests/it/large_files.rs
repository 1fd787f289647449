//! Projects that keep large files with git-lfs: a worker sees the files, and what lands has its contents at the origin.

use std::fs;
use std::path::PathBuf;

use gt_testkit::{Sandbox, wait_until};

use crate::agents::Stage as _;
use crate::projects::{Origin as _, STAYS, Worker, project_agent};
use crate::support::{assert_says, refusal, town};
use crate::trees::git;

/// The pointer that git-lfs puts in the place of a file, here of one that no server has.
const POINTER: &str = "version https://git-lfs.github.com/spec/v1
oid sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
size 10
";

/// A town with the rig `web` by `process`, whose origin keeps `*.bin` with git-lfs and has one of them.
fn town_with_large_files() -> Sandbox {
    let town = town();
    town.command("git").args(["lfs", "install", "--skip-repo"]).run().ok();
    let seed = town.git_repository("seed");
    fs::write(seed.join(".gitattributes"), "*.bin filter=lfs diff=lfs merge=lfs -text\n").unwrap();
    fs::write(seed.join("first.bin"), "the first large file").unwrap();
    git(&town, &seed, &["add", "--all"]);
    git(&town, &seed, &["commit", "--quiet", "--message", "A large file"]);
    let origin = town.root().join("origin.git");
    town.command("git").args(["init", "--quiet", "--bare"]).arg(&origin).run().ok();
    git(&town, &seed, &["remote", "add", "origin", &origin.display().to_string()]);
    git(&town, &seed, &["push", "--quiet", "origin", "main"]);
    town.gt(["rig", "add", "web", "../origin.git", "--executor", "process"]).ok();
    project_agent(&town, STAYS);
    town.gt(["config", "set", "worker.kill_grace", "300ms"]).ok();
    town
}

/// The contents of a file on `main` in a fresh clone of the origin.
fn cloned(town: &Sandbox, name: &str) -> String {
    let place = town.root().join(format!("clone-of-{name}"));
    let clone = town.command("git").args(["clone", "--quiet"]).arg(town.root().join("origin.git"));
    clone.arg(&place).run().ok();
    fs::read_to_string(place.join(name)).unwrap()
}

/// A directory with the programs that git and we need, and without git-lfs.
fn path_without_lfs(town: &Sandbox) -> PathBuf {
    let place = town.make_dir(town.root().join("programs"));
    for directory in ["/usr/local/bin", "/usr/bin", "/bin"] {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let link = place.join(entry.file_name());
            if entry.file_name() != "git-lfs" && !link.exists() {
                let _ = std::os::unix::fs::symlink(entry.path(), link);
            }
        }
    }
    place
}

fn gt_without_lfs(
    worker: &Worker<'_>,
    town: &Sandbox,
    arguments: &[&str],
) -> gt_testkit::FinishedProgram {
    let gt = worker.command(town.gt_path()).args(arguments);
    // Our git has the environment of the supervisor.
    let saved = town.cwd().join(format!(".gt/runs/{}.environment", worker.run));
    let before = fs::read_to_string(&saved).unwrap();
    let path = format!("PATH={}", path_without_lfs(town).display());
    let entries = before.split('\0');
    let entries = entries.map(|entry| if entry.starts_with("PATH=") { &path } else { entry });
    fs::write(&saved, entries.collect::<Vec<_>>().join("\0")).unwrap();
    let ran = gt.env("PATH", path_without_lfs(town)).run();
    fs::write(&saved, before).unwrap();
    ran
}

/// Takes back what `git lfs install` did.
fn git_forgets_lfs(town: &Sandbox) {
    town.command("git").args(["config", "--global", "--remove-section", "filter.lfs"]).run().ok();
}

#[test]
fn large_files_of_a_worker_land_with_their_contents() {
    let town = town_with_large_files();
    let worker = Worker::begin(&town, "we-a", &[]);
    let seen = fs::read_to_string(worker.tree.join("first.bin")).unwrap();
    assert_eq!(seen, "the first large file", "a tree has the files, not pointers");

    // One that it commits itself, one that gt commits for it.
    worker.commit("second.bin", "the second", "Second");
    worker.write("third.bin", "the third");
    assert_says(&worker.gt(&["done"]).ok().stdout, &["landed on main"]);

    assert_says(&town.landed_file("second.bin").unwrap(), &["https://git-lfs.github.com/spec/v1"]);
    assert_eq!(cloned(&town, "second.bin"), "the second");
    assert_eq!(cloned(&town, "third.bin"), "the third");
}

#[test]
fn large_files_land_on_top_of_what_others_have_done_and_as_a_branch_of_their_own() {
    let town = town_with_large_files();
    let (one, two) =
        (Worker::begin(&town, "we-a", &[]), Worker::begin(&town, "we-b", &["--no-merge"]));
    one.commit("second.bin", "the second", "Second");
    two.commit("third.bin", "the third", "Third");
    town.person_lands("tea", "tea\n");

    assert_says(&one.gt(&["done"]).ok().stdout, &["landed on main"]);
    assert_says(&two.gt(&["done"]).ok().stdout, &["pushed as"]);

    assert_eq!(town.landed("main").last().unwrap(), "Second");
    assert_eq!(cloned(&town, "second.bin"), "the second");
    town.origin_git(&["update-ref", "refs/heads/main", &two.branch]).ok();
    assert_eq!(cloned(&town, "third.bin"), "the third");
}

#[test]
fn a_pointer_to_nothing_does_not_land() {
    let town = town_with_large_files();
    let worker = Worker::begin(&town, "we-a", &[]);
    worker.commit("second.bin", POINTER, "Second");

    let refused = refusal(&worker.gt(&["done"]));

    assert_says(&refused, &["what git-lfs keeps", "(missing) second.bin", "say gt done again"]);
    assert_eq!(town.landed("main"), ["First commit", "A large file"]);
    assert_eq!(worker.state(), "running");

    // It can be put right.
    worker.git(&["reset", "--quiet", "--soft", "HEAD^"]).ok();
    worker.commit("second.bin", "the second", "Second, whole");
    assert_says(&worker.gt(&["done"]).ok().stdout, &["landed on main"]);
    assert_eq!(cloned(&town, "second.bin"), "the second");
}

#[test]
fn a_place_for_large_files_that_does_not_answer_is_waited_for() {
    let town = town_with_large_files();
    let worker = Worker::begin(&town, "we-a", &[]);
    // A port at which no server listens.
    worker.write(".lfsconfig", "[lfs]\n\turl = http://127.0.0.1:9/large-files\n");
    worker.commit("second.bin", "the second", "Second");

    let done = worker.gt(&["done"]).ok().stdout;

    assert_says(&done, &["held", "origin unreachable", "127.0.0.1:9"]);
    assert_eq!(town.landed("main"), ["First commit", "A large file"]);
    assert_eq!(worker.state(), "done");
}

#[test]
fn where_git_lfs_is_missing_that_is_what_is_said() {
    let town = town_with_large_files();
    let worker = Worker::begin(&town, "we-a", &[]);
    worker.commit("second.bin", "the second", "Second");

    let refused = refusal(&gt_without_lfs(&worker, &town, &["done"]));
    assert_says(&refused, &["git-lfs is not installed on this machine", "apt install git-lfs"]);

    assert_says(&worker.gt(&["done"]).ok().stdout, &["landed on main"]);
    assert_eq!(cloned(&town, "second.bin"), "the second");
}

#[test]
fn without_git_lfs_what_needs_it_waits_and_the_rest_lands() {
    let town = town_with_large_files();
    git_forgets_lfs(&town);
    let worker = Worker::begin(&town, "we-a", &[]);
    worker.commit("second.bin", POINTER, "Second");

    let done = gt_without_lfs(&worker, &town, &["done"]).ok().stdout;
    assert_says(&done, &["held: we-a@1", "git-lfs is not installed on this machine"]);
    assert_eq!(town.landed("main"), ["First commit", "A large file"]);
    worker.wait_until_gone();

    let other = Worker::begin(&town, "we-b", &[]);
    other.commit("tea", "tea\n", "Tea");
    assert_says(&gt_without_lfs(&other, &town, &["done"]).ok().stdout, &["landed on main"]);
}

#[test]
fn the_doctor_says_what_large_files_need() {
    let town = town_with_large_files();
    let worker = Worker::begin(&town, "we-a", &[]);
    worker.write("tea", "tea\n");
    worker.gt(&["done"]).ok();
    assert_says(&town.gt(["doctor"]).ok().stdout, &["git-lfs"]);

    let path = path_without_lfs(&town);
    let examined = town.start_gt(&["doctor"]).env("PATH", path).run();
    assert_eq!(examined.code, 1, "{examined}");
    assert_says(
        &examined.stdout,
        &["web keeps files with git-lfs", "not installed", "git lfs install"],
    );

    git_forgets_lfs(&town);
    let examined = town.gt(["doctor"]);
    assert_eq!(examined.code, 1, "{examined}");
    assert_says(&examined.stdout, &["which git does not use yet", "git lfs install"]);
}

#[test]
fn a_file_that_git_lfs_keeps_may_be_larger_than_what_may_be_committed() {
    let town = town_with_large_files();
    let worker = Worker::begin(&town, "we-a", &[]);
    let large = |name: &str| {
        let file = fs::File::create(worker.tree.join(name)).unwrap();
        file.set_len(101 * 1024 * 1024).unwrap();
    };

    large("second.data");
    let refused = refusal(&worker.gt(&["done"]));
    assert_says(&refused, &["second.data", "git lfs track"]);

    fs::rename(worker.tree.join("second.data"), worker.tree.join("second.bin")).unwrap();
    assert_says(&worker.gt(&["done"]).ok().stdout, &["landed on main"]);
    assert_says(&town.landed_file("second.bin").unwrap(), &["size 105906176"]);
    wait_until("the run is over", || town.run_of("we-a#1")["alive"] == false);
}
