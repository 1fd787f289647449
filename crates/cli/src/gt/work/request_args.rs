//! The arguments with which an agent asks for work, shared by `gt work next` and `gt work poll`.

use clap::Args;
use gt_core::Invalid;
use gt_core::time::parse_duration;
use gt_core::work::{Lease, ProjectRef, work_type};
use gt_workqueue::work::NextRequest;

use crate::values::comma_separated;

/// The agent that asks for work, and the work it accepts.
#[derive(Debug, Args)]
pub(super) struct WorkRequestArgs {
    /// The agent that asks for work
    #[arg(long, value_name = "NAME")]
    agent: String,
    /// Only these kinds of work; several are separated by commas
    #[arg(long = "type", value_name = "TYPES")]
    kinds: Vec<String>,
    /// Only work of this project: a UUID or the name of a rig
    #[arg(long, value_name = "PROJECT", value_parser = ProjectRef::parse)]
    project: Option<ProjectRef>,
    /// Only what was dispatched to the agent; the setting work.claim says so for every agent
    #[arg(long)]
    dispatched: bool,
    /// How long an item is the agent's without another word, from 30s to 1h
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = lease)]
    lease: Lease,
}

impl WorkRequestArgs {
    /// The same as a request.
    pub(super) fn request(&self) -> Result<NextRequest, Invalid> {
        let kinds = comma_separated(&self.kinds);
        Ok(NextRequest {
            agent: self.agent.clone(),
            kinds: kinds.iter().map(|kind| work_type(kind)).collect::<Result<_, _>>()?,
            project: self.project.clone(),
            dispatched: self.dispatched,
            lease: self.lease,
        })
    }
}

/// Reads a lease.
pub(super) fn lease(text: &str) -> Result<Lease, Invalid> {
    Lease::of_seconds(i64::try_from(parse_duration(text)?.as_secs()).unwrap_or(i64::MAX))
}
