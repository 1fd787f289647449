//! Every change made without the store is found and named.

use gt_core::EventKind;
use gt_store::{Difference, StoreCheckResult};
use gt_testkit::{Cluster, wait_until};

use super::{Specimen, furnished, specimens};
use crate::history::batch::Perform;
use crate::history::plain_bead;
use crate::history::step::Step;
use crate::history::work::{Manner, Work};
use crate::subjects::{author, store_on};

fn examine(specimen: &Specimen) -> (StoreCheckResult, Vec<Difference>) {
    let mut differences = Vec::new();
    let found = specimen.store.examine(&mut |difference| differences.push(difference));
    (found.expect("the check runs"), differences)
}

/// The one difference that is left after `sql` has run.
#[track_caller]
fn assert_told(specimen: &Specimen, sql: &str, expected: &[&str]) {
    specimen.tamper(sql);
    let (found, differences) = examine(specimen);
    let told: Vec<String> = differences.iter().map(ToString::to_string).collect();
    assert_eq!(told, expected, "{} after {sql}", specimen.name);
    assert_eq!(found.damage, [""; 0], "{} after {sql}", specimen.name);
}

#[test]
fn a_healthy_store_has_nothing_wrong_with_it() {
    for specimen in specimens().into_iter().chain(furnished()) {
        let (found, differences) = examine(&specimen);
        assert_eq!((found.damage, differences), (vec![], vec![]), "{}", specimen.name);
    }
}

#[test]
fn every_derived_value_is_recomputed() {
    for specimen in furnished() {
        for (damage, repair, expected) in [
            (
                "UPDATE dependencies SET blocking = 0 WHERE issue_id = 'gr-b' AND depends_on_id = 'gr-a'",
                "UPDATE dependencies SET blocking = 1 WHERE issue_id = 'gr-b' AND depends_on_id = 'gr-a'",
                "gr-b: the blocks dependency on gr-a is not blocking, should be blocking",
            ),
            (
                "UPDATE dependencies SET blocking = 1 WHERE type = 'tracks'",
                "UPDATE dependencies SET blocking = 0 WHERE type = 'tracks'",
                "hq-c: the tracks dependency on gr-nowhere is blocking, should be not blocking",
            ),
            (
                "UPDATE beads SET open_blockers = 5 WHERE id = 'gr-b'",
                "UPDATE beads SET open_blockers = 2 WHERE id = 'gr-b'",
                "gr-b: open_blockers is 5, should be 2",
            ),
            (
                "UPDATE beads SET open_blockers = 0 WHERE id = 'hq-c'",
                "UPDATE beads SET open_blockers = 1 WHERE id = 'hq-c'",
                "hq-c: open_blockers is 0, should be 1",
            ),
            (
                "UPDATE beads SET open_blockers = 3 WHERE id = 'gr-f'",
                "UPDATE beads SET open_blockers = 0 WHERE id = 'gr-f'",
                "gr-f: open_blockers is 3, should be 0",
            ),
            (
                "UPDATE beads SET last_child = -1 WHERE id = 'hq-c'",
                "UPDATE beads SET last_child = 0 WHERE id = 'hq-c'",
                "hq-c: last_child is -1, should be at least 0",
            ),
            (
                "UPDATE labels SET position = 2 WHERE label = 'red'",
                "UPDATE labels SET position = 1 WHERE label = 'red'",
                "gr-a: label position 2 is that of 2 labels, should be that of one",
            ),
            (
                "UPDATE prefixes SET beads = 9 WHERE prefix = 'gr'",
                "UPDATE prefixes SET beads = 3 WHERE prefix = 'gr'",
                "prefix gr: its count of beads is 9, should be 3",
            ),
            (
                "DELETE FROM prefixes WHERE prefix = 'hq'",
                "INSERT INTO prefixes VALUES ('hq', 1)",
                "prefix hq: its count of beads is 0, should be 1",
            ),
            (
                "UPDATE counters SET value = 99 WHERE name = 'event'",
                "UPDATE counters SET value = (SELECT MAX(number) FROM events) WHERE name = 'event'",
                "counter event: the number of the last event is 99, should be 15",
            ),
            (
                "UPDATE events SET number = 105 WHERE number = 15; UPDATE counters SET value = 105",
                "UPDATE events SET number = 15 WHERE number = 105; UPDATE counters SET value = 15",
                "events: how many are numbered 1 to 105 is 15 (nothing follows 14), should be 105",
            ),
        ] {
            assert_told(&specimen, damage, &[expected]);
            assert_told(&specimen, repair, &[]);
        }
    }
}

#[test]
fn repeated_values_of_contexts_and_runs_are_recomputed() {
    for specimen in specimens() {
        // Given a bead that waits and one that is being started,
        let furnished = specimen.store.write(&author(), |writer| {
            for place in [0, 1] {
                writer.insert_bead(&plain_bead(place), EventKind::Created)?;
                Step::Work(Work::Schedule(place, Manner::PLAIN)).perform(writer)?;
            }
            Step::Work(Work::Start(1)).perform(writer)
        });
        furnished.expect("the store can be furnished");
        assert_told(&specimen, "SELECT 1", &[]);
        for (damage, repair, expected) in [
            (
                "UPDATE contexts SET waits = 'blockers' WHERE number = 1",
                "UPDATE contexts SET waits = 'nothing' WHERE number = 1",
                "hq-ctx-00001: waits is blockers, should be nothing".to_owned(),
            ),
            (
                "UPDATE contexts SET priority = 4 WHERE number = 1",
                "UPDATE contexts SET priority = 2 WHERE number = 1",
                "hq-ctx-00001: priority is 4, should be 2".to_owned(),
            ),
            (
                "UPDATE contexts SET convoys = 'hq-cv-a' WHERE number = 1",
                "UPDATE contexts SET convoys = '' WHERE number = 1",
                "hq-ctx-00001: convoys is hq-cv-a, should be ".to_owned(),
            ),
            (
                "UPDATE contexts SET due_at = 0 WHERE number = 1",
                "UPDATE contexts SET due_at = NULL WHERE number = 1",
                "hq-ctx-00001: due_at is 1970-01-01T00:00:00Z, should be empty".to_owned(),
            ),
            (
                "UPDATE contexts SET latest = 0 WHERE number = 1",
                "UPDATE contexts SET latest = 1 WHERE number = 1",
                "gt-0: the number of its latest context is 0, should be 1".to_owned(),
            ),
            (
                "UPDATE counters SET value = 1 WHERE name = 'context'",
                "UPDATE counters SET value = 2 WHERE name = 'context'",
                "counter context: the number of the last context is 1, should be at least 2"
                    .to_owned(),
            ),
            (
                "UPDATE runs SET state = 'running'",
                "UPDATE runs SET state = 'starting'",
                "gt-1: status while its run gt-1#1 is running is hooked, should be in_progress"
                    .to_owned(),
            ),
        ] {
            // when a repeated value is changed, then it is named.
            assert_told(&specimen, damage, &[&expected]);
            assert_told(&specimen, repair, &[]);
        }
    }
}

#[test]
fn rows_that_violate_the_schema_are_found() {
    for specimen in furnished() {
        // Given a database whose constraints were removed,
        let freed = match specimen.name {
            "SQLite" => {
                "PRAGMA writable_schema = ON; \
                 UPDATE sqlite_master SET sql = substr(sql, 1, instr(sql, 'GENERATED') - 1) \
                 || substr(sql, instr(sql, 'STORED') + 6) WHERE name = 'beads'; \
                 PRAGMA writable_schema = RESET;"
            }
            _ => {
                "ALTER TABLE beads ALTER COLUMN workable DROP EXPRESSION; \
                 ALTER TABLE beads DROP CONSTRAINT beads_check; \
                 ALTER TABLE beads DROP CONSTRAINT beads_check1;"
            }
        };
        specimen.tamper(freed);

        // when values contradict each other,
        for (sql, expected) in [
            ("UPDATE beads SET workable = 0 WHERE id = 'gr-a'", "gr-a: workable is 0, should be 1"),
            (
                "UPDATE beads SET workable = 1, outcome = 'failed' WHERE id = 'gr-a'",
                "gr-a: outcome of a bead that is open is failed, should be empty",
            ),
            (
                "UPDATE beads SET outcome = NULL, closed_at = 0 WHERE id = 'gr-a'",
                "gr-a: closed_at of a bead that is open is 1970-01-01T00:00:00Z, should be empty",
            ),
            (
                "UPDATE beads SET closed_at = NULL WHERE id IN ('gr-a', 'gr-f')",
                "gr-f: closed_at of a bead that is closed is empty, should be set",
            ),
        ] {
            specimen.tamper(sql);
            // then the bead and the value are named.
            let (_, differences) = examine(&specimen);
            let told: Vec<String> = differences.iter().map(ToString::to_string).collect();
            assert_eq!(told, [expected], "{} after {sql}", specimen.name);
        }
    }
}

#[test]
fn rows_that_belong_to_nothing_are_found() {
    for specimen in furnished() {
        for (sql, expected) in [
            (
                "UPDATE labels SET bead = 'gr-gone' WHERE label = 'red'",
                "labels: 1 rows belong to beads that are not there, for example gr-gone",
            ),
            (
                "UPDATE comments SET bead = 'gr-gone'",
                "comments: 1 rows belong to beads that are not there, for example gr-gone",
            ),
            (
                "UPDATE beads SET rig = 'attic' WHERE id = 'gr-a'",
                "beads: 1 rows belong to rigs that are not there, for example attic",
            ),
            (
                "UPDATE dependencies SET issue_id = 'gr-gone' WHERE type = 'tracks'",
                "dependencies: 1 rows belong to beads that are not there, for example gr-gone",
            ),
        ] {
            specimen.tamper(sql);
            let (found, _) = examine(&specimen);
            let damage = &found.damage;
            assert!(damage.contains(&expected.to_owned()), "{}: {damage:?}", specimen.name);
        }
    }
}

#[test]
fn missing_schema_objects_are_named() {
    for specimen in specimens() {
        let indexes = specimen.column(match specimen.name {
            "SQLite" => "SELECT name FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL",
            _ => {
                "SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid \
                 JOIN pg_namespace n ON n.oid = c.relnamespace \
                 WHERE n.nspname = 'gt' AND NOT i.indisunique"
            }
        });
        assert!(indexes.len() > 8, "{indexes:?}");
        for index in &indexes {
            specimen.tamper(&format!("DROP INDEX {index}"));
            let (found, _) = examine(&specimen);
            let told = format!("{index} is missing");
            assert!(found.damage.contains(&told), "{}: {:?}", specimen.name, found.damage);
        }
        specimen.tamper("DROP VIEW bead_labels; DROP TABLE labels; DROP TABLE requests");
        let (found, _) = examine(&specimen);
        for name in ["bead_labels", "labels", "requests"] {
            let told = format!("{name} is missing");
            assert!(found.damage.contains(&told), "{}: {:?}", specimen.name, found.damage);
        }
    }
}

#[test]
fn an_index_that_a_server_gave_up_is_named() {
    let specimen = Specimen::on_server();
    specimen.tamper(
        "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'gt.beads_ready'::regclass",
    );
    let (found, _) = examine(&specimen);
    assert_eq!(found.damage, ["index beads_ready is not valid; REINDEX INDEX beads_ready"]);
}

#[test]
fn a_server_that_forgets_is_warned_about() {
    // The servers of the tests do not care for power cuts.
    let (found, _) = examine(&Specimen::on_server());
    assert!(found.warnings.iter().any(|line| line.contains("fsync = off")), "{:?}", found.warnings);
}

#[test]
fn a_failover_that_could_lose_commits_is_warned_about() {
    let cluster = Cluster::start("fsync = on\nfull_page_writes = on\n");
    let store = store_on(&cluster.url("postgres"));
    let warnings = || store.examine(&mut |_| {}).expect("the check runs").warnings;
    let set = |setting: &str| {
        cluster.sql("postgres", &format!("ALTER SYSTEM SET {setting}"));
        cluster.sql("postgres", "SELECT pg_reload_conf()");
    };
    assert_eq!(warnings(), Vec::<String>::new());

    cluster.sql("postgres", "SELECT pg_create_physical_replication_slot('standby')");
    assert!(warnings()[0].contains("none that is synchronous"), "{:?}", warnings());

    set("synchronous_standby_names = 'standby'");
    wait_until("the server waits for its standby", || warnings().is_empty());
    set("synchronous_commit = 'local'");
    wait_until("the server waits for no standby", || !warnings().is_empty());
    assert!(warnings()[0].contains("synchronous_commit = local"), "{:?}", warnings());
}

#[test]
fn an_alias_that_would_not_survive_is_only_a_warning() {
    for specimen in furnished() {
        specimen.tamper("UPDATE beads SET created_at = 0 WHERE id = 'gr-b'");
        let (found, differences) = examine(&specimen);
        assert_eq!(differences, []);
        let told =
            found.warnings.iter().any(|line| line.starts_with("1 beads") && line.ends_with("gr-b"));
        assert!(told, "{}: {:?}", specimen.name, found.warnings);
    }
}
