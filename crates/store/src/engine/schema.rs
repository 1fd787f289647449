//! The steps of the schema, on both engines.

/// One step of the schema. Steps are never changed once they are released.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Migration {
    /// The schema it leads to.
    pub(crate) version: i64,
    /// The least schema a program must know to work with the result. Adding a table or a column with
    /// a default keeps older programs working; anything else does not.
    pub(crate) serves: i64,
    /// The statements.
    pub(crate) sql: &'static str,
}

/// Lists the steps once, so that both engines always have the same.
macro_rules! migrations {
    ($(($version:literal, $serves:literal, $file:literal),)*) => {
        /// Every step on SQLite, in order.
        pub(crate) const SQLITE: &[Migration] = &[$(Migration {
            version: $version,
            serves: $serves,
            sql: include_str!(concat!("../../migrations/sqlite/", $file)),
        }),*];
        /// Every step on PostgreSQL, in order.
        pub(crate) const POSTGRES: &[Migration] = &[$(Migration {
            version: $version,
            serves: $serves,
            sql: include_str!(concat!("../../migrations/postgres/", $file)),
        }),*];
    };
}

migrations! {
    (1, 1, "0001_foundation.sql"),
    (2, 1, "0002_requests.sql"),
    // An older program would close beads that a run has.
    (3, 3, "0003_scheduler.sql"),
    // An older program would start runs beside their trees.
    (4, 4, "0004_workers.sql"),
    (5, 4, "0005_capacity.sql"),
    (6, 4, "0006_work.sql"),
    (7, 4, "0007_pull.sql"),
    // An older program would close a member, and the convoy would not count it.
    (8, 8, "0008_convoys.sql"),
    // An older program would start beads that a convoy holds up.
    (9, 9, "0009_live_convoys.sql"),
    // An older program would start workers that cannot prove which run they belong to.
    (10, 10, "0010_identity.sql"),
    // An older program would let a bound token act for every agent.
    (11, 11, "0011_token_agents.sql"),
    (12, 11, "0012_client_sessions.sql"),
    // An older program would look for these states in the reason of a run.
    (13, 13, "0013_run_states.sql"),
    // An older program relies on triggers and lanes that are gone.
    (14, 14, "0014_waits.sql"),
    // An older program would close beads whose merge request is open.
    (15, 15, "0015_merge_requests.sql"),
    // An older program would record usage that no budget sees.
    (16, 16, "0016_usage.sql"),
    (17, 16, "0017_usage_windows.sql"),
    (18, 16, "0018_board.sql"),
    // An older program would take a login link and a session for a token.
    (19, 19, "0019_deck_sessions.sql"),
    (20, 19, "0020_disk_guard.sql"),
    (21, 19, "0021_fleet.sql"),
    (22, 19, "0022_run_outputs.sql"),
    (23, 19, "0023_usage_pending.sql"),
}

/// The schema this program knows.
pub(crate) const LEVEL: i64 = SQLITE[SQLITE.len() - 1].version;

/// The tables, views and indexes that `steps` make and that are not among `found`.
pub(crate) fn missing(steps: &[Migration], found: &[String]) -> Vec<&'static str> {
    let mut expected = objects(steps);
    expected.retain(|name| !found.iter().any(|found| found == name));
    expected
}

/// The objects that exist after `steps`. Their statements begin on lines of their own.
pub(crate) fn objects(steps: &[Migration]) -> Vec<&'static str> {
    let mut names = Vec::new();
    for line in steps.iter().flat_map(|step| step.sql.lines()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["CREATE", "TABLE" | "VIEW" | "INDEX", name, ..]
            | ["CREATE", "UNIQUE", "INDEX", name, ..] => names.push(*name),
            ["DROP", "TABLE" | "VIEW" | "INDEX", name, ..] => {
                let name = name.trim_end_matches(';');
                names.retain(|made| *made != name);
            }
            _ => {}
        }
    }
    names
}
