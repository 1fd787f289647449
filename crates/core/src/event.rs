//! Events: a record of each change.

use std::fmt;

use crate::{BeadId, Json, RigSlug, RunId, Timestamp};

macro_rules! event_kinds {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// The kinds of events. Readers must expect kinds of newer versions.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum EventKind {
            $($(#[$doc])* $variant,)*
            /// A kind this version does not know.
            Other(String),
        }

        impl EventKind {
            /// Every kind this version writes.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The name.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $name,)*
                    Self::Other(name) => name,
                }
            }

            /// The kind of this name.
            pub fn from_name(name: &str) -> Self {
                match name {
                    $($name => Self::$variant,)*
                    other => Self::Other(other.to_owned()),
                }
            }
        }
    };
}

event_kinds! {
    /// A bead was made.
    Created = "created",
    /// A bead came in, or was changed, by an import.
    Imported = "imported",
    /// Fields of a bead changed.
    Updated = "updated",
    /// A bead's status changed without being claimed, closed or reopened.
    StatusChanged = "status_changed",
    /// A bead was claimed.
    Claimed = "claimed",
    /// A bead was closed.
    Closed = "closed",
    /// A closed bead was opened again.
    Reopened = "reopened",
    /// A bead was deleted.
    Deleted = "deleted",
    /// The last thing that blocked a bead is gone.
    Unblocked = "unblocked",
    /// A label was added.
    LabelAdded = "label_added",
    /// A label was removed.
    LabelRemoved = "label_removed",
    /// A dependency was added.
    DependencyAdded = "dependency_added",
    /// A dependency was removed.
    DependencyRemoved = "dependency_removed",
    /// A dependency changed its type or metadata.
    DependencyChanged = "dependency_changed",
    /// A bead was commented on.
    Commented = "commented",
    /// A rig was added.
    RigAdded = "rig_added",
    /// A rig changed its state or settings.
    RigChanged = "rig_changed",
    /// A rig was removed.
    RigRemoved = "rig_removed",
    /// A setting was changed.
    SettingChanged = "setting_changed",
    /// A bead was scheduled.
    Scheduled = "scheduled",
    /// A bead is not scheduled any more, and was not dispatched.
    Unscheduled = "unscheduled",
    /// A person ended the backoff or cooldown of a scheduled bead.
    RetryNow = "retry_now",
    /// A context could not be started too often and was given up.
    CircuitBroken = "circuit_broken",
    /// A context can never start as it is and was given up.
    Quarantined = "quarantined",
    /// A run has its slot and is being started.
    RunStarting = "run_starting",
    /// A run could not be started.
    StartFailed = "start_failed",
    /// A run's worker has taken it.
    Dispatched = "dispatched",
    /// A fresh session goes on with a run.
    HandedOver = "handed_over",
    /// The worker of a run has said nothing for long, and a person is asked.
    RunSilent = "run_silent",
    /// The worker of a run that was silent goes on.
    RunGoesOn = "run_goes_on",
    /// The agent of a run waits for something outside, or has been silent for too long.
    RunBlocked = "run_blocked",
    /// The agent of a run that was blocked goes on.
    RunUnblocked = "run_unblocked",
    /// A run ended well.
    RunDone = "run_done",
    /// A run ended badly.
    RunFailed = "run_failed",
    /// A run ended without saying how.
    RunLost = "run_lost",
    /// A person or an agent ended a run.
    RunCancelled = "run_cancelled",
    /// The usage of a run is known.
    RunUsed = "run_used",
    /// Everything that a convoy tracks is done.
    ConvoyLanded = "convoy_landed",
    /// A commit of a run was accepted.
    WorkAccepted = "work_accepted",
    /// The work of a run is on the branch it was made for.
    Landed = "landed",
    /// The uncommitted work in the tree of a run was saved.
    Rescued = "rescued",
    /// A tree was moved away.
    TreeMoved = "tree_moved",
    /// A tree that was moved away is back.
    TreeRestored = "tree_restored",
    /// A tree that was moved away will soon be gone for good.
    TreeDue = "tree_due",
    /// A tree that was moved away is gone for good.
    TreePurged = "tree_purged",
    /// A bead used up its attempts, and a person is asked.
    Escalated = "escalated",
    /// Nothing is started any more.
    Paused = "paused",
    /// Work is started again.
    Resumed = "resumed",
    /// Nothing is started with a runtime or an account for a while: too many runs came to nothing at once.
    Parked = "parked",
    /// Nothing is started with an account or a runtime until its usage limit has passed.
    Limited = "limited",
    /// Work is started with a runtime or an account again.
    Unparked = "unparked",
    /// A hook without a worker was released.
    HookReleased = "hook_released",
    /// An account was added, changed or removed.
    AccountChanged = "account_changed",
    /// A worker has finished a step of its run.
    StepDone = "step_done",
    /// A message was sent.
    MessageSent = "message_sent",
    /// A message was put where its recipient looks.
    MessageDelivered = "message_delivered",
    /// The recipient of a message has read it.
    MessageSeen = "message_seen",
    /// Messages that were read long ago are gone.
    MessagesPurged = "messages_purged",
    /// Old events were deleted.
    EventsPurged = "events_purged",
    /// A worker or a person asks for a person.
    HelpWanted = "help_wanted",
    /// A token was made or revoked.
    TokenChanged = "token_changed",
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Something that happened, as its writer tells it. Time, actor and number are added by the
/// transaction that writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewEvent {
    /// The kind of change.
    pub kind: EventKind,
    /// The bead.
    pub bead: Option<BeadId>,
    /// The rig.
    pub rig: Option<RigSlug>,
    /// The run.
    pub run: Option<RunId>,
    /// The details, as a JSON object.
    pub payload: Json,
}

/// Something that happened, as it is remembered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Its place in history: gapless, in the order of commits.
    pub number: u64,
    /// The time.
    pub at: Timestamp,
    /// The actor that made the change.
    pub actor: String,
    /// The kind of change.
    pub kind: EventKind,
    /// The bead.
    pub bead: Option<BeadId>,
    /// The rig.
    pub rig: Option<RigSlug>,
    /// The run.
    pub run: Option<String>,
    /// The details, as a JSON object.
    pub payload: Json,
}
