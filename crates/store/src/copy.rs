//! The whole store, row by row, from one engine into another.

use std::ops::ControlFlow;

use sha2::{Digest as _, Sha256};

use crate::StoreError;
use crate::engine::{Param, Row, SqlSession};
use crate::transaction::Reader;

/// The kind of value in a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnKind {
    /// A number, a flag or an instant.
    Number,
    /// Text.
    Text,
    /// Bytes, never NULL.
    Bytes,
}

/// A table with the columns that are copied. Columns that a database computes are left out.
#[derive(Debug, Clone, Copy)]
pub struct CopiedTable {
    /// Its name.
    pub name: &'static str,
    /// Its columns.
    pub columns: &'static [(&'static str, ColumnKind)],
    /// The columns that its rows are sorted by, so that two copies of the same store are the same.
    pub(crate) key: &'static str,
}

impl CopiedTable {
    const fn new(
        name: &'static str,
        columns: &'static [(&'static str, ColumnKind)],
        key: &'static str,
    ) -> Self {
        Self { name, columns, key }
    }
}

use ColumnKind::{Bytes, Number, Text};

/// Tables that a backup leaves out: how a database came to its schema, and which of its clients have
/// written. Neither is content of the store.
pub const NOT_COPIED: [&str; 2] = ["migrations", "client_sessions"];

/// Every table of the schema except [`NOT_COPIED`], those that others refer to first. A test compares
/// this list with the schema of both engines.
pub const TABLES: &[CopiedTable] = &[
    CopiedTable::new("counters", &[("name", Text), ("value", Number)], "name"),
    CopiedTable::new(
        "rigs",
        &[
            ("slug", Text),
            ("uid", Bytes),
            ("prefix", Text),
            ("title", Text),
            ("path", Text),
            ("repo", Text),
            ("default_branch", Text),
            ("executor", Text),
            ("state", Text),
            ("external_ref", Text),
            ("settings", Text),
            ("created_at", Number),
            ("updated_at", Number),
        ],
        "slug",
    ),
    CopiedTable::new("prefixes", &[("prefix", Text), ("beads", Number)], "prefix"),
    CopiedTable::new(
        "beads",
        &[
            ("id", Text),
            ("uid", Bytes),
            ("rig", Text),
            ("status", Text),
            ("outcome", Text),
            ("priority", Number),
            ("issue_type", Text),
            ("assignee", Text),
            ("created_at", Number),
            ("updated_at", Number),
            ("started_at", Number),
            ("closed_at", Number),
            ("due_at", Number),
            ("defer_until", Number),
            ("ephemeral", Number),
            ("no_history", Number),
            ("pinned", Number),
            ("is_template", Number),
            ("open_blockers", Number),
            ("last_child", Number),
            ("estimated_minutes", Number),
            ("title", Text),
            ("owner", Text),
            ("created_by", Text),
            ("close_reason", Text),
            ("external_ref", Text),
            ("metadata", Text),
            ("description", Text),
            ("design", Text),
            ("acceptance_criteria", Text),
            ("notes", Text),
            ("carried", Text),
        ],
        "id",
    ),
    CopiedTable::new(
        "labels",
        &[("bead", Text), ("label", Text), ("position", Number)],
        "bead, label",
    ),
    CopiedTable::new(
        "dependencies",
        &[
            ("issue_id", Text),
            ("depends_on_id", Text),
            ("type", Text),
            ("blocking", Number),
            ("created_at", Number),
            ("created_by", Text),
            ("metadata", Text),
            ("thread_id", Text),
            ("carried", Text),
        ],
        "issue_id, depends_on_id",
    ),
    CopiedTable::new(
        "comments",
        &[
            ("bead", Text),
            ("id", Text),
            ("author", Text),
            ("created_at", Number),
            ("text", Text),
            ("carried", Text),
        ],
        "bead, id",
    ),
    CopiedTable::new(
        "events",
        &[
            ("number", Number),
            ("at", Number),
            ("type", Text),
            ("bead", Text),
            ("rig", Text),
            ("run", Text),
            ("actor", Text),
            ("payload", Text),
        ],
        "number",
    ),
    CopiedTable::new(
        "settings",
        &[
            ("scope", Text),
            ("key", Text),
            ("value", Text),
            ("updated_at", Number),
            ("updated_by", Text),
        ],
        "scope, key",
    ),
    CopiedTable::new(
        "requests",
        &[("key", Text), ("bead", Text), ("at", Number), ("fingerprint", Text)],
        "key",
    ),
    CopiedTable::new(
        "convoys",
        &[
            ("id", Text),
            ("members", Number),
            ("open_members", Number),
            ("failed_members", Number),
            ("landings", Number),
            ("cap", Number),
            ("paused_by", Text),
            ("paused_at", Number),
            ("fed_at", Number),
        ],
        "id",
    ),
    CopiedTable::new(
        "contexts",
        &[
            ("number", Number),
            ("id", Text),
            ("bead", Text),
            ("rig", Text),
            ("place", Text),
            ("account", Text),
            ("gated", Number),
            ("forced", Number),
            ("priority", Number),
            ("origin", Text),
            ("parameters", Text),
            ("enqueued_at", Number),
            ("enqueued_by", Text),
            ("waiting_since", Number),
            ("next_attempt_at", Number),
            ("failures", Number),
            ("last_failure", Text),
            ("attempts", Number),
            ("starting", Number),
            ("latest", Number),
            ("closed_at", Number),
            ("closed_by", Text),
            ("close_reason", Text),
            ("convoys", Text),
            ("waits", Text),
            ("due_at", Number),
        ],
        "number",
    ),
    CopiedTable::new(
        "runs",
        &[
            ("bead", Text),
            ("epoch", Number),
            ("uid", Bytes),
            ("context", Number),
            ("rig", Text),
            ("executor", Text),
            ("runtime", Text),
            ("agent", Text),
            ("place", Text),
            ("host", Text),
            ("account", Text),
            ("session", Text),
            ("tree", Text),
            ("branch", Text),
            ("gated", Number),
            ("state", Text),
            ("starter", Text),
            ("formula", Text),
            ("steps", Text),
            ("created_at", Number),
            ("created_by", Text),
            ("running_at", Number),
            ("ended_at", Number),
            ("exit_code", Number),
            ("exit_signal", Number),
            ("reason", Text),
            ("ended_by", Text),
            ("accepted_commit", Text),
            ("base", Text),
            ("base_commit", Text),
            ("said", Text),
            ("landing_commit", Text),
            ("peak_memory_mb", Number),
            ("tokens", Number),
            ("cost", Number),
            ("lease_s", Number),
            ("lease_expires_at", Number),
            ("token_hash", Text),
            ("silent_since", Number),
            ("over_limit", Text),
            ("reserved_tokens", Number),
            ("reserved_cost", Number),
            ("usage_pending", Number),
        ],
        "bead, epoch",
    ),
    CopiedTable::new(
        "run_outputs",
        &[
            ("bead", Text),
            ("epoch", Number),
            ("bytes", Number),
            ("tail", Bytes),
            ("kept_at", Number),
        ],
        "bead, epoch",
    ),
    CopiedTable::new(
        "scheduler",
        &[
            ("one", Number),
            ("paused_by", Text),
            ("paused_at", Number),
            ("last_dispatch_at", Number),
            ("last_dispatch_count", Number),
        ],
        "one",
    ),
    CopiedTable::new(
        "accounts",
        &[
            ("handle", Text),
            ("config_dir", Text),
            ("environment", Text),
            ("max_runs", Number),
            ("is_default", Number),
            ("created_at", Number),
        ],
        "handle",
    ),
    CopiedTable::new(
        "outbox",
        &[
            ("number", Number),
            ("key", Text),
            ("channel", Text),
            ("payload", Text),
            ("created_at", Number),
            ("next_attempt_at", Number),
            ("attempts", Number),
            ("last_error", Text),
            ("state", Text),
        ],
        "number",
    ),
    CopiedTable::new(
        "polecats",
        &[
            ("rig", Text),
            ("name", Text),
            ("host", Text),
            ("tree", Text),
            ("branch", Text),
            ("last_run", Text),
            ("created_at", Number),
            ("updated_at", Number),
        ],
        "rig, name",
    ),
    CopiedTable::new(
        "port_ranges",
        &[("number", Number), ("rig", Text), ("place", Text)],
        "number",
    ),
    CopiedTable::new(
        "trash",
        &[
            ("number", Number),
            ("rig", Text),
            ("name", Text),
            ("host", Text),
            ("path", Text),
            ("branch", Text),
            ("run", Text),
            ("reason", Text),
            ("state", Text),
            ("moved_at", Number),
            ("moved_by", Text),
            ("purge_at", Number),
        ],
        "number",
    ),
    CopiedTable::new(
        "rescues",
        &[
            ("bead", Text),
            ("epoch", Number),
            ("rig", Text),
            ("host", Text),
            ("reference", Text),
            ("saved", Text),
            ("base", Text),
            ("bytes", Number),
            ("left_out", Text),
            ("created_at", Number),
        ],
        "bead, epoch",
    ),
    CopiedTable::new(
        "run_steps",
        &[
            ("bead", Text),
            ("epoch", Number),
            ("step", Text),
            ("done_at", Number),
            ("done_by", Text),
        ],
        "bead, epoch, step",
    ),
    CopiedTable::new(
        "messages",
        &[
            ("number", Number),
            ("id", Text),
            ("kind", Text),
            ("severity", Text),
            ("sender", Text),
            ("recipient", Text),
            ("subject", Text),
            ("body", Text),
            ("bead", Text),
            ("reply_to", Text),
            ("created_at", Number),
            ("delivered_at", Number),
            ("seen_at", Number),
            ("topic", Text),
        ],
        "number",
    ),
    CopiedTable::new(
        "usage_windows",
        &[
            ("kind", Text),
            ("name", Text),
            ("window_name", Text),
            ("used_percent", Number),
            ("length_s", Number),
            ("resets_at", Number),
            ("seen_at", Number),
        ],
        "kind, name, window_name",
    ),
    CopiedTable::new(
        "parks",
        &[
            ("kind", Text),
            ("name", Text),
            ("strikes", Number),
            ("beads", Text),
            ("since", Number),
            ("until", Number),
            ("reason", Text),
            ("trial", Text),
            ("ramp_since", Number),
        ],
        "kind, name",
    ),
    CopiedTable::new("run_beads", &[("bead", Text), ("worker", Text)], "bead"),
    CopiedTable::new(
        "hosts",
        &[
            ("id", Text),
            ("name", Text),
            ("machine", Text),
            ("path", Text),
            ("incarnation", Text),
            ("seen_at_s", Number),
            ("address", Text),
            ("version", Text),
            ("labels", Text),
            ("max_runs", Number),
            ("rigs", Text),
            ("runtimes", Text),
            ("memory_mb", Number),
            ("memory_free_mb", Number),
            ("load_hundredths", Number),
            ("cores", Number),
            ("grace_ms", Number),
            ("daemon_at_s", Number),
            ("mode", Text),
            ("is_gone", Number),
        ],
        "id",
    ),
    CopiedTable::new(
        "left_runs",
        &[("bead", Text), ("epoch", Number), ("host", Text)],
        "bead, epoch",
    ),
    CopiedTable::new(
        "estimates",
        &[("name", Text), ("memory_mb", Number), ("runs", Number)],
        "name",
    ),
    CopiedTable::new(
        "usage_records",
        &[
            ("bead", Text),
            ("epoch", Number),
            ("session", Number),
            ("model", Text),
            ("source", Text),
            ("input", Number),
            ("output", Number),
            ("cache_read", Number),
            ("cache_write", Number),
            ("reasoning", Number),
            ("reported", Number),
            ("priced", Number),
        ],
        "bead, epoch, session, model, source",
    ),
    CopiedTable::new(
        "spending",
        &[
            ("bead", Text),
            ("epoch", Number),
            ("model", Text),
            ("at", Number),
            ("rig", Text),
            ("account", Text),
            ("input", Number),
            ("output", Number),
            ("cache_read", Number),
            ("cache_write", Number),
            ("reasoning", Number),
            ("cost", Number),
            ("priced", Number),
            ("unpriced", Number),
        ],
        "bead, epoch, model, at",
    ),
    CopiedTable::new("guards", &[("host", Text), ("kind", Text), ("since", Number)], "host, kind"),
    CopiedTable::new(
        "tokens",
        &[
            ("id", Text),
            ("name", Text),
            ("hash", Bytes),
            ("scopes", Text),
            ("created_at", Number),
            ("created_by", Text),
            ("expires_at", Number),
            ("revoked_at", Number),
            ("agent", Text),
            ("shown_as", Text),
            ("used_at", Number),
        ],
        "id",
    ),
    CopiedTable::new(
        "merge_requests",
        &[
            ("bead", Text),
            ("number", Number),
            ("epoch", Number),
            ("purpose", Text),
            ("rig", Text),
            ("target", Text),
            ("branch", Text),
            ("accepted", Text),
            ("base", Text),
            ("merge", Text),
            ("review", Number),
            ("state", Text),
            ("held", Text),
            ("detail", Text),
            ("position", Number),
            ("top", Number),
            ("fix", Number),
            ("tries", Number),
            ("rebuilds", Number),
            ("candidate", Number),
            ("landed", Text),
            ("check_run", Number),
            ("retry_at", Number),
            ("pull_branch", Text),
            ("pull_number", Number),
            ("pull_address", Text),
            ("created_at", Number),
            ("changed_at", Number),
        ],
        "bead, number",
    ),
    CopiedTable::new(
        "candidates",
        &[
            ("number", Number),
            ("rig", Text),
            ("target", Text),
            ("base", Text),
            ("tip", Text),
            ("tree", Text),
            ("state", Text),
            ("builder", Text),
            ("created_at", Number),
            ("changed_at", Number),
        ],
        "number",
    ),
    CopiedTable::new(
        "candidate_requests",
        &[
            ("candidate", Number),
            ("position", Number),
            ("bead", Text),
            ("request", Number),
            ("before", Text),
            ("after", Text),
        ],
        "candidate, position",
    ),
    CopiedTable::new(
        "candidate_checks",
        &[("candidate", Number), ("name", Text), ("check_run", Number), ("cached", Number)],
        "candidate, name",
    ),
    CopiedTable::new(
        "merge_queues",
        &[
            ("rig", Text),
            ("target", Text),
            ("builder", Text),
            ("lease_s", Number),
            ("paused_at", Number),
            ("paused_by", Text),
            ("red_commit", Text),
            ("red_check", Text),
            ("red_since", Number),
        ],
        "rig, target",
    ),
    CopiedTable::new(
        "pull_requests",
        &[
            ("bead", Text),
            ("branch", Text),
            ("fingerprint", Text),
            ("due_at", Number),
            ("repaired_head", Text),
            ("waits_for", Text),
        ],
        "bead, branch",
    ),
    CopiedTable::new(
        "pull_request_tips",
        &[
            ("bead", Text),
            ("branch", Text),
            ("position", Number),
            ("commit_id", Text),
            ("accepted", Text),
        ],
        "bead, branch, position",
    ),
    CopiedTable::new(
        "pull_request_repairs",
        &[
            ("bead", Text),
            ("request", Number),
            ("position", Number),
            ("kind", Text),
            ("name", Text),
            ("author", Text),
            ("body", Text),
            ("file", Text),
            ("line", Number),
            ("address", Text),
        ],
        "bead, request, position",
    ),
    CopiedTable::new(
        "pull_request_texts",
        &[
            ("bead", Text),
            ("branch", Text),
            ("position", Number),
            ("name", Text),
            ("author", Text),
            ("trust", Text),
            ("body", Text),
            ("file", Text),
            ("line", Number),
            ("address", Text),
            ("submitted_at", Number),
        ],
        "bead, branch, position",
    ),
    CopiedTable::new(
        "reviews",
        &[
            ("number", Number),
            ("bead", Text),
            ("request", Number),
            ("actor", Text),
            ("decision", Text),
            ("accepted", Text),
            ("base", Text),
            ("file", Text),
            ("line", Number),
            ("body", Text),
            ("created_at", Number),
        ],
        "number",
    ),
    CopiedTable::new(
        "check_runs",
        &[
            ("id", Number),
            ("rig", Text),
            ("name", Text),
            ("definition", Text),
            ("cache_key", Text),
            ("commit_id", Text),
            ("tree", Text),
            ("purpose", Text),
            ("result", Text),
            ("error", Text),
            ("exit_code", Number),
            ("attempt", Number),
            ("flaky", Number),
            ("started_at", Number),
            ("duration_ms", Number),
            ("host", Text),
            ("log", Text),
        ],
        "id",
    ),
];

/// Told how much is done, and of how much.
pub type OnCopyProgress<'p> = &'p mut dyn FnMut(u64, u64);

/// How many rows are copied between two reports.
const ROWS_PER_REPORT: u64 = 1024;

impl CopiedTable {
    fn column_names(&self) -> String {
        let names: Vec<&str> = self.columns.iter().map(|(name, _)| *name).collect();
        names.join(", ")
    }

    fn select(&self) -> String {
        format!("SELECT {} FROM {} ORDER BY {}", self.column_names(), self.name, self.key)
    }

    fn insert(&self) -> String {
        let places: Vec<String> = (1..=self.columns.len()).map(|n| format!("?{n}")).collect();
        let (name, columns, places) = (self.name, self.column_names(), places.join(", "));
        format!("INSERT INTO {name} ({columns}) VALUES ({places})")
    }

    fn values<'r>(&self, row: &'r dyn Row) -> Result<Vec<Param<'r>>, StoreError> {
        let value = |(place, (_, kind)): (usize, &(&str, ColumnKind))| {
            Ok(match kind {
                Number => row.int_or_null(place)?.into(),
                Text => row.text_or_null(place)?.into(),
                Bytes => Param::Blob(row.blob(place)?),
            })
        };
        self.columns.iter().enumerate().map(value).collect()
    }

    /// The statement that counts its rows.
    pub(crate) fn count(&self) -> String {
        format!("SELECT COUNT(*) FROM {}", self.name)
    }
}

/// The number of rows of a table, and a checksum of their values that does not depend on their order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct TableTally {
    pub(crate) rows: u64,
    checksum: u128,
}

impl TableTally {
    /// Adds a row. The engines sort texts differently in queries of people, so the sum must not depend on the order.
    fn add(&mut self, values: &[Param<'_>]) {
        let mut hash = Sha256::new();
        for value in values {
            let (kind, bytes): (u8, &[u8]) = match value {
                Param::Null => (0, &[]),
                Param::Int(number) => (1, &number.to_be_bytes()),
                Param::Text(text) => (2, text.as_bytes()),
                Param::Blob(bytes) => (3, bytes),
            };
            hash.update([kind]);
            hash.update((bytes.len() as u64).to_be_bytes());
            hash.update(bytes);
        }
        let digest = hash.finalize();
        let mut first = [0; 16];
        first.copy_from_slice(&digest[..16]);
        self.rows += 1;
        self.checksum = self.checksum.wrapping_add(u128::from_be_bytes(first));
    }
}

/// Copies every row. Both sessions are in a transaction: the rows read are one state of the store, and
/// the rows written are committed by the caller or not at all. Rows that `to` holds already are replaced. Gives the
/// tally of each table as it was read.
pub(crate) fn copy_rows(
    from: &dyn SqlSession,
    to: &dyn SqlSession,
    progress: OnCopyProgress<'_>,
) -> Result<Vec<TableTally>, StoreError> {
    let mut total = 0;
    for table in TABLES {
        total += Reader::new(from).count_rows(table)?;
    }
    // The rows that refer to others go first.
    for table in TABLES.iter().rev() {
        to.execute(&format!("DELETE FROM {}", table.name), &[])?;
    }
    let mut done = 0;
    let mut tallies = Vec::with_capacity(TABLES.len());
    for table in TABLES {
        let insert = table.insert();
        let mut tally = TableTally::default();
        from.stream(&table.select(), &[], &mut |row| {
            let values = table.values(row)?;
            to.apply(&insert, &values)?;
            tally.add(&values);
            done += 1;
            if done % ROWS_PER_REPORT == 0 {
                progress(done, total);
            }
            Ok(ControlFlow::Continue(()))
        })?;
        tallies.push(tally);
    }
    progress(done, total);
    Ok(tallies)
}

/// Compares what `to` holds with the tallies of what was read from `from`, table by table. `from` is asked for a sign of
/// life meanwhile: a server ends a transaction that is silent for long.
pub(crate) fn verify_rows(
    from: &dyn SqlSession,
    to: &dyn SqlSession,
    expected: &[TableTally],
    progress: OnCopyProgress<'_>,
) -> Result<(), StoreError> {
    let total: u64 = expected.iter().map(|tally| tally.rows).sum();
    let mut done = 0;
    for (table, expected) in TABLES.iter().zip(expected) {
        let mut found = TableTally::default();
        to.stream(&table.select(), &[], &mut |row| {
            found.add(&table.values(row)?);
            done += 1;
            if done % ROWS_PER_REPORT == 0 {
                from.query("SELECT 1", &[], &mut |_| Ok(ControlFlow::Continue(())))?;
                progress(done, total);
            }
            Ok(ControlFlow::Continue(()))
        })?;
        if found != *expected {
            let (name, rows) = (table.name, found.rows);
            return Err(StoreError::Corrupt(format!(
                "the copy of {name} has {rows} rows and another checksum than the {} that were read",
                expected.rows
            )));
        }
    }
    progress(done, total);
    Ok(())
}
