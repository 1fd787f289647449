//! `gt config agent`.

use std::collections::BTreeMap;

use clap::{Args, Subcommand};
use gt_api::{
    BrokenRuntimeDocument, LimitPatternDocument, LoginPlacesDocument, PasteDocument,
    RuntimeDocument, RuntimeEntryDocument, TestedRuntimeDocument, UsagePatternsDocument,
};
use gt_core::formula::WordSet as _;
use gt_core::runtime::{AccountWay, Command, Limit, LoginState, Pattern, Prompt, Runtime};
use gt_core::time::format_duration;
use gt_scheduling::runtimes::{self, KnownRuntime, RuntimeTest, TrialAnswer};

use super::deacon::resume_runtime;
use crate::context::{CommandContext, this_program};
use crate::error::CliError;
use crate::output::{Cell, Table, moment};
use crate::values::texts;

/// Runtimes: the programs that work on beads
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt config agent list
  gt config agent show claude
  gt config agent set claude command 'claude --print --model opus'
  gt config agent set reviewer extends claude
  gt config agent unset claude
  gt config agent resume claude
  gt config agent test codex
  gt config set worker.runtime codex

What is set is kept in .gt/runtimes/<name>.toml, which can be edited too.")]
pub(super) struct AgentArgs {
    #[command(subcommand)]
    verb: AgentVerb,
}

#[derive(Debug, Subcommand)]
enum AgentVerb {
    /// List the runtimes
    List,
    /// Show everything about a runtime; of variables only their names
    Show {
        /// Its name
        name: String,
    },
    /// Change one thing about a runtime, or make a new one
    #[command(after_help = "Keys:
  extends, description, command, prompt, paste.ready, paste.confirm, paste.bytes_max, interactive,
  environment.NAME, telemetry.NAME, account_variable, account_flag, exit_zero, transcript, memory_mb, max_runs,
  usage.tokens, usage.cost, program, version_flag, tried_with, root_variable

Examples:
  gt config agent set codex memory_mb 2048
  gt config agent set claude environment.DISABLE_TELEMETRY 1
  gt config agent set reviewer extends claude")]
    Set {
        /// Its name
        name: String,
        /// The key to change
        key: String,
        /// The value
        #[arg(allow_hyphen_values = true)]
        value: String,
    },
    /// Take back everything that was set for a runtime that came with gt
    #[command(after_help = "Example:\n  gt config agent unset claude")]
    Unset {
        /// Its name
        name: String,
    },
    /// Start work again with a runtime that is parked
    #[command(
        after_help = "The own command of a rig is called <rig>/command.\n\nExamples:\n  gt config agent resume claude\n  \
                      gt config agent resume gastown/command"
    )]
    Resume {
        /// Its name
        name: String,
    },
    /// Look whether the program of a runtime is there
    #[command(after_help = "Examples:
  gt config agent test claude
  gt config agent test claude --live")]
    Test {
        /// Its name
        name: String,
        /// Really ask it something, which may cost something
        #[arg(long)]
        live: bool,
    },
}

pub(super) fn run(context: &CommandContext<'_>, args: &AgentArgs) -> Result<(), CliError> {
    match &args.verb {
        AgentVerb::List => list(context),
        AgentVerb::Show { name } => show(context, name),
        AgentVerb::Set { name, key, value } => set(context, name, key, value),
        AgentVerb::Unset { name } => unset(context, name),
        AgentVerb::Resume { name } => resume_runtime(context, name),
        AgentVerb::Test { name, live } => test(context, name, *live),
    }
}

fn list(context: &CommandContext<'_>) -> Result<(), CliError> {
    let printer = context.printer;
    let town = context.town()?;
    let runtimes = runtimes::list(&town)?;
    let learned = runtimes::learned_memory(&town)?;
    if printer.json() {
        let mut list = printer.list();
        for (name, known) in &runtimes {
            list.push(&match known {
                Ok(known) => RuntimeEntryDocument::Known(Box::new(document(known, &learned))),
                Err(error) => RuntimeEntryDocument::Broken(BrokenRuntimeDocument {
                    name: name.clone(),
                    problem: error.to_string(),
                }),
            })?;
        }
        return list.finish();
    }
    let mut table =
        Table::with_header(&["RUNTIME", "FROM", "PROMPT", "EXIT 0 MEANS", "MEMORY", "WHAT"]);
    for (name, known) in &runtimes {
        table.row(match known {
            Ok(known) => {
                let runtime = &known.runtime;
                vec![
                    Cell::new(name),
                    Cell::new(known.origin.as_str()),
                    Cell::new(runtime.prompt.method().as_str()),
                    Cell::new(runtime.exit_zero.as_str()),
                    Cell::new(memory(runtime, &learned)),
                    Cell::new(&runtime.description),
                ]
            }
            Err(error) => {
                let broken = format!("cannot be used: {error}");
                let mut cells: Vec<Cell> = vec![Cell::new(name)];
                cells.extend((0..4).map(|_| Cell::new("")));
                cells.push(Cell::new(broken));
                cells
            }
        });
    }
    printer.table(table)?;
    for known in runtimes.iter().filter_map(|(_, known)| known.as_ref().ok()) {
        warn(context, known);
    }
    Ok(())
}

fn show(context: &CommandContext<'_>, name: &str) -> Result<(), CliError> {
    let printer = context.printer;
    let town = context.town()?;
    let known = runtimes::get(&town, name)?;
    let learned = runtimes::learned_memory(&town)?;
    if printer.json() {
        return printer.object(&document(&known, &learned));
    }
    let runtime = &known.runtime;
    printer.heading(runtime.name.as_str(), &format!("  {}", runtime.description))?;
    let mut table = Table::wrapped();
    let mut row = |name: &str, value: &str| {
        if !value.is_empty() {
            table.row(vec![Cell::bold(name), Cell::new(value)]);
        }
    };
    row("from", known.origin.as_str());
    row("file", &known.file.as_ref().map(|file| file.display().to_string()).unwrap_or_default());
    row(
        "command",
        match &runtime.command {
            Command::Own(template) => template,
            Command::OfRig => "(that of the rig)",
        },
    );
    row("prompt", runtime.prompt.method().as_str());
    if let Prompt::Paste(paste) = &runtime.prompt {
        row("ready when", paste.ready.as_ref().map(Pattern::as_str).unwrap_or_default());
        row("confirmed by", paste.confirm.as_str());
        row("pasted up to", &format!("{} bytes", paste.bytes_max));
    }
    row("terminal", if runtime.is_interactive { "needed" } else { "not needed" });
    row("environment", &names(&known).join(", "));
    match &runtime.account {
        Some(AccountWay::Variable(name)) => row("account in", name),
        Some(AccountWay::Flag(flag)) => row("account by", flag),
        None => {}
    }
    row("exit 0 means", runtime.exit_zero.as_str());
    row("memory", &memory(runtime, &learned));
    if runtime.max_runs > 0 {
        row("at once", &runtime.max_runs.to_string());
    }
    row("transcript", runtime.transcript.as_str());
    row("program", &runtime.program);
    row("version by", &runtime.version_flag);
    row("tried with", &runtime.tried_with);
    row("login in", &runtime.login.names().join(", "));
    row("as root needs", &runtime.root_variable);
    row("never committed", &runtime.ignore.join(", "));
    for limit in &runtime.limits {
        row("limit", &limit_line(limit));
    }
    printer.table(table)?;
    warn(context, &known);
    Ok(())
}

fn set(context: &CommandContext<'_>, name: &str, key: &str, value: &str) -> Result<(), CliError> {
    let printer = context.printer;
    let town = context.town()?;
    let (file, known) = runtimes::set(&town, name, key, value)?;
    warn(context, &known);
    if printer.json() {
        return printer.object(&document(&known, &runtimes::learned_memory(&context.town()?)?));
    }
    // The value of an environment variable may be a secret.
    let shown = if key.starts_with("environment.") { "…" } else { value };
    let file = file.strip_prefix(town.root()).unwrap_or(&file);
    printer.done(format!("Set {key} = {shown} in {}", file.display()))
}

fn unset(context: &CommandContext<'_>, name: &str) -> Result<(), CliError> {
    let printer = context.printer;
    let town = context.town()?;
    let (kept, known) = runtimes::unset(&town, name)?;
    if printer.json() {
        return printer.object(&document(&known, &runtimes::learned_memory(&context.town()?)?));
    }
    printer.done(match kept {
        Some(kept) => {
            let kept = kept.strip_prefix(town.root()).unwrap_or(&kept);
            format!("✓ {name} is as it came; what was set is kept in {}", kept.display())
        }
        None => format!("{name} is as it came; nothing to do"),
    })
}

fn test(context: &CommandContext<'_>, name: &str, live: bool) -> Result<(), CliError> {
    let printer = context.printer;
    let tested = runtimes::test(&context.town()?, name, live, &this_program()?)?;
    if printer.json() {
        return printer.object(&tested_document(name, &tested));
    }
    if tested.program.is_empty() {
        return printer.done(format!(
            "{name} starts the command of the rig; there is nothing to look for without one"
        ));
    }
    let version = tested.version.as_deref().unwrap_or("it tells no version");
    printer.line(format!("✓ {} is there: {version}", tested.program))?;
    match &tested.login {
        LoginState::Found(place) => printer.line(format!("✓ It has a login or key: {place}"))?,
        LoginState::Missing | LoginState::Unknown => {}
    }
    for warning in tested.warnings() {
        printer.note(format!("warning: {warning}"));
    }
    match &tested.answer {
        Some(TrialAnswer::Said(last)) => printer.line(format!("✓ It answered: {last}")),
        Some(TrialAnswer::Limited(limit)) => {
            printer.line(format!("It may not answer before {}: {}", moment(limit.at), limit.said))
        }
        None => printer.done(format!("Next: gt config agent test {name} --live really asks it")),
    }
}

fn warn(context: &CommandContext<'_>, known: &KnownRuntime) {
    for warning in &known.warnings {
        context.printer.note(format!("warning: {warning}"));
    }
}

fn names(known: &KnownRuntime) -> Vec<&str> {
    known.runtime.environment.iter().map(|(name, _)| name.as_str()).collect()
}

fn limit_line(limit: &Limit) -> String {
    format!("{} (else {})", limit.pattern, format_duration(limit.wait))
}

/// The memory that one agent of a runtime takes: the learned value, else the value of its file.
fn memory(runtime: &Runtime, learned: &BTreeMap<String, u32>) -> String {
    match learned.get(runtime.name.as_str()) {
        Some(learned) => format!("{learned} MB (learned)"),
        None => format!("{} MB", runtime.memory_mb),
    }
}

fn document(known: &KnownRuntime, learned: &BTreeMap<String, u32>) -> RuntimeDocument {
    let runtime = &known.runtime;
    let (account_variable, account_flag) = match &runtime.account {
        Some(AccountWay::Variable(name)) => (Some(name.clone()), None),
        Some(AccountWay::Flag(flag)) => (None, Some(flag.clone())),
        None => (None, None),
    };
    let pattern = |pattern: &Option<Pattern>| pattern.as_ref().map(|one| one.as_str().to_owned());
    let limits = runtime.limits.iter().map(|limit| LimitPatternDocument {
        pattern: limit.pattern.as_str().to_owned(),
        wait: format_duration(limit.wait),
    });
    RuntimeDocument {
        name: runtime.name.as_str().to_owned(),
        description: runtime.description.clone(),
        origin: known.origin.as_str().to_owned(),
        file: known.file.as_ref().map(|file| file.display().to_string()),
        command: match &runtime.command {
            Command::Own(template) => Some(template.clone()),
            Command::OfRig => None,
        },
        prompt: runtime.prompt.method().as_str().to_owned(),
        paste: match &runtime.prompt {
            Prompt::Paste(paste) => Some(PasteDocument {
                ready: pattern(&paste.ready),
                confirm: paste.confirm.as_str().to_owned(),
                bytes_max: paste.bytes_max as u64,
            }),
            _ => None,
        },
        environment: texts(names(known)),
        account_variable,
        account_flag,
        exit_zero: runtime.exit_zero.as_str().to_owned(),
        memory_mb: runtime.memory_mb.into(),
        learned_memory_mb: learned.get(runtime.name.as_str()).map(|mb| (*mb).into()),
        max_runs: runtime.max_runs.into(),
        usage: UsagePatternsDocument {
            tokens: pattern(&runtime.usage.tokens),
            cost: pattern(&runtime.usage.cost),
        },
        interactive: runtime.is_interactive,
        transcript: runtime.transcript.as_str().to_owned(),
        program: runtime.program.clone(),
        version_flag: runtime.version_flag.clone(),
        tried_with: runtime.tried_with.clone(),
        login: LoginPlacesDocument {
            variables: runtime.login.variables.clone(),
            files: runtime.login.files.clone(),
        },
        root_variable: runtime.root_variable.clone(),
        ignore: runtime.ignore.clone(),
        limit: limits.collect(),
        warnings: texts(&known.warnings),
    }
}

fn tested_document(name: &str, tested: &RuntimeTest) -> TestedRuntimeDocument {
    let (answer, limit) = match &tested.answer {
        Some(TrialAnswer::Said(last)) => (Some(last.clone()), None),
        Some(TrialAnswer::Limited(limit)) => (None, Some(limit)),
        None => (None, None),
    };
    TestedRuntimeDocument {
        name: name.to_owned(),
        program: tested.program.clone(),
        version: tested.version.clone(),
        login: match &tested.login {
            LoginState::Found(place) => Some(place.clone()),
            LoginState::Missing | LoginState::Unknown => None,
        },
        warnings: tested.warnings(),
        answer,
        limited_until: limit.map(|limit| limit.at.into()),
        said: limit.map(|limit| limit.said.clone()),
    }
}
