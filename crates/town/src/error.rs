//! The errors of operations.

use std::path::PathBuf;

use gt_core::decide::{VerbRefusal, shown_path};
use gt_core::formula::FormulaProblem;
use gt_core::query::QueryError;
use gt_core::{BeadId, Invalid};
use gt_executors::process::ProcessError;
use gt_store::StoreError;

/// The result of an operation.
pub type Result<T, E = OperationError> = std::result::Result<T, E>;

/// Why an operation did nothing. Every message says what to do next where that is not plain.
#[derive(Debug, thiserror::Error)]
pub enum OperationError {
    /// No bead has this name.
    #[error("no issue found matching \"{0}\"")]
    NoBead(String),
    /// Several beads could be meant.
    #[error("\"{input}\" is ambiguous: {} ({count} match); write more of the id", shown.join(", "))]
    Ambiguous {
        /// The input as written.
        input: String,
        /// Some of the beads it could mean.
        shown: Vec<String>,
        /// How many there are.
        count: usize,
    },
    /// There is no town here.
    #[error(
        "no town found in {} or above; name yours with GT_TOWN_ROOT, make one for this repository with gt init or \
         elsewhere with gt install <dir>, or a stand-alone store with bd init", .0.display()
    )]
    NoTown(PathBuf),
    /// A command that needs the directory of a town found only a database.
    #[error(
        "this needs the directory of a town, and DATABASE_URL names only a store; make a directory for it with \
         gt install <dir>, and then say gt -C <dir> …"
    )]
    NoDirectory,
    /// No rig has this name.
    #[error("rig \"{name}\" not found; known rigs: {}", if known.is_empty() { "none".to_owned() } else { known.join(", ") })]
    NoRig {
        /// The name as written.
        name: String,
        /// The rigs there are.
        known: Vec<String>,
    },
    /// No account has this name.
    #[error(
        "account \"{name}\" not found; known accounts: {}; add one with gt config account add <name>",
        if known.is_empty() { "none".to_owned() } else { known.join(", ") }
    )]
    NoAccount {
        /// The name as written.
        name: String,
        /// The accounts there are.
        known: Vec<String>,
    },
    /// No formula has this name.
    #[error(
        "formula \"{0}\" not found; bd formula list shows what there is, and a new one belongs in \
         .beads/formulas/{0}.formula.toml"
    )]
    NoFormula(String),
    /// A formula cannot be used.
    #[error(
        "the formula {name} cannot be used: {}",
        problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    )]
    Formula {
        /// The formula.
        name: String,
        /// Everything that is wrong with it.
        problems: Vec<FormulaProblem>,
    },
    /// A formula, its variables or its runtime do not fit what was slung.
    #[error("{0}")]
    Recipe(String),
    /// Git failed.
    #[error("the repository of the rig {rig}")]
    Git {
        /// The rig.
        rig: gt_core::RigSlug,
        /// The cause.
        source: gt_executors::git::GitError,
    },
    /// The status table does not allow the change.
    #[error("cannot {verb} {bead}: {refusal}")]
    Refused {
        /// The verb that was refused.
        verb: &'static str,
        /// On which bead.
        bead: BeadId,
        /// The reason.
        refusal: VerbRefusal,
    },
    /// A claim came too late, or on something that cannot be claimed.
    #[error("claiming {bead}: {refusal}")]
    NotClaimed {
        /// The bead.
        bead: BeadId,
        /// The reason.
        refusal: VerbRefusal,
    },
    /// An edge would close a circle.
    #[error("{issue} cannot depend on {target}: that would be a cycle ({})", shown_path(path))]
    Cycle {
        /// The bead that would depend.
        issue: BeadId,
        /// On which.
        target: BeadId,
        /// The whole circle.
        path: Vec<BeadId>,
    },
    /// The request contradicts itself or the state of the town.
    #[error("{0}")]
    Rejected(String),
    /// A variable of the environment names a store that cannot be used.
    #[error("cannot use the store that {variable} names ({fix})")]
    Database {
        /// The variable.
        variable: &'static str,
        /// How to correct it if it was not meant for us.
        fix: String,
        /// The cause.
        source: Box<StoreError>,
    },
    /// One of many things that a file asked for could not be done.
    #[error("{place}: {error}")]
    At {
        /// Where it was asked for, such as `plan.md:12`.
        place: String,
        /// The reason.
        #[source]
        error: Box<Self>,
    },
    /// A value is malformed.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// A query was not understood.
    #[error("the query is not understood at {0}")]
    Query(#[from] QueryError),
    /// A file could not be used.
    #[error("cannot {action} {}", path.display())]
    File {
        /// The action that failed.
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// A program could not be used.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// The store failed or refused.
    #[error(transparent)]
    Store(StoreError),
}

impl From<StoreError> for OperationError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Worker(why) => Self::Rejected(why),
            other => Self::Store(other),
        }
    }
}

impl OperationError {
    /// A refusal with this message.
    pub fn rejected(message: impl Into<String>) -> Self {
        Self::Rejected(message.into())
    }

    /// Whether the same may work in a moment without any change.
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::Store(error) if error.may_pass())
    }

    /// Whether the store could not do what was asked, so that the following writes fail as well: it is away, or has no
    /// room.
    pub fn is_of_store(&self) -> bool {
        self.may_pass() || matches!(self, Self::Store(StoreError::Full))
    }

    /// The same problem, with the place in a file that led to it.
    #[must_use]
    pub fn at(self, place: impl Into<String>) -> Self {
        Self::At { place: place.into(), error: Box::new(self) }
    }
}

/// An error with all its causes, on one line. A cause that the text contains already is not repeated.
pub fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let said = error.to_string();
        if !text.contains(&said) {
            text.push_str(": ");
            text.push_str(&said);
        }
        cause = error.source();
    }
    text
}
