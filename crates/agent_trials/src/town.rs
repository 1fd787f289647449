//! The town of the trials: a rig for each agent, a daemon, and the fake model.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use gt_testkit::{FakeModel, FinishedProgram, Sandbox, SandboxCommand};
use serde_json::Value;

use crate::agents::PinnedAgent;

/// How long a case waits for one thing. Only a failing case reaches it.
const CASE_TIME_LIMIT: Duration = Duration::from_mins(3);

/// The pause between two looks: each look is a command.
const POLL_INTERVAL: Duration = Duration::from_millis(400);

/// How long a command may take.
const COMMAND_LIMIT: Duration = Duration::from_mins(3);

/// A town with one agent.
pub(crate) struct TrialTown {
    pub(crate) sandbox: Sandbox,
    pub(crate) model: FakeModel,
    pub(crate) agent: PinnedAgent,
    /// The directory with a link to the agent's program.
    programs: PathBuf,
}

/// The rig of the town.
pub(crate) const RIG: &str = "web";

impl TrialTown {
    /// Makes a town whose rig works with this agent, and starts its daemon.
    pub(crate) fn make(gt: &Path, agent: &PinnedAgent, program: &Path) -> Self {
        let sandbox = Sandbox::town(gt);
        let model = FakeModel::start(&sandbox.root().join("requests.jsonl"));
        let programs = sandbox.make_dir(sandbox.root().join("programs"));
        let town = Self { sandbox, model, agent: agent.clone(), programs };
        town.add_rig(RIG, "we", agent, program);
        for (key, value) in [("scheduler.max_polecats", "5"), ("recovery.cooldown", "0s")] {
            town.gt(&["config", "set", key, value]).ok();
        }
        town.gt(&["up"]).ok();
        town
    }

    /// Adds a rig whose beads an agent works on.
    pub(crate) fn add_rig(&self, rig: &str, prefix: &str, agent: &PinnedAgent, program: &Path) {
        symlink(program, self.programs.join(agent.program)).expect("link the agent's program");
        self.point_at_model(agent);
        let origin = self.make_origin(rig);
        let add = self.command("gt").args(["rig", "add", rig]).arg(origin);
        add.args(["--prefix", prefix]).run().ok();
        self.gt(&["config", "set", &format!("rig.{rig}.runtime"), agent.name]).ok();
    }

    /// Gives the agent its settings: variables through its runtime, and files of its home.
    fn point_at_model(&self, agent: &PinnedAgent) {
        let setup = agent.setup(&self.model);
        for (name, value) in &setup.environment {
            let key = format!("environment.{name}");
            self.gt(&["config", "agent", "set", agent.name, &key, value]).ok();
        }
        let home = self.sandbox.root().join("home");
        for (path, text) in &setup.files {
            let path = home.join(path);
            self.sandbox.make_dir(path.parent().expect("a file has a directory"));
            fs::write(path, text).expect("write a setting of the agent");
        }
        if !setup.first_call.is_empty() {
            self.command(agent.program).args(&setup.first_call).run().ok();
        }
    }

    fn make_origin(&self, rig: &str) -> PathBuf {
        let seed = self.sandbox.git_repository(&format!("{rig}-seed"));
        let origin = self.origin(rig);
        let clone = self.sandbox.command("git").args(["clone", "--quiet", "--bare"]);
        clone.arg(&seed).arg(&origin).run().ok();
        origin
    }

    fn origin(&self, rig: &str) -> PathBuf {
        self.sandbox.root().join(format!("{rig}-origin.git"))
    }

    /// A program that finds the agent.
    pub(crate) fn command(&self, program: &str) -> SandboxCommand {
        let beside = match program {
            "gt" => self.sandbox.gt_path().to_owned(),
            "bd" => self.sandbox.bd_path(),
            other => other.into(),
        };
        self.sandbox.command(beside).path_first(&self.programs).time_limit(COMMAND_LIMIT)
    }

    /// Runs `gt`.
    pub(crate) fn gt(&self, arguments: &[&str]) -> FinishedProgram {
        self.command("gt").args(arguments).run()
    }

    /// The document that `gt` prints.
    pub(crate) fn gt_json(&self, arguments: &[&str]) -> Value {
        self.command("gt").args(arguments).arg("--json").run().ok().json()
    }

    /// Writes a bead with this script for the model.
    pub(crate) fn bead(&self, id: &str, title: &str, script: &str) {
        let description = format!("fake-model:\n{script}\nend of script");
        let create = self.command("bd").args(["create", title, "--id", id]);
        create.args(["--description", &description]).run().ok();
    }

    /// The same, and slings it.
    pub(crate) fn sling(&self, id: &str, script: &str) {
        self.bead(id, &format!("Trial {id}"), script);
        self.gt(&["sling", id, RIG]).ok();
    }

    /// Whether the bead is closed.
    pub(crate) fn is_closed(&self, id: &str) -> bool {
        let shown = self.command("bd").args(["show", id, "--json"]).run().ok().json();
        shown[0]["status"] == "closed"
    }

    /// The runs of a bead, oldest first.
    pub(crate) fn runs(&self, id: &str) -> Vec<Value> {
        let list = self.gt_json(&["run", "list", "--all", "--bead", id]);
        let list = list.get("runs").unwrap_or(&list);
        let mut runs = list.as_array().cloned().unwrap_or_default();
        runs.reverse();
        runs
    }

    /// The content of a file on the main branch of the origin.
    pub(crate) fn landed(&self, path: &str) -> Option<String> {
        self.landed_in(RIG, path)
    }

    /// The same in another rig.
    pub(crate) fn landed_in(&self, rig: &str, path: &str) -> Option<String> {
        let shown = self.command("git").arg("--git-dir").arg(self.origin(rig));
        let shown = shown.args(["show", &format!("main:{path}")]).run();
        (shown.code == 0).then_some(shown.stdout)
    }

    /// Waits until something is true; an error that says what is the case instead if it does not become true.
    pub(crate) fn wait(
        &self,
        id: &str,
        what: &str,
        condition: impl FnMut() -> bool,
    ) -> Result<(), String> {
        self.wait_for(CASE_TIME_LIMIT, id, what, condition)
    }

    /// The same with another limit.
    pub(crate) fn wait_for(
        &self,
        limit: Duration,
        id: &str,
        what: &str,
        mut condition: impl FnMut() -> bool,
    ) -> Result<(), String> {
        let deadline = Instant::now() + limit;
        loop {
            if condition() {
                return Ok(());
            }
            if Instant::now() >= deadline {
                return Err(format!(
                    "{what}: not within {} s; {}",
                    limit.as_secs(),
                    self.describe(id)
                ));
            }
            thread::sleep(POLL_INTERVAL);
        }
    }

    /// The state of a bead in a few words.
    fn describe(&self, id: &str) -> String {
        let runs = self.runs(id);
        let last = runs.last().cloned().unwrap_or_default();
        let text = |key: &str| last[key].as_str().unwrap_or_default().to_owned();
        format!("{} runs, the last is {} {}", runs.len(), text("state"), text("reason"))
    }

    /// The processes of the agent of a run, by the environment that they inherited.
    pub(crate) fn processes(&self, run: &str) -> Vec<i32> {
        let (mark, home) = (
            format!("GT_RUN={run}"),
            format!("HOME={}", self.sandbox.root().join("home").display()),
        );
        let ids = fs::read_dir("/proc").into_iter().flatten().flatten();
        let ids = ids.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        let is_of_run = |id: &i32| {
            let environment = fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
            let has = |wanted: &str| {
                environment.split(|byte| *byte == 0).any(|one| one == wanted.as_bytes())
            };
            has(&mark) && has(&home)
        };
        ids.filter(is_of_run).collect()
    }
}

impl Drop for TrialTown {
    fn drop(&mut self) {
        // It may be down already.
        let _ = self.gt(&["down"]);
    }
}
