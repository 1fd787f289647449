//! The cases: one property of the product each, tried with a real agent.

use std::fs;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::town::TrialTown;

/// How long an agent may live after `gt done`; the grace of the product is 10 s.
const END_LIMIT: Duration = Duration::from_mins(1);

/// The ability that an agent must have for a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AgentAbility {
    /// It works.
    Work,
    /// It runs commands by itself.
    Tools,
    /// It tells its usage while it works.
    LiveUsage,
    /// Its preset gives it the tools of `gt mcp`.
    Mcp,
}

/// One thing that an agent must get through.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TrialCase {
    /// Its name on the command line.
    pub(crate) name: &'static str,
    /// Its heading in the table.
    pub(crate) title: &'static str,
    pub(crate) needs: AgentAbility,
    pub(crate) run: fn(&TrialTown) -> Result<(), String>,
}

/// All cases, in the order of the table.
pub(crate) const CASES: [TrialCase; 11] = [
    TrialCase { name: "lands", title: "lands a bead", needs: AgentAbility::Work, run: lands },
    TrialCase { name: "usage", title: "usage recorded", needs: AgentAbility::Work, run: usage },
    TrialCase {
        name: "limit",
        title: "usage limit parks and resumes",
        needs: AgentAbility::Work,
        run: limit,
    },
    TrialCase {
        name: "killed",
        title: "killed in the middle",
        needs: AgentAbility::Tools,
        run: killed,
    },
    TrialCase { name: "help", title: "asks for help", needs: AgentAbility::Tools, run: help },
    TrialCase { name: "handoff", title: "handoff", needs: AgentAbility::Tools, run: handoff },
    TrialCase { name: "nudge", title: "nudge reaches it", needs: AgentAbility::Tools, run: nudge },
    TrialCase { name: "five", title: "five at once", needs: AgentAbility::Work, run: five },
    TrialCase {
        name: "ends",
        title: "ends after `gt done`",
        needs: AgentAbility::Tools,
        run: ends,
    },
    TrialCase {
        name: "budget",
        title: "over its budget",
        needs: AgentAbility::LiveUsage,
        run: budget,
    },
    TrialCase { name: "mcp", title: "works with MCP tools", needs: AgentAbility::Mcp, run: mcp },
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
    // A question leaves the inbox when its bead is closed, so the agent stays at work until it was seen there.
    let seen = town.sandbox.root().join("seen");
    let wait = format!("until [ -e '{}' ]; do sleep 0.1; done", seen.display());
    let ask = format!("shell gt escalate 'Which port is free?'; {wait}");
    town.sling("we-help", &format!("{ask}\n{}", work(town, "we-help")));
    town.wait("we-help", "the question is in the inbox", || {
        town.gt(&["inbox"]).stdout.contains("Which port is free?")
    })?;
    fs::write(&seen, "").map_err(|error| error.to_string())?;
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

/// The limits of the case about budgets: a run takes two calls to reach the first and two more to reach the second.
const RUN_TOKENS: u64 = 2_000;
const HANDOFF_TOKENS: u64 = 1_500;

fn budget(town: &TrialTown) -> Result<(), String> {
    for (key, tokens) in
        [("budget.run_tokens", RUN_TOKENS), ("budget.handoff_tokens", HANDOFF_TOKENS)]
    {
        town.gt(&["config", "set", key, &tokens.to_string()]).ok();
    }
    // Each call takes longer than the way of its usage to us, as calls of real models do.
    let call = "wait 5000\nshell true\n";
    // One agent never listens.
    let deaf = format!("write we-deaf.txt Half\n{}", call.repeat(20));
    town.sling("we-deaf", &format!("{deaf}say Done."));
    let run = wait_until_over_budget(town, "we-deaf")?;
    if run["state"] != "lost" {
        return Err(format!("the run that never listened is {}", run["state"]));
    }
    // The model counts what it really answered, also what no telemetry told of.
    let answered = town.model.requests().into_iter().map(|request| {
        request["input_tokens"].as_u64().unwrap_or(0)
            + request["output_tokens"].as_u64().unwrap_or(0)
    });
    let answered: Vec<u64> = answered.collect();
    let (used, largest) =
        (answered.iter().sum::<u64>(), answered.iter().max().copied().unwrap_or(0));
    let most = RUN_TOKENS + HANDOFF_TOKENS + 2 * largest;
    if used > most {
        return Err(format!(
            "it used {used} tokens; one call, the handoff and one call are {most}"
        ));
    }

    // Another one hands over when it is asked to.
    let listen = "shell until gt mail inbox | grep -q 'ends soon'; do sleep 0.2; done; gt handoff -m 'Half is done'";
    town.sling("we-over", &format!("write we-over.txt Half\n{call}{listen}\nhang"));
    let run = wait_until_over_budget(town, "we-over")?;
    let tokens = run["tokens"].as_u64().unwrap_or(0);
    if tokens > RUN_TOKENS + 2 * largest {
        return Err(format!("the run that handed over used {tokens} tokens"));
    }
    let rows = town.gt(&["inbox"]).stdout;
    if rows.contains("we-deaf") && rows.contains("we-over") {
        Ok(())
    } else {
        Err(format!(
            "not both runs are in the inbox: {}",
            rows.lines().collect::<Vec<_>>().join(" ")
        ))
    }
}

fn mcp(town: &TrialTown) -> Result<(), String> {
    let script = "write we-mcp.txt Hello\ntool comment {\"text\": \"By a tool\"}\n\
                  tool done {\"message\": \"Add we-mcp\"}\nsay Done.";
    town.sling("we-mcp", script);
    wait_until_landed(town, "we-mcp")?;
    let comments = town.command("bd").args(["comments", "we-mcp"]).run().stdout;
    if comments.contains("By a tool") { Ok(()) } else { Err("the comment is missing".to_owned()) }
}

/// Waits until the first run of a bead has ended because of its tokens.
fn wait_until_over_budget(town: &TrialTown, id: &str) -> Result<serde_json::Value, String> {
    let first = || town.runs(id).into_iter().next().unwrap_or_default();
    town.wait(id, "the run has ended", || first()["ended_at"].is_string())?;
    let run = first();
    if run["over_limit"] == "tokens" {
        Ok(run)
    } else {
        Err(format!("{id}#1 has ended for another reason: {}", run["reason"]))
    }
}
