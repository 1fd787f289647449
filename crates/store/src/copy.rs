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

use ColumnKind::{Bytes, Number, Text};

/// Tables that a backup leaves out: how a database came to its schema, and which of its clients have
/// written. Neither is content of the store.
pub const NOT_COPIED: [&str; 2] = ["migrations", "client_sessions"];

/// Makes [`TABLES`]: `<table> by "<key>" { <kind>: <columns>; … }`, each with its columns in the order in which they are copied.
macro_rules! copied_tables {
    ($($table:ident by $key:literal { $($kind:ident: $($column:ident)+;)+ })+) => {
        &[$(CopiedTable {
            name: stringify!($table),
            columns: &[$($((stringify!($column), ColumnKind::$kind),)+)+],
            key: $key,
        },)+]
    };
}

/// Every table of the schema except [`NOT_COPIED`], those that others refer to first. A test compares
/// this list with the schema of both engines.
pub const TABLES: &[CopiedTable] = copied_tables! {
    counters by "name" { Text: name; Number: value; }
    rigs by "slug" {
        Text: slug; Bytes: uid; Text: prefix title path repo default_branch executor state
        external_ref settings; Number: created_at updated_at;
    }
    prefixes by "prefix" { Text: prefix; Number: beads; }
    beads by "id" {
        Text: id; Bytes: uid; Text: rig status outcome; Number: priority; Text: issue_type
        assignee; Number: created_at updated_at started_at closed_at due_at defer_until ephemeral
        no_history pinned is_template open_blockers last_child estimated_minutes; Text: title
        owner created_by close_reason external_ref metadata description design acceptance_criteria
        notes carried;
    }
    labels by "bead, label" { Text: bead label; Number: position; }
    dependencies by "issue_id, depends_on_id" {
        Text: issue_id depends_on_id type; Number: blocking created_at; Text: created_by metadata
        thread_id carried;
    }
    comments by "bead, id" { Text: bead id author; Number: created_at; Text: text carried; }
    events by "number" { Number: number at; Text: type bead rig run actor payload; }
    settings by "scope, key" { Text: scope key value; Number: updated_at; Text: updated_by; }
    requests by "key" { Text: key bead; Number: at; Text: fingerprint; }
    convoys by "id" {
        Text: id; Number: members open_members failed_members landings cap; Text: paused_by;
        Number: paused_at fed_at;
    }
    contexts by "number" {
        Number: number; Text: id bead rig place account; Number: gated forced priority;
        Text: origin parameters; Number: enqueued_at; Text: enqueued_by; Number: waiting_since
        next_attempt_at failures; Text: last_failure; Number: attempts starting latest closed_at;
        Text: closed_by close_reason convoys waits; Number: due_at;
    }
    runs by "bead, epoch" {
        Text: bead; Number: epoch; Bytes: uid; Number: context; Text: rig executor runtime agent
        place host account session tree branch; Number: gated; Text: state starter formula steps;
        Number: created_at; Text: created_by; Number: running_at ended_at exit_code exit_signal;
        Text: reason ended_by accepted_commit base base_commit said landing_commit;
        Number: peak_memory_mb tokens cost lease_s lease_expires_at; Text: token_hash;
        Number: silent_since; Text: over_limit; Number: reserved_tokens reserved_cost
        usage_pending;
    }
    run_outputs by "bead, epoch" { Text: bead; Number: epoch bytes; Bytes: tail; Number: kept_at; }
    scheduler by "one" {
        Number: one; Text: paused_by; Number: paused_at last_dispatch_at last_dispatch_count;
    }
    accounts by "handle" {
        Text: handle config_dir environment; Number: max_runs is_default created_at;
    }
    outbox by "number" {
        Number: number; Text: key channel payload; Number: created_at next_attempt_at attempts;
        Text: last_error state;
    }
    polecats by "rig, name" {
        Text: rig name host tree branch last_run; Number: created_at updated_at;
    }
    port_ranges by "number" { Number: number; Text: rig place; }
    trash by "number" {
        Number: number; Text: rig name host path branch run reason state; Number: moved_at;
        Text: moved_by; Number: purge_at;
    }
    rescues by "bead, epoch" {
        Text: bead; Number: epoch; Text: rig host reference saved base; Number: bytes;
        Text: left_out; Number: created_at;
    }
    run_steps by "bead, epoch, step" {
        Text: bead; Number: epoch; Text: step; Number: done_at; Text: done_by;
    }
    messages by "number" {
        Number: number; Text: id kind severity sender recipient subject body bead reply_to;
        Number: created_at delivered_at seen_at; Text: topic;
    }
    usage_windows by "kind, name, window_name" {
        Text: kind name window_name; Number: used_percent length_s resets_at seen_at;
    }
    parks by "kind, name" {
        Text: kind name; Number: strikes; Text: beads; Number: since until; Text: reason trial;
        Number: ramp_since;
    }
    run_beads by "bead" { Text: bead worker; }
    hosts by "id" {
        Text: id name machine path incarnation; Number: seen_at_s; Text: address version labels;
        Number: max_runs; Text: rigs runtimes; Number: memory_mb memory_free_mb load_hundredths
        cores grace_ms daemon_at_s; Text: mode; Number: is_gone;
    }
    left_runs by "bead, epoch" { Text: bead; Number: epoch; Text: host; }
    estimates by "name" { Text: name; Number: memory_mb runs; }
    usage_records by "bead, epoch, session, model, source" {
        Text: bead; Number: epoch session; Text: model source; Number: input output cache_read
        cache_write reasoning reported priced;
    }
    spending by "bead, epoch, model, at" {
        Text: bead; Number: epoch; Text: model; Number: at; Text: rig account; Number: input
        output cache_read cache_write reasoning cost priced unpriced;
    }
    guards by "host, kind" { Text: host kind; Number: since; }
    tokens by "id" {
        Text: id name; Bytes: hash; Text: scopes; Number: created_at; Text: created_by;
        Number: expires_at revoked_at; Text: agent shown_as; Number: used_at;
    }
    merge_requests by "bead, number" {
        Text: bead; Number: number epoch; Text: purpose rig target branch accepted base merge;
        Number: review; Text: state held detail; Number: position top fix tries rebuilds
        candidate; Text: landed; Number: check_run retry_at; Text: pull_branch;
        Number: pull_number; Text: pull_address; Number: created_at changed_at;
    }
    candidates by "number" {
        Number: number; Text: rig target base tip tree state builder; Number: created_at
        changed_at;
    }
    candidate_requests by "candidate, position" {
        Number: candidate position; Text: bead; Number: request; Text: before after;
    }
    candidate_checks by "candidate, name" {
        Number: candidate; Text: name; Number: check_run cached;
    }
    merge_queues by "rig, target" {
        Text: rig target builder; Number: lease_s paused_at; Text: paused_by red_commit red_check;
        Number: red_since;
    }
    pull_requests by "bead, branch" {
        Text: bead branch fingerprint; Number: due_at; Text: repaired_head waits_for;
    }
    pull_request_tips by "bead, branch, position" {
        Text: bead branch; Number: position; Text: commit_id accepted;
    }
    pull_request_repairs by "bead, request, position" {
        Text: bead; Number: request position; Text: kind name author body file; Number: line;
        Text: address;
    }
    pull_request_texts by "bead, branch, position" {
        Text: bead branch; Number: position; Text: name author trust body file; Number: line;
        Text: address; Number: submitted_at;
    }
    reviews by "number" {
        Number: number; Text: bead; Number: request; Text: actor decision accepted base file;
        Number: line; Text: body; Number: created_at;
    }
    check_runs by "id" {
        Number: id; Text: rig name definition cache_key commit_id tree purpose result error;
        Number: exit_code attempt flaky started_at duration_ms; Text: host log;
    }
};

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
