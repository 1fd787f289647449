//! Repositories in which the original `bd` was at home: its git hooks, and what its agents are told to run.

use std::path::Path;

use gt_testkit::{Sandbox, SandboxCommand};
use serde_json::json;

use crate::support::{Steps as _, assert_says, nowhere};

/// The hooks that several versions of the original write.
const HOOKS: [(&str, &str); 6] = [
    (
        "pre-commit",
        "if command -v bd >/dev/null 2>&1; then\n  export BD_GIT_HOOK=1\n  bd hooks run pre-commit \"$@\"\n  _bd_exit=$?; if [ $_bd_exit -ne 0 ]; then exit $_bd_exit; fi\nfi",
    ),
    ("prepare-commit-msg", "exec bd hooks run prepare-commit-msg \"$@\""),
    ("post-merge", "bd hook post-merge \"$@\" || exit 1"),
    ("pre-push", "exec bd hook pre-push \"$@\""),
    ("post-checkout", "bd hooks run post-checkout \"$@\" || exit 1"),
    (
        "post-commit",
        "bd sync --flush-only >/dev/null || exit 1\nbd sync --import-only --quiet || exit 1",
    ),
];

/// A repository with those hooks, and an origin to push to.
fn repository() -> Sandbox {
    let place = nowhere();
    let repo = place.in_dir(place.git_repository("repo"));
    for (name, body) in HOOKS {
        let noted = repo.root().join(format!("ran-{name}"));
        let body = format!("touch '{}'\n{body}", noted.display());
        repo.write_script(&format!(".git/hooks/{name}"), &body);
    }
    repo
}

/// A git command that finds our `bd` first.
fn git(repo: &Sandbox, arguments: &[&str]) -> SandboxCommand {
    let programs = repo.bd_path().parent().map(Path::to_owned).unwrap();
    let path = format!("{}:/usr/local/bin:/usr/bin:/bin", programs.display());
    repo.command("/usr/bin/git").args(arguments).env("PATH", path)
}

#[test]
fn git_goes_on_where_the_original_has_put_its_hooks() {
    let repo = repository();
    let run = |arguments: &[&str]| git(&repo, arguments).run().ok();
    run(&["init", "--quiet", "--bare", "../origin.git"]);
    run(&["remote", "add", "origin", "../origin.git"]);
    repo.write("second", "hello again");
    run(&["add", "--all"]);
    run(&["commit", "--message", "Second"]);
    run(&["checkout", "--quiet", "-b", "side"]);
    repo.write("other", "x");
    run(&["add", "other"]);
    run(&["commit", "--message", "On the side"]);
    run(&["checkout", "--quiet", "main"]);
    run(&["merge", "--no-ff", "--message", "Merge", "side"]);
    // Enough refs that the hook is told more than a pipe holds.
    for at in 0..40 {
        run(&["tag", &format!("release-{at}")]);
    }
    run(&["push", "--quiet", "origin", "main", "side", "--tags"]);
    assert_eq!(run(&["log", "--format=%s", "origin/main"]).stdout.lines().count(), 4);
    for (name, _) in HOOKS {
        assert!(repo.root().join(format!("ran-{name}")).exists(), "git has called {name}");
    }
}

#[test]
fn commands_of_the_original_without_a_use_here_do_nothing_and_say_so() {
    let place = nowhere();
    for (arguments, told) in [
        (&["sync"][..], "Nothing to sync"),
        (&["sync", "--flush-only"], "Nothing to sync"),
        (&["sync", "--status"], "Nothing to sync"),
        (&["sync", "-m", "message", "--no-push"], "Nothing to sync"),
        (&["dolt", "push"], "no Dolt"),
        (&["dolt", "pull", "--force"], "no Dolt"),
        (&["dolt", "status"], "no Dolt"),
        (&["dolt", "commit", "-m", "x"], "no Dolt"),
        (&["dolt", "show"], "no Dolt"),
        (&["migrate"], "Nothing to migrate"),
        (&["migrate", "--update-repo-id", "--yes"], "Nothing to migrate"),
        (&["hooks", "install"], "No git hooks are needed"),
    ] {
        let ran = place.bd(arguments).ok();
        assert_eq!(ran.stdout.lines().count(), 1, "{ran}");
        assert_says(&ran.stdout, &[told]);
        let json = place.start_bd(arguments).arg("--json").run().ok().json();
        assert_says(json["message"].as_str().unwrap(), &[told]);
    }
    for hook in [&["hooks", "run", "pre-commit"][..], &["hook", "commit-msg", "file"]] {
        let ran = place.bd(hook).ok();
        assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("", ""));
    }
    assert_eq!(place.json(&["sync"])["schema_version"], json!(1));
}
