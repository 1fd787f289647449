//! The hosting service of a rig, and what its failures mean for a request.

use std::path::PathBuf;
use std::time::Duration;

use gt_core::hosting::{
    HostedRepository, LOOK_DELAY_MAX, PolledPullRequest, PullRequest, PullRequestTrust,
    fork_address,
};
use gt_core::merging::RequestHold;
use gt_core::{Rig, RigSlug, Timestamp};
use gt_executors::git::{Commit, GitError, Push, Repository};
use gt_executors::hosting::{
    HostingError, HostingProvider, HostingRefusal, HostingTool, NewPullRequest, OpenedPullRequest,
    PullRequestHead,
};

use super::super::local_machine::DELETE_TIME_MAX;
use super::super::machine::HostingService;
use gt_town::hosting::{HOSTING_FILES, NoHosting, hosting_of};
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

/// The hosting service of a rig, through the tool of the user and git.
pub(in super::super) struct HostedRig<'a> {
    town: &'a Town,
    provider: HostingProvider,
    hosted: HostedRepository,
    directory: PathBuf,
    fork_owner: Option<String>,
    /// The repository of the rig on this machine.
    repository: Repository,
    /// The address that branches are pushed to: the origin, or a fork of it.
    remote: String,
    trust: PullRequestTrust,
    poll: Duration,
}

impl<'a> HostedRig<'a> {
    /// The hosting service of a rig, by its setting or by the address of its origin.
    pub(in super::super) fn of(
        town: &'a Town,
        rig: &Rig,
    ) -> Result<std::result::Result<Self, NoHosting>> {
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
        Ok(Ok(Self {
            town,
            provider,
            hosted,
            directory,
            fork_owner,
            repository,
            remote,
            trust,
            poll,
        }))
    }

    fn tool(&self) -> HostingTool<'_> {
        HostingTool::new(&self.provider, &self.hosted, &self.directory, self.town.clock())
    }
}

impl HostingService for HostedRig<'_> {
    fn login(&self) -> std::result::Result<String, HostingError> {
        self.tool().login()
    }

    fn show(&self, number: u64) -> std::result::Result<PullRequest, HostingError> {
        self.tool().show(number)
    }

    fn poll(&self, numbers: &[u64]) -> std::result::Result<Vec<PolledPullRequest>, HostingError> {
        self.tool().poll(numbers)
    }

    fn open(
        &self,
        new: &NewPullRequest<'_>,
    ) -> std::result::Result<OpenedPullRequest, HostingError> {
        let fork_owner = self.fork_owner.as_deref();
        let head = PullRequestHead { fork_owner, ..new.head };
        self.tool().open(&NewPullRequest { head, ..*new })
    }

    fn update(
        &self,
        number: u64,
        title: &str,
        body: &str,
    ) -> std::result::Result<(), HostingError> {
        self.tool().update(number, title, body)
    }

    fn hosted_tip(&self, branch: &str) -> std::result::Result<Option<Commit>, GitError> {
        self.repository.hosted_tip(&self.remote, branch)
    }

    fn push(
        &self,
        commit: &Commit,
        branch: &str,
        there: Option<&Commit>,
        limit: Duration,
    ) -> std::result::Result<Push, GitError> {
        self.repository.push_hosted(&self.remote, commit, branch, there, limit)
    }

    fn delete(&self, branch: &str, tip: &Commit) -> std::result::Result<Push, GitError> {
        self.repository.delete_hosted(&self.remote, branch, tip, DELETE_TIME_MAX)
    }

    fn trust(&self) -> &PullRequestTrust {
        &self.trust
    }

    fn poll_interval(&self) -> Duration {
        self.poll
    }
}

/// The consequence of a failure of the service for a request.
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
                // A time further off would look as if the clock had been set back since.
                let until = (*until).min(now.plus(LOOK_DELAY_MAX));
                Self { hold: None, words, retry_at: Some(until) }
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
                HostingError::RateLimited {
                    until: now.plus(Duration::from_hours(30)),
                    words: text("slow down"),
                },
                None,
                Some(now.plus(LOOK_DELAY_MAX)),
            ),
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
