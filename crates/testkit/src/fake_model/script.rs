//! The script of a fake model: what it answers, turn by turn.
//!
//! A script is part of the prompt, between the lines `fake-model:` and `end of script`. Each line is an instruction:
//!
//! | instruction | effect |
//! |---|---|
//! | `say TEXT` | text before the next tool call, or the last message |
//! | `shell COMMAND` | calls the shell tool that the agent offers |
//! | `write PATH TEXT` | calls the tool for writing files, or the shell if there is none; `\n` is a new line |
//! | `tool NAME ARGUMENTS` | calls the offered tool whose name ends so, with this JSON object |
//! | `wait MILLISECONDS` | the next answer comes that much later |
//! | `limit SECONDS` | from here on each request is refused with 429; the limit ends that many seconds from now |
//! | `error STATUS TIMES` | the next requests are refused with this status |
//! | `cut` | the next answer breaks off in the middle, once |
//! | `hang` | from here on no request is answered |
//! | `next run` | the rest is for the next conversation with the same script |

use std::time::Duration;

const FIRST_LINE: &str = "fake-model:";
/// The line behind a script.
pub(super) const LAST_LINE: &str = "end of script";
const NEXT_RUN: &str = "next run";

/// The request of the model to its agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Act {
    /// Run a command.
    Shell(String),
    /// Write a file.
    Write { path: String, text: String },
    /// Call a tool of the agent, by the end of its name.
    Tool { name: String, arguments: String },
}

/// A fault instead of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ModelFault {
    /// Refused: the usage limit is reached for this long. Each further request meets it too.
    Limit(Duration),
    /// Refused with this status.
    Status(u16),
    /// The answer ends in its middle.
    Cut,
    /// No answer. Each further request meets it too.
    Hang,
}

impl ModelFault {
    /// Whether a repeated request meets it again.
    fn stays(self) -> bool {
        matches!(self, Self::Limit(_) | Self::Hang)
    }
}

/// One answer of the model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Turn {
    /// The text of the answer.
    pub(super) text: String,
    /// The work for the agent; nothing in the last answer.
    pub(super) act: Option<Act>,
    /// How long the answer takes.
    pub(super) delay: Duration,
    faults: Vec<ModelFault>,
}

impl Turn {
    /// The fault that the request with this number meets; the first request of a turn has the number 0.
    pub(super) fn fault(&self, request: usize) -> Option<ModelFault> {
        let lasting = self.faults.last().copied().filter(|fault| fault.stays());
        self.faults.get(request).copied().or(lasting)
    }
}

/// The answers of one conversation after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ModelScript(Vec<Vec<Turn>>);

impl ModelScript {
    /// The script in a text; none if there is none. A wrong line is an error that names it.
    pub(super) fn find(text: &str) -> Option<Result<Self, String>> {
        let mut lines = text.lines().map(str::trim).skip_while(|line| *line != FIRST_LINE);
        lines.next()?;
        // Some agents quote the prompt, so that something follows the last line.
        Some(Self::parse(lines.take_while(|line| !line.starts_with(LAST_LINE))))
    }

    fn parse<'a>(lines: impl Iterator<Item = &'a str>) -> Result<Self, String> {
        let mut conversations = vec![Vec::new()];
        let mut turn = Turn::default();
        for line in lines.filter(|line| !line.is_empty()) {
            if line == NEXT_RUN {
                let last = conversations.len() - 1;
                conversations[last].push(std::mem::take(&mut turn));
                conversations.push(Vec::new());
                continue;
            }
            turn.add(line)?;
            if turn.act.is_some() {
                let last = conversations.len() - 1;
                conversations[last].push(std::mem::take(&mut turn));
            }
        }
        let last = conversations.len() - 1;
        conversations[last].push(turn);
        Ok(Self(conversations))
    }

    /// The answer of a conversation after this number of tool calls. Later conversations than there are scripts for
    /// follow the last one.
    pub(super) fn turn(&self, conversation: usize, calls: usize) -> Turn {
        let turns = self.0.get(conversation).or(self.0.last());
        turns.and_then(|turns| turns.get(calls).or(turns.last())).cloned().unwrap_or_default()
    }
}

impl Turn {
    fn add(&mut self, line: &str) -> Result<(), String> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let number = |text: &str| {
            text.trim().parse::<u16>().map_err(|_| format!("{line:?}: {text:?} is not a number"))
        };
        match word {
            "say" => self.text.push_str(rest),
            "shell" => self.act = Some(Act::Shell(rest.to_owned())),
            "write" => {
                let (path, text) = rest.split_once(' ').unwrap_or((rest, ""));
                let text = format!("{}\n", text.replace("\\n", "\n"));
                self.act = Some(Act::Write { path: path.to_owned(), text });
            }
            "tool" => {
                let (name, arguments) = rest.split_once(' ').unwrap_or((rest, "{}"));
                let (name, arguments) = (name.to_owned(), arguments.to_owned());
                self.act = Some(Act::Tool { name, arguments });
            }
            "wait" => self.delay = Duration::from_millis(number(rest)?.into()),
            "limit" => {
                self.faults.push(ModelFault::Limit(Duration::from_secs(number(rest)?.into())));
            }
            "error" => {
                let (status, times) = rest.split_once(' ').unwrap_or((rest, "1"));
                let fault = ModelFault::Status(number(status)?);
                self.faults.extend(std::iter::repeat_n(fault, number(times)?.into()));
            }
            "cut" => self.faults.push(ModelFault::Cut),
            "hang" => self.faults.push(ModelFault::Hang),
            _ => return Err(format!("{line:?} is no instruction for the fake model")),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(lines: &str) -> ModelScript {
        ModelScript::find(&format!("Do it.\n  fake-model:\n{lines}\nend of script\nThanks"))
            .unwrap()
            .unwrap()
    }

    #[test]
    fn answers_follow_the_number_of_tool_calls() {
        let script =
            script("say First\nshell ls\nwrite a.txt one\\ntwo\ntool done {\"a\": 1}\nsay Done");
        let (first, second, last) = (script.turn(0, 0), script.turn(0, 1), script.turn(0, 9));
        assert_eq!((first.text.as_str(), first.act), ("First", Some(Act::Shell("ls".into()))));
        let write = Act::Write { path: "a.txt".into(), text: "one\ntwo\n".into() };
        assert_eq!(second.act, Some(write));
        let tool = Act::Tool { name: "done".into(), arguments: "{\"a\": 1}".into() };
        assert_eq!(script.turn(0, 2).act, Some(tool));
        assert_eq!((last.text.as_str(), last.act), ("Done", None));
    }

    #[test]
    fn each_conversation_has_its_part() {
        let script = script("limit 60\nnext run\nshell ls\nsay Done");
        let limit = Some(ModelFault::Limit(Duration::from_mins(1)));
        assert_eq!((script.turn(0, 0).fault(0), script.turn(0, 0).fault(7)), (limit, limit));
        assert_eq!(script.turn(1, 0).act, Some(Act::Shell("ls".into())));
        assert_eq!(script.turn(5, 1).text, "Done");
    }

    #[test]
    fn a_passing_fault_is_met_as_often_as_the_script_says() {
        let script = script("error 500 2\ncut\nsay Done");
        let turn = script.turn(0, 0);
        let met: Vec<_> = (0..4).map(|request| turn.fault(request)).collect();
        let error = Some(ModelFault::Status(500));
        assert_eq!(met, [error, error, Some(ModelFault::Cut), None]);
    }

    #[test]
    fn a_wrong_line_is_named() {
        let found = ModelScript::find("fake-model:\nfly away\nend of script").unwrap();
        assert!(found.unwrap_err().contains("fly away"));
        assert_eq!(ModelScript::find("no script here"), None);
    }
}
