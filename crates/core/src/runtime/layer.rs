//! The part of one file that is about a runtime, and how files override each other.

use super::invocation::check_template;
use super::{
    AccountWay, Command, ExitZero, Limit, LoginPlaces, Paste, Pattern, Prompt, PromptMethod,
    Runtime, RuntimeName, TranscriptFormat, UsageReport,
};
use crate::{Invalid, words};

/// The part of one file that is about a runtime. A missing value is taken from the layer below.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RuntimeLayer {
    /// The runtime that it begins from, if not the built-in one of the same name.
    pub extends: Option<RuntimeName>,
    /// One line for people.
    pub description: Option<String>,
    /// The command line; empty for that of the rig.
    pub command: Option<String>,
    /// How the prompt is given.
    pub prompt: Option<PromptMethod>,
    /// The screen shows this once a prompt can be pasted.
    pub paste_ready: Option<Pattern>,
    /// The screen shows this once a pasted prompt has arrived.
    pub paste_confirm: Option<Pattern>,
    /// The longest prompt that is pasted.
    pub paste_bytes_max: Option<usize>,
    /// Variables; those of the layer below stay unless they are named here.
    pub environment: Vec<(String, String)>,
    /// Variables for sessions whose telemetry is received; those of the layer below stay unless they are named here.
    pub telemetry: Vec<(String, String)>,
    /// The variable that says where an account keeps its configuration; empty for none.
    pub account_variable: Option<String>,
    /// The flag that says so; empty for none.
    pub account_flag: Option<String>,
    /// The patterns of usage limits, instead of those of the layer below.
    pub limits: Option<Vec<Limit>>,
    /// The meaning of exit status 0.
    pub exit_zero: Option<ExitZero>,
    /// How much memory it takes.
    pub memory_mb: Option<u32>,
    /// Most of it at once; 0 for no limit.
    pub max_runs: Option<u32>,
    /// How it says how many tokens it used.
    pub usage_tokens: Option<Pattern>,
    /// How it reports its cost.
    pub usage_cost: Option<Pattern>,
    /// The format of its output.
    pub transcript: Option<TranscriptFormat>,
    /// Whether it needs a terminal.
    pub is_interactive: Option<bool>,
    /// The program that must be there.
    pub program: Option<String>,
    /// The flag that prints its version; empty for none.
    pub version_flag: Option<String>,
    /// The version that it was tried with.
    pub tried_with: Option<String>,
    /// Variables that hold its login or key.
    pub login_variables: Option<Vec<String>>,
    /// Files that hold its login or key.
    pub login_files: Option<Vec<String>>,
    /// The variable without which it does not start as root; empty for none.
    pub root_variable: Option<String>,
    /// Patterns of files that it leaves behind.
    pub ignore: Option<Vec<String>>,
}

/// The variables of two layers.
fn joined(below: Vec<(String, String)>, own: Vec<(String, String)>) -> Vec<(String, String)> {
    let mut variables = below;
    variables.retain(|(name, _)| !own.iter().any(|(known, _)| known == name));
    variables.extend(own);
    variables
}

/// Why layers do not make a runtime.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the runtime {name}: {key}: {why}")]
pub struct IncompleteRuntime {
    /// The runtime.
    pub name: RuntimeName,
    /// The key that is wrong or missing.
    pub key: &'static str,
    /// The error.
    pub why: String,
}

impl From<IncompleteRuntime> for Invalid {
    fn from(unfinished: IncompleteRuntime) -> Self {
        Self(unfinished.to_string())
    }
}

/// How much memory an agent takes, unless its file says otherwise.
const MEMORY_MB_DEFAULT: u32 = 1024;

/// The longest prompt that is pasted, unless its file says otherwise, in bytes.
const PASTE_BYTES_MAX: usize = 4_000;

impl RuntimeLayer {
    /// This layer over another.
    #[must_use]
    pub fn over(self, below: Self) -> Self {
        let environment = joined(below.environment, self.environment);
        let telemetry = joined(below.telemetry, self.telemetry);
        // One way replaces the other; it does not join it.
        let names_account = self.account_variable.is_some() || self.account_flag.is_some();
        let (account_variable, account_flag) = if names_account {
            (self.account_variable, self.account_flag)
        } else {
            (below.account_variable, below.account_flag)
        };
        // Another command may be another program.
        let program = match (&self.program, &self.command) {
            (None, Some(_)) => None,
            (None, None) => below.program,
            (Some(_), _) => self.program,
        };
        Self {
            extends: self.extends.or(below.extends),
            description: self.description.or(below.description),
            command: self.command.or(below.command),
            prompt: self.prompt.or(below.prompt),
            paste_ready: self.paste_ready.or(below.paste_ready),
            paste_confirm: self.paste_confirm.or(below.paste_confirm),
            paste_bytes_max: self.paste_bytes_max.or(below.paste_bytes_max),
            environment,
            telemetry,
            account_variable,
            account_flag,
            limits: self.limits.or(below.limits),
            exit_zero: self.exit_zero.or(below.exit_zero),
            memory_mb: self.memory_mb.or(below.memory_mb),
            max_runs: self.max_runs.or(below.max_runs),
            usage_tokens: self.usage_tokens.or(below.usage_tokens),
            usage_cost: self.usage_cost.or(below.usage_cost),
            transcript: self.transcript.or(below.transcript),
            is_interactive: self.is_interactive.or(below.is_interactive),
            program,
            version_flag: self.version_flag.or(below.version_flag),
            tried_with: self.tried_with.or(below.tried_with),
            login_variables: self.login_variables.or(below.login_variables),
            login_files: self.login_files.or(below.login_files),
            root_variable: self.root_variable.or(below.root_variable),
            ignore: self.ignore.or(below.ignore),
        }
    }

    /// The runtime that this says everything about.
    pub fn finish(self, name: RuntimeName) -> Result<Runtime, IncompleteRuntime> {
        let wrong = |key: &'static str, Invalid(why): Invalid| IncompleteRuntime {
            name: name.clone(),
            key,
            why,
        };
        let Some(command) = self.command else {
            let why = "missing; say how it is started, or name another runtime with extends";
            return Err(wrong("command", Invalid::new(why)));
        };
        let method = self.prompt.unwrap_or(PromptMethod::Stdin);
        let own = Some(command).filter(|command| !command.is_empty());
        if let Some(template) = &own {
            let places = check_template(template).map_err(|why| wrong("command", why))?;
            let lacks = match method {
                PromptMethod::Argument if !places.has_prompt => Some("{prompt}"),
                PromptMethod::File if !places.has_prompt_file => Some("{prompt_file}"),
                _ => None,
            };
            if let Some(place) = lacks {
                let why = format!("lacks {place}, where the prompt is to stand");
                return Err(wrong("command", Invalid(why)));
            }
        }
        let is_interactive = self.is_interactive.unwrap_or(false);
        let prompt = match method {
            PromptMethod::Argument => Prompt::Argument,
            PromptMethod::Stdin if is_interactive => {
                let why = "what needs a terminal reads from it; use argument, file or paste";
                return Err(wrong("prompt", Invalid::new(why)));
            }
            PromptMethod::Stdin => Prompt::Stdin,
            PromptMethod::File => Prompt::File,
            PromptMethod::Paste if !is_interactive => {
                let why = "paste needs a terminal to type into; set interactive = true";
                return Err(wrong("prompt", Invalid::new(why)));
            }
            PromptMethod::Paste => Prompt::Paste(Paste {
                ready: self.paste_ready,
                confirm: self.paste_confirm.ok_or_else(|| {
                    let why = "missing; say what the screen shows once the prompt has arrived";
                    wrong("paste.confirm", Invalid::new(why))
                })?,
                bytes_max: self.paste_bytes_max.unwrap_or(PASTE_BYTES_MAX),
            }),
        };
        let said = |text: Option<String>| text.filter(|text| !text.is_empty());
        let account = match (said(self.account_variable), said(self.account_flag)) {
            (None, None) => None,
            (Some(variable), None) => Some(AccountWay::Variable(variable)),
            (None, Some(flag)) => Some(AccountWay::Flag(flag)),
            (Some(_), Some(_)) => {
                let why = "there is account_variable too; one of them is enough";
                return Err(wrong("account_flag", Invalid::new(why)));
            }
        };
        let program =
            self.program.unwrap_or_else(|| own.as_deref().map(program_of).unwrap_or_default());
        Ok(Runtime {
            name,
            description: self.description.unwrap_or_default(),
            command: own.map_or(Command::OfRig, Command::Own),
            prompt,
            environment: self.environment,
            telemetry: self.telemetry,
            account,
            limits: self.limits.unwrap_or_default(),
            exit_zero: self.exit_zero.unwrap_or(ExitZero::DoneIfCommitted),
            memory_mb: self.memory_mb.unwrap_or(MEMORY_MB_DEFAULT),
            max_runs: self.max_runs.unwrap_or(0),
            usage: UsageReport { tokens: self.usage_tokens, cost: self.usage_cost },
            // A terminal shows a picture, not a stream of events.
            transcript: self.transcript.filter(|_| !is_interactive).unwrap_or_default(),
            is_interactive,
            program,
            version_flag: self.version_flag.unwrap_or_else(|| "--version".to_owned()),
            tried_with: self.tried_with.unwrap_or_default(),
            login: LoginPlaces {
                variables: self.login_variables.unwrap_or_default(),
                files: self.login_files.unwrap_or_default(),
            },
            root_variable: self.root_variable.unwrap_or_default(),
            ignore: self.ignore.unwrap_or_default(),
        })
    }
}

/// The program that a command starts.
fn program_of(template: &str) -> String {
    let words = words::split(template).unwrap_or_default();
    words.into_iter().next().map(|word| word.text).unwrap_or_default()
}
