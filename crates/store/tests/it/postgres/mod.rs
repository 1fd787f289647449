//! Faults of a server, and behaviour that only a server has.

mod bell;
mod commit;
mod crashes;
mod disk;
mod lease_clock;
mod lease_renewal;
mod locks;
mod plans;
mod pool;
mod pooler;
mod proxy;
mod raw;
mod restart;
mod roles;
mod silence;
mod tls;

use gt_core::{Bead, BeadId, EventKind, Uid};
use gt_store::{Options, Store, StoreError};

use crate::history::plain_bead;
use crate::subjects::{NOW, author, server_address};

fn id(number: usize) -> BeadId {
    BeadId::trusted(format!("gt-n{number}"))
}

/// Makes the bead of this number.
fn write(store: &Store, number: usize) -> Result<(), StoreError> {
    let bead = Bead { id: id(number), uid: Uid::fresh(), ..plain_bead(0) };
    store.write(&author(), |writer| writer.insert_bead(&bead, EventKind::Created))
}

fn is_there(store: &Store, number: usize) -> bool {
    store.read(|reader| reader.bead_exists(&id(number))).expect("the store can be read")
}

/// Opens a store that is there.
fn open(url: &str) -> Result<Store, StoreError> {
    Store::open(&server_address(url), NOW, Options::default())
}

/// Nothing is half done: derived values are right, and the events have every number once.
fn check(store: &Store) {
    store
        .read(|reader| {
            assert_eq!(reader.differences()?, Vec::<String>::new());
            let all = gt_store::EventFilter::default();
            let (events, last) = reader.events_after(0, &all, usize::from(u16::MAX))?;
            let numbers: Vec<u64> = events.iter().map(|event| event.number).collect();
            assert_eq!(numbers, (1..=last).collect::<Vec<u64>>());
            assert_eq!(last, reader.last_event_number()?);
            Ok::<_, StoreError>(())
        })
        .expect("the store can be read");
}

/// The end of a URL that has no parameters yet.
fn with(url: &str, parameters: &str) -> String {
    format!("{url}?{parameters}")
}

/// The name of the database in a URL without parameters.
fn database(url: &str) -> &str {
    url.rsplit('/').next().expect("a URL has parts")
}

/// Makes the bead of this number, together with all other waiting writes.
fn submit(store: &Store, number: usize) -> Result<(), StoreError> {
    let bead = Bead { id: id(number), uid: Uid::fresh(), ..plain_bead(0) };
    store.submit(author(), move |writer| writer.insert_bead(&bead, EventKind::Created)).wait()
}
