//! Leases are counted by the server's clock, not by the clock of a caller.

use gt_core::Timestamp;
use gt_store::{Authorship, LeaseClock, Options, Store, StoreError};

use crate::subjects::{NOW, fresh_url, server_address};

/// The time of leases for a caller whose clock stands at `at`: within a read and within a write.
fn lease_times(store: &Store, at: Timestamp) -> [Timestamp; 2] {
    let by = Authorship { actor: "ann".to_owned(), at, worker: None };
    let reading = store.read(|reader| Ok::<_, StoreError>(reader.lease_time(at)));
    let writing = store.write(&by, |writer| {
        assert_eq!(writer.now(), at, "the rest goes by the caller's clock");
        Ok::<_, StoreError>(writer.lease_now())
    });
    [reading, writing].map(|time| time.expect("the store answers"))
}

#[test]
fn callers_whose_clocks_differ_agree_on_the_time_of_leases() {
    let url = fresh_url();
    let open = |lease_clock| {
        let options = Options { lease_clock, ..Options::default() };
        Store::open(&server_address(&url), NOW, options).unwrap()
    };
    let (early, late) = (Timestamp::from_nanos(1), Timestamp::from_nanos(i64::MAX / 2));
    let store = open(LeaseClock::Store);
    let times = [lease_times(&store, early), lease_times(&store, late)].concat();
    assert!(times.is_sorted(), "one clock, however the callers' stand: {times:?}");
    assert!(times.iter().all(|time| early < *time && *time < late), "{times:?}");

    // Tests and simulations have time as they say.
    let store = open(LeaseClock::Caller);
    assert_eq!(lease_times(&store, early), [early, early]);
}
