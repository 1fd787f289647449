//! Clients create and claim beads while the server crashes again and again.

use std::collections::HashMap;
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use gt_core::{Bead, BeadChangeKind, EventKind, Status, Uid};
use gt_store::{Authorship, EventFilter, Store, StoreError, Writer};
use gt_testkit::{Cluster, wait_until};

use super::{id, open};
use crate::history::plain_bead;
use crate::subjects::{NOW, store_on};

/// How many of each fault there are; more by this variable.
const FAULTS: usize = 2;
const FAULTS_VARIABLE: &str = "GT_TEST_SERVER_CRASHES";
/// How many answers come between two faults.
const ANSWERS_BETWEEN_FAULTS: usize = 40;
const CREATORS: usize = 4;
const CLAIMANTS: usize = 4;

/// The answers that the clients got.
#[derive(Default)]
struct Told {
    acknowledged: AtomicUsize,
    /// Beads that are there, in the order of their acknowledgement.
    created: Mutex<Vec<usize>>,
    /// Beads whose creation was refused with "nothing was changed".
    refused: Mutex<Vec<usize>>,
    /// The client and the bead of each successful claim.
    claimed: Mutex<Vec<(usize, String)>>,
    /// Answers that were not true when they were given.
    wrong: Mutex<Vec<String>>,
    unsettled: AtomicUsize,
    is_over: AtomicBool,
}

fn push<T>(list: &Mutex<Vec<T>>, value: T) {
    list.lock().unwrap_or_else(PoisonError::into_inner).push(value);
}

/// Writes alone, or in a group with the other clients of the same store.
fn write<T: Send + 'static>(
    store: &Store,
    actor: &str,
    is_grouped: bool,
    work: impl FnOnce(&mut Writer<'_>) -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    let by = Authorship { actor: actor.to_owned(), at: NOW, worker: None };
    if is_grouped { store.submit(by, work).wait() } else { store.write(&by, work) }
}

fn create(store: &Store, told: &Told, first: usize) {
    for number in (first..).step_by(CREATORS) {
        if told.is_over.load(Ordering::SeqCst) {
            return;
        }
        let bead = Bead { id: id(number), uid: Uid::fresh(), ..plain_bead(0) };
        let made = write(store, "creator", first >= CREATORS / 2, move |writer| {
            writer.insert_bead(&bead, EventKind::Created)
        });
        match made {
            Ok(()) => {
                told.acknowledged.fetch_add(1, Ordering::SeqCst);
                push(&told.created, number);
            }
            Err(StoreError::Unsettled(_)) => {
                told.unsettled.fetch_add(1, Ordering::SeqCst);
            }
            Err(_) => push(&told.refused, number),
        }
    }
}

fn claim(store: &Store, told: &Told, claimant: usize) {
    let actor = format!("claimant-{claimant}");
    let mut next = 0;
    let mut may_be_mine = false;
    while !told.is_over.load(Ordering::SeqCst) {
        let number = told.created.lock().unwrap_or_else(PoisonError::into_inner).get(next).copied();
        let Some(number) = number else {
            thread::yield_now();
            continue;
        };
        let claimed = write(store, &actor, claimant >= CLAIMANTS / 2, move |writer| {
            let Some(old) = writer.bead(&id(number))? else { return Ok(None) };
            if !old.assignee.is_empty() {
                return Ok(Some((old.assignee, false)));
            }
            let assignee = writer.actor().to_owned();
            let new = Bead { assignee, status: Status::InProgress, ..old.clone() };
            writer.save_bead(&old, &new, BeadChangeKind::Claimed)?;
            Ok(Some((new.assignee, true)))
        });
        match claimed {
            Ok(None) => push(&told.wrong, format!("{number} was acknowledged and is gone")),
            Ok(Some((owner, is_new))) => {
                if is_new || (owner == actor && may_be_mine) {
                    told.acknowledged.fetch_add(1, Ordering::SeqCst);
                    push(&told.claimed, (number, actor.clone()));
                } else if owner == actor {
                    push(&told.wrong, format!("{number} was refused to {actor}, who has it"));
                }
            }
            Err(error) => {
                // The same is tried again.
                if matches!(error, StoreError::Unsettled(_)) {
                    told.unsettled.fetch_add(1, Ordering::SeqCst);
                    may_be_mine = true;
                }
                continue;
            }
        }
        next += 1;
        may_be_mine = false;
    }
}

#[derive(Debug, Clone, Copy)]
enum Fault {
    /// `pg_ctl restart -m immediate`.
    Crash,
    /// `kill -9` of a server process, after which the server recovers.
    KillBackend,
    /// `pg_terminate_backend`, after which only one client connects again.
    TerminateBackend,
}

fn strike(fault: Fault, cluster: &Cluster) {
    match fault {
        Fault::Crash => cluster.crash(),
        Fault::KillBackend => {
            cluster.kill_backend();
        }
        Fault::TerminateBackend => {
            cluster.terminate_backend();
        }
    }
}

#[test]
fn nothing_acknowledged_is_lost_or_doubled_by_crashes_of_the_server() {
    let asked = std::env::var_os(FAULTS_VARIABLE).and_then(|text| text.into_string().ok());
    let faults = asked.and_then(|text| text.parse().ok());
    let faults: usize = faults.unwrap_or(FAULTS);
    let cluster = Cluster::start("");
    let url = cluster.url("postgres");
    let store = store_on(&url);
    let told = Told::default();

    // Given clients that create and claim beads, when the server crashes in each way,
    thread::scope(|scope| {
        let told = &told;
        // Half of the clients write in the groups of one store, the others each through a store of their own.
        let own_or_shared = |is_grouped: bool| {
            if is_grouped { store.clone() } else { open(&url).expect("the server is there") }
        };
        for first in 0..CREATORS {
            let store = own_or_shared(first >= CREATORS / 2);
            scope.spawn(move || create(&store, told, first));
        }
        for claimant in 0..CLAIMANTS {
            let store = own_or_shared(claimant >= CLAIMANTS / 2);
            scope.spawn(move || claim(&store, told, claimant));
        }
        for _ in 0..faults {
            for fault in [Fault::Crash, Fault::KillBackend, Fault::TerminateBackend] {
                let before = told.acknowledged.load(Ordering::SeqCst);
                let reached =
                    || told.acknowledged.load(Ordering::SeqCst) >= before + ANSWERS_BETWEEN_FAULTS;
                wait_until("the clients go on", reached);
                strike(fault, &cluster);
            }
        }
        told.is_over.store(true, Ordering::SeqCst);
    });

    // then acknowledged writes are there, refused ones are not, and no bead has two owners.
    let created = told.created.into_inner().expect("no thread panics");
    let refused = told.refused.into_inner().expect("no thread panics");
    let claimed = told.claimed.into_inner().expect("no thread panics");
    let wrong = told.wrong.into_inner().expect("no thread panics");
    let bead = |number: usize| {
        store.read(|reader| reader.bead(&id(number))).expect("the store can be read")
    };
    let lost = created.iter().filter(|number| bead(**number).is_none()).count();
    let made = refused.iter().filter(|number| bead(**number).is_some()).count();
    let mut owners: HashMap<usize, Vec<&str>> = HashMap::new();
    for (number, owner) in &claimed {
        owners.entry(*number).or_default().push(owner);
    }
    let stolen = claimed
        .iter()
        .filter(|(number, owner)| bead(*number).is_none_or(|bead| bead.assignee != *owner));
    let stolen = stolen.count();
    let doubled = owners.values().filter(|owners| owners.len() > 1).count();
    let unsettled = told.unsettled.into_inner();
    let figures = format!(
        "{faults} of each fault: {} creations acknowledged, {lost} lost, {} refused, {made} of them made; \
         {} claims acknowledged, {stolen} lost, {doubled} beads with two owners; {unsettled} answers \"may or may not\"",
        created.len(),
        refused.len(),
        claimed.len(),
    );
    // The figures of a long run are part of its result, also where it passes.
    let _ = writeln!(std::io::stderr(), "{figures}");
    assert_eq!((lost, made, stolen, doubled), (0, 0, 0, 0));
    assert_eq!(wrong, Vec::<String>::new());
    let events = store.read(|reader| reader.events_after(0, &EventFilter::default(), 1_000_000));
    let mut claims: HashMap<_, usize> = HashMap::new();
    for event in events.expect("the store can be read").0 {
        *claims.entry((event.kind.as_str().to_owned(), event.bead)).or_default() += 1;
    }
    assert!(claims.values().all(|times| *times == 1), "an event was written twice");
    let differences = store.read(|reader| reader.differences()).expect("the store can be read");
    assert_eq!(differences, Vec::<String>::new());
}
