//! `kill -9` in the middle of writing: every acknowledged write is there afterwards.

use std::collections::HashSet;
use std::env;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use gt_core::EventKind;
use gt_store::{BeadFilter, StoreError};

use crate::history::plain_bead;
use crate::subjects::{author, place, store_at};

/// Names the store to the process that will be killed.
const VICTIM_STORE: &str = "GT_STORE_TEST_VICTIM_STORE";
const VICTIM_ROUND: &str = "GT_STORE_TEST_VICTIM_ROUND";
/// How many acknowledged writes to wait for before the kill.
const WRITES_BEFORE_KILL: usize = 40;
const ROUNDS: usize = 4;

/// Not a test by itself: the process that [`nothing_acknowledged_is_lost_by_a_kill`] starts, and
/// kills, runs only this.
#[test]
fn the_victim_writes_until_it_is_killed() {
    let (Some(path), Some(round)) = (env::var_os(VICTIM_STORE), env::var_os(VICTIM_ROUND)) else {
        return;
    };
    let round = round.to_string_lossy().into_owned();
    let store = store_at(Path::new(&path));
    let mut out = std::io::stdout();
    for number in 0.. {
        let bead = gt_core::Bead {
            id: gt_core::BeadId::trusted(format!("gt-r{round}n{number}")),
            uid: gt_core::Uid::fresh(),
            ..plain_bead(0)
        };
        let id = bead.id.clone();
        let work =
            move |writer: &mut gt_store::Writer<'_>| writer.insert_bead(&bead, EventKind::Created);
        let written: Result<(), StoreError> = if number % 2 == 0 {
            store.write(&author(), work)
        } else {
            store.submit(author(), work).wait()
        };
        written.expect("the write succeeds");
        if writeln!(out, "acknowledged {id}").is_err() {
            return;
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "only a process of its own can be killed, and the store must not know the executors"
)]
fn start_victim(path: &Path, round: usize) -> Child {
    Command::new(env::current_exe().expect("this test is a program"))
        .args(["--exact", "sqlite::crash::the_victim_writes_until_it_is_killed", "--nocapture"])
        .env(VICTIM_STORE, path)
        .env(VICTIM_ROUND, round.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the victim starts")
}

#[test]
fn nothing_acknowledged_is_lost_by_a_kill() {
    let (_directory, path) = place();
    let mut acknowledged = HashSet::new();
    for round in 0..ROUNDS {
        // Given a process that writes, when it is killed in the middle of it,
        let mut victim = start_victim(&path, round);
        let output = victim.stdout.take().expect("the output is piped");
        let mut ours = 0;
        for line in BufReader::new(output).lines() {
            let line = line.expect("the output can be read");
            // The test runner's own words come first on the same line.
            if let Some((_, id)) = line.split_once("acknowledged ") {
                acknowledged.insert(id.to_owned());
                ours += 1;
            }
            if ours == WRITES_BEFORE_KILL {
                victim.kill().expect("the victim can be killed");
            }
        }
        victim.wait().expect("the victim is gone");
        assert!(ours >= WRITES_BEFORE_KILL, "the victim wrote only {ours} beads");

        // then all it was told is there, and the rest is whole.
        let store = store_at(&path);
        let (there, last, differences) = store
            .read(|reader| {
                let there = reader.find(&BeadFilter::default())?;
                let last = reader.last_event_number()?;
                Ok::<_, StoreError>((there, last, reader.differences()?))
            })
            .expect("the store can be read");
        assert_eq!(differences, Vec::<String>::new());
        assert_eq!(there.len() as u64, last);
        let there: HashSet<String> = there.iter().map(ToString::to_string).collect();
        let lost: Vec<&String> = acknowledged.difference(&there).collect();
        assert!(lost.is_empty(), "{lost:?}");
    }
}
