//! `bd batch`.

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use gt_api::BatchLineDocument;
use gt_beads::batch::{BatchLine, BatchLineResult, BatchResult, BatchStep, run as run_batch};
use gt_core::words::{Word, split};
use gt_core::{BeadId, IssueType, Priority, Timestamp};
use gt_execution::runs::end_processes_of;
use gt_town::Environment;

use super::boolean_flags::without_boolean_values;
use super::{bead_output, close, create, dep, label, reopen, update};
use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::usage_message;
use crate::values::{source_name, text_of, texts};

/// Run many changes as one: all of them or none
#[derive(Debug, Args)]
#[command(
    after_help = "A line is a command without bd, quoted as in a shell; # begins a line that is \
skipped:
  close gt-abc gt-def merged today
  update gt-abc status=blocked notes=\"waiting for the key\"
  create \"Write the docs\" type=chore priority=3
  create chore 3 Write the docs
  dep add gt-b gt-a [type]         dep remove gt-b gt-a
  label add gt-abc soon            label remove gt-abc soon
  comment gt-abc the cause is upstream
  reopen gt-abc

Examples:
  bd batch changes.txt --dry-run
  echo 'close gt-abc done' | bd batch"
)]
pub(super) struct BatchArgs {
    /// The file (- is standard input, which is also read when no file is named)
    #[arg(value_name = "FILE", default_value = "-")]
    file: String,
    #[arg(short = 'f', long = "file", value_name = "FILE", hide = true)]
    file_flag: Option<String>,
    /// Say what would be done, and change nothing
    #[arg(long)]
    dry_run: bool,
}

/// A line of a batch, as its words say it.
#[derive(Debug, Parser)]
#[command(
    name = "batch",
    no_binary_name = true,
    disable_help_subcommand = true,
    args_override_self = true
)]
struct LineCommand {
    #[command(subcommand)]
    verb: LineVerb,
}

#[derive(Debug, Subcommand)]
enum LineVerb {
    Create(create::CreateArgs),
    Update(update::UpdateArgs),
    #[command(alias = "done")]
    Close(close::CloseArgs),
    Reopen(reopen::ReopenArgs),
    Dep(dep::DepArgs),
    Label(label::LabelArgs),
    #[command(alias = "comments")]
    Comment(CommentLine),
}

#[derive(Debug, Args)]
struct CommentLine {
    /// An id, or a part of it
    id: String,
    /// The text
    #[arg(
        value_name = "TEXT",
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    words: Vec<String>,
}

pub(super) fn run(context: &CommandContext<'_>, args: &BatchArgs) -> Result<(), CliError> {
    let path = args.file_flag.as_ref().unwrap_or(&args.file);
    let text = text_of(path)?;
    let town = context.store_town()?;
    let name = source_name(path);
    let parser = LineParser {
        command: LineCommand::command(),
        from_stdin: path == "-",
        now: town.now(),
        environment: &context.environment,
    };
    let mut lines = Vec::new();
    for (number, line) in text.lines().enumerate().map(|(index, line)| (index + 1, line.trim())) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let place = format!("{name}:{number}");
        let step = parser
            .step(line)
            .map_err(|error| CliError::request(format!("{place}: {}", error.chain())))?;
        lines.push(BatchLine { number, place, step });
    }
    let BatchResult { lines: done, cancelled } = run_batch(&town, &lines, args.dry_run)?;
    if !args.dry_run {
        end_processes_of(&town, &cancelled);
    }
    let printer = context.printer;
    for id in done.iter().flat_map(|line| &line.missing) {
        bead_output::note_absent(printer, id);
    }
    if printer.json() {
        let mut list = printer.list();
        for line in &done {
            list.push(&document(line))?;
        }
        return list.finish();
    }
    if done.is_empty() {
        return printer.done("Nothing to do");
    }
    let verb = if args.dry_run { "Would do" } else { "✓" };
    done.iter().try_for_each(|BatchLineResult { number, command, ids, .. }| {
        let ids: Vec<&str> = ids.iter().map(BeadId::as_str).collect();
        printer.done(format!("{verb} line {number}: {command} {}", ids.join(" ")))
    })
}

/// Parses a line without doing anything.
pub(crate) fn check_line(line: &str) -> Result<(), CliError> {
    let parser = LineParser {
        command: LineCommand::command(),
        from_stdin: true,
        now: Timestamp::from_nanos(0),
        environment: &Environment::default(),
    };
    parser.verb(line).map(drop)
}

fn document(line: &BatchLineResult) -> BatchLineDocument {
    BatchLineDocument {
        line: line.number as u64,
        command: line.command.to_owned(),
        ids: texts(&line.ids),
    }
}

/// Turns lines into changes, with the parsers of the commands themselves.
struct LineParser<'c> {
    command: clap::Command,
    from_stdin: bool,
    now: Timestamp,
    environment: &'c Environment,
}

impl LineParser<'_> {
    /// Parses a line; no file that it names is opened.
    fn verb(&self, line: &str) -> Result<LineVerb, CliError> {
        let words = self.with_flags(split(line)?);
        if self.from_stdin && reads_stdin(&words) {
            return Err(CliError::request(
                "standard input is the batch itself; put the text into the line, or into a file",
            ));
        }
        let parsed = self
            .command
            .clone()
            .try_get_matches_from(without_boolean_values(&self.command, &words, false))
            .and_then(|matches| LineCommand::from_arg_matches(&matches));
        let parsed = parsed.map_err(|error| {
            if error.use_stderr() {
                CliError::request(usage_message(&error).0)
            } else {
                CliError::request("a batch changes beads; it explains nothing")
            }
        })?;
        Ok(parsed.verb)
    }

    fn step(&self, line: &str) -> Result<BatchStep, CliError> {
        match self.verb(line)? {
            LineVerb::Create(args) => create::step(args, self.now),
            LineVerb::Update(args) => update::step(&args, self.now),
            LineVerb::Close(args) => close::step(&args, self.environment),
            LineVerb::Reopen(args) => Ok(reopen::step(args)),
            LineVerb::Dep(args) => dep::step(args),
            LineVerb::Label(args) => label::step(args),
            LineVerb::Comment(CommentLine { id, words }) => {
                Ok(BatchStep::Comment { bead: id, text: words.join(" "), author: None })
            }
        }
    }

    /// The words of a line as arguments: `key=value` is the flag of that name, and the type of a
    /// dependency may stand behind the beads.
    fn with_flags(&self, words: Vec<Word>) -> Vec<String> {
        if let Some(arguments) = with_leading_type(&words) {
            return arguments;
        }
        let verb = words.first().map_or("", |word| word.text.as_str()).to_owned();
        let command = self.command.find_subcommand(&verb);
        // A command may have commands of its own.
        let below = words.get(1).and_then(|word| command?.find_subcommand(&word.text));
        let command = below.or(command);
        let takes_fields = matches!(verb.as_str(), "create" | "update" | "dep");
        let mut arguments: Vec<String> = Vec::with_capacity(words.len());
        let mut is_value = false;
        let mut behind_beads = 0;
        for word in words {
            if let (true, false, Some((key, value))) = (takes_fields, is_value, word.assignment()) {
                arguments.push(format!("--{}={value}", flag_of(&verb, key)));
                continue;
            }
            let is_word = !is_value && !word.text.starts_with('-');
            is_value = !is_value && command.is_some_and(|command| expects(command, &word.text));
            behind_beads += usize::from(is_word);
            // dep, add, and two beads.
            if verb == "dep" && is_word && behind_beads == 5 {
                arguments.push("--type".to_owned());
            }
            arguments.push(word.text);
        }
        arguments
    }
}

/// `create <type> <priority> <title>`, where the title is the rest of the line.
fn with_leading_type(words: &[Word]) -> Option<Vec<String>> {
    let [verb, kind, priority, title @ ..] = words else { return None };
    let is_short = verb.text == "create"
        && IssueType::parse(&kind.text).is_ok_and(|kind| kind.is_built_in())
        && Priority::parse(&priority.text).is_ok()
        && !title.is_empty()
        && title.iter().all(|word| !word.text.starts_with('-') && word.assignment().is_none());
    let title: Vec<&str> = title.iter().map(|word| word.text.as_str()).collect();
    is_short.then(|| {
        let [kind, priority] = [kind, priority].map(|word| word.text.clone());
        ["create", "--type", &kind, "--priority", &priority, "--", &title.join(" ")]
            .map(str::to_owned)
            .into()
    })
}

/// The flag that sets the field of a bead called `key`.
fn flag_of(verb: &str, key: &str) -> String {
    match (verb, key) {
        (_, "issue_type") => "type".to_owned(),
        (_, "estimated_minutes") => "estimate".to_owned(),
        (_, "due_at") => "due".to_owned(),
        (_, "defer_until") => "defer".to_owned(),
        ("update", "labels") => "set-labels".to_owned(),
        _ => key.replace('_', "-"),
    }
}

/// Whether `word` is a flag of this command whose value is the next word.
fn expects(command: &clap::Command, word: &str) -> bool {
    let is_named = |argument: &clap::Arg| match word.strip_prefix("--") {
        Some(long) => {
            argument.get_long_and_visible_aliases().is_some_and(|all| all.contains(&long))
        }
        None => word.strip_prefix('-').is_some_and(|short| {
            let mut letters = short.chars();
            match (letters.next(), letters.next()) {
                (Some(letter), None) => argument
                    .get_short_and_visible_aliases()
                    .is_some_and(|all| all.contains(&letter)),
                _ => false,
            }
        }),
    };
    command
        .get_arguments()
        .any(|argument| is_named(argument) && argument.get_action().takes_values())
}

/// Whether a line wants to read what the batch is read from.
fn reads_stdin(words: &[String]) -> bool {
    let of_file = |flag: &str| matches!(flag, "--body-file" | "--design-file" | "--reason-file");
    let is_stdin = |flag: &str, value: &str| match flag {
        "--metadata" => value == "@-",
        flag => of_file(flag) && value == "-",
    };
    let joined = |word: &String| {
        word == "--stdin" || word.split_once('=').is_some_and(|(flag, value)| is_stdin(flag, value))
    };
    words.iter().any(joined) || words.windows(2).any(|pair| is_stdin(&pair[0], &pair[1]))
}
