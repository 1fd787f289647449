//! A convoy of ten beads in two rigs: five for Claude Code, five for Codex. One agent meets a usage limit, one is killed
//! and one asks for help; everything lands. The commands of the person who watches are shown with what they print.

use std::io::Write;
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};

use crate::agents::PinnedAgent;
use crate::cases::work;
use crate::town::{RIG, TrialTown};

/// The rig of Codex.
const OTHER_RIG: &str = "api";

/// The beads whose agents get into trouble, and the beginning of their scripts.
const LIMITED: (&str, &str) = ("we-2", "limit 3600\nnext run\n");
const KILLED: (&str, &str) = ("ap-2", "write half.txt Half\nhang\nnext run\n");
const ASKING: (&str, &str) = ("ap-4", "shell gt escalate 'Which port is free?'\n");

/// An agent and its program.
type InstalledAgent<'a> = (&'a PinnedAgent, &'a Path);

/// Lets the convoy land, and shows it.
pub(crate) fn convoy_of_ten(
    gt: &Path,
    (claude, claude_program): InstalledAgent<'_>,
    (codex, codex_program): InstalledAgent<'_>,
    out: &mut impl Write,
) -> Result<(), String> {
    let town = TrialTown::make(gt, claude, claude_program);
    town.add_rig(OTHER_RIG, "ap", codex, codex_program);
    town.gt(&["config", "set", "worker.limit_patience", "20s"]).ok();
    // The model of Codex is in no table of prices.
    town.gt(&["config", "set", "cost.prices", "fake-model=2.5/10"]).ok();
    let ids: Vec<String> = (1..=5).flat_map(|n| [format!("we-{n}"), format!("ap-{n}")]).collect();
    for id in &ids {
        let trouble = [LIMITED, KILLED, ASKING].into_iter().find(|(bead, _)| bead == id);
        let begins = trouble.map_or("", |(_, script)| script);
        town.bead(id, &format!("Add {id}.txt"), &format!("{begins}{}", work(&town, id)));
    }
    let mut show = |arguments: &[&str]| -> Result<(), String> {
        let said = town.gt(arguments).ok();
        write!(out, "$ gt {}\n{}\n", arguments.join(" "), said.stdout)
            .map_err(|error| error.to_string())
    };
    let mut create = vec!["convoy", "create", "Ten files"];
    create.extend(ids.iter().map(String::as_str));
    show(&create)?;

    town.wait(KILLED.0, "the agent that is killed waits for an answer", || {
        let requests = town.model.requests();
        requests.iter().any(|request| request["outcome"] == "hang")
    })?;
    for id in town.processes(&format!("{}#1", KILLED.0)) {
        // It may have ended with the process before it.
        let _ = Pid::from_raw(id).map(|pid| kill_process(pid, Signal::KILL));
    }
    town.wait(ASKING.0, "the question is in the inbox", || {
        town.gt(&["inbox"]).stdout.contains("Which port is free?")
    })?;
    show(&["inbox"])?;
    let is_over = |run: &serde_json::Value| run["state"] != "running" && run["state"] != "starting";
    town.wait(LIMITED.0, "an agent has met its limit", || {
        town.runs(LIMITED.0).first().is_some_and(is_over)
    })?;
    show(&["why", LIMITED.0])?;
    // The end of the hour is not waited for.
    show(&["config", "agent", "resume", claude.name])?;

    for id in &ids {
        town.wait(id, "the bead is closed", || town.is_closed(id))?;
        let rig = if id.starts_with("we-") { RIG } else { OTHER_RIG };
        if town.landed_in(rig, &format!("{id}.txt")).is_none() {
            return Err(format!("{id} is closed, and its file is not on the main branch"));
        }
    }
    // The usage of an agent is complete when it has ended, which may be after its work has landed.
    town.wait("ap-5", "no run is live", || {
        town.gt_json(&["run", "list"]).as_array().is_none_or(Vec::is_empty)
    })?;
    for arguments in [
        &["convoy", "list", "--all"][..],
        &["run", "list", "--all"],
        &["mq", "show", LIMITED.0],
        &["cost", "--by", "bead"],
        &["cost", "--by", "model"],
        &["inbox"],
    ] {
        show(arguments)?;
    }
    Ok(())
}
