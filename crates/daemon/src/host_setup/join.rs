//! The part of the machine that joins a town.

use std::path::{Path, PathBuf};

use gt_core::Clock;
use gt_executors::private;
use gt_town::town::DIRECTORY;
use gt_town::{Actor, Environment, OperationError, Result};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::service::{self, DaemonService};

/// The file that says that a host has not joined yet. It names the file of a password that is new with it.
const JOINING: &str = "joining";

/// The order to join a town, which goes over standard input: it has the password of the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JoinOrder {
    /// The identity of the town.
    pub town: String,
    /// The address of its store, with its password.
    pub url: String,
    /// The name of the host.
    pub name: String,
    /// How people and other hosts reach it.
    pub address: String,
    /// Its labels.
    pub labels: String,
    /// The rigs that it works on; empty is all.
    pub rigs: String,
    /// The most live runs on it; 0 is no limit.
    pub cap: u32,
}

/// Makes `directory` a host of the town, with its settings, and starts its daemon. The machine that gave the order undoes it if
/// that fails.
pub fn join(
    directory: &Path,
    order: &JoinOrder,
    program: &Path,
    environment: &Environment,
    actor: &Actor,
    clock: &dyn Clock,
) -> Result<DaemonService> {
    let marker = directory.join(DIRECTORY).join(JOINING);
    let remember = |new: Option<PathBuf>| {
        let text = new.map(|path| path.display().to_string()).unwrap_or_default();
        private::write(&marker, text).map_err(|source| failed("write", marker.clone(), source))
    };
    let store = (order.url.as_str(), order.town.as_str());
    let installed = gt_town::join(directory, store, environment, actor, clock, remember)?;
    write_settings(&installed.root, order)?;
    service::start(&installed.root, program, environment)
}

fn write_settings(root: &Path, order: &JoinOrder) -> Result<()> {
    let JoinOrder { name, address, labels, rigs, cap, .. } = order;
    let settings = json!({
        "host": {
            "name": name, "address": address, "labels": labels, "rigs": rigs, "max_polecats": cap,
        }
    });
    let path = root.join("settings").join("config.json");
    let write = || {
        std::fs::create_dir_all(root.join("settings"))?;
        std::fs::write(&path, format!("{settings:#}\n"))
    };
    write().map_err(|source| failed("write", path.clone(), source))
}

fn failed(action: &'static str, path: PathBuf, source: std::io::Error) -> OperationError {
    OperationError::File { action, path, source }
}
