//! Towns whose agents are small scripts that say what they do and wait for what a test allows.

use std::fs;
use std::path::PathBuf;

use gt_testkit::{FinishedProgram, Sandbox, SandboxCommand, TestClock, wait_until};
use serde_json::Value;

use crate::support::{Steps as _, town_with_rigs};

/// The first lines of every agent. They report another live agent of the bead, record the identity and the
/// start of the agent, and end it when the test is over.
const PRELUDE: &str = r#"
bead=$1
run=$2
is_alive() {
    # One look: a process that has ended may disappear between two.
    if [ -e /proc/self/status ]; then
        grep -q '^State:.[^ZX]' "/proc/$1/status" 2>/dev/null
    else
        kill -0 "$1" 2>/dev/null
    fi
}
if ! mkdir "$stage/$bead" 2>/dev/null; then
    other=$(cat "$stage/$bead/pid" 2>/dev/null)
    if [ -n "$other" ] && is_alive "$other"; then echo "$run beside $other" >> "$stage/shouts"; fi
fi
echo $$ > "$stage/$bead/new-pid"
mv "$stage/$bead/new-pid" "$stage/$bead/pid"
if [ -n "${GT_RUN_TOKEN_FILE:-}" ]; then cat "$GT_RUN_TOKEN_FILE" > "$stage/$bead/token-${run##*#}"; fi
echo "+ $run" >> "$stage/story"
wait_for() {
    looks=0
    while [ ! -e "$stage/$1" ]; do
        [ -d "$stage" ] && [ $looks -lt 12000 ] || exit 99
        looks=$((looks + 1))
        sleep 0.05
    done
}
"#;

/// A town with the rig `web`, whose agents are this script: `$bead` and `$run` say what it works on, `$stage`
/// is a directory that the test sees, and `wait_for <name>` waits for a file there.
#[track_caller]
pub(crate) fn town_with_agent(script: &str) -> Sandbox {
    let town = town_with_rigs(&["web"]);
    set_agent(&town, script);
    // Agents that are asked to end get little time, so that such tests stay short.
    town.gt(["config", "set", "worker.kill_grace", "300ms"]).ok();
    town
}

/// Gives the rig `web` another agent.
#[track_caller]
pub(crate) fn set_agent(town: &Sandbox, script: &str) {
    let stage = town.make_dir(town.root().join("stage"));
    let end = "echo \"- $run\" >> \"$stage/story\"";
    let script = format!("stage='{}'\n{PRELUDE}\n{script}\n{end}", stage.display());
    // Another file each time: one that is being executed cannot be written.
    let name = format!("agent-{}", fs::read_dir(town.cwd()).unwrap().count());
    let agent = town.write_script(&name, &script);
    let command = format!("'{}' {{bead}} {{run}}", agent.display());
    town.gt(["config", "set", "rig.web.command", &command]).ok();
}

/// Steps of tests with agents.
pub(crate) trait Stage {
    /// A file that agents see.
    fn stage(&self, name: &str) -> PathBuf;
    /// Lets agents pass that wait for this.
    fn allow(&self, name: &str);
    /// The runs that agents began (`+ we-a#1`) and ended (`- we-a#1`), in order.
    fn story(&self) -> Vec<String>;
    /// Waits until an agent has begun this run.
    fn wait_for_agent(&self, run: &str);
    /// The process of the last agent of a bead.
    fn agent_of(&self, bead: &str) -> String;
    /// The token that proves to be the worker of a run that has begun.
    fn token_of(&self, run: &str) -> String;
    /// The process that supervises a run.
    fn supervisor_of(&self, run: &str) -> String;
    /// `gt` with these arguments, ready to be started.
    fn start_gt(&self, arguments: &[&str]) -> SandboxCommand;
    /// Sends a signal to a process, which may be gone. Waits until a process that was killed is gone.
    fn signal(&self, signal: &str, process: &str);
    /// A run as `gt run show` has it.
    fn run_of(&self, run: &str) -> Value;
    /// The states of all runs of a bead, newest first.
    fn states(&self, bead: &str) -> Vec<String>;
    /// The output of `gt why --json`.
    fn why(&self, bead: &str) -> Value;
    /// The codes of the reasons that `gt why` gives.
    fn reasons(&self, bead: &str) -> Vec<String>;
    /// One cycle by hand.
    fn cycle(&self) -> FinishedProgram;
    /// `gt`, so much later by the clock than it is; where clocks cannot be made wrong, at the time that it is.
    fn start_gt_later(&self, arguments: &[&str], seconds: i64) -> SandboxCommand;
    /// Waits until nothing is live, and expects that no bead ever had two agents at once.
    fn assert_quiet(&self);
}

impl Stage for Sandbox {
    fn stage(&self, name: &str) -> PathBuf {
        self.root().join("stage").join(name)
    }

    fn allow(&self, name: &str) {
        fs::write(self.stage(name), "").unwrap();
    }

    fn story(&self) -> Vec<String> {
        let story = fs::read_to_string(self.stage("story")).unwrap_or_default();
        story.lines().map(str::to_owned).collect()
    }

    #[track_caller]
    fn wait_for_agent(&self, run: &str) {
        let line = format!("+ {run}");
        wait_until(&format!("an agent has begun {run}"), || self.story().contains(&line));
    }

    #[track_caller]
    fn agent_of(&self, bead: &str) -> String {
        fs::read_to_string(self.stage(bead).join("pid")).unwrap().trim().to_owned()
    }

    #[track_caller]
    fn token_of(&self, run: &str) -> String {
        let (bead, epoch) = run.split_once('#').unwrap();
        let token = fs::read_to_string(self.stage(bead).join(format!("token-{epoch}"))).unwrap();
        token.trim().to_owned()
    }

    #[track_caller]
    fn supervisor_of(&self, run: &str) -> String {
        let lock = self.cwd().join(".gt/runs").join(format!("{run}.lock"));
        let read = || fs::read_to_string(&lock).unwrap_or_default();
        wait_until("the agent is written down", || {
            read().lines().next().is_some_and(|line| line.split_whitespace().count() == 3)
        });
        read().split_whitespace().next().unwrap().to_owned()
    }

    fn start_gt(&self, arguments: &[&str]) -> SandboxCommand {
        self.command(self.gt_path()).args(arguments)
    }

    fn signal(&self, signal: &str, process: &str) {
        let script = format!("kill -{signal} {process} 2>/dev/null || true");
        self.command("/bin/sh").args(["-c", &script]).run().ok();
        // A busy machine may deliver it later than the next step, which would meet a process that still answers.
        if signal == "KILL" && !process.starts_with('-') {
            wait_until("the killed process is gone", || !is_alive(process));
        }
    }

    fn start_gt_later(&self, arguments: &[&str], seconds: i64) -> SandboxCommand {
        TestClock::wrong_by(self, seconds).read_by(self.start_gt(arguments))
    }

    #[track_caller]
    fn run_of(&self, run: &str) -> Value {
        self.gt_json(&["run", "show", run])
    }

    #[track_caller]
    fn states(&self, bead: &str) -> Vec<String> {
        crate::support::texts(&self.gt_json(&["run", "list", bead]), "state")
    }

    #[track_caller]
    fn why(&self, bead: &str) -> Value {
        self.gt_json(&["why", bead])
    }

    #[track_caller]
    fn reasons(&self, bead: &str) -> Vec<String> {
        crate::support::texts(&self.why(bead)["reasons"], "code")
    }

    #[track_caller]
    fn cycle(&self) -> FinishedProgram {
        self.gt(["scheduler", "run"])
    }

    #[track_caller]
    fn assert_quiet(&self) {
        wait_until("nothing is live", || {
            self.gt_json(&["run", "list"]).as_array().unwrap().is_empty()
        });
        wait_until_landed(self);
        let shouts = fs::read_to_string(self.stage("shouts")).unwrap_or_default();
        assert_eq!(shouts, "", "two agents of one bead at once");
    }
}

/// Waits until no merge request is on its way by itself.
#[track_caller]
pub(crate) fn wait_until_landed(town: &Sandbox) {
    wait_until("nothing is landing", || {
        let moving = ["queued", "building", "checking", "landing"];
        let open = town.gt_json(&["mq", "list"]);
        let mut states = open.as_array().unwrap().iter().map(|one| one["state"].as_str().unwrap());
        states.all(|state| !moving.contains(&state))
    });
}

/// Whether a supervisor of a run is there: after the end of the run it lands what it can.
pub(crate) fn has_supervisor(town: &Sandbox, run: &str) -> bool {
    let root = town.cwd().display().to_string();
    let processes = fs::read_dir("/proc").unwrap().flatten();
    processes.into_iter().any(|process| {
        let words = fs::read(process.path().join("cmdline")).unwrap_or_default();
        let words: Vec<_> = words.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
        words.iter().any(|word| *word == root)
            && words.ends_with(&["exec".into(), run.into(), "".into()])
    })
}

/// Whether a process is there and has not ended.
pub(crate) fn is_alive(process: &str) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    status.lines().any(|line| line.starts_with("State:") && !line.contains(['Z', 'X']))
}

/// The most runs that were begun and not ended at any moment of a story, and how often each was begun.
pub(crate) fn peak(story: &[String]) -> usize {
    let (mut now, mut most) = (0_usize, 0);
    for line in story {
        if line.starts_with('+') {
            now += 1;
        } else {
            now -= 1;
        }
        most = most.max(now);
    }
    most
}
