//! The messages between a worker's command and the process that carries it out.

use serde::{Deserialize, Serialize};

/// The version of these messages. A server refuses a caller that speaks another one.
pub const CALL_PROTOCOL: u32 = 1;

/// The variable with the sockets at which a worker's `gt` and `bd` call, separated by colons, in the order in which they are
/// tried.
pub const SOCKETS: &str = "GT_SOCKET";

/// The variable with the file of the token of a run.
pub const TOKEN_FILE: &str = "GT_RUN_TOKEN_FILE";

/// A command that a worker calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallRequest {
    /// The version of the messages that the caller speaks.
    pub protocol: u32,
    /// The name by which the program was called: `gt` or `bd`.
    pub program: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// The directory in which it was called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// The token of the run that calls. None where the connection itself proves the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// The variables of the caller that its command obeys.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<(String, String)>,
}

/// The messages of a caller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum CallerMessage {
    /// Carry out this command. The first message of a connection, and sent once.
    Call(CallRequest),
    /// A piece of standard input follows; an empty piece is its end.
    Input,
    /// The answer about a file: a piece of what was read follows, and an empty piece is its end. The end of a file that was
    /// written is an empty piece, too.
    File {
        /// The number of the system's error, if the file could not be opened, read or written. It is the end as well.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<i32>,
    },
}

/// The use that a command makes of a file of its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileUse {
    /// Its contents are wanted.
    Read,
    /// The names in this directory are wanted, each with a NUL behind it.
    List,
    /// A piece of its new contents follows; an empty piece is the end, and then they replace the old ones at once.
    Write,
}

/// The messages to a caller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum CallReply {
    /// The command reads its standard input: it is to be sent from now on.
    InputWanted,
    /// The command names a file, which the caller opens itself: with its own view of the machine, its permissions, and its mask
    /// for new files.
    File {
        /// Its path, absolute unless the caller has told no directory.
        path: String,
        /// What is to be done.
        access: FileUse,
    },
    /// A piece of the output of the command follows.
    Said {
        /// The stream that it was printed to.
        stream: OutputStream,
    },
    /// The command has ended. The last message of a connection.
    Answered {
        /// Its exit status.
        status: u8,
    },
}

/// A stream that a program prints to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OutputStream {
    /// Standard output.
    Out,
    /// Standard error.
    Error,
}
