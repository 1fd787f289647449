//! The town that everything happens to: two rigs with repositories, and beads that wait for each other.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use gt_testkit::{
    Cluster, FinishedProgram, Random, Sandbox, SandboxCommand, TestClock, TownEngine,
};
use serde_json::{Value, json};

use crate::arguments::ChaosOptions;
use crate::processes::ESCAPED;

/// A rig: its name, the prefix of its beads, and the executor of its workers.
pub(crate) const RIGS: [(&str, &str, &str); 2] = [("web", "we", "tmux"), ("api", "ap", "process")];

/// The end of the name of a file with which the check of a project fails.
pub(crate) const BROKEN: &str = ".broken";

/// The check of each project, which is in its repository.
const CHECK: &str = "for file in *.broken; do\n    \
    if [ -e \"$file\" ]; then echo \"$file is here\"; exit 1; fi\ndone\n";

/// The beads that begin in one row of this many write the same line, if they do so at all.
const RIVALS: u64 = 6;

/// A town, and its beads.
#[derive(Debug)]
pub(crate) struct ChaosTown {
    pub(crate) sandbox: Sandbox,
    /// The server of its records, if they are on one.
    pub(crate) cluster: Option<Cluster>,
    /// The clock that all processes of the town read, if it can be set.
    pub(crate) clock: Option<TestClock>,
    /// Every bead, with those that it waits for.
    pub(crate) beads: BTreeMap<String, Vec<String>>,
    /// The beads whose work a person reviews.
    reviewed: BTreeSet<String>,
}

impl ChaosTown {
    /// Makes it, with everything slung and no daemon yet. Its contents follow from the seed.
    pub(crate) fn make(request: &ChaosOptions, gt: &Path, random: &mut Random) -> Self {
        let cluster = (request.engine == TownEngine::Postgres).then(|| Cluster::start(""));
        let sandbox = match &cluster {
            None => Sandbox::town(gt),
            Some(cluster) => {
                let url = format!("{}?reconnect_wait=100ms", cluster.url("postgres"));
                Sandbox::town_on(gt, &url)
            }
        };
        let clock = request.clock.then(|| TestClock::wrong_by(&sandbox, 0));
        let (beads, reviewed) = (BTreeMap::new(), BTreeSet::new());
        let mut town = Self { sandbox, cluster, clock, beads, reviewed };
        let cap = request.cap.to_string();
        // Now and then starts are given up while the started process is stopped, and goes on later.
        let start_timeout = if random.one_in(3) { "1s" } else { "5m" };
        for (key, value) in [
            ("scheduler.max_polecats", cap.as_str()),
            ("scheduler.start_timeout", start_timeout),
            ("worker.runtime", "scripted"),
            ("recovery.cooldown", "0s"),
            ("worker.kill_grace", "300ms"),
            // A conflict may come back as often as a rival lands first.
            ("mq.repairs", "100"),
        ] {
            town.gt(&["config", "set", key, value]).ok();
        }
        fs::create_dir(town.witnesses()).expect("make a directory for witnesses");
        for (name, prefix, executor) in RIGS {
            let origin = town.make_origin(name);
            let add = town.start(town.sandbox.gt_path(), &["rig", "add", name]);
            add.arg(origin).args(["--prefix", prefix, "--executor", executor]).run().ok();
            let warm = (format!("rig.{name}.warm_worktrees"), random.below(3).to_string());
            town.gt(&["config", "set", &warm.0, &warm.1]).ok();
            town.gt(&["rig", "check", "add", name, "whole", "sh check.sh"]).ok();
        }
        town.write_down(request.beads, random);
        town
    }

    /// Where agents leave a file when they have written something, which is never removed.
    pub(crate) fn witnesses(&self) -> PathBuf {
        self.sandbox.root().join("witnesses")
    }

    /// Where the work of a rig lands.
    pub(crate) fn origin(&self, rig: &str) -> PathBuf {
        self.sandbox.root().join(format!("{rig}.git"))
    }

    /// A bare repository whose project ignores logs and has a check. It remembers each tip of its branches.
    fn make_origin(&self, rig: &str) -> PathBuf {
        let seed = self.sandbox.git_repository(&format!("{rig}-seed"));
        fs::write(seed.join(".gitignore"), "*.log\n").expect("write a file to commit");
        fs::write(seed.join("check.sh"), CHECK).expect("write a file to commit");
        for words in [&["add", "--all"][..], &["commit", "--quiet", "--message", "Ignore logs"]] {
            self.sandbox.command("git").args(words).dir(&seed).run().ok();
        }
        let origin = self.origin(rig);
        let clone = self.sandbox.command("git").args(["clone", "--quiet", "--bare"]);
        clone.arg(&seed).arg(&origin).run().ok();
        let remember = ["config", "core.logAllRefUpdates", "always"];
        self.sandbox.command("git").args(remember).dir(&origin).run().ok();
        origin
    }

    /// Writes the beads and slings all of them.
    fn write_down(&mut self, count: u64, random: &mut Random) {
        let mut ids: Vec<String> = Vec::new();
        let mut lines = String::new();
        let witnesses = self.witnesses();
        let escape = self.sandbox.root().join("escape");
        fs::write(&escape, escaping(self.sandbox.root())).expect("write a script");
        let edit = self.sandbox.root().join("edit");
        fs::write(&edit, editing(self.sandbox.root())).expect("write a script");
        for number in 0..count {
            let (_, prefix, _) = RIGS[usize::from(random.one_in(2))];
            let id = format!("{prefix}-{number}");
            let mut needs: Vec<String> = Vec::new();
            for _ in 0..random.below(4) {
                // Mostly of those just before it, so that there are chains and not only a first row.
                let near = ids.len().saturating_sub(20);
                let near = if random.one_in(4) { 0 } else { near };
                needs.extend(random.pick(&ids[near..]).cloned());
            }
            needs.sort();
            needs.dedup();
            let edges: Vec<Value> = needs
                .iter()
                .map(|need| json!({"issue_id": id, "depends_on_id": need, "type": "blocks"}))
                .collect();
            let record = json!({
                "id": id,
                "title": format!("Work for {id}"),
                "description": script(&witnesses, &escape, &change(&edit, number, random), random),
                "status": "open",
                "issue_type": "task",
                "priority": random.below(5),
                "dependencies": edges,
            });
            writeln!(lines, "{record}").expect("a text takes everything");
            if random.one_in(6) {
                self.reviewed.insert(id.clone());
            }
            ids.push(id.clone());
            self.beads.insert(id, needs);
        }
        let import = self.start(&self.sandbox.bd_path(), &["import", "-"]);
        import.stdin(lines).run().ok();
        for ran in self.sling(&ids.iter().collect::<Vec<_>>()) {
            ran.ok();
        }
    }

    /// Sends beads to their rigs. A bead that has a place in line, or is at work, stays as it is.
    pub(crate) fn sling(&self, beads: &[&String]) -> Vec<FinishedProgram> {
        let mut slung = Vec::new();
        for (rig, prefix, _) in RIGS {
            let of_rig = beads.iter().copied().filter(|id| id.split('-').next() == Some(prefix));
            let (reviewed, others): (Vec<&String>, Vec<&String>) =
                of_rig.partition(|id| self.reviewed.contains(*id));
            for (beads, flags) in [(reviewed, ["--review"].as_slice()), (others, &[])] {
                if !beads.is_empty() {
                    let sling = self.start(self.sandbox.gt_path(), &["sling"]);
                    slung.push(sling.args(beads).arg(rig).args(flags).run());
                }
            }
        }
        slung
    }

    /// The output of `gt … --json`, or its error.
    pub(crate) fn ask(&self, arguments: &[&str]) -> Result<Value, String> {
        Self::answer(self.start(self.sandbox.gt_path(), arguments))
    }

    /// The output of `bd … --json`, or its error.
    pub(crate) fn ask_bd(&self, arguments: &[&str]) -> Result<Value, String> {
        Self::answer(self.start(&self.sandbox.bd_path(), arguments))
    }

    /// The result of `gt`.
    pub(crate) fn gt(&self, arguments: &[&str]) -> FinishedProgram {
        self.start(self.sandbox.gt_path(), arguments).run()
    }

    /// A program that reads the clock of the town.
    fn start(&self, program: &Path, arguments: &[&str]) -> SandboxCommand {
        let invocation = self.sandbox.command(program).args(arguments);
        self.clock.iter().fold(invocation, |invocation, clock| clock.read_by(invocation))
    }

    fn answer(question: SandboxCommand) -> Result<Value, String> {
        let ran = question.arg("--json").run();
        serde_json::from_str(&ran.stdout).map_err(|error| format!("{error}\n{ran}"))
    }

    /// The ids of the work that is closed, without convoys; none if the town does not answer at the moment.
    pub(crate) fn closed(&self) -> Option<Vec<String>> {
        let answer = self.ask_bd(&["list", "--status", "closed", "--limit", "0"]).ok()?;
        let ids = answer.as_array()?.iter().filter_map(|bead| bead["id"].as_str());
        Some(ids.filter(|id| self.beads.contains_key(*id)).map(str::to_owned).collect())
    }
}

/// How long a child that escapes from its agent stays in the tree, in seconds.
const ESCAPED_SECONDS: u32 = 3;

/// A program that starts a child which begins a session, closes what it inherited, clears its environment and stays in the
/// tree for a while. Its command line names the sandbox and the run.
fn escaping(root: &Path) -> String {
    format!(
        "setsid env -i bash -c 'trap \"\" TERM\n\
         for fd in /proc/self/fd/*; do n=${{fd##*/}}; [ \"$n\" -gt 2 ] && eval \"exec $n>&-\"; done\n\
         sleep {ESCAPED_SECONDS}; true' {ESCAPED} '{}' \"$1\" > /dev/null 2>&1 < /dev/null &\n",
        root.display()
    )
}

/// A program that changes what other work depends on. `break` makes the check fail, once for each bead; each later run mends
/// it. `rival` writes a line that others write, too, on top of what has landed.
fn editing(root: &Path) -> String {
    let broken = root.join("broken");
    format!(
        "case $1 in\n\
         break) mkdir -p '{broken}'\n    \
             if mkdir '{broken}'/\"$2\" 2>/dev/null; then echo x > \"$2{BROKEN}\"; else rm -f \"$2{BROKEN}\"; fi ;;\n\
         rival) git merge --quiet -X theirs -m \"Merge for $2\" origin/main || git merge --abort\n    \
             echo \"$2\" > \"$3\" ;;\n\
         esac\ntrue\n",
        broken = broken.display(),
    )
}

/// The instruction for what a bead changes besides its own files: with the program `edit`, or nothing.
fn change(edit: &Path, number: u64, random: &mut Random) -> String {
    let edit = edit.display();
    match random.below(4) {
        0 => format!("run sh {edit} break {{bead}}\n"),
        1 => format!("run sh {edit} rival {{bead}} line-{}\n", number / RIVALS),
        _ => String::new(),
    }
}

/// The script of a worker: it makes its change, writes a file that git keeps and one that git ignores, leaves a
/// witness of that outside of its tree, commits, and ends in one way or the other. The files carry
/// the name of its run. Some have a child that escapes.
fn script(witnesses: &Path, escape: &Path, change: &str, random: &mut Random) -> String {
    let mut pause = |most: u64| random.between(5, most);
    let (first, second, third) = (pause(300), pause(1200), pause(300));
    let witness = witnesses.display();
    let end = if random.one_in(2) { "done\n" } else { "" };
    let escapes = if random.one_in(3) {
        format!("run sh {} {{run}}\n", escape.display())
    } else {
        String::new()
    };
    format!(
        "```gt-script\nsay begin {{run}}\n{escapes}{change}work {first}\nedit {{run}}.txt {{run}}\nedit {{run}}.log {{run}}\n\
         touch {witness}/{{run}}\nwork {second}\ncommit Work for {{bead}}\nwork {third}\n{end}```\n"
    )
}
