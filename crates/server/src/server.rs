//! A server, from its beginning to its end.

use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use gt_core::Networks;
use gt_daemon::daemon::open_files_max;
use gt_town::{Town, settings};
use gt_workqueue::tokens;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::access_log::AccessLog;
use crate::auth::TokenRules;
use crate::config::{Bind, ServeError, ServerConfig};
use crate::connections::ConnectionState;
use crate::deck_access::DeckAccess;
use crate::event_broadcast::EventBroadcast;
use crate::metrics::Metrics;
use crate::routes;
use crate::screens::Screens;
use crate::service::{RequestRooms, Service, SharedService};
use crate::unproven_connections::UnprovenConnections;
use crate::upkeep::run_upkeep;
use crate::wait_lines::WaitLines;

/// Threads that may wait for the store. More would only wait in another place.
const STORE_THREADS_MAX: usize = 128;

/// How long requests that are still at the store have when everything else has ended.
const STORE_SHUTDOWN_WAIT: Duration = Duration::from_secs(1);

/// A server that listens. Nothing is answered before [`Server::run`].
pub struct Server {
    listeners: Vec<(TcpListener, bool)>,
    addresses: Vec<SocketAddr>,
    service: SharedService,
    reception: ConnectionState,
    /// A daemon does the periodic work itself.
    does_upkeep: bool,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("addresses", &self.addresses).finish_non_exhaustive()
    }
}

/// Ends a server, from anywhere and as often as one likes.
#[derive(Debug, Clone)]
pub struct Stopper(CancellationToken);

impl Stopper {
    /// Lets the server answer the requests at work, and end.
    pub fn stop(&self) {
        self.0.cancel();
    }
}

impl Server {
    /// Takes the addresses and gets everything ready.
    pub fn bind(town: Town, how: ServerConfig) -> Result<Self, ServeError> {
        let limits = how.limits.within(open_files_max());
        let wants_tokens = how.require_token || (how.is_exposed() && !how.insecure);
        if wants_tokens && !how.is_deck && !tokens::any(&town).map_err(ServeError::from)? {
            return Err(ServeError::Rejected(
                "there is no token yet, so that no client could use this server; make one with gt token create, or say \
                 --insecure if every client that can reach it may do everything"
                    .to_owned(),
            ));
        }
        let proxies = settings::trusted_proxies(&town)?;
        let trusted_proxies =
            Networks::parse(&proxies).map_err(|wrong| ServeError::Rejected(wrong.to_string()))?;
        let mut listeners = Vec::new();
        for bind in &how.bind {
            listeners.extend(listen(*bind)?);
        }
        let addresses = listeners.iter().filter_map(|(listener, _)| listener.local_addr().ok());
        let addresses = addresses.collect();
        let serves_town = town.has_directory() && !how.insecure;
        let deck = DeckAccess::of(&town)?;
        let town = Arc::new(town.with_shared_commits());
        let stopping = CancellationToken::new();
        let metrics = Arc::new(Metrics::default());
        let service = Arc::new(Service {
            news: EventBroadcast::start(&town)?,
            town,
            metrics: Arc::clone(&metrics),
            keys: TokenRules::new(how.insecure, how.require_token),
            deck,
            log: AccessLog::start(how.log).map_err(ServeError::Begin)?,
            limits,
            stopping: stopping.clone(),
            rooms: RequestRooms::of(&limits),
            lines: WaitLines::default(),
            screens: Screens::default(),
            sample: Arc::default(),
            trusted_proxies,
            serves_town,
        });
        let reception = ConnectionState {
            router: routes::router(Arc::clone(&service), &how.cors),
            limits,
            metrics,
            places: Arc::new(Semaphore::new(limits.connections)),
            unproven: UnprovenConnections::of(limits.connections),
            service: Arc::clone(&service),
            stopping,
            tasks: TaskTracker::new(),
        };
        Ok(Self { listeners, addresses, service, reception, does_upkeep: !how.is_deck })
    }

    /// Where it listens.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Something that ends it.
    pub fn stopper(&self) -> Stopper {
        Stopper(self.reception.stopping.clone())
    }

    /// Ends it at Ctrl-C, or when the process is asked to end.
    pub fn run_until_stopped(self) -> Result<(), ServeError> {
        self.run_until(async {
            let ended = async {
                use tokio::signal::unix::{SignalKind, signal};
                match signal(SignalKind::terminate()) {
                    Ok(mut asked) => asked.recv().await,
                    Err(_) => std::future::pending().await,
                }
            };
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = ended => {}
            }
        })
    }

    /// Serves until its [`Stopper`] ends it.
    pub fn run(self) -> Result<(), ServeError> {
        self.run_until(std::future::pending())
    }

    fn run_until(self, told: impl Future<Output = ()>) -> Result<(), ServeError> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .thread_name("gt-serve")
            .max_blocking_threads(STORE_THREADS_MAX)
            .enable_all()
            .build()
            .map_err(ServeError::Begin)?;
        let served = runtime.block_on(self.serve(told));
        self.service.news.stop();
        // A request that is still at work after all that time is left behind: a write is in the store or is not.
        runtime.shutdown_timeout(STORE_SHUTDOWN_WAIT);
        served
    }

    async fn serve(&self, told: impl Future<Output = ()>) -> Result<(), ServeError> {
        let reception = &self.reception;
        let mut doors = Vec::new();
        for (listener, is_local) in &self.listeners {
            let listener = listener.try_clone().map_err(ServeError::Begin)?;
            let listener =
                tokio::net::TcpListener::from_std(listener).map_err(ServeError::Begin)?;
            doors.push(tokio::spawn(reception.clone().receive(listener, *is_local)));
        }
        if self.does_upkeep {
            tokio::spawn(run_upkeep(Arc::clone(&self.service)));
        }
        tokio::select! {
            () = told => reception.stopping.cancel(),
            () = reception.stopping.cancelled() => {}
        }
        for door in doors {
            // It has nothing to say.
            let _ = door.await;
        }
        reception.tasks.close();
        let _ = tokio::time::timeout(reception.limits.stop, reception.tasks.wait()).await;
        Ok(())
    }
}

/// Listens there; on loopback by both names if that can be.
fn listen(bind: Bind) -> Result<Vec<(TcpListener, bool)>, ServeError> {
    let open = |address: SocketAddr| {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        Ok(listener)
    };
    let address = bind.address();
    let failed = |source| ServeError::Listen { address, source };
    let first = open(address).map_err(failed)?;
    let mut listeners = Vec::new();
    if bind.address().ip() == std::net::Ipv4Addr::LOCALHOST
        && let Ok(first) = first.local_addr()
    {
        // Some programs mean this one when they say localhost. A machine without it is no problem.
        let second = SocketAddr::new(IpAddr::V6(Ipv6Addr::LOCALHOST), first.port());
        let second: std::io::Result<TcpListener> = open(second);
        listeners.extend(second.ok().map(|second| (second, true)));
    }
    listeners.insert(0, (first, bind.is_loopback()));
    Ok(listeners)
}
