//! README.md and every guide: each line of their `sh` blocks is run as it is written, in order, in one shell.
//!
//! Each page begins in an empty home directory with an ordinary clone in `~/src/web`. The built `gt` and `bd` are first on
//! the path; agents and other programs that a page needs are small scripts. A command must end with exit status 0, unless
//! its comment says `exits 1`. A command whose comment says `Ctrl-C` goes on until it is ended.
//!
//! Blocks of another kind (`console`, `text`) are not run: they show output, or commands that need the network or
//! another machine.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use gt_testkit::{Cluster, Sandbox, write_program};

use crate::sandboxes::has_bubblewrap;
use crate::support::nowhere;

/// The pages, each with the name of its test.
macro_rules! pages {
    ($($test:ident: $page:literal,)*) => {
        const PAGES: &[&str] = &[$($page),*];
        $(
            #[test]
            fn $test() {
                run_page($page);
            }
        )*
    };
}

pages! {
    readme: "README.md",
    beads: "docs/guides/beads.md",
    bulk: "docs/guides/bulk.md",
    checks: "docs/guides/checks.md",
    containers: "docs/guides/containers.md",
    convoys: "docs/guides/convoys.md",
    costs: "docs/guides/costs.md",
    daemon: "docs/guides/daemon.md",
    deck: "docs/guides/deck.md",
    first_town: "docs/guides/first-town.md",
    fleet: "docs/guides/fleet.md",
    formulas: "docs/guides/formulas.md",
    hooks: "docs/guides/hooks.md",
    http_api: "docs/guides/http-api.md",
    import_export: "docs/guides/import-export.md",
    inbox: "docs/guides/inbox.md",
    installing: "docs/guides/installing.md",
    landing: "docs/guides/landing.md",
    limits: "docs/guides/limits.md",
    mcp: "docs/guides/mcp.md",
    merge_queue: "docs/guides/merge-queue.md",
    notifications: "docs/guides/notifications.md",
    postgresql: "docs/guides/postgresql.md",
    pull_requests: "docs/guides/pull-requests.md",
    real_agents: "docs/guides/real-agents.md",
    recovery: "docs/guides/recovery.md",
    runs: "docs/guides/runs.md",
    runtimes: "docs/guides/runtimes.md",
    sandboxes: "docs/guides/sandboxes.md",
    scheduler_contexts: "docs/guides/scheduler-contexts.md",
    scheduling: "docs/guides/scheduling.md",
    store: "docs/guides/store.md",
    top: "docs/guides/top.md",
    towns_and_rigs: "docs/guides/towns-and-rigs.md",
    transcripts: "docs/guides/transcripts.md",
    trees: "docs/guides/trees.md",
    troubleshooting: "docs/guides/troubleshooting.md",
    work_queue: "docs/guides/work-queue.md",
    working: "docs/guides/working.md",
}

/// The kinds of blocks in which no command stands that could be run.
const KINDS_NOT_RUN: &[&str] = &["console", "json", "markdown", "sql", "text", "toml", "yaml"];

/// The words in a command that wait for agents, which are let go on before it.
const WAITS: &[&str] = &["gt wait", "scheduler drain", "--until-done", "gt demo"];

/// Agents say that they are there, answer a question, or work until they may end.
const AGENT: &str = r#"#!/bin/sh
case " $* " in *" --version "*) echo "1.0.0 (test)"; exit;; esac
if [ -z "$GT_RUN" ]; then cat > /dev/null; echo ready; exit; fi
echo "working on $GT_RUN"
looks=0
while [ ! -e "$HOME/.agents-may-end" ] && [ ! -e "$GT_TOWN_ROOT/.gt/agents-may-end" ] && [ -d "$HOME" ] && [ $looks -lt 3000 ]; do
    looks=$((looks + 1)); sleep 0.02
done
echo "$GT_RUN" > "work-${GT_RUN%#*}.txt"
exec gt done -m "Work of $GT_RUN"
"#;

/// Programs that pages start, beside agents. They do nothing, unless a page needs more.
const PROGRAMS: &[(&str, &str)] = &[
    ("createdb", "exit 0"),
    ("docker", DOCKER),
    ("loginctl", "exit 0"),
    ("notify-send", "cat > /dev/null"),
    ("run-tests", "echo \"all pass\""),
    ("sudo", "exit 0"),
    ("systemctl", "exit 0"),
    ("ssh", SSH),
];

/// Runs the command that is meant for a container on this machine.
const DOCKER: &str = r#"
while [ $# -gt 0 ]; do
    case "$1" in my-agents:1) shift; exec "$@";; esac
    shift
done
"#;

/// Runs the command that is meant for a sandbox without one.
const BUBBLEWRAP: &str = r#"
while [ "$1" != -- ]; do shift; done
shift
exec "$@"
"#;

/// Runs the command that is meant for the other machine on this one.
const SSH: &str = r#"
while [ "${1#-}" != "$1" ]; do case "$1" in -o|-l|-p|-i) shift;; esac; shift; done
shift
cd "$HOME"
exec sh -c "$*"
"#;

/// The functions that the shell of a page calls around each of its commands.
const SHELL: &str = r#"set -u -o pipefail
export PATH="$PROGRAMS:$PATH"
at() { here=$1; printf '▶ %s\n' "$here" >&2; }
ended() {
    [ "$1" = "$2" ] && return
    printf 'FAILED: %s ended with exit status %s, and %s was expected\n' "$here" "$1" "$2" >&2
    exit 99
}
# Ends a command that follows something, after it has printed something or for a while has not.
interrupt() {
    looks=0
    while kill -0 "$1" 2>/dev/null && [ ! -s "$HOME/.followed" ] && [ $looks -lt 50 ]; do
        looks=$((looks + 1)); sleep 0.02
    done
    if kill -TERM "$1" 2>/dev/null; then wait "$1"; cat "$HOME/.followed"; return 0; fi
    wait "$1"
    status=$?
    cat "$HOME/.followed"
    return $status
}
trap 'kill $(jobs -p) 2>/dev/null; wait' EXIT
# A request that a server refuses is a command that fails.
curl() { command curl --fail-with-body "$@"; }
cd
"#;

/// One fenced block of a page.
struct Fence {
    kind: String,
    /// The number of its first line.
    line: usize,
    lines: Vec<String>,
}

/// One command of a page, with all of its lines.
struct Command {
    line: usize,
    text: String,
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn fences(page: &str) -> Vec<Fence> {
    let mut found: Vec<Fence> = Vec::new();
    let mut open: Option<usize> = None;
    for (number, line) in page.lines().enumerate() {
        let ticks = line.trim_start().chars().take_while(|c| *c == '`').count();
        let rest = line.trim_start().get(ticks..).unwrap_or_default().trim();
        match open {
            None if ticks >= 3 => {
                open = Some(ticks);
                found.push(Fence { kind: rest.to_owned(), line: number + 2, lines: Vec::new() });
            }
            Some(opened) if ticks >= opened && rest.is_empty() => open = None,
            Some(_) => found.last_mut().unwrap().lines.push(line.to_owned()),
            None => {}
        }
    }
    found
}

/// The word that ends the text which a line begins with `<<`.
fn ends_with(line: &str) -> Option<String> {
    let (_, after) = line.split_once("<<")?;
    let word = after.trim_start_matches('-').split_whitespace().next()?;
    Some(word.trim_matches(['\'', '"']).to_owned())
}

fn commands(fence: &Fence) -> Vec<Command> {
    let mut found = Vec::new();
    let mut lines = fence.lines.iter().enumerate();
    while let Some((number, line)) = lines.next() {
        if line.trim().is_empty() || line.trim_start().starts_with('#') {
            continue;
        }
        let mut text = line.clone();
        while text.ends_with('\\') {
            let Some((_, more)) = lines.next() else { break };
            text = format!("{text}\n{more}");
        }
        if let Some(end) = ends_with(line) {
            for (_, more) in lines.by_ref() {
                text = format!("{text}\n{more}");
                if *more == end {
                    break;
                }
            }
        }
        found.push(Command { line: fence.line + number, text });
    }
    found
}

/// The exit status that a command says it ends with.
fn expected(command: &str) -> u8 {
    let said = command.split_once("# exits ").map(|(_, said)| said);
    let digits = said.map(|said| said.chars().take_while(char::is_ascii_digit).collect::<String>());
    digits.map_or(0, |digits| digits.parse().unwrap())
}

fn script(page: &str, text: &str) -> String {
    let mut script = SHELL.to_owned();
    for fence in fences(text).iter().filter(|fence| fence.kind == "sh") {
        for Command { line, text } in commands(fence) {
            let comment = text.split_once(" # ").map_or("", |(_, comment)| comment);
            writeln!(script, "at '{page}:{line}'").unwrap();
            if WAITS.iter().any(|words| text.contains(words)) {
                script.push_str("touch ~/.agents-may-end\n");
                // The home directory of an agent in a sandbox is another one.
                script.push_str("for town in ~/*/.gt; do touch \"$town/agents-may-end\"; done\n");
            }
            if comment.contains("Ctrl-C") {
                writeln!(script, ": > ~/.followed\n( exec {text}\n) > ~/.followed 2>&1 &").unwrap();
                script.push_str("interrupt $!\n");
            } else {
                writeln!(script, "{text}").unwrap();
            }
            writeln!(script, "ended $? {}", expected(&text)).unwrap();
        }
    }
    script
}

/// A home directory as pages expect it.
fn home() -> Sandbox {
    let sandbox = nowhere();
    let upstream = sandbox.git_repository("upstream");
    let git = |directory: &Path, arguments: &[&str]| {
        sandbox.command("git").args(arguments).dir(directory).run().ok();
    };
    for (file, content) in [("index.html", "<h1>Shop</h1>\n"), (".gitignore", ".env\n*.log\n")] {
        fs::write(upstream.join(file), content).unwrap();
        git(&upstream, &["add", "--all"]);
        git(&upstream, &["commit", "--quiet", "--message", &format!("Add {file}")]);
    }
    let home = sandbox.root().join("home");
    sandbox.make_dir(home.join("src"));
    git(&home.join("src"), &["clone", "--quiet", "../../upstream", "web"]);
    // Work that is not committed, as there always is.
    fs::write(home.join("src/web/notes.txt"), "not committed\n").unwrap();
    let program = |name: &str, text: &str| {
        write_program(sandbox.make_dir(sandbox.root().join("bin")).join(name), text);
    };
    for agent in ["aider", "amp", "claude", "codex", "gemini", "goose", "opencode", "my-agent"] {
        program(agent, AGENT);
    }
    for (name, text) in PROGRAMS {
        program(name, &format!("#!/bin/sh\n{text}\n"));
    }
    if !has_bubblewrap(&sandbox, "the sandbox of docs/guides/sandboxes.md") {
        program("bwrap", &format!("#!/bin/sh\n{BUBBLEWRAP}\n"));
    }
    sandbox
}

/// Replaces the places that a page names by those of this test.
fn in_the_sandbox(text: &str, port: u16) -> String {
    let text = text.replace("localhost:8080", &format!("localhost:{port}"));
    // The programs of a test are there.
    let text = text.replace(" --tmpfs /tmp ", " ");
    if text.contains("postgres://gt@db.example/town") {
        return text.replace("postgres://gt@db.example/town", &Cluster::shared().fresh_database());
    }
    text
}

/// A port that no program listens on.
fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    listener.local_addr().unwrap().port()
}

fn run_page(page: &str) {
    let text = fs::read_to_string(repository().join(page)).unwrap();
    let sandbox = home();
    let port = free_port();
    let script = script(page, &in_the_sandbox(&text, port));
    let file = sandbox.root().join("page.sh");
    fs::write(&file, script).unwrap();
    let built = sandbox.gt_path().parent().unwrap();
    let programs = format!("{}:{}/bin", built.display(), sandbox.root().display());
    let shell = sandbox.command("bash").arg(&file).env("PROGRAMS", programs);
    let shell = shell.env("PORT", port.to_string()).time_limit(Duration::from_mins(5));
    let ran = shell.run();
    fs::write(sandbox.root().join("home/.agents-may-end"), "").unwrap();
    end_towns(&sandbox);
    assert_eq!(ran.code, 0, "{page}\n{}\n{}", ran.stdout, ran.stderr);
}

/// Ends the daemons and the workers of every town that a page has made.
fn end_towns(sandbox: &Sandbox) {
    let home = fs::read_dir(sandbox.root().join("home")).unwrap();
    for town in home.map(|entry| entry.unwrap().path()).filter(|path| path.join(".gt").is_dir()) {
        let gt = |arguments: &[&str]| {
            sandbox.command(sandbox.gt_path()).args(arguments).dir(&town).run()
        };
        gt(&["down"]);
        let live = gt(&["run", "list", "--json"]);
        let live: serde_json::Value = serde_json::from_str(&live.stdout).unwrap_or_default();
        for run in live.as_array().into_iter().flatten().filter_map(|run| run["id"].as_str()) {
            gt(&["run", "cancel", run, "--force"]);
        }
    }
}

#[test]
fn every_page_is_run() {
    let guides = fs::read_dir(repository().join("docs/guides")).unwrap();
    let name = |path: PathBuf| format!("docs/guides/{}", path.file_name().unwrap().display());
    let mut found: Vec<String> = guides.map(|entry| name(entry.unwrap().path())).collect();
    found.push("README.md".to_owned());
    found.sort();
    assert_eq!(found, PAGES);
}

#[test]
fn every_block_of_commands_is_run() {
    for page in PAGES {
        let text = fs::read_to_string(repository().join(page)).unwrap();
        for fence in fences(&text).iter().filter(|fence| fence.kind != "sh") {
            let at = format!("{page}:{}", fence.line);
            let is_command = |line: &String| {
                ["gt ", "bd ", "$ gt", "$ bd", "curl ", "git "]
                    .iter()
                    .any(|word| line.starts_with(word))
            };
            match fence.kind.as_str() {
                "" => assert!(!fence.lines.iter().any(is_command), "{at}: make it a block of sh"),
                kind => assert!(KINDS_NOT_RUN.contains(&kind), "{at}: is {kind} run?"),
            }
        }
    }
}
