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
use gt_core::{IssueType, Status};
use gt_daemon::views::{RunRowsRequest, run_rows};
use gt_scheduling::Consequences;
use gt_town::{Actor, BeadFilter, Environment, StatusFilter, StoreOptions, SystemClock, Town};

/// The variable by which a script of ours asks for completions.
const VARIABLE: &str = "GT_COMPLETE";
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
#[derive(Clone, Copy)]
enum ValueKind {
    Bead,
    BeadOrRig,
    Convoy,
    Rig,
    Run,
    SettingKey,
    SettingValue,
    BeadStatus,
    BeadType,
}

impl ValueKind {
    /// The kind of an argument, by its name and that of its command.
    fn of(command: &str, argument: &Arg) -> Option<Self> {
        if !argument.get_action().takes_values() || !argument.get_possible_values().is_empty() {
            return None;
        }
        Some(match (command, argument.get_id().as_str()) {
            ("set" | "get" | "unset", "key") => Self::SettingKey,
            ("set", "value") => Self::SettingValue,
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
            Self::SettingValue => setting_values(current),
            Self::BeadStatus => named(Status::BUILT_IN.iter().map(ToString::to_string), current),
            Self::BeadType => named(IssueType::BUILT_IN.iter().map(ToString::to_string), current),
        };
        found.into_iter().take(CANDIDATES_MAX).collect()
    }
}

/// The command with completers for what a town knows.
fn with_values(command: Command) -> Command {
    let name = command.get_name().to_owned();
    let command = command.mut_args(|argument| match ValueKind::of(&name, &argument) {
        Some(kind) => {
            argument.add(ArgValueCompleter::new(move |current: &OsStr| kind.candidates(current)))
        }
        None => argument,
    });
    command.mut_subcommands(with_values)
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

/// The values of the setting that stands before the current word.
fn setting_values(current: &str) -> Vec<CompletionCandidate> {
    let words: Vec<String> = std::env::args().collect();
    let before = words.windows(2).find(|pair| pair[0] == "set").map(|pair| pair[1].as_str());
    let Some((setting, _)) = before.and_then(|name| lookup(name).ok()) else {
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

    fn kinds(command: &Command, path: &[&str]) -> Vec<String> {
        let mut found = command;
        for name in path {
            found = found.find_subcommand(name).unwrap();
        }
        let of = |argument: &Arg| {
            let kind = ValueKind::of(found.get_name(), argument);
            kind.map(|_| argument.get_id().to_string())
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
                assert!(found.iter().any(|known| known == name), "{path:?}: {name} in {found:?}");
            }
        }
    }

    #[test]
    fn each_shell_has_a_script() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish, Shell::Elvish, Shell::PowerShell] {
            let script = String::from_utf8(script(shell, "gt").unwrap()).unwrap();
            assert!(script.contains(VARIABLE), "{shell}: {script}");
        }
    }
}
