//! A server in this process, over a store in memory.

use std::sync::Arc;
use std::thread::JoinHandle;

use gt_scheduling::Consequences;
use gt_server::{Bind, ServeError, Server, ServerConfig, ServerLimits, Stopper};
use gt_testkit::http::{self, HttpAnswer};
use gt_town::{Actor, SystemClock, Town};

/// A server that ends with its test.
pub(crate) struct Served {
    pub(crate) address: String,
    stopper: Stopper,
    thread: Option<JoinHandle<Result<(), ServeError>>>,
}

impl Served {
    pub(crate) fn with(limits: ServerLimits) -> Self {
        let actor = Actor { name: "api".to_owned(), owner: String::new() };
        let town = Town::in_memory(actor, Arc::new(SystemClock), Arc::new(Consequences)).unwrap();
        Self::of(town, ServerConfig { limits, ..ServerConfig::on(vec![Bind::loopback(0)]) })
    }

    pub(crate) fn of(town: Town, serving: ServerConfig) -> Self {
        let server = Server::bind(town, serving).unwrap();
        let address = server.addresses()[0].to_string();
        let stopper = server.stopper();
        Self { address, stopper, thread: Some(std::thread::spawn(move || server.run())) }
    }

    pub(crate) fn get(&self, path: &str) -> HttpAnswer {
        http::ask(&self.address, "GET", path, &[], "")
    }

    pub(crate) fn post(&self, path: &str, body: &str) -> HttpAnswer {
        http::ask(&self.address, "POST", path, &[("content-type", "application/json")], body)
    }

    pub(crate) fn patch(&self, path: &str, body: &str) -> HttpAnswer {
        http::ask(&self.address, "PATCH", path, &[("content-type", "application/json")], body)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stopper.stop();
        let ended = self.thread.take().map(JoinHandle::join);
        if !std::thread::panicking() {
            assert!(matches!(ended, Some(Ok(Ok(())))), "the server ends by itself");
        }
    }
}
