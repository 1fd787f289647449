//! `gt init`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use gt_api::{InitDocument, InstalledDocument};
use gt_core::checks::CheckDefinition;
use gt_core::runtime::LoginState;
use gt_core::settings::SettingOrigin;
use gt_core::{ExecutorKind, Rig, RigSlug};
use gt_daemon::daemon;
use gt_scheduling::runtimes;
use gt_town::rigs::{self, MayFetch, NewRig};
use gt_town::settings;
use gt_town::{Installed, SystemClock, Town, install};

use super::rig::{print_added, remember_repository};
use crate::context::{CommandContext, this_program};
use crate::error::CliError;
use crate::output::{Printer, answer_or, can_ask};

/// How many agents work at once unless the person says otherwise.
const USUAL_CAP: &str = "3";

/// Set everything up for the git repository that you are in
///
/// Makes a town if there is none, adds the repository as a rig, and starts the daemon. Asks which agent does the work, how
/// many may work at once, and which checks work must pass before it lands. It can be said again: what is there stays.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  gt init\n  gt init --yes\n  gt init --agent codex --max 5 --yes

Afterwards gt and bd work from inside the repository. gt install and gt rig add do the same one by one."
)]
pub(super) struct InitArgs {
    /// Ask nothing: the first agent that is ready, 3 at once, and the checks that the files of the repository suggest
    #[arg(short, long)]
    yes: bool,
    /// The agent that does the work; gt config agent list shows those that there are
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// How many may work at once
    #[arg(long, value_name = "N", value_parser = parse_cap, allow_negative_numbers = true)]
    max: Option<u32>,
    /// Where the town is made, if there is none
    #[arg(long, value_name = "DIR", default_value = "~/gt")]
    town: PathBuf,
}

pub(super) fn run(context: &CommandContext<'_>, args: &InitArgs) -> Result<(), CliError> {
    let printer = context.printer;
    super::daemon::refuse_to_workers(context, "a start of the daemon")?;
    let has_answers = args.yes || (args.agent.is_some() && args.max.is_some());
    if !has_answers && !can_ask(printer) {
        return Err(CliError::request(
            "gt init asks three questions, and there is no terminal to answer from; gt init --yes asks nothing",
        ));
    }
    let repository = rigs::checkout_around(&context.directory)?.ok_or_else(|| {
        CliError::request(format!(
            "{} is in no git repository; change to the one that agents are to work on, or make one with git init",
            context.directory.display()
        ))
    })?;
    let asks = !args.yes && can_ask(printer);
    let (agent, cap) = {
        // Nothing is made before the answers are known to be right. A town that is not there yet has the agents and the
        // settings of one in memory.
        let town = match context.root() {
            Ok(root) => context.in_town(&root).town()?,
            Err(_) => Town::in_memory(context.actor()?, Arc::new(SystemClock), Arc::new(()))?,
        };
        (choose_agent(printer, &town, args, asks)?, choose_cap(printer, &town, args, asks)?)
    };
    let installed = town_for(context, args)?;
    let inside = context.in_town(&installed.root);
    let town = inside.town()?;
    let rigs = town.read(|reader| Ok(reader.rigs()?))?;
    let existing = town.rig_at(&rigs, &repository).filter(|rig| Path::new(&rig.repo) == repository);
    let set = |name: &str, value: &str| settings::set(&town, name, value, runtimes::check_name);
    set("worker.runtime", &agent)?;
    set("scheduler.max_polecats", &cap)?;
    let (rig, is_new) = match existing {
        Some(rig) => (rig, false),
        None => (add_rig(&inside, &town, &rigs, &repository)?, true),
    };
    let checks = choose_checks(printer, &town, &rig, is_new, asks)?;
    let started = daemon::start(town.root(), &this_program()?)?;
    if printer.json() {
        return printer.object(&InitDocument {
            town: InstalledDocument {
                root: installed.root.display().to_string(),
                created: installed.is_new,
                prefix: None,
                server: installed.server,
                joined: None,
            },
            rig: rig.slug.to_string(),
            repository: rig.repo,
            agent,
            max_polecats: cap,
            checks: checks.iter().map(|check| check.name.clone()).collect(),
        });
    }
    match parse_cap(&cap) {
        Ok(cap) => printer.done(format!("✓ {agent} does the work, at most {cap} at once"))?,
        Err(_) => printer.done(format!("✓ {agent} does the work, without a cap"))?,
    }
    super::daemon::print_started(printer, &started, &daemon::log_path(town.root()))?;
    printer.done("Next, here in the repository:")?;
    printer.done("  bd create \"What is to be done\"")?;
    printer.done("  gt sling <bead>")?;
    printer.done("  gt status --watch")
}

/// The town of the repository, or the one in the directory that was named, which is made if it is not there.
fn town_for(context: &CommandContext<'_>, args: &InitArgs) -> Result<Installed, CliError> {
    if let Ok(root) = context.root() {
        return Ok(Installed { root, is_new: false, server: None, joined: false, not_on: None });
    }
    let home = context.environment.path("HOME");
    let place = match (args.town.strip_prefix("~"), home) {
        (Ok(below), Some(home)) => home.join(below),
        (Ok(_), None) => {
            return Err(CliError::request(
                "HOME is not set; say with --town where the town is made",
            ));
        }
        (Err(_), _) => context.directory.join(&args.town),
    };
    let installed = install(&place, &context.environment, &context.actor()?, &SystemClock)?;
    if installed.is_new {
        context.printer.done(format!("✓ Made a town in {}", installed.root.display()))?;
    }
    Ok(installed)
}

/// Reads how many agents may work at once.
fn parse_cap(text: &str) -> Result<u32, String> {
    text.parse().ok().filter(|cap| *cap > 0).ok_or_else(|| {
        "this is a whole number from 1 on; gt config set scheduler.max_polecats -1 removes the cap later"
            .to_owned()
    })
}

/// The first answer that is right. Until then the question is asked again, with what was wrong. No answer is the usual one.
fn ask_until_right<T>(
    printer: &Printer,
    question: &str,
    usual: &str,
    read: impl Fn(&str) -> Result<T, CliError>,
) -> Result<T, CliError> {
    loop {
        match read(&answer_or(printer, question, usual)?) {
            Ok(answer) => return Ok(answer),
            Err(wrong) => printer.note(format!("note: {wrong}")),
        }
    }
}

fn choose_agent(
    printer: &Printer,
    town: &Town,
    args: &InitArgs,
    asks: bool,
) -> Result<String, CliError> {
    let agent = named_agent(printer, town, args, asks)?;
    if let Some(program) = runtimes::missing_program(town, &agent)? {
        printer.note(format!(
            "warning: {agent} is not installed here: there is no program {program}, and its runs fail until there is"
        ));
    }
    Ok(agent)
}

fn named_agent(
    printer: &Printer,
    town: &Town,
    args: &InitArgs,
    asks: bool,
) -> Result<String, CliError> {
    if let Some(agent) = &args.agent {
        runtimes::check_name(town, agent)?;
        return Ok(agent.clone());
    }
    let found = runtimes::installed(town)?;
    for (name, login) in &found {
        printer.done(match login {
            LoginState::Found(place) => format!("✓ {name} ({place})"),
            LoginState::Unknown => format!("✓ {name}"),
            LoginState::Missing => format!("{name} is here, but no login or key of it was found"),
        })?;
    }
    let current = settings::get(town, "worker.runtime")?.value;
    let usual = if current.is_empty() {
        found.first().map(|(name, _)| name.to_string())
    } else {
        Some(current)
    };
    let Some(usual) = usual else {
        return Err(CliError::request(
            "no agent that gt knows is installed here; install one (claude, codex, …) and say gt init again, or name one that \
             is installed later: gt init --agent claude --yes",
        ));
    };
    if !asks {
        return Ok(usual);
    }
    ask_until_right(printer, "Which agent does the work?", &usual, |agent| {
        runtimes::check_name(town, agent)?;
        Ok(agent.to_owned())
    })
}

fn choose_cap(
    printer: &Printer,
    town: &Town,
    args: &InitArgs,
    asks: bool,
) -> Result<String, CliError> {
    if let Some(max) = args.max {
        return Ok(max.to_string());
    }
    let current = settings::get(town, "scheduler.max_polecats")?;
    let is_set = current.origin != SettingOrigin::Default;
    let usual = if is_set { current.value } else { USUAL_CAP.to_owned() };
    if !asks {
        return Ok(usual);
    }
    ask_until_right(printer, "How many may work at once?", &usual, |cap| {
        if cap != usual {
            parse_cap(cap).map_err(CliError::request)?;
        }
        Ok(cap.to_owned())
    })
}

fn add_rig(
    context: &CommandContext<'_>,
    town: &Town,
    rigs: &[Rig],
    repository: &Path,
) -> Result<Rig, CliError> {
    let directory = repository.file_name().unwrap_or_default().to_string_lossy();
    let is_taken = |slug: &str| {
        rigs.iter().any(|rig| rig.slug.as_str() == slug) || town.root().join(slug).exists()
    };
    let slug = RigSlug::of_directory(&directory, is_taken);
    let rig = rigs::add(
        town,
        &NewRig {
            name: slug.as_str(),
            repository: repository.to_str(),
            prefix: None,
            branch: None,
            executor: rigs::usual_executor(true),
        },
    )?;
    let earlier = remember_repository(context, town, &rig);
    print_added(context.printer, town, &rig, earlier.as_deref())?;
    if rig.executor != ExecutorKind::Tmux {
        context.printer.done("tmux is not here, so agents work without a screen of their own")?;
    }
    Ok(rig)
}

/// The checks that work must pass from now on. A rig that has some keeps them.
fn choose_checks(
    printer: &Printer,
    town: &Town,
    rig: &Rig,
    is_new: bool,
    asks: bool,
) -> Result<Vec<CheckDefinition>, CliError> {
    let kept = rigs::checks(town, &rig.slug)?;
    if !is_new && !kept.is_empty() {
        return Ok(kept);
    }
    let suggested = rigs::suggested_checks(town, rig, MayFetch::No).unwrap_or_default();
    if suggested.is_empty() {
        printer.done(format!(
            "Work lands unchecked: no file suggests a check; gt rig check add {} test \"<command>\" adds one",
            rig.slug
        ))?;
        return Ok(suggested);
    }
    let commands: Vec<&str> = suggested.iter().map(|check| check.command.as_str()).collect();
    let question =
        format!("Shall work pass these checks before it lands: {}?", commands.join("; "));
    let is_wanted = |answer: &str| match answer.to_ascii_lowercase().as_str() {
        "y" | "yes" => Ok(true),
        "n" | "no" => Ok(false),
        _ => Err(CliError::request("answer y or n")),
    };
    if asks && !ask_until_right(printer, &question, "y", is_wanted)? {
        return Ok(Vec::new());
    }
    for check in &suggested {
        rigs::add_check(town, rig.slug.as_str(), check)?;
        printer.done(format!("✓ Work lands only if {} passes: {}", check.name, check.command))?;
    }
    Ok(suggested)
}
