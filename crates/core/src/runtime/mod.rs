//! Runtimes: which program works on a bead, how it is given its task, and the meaning of its end.
//!
//! A runtime is data. A [`RuntimeLayer`] is the content of one file; layers over each other become a [`Runtime`].

mod instant;
mod invocation;
mod last_line;
mod layer;
mod limit;
mod pattern;
pub mod script;
mod usage;

pub use instant::Zones;
pub use invocation::{Invocation, InvocationValues, Pasting, PromptFile};
pub use last_line::last_line;
pub use layer::{IncompleteRuntime, RuntimeLayer};
pub(crate) use limit::plain;
pub use limit::{LIMIT_WAIT_MAX, Limit, LimitUntil};
pub use pattern::Pattern;
pub use usage::{SessionUsage, UsageReport, parse_usage_pattern};

use std::fmt;

use crate::Invalid;
use crate::formula::WordSet;

/// The runtime whose command is that of its rig.
pub const CUSTOM: &str = "custom";

/// The runtime of rigs for which no setting names one.
pub const DEFAULT: &str = "claude";

/// The name of a runtime, which is also that of its file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RuntimeName(String);

impl RuntimeName {
    /// Reads a name: small letters, digits, `-` and `_`.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let well_formed = (1..=50).contains(&text.len())
            && text.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
            && text.bytes().all(|byte| {
                byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte)
            });
        if well_formed {
            return Ok(Self(text.to_owned()));
        }
        let shown: String = text.chars().take(60).collect();
        Err(Invalid(format!(
            "\"{}\" is not a name for a runtime; use small letters, digits, - and _, at most 50",
            shown.escape_debug()
        )))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RuntimeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// How a prompt reaches an agent, as a file of a runtime names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptMethod {
    /// As an argument, at `{prompt}`.
    Argument,
    /// On standard input.
    Stdin,
    /// In a file that is named at `{prompt_file}`.
    File,
    /// Typed into its terminal.
    Paste,
}

impl WordSet for PromptMethod {
    const WHAT: &str = "way to give a prompt";
    const NAMES: &[(&str, Self)] = &[
        ("argument", Self::Argument),
        ("stdin", Self::Stdin),
        ("file", Self::File),
        ("paste", Self::Paste),
    ];
}

/// How a prompt is given to a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Prompt {
    /// As an argument, at `{prompt}`.
    Argument,
    /// On standard input.
    Stdin,
    /// In a file that is named at `{prompt_file}`.
    File,
    /// Typed into its terminal, and seen to arrive.
    Paste(Paste),
}

impl Prompt {
    /// How it reaches the agent.
    pub fn method(&self) -> PromptMethod {
        match self {
            Self::Argument => PromptMethod::Argument,
            Self::Stdin => PromptMethod::Stdin,
            Self::File => PromptMethod::File,
            Self::Paste(_) => PromptMethod::Paste,
        }
    }
}

/// How a prompt is typed into a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paste {
    /// The screen shows this once the program can take it; none: when it has not changed for a moment.
    pub ready: Option<Pattern>,
    /// The screen shows this once the prompt has arrived.
    pub confirm: Pattern,
    /// Longer prompts stay in a file, and only its name is typed.
    pub bytes_max: usize,
}

/// The meaning of an exit with status 0 without `gt done`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitZero {
    /// The work is done.
    Done,
    /// The work is done if there are commits and nothing is left uncommitted; else a person is asked.
    DoneIfCommitted,
    /// A person is asked.
    Ask,
}

impl WordSet for ExitZero {
    const WHAT: &str = "meaning of exit status 0";
    const NAMES: &[(&str, Self)] =
        &[("done", Self::Done), ("done-if-committed", Self::DoneIfCommitted), ("ask", Self::Ask)];
}

/// The format in which a program prints what it does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TranscriptFormat {
    /// `--output-format stream-json` of Claude Code and Qwen Code.
    Claude,
    /// `exec --json` of Codex.
    Codex,
    /// `--output-format stream-json` of Gemini CLI.
    Gemini,
    /// `run --output-format stream-json` of goose.
    Goose,
    /// `run --format json` of opencode.
    Opencode,
    /// Text for people.
    #[default]
    Plain,
}

impl WordSet for TranscriptFormat {
    const WHAT: &str = "format of a transcript";
    const NAMES: &[(&str, Self)] = &[
        ("claude", Self::Claude),
        ("codex", Self::Codex),
        ("gemini", Self::Gemini),
        ("goose", Self::Goose),
        ("opencode", Self::Opencode),
        ("plain", Self::Plain),
    ];
}

/// How a program learns where the account that it uses keeps its configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AccountWay {
    /// In this variable of its environment.
    Variable(String),
    /// Behind this flag, the first of its arguments.
    Flag(String),
}

/// The command line that a runtime starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Its own, with placeholders for the values that differ from run to run.
    Own(String),
    /// The rig's setting decides.
    OfRig,
}

/// A program that works on beads, with everything that has to be known about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Runtime {
    /// Its name.
    pub name: RuntimeName,
    /// One line for people.
    pub description: String,
    /// How it is started.
    pub command: Command,
    /// How it is given its task.
    pub prompt: Prompt,
    /// Variables that it gets.
    pub environment: Vec<(String, String)>,
    /// Variables for sessions whose telemetry is received.
    pub telemetry: Vec<(String, String)>,
    /// How it learns which account it uses; none if it cannot have several.
    pub account: Option<AccountWay>,
    /// The patterns of its messages about usage limits.
    pub limits: Vec<Limit>,
    /// The meaning of an exit with status 0 without `gt done`.
    pub exit_zero: ExitZero,
    /// How much memory one of it takes, until that is known better.
    pub memory_mb: u32,
    /// Most of it at once; 0 for no limit.
    pub max_runs: u32,
    /// The patterns of its messages about its usage.
    pub usage: UsageReport,
    /// The format of its output.
    pub transcript: TranscriptFormat,
    /// Whether it needs a terminal.
    pub is_interactive: bool,
    /// The program that must be there; empty if that cannot be said.
    pub program: String,
    /// The flag that prints its version; empty if there is none.
    pub version_flag: String,
    /// The version that it was tried with; empty if that is not known.
    pub tried_with: String,
    /// Where it keeps its login or key.
    pub login: LoginPlaces,
    /// The variable without which it does not start as root; empty if it starts.
    pub root_variable: String,
    /// Patterns of files of its own that it leaves in the tree, and that are never committed.
    pub ignore: Vec<String>,
}

impl Runtime {
    /// Whether its usage is known while it works: it sends telemetry, or keeps a file about its session.
    pub fn tells_live_usage(&self) -> bool {
        !self.telemetry.is_empty() || self.transcript == TranscriptFormat::Codex
    }
}

/// Where a program finds its login or key. One of the places is enough.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LoginPlaces {
    /// Variables of its environment.
    pub variables: Vec<String>,
    /// Files below the home directory.
    pub files: Vec<String>,
}

/// Whether a program can log in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoginState {
    /// A login or key is here.
    Found(String),
    /// None of the places has one.
    Missing,
    /// Its file does not say where to look.
    Unknown,
}

impl LoginPlaces {
    /// Looks for a login or key: a variable that is set, or a file that is there.
    pub fn find(
        &self,
        is_set: impl Fn(&str) -> bool,
        is_there: impl Fn(&str) -> bool,
    ) -> LoginState {
        if self.variables.is_empty() && self.files.is_empty() {
            return LoginState::Unknown;
        }
        let variable = self.variables.iter().find(|name| is_set(name)).cloned();
        let file = || self.files.iter().find(|file| is_there(file)).map(|file| format!("~/{file}"));
        variable.or_else(file).map_or(LoginState::Missing, LoginState::Found)
    }

    /// All places, as people write them.
    pub fn names(&self) -> Vec<String> {
        let files = self.files.iter().map(|file| format!("~/{file}"));
        self.variables.iter().cloned().chain(files).collect()
    }
}

impl Runtime {
    /// The same for a rig with this command: a runtime that takes its command from the rig has it.
    #[must_use]
    pub fn for_rig(self, command: Option<&str>) -> Self {
        match (&self.command, command) {
            (Command::OfRig, Some(template)) => {
                Self { command: Command::Own(template.to_owned()), ..self }
            }
            _ => self,
        }
    }
}

#[cfg(test)]
mod tests;
