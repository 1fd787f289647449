//! `gt scripted`: an agent that follows a script.

use clap::Args;
use gt_core::runtime::script::Script;
use gt_scheduling::runtimes::{self, ScriptContext, ScriptEnd};
use gt_town::OperationError;

use crate::context::{CommandContext, this_program};
use crate::error::CliError;
use crate::values::{source_name, text_of};

/// An agent that follows a script instead of a model, for tests and demonstrations
#[derive(Debug, Args)]
#[command(after_help = "One instruction a line:
  say TEXT             print a line
  work MILLISECONDS    let time pass (2s is fine too)
  edit PATH TEXT       write a file; \\n is a new line
  append PATH TEXT     write a line at the end of a file
  commit MESSAGE       commit everything
  step ID              gt step done ID
  done [STATUS]        gt done [--status STATUS]
  handoff [NOTE]       gt handoff [--message NOTE]
  read FILE            read what is typed at its terminal, and write it at the end of a file
  run PROGRAM …        run a program; if it fails, so does the script
  fail CODE            end with this exit status
  hang                 do nothing any more
  crash                be killed
  ignore-term          do not listen when asked to end
  limit DURATION       say that a usage limit has been reached
  flood MEGABYTES      print a lot
  wait-for FILE        wait until a file is there
  touch FILE           make an empty file
  repeat N … end       do the same N times
  first … end          do this in the first run of the bead alone
{bead} and {run} stand for those it works for. Lines that begin with # mean nothing.

Without --script it is the file that GT_SCRIPT names, else what stands between ```gt-script and ``` in the
description of its bead.")]
pub(super) struct ScriptedArgs {
    /// The script; - is standard input
    #[arg(long, value_name = "FILE")]
    script: Option<String>,
    /// The script itself
    #[arg(long, value_name = "SCRIPT", hide = true, conflicts_with = "script")]
    text: Option<String>,
    /// How many instructions have been done already
    #[arg(long, value_name = "N", hide = true, default_value_t = 0)]
    skip: u64,
}

pub(super) fn run(context: &CommandContext<'_>, args: &ScriptedArgs) -> Result<(), CliError> {
    let environment = &context.environment;
    let file = args.script.as_deref().or_else(|| environment.get("GT_SCRIPT"));
    let (source, text) = match (&args.text, file) {
        (Some(text), _) => ("the script".to_owned(), text.clone()),
        (None, Some(file)) => (source_name(file).to_owned(), text_of(file)?),
        (None, None) => {
            let text = runtimes::script_of(&context.town()?, environment)?;
            ("the script of the bead".to_owned(), text)
        }
    };
    let script =
        Script::parse(&text).map_err(|error| CliError::request(format!("{source}, {error}")))?;
    let printer = context.printer;
    let say = |line: &str| {
        let said = printer.data(line).and_then(|()| printer.flush());
        said.map_err(|error| OperationError::rejected(error.chain()))
    };
    let run = environment.acting_run();
    let again = ["scripted", "--text", &text, "--skip"].map(str::to_owned).to_vec();
    let stage = ScriptContext {
        directory: context.directory.clone(),
        bead: run.as_ref().map(|run| run.bead.to_string()).unwrap_or_default(),
        run: run.as_ref().map(ToString::to_string).unwrap_or_default(),
        is_first: run.as_ref().is_none_or(|run| run.epoch == 1),
        say: &say,
        again: (this_program()?, again),
    };
    match runtimes::follow(&script, args.skip, &stage)? {
        ScriptEnd::Well => Ok(()),
        ScriptEnd::Badly(code) => Err(CliError::Said(code)),
    }
}
