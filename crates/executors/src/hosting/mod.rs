//! Hosting services, through the tools that their users have: `gh` and `glab`.
//!
//! A provider is a file: argument templates, paths into JSON, and the texts by which a failure is told from another. A
//! [`HostingTool`] is a provider for one repository. It starts the user's tool with the user's environment, because it
//! acts as the user; it runs in a directory of ours and names the repository in each call, so no clone can change what
//! is asked. The tool never merges.

mod awaited;
mod failure;
mod json_path;
mod limited_call;
mod provider;
mod reading;
mod tool;

pub use awaited::{AwaitedObject, awaited_state, latest_workflow_runs};
pub use failure::{HostingError, HostingRefusal};
pub use provider::{HostingProvider, InvalidProvider, PROVIDERS, provider_for_host};
pub use tool::{
    FoundPullRequest, HOSTING_CALL_LIMIT, HostingTool, NewPullRequest, OpenedPullRequest,
    PullRequestHead, open_once,
};
