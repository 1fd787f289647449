//! Connections that have not shown yet that they are a client's: no token came over them where tokens are needed, or no
//! request at all. They are limited, and a new one takes the place of the oldest, so that connections which say nothing keep
//! no client out.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

/// The bits of an IPv6 address that tell one client from another: each has many addresses.
const CLIENT_BITS: u128 = u128::MAX << 64;

/// All connections of a server that are unproven.
#[derive(Debug)]
pub(crate) struct UnprovenConnections {
    at_most: usize,
    at_most_per_address: usize,
    entries: Mutex<UnprovenEntries>,
}

#[derive(Debug, Default)]
struct UnprovenEntries {
    next: u64,
    connections: BTreeMap<u64, (Option<IpAddr>, CancellationToken)>,
    by_address: HashMap<IpAddr, BTreeSet<u64>>,
}

impl UnprovenEntries {
    fn remove(&mut self, number: u64) -> Option<CancellationToken> {
        let (address, over) = self.connections.remove(&number)?;
        if let Some(address) = address
            && let Some(numbers) = self.by_address.get_mut(&address)
        {
            numbers.remove(&number);
            if numbers.is_empty() {
                self.by_address.remove(&address);
            }
        }
        Some(over)
    }

    fn close(&mut self, number: Option<u64>) -> bool {
        let closed = number.and_then(|number| self.remove(number));
        closed.map(|over| over.cancel()).is_some()
    }
}

impl UnprovenConnections {
    /// A part of all connections is kept for those that are proven.
    pub(crate) fn of(connections: usize) -> Arc<Self> {
        let reserve = (connections / 8).max(1);
        Arc::new(Self {
            at_most: connections.saturating_sub(reserve).max(1),
            at_most_per_address: (connections / 4).max(1),
            entries: Mutex::default(),
        })
    }

    fn entries(&self) -> MutexGuard<'_, UnprovenEntries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a new connection in. If it is one too many, of all or of those from its address, the oldest is closed. Only
    /// those with an address are counted by it.
    pub(crate) fn admit(self: &Arc<Self>, address: Option<IpAddr>) -> Arc<UnprovenConnection> {
        let over = CancellationToken::new();
        let address = address.map(client_of);
        let mut entries = self.entries();
        let number = entries.next;
        entries.next += 1;
        entries.connections.insert(number, (address, over.clone()));
        if let Some(address) = address {
            let numbers = entries.by_address.entry(address).or_default();
            numbers.insert(number);
            if numbers.len() > self.at_most_per_address {
                let oldest = numbers.first().copied();
                entries.close(oldest);
            }
        }
        if entries.connections.len() > self.at_most {
            let oldest = entries.connections.keys().next().copied();
            entries.close(oldest);
        }
        drop(entries);
        Arc::new(UnprovenConnection { all: Arc::clone(self), number, over })
    }
}

/// One connection among them, until it is proven or over.
#[derive(Debug)]
pub(crate) struct UnprovenConnection {
    all: Arc<UnprovenConnections>,
    number: u64,
    /// Another connection has taken its place.
    pub(crate) over: CancellationToken,
}

impl UnprovenConnection {
    /// It is a client's, and stays.
    pub(crate) fn end(&self) {
        self.all.entries().remove(self.number);
    }

    /// Closes the oldest other connection, if there is one that came before.
    pub(crate) fn make_room(&self) -> bool {
        let mut entries = self.all.entries();
        let oldest = entries.connections.keys().next().copied();
        entries.close(oldest.filter(|number| *number < self.number))
    }
}

impl Drop for UnprovenConnection {
    fn drop(&mut self) {
        self.end();
    }
}

/// One address for all addresses of a client.
fn client_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & CLIENT_BITS)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn one_address_loses_its_own_oldest_connection() {
        let all = UnprovenConnections::of(16);
        let other = all.admit(Some(address("10.0.0.9")));
        let held: Vec<_> = (0..5).map(|_| all.admit(Some(address("10.0.0.7")))).collect();
        let closed: Vec<bool> = held.iter().map(|one| one.over.is_cancelled()).collect();
        assert_eq!(closed, [true, false, false, false, false]);
        assert!(!other.over.is_cancelled());
        // Addresses that one client can choose from count as one.
        let many: Vec<_> =
            (1..6).map(|n| all.admit(Some(address(&format!("fd00::{n}"))))).collect();
        assert!(many[0].over.is_cancelled());
    }

    #[test]
    fn the_oldest_of_all_connections_makes_room() {
        let all = UnprovenConnections::of(8);
        let held: Vec<_> = (0..8).map(|_| all.admit(None)).collect();
        assert!(held[0].over.is_cancelled() && !held[1].over.is_cancelled());
        held[1].end();
        assert!(held[7].make_room());
        assert!(!held[1].over.is_cancelled() && held[2].over.is_cancelled());
    }

    #[test]
    fn connections_that_are_over_are_forgotten() {
        let all = UnprovenConnections::of(8);
        for _ in 0..1000 {
            drop(all.admit(Some(address("10.0.0.7"))));
        }
        assert!(all.entries().connections.is_empty() && all.entries().by_address.is_empty());
        let only = all.admit(None);
        assert!(!only.make_room() && !only.over.is_cancelled());
    }
}
