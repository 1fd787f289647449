//! The scripts that the scripted runtime follows: one instruction a line.

use std::fmt;
use std::time::Duration;

use crate::time::{format_duration, parse_duration};
use crate::{Invalid, words};

/// How deep repetitions may nest.
const DEPTH_MAX: usize = 8;

/// Most instructions of a script.
const INSTRUCTIONS_MAX: usize = 10_000;

/// Most rounds of one repetition.
const ROUNDS_MAX: u32 = 1_000_000;

/// Most output of one instruction, in megabytes.
const FLOOD_MB_MAX: u32 = 100_000;

/// The actions of a simulated agent, step by step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script(Vec<Instruction>);

/// One thing to do. In paths and texts, `{bead}` and `{run}` stand for those it works for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Instruction {
    /// Print a line.
    Say(String),
    /// Let time pass.
    Work(Duration),
    /// Write a file.
    Edit {
        /// The file.
        path: String,
        /// Its contents, a line.
        text: String,
    },
    /// Write a line at the end of a file.
    Append {
        /// The file.
        path: String,
        /// The line.
        text: String,
    },
    /// Commit everything.
    Commit(String),
    /// Say that the work is over, with this status if one is given.
    Done(Option<String>),
    /// Say that a step is done.
    Step(String),
    /// Let a fresh session go on, with this note if one is given.
    HandOff(Option<String>),
    /// Read the typed text up to the key that sends it, and write it at the end of a file.
    Read(String),
    /// Run a program to its end; if it fails, so does the script.
    Run(Vec<String>),
    /// End with this exit status.
    Fail(u8),
    /// Do nothing any more, without end.
    Hang,
    /// Die without a word.
    Crash,
    /// From now on, do not listen when asked to end.
    IgnoreTerm,
    /// Say that nothing goes on before this has passed.
    Limit(Duration),
    /// Print this many megabytes.
    Flood(u32),
    /// Wait until a file is there.
    WaitFor(String),
    /// Make an empty file.
    Touch(String),
    /// Do the same several times.
    Repeat {
        /// The number of rounds.
        rounds: u32,
        /// The repeated instructions.
        body: Vec<Self>,
    },
    /// Do this in the first run of the bead alone.
    First(Vec<Self>),
}

/// An error in a script, with its place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct ScriptError {
    /// The line, from 1.
    pub line: usize,
    /// The error, and the correct form.
    pub message: String,
}

/// Every instruction and its arguments, for messages.
const USES: [&str; 21] = [
    "say TEXT",
    "work MILLISECONDS",
    "edit PATH TEXT",
    "append PATH TEXT",
    "commit MESSAGE",
    "done [STATUS]",
    "step ID",
    "handoff [NOTE]",
    "read FILE",
    "run PROGRAM [ARGUMENT]…",
    "fail CODE",
    "hang",
    "crash",
    "ignore-term",
    "limit DURATION",
    "flood MEGABYTES",
    "wait-for FILE",
    "touch FILE",
    "repeat N",
    "first",
    "end",
];

/// Several instructions that belong together and are being read.
struct Open {
    line: usize,
    block: Block,
    body: Vec<Instruction>,
}

#[derive(Clone, Copy)]
enum Block {
    Repeat { rounds: u32 },
    First,
}

impl Block {
    fn word(self) -> &'static str {
        match self {
            Self::Repeat { .. } => "repeat",
            Self::First => "first",
        }
    }

    fn around(self, body: Vec<Instruction>) -> Instruction {
        match self {
            Self::Repeat { rounds } => Instruction::Repeat { rounds, body },
            Self::First => Instruction::First(body),
        }
    }
}

impl Script {
    /// Reads a script. Empty lines and lines that begin with `#` mean nothing.
    pub fn parse(text: &str) -> Result<Self, ScriptError> {
        let mut finished: Vec<Instruction> = Vec::new();
        let mut open: Vec<Open> = Vec::new();
        let mut count = 0;
        for (at, line) in text.lines().enumerate() {
            let number = at + 1;
            let wrong = |message: String| ScriptError { line: number, message };
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            count += 1;
            if count > INSTRUCTIONS_MAX {
                return Err(wrong(format!("a script has at most {INSTRUCTIONS_MAX} instructions")));
            }
            let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
            let rest = rest.trim();
            let instruction = match word {
                "repeat" | "first" if open.len() == DEPTH_MAX => {
                    return Err(wrong(format!("repeat and first nest at most {DEPTH_MAX} deep")));
                }
                "repeat" => {
                    let rounds = number_of("repeat N", rest, ROUNDS_MAX).map_err(wrong)?;
                    let block = Block::Repeat { rounds };
                    open.push(Open { line: number, block, body: Vec::new() });
                    continue;
                }
                "first" if !rest.is_empty() => return Err(wrong(usage("first"))),
                "first" => {
                    open.push(Open { line: number, block: Block::First, body: Vec::new() });
                    continue;
                }
                "end" if !rest.is_empty() => return Err(wrong(usage("end"))),
                "end" => {
                    let Some(Open { block, body, .. }) = open.pop() else {
                        let message = "there is nothing to end; end closes repeat and first";
                        return Err(wrong(message.to_owned()));
                    };
                    block.around(body)
                }
                _ => instruction(word, rest).map_err(wrong)?,
            };
            open.last_mut().map_or(&mut finished, |open| &mut open.body).push(instruction);
        }
        match open.pop() {
            Some(open) => Err(ScriptError {
                line: open.line,
                message: format!(
                    "this {} is never closed; write end behind what belongs to it",
                    open.block.word()
                ),
            }),
            None => Ok(Self(finished)),
        }
    }

    /// The instructions, in order.
    pub fn instructions(&self) -> &[Instruction] {
        &self.0
    }
}

/// The script in a description: the text between a line with three backticks and `gt-script`, and one with
/// three backticks.
pub fn script_in(description: &str) -> Option<&str> {
    let mut start = None;
    let mut place = 0;
    for line in description.split_inclusive('\n') {
        let words = line.trim();
        match start {
            None if words.strip_prefix("```").is_some_and(|kind| kind.trim() == "gt-script") => {
                start = Some(place + line.len());
            }
            Some(start) if words == "```" => return Some(&description[start..place]),
            _ => {}
        }
        place += line.len();
    }
    start.map(|start| &description[start..])
}

/// The message that [`Instruction::Limit`] prints; the scripted preset recognises it.
pub fn limit_message(wait: Duration) -> String {
    format!("Usage limit reached; try again in {}", format_duration(wait))
}

fn usage(word: &str) -> String {
    match USES.into_iter().find(|use_| use_.split(' ').next() == Some(word)) {
        Some(use_) => format!("write {use_}"),
        None => format!("\"{}\" is no instruction; there are {}", shown(word), USES.join(", ")),
    }
}

fn shown(text: &str) -> String {
    text.chars().take(60).collect::<String>().escape_debug().to_string()
}

fn number_of(use_: &str, text: &str, max: u32) -> Result<u32, String> {
    let number = text.parse().ok().filter(|number| *number <= max);
    number.ok_or_else(|| format!("\"{}\" is not a number up to {max}; write {use_}", shown(text)))
}

fn instruction(word: &str, rest: &str) -> Result<Instruction, String> {
    let alone = |instruction| if rest.is_empty() { Ok(instruction) } else { Err(usage(word)) };
    let wanted = || if rest.is_empty() { Err(usage(word)) } else { Ok(rest) };
    let one_word = || {
        let words = words::split(rest).map_err(|Invalid(why)| why)?;
        match words.as_slice() {
            [one] if !one.text.is_empty() => Ok(one.text.clone()),
            _ => Err(usage(word)),
        }
    };
    Ok(match word {
        "say" => Instruction::Say(unescaped(rest)),
        "work" => Instruction::Work(match wanted()?.parse() {
            Ok(milliseconds) => Duration::from_millis(milliseconds),
            Err(_) => parse_duration(rest).map_err(|Invalid(why)| why)?,
        }),
        "edit" | "append" => {
            let (path, text) = path_and_text(wanted()?)?;
            if word == "edit" {
                Instruction::Edit { path, text }
            } else {
                Instruction::Append { path, text }
            }
        }
        "commit" => Instruction::Commit(unescaped(wanted()?)),
        "done" if rest.is_empty() => Instruction::Done(None),
        "done" => Instruction::Done(Some(one_word()?)),
        "step" => Instruction::Step(one_word()?),
        "handoff" if rest.is_empty() => Instruction::HandOff(None),
        "handoff" => Instruction::HandOff(Some(unescaped(rest))),
        "read" => Instruction::Read(one_word()?),
        "run" => {
            let argv = words::split(wanted()?).map_err(|Invalid(why)| why)?;
            if argv.first().is_none_or(|program| program.text.is_empty()) {
                return Err(usage("run"));
            }
            Instruction::Run(argv.into_iter().map(|word| word.text).collect())
        }
        "fail" => match rest.parse() {
            Ok(code @ 1..) => Instruction::Fail(code),
            _ => {
                return Err(format!(
                    "\"{}\" is not an exit status from 1 to 255; write fail CODE",
                    shown(rest)
                ));
            }
        },
        "hang" => alone(Instruction::Hang)?,
        "crash" => alone(Instruction::Crash)?,
        "ignore-term" => alone(Instruction::IgnoreTerm)?,
        "limit" => Instruction::Limit(parse_duration(wanted()?).map_err(|Invalid(why)| why)?),
        "flood" => Instruction::Flood(number_of("flood MEGABYTES", rest, FLOOD_MB_MAX)?),
        "wait-for" => Instruction::WaitFor(one_word()?),
        "touch" => Instruction::Touch(one_word()?),
        _ => return Err(usage(word)),
    })
}

/// The path at the beginning, quoted if there are spaces in it, and the text behind it.
fn path_and_text(rest: &str) -> Result<(String, String), String> {
    let gaps = rest.match_indices(char::is_whitespace).map(|(at, _)| at);
    // A space inside of quotes leaves them open before it.
    let first = gaps.chain([rest.len()]).find_map(|end| {
        let words = words::split(&rest[..end]).ok()?;
        Some((words.into_iter().next()?.text, &rest[end..]))
    });
    match first {
        Some((path, text)) if !path.is_empty() => Ok((path, unescaped(text.trim()))),
        _ => Err(format!("\"{}\" does not begin with a path", shown(rest))),
    }
}

/// `\n`, `\t` and `\\` as the characters they stand for; other backslashes are backslashes.
fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        let following = rest.clone().next();
        match (c, following) {
            ('\\', Some('n')) => out.push('\n'),
            ('\\', Some('t')) => out.push('\t'),
            ('\\', Some('\\')) => out.push('\\'),
            _ => {
                out.push(c);
                continue;
            }
        }
        rest.next();
    }
    out
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\n', "\\n").replace('\t', "\\t")
}

/// A word as [`words::split`] reads it back.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|instruction| write!(f, "{instruction}"))
    }
}

/// A line that reads back as the same; an instruction with a body is several lines.
impl fmt::Display for Instruction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Say(text) => writeln!(f, "say {}", escaped(text)),
            Self::Work(time) => writeln!(f, "work {}", format_duration(*time)),
            Self::Edit { path, text } => {
                writeln!(f, "edit {} {}", quoted(path), escaped(text))
            }
            Self::Append { path, text } => {
                writeln!(f, "append {} {}", quoted(path), escaped(text))
            }
            Self::Commit(message) => writeln!(f, "commit {}", escaped(message)),
            Self::Done(None) => writeln!(f, "done"),
            Self::Done(Some(status)) => writeln!(f, "done {}", quoted(status)),
            Self::Step(id) => writeln!(f, "step {}", quoted(id)),
            Self::HandOff(None) => writeln!(f, "handoff"),
            Self::HandOff(Some(note)) => writeln!(f, "handoff {}", escaped(note)),
            Self::Read(path) => writeln!(f, "read {}", quoted(path)),
            Self::Run(argv) => {
                let words: Vec<String> = argv.iter().map(|word| quoted(word)).collect();
                writeln!(f, "run {}", words.join(" "))
            }
            Self::Fail(code) => writeln!(f, "fail {code}"),
            Self::Hang => writeln!(f, "hang"),
            Self::Crash => writeln!(f, "crash"),
            Self::IgnoreTerm => writeln!(f, "ignore-term"),
            Self::Limit(wait) => writeln!(f, "limit {}", format_duration(*wait)),
            Self::Flood(megabytes) => writeln!(f, "flood {megabytes}"),
            Self::WaitFor(path) => writeln!(f, "wait-for {}", quoted(path)),
            Self::Touch(path) => writeln!(f, "touch {}", quoted(path)),
            Self::Repeat { rounds, body } => {
                writeln!(f, "repeat {rounds}")?;
                body.iter().try_for_each(|instruction| write!(f, "{instruction}"))?;
                writeln!(f, "end")
            }
            Self::First(body) => {
                writeln!(f, "first")?;
                body.iter().try_for_each(|instruction| write!(f, "{instruction}"))?;
                writeln!(f, "end")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_instruction_is_read() {
        let script = Script::parse(
            "# what an agent does\n\
             say  Hello, don't panic \n\
             work 250\nwork 2s\n\
             edit src/lib.rs one\\ntwo\n\
             append 'a file' more\n\
             commit Fix \"it\"\n\n\
             repeat 2\n  touch x\n  repeat 3\n    step build\n  end\nend\n\
             run sh -c 'exit 0'\nwait-for go\nflood 3\nlimit 5m\nignore-term\n\
             done\ndone escalated\nhandoff\nhandoff Go\\non\nread typed\nfirst\n  fail 3\nend\nhang\ncrash",
        );
        let text = |text: &str| text.to_owned();
        let step = Instruction::Step(text("build"));
        let expected = vec![
            Instruction::Say(text("Hello, don't panic")),
            Instruction::Work(Duration::from_millis(250)),
            Instruction::Work(Duration::from_secs(2)),
            Instruction::Edit { path: text("src/lib.rs"), text: text("one\ntwo") },
            Instruction::Append { path: text("a file"), text: text("more") },
            Instruction::Commit(text("Fix \"it\"")),
            Instruction::Repeat {
                rounds: 2,
                body: vec![
                    Instruction::Touch(text("x")),
                    Instruction::Repeat { rounds: 3, body: vec![step] },
                ],
            },
            Instruction::Run(vec![text("sh"), text("-c"), text("exit 0")]),
            Instruction::WaitFor(text("go")),
            Instruction::Flood(3),
            Instruction::Limit(Duration::from_mins(5)),
            Instruction::IgnoreTerm,
            Instruction::Done(None),
            Instruction::Done(Some(text("escalated"))),
            Instruction::HandOff(None),
            Instruction::HandOff(Some(text("Go\non"))),
            Instruction::Read(text("typed")),
            Instruction::First(vec![Instruction::Fail(3)]),
            Instruction::Hang,
            Instruction::Crash,
        ];
        assert_eq!(script.unwrap().instructions(), expected);
    }

    #[test]
    fn errors_name_the_line() {
        let deep = "repeat 1\n".repeat(9);
        for (script, expected) in [
            ("say hi\nfly", "line 2: \"fly\" is no instruction; there are say TEXT, work"),
            ("work", "line 1: write work MILLISECONDS"),
            ("work soon", "line 1: \"soon\" is not a duration"),
            ("edit", "line 1: write edit PATH TEXT"),
            ("fail 0", "line 1: \"0\" is not an exit status from 1 to 255; write fail CODE"),
            ("fail 256", "line 1: \"256\" is not an exit status"),
            ("hang on", "line 1: write hang"),
            ("\n\nend", "line 3: there is nothing to end"),
            ("repeat 2\nsay x", "line 1: this repeat is never closed"),
            ("first\nsay x", "line 1: this first is never closed"),
            ("first 2\nend", "line 1: write first"),
            ("repeat many\nend", "line 1: \"many\" is not a number up to 1000000; write repeat N"),
            ("run 'x", "line 1: the ' at column 1 is never closed"),
            ("touch a b", "line 1: write touch FILE"),
            ("flood -1", "line 1: \"-1\" is not a number"),
            (&deep, "line 9: repeat and first nest at most 8 deep"),
        ] {
            let error = Script::parse(script).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{script:?}: {error}");
        }
    }

    #[test]
    fn a_script_is_found_in_a_description() {
        for (description, expected) in [
            ("Do it\n\n```gt-script\nsay x\ndone\n```\nand more", Some("say x\ndone\n")),
            ("```gt-script\nsay x", Some("say x")),
            ("``` gt-script  \r\nsay x\r\n```\r\n", Some("say x\r\n")),
            ("```sh\nsay x\n```", None),
            ("", None),
        ] {
            assert_eq!(script_in(description), expected, "{description:?}");
        }
    }

    fn instructions() -> impl Strategy<Value = Vec<Instruction>> {
        let word = || "[a-zA-Z0-9 ./'\"\\\\{}-]{0,10}[a-z]";
        let text = || "[a-z \\\\'\"\t\nä]{0,12}".prop_map(|text| text.trim().to_owned());
        let said = || "[a-z \\\\'\"\t\nä]{0,12}[a-z]".prop_map(|text| text.trim().to_owned());
        let path = word;
        let single = prop_oneof![
            text().prop_map(Instruction::Say),
            any::<u32>().prop_map(|ms| Instruction::Work(Duration::from_millis(ms.into()))),
            (path(), text()).prop_map(|(path, text)| Instruction::Edit { path, text }),
            (path(), text()).prop_map(|(path, text)| Instruction::Append { path, text }),
            said().prop_map(Instruction::Commit),
            prop::option::of(word()).prop_map(Instruction::Done),
            word().prop_map(Instruction::Step),
            prop::option::of(said()).prop_map(Instruction::HandOff),
            word().prop_map(Instruction::Read),
            prop::collection::vec(word(), 1..4).prop_map(Instruction::Run),
            (1_u8..).prop_map(Instruction::Fail),
            Just(Instruction::Hang),
            Just(Instruction::Crash),
            Just(Instruction::IgnoreTerm),
            any::<u32>().prop_map(|s| Instruction::Limit(Duration::from_secs(s.into()))),
            (0..FLOOD_MB_MAX).prop_map(Instruction::Flood),
            word().prop_map(Instruction::WaitFor),
            word().prop_map(Instruction::Touch),
        ];
        let nested = single.prop_recursive(3, 20, 4, |inner| {
            let body = prop::collection::vec(inner, 0..4);
            prop_oneof![
                (0..ROUNDS_MAX, body.clone())
                    .prop_map(|(rounds, body)| Instruction::Repeat { rounds, body }),
                body.prop_map(Instruction::First),
            ]
        });
        prop::collection::vec(nested, 0..8)
    }

    proptest! {
        #[test]
        fn a_printed_script_reads_back_as_the_same(instructions in instructions()) {
            let script = Script(instructions);
            prop_assert_eq!(Script::parse(&script.to_string()), Ok(script));
        }

        #[test]
        fn nothing_makes_it_panic(text in "([a-z-]{0,8}[ \n'\"\\\\0-9a]{0,6}|.){0,12}") {
            if let Err(error) = Script::parse(&text) {
                prop_assert!(error.line <= text.lines().count());
                prop_assert!(!error.to_string().contains('\n'));
            }
            let _ = script_in(&text);
        }
    }
}
