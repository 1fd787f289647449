//! The errors of the store.

use std::path::PathBuf;

use gt_core::BeadId;

/// An error of the store. Causes are in `source`, never in the message.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// There is no store here.
    #[error("there is no store at {}", .0.display())]
    Missing(PathBuf),
    /// The file is something else; it was not touched.
    #[error("{place} is not a gt store ({why}); it was left untouched")]
    NotOurs {
        /// The file or database.
        place: String,
        /// The reason, in words.
        why: &'static str,
    },
    /// A newer program changed the schema in a way this one cannot serve.
    #[error(
        "the store at {place} has schema {found}, which needs a program that knows schema {needed}; \
         this one knows {known}. Install a newer gt"
    )]
    TooNew {
        /// The file or database.
        place: String,
        /// The schema of the store.
        found: i64,
        /// The least a program must know to use it.
        needed: i64,
        /// The newest schema that this program knows.
        known: i64,
    },
    /// A worker writes without the right to, or its run is over.
    #[error("{0}")]
    Worker(String),
    /// A query that a caller wrote has no answer.
    #[error("the query failed: {0}")]
    Query(String),
    /// The id of a new bead is taken.
    #[error("{0} already exists; choose another id, or change it with bd update")]
    AlreadyExists(BeadId),
    /// Another process holds the lock of the store for too long.
    #[error(
        "{} keeps the store locked; close it and try again",
        .0.as_deref().unwrap_or("another program")
    )]
    Locked(
        /// The process, if it is known.
        Option<String>,
    ),
    /// The store is not the one that its town uses: it moved elsewhere, or a move into it is not finished.
    #[error("{0}")]
    Fenced(String),
    /// A store that a town should move to is not empty.
    #[error(
        "{place} {why}; nothing was changed. Name an empty database, another schema (?schema=), or another file"
    )]
    NotEmpty {
        /// The file or database.
        place: String,
        /// The contents, as a verb with its object.
        why: String,
    },
    /// No room.
    #[error("the disk is full; nothing was changed. Free some space and try again")]
    Full,
    /// No permission.
    #[error("the store at {} cannot be written; check the permissions of its directory", .0.display())]
    ReadOnly(PathBuf),
    /// The file is damaged.
    #[error("the store at {} is damaged; restore a backup", .0.display())]
    Damaged(PathBuf),
    /// The URL of a database makes no sense.
    #[error("{url} is not the address of a database: {why}")]
    BadAddress {
        /// The URL, without a password.
        url: String,
        /// The error in it.
        why: String,
    },
    /// The database holds no store yet.
    #[error("{0} holds no gt store; DATABASE_URL=… gt install <new directory> makes one")]
    Empty(String),
    /// No connection could be made.
    #[error("cannot reach {server}; {why}")]
    Unreachable {
        /// The server.
        server: String,
        /// A hint for the user.
        why: &'static str,
        /// The cause.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The connection broke in the middle.
    #[error(
        "the connection to {server} broke{}",
        if *reading {
            " while it was read from; a command that changes something may have done so before: look, and try again"
        } else {
            "; nothing was changed. Try again"
        }
    )]
    Disconnected {
        /// The server.
        server: String,
        /// It was only read from, and a transaction before may have changed something.
        reading: bool,
        /// The cause.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The connection broke while a change was being committed, and the server cannot be asked.
    #[error(
        "the connection to {0} broke while the change was being committed: it may or may not have \
         been made. Look before you repeat it; with --id or --idempotency-key repeating is safe"
    )]
    Unsettled(String),
    /// Every connection is in use.
    #[error(
        "all {limit} connections to the database are in use; try again, or allow more with pool_max \
         in its URL"
    )]
    Exhausted {
        /// The limit of connections.
        limit: usize,
    },
    /// The user of the database may not do this.
    #[error("the database user may not do this in {server}")]
    NotPermitted {
        /// The server.
        server: String,
        /// The server's own message.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Prepared statements come and go: a pooler in between changes connections.
    #[error(
        "a pooler between here and {0} changes connections between transactions; say so by adding \
         pooler=transaction to the URL"
    )]
    Pooler(String),
    /// A backup was not written because of the file in its place.
    #[error("{} was left as it is: {why}", path.display())]
    NotReplaced {
        /// The file.
        path: PathBuf,
        /// The reason, and how to proceed.
        why: &'static str,
    },
    /// Writing the file anew would fill the disk.
    #[error(
        "rewriting {} needs {} MiB beside it and only {} MiB are free; nothing was changed. Free some \
         space and try again", path.display(), needed_bytes.div_ceil(1 << 20), free_bytes >> 20
    )]
    NoRoom {
        /// The file.
        path: PathBuf,
        /// The needed bytes.
        needed_bytes: u64,
        /// The free bytes.
        free_bytes: u64,
    },
    /// A file could not be used.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// The action, as a verb.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The database said no in a way we did not foresee.
    #[error("the database refused to {doing}")]
    Engine {
        /// The action, as a verb.
        doing: String,
        /// The cause.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A value in the store does not have the shape it must have.
    #[error("unexpected value in the store: {0}")]
    Corrupt(String),
    /// The group of writes this one was in could not be committed, or its writer is gone.
    #[error("the write was not committed: {0}")]
    NotCommitted(String),
}

impl StoreError {
    /// Whether the same call may succeed in a moment without any intervention: the server is away, or
    /// others are in the way. Nothing was done then.
    pub fn may_pass(&self) -> bool {
        matches!(
            self,
            Self::Unreachable { .. }
                | Self::Disconnected { .. }
                | Self::Exhausted { .. }
                | Self::Locked(_)
                | Self::NotCommitted(_)
        )
    }
}

impl From<gt_core::Invalid> for StoreError {
    fn from(invalid: gt_core::Invalid) -> Self {
        Self::Corrupt(invalid.0)
    }
}
