//! `gt config agent` and `gt scripted`: which program works on beads, and the one that follows a script.

use gt_testkit::{Sandbox, wait_until};
use serde_json::json;

use crate::agents::Stage as _;
use crate::support::{
    Steps as _, assert_says, files_in, json_refusal, keys, refusal, strings, texts, town,
    town_with_rigs,
};

#[test]
fn the_built_in_runtimes_are_listed() {
    let town = town();
    let list = town.gt_json(&["config", "agent", "list"]);
    let expected = [
        "aider",
        "amp",
        "claude",
        "cline",
        "codex",
        "copilot",
        "crush",
        "cursor-agent",
        "custom",
        "gemini",
        "goose",
        "opencode",
        "pi",
        "qwen",
        "scripted",
    ];
    assert_eq!(texts(&list, "name"), expected);
    let claude = &list[2];
    assert_eq!(claude["origin"], "built in");
    assert_eq!(claude["memory_mb"], 1024);
    assert_eq!(claude["account_variable"], "CLAUDE_CONFIG_DIR");
    assert_eq!(list[8]["command"], json!(null), "custom has that of the rig");
    let text = town.gt(["config", "agent", "list"]).ok().stdout;
    assert_says(&text, &["RUNTIME", "codex", "built in", "done-if-committed", "1024 MB"]);
}

#[test]
fn a_runtime_is_shown_with_everything_about_it() {
    let town = town();
    let shown = town.gt_json(&["config", "agent", "show", "goose"]);
    let variables = ["GOOSE_MODE", "OTEL_LOGS_EXPORTER", "OTEL_LOG_LEVEL"];
    assert_eq!(strings(&shown["environment"]), variables, "only names");
    let expected = [
        "account_variable",
        "command",
        "description",
        "environment",
        "exit_zero",
        "ignore",
        "interactive",
        "limit",
        "login",
        "max_runs",
        "memory_mb",
        "name",
        "origin",
        "program",
        "prompt",
        "schema_version",
        "transcript",
        "tried_with",
        "usage",
        "version_flag",
        "warnings",
    ];
    assert_eq!(keys(&shown), expected);
    let text = town.gt(["config", "agent", "show", "codex"]).ok().stdout;
    assert_says(&text, &["codex exec", "CODEX_HOME", "not needed", "usage\\s+limit"]);

    let unknown = refusal(&town.gt(["config", "agent", "show", "cluade"]));
    assert_says(
        &unknown,
        &["runtime \"cluade\" not found", "did you mean claude?", ".gt/runtimes/cluade.toml"],
    );
    assert_says(
        &refusal(&town.gt(["config", "agent", "show", "../x"])),
        &["not a name for a runtime"],
    );
}

#[test]
fn a_runtime_is_changed_in_a_file_of_the_town() {
    let town = town();
    town.write(".gt/runtimes/codex.toml", "# ours\nexit_zero = \"ask\" # for now\n");

    let set = town.gt(["config", "agent", "set", "codex", "memory_mb", "2048"]).ok();
    assert_eq!(set.line(), "Set memory_mb = 2048 in .gt/runtimes/codex.toml");

    let shown = town.gt_json(&["config", "agent", "show", "codex"]);
    assert_eq!(shown["origin"], "changed");
    assert_eq!((&shown["memory_mb"], &shown["exit_zero"]), (&json!(2048), &json!("ask")));
    assert_says(shown["command"].as_str().unwrap(), &["codex exec"]);
    let file = std::fs::read_to_string(town.cwd().join(".gt/runtimes/codex.toml")).unwrap();
    assert_eq!(file, "# ours\nexit_zero = \"ask\" # for now\nmemory_mb = 2048\n");

    // Secrets are not printed.
    let secret = town.gt(["config", "agent", "set", "codex", "environment.TOKEN", "s3cret"]).ok();
    assert!(!secret.stdout.contains("s3cret"), "{secret}");
    let shown = town.gt(["config", "agent", "show", "codex", "--json"]).ok();
    assert!(shown.stdout.contains("TOKEN") && !shown.stdout.contains("s3cret"), "{shown}");
}

#[test]
fn a_new_runtime_begins_from_another() {
    let town = town();
    let refused = refusal(&town.gt(["config", "agent", "set", "mine", "memory_mb", "1"]));
    assert_says(&refused, &["mine", "command: missing", "extends"]);
    assert!(!town.cwd().join(".gt/runtimes").exists(), "nothing was written");

    town.gt(["config", "agent", "set", "mine", "extends", "claude"]).ok();
    town.gt(["config", "agent", "set", "mine", "command", "claude --print --model small"]).ok();
    town.gt(["config", "agent", "set", "yours", "extends", "mine"]).ok();
    let shown = town.gt_json(&["config", "agent", "show", "yours"]);
    assert_eq!(shown["command"], "claude --print --model small");
    assert_eq!(shown["account_variable"], "CLAUDE_CONFIG_DIR");
    assert_eq!(shown["origin"], "town");

    let circle = refusal(&town.gt(["config", "agent", "set", "mine", "extends", "yours"]));
    assert_says(&circle, &["leads to no end"]);
    let unknown = refusal(&town.gt(["config", "agent", "set", "mine", "extends", "absent"]));
    assert_says(&unknown, &["runtime \"absent\" not found"]);
    assert_eq!(files_in(town.cwd().join(".gt/runtimes")), ["mine.toml", "yours.toml"]);
}

#[test]
fn an_error_in_a_runtime_file_is_told_with_its_line() {
    let town = town();
    town.write(".gt/runtimes/claude.toml", "\nprompt = \"shout\"\n");
    town.write(".gt/runtimes/codex.toml", "memroy_mb = 3\n");
    town.write(".gt/runtimes/gemini.toml", "prompt = \"argument\"\n");

    let refused = json_refusal(&town.gt(["config", "agent", "show", "claude", "--json"]));
    assert_says(&refused, &[".gt/runtimes/claude.toml:2: prompt: \"shout\" is not a way", "stdin"]);
    let refused = refusal(&town.gt(["config", "agent", "show", "gemini"]));
    assert_says(
        &refused,
        &[".gt/runtimes/gemini.toml: the runtime gemini: command: lacks {prompt}"],
    );

    town.write(".gt/runtimes/goose.toml", "\ncommand = \"goose {x}\"\n");
    let refused = refusal(&town.gt(["config", "agent", "show", "goose"]));
    assert_says(
        &refused,
        &[".gt/runtimes/goose.toml:2: the runtime goose: command: {x} stands for nothing"],
    );

    let shown = town.gt(["config", "agent", "show", "codex"]).ok();
    assert_says(&shown.stderr, &["warning: .gt/runtimes/codex.toml:1:", "did you mean memory_mb?"]);

    // One that is broken does not hide the others.
    let list = town.gt_json(&["config", "agent", "list"]);
    assert_eq!(list.as_array().unwrap().len(), 15);
    assert_says(list[2]["problem"].as_str().unwrap(), &["claude.toml:2"]);
    assert_says(&town.gt(["config", "agent", "list"]).ok().stdout, &["cannot be used"]);
}

#[test]
fn wrong_changes_are_refused_and_change_nothing() {
    let town = town();
    for (name, key, value, parts) in [
        ("claude", "comand", "x", &["no key \"comand\"", "did you mean command?"] as &[&str]),
        (
            "claude",
            "command",
            "x {nothing}",
            &["command: {nothing} stands for nothing", "{prompt_file}"],
        ),
        ("claude", "exit_zero", "maybe", &["exit_zero", "done-if-committed"]),
        ("claude", "prompt", "paste", &["paste needs a terminal", "interactive = true"]),
        ("claude", "limit", "x", &["limit is a list of tables"]),
        ("Claude", "command", "x", &["not a name for a runtime"]),
    ] {
        let refused = refusal(&town.gt(["config", "agent", "set", name, key, value]));
        assert_says(&refused, parts);
    }
    assert!(!town.cwd().join(".gt/runtimes").exists());
}

#[test]
fn an_unset_runtime_file_is_kept_under_another_name() {
    let town = town();
    let command = |town: &gt_testkit::Sandbox| {
        town.gt_json(&["config", "agent", "show", "codex"])["command"].clone()
    };
    let before = command(&town);
    assert_says(&town.gt(["config", "agent", "unset", "codex"]).ok().stdout, &["nothing to do"]);
    town.gt(["config", "agent", "set", "codex", "command", "mine {prompt}"]).ok();
    assert_eq!(command(&town), "mine {prompt}");

    let said = town.gt(["config", "agent", "unset", "codex"]).ok().stdout;

    assert_says(&said, &["✓ codex is as it came", ".gt/runtimes/codex.toml.unset"]);
    assert_eq!(command(&town), before);
    let kept = std::fs::read_to_string(town.cwd().join(".gt/runtimes/codex.toml.unset")).unwrap();
    assert_says(&kept, &["mine {prompt}"]);
    // A file that cannot even be read is taken back too.
    town.write(".gt/runtimes/codex.toml", "what is this");
    assert_eq!(town.gt_json(&["config", "agent", "unset", "codex"])["origin"], "built in");

    town.gt(["config", "agent", "set", "mine", "extends", "codex"]).ok();
    let refused = refusal(&town.gt(["config", "agent", "unset", "mine"]));
    assert_says(&refused, &["mine did not come with gt", ".gt/runtimes/mine.toml"]);
    assert_says(&refusal(&town.gt(["config", "agent", "unset", "codx"])), &["did you mean codex?"]);
}

#[test]
fn a_runtime_is_tried_without_asking_it_anything() {
    let town = town();
    let agent = town.write_script(
        "agent.sh",
        "if [ \"$1\" = --version ]; then echo 'agent 1.2'; else cat > asked; echo ready; fi",
    );
    let agent = agent.display().to_string();
    let refused = refusal(&town.gt(["config", "agent", "set", "mine", "program", &agent]));
    assert_says(&refused, &["command: missing"]);
    town.gt(["config", "agent", "set", "mine", "command", &agent]).ok();

    let tested = town.gt_json(&["config", "agent", "test", "mine"]);
    assert_eq!((&tested["program"], &tested["version"]), (&json!(agent), &json!("agent 1.2")));
    assert_eq!(tested.get("answer"), None);

    let live = town.gt(["config", "agent", "test", "mine", "--live"]).ok();
    assert_says(&live.stdout, &["agent 1.2", "It answered: ready"]);
    // It has what a run of the default account has, and shows no key.
    town.write_script("agent.sh", "echo \"$API_KEY at $BASE_URL\"");
    let variables = ["--env", "API_KEY=sk-0123456789", "--env", "BASE_URL=https://example.com"];
    town.gt([&["config", "account", "add", "work"][..], &variables].concat()).ok();
    town.gt(["config", "account", "default", "work"]).ok();
    let live = town.gt(["config", "agent", "test", "mine", "--live"]).ok();
    assert_says(&live.stdout, &["It answered: [masked] at https://example.com"]);
    let left: Vec<String> = files_in(town.cwd().join(".gt"));
    assert!(!left.iter().any(|name| name.starts_with("trial")), "{left:?}");

    let scripted = town.gt(["config", "agent", "test", "scripted"]).ok();
    assert_says(&scripted.stdout, &["gt is there: gt 0."]);
    assert_says(
        &town.gt(["config", "agent", "test", "custom"]).ok().stdout,
        &["command of the rig"],
    );
}

#[test]
fn a_test_finds_the_version_and_the_login() {
    let town = town();
    // A warning comes before the version.
    let agent =
        town.write_script("agent.sh", "echo 'WARNING: old settings 9.9' >&2; echo 'agent 1.2'");
    let file = format!(
        "command = \"{}\"\nroot_variable = \"AGENT_AS_ROOT\"\n\
         login = {{ variables = [\"AGENT_KEY\"], files = [\".agent/key\"] }}\n",
        agent.display()
    );
    town.write(".gt/runtimes/mine.toml", &file);

    let tested = town.gt_json(&["config", "agent", "test", "mine"]);
    assert_eq!(tested["version"], "agent 1.2");
    assert_eq!(tested.get("login"), None);
    let warned = strings(&tested["warnings"]).join("\n");
    assert_says(&warned, &["looked for AGENT_KEY, ~/.agent/key", "gt config account add"]);
    town.gt(["config", "set", "worker.runtime", "mine"]).ok();
    assert_says(&town.gt(["doctor"]).stdout, &["no login or key of mine was found"]);

    town.gt(["config", "account", "add", "work", "--env", "AGENT_KEY=hush"]).ok();
    town.gt(["config", "agent", "set", "mine", "environment.AGENT_AS_ROOT", "1"]).ok();
    let said = town.gt(["config", "agent", "test", "mine"]).ok();
    assert_says(&said.stdout, &["✓ It has a login or key: AGENT_KEY"]);
    assert_eq!(said.stderr, "");
    assert_says(&town.gt(["doctor"]).stdout, &["(the town): agent 1.2"]);
}

#[test]
fn files_that_an_agent_leaves_behind_do_not_land() {
    let town = town();
    let repository = town.git_repository("project");
    let repository = repository.to_str().unwrap();
    town.gt(["rig", "add", "web", repository, "--prefix", "we", "--executor", "process"]).ok();
    town.write(".gt/runtimes/mine.toml", "extends = \"scripted\"\nignore = [\".mine*\"]\n");
    town.gt(["config", "set", "worker.runtime", "mine"]).ok();
    let script =
        "```gt-script\nedit .mine.history x\nedit a.txt x\ncommit Work\nedit .mine.cache/a x\n```";
    town.bead("we-a", &["--description", script]);

    town.gt(["sling", "we-a"]).ok();

    // Uncommitted files would have kept it from being done.
    wait_until("the run is over", || town.run_of("we-a")["state"] == "done");
    let git = town.command("git").args(["-C", "web/.repo.git", "log", "--all"]);
    let files = git.args(["--name-only", "--format="]).run().ok();
    assert!(files.stdout.contains("a.txt") && !files.stdout.contains(".mine"), "{files}");
}

#[test]
fn work_for_a_missing_agent_is_refused() {
    let town = town();
    let repository = town.git_repository("project");
    let repository = repository.to_str().unwrap();
    town.gt(["rig", "add", "web", repository, "--prefix", "we", "--executor", "process"]).ok();
    town.gt(["config", "agent", "set", "mine", "command", "no-such-agent"]).ok();
    town.gt(["config", "set", "rig.web.runtime", "mine"]).ok();
    town.bead("we-a", &[]);
    let before = town.last_event();

    for words in [&["sling", "we-a"][..], &["sling", "we-a", "--agent", "mine"]] {
        let refused = refusal(&town.gt(words));
        assert_says(&refused, &["no-such-agent", "is not installed on this machine", "--agent"]);
    }
    assert_eq!(town.last_event(), before, "nothing was scheduled");
    town.gt(["sling", "we-a", "--agent", "scripted"]).ok();
}

#[test]
fn a_program_that_is_not_there_or_does_not_answer_is_told() {
    let town = town();
    town.gt(["config", "agent", "set", "absent", "command", "no-such-program"]).ok();
    let refused = refusal(&town.gt(["config", "agent", "test", "absent"]));
    assert_says(
        &refused,
        &["no-such-program", "not on the path", "gt config agent set absent command"],
    );

    let agent = town.write_script(
        "agent.sh",
        "[ \"$1\" = --version ] && exit 0; echo 'Usage limit reached; try again in 2h'; exit 1",
    );
    town.gt(["config", "agent", "set", "limited", "extends", "scripted"]).ok();
    town.gt(["config", "agent", "set", "limited", "command", &agent.display().to_string()]).ok();
    let tested = town.gt_json(&["config", "agent", "test", "limited", "--live"]);
    assert_eq!(tested["said"], "Usage limit reached; try again in 2h");
    assert!(tested["limited_until"].is_string());

    let broken = town.write_script("broken.sh", "echo 'no key' >&2; exit 4");
    town.gt(["config", "agent", "set", "broken", "command", &broken.display().to_string()]).ok();
    let refused = refusal(&town.gt(["config", "agent", "test", "broken"]));
    assert_says(&refused, &["--version failed", "no key"]);
}

#[test]
fn the_runtime_is_a_setting_of_the_town_and_of_rigs() {
    let town = town_with_rigs(&["web"]);
    town.gt(["config", "set", "worker.runtime", "codex"]).ok();
    town.gt(["config", "set", "rig.web.runtime", "scripted"]).ok();
    assert_eq!(town.gt(["config", "get", "rig.web.runtime"]).ok().line(), "scripted");

    let refused = refusal(&town.gt(["config", "set", "worker.runtime", "codx"]));
    assert_says(&refused, &["runtime \"codx\" not found", "did you mean codex?"]);
    assert_eq!(town.gt(["config", "get", "worker.runtime"]).ok().line(), "codex");
    town.gt(["config", "set", "worker.runtime", ""]).ok();
}

/// Runs a script in the town.
fn follow(town: &Sandbox, script: &str) -> gt_testkit::FinishedProgram {
    let path = town.write("script", script);
    town.command(town.gt_path()).args(["scripted", "--script"]).arg(path).run()
}

#[test]
fn an_unknown_runtime_is_refused_when_work_is_scheduled() {
    let town = town_with_rigs(&["web"]);
    town.gt(["config", "set", "rig.web.command", "true {bead}"]).ok();
    town.bead("we-a", &[]);
    let before = town.last_event();

    for arguments in [&["sling", "we-a"][..], &["queue", "we-a"], &["sling", "we-a", "--dry-run"]] {
        let arguments = [arguments, &["--agent", "cluade"]].concat();
        let refused = refusal(&town.gt(&arguments));
        let known = ["runtime \"cluade\" not found", "did you mean claude?", "codex, copilot"];
        assert_says(&refused, &known);
    }
    assert_eq!(town.last_event(), before, "nothing was scheduled");

    // One that the rig names may have gone since.
    town.write(".gt/runtimes/mine.toml", "extends = \"scripted\"\n");
    town.gt(["config", "set", "rig.web.runtime", "mine"]).ok();
    std::fs::remove_file(town.cwd().join(".gt/runtimes/mine.toml")).unwrap();
    let refused = refusal(&town.gt(["sling", "we-a"]));
    assert_says(&refused, &["\"mine\" not found", "gt config set rig.web.runtime", "--agent"]);
    // A bead for a person needs no runtime.
    town.gt(["sling", "we-a", "web/crew/joe"]).ok();
}

#[test]
fn a_run_says_which_runtime_it_has_and_a_park_of_that_keeps_others() {
    let town = town_with_rigs(&["web"]);
    // A program that never gets anywhere.
    town.write(".gt/runtimes/mine.toml", "extends = \"custom\"\ncommand = \"false {bead}\"\n");
    town.gt(["config", "set", "worker.runtime", "mine"]).ok();
    let beads = ["we-a", "we-b", "we-c", "we-d"];
    for bead in beads {
        town.bead(bead, &[]);
    }
    for bead in &beads[..3] {
        town.gt(["sling", bead]).ok();
        wait_until("it has failed", || town.show(bead)["status"] == "closed");
        assert_eq!(town.run_of(bead)["runtime"], "mine");
    }

    let kept = town.gt(["sling", "we-d"]).ok();

    assert_says(&kept.stdout, &["Scheduled we-d", "runtime mine parked"]);
    assert_eq!(town.reasons("we-d"), ["runtime-parked"]);
    // Another one is not meant.
    town.bead("we-e", &[]);
    town.gt(["sling", "we-e", "--agent", "scripted"]).ok();
    assert_eq!(town.run_of("we-e")["runtime"], "scripted");
}

#[test]
fn a_script_is_followed() {
    let town = town();
    let ran = follow(
        &town,
        "# an agent\nsay Hello\nedit a/b.txt one\\ntwo\nappend a/b.txt three\nrepeat 2\nappend log again\nend\n\
         run sh -c 'echo from a program'\ntouch flag\nwait-for flag\nwork 1\nlimit 90m\n",
    )
    .ok();
    assert_eq!(ran.stdout, "Hello\nfrom a program\nUsage limit reached; try again in 1h30m\n");
    let read = |name: &str| std::fs::read_to_string(town.cwd().join(name)).unwrap();
    assert_eq!(read("a/b.txt"), "one\ntwo\nthree\n");
    assert_eq!(read("log"), "again\nagain\n");
}

#[test]
fn a_script_ends_as_it_says() {
    let town = town();
    let failed = follow(&town, "say before\nfail 7\nsay after");
    assert_eq!((failed.code, failed.stdout.as_str(), failed.stderr.as_str()), (7, "before\n", ""));

    let failed = follow(&town, "run sh -c 'exit 3'\nsay after");
    assert_eq!(failed.code, 3);
    assert_says(&failed.stdout, &["ended with exit status 3"]);

    let wrong = refusal(&follow(&town, "say hi\nfly away"));
    assert_says(&wrong, &["line 2: \"fly\" is no instruction", "wait-for FILE"]);

    let flood = follow(&town, "flood 2").ok();
    assert_eq!(flood.stdout.len(), 2 << 20);

    // A shell tells how its child ended.
    let gt = town.gt_path().display().to_string();
    let script = town.write("crash", "say last words\ncrash\n");
    let shell = format!("'{gt}' scripted --script '{}'; echo $?", script.display());
    let crashed = town.command("sh").args(["-c", &shell]).run().ok();
    assert_eq!(crashed.stdout.lines().collect::<Vec<_>>(), ["last words", "137"]);
}

#[test]
fn a_script_can_be_deaf() {
    let town = town();
    let kill = "run sh -c 'kill -TERM $PPID'\n";
    let script = format!("repeat 2\nsay once\nend\nignore-term\n{kill}say still here\n");
    let ran = follow(&town, &script).ok();
    assert_eq!(ran.stdout, "once\nonce\nstill here\n", "nothing is done twice");

    let script = town.write("listens", format!("{kill}say still here\n"));
    let gt = town.gt_path().display().to_string();
    let shell = format!("'{gt}' scripted --script '{}'; echo $?", script.display());
    let ended = town.command("sh").args(["-c", &shell]).run().ok();
    assert_eq!(ended.stdout.lines().last(), Some("143"));
}

#[test]
fn a_script_commits() {
    let town = town();
    town.make_dir(town.cwd().join("code"));
    let code = town.cwd().join("code");
    let git =
        |arguments: &[&str]| town.command("git").arg("-C").arg(&code).args(arguments).run().ok();
    git(&["init", "--quiet"]);
    let script = town.write("script", "edit new.txt hello\ncommit Say hello\n");
    town.command(town.gt_path())
        .args(["scripted", "--script"])
        .arg(script)
        .arg("-C")
        .arg(&code)
        .run()
        .ok();
    assert_eq!(git(&["log", "--format=%s"]).line(), "Say hello");
    assert_eq!(git(&["status", "--porcelain"]).stdout, "");
}

#[test]
fn a_script_is_taken_from_the_bead_that_it_works_for() {
    let town = town_with_rigs(&["web"]);
    let description = "Greet.\n\n```gt-script\nsay {bead} in {run}\n```\n";
    let bead = town.create("Greet", &["--rig", "web", "--description", description]);
    let run = format!("{bead}#1");
    let scripted = || town.command(town.gt_path()).arg("scripted");

    let ran = scripted().env("GT_RUN", &run).run().ok();
    assert_eq!(ran.line(), format!("{bead} in {run}"));

    let file = town.write("other", "say from a file\n");
    let ran = scripted().env("GT_RUN", &run).env("GT_SCRIPT", &file).run().ok();
    assert_eq!(ran.line(), "from a file");
    let ran = scripted().args(["--script", "-"]).stdin("say from outside\n").run().ok();
    assert_eq!(ran.line(), "from outside");

    assert_says(&refusal(&scripted().run()), &["there is no script", "--script", "GT_SCRIPT"]);
    let plain = town.create("Plain", &["--rig", "web"]);
    let refused = refusal(&scripted().env("GT_RUN", format!("{plain}#1")).run());
    assert_says(&refused, &[&plain, "has no script", "```gt-script"]);
}

#[test]
fn a_rig_can_be_worked_on_by_a_script() {
    // The command of a rig works the same way.
    let town = town_with_rigs(&["web"]);
    let command = format!("{} scripted", town.gt_path().display());
    town.gt(["config", "set", "rig.web.command", &command]).ok();
    let description = "```gt-script\nsay done\n```";
    let bead = town.create("Work", &["--rig", "web", "--description", description]);
    town.gt(["sling", &bead, "web"]).ok();
    crate::support::wait_for_status(&town, &bead, "closed");
}
