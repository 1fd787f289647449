//! Completions that know the town: ids, rigs, runs, settings and their values. A shell asks at each press of its key; nothing is
//! written and no daemon is started, and where there is no town there is nothing to complete.

use std::ffi::{OsStr, OsString};
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Arg, Command};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use clap_complete::env::Shells;
use clap_complete::{CompleteEnv, Shell};
use gt_core::settings::{KEYS, SettingKind, lookup};
use gt_core::{DependencyType, IssueType, Status};
use gt_daemon::views::{RunRowsRequest, run_rows};
use gt_scheduling::{Consequences, runtimes};
use gt_town::{Actor, BeadFilter, Environment, StatusFilter, StoreOptions, SystemClock, Town};

/// The variable by which a script of ours asks for completions.
const VARIABLE: &str = "GT_COMPLETE";
/// The values of `bd config` that mean something to this program.
const BEAD_SETTINGS: [&str; 4] = ["export.auto", "export.path", "status.custom", "types.custom"];
/// The most candidates of a kind.
const CANDIDATES_MAX: usize = 200;

/// Answers a shell that asks for completions; nothing if this is another call.
pub(crate) fn answer(program: &str, arguments: &[OsString]) -> Option<ExitCode> {
    let is_bd = program == "bd";
    let command = move || {
        let command = if is_bd { crate::bd_command() } else { crate::gt_command() };
        with_values(command)
    };
    let here = std::env::current_dir().ok();
    let asked = CompleteEnv::with_factory(command).var(VARIABLE);
    match asked.try_complete(arguments.iter().cloned(), here.as_deref()) {
        Ok(false) => None,
        Ok(true) => Some(ExitCode::SUCCESS),
        Err(_) => Some(ExitCode::FAILURE),
    }
}

/// The script that makes a shell ask this program.
pub(crate) fn script(shell: Shell, program: &str) -> std::io::Result<Vec<u8>> {
    let mut script = Vec::new();
    let shells = Shells::builtins();
    let name = shell.to_string();
    if let Some(completer) = shells.completer(&name) {
        completer.write_registration(VARIABLE, program, program, program, &mut script)?;
    }
    Ok(script)
}

/// A kind of value that a town knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ValueKind {
    Bead,
    BeadOrRig,
    Convoy,
    Rig,
    Run,
    SettingKey,
    RigSettingKey,
    BeadSettingKey,
    SettingValue,
    Agent,
    Account,
    BeadStatus,
    BeadType,
    DependencyType,
}

impl ValueKind {
    /// The kind of an argument, by its name and the words that call its command, with the program first.
    fn of(path: &[String], argument: &Arg) -> Option<Self> {
        if !argument.get_action().takes_values() || !argument.get_possible_values().is_empty() {
            return None;
        }
        let words: Vec<&str> = path.iter().map(String::as_str).collect();
        let command = words.last().copied().unwrap_or_default();
        let group = words.iter().rev().nth(1).copied().unwrap_or_default();
        let is_bd = words.contains(&"bd");
        Some(match (command, argument.get_id().as_str()) {
            ("set" | "get" | "unset", "key") => match group {
                "config" if is_bd => Self::BeadSettingKey,
                "config" => Self::SettingKey,
                "rig" => Self::RigSettingKey,
                _ => return None,
            },
            ("set", "value") if !is_bd && matches!(group, "config" | "rig") => Self::SettingValue,
            (_, "name") if group == "agent" => Self::Agent,
            ("sling" | "init", "agent") => Self::Agent,
            ("default" | "remove" | "resume", "handle") | ("sling", "account") => Self::Account,
            (_, "target" | "one" | "other" | "blocker" | "blocks" | "blocked_by")
                if group == "dep" =>
            {
                Self::Bead
            }
            (_, "kind") if group == "dep" => Self::DependencyType,
            ("sling" | "queue", "words") => Self::BeadOrRig,
            ("pause" | "resume" | "land" | "status", "id") | (_, "convoy") => Self::Convoy,
            (_, "rig") => Self::Rig,
            (_, "run") => Self::Run,
            (_, "status") => Self::BeadStatus,
            (_, "issue_type" | "kind" | "type") => Self::BeadType,
            (_, "bead" | "beads" | "id" | "ids" | "issue" | "parent" | "depends_on") => Self::Bead,
            _ => return None,
        })
    }

    fn candidates(self, current: &OsStr) -> Vec<CompletionCandidate> {
        let Some(current) = current.to_str() else { return Vec::new() };
        let found = match self {
            Self::Bead => beads(current, false),
            Self::Convoy => beads(current, true),
            Self::BeadOrRig => {
                let mut both = rig_names(current);
                both.extend(beads(current, false));
                both
            }
            Self::Rig => rig_names(current),
            Self::Run => runs(current),
            Self::SettingKey => setting_keys(current),
            Self::RigSettingKey => rig_setting_keys(current),
            Self::BeadSettingKey => named(BEAD_SETTINGS.into_iter().map(str::to_owned), current),
            Self::Agent => named(agents().into_iter(), current),
            Self::Account => named(accounts().into_iter(), current),
            Self::SettingValue => setting_values(current),
            Self::BeadStatus => named(Status::BUILT_IN.iter().map(ToString::to_string), current),
            Self::BeadType => named(IssueType::BUILT_IN.iter().map(ToString::to_string), current),
            Self::DependencyType => {
                named(DependencyType::known_names().map(str::to_owned), current)
            }
        };
        found.into_iter().take(CANDIDATES_MAX).collect()
    }
}

/// The command with completers for what a town knows.
fn with_values(command: Command) -> Command {
    with_values_at(command, Vec::new())
}

fn with_values_at(command: Command, mut path: Vec<String>) -> Command {
    path.push(command.get_name().to_owned());
    let command = command.mut_args(|argument| match ValueKind::of(&path, &argument) {
        Some(kind) => {
            argument.add(ArgValueCompleter::new(move |current: &OsStr| kind.candidates(current)))
        }
        None => argument,
    });
    command.mut_subcommands(|inner| with_values_at(inner, path.clone()))
}

fn named(names: impl Iterator<Item = String>, current: &str) -> Vec<CompletionCandidate> {
    names.filter(|name| name.starts_with(current)).map(CompletionCandidate::new).collect()
}

fn candidate_with_help(name: String, help: &str) -> CompletionCandidate {
    CompletionCandidate::new(name).help(Some(help.to_owned().into()))
}

/// The town around the working directory.
fn town() -> Option<Town> {
    let environment = Environment::from_process();
    let here = std::env::current_dir().ok()?;
    let root = Town::find(&here, &environment).ok()?;
    let actor = Actor { name: "completion".to_owned(), owner: String::new() };
    let (clock, options) = (Arc::new(SystemClock), StoreOptions::default());
    Town::open(&root, &here, &environment, actor, clock, options, Arc::new(Consequences)).ok()
}

fn beads(current: &str, only_convoys: bool) -> Vec<CompletionCandidate> {
    let Some(town) = town() else { return Vec::new() };
    let types =
        if only_convoys { vec![IssueType::trusted("convoy".to_owned())] } else { Vec::new() };
    let filter = BeadFilter {
        text: (!current.is_empty()).then(|| current.to_owned()),
        status: StatusFilter::Current,
        types,
        limit: Some(CANDIDATES_MAX),
        ..BeadFilter::default()
    };
    let rows = town.read(|reader| Ok(reader.bead_rows(&reader.find(&filter)?)?));
    let rows = rows.unwrap_or_default();
    let fits = rows.iter().filter(|row| row.bead.id.as_str().starts_with(current));
    fits.map(|row| candidate_with_help(row.bead.id.to_string(), row.bead.title.as_str())).collect()
}

fn rig_names(current: &str) -> Vec<CompletionCandidate> {
    named(rig_slugs().into_iter(), current)
}

fn rig_slugs() -> Vec<String> {
    let Some(town) = town() else { return Vec::new() };
    let rigs = town.read(|reader| Ok(reader.rigs()?)).unwrap_or_default();
    rigs.into_iter().map(|rig| rig.slug.to_string()).collect()
}

fn runs(current: &str) -> Vec<CompletionCandidate> {
    let Some(town) = town() else { return Vec::new() };
    let request = RunRowsRequest { limit: CANDIDATES_MAX, ..RunRowsRequest::default() };
    let Ok(page) = run_rows(&town, &request) else { return Vec::new() };
    let fits = page.items.into_iter().filter(|row| row.id.starts_with(current));
    fits.map(|row| candidate_with_help(row.id, &format!("{}: {}", row.state, row.title))).collect()
}

fn setting_keys(current: &str) -> Vec<CompletionCandidate> {
    let rigs = rig_slugs();
    let mut candidates = Vec::new();
    for key in KEYS {
        let names: Vec<String> = match key.name.split_once('*') {
            None => vec![key.name.to_owned()],
            Some((head, tail)) => rigs.iter().map(|rig| format!("{head}{rig}{tail}")).collect(),
        };
        for name in names.into_iter().filter(|name| name.starts_with(current)) {
            candidates.push(candidate_with_help(name, key.help));
        }
    }
    candidates
}

/// The settings of a rig, as `gt rig set` names them.
fn rig_setting_keys(current: &str) -> Vec<CompletionCandidate> {
    let mut candidates =
        named(["executor", "title", "branch"].map(str::to_owned).into_iter(), current);
    for key in KEYS {
        let Some(name) = key.name.strip_prefix("rig.*.") else { continue };
        if name.starts_with(current) {
            candidates.push(candidate_with_help(name.to_owned(), key.help));
        }
    }
    candidates
}

fn agents() -> Vec<String> {
    let Some(town) = town() else { return Vec::new() };
    let known = runtimes::list(&town).unwrap_or_default();
    known.into_iter().map(|(name, _)| name).collect()
}

fn accounts() -> Vec<String> {
    let Some(town) = town() else { return Vec::new() };
    let known = town.read(|reader| Ok(reader.accounts()?)).unwrap_or_default();
    known.into_iter().map(|account| account.handle).collect()
}

/// The values of the setting that stands before the current word.
fn setting_values(current: &str) -> Vec<CompletionCandidate> {
    let words: Vec<String> = std::env::args().collect();
    let name = words.iter().position(|word| word == "set").and_then(|at| {
        let after = words.get(at + 1)?;
        if at > 0 && words[at - 1] == "rig" {
            return Some(format!("rig.{after}.{}", words.get(at + 2)?));
        }
        Some(after.clone())
    });
    let Some((setting, _)) = name.as_deref().and_then(|name| lookup(name).ok()) else {
        return Vec::new();
    };
    let values: &[&str] = match setting.kind {
        SettingKind::Bool => &["true", "false"],
        SettingKind::Choice(words) => words,
        _ => &[],
    };
    let given = (!setting.default.is_empty() && values.is_empty()).then_some(setting.default);
    named(values.iter().copied().chain(given).map(str::to_owned), current)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(command: &Command, path: &[&str]) -> Vec<(String, ValueKind)> {
        let mut found = command;
        let mut words = vec![command.get_name().to_owned()];
        for name in path {
            found = found.find_subcommand(name).unwrap();
            words.push(found.get_name().to_owned());
        }
        let of = |argument: &Arg| {
            let kind = ValueKind::of(&words, argument);
            kind.map(|kind| (argument.get_id().to_string(), kind))
        };
        found.get_arguments().filter_map(of).collect()
    }

    #[test]
    fn ids_rigs_settings_and_values_are_completed() {
        let gt = crate::gt_command();
        for (path, wanted) in [
            (&["config", "set"][..], &["key", "value"][..]),
            (&["sling"], &["words"]),
            (&["why"], &["bead"]),
            (&["run", "log"], &["run"]),
            (&["inbox"], &["rig"]),
            (&["rig", "set"], &["rig"]),
            (&["rig", "park"], &["rig"]),
            (&["rig", "remove"], &["rig"]),
            (&["bd", "show"], &["ids"]),
        ] {
            let found = kinds(&gt, path);
            for name in wanted {
                let is_found = found.iter().any(|(known, _)| known == name);
                assert!(is_found, "{path:?}: {name} in {found:?}");
            }
        }
    }

    #[test]
    fn arguments_of_one_name_are_told_apart_by_their_commands() {
        use ValueKind::{
            Account, Agent, Bead, BeadSettingKey, DependencyType, RigSettingKey, SettingKey,
        };
        let gt = crate::gt_command();
        for (path, name, wanted) in [
            (&["config", "set"][..], "key", Some(SettingKey)),
            (&["rig", "set"], "key", Some(RigSettingKey)),
            (&["bd", "config", "set"], "key", Some(BeadSettingKey)),
            (&["bd", "kv", "set"], "key", None),
            (&["config", "agent", "set"], "key", None),
            (&["config", "agent", "set"], "value", None),
            (&["config", "agent", "test"], "name", Some(Agent)),
            (&["sling"], "agent", Some(Agent)),
            (&["sling"], "account", Some(Account)),
            (&["config", "account", "default"], "handle", Some(Account)),
            (&["bd", "dep", "add"], "target", Some(Bead)),
            (&["bd", "dep", "add"], "kind", Some(DependencyType)),
        ] {
            let found = kinds(&gt, path).into_iter().find(|(known, _)| known == name);
            assert_eq!(found.map(|(_, kind)| kind), wanted, "{path:?}: {name}");
        }
        let bd = crate::bd_command();
        let found = kinds(&bd, &["config", "get"]);
        assert!(found.iter().any(|(_, kind)| *kind == BeadSettingKey), "{found:?}");
    }

    #[test]
    fn each_shell_has_a_script() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish, Shell::Elvish, Shell::PowerShell] {
            let script = String::from_utf8(script(shell, "gt").unwrap()).unwrap();
            assert!(script.contains(VARIABLE), "{shell}: {script}");
        }
    }
}
