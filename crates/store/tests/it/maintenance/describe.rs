//! The description of a store, and the space that it gives back.

use std::collections::BTreeMap;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use gt_conformance::EngineUnderTest as _;
use gt_core::{Bead, EventKind, Timestamp};
use gt_store::{
    ColumnKind, IfFileExists, NOT_COPIED, SCHEMA_LEVEL, StoreCheckResult, StoreError, TABLES,
    Totals, Writer,
};

use super::{Behind, bead, furnished, specimens};
use crate::subjects::{InMemory, NOW, author, place};

#[test]
fn the_list_of_tables_is_the_schema_of_both_engines() {
    for specimen in specimens() {
        let sql = match specimen.name {
            "SQLite" => {
                "SELECT t.name || '.' || c.name || ' ' || c.type FROM sqlite_master t \
                 JOIN pragma_table_xinfo(t.name) c WHERE t.type = 'table' AND c.hidden = 0"
            }
            _ => {
                "SELECT table_name || '.' || column_name || ' ' || data_type \
                 FROM information_schema.columns JOIN information_schema.tables \
                 USING (table_schema, table_name) WHERE table_schema = 'gt' \
                 AND table_type = 'BASE TABLE' AND is_generated = 'NEVER'"
            }
        };
        let mut real: Vec<String> = specimen
            .column(sql)
            .into_iter()
            .filter(|column| {
                column.split_once('.').is_none_or(|(table, _)| !NOT_COPIED.contains(&table))
            })
            .collect();
        real.sort();
        let kind = |kind| match (kind, specimen.name) {
            (ColumnKind::Number, "SQLite") => "INTEGER",
            (ColumnKind::Number, _) => "bigint",
            (ColumnKind::Text, "SQLite") => "TEXT",
            (ColumnKind::Text, _) => "text",
            (ColumnKind::Bytes, "SQLite") => "BLOB",
            (ColumnKind::Bytes, _) => "bytea",
        };
        let columns = TABLES.iter().flat_map(|table| {
            let column =
                |(name, holds): &(&str, _)| format!("{}.{name} {}", table.name, kind(*holds));
            table.columns.iter().map(column).collect::<Vec<_>>()
        });
        let mut listed: Vec<String> = columns.collect();
        listed.sort();
        assert_eq!(listed, real, "{}", specimen.name);
    }
}

#[test]
fn a_store_says_what_it_is_and_how_it_grows() {
    for specimen in furnished() {
        let day = 86_400_000_000_000;
        let old =
            Bead { created_at: Timestamp::from_nanos(NOW.as_nanos() - 10 * day), ..bead("hq-old") };
        let ancient = Bead { created_at: Timestamp::from_nanos(1), ..bead("hq-ancient") };
        for bead in [&old, &ancient] {
            let written = specimen
                .store
                .write(&author(), |writer| writer.insert_bead(bead, EventKind::Created));
            written.expect("the write succeeds");
        }

        let said = specimen.store.describe(NOW).expect("it can be described");

        assert_eq!((said.engine.engine, said.schema), (specimen.name, SCHEMA_LEVEL));
        let place = said.place.expect("it is somewhere");
        match &specimen.behind {
            Behind::File(path) => assert_eq!(place, path.display().to_string()),
            Behind::Database(name) => assert!(place.contains(name.as_str()), "{place}"),
        }
        let counted: BTreeMap<&str, u64> =
            said.tables.iter().map(|table| (table.name, table.rows)).collect();
        let expected = [
            ("accounts", 0),
            ("beads", 7),
            ("comments", 1),
            ("contexts", 0),
            ("convoys", 0),
            ("counters", 9),
            ("dependencies", 5),
            ("estimates", 0),
            ("events", 17),
            ("guards", 0),
            ("hosts", 0),
            ("labels", 2),
            ("left_runs", 0),
            ("messages", 0),
            ("outbox", 0),
            ("parks", 0),
            ("polecats", 0),
            ("port_ranges", 0),
            ("prefixes", 2),
            ("requests", 0),
            ("rescues", 0),
            ("rigs", 1),
            ("run_beads", 0),
            ("run_outputs", 0),
            ("run_steps", 0),
            ("runs", 0),
            ("scheduler", 1),
            ("settings", 1),
            ("spending", 0),
            ("usage_records", 0),
            ("usage_windows", 0),
            ("tokens", 0),
            ("trash", 0),
            ("candidate_checks", 0),
            ("candidate_requests", 0),
            ("candidates", 0),
            ("check_runs", 0),
            ("merge_queues", 0),
            ("merge_requests", 0),
            ("pull_request_repairs", 0),
            ("pull_request_texts", 0),
            ("pull_request_tips", 0),
            ("pull_requests", 0),
            ("reviews", 0),
        ];
        assert_eq!(counted, BTreeMap::from(expected));
        assert_eq!(said.event_numbers, (1, 17));
        assert_eq!((said.events.week, said.events.month), (17, 17));
        assert_eq!((said.events.oldest, said.events.newest), (Some(NOW), Some(NOW)));
        assert_eq!((said.beads.week, said.beads.month), (5, 6));
        assert_eq!(said.beads.oldest, Some(Timestamp::from_nanos(1)));
        assert!(said.engine.bytes > 10_000, "{:?}", said.engine);
        assert!(said.engine.settings.iter().any(|(name, _)| name.starts_with("synchronous")));
    }
}

#[test]
fn a_new_store_has_no_first_event() {
    for specimen in specimens() {
        let said = specimen.store.describe(NOW).expect("it can be described");
        assert_eq!((said.event_numbers, said.events.oldest), ((0, 0), None));
    }
}

const ROWS: usize = 2000;

#[test]
fn vacuuming_gives_room_back_and_loses_nothing() {
    for specimen in furnished() {
        // Given many beads that came and went,
        let write = |work: fn(&mut Writer<'_>, Bead) -> Result<(), StoreError>| {
            let all = |writer: &mut Writer<'_>| {
                let large = |number| Bead {
                    description: "x".repeat(3000),
                    ..bead(&format!("gt-{number}"))
                };
                (0..ROWS).try_for_each(|number| work(writer, large(number)))
            };
            specimen.store.write(&author(), all).expect("the write succeeds");
        };
        write(|writer, bead| writer.insert_bead(&bead, EventKind::Created));
        write(|writer, bead| writer.delete_bead(&bead));

        // when others go on writing,
        let (busy, stop) = (Barrier::new(2), AtomicBool::new(false));
        let (size, made) = thread::scope(|scope| {
            let writing = scope.spawn(|| {
                let mut made = 0;
                while !stop.load(Ordering::SeqCst) {
                    let bead = bead(&format!("hq-{made}"));
                    let put = specimen.store.submit(author(), move |writer| {
                        writer.insert_bead(&bead, EventKind::Created)
                    });
                    put.wait().expect("a writer waits, and does not fail");
                    made += 1;
                    if made == 1 {
                        busy.wait();
                    }
                }
                made
            });
            busy.wait();
            let size = specimen.store.vacuum();
            stop.store(true, Ordering::SeqCst);
            (size.expect("it succeeds"), writing.join().expect("the writer finishes"))
        });

        // then the room is free, and everything else is there.
        match specimen.behind {
            Behind::File(_) => assert!(size.after < size.before / 2, "{size:?}"),
            // A server keeps the room for new rows.
            Behind::Database(_) => assert!(size.after > 0, "{size:?}"),
        }
        let differences = specimen.store.read(|reader| reader.differences());
        assert_eq!(differences.expect("the read succeeds"), Vec::<String>::new());
        let said = specimen.store.describe(NOW).expect("it can be described");
        let beads = said.tables.iter().find(|table| table.name == "beads");
        assert_eq!(beads.map(|table| table.rows), Some(5 + made));
    }
}

#[test]
fn a_store_in_memory_is_looked_after_in_the_same_way() {
    let store = InMemory.fresh();
    let (directory, path) = place();
    store
        .write(&author(), |writer| writer.insert_bead(&bead("gt-a"), EventKind::Created))
        .expect("the write succeeds");

    let backup = store.back_up(&path, IfFileExists::Keep, NOW, &mut |_, _| {});
    assert_eq!(backup.expect("the backup succeeds").totals, Totals { beads: 1, events: 1 });
    let examined = store.examine(&mut |difference| panic!("{difference}"));
    assert_eq!(examined.expect("the check runs"), StoreCheckResult::default());
    assert!(store.vacuum().expect("it succeeds").after > 0);
    let said = store.describe(NOW).expect("it can be described");
    assert_eq!((said.place, said.event_numbers), (None, (1, 1)));
    drop(directory);
}
