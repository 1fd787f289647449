//! The files of a project that make a coding agent start with `bd prime`: its hooks and its instructions.

use std::fs;
use std::path::{Path, PathBuf};

use gt_core::Json;
use gt_records::pretty;
use gt_town::{OperationError, Result};

/// The section for files of instructions that agents read.
pub const INSTRUCTIONS: &str = "\
## Issue tracking

This project tracks its work with `bd`. Run `bd prime` at the start of a session: it prints the rules and the state.

- `bd ready` lists what can be worked on
- `bd create \"Title\" -t task -p 2` notes new work
- `bd update <id> --claim` takes a bead, `bd close <id> --reason \"…\"` ends it
- `bd remember \"…\"` keeps a fact for later sessions
";

/// The marks around our section of a file that is the user's own. The original begins its section alike, so that ours replaces it.
const SECTION_BEGINS: &str = "<!-- BEGIN BEADS INTEGRATION";
const SECTION_ENDS: &str = "<!-- END BEADS INTEGRATION -->";
/// The commands that a hook of ours, or of the original, runs.
const HOOK_COMMANDS: [&str; 2] = ["bd prime", "bd codex-hook"];

/// A coding agent that can be set up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetupAgent {
    /// Claude Code.
    Claude,
    /// Codex.
    Codex,
    /// Cursor.
    Cursor,
}

/// A file that an agent is set up with.
enum SetupFile {
    /// A section of a file of instructions.
    Section(&'static str),
    /// Hooks in a JSON file: the event, which of them, and the command.
    Hooks(&'static str, &'static [(&'static str, &'static str, &'static str)]),
    /// A file of ours.
    Whole(&'static str),
}

impl SetupAgent {
    /// The name that a person gives.
    pub fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Cursor => "cursor",
        }
    }

    fn files(self) -> &'static [SetupFile] {
        match self {
            Self::Claude => &[
                SetupFile::Hooks(
                    ".claude/settings.json",
                    &[("SessionStart", "", "bd prime --hook-json")],
                ),
                SetupFile::Section("CLAUDE.md"),
            ],
            Self::Codex => &[
                SetupFile::Hooks(
                    ".codex/hooks.json",
                    &[("SessionStart", "startup|resume|clear", "bd codex-hook SessionStart")],
                ),
                SetupFile::Section("AGENTS.md"),
            ],
            Self::Cursor => &[SetupFile::Whole(".cursor/rules/beads.mdc")],
        }
    }
}

/// Writes the files of an agent below `directory`. Returns them all.
pub fn install(directory: &Path, agent: SetupAgent) -> Result<Vec<PathBuf>> {
    change_each(directory, agent, |file, old| match file {
        SetupFile::Section(_) => Ok(Some(with_section(old.unwrap_or_default()))),
        SetupFile::Hooks(_, hooks) => with_hooks(old, hooks).map(Some),
        SetupFile::Whole(_) => Ok(Some(cursor_rule())),
    })
}

/// Takes our parts out of the files of an agent; a file of which nothing is left is removed. Returns them all.
pub fn remove(directory: &Path, agent: SetupAgent) -> Result<Vec<PathBuf>> {
    change_each(directory, agent, |file, old| match (file, old) {
        (SetupFile::Whole(_), _) | (_, None) => Ok(None),
        (SetupFile::Section(_), Some(text)) => {
            Ok(Some(without_section(text)).filter(|rest| !rest.trim().is_empty()))
        }
        (SetupFile::Hooks(..), Some(text)) => without_hooks(text),
    })
}

/// Whether an agent is set up below `directory`, and its files.
pub fn check(directory: &Path, agent: SetupAgent) -> Result<(bool, Vec<PathBuf>)> {
    let mut is_set_up = true;
    let files = change_each(directory, agent, |file, old| {
        let text = old.unwrap_or_default();
        is_set_up &= match file {
            SetupFile::Section(_) => text.contains(SECTION_BEGINS),
            SetupFile::Hooks(_, hooks) => hooks.iter().all(|(.., run)| text.contains(run)),
            SetupFile::Whole(_) => !text.is_empty(),
        };
        Ok(old.map(str::to_owned))
    })?;
    Ok((is_set_up, files))
}

/// Gives each file its new text, or removes it; a file that stays as it is, is not written.
fn change_each(
    directory: &Path,
    agent: SetupAgent,
    mut change: impl FnMut(&SetupFile, Option<&str>) -> Result<Option<String>>,
) -> Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for file in agent.files() {
        let (SetupFile::Section(name) | SetupFile::Hooks(name, _) | SetupFile::Whole(name)) = file;
        let path = directory.join(name);
        let failed = |action| {
            let path = path.clone();
            move |source| OperationError::File { action, path, source }
        };
        let old = match fs::read_to_string(&path) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => return Err(failed("read")(error)),
        };
        let new = change(file, old.as_deref()).map_err(|error| error.at(*name))?;
        if new != old {
            match &new {
                Some(text) => {
                    let above = path.parent().unwrap_or(directory);
                    fs::create_dir_all(above).map_err(failed("create"))?;
                    fs::write(&path, text).map_err(failed("write"))?;
                }
                None => fs::remove_file(&path).map_err(failed("remove"))?,
            }
        }
        paths.push(path);
    }
    Ok(paths)
}

fn section() -> String {
    format!("{SECTION_BEGINS} -->\n{INSTRUCTIONS}{SECTION_ENDS}\n")
}

/// A file of instructions with our section, in the place of an old one or at the end.
fn with_section(text: &str) -> String {
    if let Some((before, after)) = around_section(text) {
        return format!("{before}{}{after}", section());
    }
    let gap = match text {
        "" => "",
        text if text.ends_with('\n') => "\n",
        _ => "\n\n",
    };
    format!("{text}{gap}{}", section())
}

fn without_section(text: &str) -> String {
    around_section(text).map_or_else(
        || text.to_owned(),
        |(before, after)| {
            let before = before.strip_suffix("\n\n").map_or(before, |rest| &before[..=rest.len()]);
            format!("{before}{after}")
        },
    )
}

fn around_section(text: &str) -> Option<(&str, &str)> {
    let begin = text.find(SECTION_BEGINS)?;
    let end = begin + text[begin..].find(SECTION_ENDS)? + SECTION_ENDS.len();
    Some((&text[..begin], text[end..].strip_prefix('\n').unwrap_or(&text[end..])))
}

/// The settings with these hooks, in place of hooks that run the same programs.
fn with_hooks(text: Option<&str>, hooks: &[(&str, &str, &str)]) -> Result<String> {
    let mut settings = parsed(text.unwrap_or("{}"))?;
    let mut events = hooks_of(&settings);
    for (event, matcher, command) in hooks {
        let mut entries = elements_of(&events, event);
        entries.retain(|entry| !is_ours(entry));
        let run = Json::object(&[
            ("type".to_owned(), Json::string("command")),
            ("command".to_owned(), Json::string(command)),
        ]);
        let matcher = Json::string(matcher);
        entries.push(Json::object(&[
            ("matcher".to_owned(), matcher),
            ("hooks".to_owned(), Json::array(&[run])),
        ]));
        events = events.with(event, &Json::array(&entries));
    }
    settings = settings.with("hooks", &events);
    Ok(format!("{}\n", pretty(settings.as_str())))
}

/// The settings without our hooks; nothing if nothing else is in them.
fn without_hooks(text: &str) -> Result<Option<String>> {
    let mut settings = parsed(text)?;
    let mut events = hooks_of(&settings);
    for (event, _) in events.fields().unwrap_or_default() {
        let mut entries = elements_of(&events, &event);
        let before = entries.len();
        entries.retain(|entry| !is_ours(entry));
        events = match entries.len() {
            0 if before > 0 => events.without(&event),
            _ => events.with(&event, &Json::array(&entries)),
        };
    }
    settings = match events.as_str() {
        "{}" => settings.without("hooks"),
        _ => settings.with("hooks", &events),
    };
    Ok((settings.as_str() != "{}").then(|| format!("{}\n", pretty(settings.as_str()))))
}

fn parsed(text: &str) -> Result<Json> {
    let settings = Json::parse(text)?;
    if settings.fields().is_none() {
        return Err(OperationError::rejected("it is not a JSON object"));
    }
    Ok(settings)
}

fn hooks_of(settings: &Json) -> Json {
    let fields = settings.fields().unwrap_or_default();
    let hooks = fields.into_iter().find(|(name, _)| name == "hooks").map(|(_, value)| value);
    hooks.filter(|value| value.fields().is_some()).unwrap_or_else(|| Json::object(&[]))
}

fn elements_of(events: &Json, event: &str) -> Vec<Json> {
    let fields = events.fields().unwrap_or_default();
    let value = fields.into_iter().find(|(name, _)| name == event).map(|(_, value)| value);
    value.and_then(|value| value.elements()).unwrap_or_default()
}

fn is_ours(entry: &Json) -> bool {
    HOOK_COMMANDS.iter().any(|command| entry.as_str().contains(&format!("\"{command}")))
}

fn cursor_rule() -> String {
    format!("---\ndescription: Issue tracking with bd\nalwaysApply: true\n---\n\n{INSTRUCTIONS}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_is_added_replaced_and_removed() {
        let once = with_section("# Mine\n");
        assert!(once.starts_with("# Mine\n\n<!-- BEGIN BEADS"), "{once}");
        assert_eq!(with_section(&once), once);
        assert_eq!(without_section(&once), "# Mine\n");
        let old =
            "a\n<!-- BEGIN BEADS INTEGRATION v:1 -->\nold\n<!-- END BEADS INTEGRATION -->\nb\n";
        assert_eq!(with_section(old), format!("a\n{}b\n", section()));
    }

    #[test]
    fn hooks_are_added_once_beside_those_of_the_user() {
        let hooks = [("SessionStart", "", "bd prime --hook-json")];
        let own = r#"{"model":"x","hooks":{"SessionStart":[{"hooks":[{"command":"mine"}]}]}}"#;
        let once = with_hooks(Some(own), &hooks).unwrap();
        assert!(once.contains("\"model\": \"x\"") && once.contains("mine"), "{once}");
        assert_eq!(with_hooks(Some(&once), &hooks).unwrap(), once);
        assert_eq!(once.matches("bd prime --hook-json").count(), 1);
        let without = without_hooks(&once).unwrap().unwrap();
        assert_eq!(Json::parse(&without).unwrap().as_str(), own);
        assert_eq!(without_hooks(&with_hooks(None, &hooks).unwrap()).unwrap(), None);
        for bad in ["[]", "{", "null"] {
            assert!(with_hooks(Some(bad), &hooks).is_err(), "{bad}");
        }
    }
}
