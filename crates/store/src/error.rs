//! What can go wrong in the store.

use std::path::PathBuf;

use gt_core::BeadId;

/// An error of the store. Causes are in `source`, never in the message.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// There is no store here.
    #[error("there is no store at {}", .0.display())]
    Missing(PathBuf),
    /// The file is something else; it was not touched.
    #[error("{} is not a gt store ({why}); it was left untouched", path.display())]
    NotOurs {
        /// Which file.
        path: PathBuf,
        /// How one can tell.
        why: &'static str,
    },
    /// A newer program changed the schema in a way this one cannot serve.
    #[error(
        "the store at {} has schema {found}, which needs a program that knows schema {needed}; \
         this one knows {known}. Install a newer gt",
        path.display()
    )]
    TooNew {
        /// Which file.
        path: PathBuf,
        /// The schema of the file.
        found: i64,
        /// The least a program must know to use it.
        needed: i64,
        /// What this program knows.
        known: i64,
    },
    /// The id of a new bead is taken.
    #[error("{0} already exists; choose another id, or change it with bd update")]
    AlreadyExists(BeadId),
    /// A program that is not ours holds the store.
    #[error("another program keeps the store locked; close it and try again")]
    Locked,
    /// No room.
    #[error("the disk is full; nothing was changed. Free some space and try again")]
    Full,
    /// No permission.
    #[error("the store at {} cannot be written; check the permissions of its directory", .0.display())]
    ReadOnly(PathBuf),
    /// The file is damaged.
    #[error("the store at {} is damaged; restore a backup", .0.display())]
    Damaged(PathBuf),
    /// A file could not be used.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// The database said no in a way we did not foresee.
    #[error("the database refused to {doing}")]
    Engine {
        /// What was tried.
        doing: String,
        /// Why not.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A value in the store does not have the shape it must have.
    #[error("unexpected value in the store: {0}")]
    Corrupt(String),
    /// The group of writes this one was in could not be committed, or its writer is gone.
    #[error("the write was not committed: {0}")]
    NotCommitted(String),
}

impl From<gt_core::Invalid> for StoreError {
    fn from(invalid: gt_core::Invalid) -> Self {
        Self::Corrupt(invalid.0)
    }
}
