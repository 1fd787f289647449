//! The protocol between home and the other machine: lines of JSON over the standard streams of
//! `ssh`, each followed by as many plain bytes as it announces.

use serde::{Deserialize, Serialize};

use crate::calls::{CallRequest, OutputStream};

/// The language spoken here. It changes whenever a message does; two programs that speak different ones do not talk.
pub(super) const PROTOCOL: u32 = 2;

/// The prefix of the greeting. Shells over there may print something of their own before it.
const GREETING: &str = "gt-remote ";

/// The first thing that the other machine says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// The language that it speaks.
    pub protocol: u32,
    /// Which program that is.
    pub version: String,
}

impl Hello {
    /// How this program greets.
    pub fn ours() -> Self {
        Self { protocol: PROTOCOL, version: env!("CARGO_PKG_VERSION").to_owned() }
    }

    /// The greeting in a line, if it is one.
    pub fn parse(line: &str) -> Option<Self> {
        serde_json::from_str(line.trim_end().strip_prefix(GREETING)?).ok()
    }

    /// The line.
    pub fn line(&self) -> String {
        format!("{GREETING}{}\n", serde_json::json!(self))
    }
}

/// A run as the other machine knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunPlace {
    /// Where runs work and keep their files: absolute, or below the home directory over there.
    pub directory: String,
    /// The town: several may use one directory.
    pub town: String,
    /// The run, such as `gt-abc#3`.
    pub run: String,
    /// The runs of the same bead before it. They are over in the store; processes that are left of
    /// them over there are ended, and this one waits for that.
    #[serde(default)]
    pub earlier: Vec<String>,
    /// How long a process that is asked to end has before it is killed.
    pub grace_ms: u64,
}

/// The command with which an agent is started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteOrder {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Variables that it gets.
    pub environment: Vec<(String, String)>,
    /// Whether it needs a terminal.
    pub terminal: bool,
    /// The contents of the file with its prompt, if it reads one.
    pub prompt_file: Option<String>,
}

/// The messages of home.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum FromHome {
    /// Take the lock of a run, and say so; nothing is started yet.
    Begin(RunPlace),
    /// Start the agent of the run that was begun. Its input stands behind.
    Order(RemoteOrder),
    /// Tell of a run that was ordered before, its output from this byte on.
    Join {
        /// The run.
        place: RunPlace,
        /// How much of its output is known.
        output_from: u64,
    },
    /// End the run now.
    Cancel,
    /// The work of the run is done: its agent may end by itself for a while.
    Leave,
    /// The output of a command that the agent called stands behind.
    Said {
        /// The call.
        call: u64,
        /// The stream that it was printed to.
        stream: OutputStream,
    },
    /// A command that the agent called reads its standard input.
    InputWanted {
        /// The call.
        call: u64,
    },
    /// A command that the agent called has ended.
    Answered {
        /// The call.
        call: u64,
        /// Its exit status.
        status: u8,
    },
}

/// The messages of the other machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum FromThere {
    /// The lock is taken; an order is waited for.
    Ready(RemoteReady),
    /// The run cannot be begun.
    Refused {
        /// The reason.
        why: String,
        /// Whether that passes by itself.
        busy: bool,
    },
    /// The agent is there.
    Started,
    /// The agent could not be started, and nothing of the run is left.
    NotStarted {
        /// The reason.
        why: String,
    },
    /// Something of the run that was asked for is alive, and is stayed with.
    Alive,
    /// It cannot be found out how the run ended.
    Unknown {
        /// The reason.
        why: String,
    },
    /// More of what the agent printed stands behind.
    Output,
    /// Nothing of the run is left.
    Ended(RemoteRunEnd),
    /// The agent calls home.
    Call {
        /// A number that no other call of this connection has.
        call: u64,
        /// The command.
        request: CallRequest,
    },
    /// The input of a call stands behind; nothing if that is all.
    Input {
        /// The call.
        call: u64,
    },
    /// The caller is gone.
    HungUp {
        /// The call.
        call: u64,
    },
}

/// A run that can be ordered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteReady {
    /// Our program over there.
    pub gt: String,
    /// Where a prompt that is read from a file will stand.
    pub prompt_file: String,
    /// Through which the agent reaches home.
    pub socket: String,
    /// Which start of the machine this is, if it can tell.
    pub boot: Option<String>,
}

/// How a run ended over there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteRunEnd {
    /// As its lock file has it, if its supervisor saw it.
    pub end: Option<String>,
    /// Whether its agent was begun.
    pub begun: bool,
    /// Which start of the machine this is, if it can tell.
    pub boot: Option<String>,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::calls::{MessageBuffer, receive, send};

    fn place() -> RunPlace {
        RunPlace {
            directory: "work".to_owned(),
            town: "t".to_owned(),
            run: "gt-a#2".to_owned(),
            earlier: vec!["gt-a#1".to_owned()],
            grace_ms: 300,
        }
    }

    #[test]
    fn a_greeting_is_found_in_the_output_of_shells() {
        let ours = Hello::ours();
        assert_eq!(Hello::parse(&ours.line()), Some(ours));
        for line in ["", "Welcome!", "gt-remote", "gt-remote {}", "gt-remote 1"] {
            assert_eq!(Hello::parse(line), None, "{line}");
        }
    }

    #[test]
    fn the_kinds_of_messages_have_names_that_stay() {
        for (message, expected) in [
            (FromHome::Cancel, r#"{"message":{"kind":"cancel"}}"#),
            (
                FromHome::Said { call: 1, stream: OutputStream::Error },
                r#"{"bytes":2,"message":{"kind":"said","call":1,"stream":"error"}}"#,
            ),
        ] {
            let payload: &[u8] = if message == FromHome::Cancel { b"" } else { b"ab" };
            let mut sent = Vec::new();
            send(&mut sent, &message, payload).unwrap();
            let text = String::from_utf8(sent).unwrap();
            assert_eq!(text.split_once('\n').unwrap().0, expected);
        }
    }

    #[test]
    fn messages_too_long_or_cut_off_are_refused() {
        for text in [
            "{\"bytes\":99999999999,\"message\":{\"kind\":\"cancel\"}}\n",
            "{\"bytes\":5,\"message\":{\"kind\":\"cancel\"}}\nabc",
            "{\"message\":{\"kind\":\"cancel\"}}",
            "{\"message\":{\"kind\":\"dance\"}}\n",
            "nonsense\n",
        ] {
            assert!(receive::<FromHome>(&mut text.as_bytes()).is_err(), "{text}");
        }
        assert!(receive::<FromHome>(&mut &b""[..]).unwrap().is_none());
    }

    proptest! {
        #[test]
        fn messages_arrive_whole_in_pieces_of_any_size(
            words in prop::collection::vec((0_u64..4, prop::collection::vec(any::<u8>(), 0..50)), 0..8),
            step in 1_usize..40,
        ) {
            let message = |kind: u64| match kind {
                0 => FromHome::Begin(place()),
                1 => FromHome::Join { place: place(), output_from: 7 },
                2 => FromHome::Answered { call: 3, status: 255 },
                _ => FromHome::Order(RemoteOrder {
                    argv: vec!["sh".to_owned(), "line\nbreak".to_owned()],
                    environment: vec![("A".to_owned(), "ä".to_owned())],
                    terminal: false,
                    prompt_file: None,
                }),
            };
            let mut sent = Vec::new();
            for (kind, payload) in &words {
                send(&mut sent, &message(*kind), payload).unwrap();
            }
            let expected: Vec<_> =
                words.into_iter().map(|(kind, payload)| (message(kind), payload)).collect();

            let mut reader = sent.as_slice();
            let mut whole = Vec::new();
            while let Some(heard) = receive::<FromHome>(&mut reader).unwrap() {
                whole.push(heard);
            }
            prop_assert_eq!(&whole, &expected);

            let (mut heard, mut pieces) = (MessageBuffer::default(), Vec::new());
            for piece in sent.chunks(step) {
                heard.extend(piece);
                while let Some(message) = heard.message::<FromHome>().unwrap() {
                    pieces.push(message);
                }
            }
            prop_assert_eq!(pieces, expected);
            prop_assert_eq!(heard.len(), 0);
        }

        #[test]
        fn no_text_makes_them_panic(text in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = receive::<FromThere>(&mut text.as_slice());
            let mut heard = MessageBuffer::default();
            heard.extend(&text);
            while let Ok(Some(_)) = heard.message::<FromThere>() {}
            let _ = Hello::parse(&String::from_utf8_lossy(&text));
        }
    }
}
