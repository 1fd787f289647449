//! The request of a sling, and its result.

use gt_core::BeadId;
use gt_core::decide::WaitReason;
use gt_core::schedule::{ContextId, Merge, RunId};
use gt_store::Pause;

use gt_beads::convoys::NewConvoy;
use gt_town::OperationError;

/// How slung work is to be done.
#[derive(Debug, Clone, Default)]
pub struct SlingOptions {
    /// The formula to apply instead of the usual one.
    pub formula: Option<String>,
    /// Values for its variables.
    pub vars: Vec<(String, String)>,
    /// Instructions in plain words.
    pub args: Option<String>,
    /// How the work reaches the target branch.
    pub merge: Option<Merge>,
    /// The branch to begin from.
    pub base_branch: Option<String>,
    /// The branch is kept and not merged.
    pub no_merge: bool,
    /// It is reviewed before it is over.
    pub review_only: bool,
    /// A person has to approve it before it lands, however it lands.
    pub review: bool,
    /// The account it is charged to.
    pub account: Option<String>,
    /// The preset that says which program works.
    pub runtime: Option<String>,
    /// A fresh session for each step.
    pub ralph: bool,
    /// No formula at all.
    pub hook_raw_bead: bool,
    /// The user who slings looks after the convoy.
    pub owned: bool,
    /// No convoy is made.
    pub no_convoy: bool,
    /// Past a prefix that does not fit, an assignee, and a hook without a run.
    pub force: bool,
    /// How often a run that fails is tried again.
    pub retries: u32,
    /// The host that is to start it, by its name or identity.
    pub host: Option<String>,
}

impl SlingOptions {
    /// The flags that are set and that only single beads understand.
    pub(super) fn task_only(&self) -> Vec<&'static str> {
        [
            (self.account.is_some(), "--account"),
            (self.runtime.is_some(), "--agent"),
            (self.host.is_some(), "--host"),
            (self.ralph, "--ralph"),
            (self.args.is_some(), "--args"),
            (!self.vars.is_empty(), "--var"),
            (self.merge.is_some(), "--merge"),
            (self.base_branch.is_some(), "--base-branch"),
            (self.no_convoy, "--no-convoy"),
            (self.owned, "--owned"),
            (self.no_merge, "--no-merge"),
        ]
        .into_iter()
        .filter_map(|(set, name)| set.then_some(name))
        .collect()
    }
}

/// How what is slung travels.
#[derive(Debug, Clone, Default)]
pub enum ConvoyChoice {
    /// In a convoy of its own, unless it is in one or the request wants none.
    #[default]
    ByItself,
    /// It is a convoy that is staged, and begins now.
    Launched,
    /// In a convoy that is made for it.
    In(NewConvoy),
    /// With this convoy, which is there.
    With(String),
}

impl ConvoyChoice {
    /// Whether it goes whole or not at all.
    pub(super) fn is_whole(&self) -> bool {
        !matches!(self, Self::ByItself)
    }
}

/// Something to be slung.
#[derive(Debug, Clone, Default)]
pub struct SlingRequest {
    /// Beads (or a formula, with `on`), and perhaps a target as the last.
    pub arguments: Vec<String>,
    /// The beads that the formula is for.
    pub on: Vec<String>,
    /// How it is to be done.
    pub flags: SlingOptions,
    /// Names that are neither a bead nor a target are left out, instead of stopping the request.
    pub skip_unknown: bool,
    /// It was queued: in direct mode it waits for a cycle by hand.
    pub queue: bool,
    /// How it travels.
    pub travel: ConvoyChoice,
    /// Nothing is changed.
    pub rehearsal: bool,
}

/// The result for one bead.
#[derive(Debug)]
pub struct SlingEntry {
    /// The input as written, or the bead behind it.
    pub name: String,
    /// The bead, if there is one.
    pub bead: Option<BeadId>,
    /// Its title.
    pub title: String,
    /// The rig it goes to.
    pub rig: Option<String>,
    /// Its result.
    pub outcome: SlingOutcome,
    /// A further consequence that the user should know.
    pub consequence: Option<String>,
}

/// The result of slinging a bead.
#[derive(Debug)]
pub enum SlingOutcome {
    /// It is scheduled, for these reasons not started; none means that the next cycle starts it, unless others
    /// are before it in line.
    Scheduled(ContextId, Vec<WaitReason>),
    /// It was started.
    Started(RunId),
    /// It was scheduled, and its start failed.
    NotStarted(ContextId, String),
    /// It is that way already.
    Nothing(String),
    /// It was left out of its epic or convoy, for this reason.
    Skipped(SkipReason, String),
    /// It was refused.
    Refused(OperationError),
}

/// Why a part of an epic or a convoy was left out, as far as it is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SkipReason {
    /// It is over.
    Closed,
    /// A worker has it.
    Running,
    /// An agent or a person has it, or is to have it.
    Assigned,
    /// Its type is not dispatched.
    Type,
    /// No bead and no target has this name.
    Unknown,
    /// Anything else.
    Other,
}

impl SkipReason {
    /// A short name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Running => "running",
            Self::Assigned => "assigned",
            Self::Type => "of a type that is not dispatched",
            Self::Unknown => "unknown",
            Self::Other => "not dispatchable",
        }
    }

    /// A short name that programs can rely on.
    pub fn code(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Running => "running",
            Self::Assigned => "assigned",
            Self::Type => "not-slingable",
            Self::Unknown => "unknown",
            Self::Other => "not-dispatchable",
        }
    }
}

/// The result of a sling.
#[derive(Debug, Default)]
pub struct SlingReport {
    /// The result for each bead, in order.
    pub entries: Vec<SlingEntry>,
    /// The unfolded container, `epic` or `convoy`, if there was one.
    pub container: Option<(&'static str, BeadId)>,
    /// The convoy that was made, or joined.
    pub convoy: Option<BeadId>,
    /// The convoy was made because none was named.
    pub made_by_itself: bool,
    /// The existing beads that a convoy tracks now.
    pub added: Vec<BeadId>,
    /// Whether it waits for a slot instead of starting at once.
    pub deferred: bool,
    /// The pause of all starts, if there is one.
    pub paused: Option<Pause>,
    /// The numbers of the contexts that were made.
    pub contexts: Vec<u64>,
}
