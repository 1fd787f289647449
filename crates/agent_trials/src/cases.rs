//! The cases: one property of the product each, tried with a real agent.

use std::fs;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::town::TrialTown;

/// How long an agent may live after `gt done`; the grace of the product is 10 s.
const END_LIMIT: Duration = Duration::from_mins(1);

/// One thing that an agent must get through.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TrialCase {
    /// Its name on the command line.
    pub(crate) name: &'static str,
    /// Its heading in the table.
    pub(crate) title: &'static str,
    /// Whether the agent must run commands by itself.
    pub(crate) needs_tools: bool,
    pub(crate) run: fn(&TrialTown) -> Result<(), String>,
}

/// All cases, in the order of the table.
pub(crate) const CASES: [TrialCase; 9] = [
    TrialCase { name: "lands", title: "lands a bead", needs_tools: false, run: lands },
    TrialCase { name: "usage", title: "usage recorded", needs_tools: false, run: usage },
    TrialCase {
        name: "limit",
        title: "usage limit parks and resumes",
        needs_tools: false,
        run: limit,
    },
    TrialCase { name: "killed", title: "killed in the middle", needs_tools: true, run: killed },
    TrialCase { name: "help", title: "asks for help", needs_tools: true, run: help },
    TrialCase { name: "handoff", title: "handoff", needs_tools: true, run: handoff },
    TrialCase { name: "nudge", title: "nudge reaches it", needs_tools: true, run: nudge },
    TrialCase { name: "five", title: "five at once", needs_tools: false, run: five },
    TrialCase { name: "ends", title: "ends after `gt done`", needs_tools: true, run: ends },
];

/// The script that writes a file with the name of the bead and finishes.
pub(crate) fn work(town: &TrialTown, id: &str) -> String {
    if town.agent.has_tools() {
        format!(
            "say I write the file.\nwrite {id}.txt Hello\nshell git add --all && git commit --quiet -m 'Add {id}'\n\
             shell gt done\nsay Done."
        )
    } else {
        format!("write {id}.txt Hello\nsay Done.")
    }
}

/// Waits until the work of a bead is on the main branch.
fn wait_until_landed(town: &TrialTown, id: &str) -> Result<(), String> {
    town.wait(id, "the bead is closed", || town.is_closed(id))?;
    match town.landed(&format!("{id}.txt")) {
        Some(text) if text.trim() == "Hello" => Ok(()),
        Some(text) => Err(format!("{id}.txt has landed with other content: {text:?}")),
        None => Err(format!("the bead is closed, and {id}.txt is not on the main branch")),
    }
}

fn lands(town: &TrialTown) -> Result<(), String> {
    town.sling("we-lands", &work(town, "we-lands"));
    wait_until_landed(town, "we-lands")?;
    let runs = town.runs("we-lands").len();
    if runs == 1 { Ok(()) } else { Err(format!("it took {runs} runs")) }
}

fn usage(town: &TrialTown) -> Result<(), String> {
    town.sling("we-usage", &work(town, "we-usage"));
    wait_until_landed(town, "we-usage")?;
    // It is recorded when the agent has ended, which may be after its work has landed.
    town.wait_for(END_LIMIT, "we-usage", "the run has tokens or cost", || {
        let run = town.gt_json(&["run", "show", "we-usage#1"]);
        let cost =
            run["cost"].as_str().is_some_and(|cost| !cost.trim_matches(['0', '.']).is_empty());
        cost || run["tokens"].as_u64().is_some_and(|tokens| tokens > 0)
    })
}

fn limit(town: &TrialTown) -> Result<(), String> {
    // Agents wait by themselves for a limit that ends within minutes, and some try again without end.
    town.gt(&["config", "set", "worker.limit_patience", "20s"]).ok();
    town.sling("we-limit", &format!("limit 3600\nnext run\n{}", work(town, "we-limit")));
    town.wait("we-limit", "the first run has met the limit", || {
        let runs = town.runs("we-limit");
        runs.first().is_some_and(|run| run["state"] != "running" && run["state"] != "starting")
    })?;
    let why = town.gt(&["why", "we-limit"]).ok().stdout;
    if !why.contains("parked") && !why.contains("limit") {
        return Err(format!(
            "the runtime is not parked: {}",
            why.lines().collect::<Vec<_>>().join(" ")
        ));
    }
    // The end of the hour is not waited for.
    town.gt(&["config", "agent", "resume", town.agent.name]).ok();
    wait_until_landed(town, "we-limit")
}

fn killed(town: &TrialTown) -> Result<(), String> {
    let first = "write we-first.txt One\nshell git add --all && git commit --quiet -m First\nhang";
    town.sling("we-killed", &format!("{first}\nnext run\n{}", work(town, "we-killed")));
    town.wait("we-killed", "the agent waits for an answer", || {
        town.model.requests().iter().any(|request| request["outcome"] == "hang")
    })?;
    for id in town.processes("we-killed#1") {
        // It may have ended with the process before it.
        let _ = Pid::from_raw(id).map(|pid| kill_process(pid, Signal::KILL));
    }
    wait_until_landed(town, "we-killed")
}

fn help(town: &TrialTown) -> Result<(), String> {
    let ask = "shell gt escalate 'Which port is free?'";
    town.sling("we-help", &format!("{ask}\n{}", work(town, "we-help")));
    town.wait("we-help", "the question is in the inbox", || {
        town.gt(&["inbox"]).stdout.contains("Which port is free?")
    })?;
    wait_until_landed(town, "we-help")
}

fn handoff(town: &TrialTown) -> Result<(), String> {
    let first = "write we-half.txt Half\nshell git add --all && git commit --quiet -m Half\n\
                 shell gt handoff -m 'The other half is missing'\nsay Handed over.";
    town.sling("we-handoff", &format!("{first}\nnext run\n{}", work(town, "we-handoff")));
    wait_until_landed(town, "we-handoff")?;
    if town.landed("we-half.txt").is_none() {
        return Err("the work of the first session has not landed".to_owned());
    }
    let runs = town.runs("we-handoff").len();
    if runs == 1 {
        Ok(())
    } else {
        Err(format!("it took {runs} runs instead of two sessions of one"))
    }
}

fn nudge(town: &TrialTown) -> Result<(), String> {
    let (ready, go) = (town.sandbox.root().join("ready"), town.sandbox.root().join("go"));
    let wait = format!(
        "shell touch '{}'; until [ -e '{}' ]; do sleep 0.1; done; gt prime",
        ready.display(),
        go.display()
    );
    town.sling("we-nudge", &format!("{wait}\n{}", work(town, "we-nudge")));
    town.wait("we-nudge", "the agent works", || ready.exists())?;
    let sent = town.gt_json(&["nudge", "we-nudge", "The port is 8080"]);
    fs::write(&go, "").map_err(|error| error.to_string())?;
    let id = sent["id"].as_str().or(sent["message"].as_str()).unwrap_or_default().to_owned();
    town.wait("we-nudge", "the message is seen", || {
        town.gt_json(&["mail", "show", &id]).to_string().contains("\"seen")
    })?;
    wait_until_landed(town, "we-nudge")
}

fn five(town: &TrialTown) -> Result<(), String> {
    let ids: Vec<String> = (1..=5).map(|number| format!("we-five{number}")).collect();
    for id in &ids {
        town.sling(id, &work(town, id));
    }
    ids.iter().try_for_each(|id| wait_until_landed(town, id))
}

fn ends(town: &TrialTown) -> Result<(), String> {
    town.sling(
        "we-ends",
        &format!("{}\nshell sleep 600", work(town, "we-ends").replace("\nsay Done.", "")),
    );
    wait_until_landed(town, "we-ends")?;
    town.wait_for(END_LIMIT, "we-ends", "no process of the agent is left", || {
        town.processes("we-ends#1").is_empty()
    })
}
