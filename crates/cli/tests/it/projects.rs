//! Towns whose rig has a repository with an origin, and workers in their trees.

use std::fs;
use std::path::PathBuf;

use gt_testkit::{FinishedProgram, Sandbox, SandboxCommand, wait_until};

use crate::agents::{Stage as _, has_supervisor, set_agent};
use crate::support::{Steps as _, town};
use crate::trees::SAYS_NO_CHANGES;

/// An agent that says where it works, and goes on until it may end or is ended.
pub(crate) const STAYS: &str = "says_where\nwait_for \"end-$bead\"";

const PROJECT_PRELUDE: &str = r#"
says_where() {
    pwd > "$stage/$bead/tree.new"
    mv "$stage/$bead/tree.new" "$stage/$bead/tree-${run##*#}"
}
"#;

/// A town with the rig `web`, which has an origin with one commit on `main`, and whose agents are this script.
#[track_caller]
pub(crate) fn town_with_project(script: &str) -> Sandbox {
    town_with_project_by("process", script)
}

/// The same, with another executor.
#[track_caller]
pub(crate) fn town_with_project_by(executor: &str, script: &str) -> Sandbox {
    let town = town();
    let project = town.git_repository("project");
    let clone = ["clone", "--quiet", "--bare"];
    town.command("git").args(clone).arg(&project).arg(origin(&town)).run().ok();
    town.gt(["rig", "add", "web", "../origin.git", "--executor", executor]).ok();
    project_agent(&town, script);
    // Agents that are asked to end get little time, so that such tests stay short.
    town.gt(["config", "set", "worker.kill_grace", "300ms"]).ok();
    town
}

/// Gives the rig `web` another agent.
#[track_caller]
pub(crate) fn project_agent(town: &Sandbox, script: &str) {
    set_agent(town, &format!("{PROJECT_PRELUDE}\n{script}\n{SAYS_NO_CHANGES}"));
}

fn origin(town: &Sandbox) -> PathBuf {
    town.root().join("origin.git")
}

/// Where the servers of sessions are that end with the test, also when it fails.
pub(crate) struct Sessions<'t> {
    town: &'t Sandbox,
    place: PathBuf,
}

impl<'t> Sessions<'t> {
    pub(crate) fn of(town: &'t Sandbox) -> Self {
        Self { town, place: town.make_dir(town.root().join("tmux")) }
    }

    /// `gt` that finds them.
    pub(crate) fn gt(&self, arguments: &[&str]) -> FinishedProgram {
        self.town.start_gt(arguments).env("TMUX_TMPDIR", &self.place).run()
    }
}

impl Drop for Sessions<'_> {
    fn drop(&mut self) {
        let end = "for socket in tmux-*/*; do tmux -S \"$socket\" kill-server; done; true";
        let _ = self.town.command("sh").args(["-c", end]).dir(&self.place).run();
    }
}

/// Steps of tests with an origin.
pub(crate) trait Origin {
    /// Git in the origin.
    fn origin_git(&self, arguments: &[&str]) -> FinishedProgram;
    /// The first lines of the commits on a branch of the origin, oldest first.
    fn landed(&self, branch: &str) -> Vec<String>;
    /// A file on `main` of the origin.
    fn landed_file(&self, name: &str) -> Option<String>;
    /// The names of all references of the origin.
    fn origin_references(&self) -> Vec<String>;
    /// Gives the origin a hook.
    fn origin_hook(&self, name: &str, script: &str);
    /// A person commits a file to `main` of the origin.
    fn person_lands(&self, name: &str, contents: &str);
    /// Takes the origin away, or brings it back.
    fn origin_is_there(&self, is_there: bool);
}

impl Origin for Sandbox {
    #[track_caller]
    fn origin_git(&self, arguments: &[&str]) -> FinishedProgram {
        self.command("git").arg("--git-dir").arg(origin(self)).args(arguments).run()
    }

    #[track_caller]
    fn landed(&self, branch: &str) -> Vec<String> {
        let log = self.origin_git(&["log", "--reverse", "--format=%s", branch, "--"]).ok();
        log.stdout.lines().map(str::to_owned).collect()
    }

    fn landed_file(&self, name: &str) -> Option<String> {
        let shown = self.origin_git(&["show", &format!("main:{name}")]);
        (shown.code == 0).then_some(shown.stdout)
    }

    #[track_caller]
    fn origin_references(&self) -> Vec<String> {
        let list = self.origin_git(&["for-each-ref", "--format=%(refname)"]).ok();
        list.stdout.lines().map(str::to_owned).collect()
    }

    #[track_caller]
    fn origin_hook(&self, name: &str, script: &str) {
        let stage = self.stage("");
        let script = format!("stage='{}'\n{script}", stage.display());
        self.write_script(&format!("../origin.git/hooks/{name}"), &script);
    }

    #[track_caller]
    fn person_lands(&self, name: &str, contents: &str) {
        let place = self.root().join("person");
        if !place.exists() {
            let clone = self.command("git").args(["clone", "--quiet"]);
            clone.arg(origin(self)).arg(&place).run().ok();
        }
        let git = |arguments: &[&str]| self.command("git").args(arguments).dir(&place).run().ok();
        git(&["pull", "--quiet", "--rebase"]);
        fs::write(place.join(name), contents).unwrap();
        git(&["add", "--all"]);
        git(&["commit", "--quiet", "--message", &format!("A person changes {name}")]);
        git(&["push", "--quiet", "origin", "HEAD:main"]);
    }

    #[track_caller]
    fn origin_is_there(&self, is_there: bool) {
        let (here, away) = (origin(self), self.root().join("away.git"));
        let (from, to) = if is_there { (away, here) } else { (here, away) };
        fs::rename(from, to).unwrap();
    }
}

/// A worker whose agent only stays, and for which the test acts.
pub(crate) struct Worker<'t> {
    town: &'t Sandbox,
    pub(crate) run: String,
    pub(crate) tree: PathBuf,
    pub(crate) branch: String,
}

impl<'t> Worker<'t> {
    /// Slings a new bead, and waits until its worker has its tree.
    #[track_caller]
    pub(crate) fn begin(town: &'t Sandbox, bead: &str, flags: &[&str]) -> Self {
        town.bead(bead, &[]);
        town.start_gt(&["sling", bead]).args(flags).run().ok();
        Self::of(town, &format!("{bead}#1"))
    }

    /// The worker of a run that has begun.
    #[track_caller]
    pub(crate) fn of(town: &'t Sandbox, run: &str) -> Self {
        let (bead, epoch) = run.split_once('#').unwrap();
        let told = town.stage(bead).join(format!("tree-{epoch}"));
        wait_until("the worker is in its tree", || told.exists());
        let tree = PathBuf::from(fs::read_to_string(told).unwrap().trim());
        let mut worker = Self { town, run: run.to_owned(), tree, branch: String::new() };
        let head = worker.git(&["symbolic-ref", "--short", "HEAD"]).ok();
        head.line().clone_into(&mut worker.branch);
        worker
    }

    /// The worker of the next run of a bead. A start that finds processes of the run before in its tree is made again, as
    /// another run.
    #[track_caller]
    pub(crate) fn of_next(town: &'t Sandbox, bead: &str, earlier: usize) -> Self {
        let mut run = String::new();
        wait_until("the next run has begun", || {
            let runs = town.gt_json(&["run", "list", bead]);
            let last = &runs[0];
            last["id"].as_str().unwrap_or_default().clone_into(&mut run);
            runs.as_array().is_some_and(|runs| runs.len() > earlier) && last["state"] == "running"
        });
        Self::of(town, &run)
    }

    /// A program in the tree, with the environment of the worker.
    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> SandboxCommand {
        let command = self.town.command(program).dir(&self.tree);
        let command = command.env("GT_RUN", &self.run).env("BD_ACTOR", "web/polecats/other");
        command.env("GT_RUN_TOKEN", self.town.token_of(&self.run))
    }

    pub(crate) fn git(&self, arguments: &[&str]) -> FinishedProgram {
        self.command("git").args(arguments).run()
    }

    pub(crate) fn gt(&self, arguments: &[&str]) -> FinishedProgram {
        self.command(self.town.gt_path()).args(arguments).run()
    }

    #[track_caller]
    pub(crate) fn write(&self, name: &str, contents: &str) {
        let path = self.tree.join(name);
        self.town.make_dir(path.parent().unwrap());
        fs::write(path, contents).unwrap();
    }

    /// Writes a file and commits it.
    #[track_caller]
    pub(crate) fn commit(&self, name: &str, contents: &str, message: &str) {
        self.write(name, contents);
        self.git(&["add", "--all"]).ok();
        self.git(&["commit", "--quiet", "--message", message]).ok();
    }

    /// The state of the run.
    #[track_caller]
    pub(crate) fn state(&self) -> String {
        self.town.run_of(&self.run)["state"].as_str().unwrap().to_owned()
    }

    /// Kills the supervisor and the agent, so that no process of the run is left to report.
    #[track_caller]
    pub(crate) fn kill_all(&self) {
        let supervisor = self.town.supervisor_of(&self.run);
        self.town.signal("KILL", &supervisor);
        let bead = self.run.split('#').next().unwrap();
        self.town.signal("KILL", &self.town.agent_of(bead));
        self.wait_until_gone();
    }

    /// Waits until no process of the run is left, and its supervisor has landed what it can.
    #[track_caller]
    pub(crate) fn wait_until_gone(&self) {
        wait_until("nothing of the run is left", || self.town.run_of(&self.run)["alive"] == false);
        wait_until("its supervisor has ended", || !has_supervisor(self.town, &self.run));
    }
}
