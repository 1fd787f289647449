//! The hosting service of a rig, and what its failures mean for a request.

use std::path::PathBuf;
use std::time::Duration;

use gt_core::hosting::{HostedRepository, PullRequestTrust, fork_address};
use gt_core::merging::RequestHold;
use gt_core::{Rig, RigSlug, Timestamp};
use gt_executors::git::Repository;
use gt_executors::hosting::{
    HostingError, HostingProvider, HostingRefusal, HostingTool, PullRequestHead,
};

pub(super) use gt_town::hosting::NoHosting;
use gt_town::hosting::{HOSTING_FILES, hosting_of};
use gt_town::settings::{file_layers, layers_over};
use gt_town::tree_paths::Trees;
use gt_town::{OperationError, Result, Town};

/// The directory that the tools of hosting services run in.
const CALLS: &str = ".gt/hosting-calls";
/// The delay before a tool that is missing, logged out or not understood is tried again.
const TOOL_DELAY: Duration = Duration::from_mins(5);
/// The delay before a service that refused or did not answer is asked again.
const SERVICE_DELAY: Duration = Duration::from_mins(1);
/// The shortest time between two looks at pull requests.
const POLL_MIN: Duration = Duration::from_secs(1);

/// The hosting service of a rig.
pub(super) struct HostedRig {
    provider: HostingProvider,
    hosted: HostedRepository,
    directory: PathBuf,
    fork_owner: Option<String>,
    /// The repository of the rig on this machine.
    pub(super) repository: Repository,
    /// The address that branches are pushed to: the origin, or a fork of it.
    pub(super) remote: String,
    /// Whose comments start a repair.
    pub(super) trust: PullRequestTrust,
    /// The time between two looks.
    pub(super) poll: Duration,
}

impl HostedRig {
    /// The hosting service of a rig, by its setting or by the address of its origin.
    pub(super) fn of(town: &Town, rig: &Rig) -> Result<std::result::Result<Self, NoHosting>> {
        let files = file_layers(town)?;
        let layers = town.read(|reader| layers_over(&files, reader))?;
        let slug = &rig.slug;
        let (hosted, provider) = match hosting_of(town, rig, &layers.rig_hosting(slug)?) {
            Ok(found) => found,
            Err(none) => return Ok(Err(none)),
        };
        let Some(trees) = Trees::of(town, rig) else {
            return Ok(Err(NoHosting(format!("the rig {slug} has no repository"))));
        };
        let repository = trees.repository();
        let fork_owner = Some(layers.rig_pr_head(slug)?).filter(|owner| !owner.is_empty());
        let remote = match &fork_owner {
            None => rig.repo.clone(),
            Some(owner) => match fork_address(&rig.repo, owner) {
                Ok(remote) => remote,
                Err(why) => return Ok(Err(NoHosting(why.to_string()))),
            },
        };
        let directory = town.root().join(CALLS);
        gt_executors::private::create_dir_all(&directory).map_err(|source| {
            OperationError::File { action: "create", path: directory.clone(), source }
        })?;
        let (trust, poll) = (layers.pr_trust()?, layers.pr_poll()?.max(POLL_MIN));
        Ok(Ok(Self { provider, hosted, directory, fork_owner, repository, remote, trust, poll }))
    }

    /// The tool.
    pub(super) fn tool<'a>(&'a self, town: &'a Town) -> HostingTool<'a> {
        HostingTool::new(&self.provider, &self.hosted, &self.directory, town.clock())
    }

    /// A branch as the service names it.
    pub(super) fn head<'a>(&'a self, branch: &'a str) -> PullRequestHead<'a> {
        PullRequestHead { fork_owner: self.fork_owner.as_deref(), branch }
    }
}

/// What a failure of the service means for a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HostingFailure {
    /// Why it is held; nothing if it is only tried later.
    pub(super) hold: Option<RequestHold>,
    /// The failure in words.
    pub(super) words: String,
    /// When it is tried again; nothing if a person has to do something first.
    pub(super) retry_at: Option<Timestamp>,
}

impl HostingFailure {
    /// The meaning of an error at this time, for this rig.
    pub(super) fn of(error: &HostingError, rig: &RigSlug, now: Timestamp) -> Self {
        let words = error.to_string();
        let held = |hold, words, retry_at| Self { hold: Some(hold), words, retry_at };
        match error {
            HostingError::ToolMissing { program } => {
                let words = format!("{words}; install {program}, or name it in {HOSTING_FILES}");
                held(RequestHold::HostingTool, words, Some(now.plus(TOOL_DELAY)))
            }
            HostingError::LoggedOut { .. } | HostingError::Unreadable { .. } => {
                held(RequestHold::HostingTool, words, Some(now.plus(TOOL_DELAY)))
            }
            HostingError::RateLimited { until, .. } => {
                Self { hold: None, words, retry_at: Some(*until) }
            }
            HostingError::Unreachable { .. } => {
                Self { hold: None, words, retry_at: Some(now.plus(SERVICE_DELAY)) }
            }
            HostingError::Refused { reason, .. } => match reason {
                HostingRefusal::ForeignPullRequest => {
                    held(RequestHold::PullRequestChanged, words, None)
                }
                HostingRefusal::NotSupported => {
                    let words = format!(
                        "{words}; gt config unset rig.{rig}.pr_head pushes to the origin itself"
                    );
                    held(RequestHold::HostingTool, words, Some(now.plus(TOOL_DELAY)))
                }
                HostingRefusal::NotFound | HostingRefusal::Protected | HostingRefusal::Other => {
                    held(RequestHold::OriginRefused, words, Some(now.plus(TOOL_DELAY)))
                }
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_failures_that_a_person_ends_hold_a_request() {
        let now = Timestamp::from_nanos(1_790_000_000_000_000_000);
        let rig = RigSlug::parse("web").unwrap();
        let text = |text: &str| text.to_owned();
        let refused = |reason| HostingError::Refused { reason, words: text("no") };
        let logged_out = HostingError::LoggedOut {
            program: text("gh"),
            host: text("github.com"),
            command: text("gh auth login"),
        };
        let until = now.plus(Duration::from_secs(700));
        let tool = Some(RequestHold::HostingTool);
        for (error, hold, retry_at) in [
            (HostingError::ToolMissing { program: text("gh") }, tool, Some(now.plus(TOOL_DELAY))),
            (logged_out, tool, Some(now.plus(TOOL_DELAY))),
            (HostingError::RateLimited { until, words: text("slow down") }, None, Some(until)),
            (
                HostingError::Unreachable { words: text("no route") },
                None,
                Some(now.plus(SERVICE_DELAY)),
            ),
            (refused(HostingRefusal::NotSupported), tool, Some(now.plus(TOOL_DELAY))),
            (
                refused(HostingRefusal::Protected),
                Some(RequestHold::OriginRefused),
                Some(now.plus(TOOL_DELAY)),
            ),
            (
                refused(HostingRefusal::ForeignPullRequest),
                Some(RequestHold::PullRequestChanged),
                None,
            ),
        ] {
            let failure = HostingFailure::of(&error, &rig, now);
            assert_eq!((failure.hold, failure.retry_at), (hold, retry_at), "{error}");
            assert!(failure.words.contains(&error.to_string()), "{}", failure.words);
        }
    }
}
