//! The errors that end a command early.

use std::io;

use gt_town::{OperationError, with_causes};
use gt_workqueue::work::WorkError;

/// Why a command did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CliError {
    /// An operation refused or failed.
    #[error(transparent)]
    Operation(#[from] OperationError),
    /// The work queue refused or failed.
    #[error(transparent)]
    Work(WorkError),
    /// Something in the request is wrong.
    #[error("{0}")]
    Request(String),
    /// The error of every part was printed already.
    #[error("{0}")]
    AlreadyTold(String),
    /// All output was printed; only the exit code is left.
    #[error("exit code {0}")]
    Said(u8),
    /// The reader of the output has gone.
    #[error("the output was closed")]
    ClosedPipe,
    /// The output could not be written.
    #[error("cannot write the output")]
    Output(#[source] io::Error),
}

impl CliError {
    /// A wrong request.
    pub(crate) fn request(message: impl Into<String>) -> Self {
        Self::Request(message.into())
    }

    /// Whether the command failed because the store was away, so that it may work in a moment.
    pub(crate) fn is_store_away(&self) -> bool {
        matches!(self, Self::Operation(error) if error.may_pass())
    }

    /// Further lines for people, under the message.
    pub(crate) fn detail_lines(&self) -> Vec<String> {
        match self {
            Self::Operation(OperationError::Query(error)) => error.detail_lines().to_vec(),
            _ => Vec::new(),
        }
    }

    /// The message with its causes, on one line.
    pub(crate) fn chain(&self) -> String {
        crate::output::harmless(&with_causes(self)).into_owned()
    }
}

impl From<io::Error> for CliError {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            Self::ClosedPipe
        } else {
            Self::Output(error)
        }
    }
}

impl From<WorkError> for CliError {
    fn from(error: WorkError) -> Self {
        match error {
            WorkError::Operation(error) => Self::Operation(error),
            other => Self::Work(other),
        }
    }
}

impl From<gt_core::Invalid> for CliError {
    fn from(invalid: gt_core::Invalid) -> Self {
        Self::Operation(invalid.into())
    }
}
