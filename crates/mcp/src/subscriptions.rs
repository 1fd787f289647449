//! Subscriptions: the event log, read for the resources that a client follows.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use gt_beads::events::EventFollower;
use gt_core::{BeadId, Event};
use gt_town::EventFilter;

use crate::answers::ToolFailure;
use crate::caller::McpCaller;
use crate::resources::{self, ResourceAddress, ResourceKind};

/// How often the log is read while a client follows a resource. It costs one lookup.
const LOG_POLL_INTERVAL: Duration = Duration::from_millis(500);
/// The most resources that a client may follow.
const FOLLOWED_MAX: usize = 200;

/// The resources that a client follows, with the beads whose events change each convoy.
#[derive(Debug, Clone, Default)]
pub(crate) struct Subscriptions(Arc<Mutex<BTreeMap<ResourceAddress, Vec<BeadId>>>>);

impl Subscriptions {
    /// Follows a resource that the caller may read.
    pub(crate) fn add(
        &self,
        caller: &McpCaller,
        address: ResourceAddress,
    ) -> Result<(), ToolFailure> {
        // An address that does not exist would never change.
        resources::read(caller, &address)?;
        let members = members_of(caller, &address)?;
        let mut followed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if followed.len() >= FOLLOWED_MAX && !followed.contains_key(&address) {
            return Err(ToolFailure::new(format!("at most {FOLLOWED_MAX} resources are followed")));
        }
        followed.insert(address, members);
        Ok(())
    }

    pub(crate) fn remove(&self, address: &ResourceAddress) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(address);
    }

    fn is_empty(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// The followed resources that these events may have changed.
    fn changed_by(&self, events: &[Event]) -> Vec<ResourceAddress> {
        let followed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_changed = |(address, members): &(&ResourceAddress, &Vec<BeadId>)| {
            events.iter().any(|event| resources::is_about(event, address, members))
        };
        followed.iter().filter(is_changed).map(|(address, _)| address.clone()).collect()
    }

    /// Looks again at the beads of these convoys.
    fn refresh(&self, caller: &McpCaller, changed: &[ResourceAddress]) {
        for address in changed.iter().filter(|address| address.kind == ResourceKind::Convoy) {
            let Ok(members) = members_of(caller, address) else { continue };
            let mut followed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(known) = followed.get_mut(address) {
                *known = members;
            }
        }
    }

    /// Reads the log from `follower` on, and tells of each resource that changed, until `tell` says that its client is gone.
    pub(crate) async fn follow<F: Future<Output = bool> + Send>(
        &self,
        caller: &McpCaller,
        mut follower: EventFollower,
        mut tell: impl FnMut(ResourceAddress) -> F + Send,
        is_over: impl Fn() -> bool + Send,
    ) {
        while !is_over() {
            tokio::time::sleep(LOG_POLL_INTERVAL).await;
            if self.is_empty() {
                continue;
            }
            let (own, reader) = (self.clone(), caller.clone());
            let looked = tokio::task::spawn_blocking(move || {
                // A store that cannot be read now is read the next time; no event is lost.
                let events = follower.next(&reader.town).unwrap_or_default();
                let changed = own.changed_by(&events);
                own.refresh(&reader, &changed);
                (changed, follower)
            });
            let Ok((changed, next)) = looked.await else { return };
            follower = next;
            for address in changed {
                if !tell(address).await {
                    return;
                }
            }
        }
    }
}

/// A reader of the log that begins now.
pub(crate) fn follower_from_now(caller: &McpCaller) -> Result<EventFollower, ToolFailure> {
    Ok(EventFollower::from_now(&caller.town, EventFilter::default())?)
}

fn members_of(caller: &McpCaller, address: &ResourceAddress) -> Result<Vec<BeadId>, ToolFailure> {
    match address.kind {
        ResourceKind::Convoy => resources::members(caller, &address.name),
        ResourceKind::Bead | ResourceKind::Run => Ok(Vec::new()),
    }
}
