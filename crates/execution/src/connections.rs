//! Connections of workers and checks to a server of their own town.

use std::net::SocketAddr;

use gt_executors::runs::{ProcessOwner, owner_of_peer};

use gt_town::Town;

/// The run or check, in words, whose process has the other end of a connection from this address of this machine. Nothing for
/// a person.
pub fn worker_behind(town: &Town, peer: SocketAddr) -> Option<String> {
    Some(match owner_of_peer(peer, town.root(), &town.runs_directory())? {
        ProcessOwner::Run(Some(run)) => format!("the run {run}"),
        ProcessOwner::Run(None) => "a run".to_owned(),
        ProcessOwner::Check(check) => format!("the check {check}"),
    })
}
