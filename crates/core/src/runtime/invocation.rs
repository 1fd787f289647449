//! The exact command that is started for a run.

use super::{AccountWay, Command, Paste, Pattern, Prompt, Runtime};
use crate::{Invalid, command_template};

/// The values that differ from run to run.
#[derive(Debug, Clone, Copy, Default)]
pub struct InvocationValues<'a> {
    /// The instructions for the program.
    pub prompt: &'a str,
    /// Where the prompt can be put if it has to be a file; an absolute path.
    pub prompt_file: &'a str,
    /// The id of the bead.
    pub bead: &'a str,
    /// The run, such as `gt-abc#3`.
    pub run: &'a str,
    /// The title of the bead.
    pub title: &'a str,
    /// The id that the program may use for its session: a UUID of version 4.
    pub session: &'a str,
    /// The tree that the program works in; an absolute path.
    pub tree: &'a str,
    /// This program, to be started again.
    pub gt: &'a str,
    /// Where the account keeps its configuration, if it has a place of its own.
    pub account_dir: Option<&'a str>,
}

impl<'a> InvocationValues<'a> {
    /// Every place there is in a command, and its value.
    fn places(&self, prompt: &'a str) -> [(&'static str, &'a str); 8] {
        [
            ("prompt", prompt),
            ("prompt_file", self.prompt_file),
            ("bead", self.bead),
            ("run", self.run),
            ("title", self.title),
            ("session", self.session),
            ("tree", self.tree),
            ("gt", self.gt),
        ]
    }
}

/// A file that has to be there before the program starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptFile {
    /// Its path.
    pub path: String,
    /// Its contents.
    pub contents: String,
}

/// A text that is typed into the terminal of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pasting {
    /// The text.
    pub text: String,
    /// The screen shows this once text can be typed; none: when it has not changed for a moment.
    pub ready: Option<Pattern>,
    /// The screen shows this once the text has arrived.
    pub confirm: Pattern,
}

/// A program as it is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invocation {
    /// The program and its arguments; never empty.
    pub argv: Vec<String>,
    /// Its standard input; none if that is empty, or its terminal.
    pub stdin: Option<Vec<u8>>,
    /// A file that has to be written first.
    pub prompt_file: Option<PromptFile>,
    /// The text that is typed when it runs.
    pub paste: Option<Pasting>,
    /// Variables that it gets.
    pub environment: Vec<(String, String)>,
}

/// The longest prompt that is passed as an argument, in bytes. The kernel's own limit for one argument is
/// 128 KiB.
const ARGUMENT_BYTES_MAX: usize = 100_000;

impl Runtime {
    /// The command that is started for a run with these values.
    pub fn invocation(&self, values: &InvocationValues<'_>) -> Result<Invocation, Invalid> {
        match &self.command {
            Command::Own(template) => self.invoke(template, values),
            Command::OfRig => Err(Invalid(format!(
                "the runtime {} starts the command of the rig, and the rig has none; set it with \
                 gt config set rig.<name>.command <command>",
                self.name
            ))),
        }
    }

    fn invoke(&self, template: &str, values: &InvocationValues<'_>) -> Result<Invocation, Invalid> {
        let instead = format!("Read {} and do what it says.", values.prompt_file);
        // A prompt that is too long to be passed directly is written to a file.
        let fits = |bytes_max| values.prompt.len() <= bytes_max && !values.prompt.contains('\0');
        let handed_over = match &self.prompt {
            Prompt::Argument | Prompt::Stdin | Prompt::File if fits(ARGUMENT_BYTES_MAX) => {
                values.prompt
            }
            Prompt::Paste(paste) if fits(paste.bytes_max) => values.prompt,
            Prompt::Argument | Prompt::Stdin | Prompt::File | Prompt::Paste(_) => &instead,
        };
        let mut argv = command_template::expand(template, &values.places(handed_over))?;
        let names_file = has_place(template, "prompt_file", values)?;
        let is_elsewhere = handed_over == instead.as_str()
            && match &self.prompt {
                Prompt::Paste(_) => true,
                Prompt::Argument | Prompt::Stdin | Prompt::File => {
                    has_place(template, "prompt", values)?
                }
            };
        let mut environment = self.environment.clone();
        match (&self.account, values.account_dir) {
            (Some(AccountWay::Variable(name)), Some(directory)) => {
                environment.push((name.clone(), directory.to_owned()));
            }
            (Some(AccountWay::Flag(flag)), Some(directory)) => {
                argv.splice(1..1, [flag.clone(), directory.to_owned()]);
            }
            (None, _) | (_, None) => {}
        }
        Ok(Invocation {
            argv,
            stdin: matches!(self.prompt, Prompt::Stdin).then(|| values.prompt.as_bytes().to_vec()),
            prompt_file: (names_file || is_elsewhere).then(|| PromptFile {
                path: values.prompt_file.to_owned(),
                contents: values.prompt.to_owned(),
            }),
            paste: match &self.prompt {
                Prompt::Paste(paste) => {
                    let Paste { ready, confirm, .. } = paste.clone();
                    Some(Pasting { text: handed_over.to_owned(), ready, confirm })
                }
                Prompt::Argument | Prompt::Stdin | Prompt::File => None,
            },
            environment,
        })
    }
}

/// Whether the value of this name stands anywhere in a command.
fn has_place(template: &str, name: &str, values: &InvocationValues<'_>) -> Result<bool, Invalid> {
    let with = |value: &str| {
        let mut places = values.places("");
        if let Some((_, place)) = places.iter_mut().find(|(known, _)| *known == name) {
            *place = value;
        }
        command_template::expand(template, &places.map(|(name, value)| (name, value)))
    };
    // A command that changes with the value has the place, with any other text around it.
    Ok(with("a")? != with("b")?)
}

/// Refuses a command that cannot be started with any values; says whether it has these places.
pub(super) fn check_template(template: &str) -> Result<PromptPlaces, Invalid> {
    let values = InvocationValues { gt: "gt", ..InvocationValues::default() };
    Ok(PromptPlaces {
        has_prompt: has_place(template, "prompt", &values)?,
        has_prompt_file: has_place(template, "prompt_file", &values)?,
    })
}

/// Which places for the prompt a command has.
#[derive(Debug, Clone, Copy)]
pub(super) struct PromptPlaces {
    pub(super) has_prompt: bool,
    pub(super) has_prompt_file: bool,
}
