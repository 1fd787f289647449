//! The state that every handler can use.

use std::sync::Arc;

use gt_core::{Networks, Timestamp};
use gt_town::Town;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use crate::access_log::AccessLog;
use crate::auth::{RequestCaller, TokenRules};
use crate::config::ServerLimits;
use crate::deck_access::DeckAccess;
use crate::event_broadcast::EventBroadcast;
use crate::metrics::Metrics;
use crate::problem::RequestProblem;
use crate::screens::Screens;
use crate::town_metrics::KeptSample;
use crate::wait_lines::WaitLines;

/// The state that every handler can use.
pub(crate) struct Service {
    pub(crate) town: Arc<Town>,
    pub(crate) news: Arc<EventBroadcast>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) keys: TokenRules,
    pub(crate) deck: DeckAccess,
    pub(crate) log: AccessLog,
    pub(crate) limits: ServerLimits,
    pub(crate) stopping: CancellationToken,
    pub(crate) rooms: RequestRooms,
    pub(crate) lines: WaitLines,
    pub(crate) screens: Screens,
    /// The numbers about the town that a monitor asked for last.
    pub(crate) sample: Arc<KeptSample>,
    pub(crate) trusted_proxies: Networks,
    /// Whether the routes of a town are there: always behind tokens, and not for a work queue without a town.
    pub(crate) serves_town: bool,
}

/// All handlers share one.
pub(crate) type SharedService = Arc<Service>;

/// How many of each kind of request there may be at a time. A request that only waits takes no place from those that
/// work.
#[derive(Debug, Clone)]
pub(crate) struct RequestRooms {
    requests: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
    listeners: Arc<Semaphore>,
}

/// The use of a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RoomKind {
    Request,
    Waiting,
    Listener,
}

impl RequestRooms {
    pub(crate) fn of(limits: &ServerLimits) -> Self {
        let places = |count| Arc::new(Semaphore::new(count));
        Self {
            requests: places(limits.requests),
            waiting: places(limits.waiting),
            listeners: places(limits.listeners),
        }
    }

    /// Takes a place, if there is one.
    pub(crate) fn enter(
        &self,
        room: RoomKind,
    ) -> Result<OwnedSemaphorePermit, Box<RequestProblem>> {
        let (places, what) = match room {
            RoomKind::Request => (&self.requests, "requests"),
            RoomKind::Waiting => (&self.waiting, "requests that wait for work"),
            RoomKind::Listener => (&self.listeners, "listeners"),
        };
        Arc::clone(places).try_acquire_owned().map_err(|_| {
            RequestProblem::busy(format!("there are too many {what} at the moment; try again"))
        })
    }
}

impl Service {
    pub(crate) fn now(&self) -> Timestamp {
        self.town.now()
    }

    /// The same for an operation that changes anything: it is done in the name of the caller, and listeners hear of
    /// it.
    pub(crate) async fn change<T: Send + 'static, E: Into<Box<RequestProblem>> + Send + 'static>(
        &self,
        caller: &RequestCaller,
        work: impl FnOnce(&Town) -> Result<T, E> + Send + 'static,
    ) -> Result<T, Box<RequestProblem>> {
        // Its body may have taken long to arrive, and the caller may have waited for work.
        self.keys.confirm(self, caller).await?;
        let done = match caller.town(&self.town) {
            None => self.ask(work).await?,
            Some(town) => self.ask(move |_| work(&town)).await?,
        };
        self.news.ring();
        Ok(done)
    }

    /// Has something done that may wait for the store, on a thread that may.
    pub(crate) async fn ask<T: Send + 'static, E: Into<Box<RequestProblem>> + Send + 'static>(
        &self,
        work: impl FnOnce(&Town) -> Result<T, E> + Send + 'static,
    ) -> Result<T, Box<RequestProblem>> {
        let town = Arc::clone(&self.town);
        match tokio::task::spawn_blocking(move || work(&town)).await {
            Ok(done) => done.map_err(Into::into),
            Err(_) => Err(internal_error()),
        }
    }

    /// The same for reading one small thing by its name. From a file it is read here and now: waking another thread for
    /// it takes several times as long.
    pub(crate) async fn look_up<
        T: Send + 'static,
        E: Into<Box<RequestProblem>> + Send + 'static,
    >(
        &self,
        work: impl FnOnce(&Town) -> Result<T, E> + Send + 'static,
    ) -> Result<T, Box<RequestProblem>> {
        match self.town.store_path() {
            Some(_) => work(&self.town).map_err(Into::into),
            None => self.ask(work).await,
        }
    }
}

fn internal_error() -> Box<RequestProblem> {
    RequestProblem::broken(
        "something went wrong here that should not have; the log of the server says more",
    )
}
