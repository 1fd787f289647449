//! `gt init`: from a repository to agents that work on it, with one command; and commands from inside the repository.

use std::fs;
use std::path::PathBuf;

use gt_testkit::{FinishedProgram, Sandbox, wait_until, write_program};
use serde_json::{Value, json};

use crate::support::{Steps as _, assert_says, gastown_with, nowhere, refusal};

/// A user with a repository, and with a program `claude` that does every bead.
struct NewUser {
    sandbox: Sandbox,
    path: String,
}

impl NewUser {
    fn new() -> Self {
        let sandbox = nowhere();
        let repository = sandbox.git_repository("My App");
        fs::create_dir(repository.join("notes")).unwrap();
        let bin = sandbox.make_dir(sandbox.root().join("bin"));
        let agent = "#!/bin/sh\nif [ \"$1\" = --version ]; then echo 2.1.0; exit; fi\necho tea > tea\ngt done > /dev/null";
        write_program(bin.join("claude"), agent);
        let own = sandbox.gt_path().parent().unwrap().display().to_string();
        let path =
            format!("{}:{own}:{}", bin.display(), std::env::var_os("PATH").unwrap().display());
        Self { sandbox: sandbox.in_dir(repository), path }
    }

    fn repository(&self) -> PathBuf {
        self.sandbox.cwd().to_owned()
    }

    fn run(&self, program: &str, arguments: &[&str]) -> FinishedProgram {
        let command = self.sandbox.command(program).args(arguments);
        command.env("PATH", &self.path).env("ANTHROPIC_API_KEY", "sk-test").run()
    }

    fn gt(&self, arguments: &[&str]) -> FinishedProgram {
        self.run("gt", arguments)
    }

    /// The same for a person at a terminal who types this.
    fn at_terminal(&self, line: &str, typed: &str) -> FinishedProgram {
        let command = self.sandbox.command("script").args(["-qec", line, "/dev/null"]);
        command.env("PATH", &self.path).stdin(typed).run()
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let words: Vec<&str> = arguments.iter().copied().chain(["--json"]).collect();
        serde_json::from_str(&self.gt(&words).ok().stdout).unwrap()
    }
}

#[test]
fn one_command_sets_a_repository_up_and_work_lands_from_inside_it() {
    let user = NewUser::new();

    let said = user.gt(&["init", "--yes"]).ok().stdout;

    assert_says(&said, &["✓ claude (ANTHROPIC_API_KEY)", "✓ Added the rig My-App (prefix ma)"]);
    assert_says(&said, &["at most 3 at once", "✓ The daemon runs", "bd create", "gt sling <bead>"]);
    let notes = user.sandbox.in_dir(user.repository().join("notes"));
    let created = notes.command("bd").args(["create", "Make tea", "--json"]);
    let created = created.env("PATH", &user.path).run().ok().stdout;
    let created: Value = serde_json::from_str(&created).unwrap();
    let bead = created["id"].as_str().unwrap();
    assert!(bead.starts_with("ma-"), "{bead}");
    user.gt(&["sling", bead]).ok();
    wait_until("the work has landed", || user.repository().join("tea").exists());
    user.gt(&["down"]).ok();
}

#[test]
fn what_is_set_up_already_stays_and_nothing_is_asked_twice() {
    let user = NewUser::new();
    user.gt(&["init", "--yes", "--max", "7"]).ok();
    user.gt(&["rig", "check", "add", "My-App", "test", "true"]).ok();

    let again = user.json(&["init", "--yes"]);

    assert_eq!((&again["rig"], &again["town"]["created"]), (&json!("My-App"), &json!(false)));
    assert_eq!((&again["max_polecats"], &again["checks"]), (&json!("7"), &json!(["test"])));
    let rigs = user.json(&["rig", "list"]);
    assert_eq!(rigs.as_array().map(Vec::len), Some(1), "{rigs}");
    user.gt(&["down"]).ok();
}

#[test]
fn a_person_at_a_terminal_is_asked_three_questions() {
    let user = NewUser::new();
    fs::write(user.repository().join("Makefile"), "test:\n\ttrue\n").unwrap();
    for words in [["add", "--all"].as_slice(), &["commit", "--quiet", "--message", "Add make"]] {
        user.run("git", words).ok();
    }

    let said = user.at_terminal("gt init", "scripted\n2\nn\n").ok().stdout;

    let questions = ["Which agent does the work? [claude]", "How many may work at once? [3]"];
    assert_says(&said, &questions);
    assert_says(&said, &["make test? [y]", "scripted does the work, at most 2 at once"]);
    assert_eq!(user.json(&["rig", "check", "list", "My-App"]), json!([]));
    user.gt(&["down"]).ok();
}

#[test]
fn init_is_refused_where_it_cannot_work() {
    let user = NewUser::new();
    let outside = user.sandbox.in_dir(user.sandbox.root());
    assert_says(&refusal(&user.gt(&["init"])), &["no terminal", "gt init --yes"]);
    assert_says(&refusal(&outside.gt(["init", "--yes"])), &["no git repository", "git init"]);
    let unknown = user.gt(&["init", "--yes", "--agent", "claud"]).fails(1);
    assert_says(&unknown.stderr, &["did you mean claude?"]);
    user.run("git", &["checkout", "--quiet", "--detach"]).ok();
    let detached = user.gt(&["init", "--yes"]).fails(1);
    assert_says(&detached.stderr, &["no branch is checked out", "git switch <branch>"]);
}

#[test]
fn wrong_answers_are_asked_for_again_and_nothing_is_made_before_they_are_right() {
    let user = NewUser::new();
    fs::write(user.repository().join("Makefile"), "test:\n\ttrue\n").unwrap();
    for words in [["add", "--all"].as_slice(), &["commit", "--quiet", "--message", "Add make"]] {
        user.run("git", words).ok();
    }
    for wrong in ["0", "-3", "abc"] {
        let refused = user.gt(&["init", "--yes", "--max", wrong]);
        assert!(refused.code != 0, "{wrong}");
        assert_says(&refused.stderr, &["whole number from 1 on"]);
    }
    user.gt(&["init", "--yes", "--agent", "claud"]).fails(1);
    let town = user.sandbox.root().join("home/gt");
    assert!(!town.exists());
    let left = user.at_terminal("gt init", "scripted\n\u{4}").fails(1);
    assert_says(&left.stdout, &["How many may work at once?", "the input ended before all"]);
    assert!(!town.exists(), "the end of the input is no answer");

    let typed = "claud\nscripted\nabc\n0\n2\nperhaps\nn\n";
    let said = user.at_terminal("gt init", typed).ok().stdout;

    assert_says(&said, &["did you mean claude?", "whole number from 1 on", "answer y or n"]);
    assert_says(&said, &["scripted does the work, at most 2 at once"]);
    assert_eq!(user.json(&["rig", "check", "list", "My-App"]), json!([]));
    user.gt(&["down"]).ok();
}

#[test]
fn without_an_agent_no_town_is_made_and_a_named_one_is_warned_of() {
    let user = NewUser::new();
    fs::remove_file(user.sandbox.root().join("bin/claude")).unwrap();
    let town = user.sandbox.root().join("home/gt");

    let refused = user.gt(&["init", "--yes"]).fails(1);
    assert_says(&refused.stderr, &["no agent", "gt init --agent claude --yes"]);
    assert!(!town.exists());

    let made = user.gt(&["init", "--agent", "claude", "--yes"]).ok();
    assert_says(&made.stderr, &["claude is not installed here"]);
    user.gt(&["down"]).ok();
}

#[test]
fn commands_in_a_repository_mean_the_town_that_has_it_as_a_rig() {
    let user = NewUser::new();
    let home = user.sandbox.root().join("home");
    let repository = user.repository();
    let repository = repository.to_str().unwrap();
    for town in ["one", "two"] {
        let town = home.join(town);
        let root = town.to_str().unwrap();
        user.gt(&["install", root]).ok();
        user.gt(&["-C", root, "rig", "add", "app", repository]).ok();
    }
    let here = || user.gt(&["status"]);

    assert_says(&here().ok().stdout, &["home/two"]);
    // A linked worktree of the repository means the same rig; a directory that only says so does not.
    let (linked, unpacked) = (home.join("linked"), home.join("unpacked"));
    user.run("git", &["worktree", "add", linked.to_str().unwrap()]).ok();
    let of_linked = linked.to_str().unwrap();
    let two = home.join("two").display().to_string();
    let second = user.sandbox.git_repository("Second").display().to_string();
    user.gt(&["-C", &two, "rig", "add", "second", &second]).ok();
    let told = user.gt(&["-C", of_linked, "bd", "prime"]).ok();
    assert_says(&told.stdout, &["home/two, rig app"]);
    fs::create_dir(&unpacked).unwrap();
    fs::copy(linked.join(".git"), unpacked.join(".git")).unwrap();
    assert_says(&refusal(&user.gt(&["-C", unpacked.to_str().unwrap(), "status"])), &["no town"]);
    user.gt(&["-C", &two, "rig", "remove", "app"]).ok();
    assert_says(&refusal(&here()), &["no town found"]);
    let one = home.join("one").display().to_string();
    let again = user.gt(&["-C", &one, "rig", "add", "other", repository]).ok();
    assert!(!again.stdout.contains("before"), "{}", again.stdout);
    assert_says(&here().ok().stdout, &["home/one"]);
}

#[test]
fn a_rig_is_added_although_its_repository_cannot_be_written_down() {
    let user = NewUser::new();
    let root = user.sandbox.root().join("home/one").display().to_string();
    user.gt(&["install", &root]).ok();
    let file = user.sandbox.root().join("no-directory");
    fs::write(&file, "").unwrap();
    let repository = user.repository().display().to_string();
    let add = user.sandbox.command("gt").args(["-C", &root, "rig", "add", "app", &repository]);

    let added = add.env("PATH", &user.path).env("XDG_STATE_HOME", &file).run().ok();

    assert_says(&added.stdout, &["✓ Added the rig app"]);
    assert_says(&added.stderr, &["only from inside", "no-directory"]);
}

#[test]
fn many_starts_without_a_cap_are_asked_about_at_a_terminal_only() {
    let user = NewUser::new();
    user.gt(&["init", "--yes"]).ok();
    user.gt(&["down"]).ok();
    user.gt(&["config", "set", "worker.runtime", "scripted"]).ok();
    user.gt(&["config", "unset", "scheduler.max_polecats"]).ok();
    let create = |number: u32| {
        let id = format!("ma-{number}");
        user.run("bd", &["create", "Do it", "--id", &id]).ok();
        id
    };
    let beads: Vec<String> = (1..=6).map(create).collect();
    let line = format!("gt sling {}", beads.join(" "));

    let said = user.at_terminal(&line, "n\n").ok().stdout;

    assert_says(&said, &["This starts 6 agents at once", "[y/N]", "Nothing was started"]);
    assert_eq!(user.json(&["scheduler", "list"]).as_array().map(Vec::len), Some(0));
    // Every command that starts many asks.
    let ids = beads.join(" ");
    for line in [
        format!("gt convoy create Six {ids}"),
        format!("gt convoy stage {ids} --launch"),
        format!("gt convoy launch {ids}"),
    ] {
        let said = user.at_terminal(&line, "n\n").ok().stdout;
        assert_says(&said, &["This starts 6 agents at once", "[y/N]", "Nothing was started"]);
        assert_eq!(user.json(&["scheduler", "list"]).as_array().map(Vec::len), Some(0), "{line}");
    }
    // So does one whose beads wait for room alone.
    user.gt(&["config", "set", "budget.runs_per_hour", "1"]).ok();
    let said = user.at_terminal(&line, "n\n").ok().stdout;
    assert_says(&said, &["This starts 6 agents at once", "Nothing was started"]);
    user.gt(&["config", "unset", "budget.runs_per_hour"]).ok();
    let unasked = user.at_terminal(&format!("{line} --yes"), "").stdout;
    assert_says(&unasked, &["Started ma-1"]);
    assert!(!unasked.contains("[y/N]"), "{unasked}");
    let others: Vec<String> = (11..=15).map(create).collect();
    let five = user.at_terminal(&format!("gt sling {}", others.join(" ")), "").stdout;
    assert_says(&five, &["ma-15"]);
    assert!(!five.contains("[y/N]"), "{five}");
}

#[test]
fn a_retry_of_many_without_a_cap_is_asked_about() {
    let town = gastown_with("exit 0");
    let text = "formula = \"mol-mine\"\nversion = 1\n[[steps]]\nid = \"do\"\ntitle = \"Do it\"\n";
    let file = town.write(".beads/formulas/mol-mine.formula.toml", text);
    let own = town.gt_path().parent().unwrap().display().to_string();
    let path = format!("{own}:{}", std::env::var_os("PATH").unwrap().display());
    let at_terminal = |line: &str, typed: &str| {
        let command = town.command("script").args(["-qec", line, "/dev/null"]);
        command.env("PATH", &path).stdin(typed).run()
    };
    let beads: Vec<String> = (1..=6).map(|number| format!("gt-{number}")).collect();
    for bead in &beads {
        town.bead(bead, &[]);
        town.gt(["queue", "mol-mine", "--on", bead]).ok();
    }
    let ids = beads.join(" ");
    let mut create = vec!["convoy", "create", "Six"];
    create.extend(beads.iter().map(String::as_str));
    let convoy = town.gt_json(&create)["convoy"].clone();
    let convoy = convoy.as_str().unwrap();
    fs::remove_file(&file).unwrap();
    town.gt(["queue", "run"]).fails(1);
    town.write(".beads/formulas/mol-mine.formula.toml", text);
    let given_up = || {
        beads.iter().filter(|id| town.show(id)["labels"] == json!(["gt:dispatch-failed"])).count()
    };
    assert_eq!(given_up(), 6);

    for line in [
        "gt scheduler retry --all".to_owned(),
        format!("gt scheduler retry {ids}"),
        format!("gt convoy retry {convoy}"),
    ] {
        let said = at_terminal(&line, "n\n").ok().stdout;

        assert_says(&said, &["This starts 6 agents at once", "[y/N]", "Nothing was started"]);
        assert_eq!(given_up(), 6, "{line}");
    }
    let one = at_terminal("gt scheduler retry gt-1", "").stdout;
    assert!(one.contains("Scheduled gt-1") && !one.contains("[y/N]"), "{one}");
}
