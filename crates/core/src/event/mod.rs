//! Events: a record of each change.

mod changed_fields;
pub mod convoy_replay;
mod payload;
pub mod replay;
#[cfg(test)]
mod tests;
mod text_values;

use std::fmt;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{BeadId, Invalid, Json, RigSlug, RunId, Timestamp};

pub use changed_fields::{CapChange, ChangedFields, ValueChange};
pub use payload::*;

macro_rules! events {
    ($($(#[doc = $doc:literal])* $variant:ident($payload:ident) = $name:literal,)*) => {
        /// The kinds of events. Readers must expect kinds of newer versions.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum EventKind {
            $($(#[doc = $doc])* $variant,)*
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

            /// The change that an event of this kind tells of, in a sentence.
            pub fn meaning(&self) -> &'static str {
                match self {
                    $(Self::$variant => concat!($($doc),*).trim_ascii(),)*
                    Self::Other(_) => "",
                }
            }

            /// The fields of the payload, each with its meaning.
            pub fn payload_fields(&self) -> &'static [PayloadField] {
                match self {
                    $(Self::$variant => $payload::FIELDS,)*
                    Self::Other(_) => &[],
                }
            }
        }

        /// The details of an event. It is JSON only in the log and in what is made from it.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum EventPayload {
            $($(#[doc = $doc])* $variant($payload),)*
            /// An event of a kind, or with details, that this version does not know.
            Other {
                /// The name of its kind.
                kind: String,
                /// The details as they were written.
                json: Json,
            },
        }

        impl EventPayload {
            /// Reads the details of an event. Fields that are not known are ignored, and most may be missing, because
            /// earlier and later versions write to the same log.
            pub fn parse(kind: &EventKind, json: &Json) -> Self {
                let known = match kind {
                    $(EventKind::$variant => read(json).map(Self::$variant),)*
                    EventKind::Other(_) => None,
                };
                known.unwrap_or_else(|| Self::Other {
                    kind: kind.as_str().to_owned(),
                    json: json.clone(),
                })
            }

            /// The kind of event that has these details.
            pub fn kind(&self) -> EventKind {
                match self {
                    $(Self::$variant(_) => EventKind::$variant,)*
                    Self::Other { kind, .. } => EventKind::from_name(kind),
                }
            }

            /// The JSON of the details.
            pub fn to_json(&self) -> Result<Json, Invalid> {
                match self {
                    $(Self::$variant(details) => write(details),)*
                    Self::Other { json, .. } => Ok(json.clone()),
                }
            }
        }
    };
}

events! {
    /// A bead was made.
    Created(BeadCreated) = "created",
    /// A bead came in, or was changed, by an import.
    Imported(BeadImported) = "imported",
    /// Fields of a bead changed.
    Updated(BeadChanged) = "updated",
    /// A bead's status changed without being claimed, closed or reopened.
    StatusChanged(BeadChanged) = "status_changed",
    /// A bead was claimed.
    Claimed(BeadChanged) = "claimed",
    /// A bead was closed.
    Closed(BeadChanged) = "closed",
    /// A closed bead was opened again.
    Reopened(BeadChanged) = "reopened",
    /// A bead was deleted.
    Deleted(BeadDeleted) = "deleted",
    /// The last thing that blocked a bead is gone.
    Unblocked(BeadNamed) = "unblocked",
    /// A label was added.
    LabelAdded(LabelChanged) = "label_added",
    /// A label was removed.
    LabelRemoved(LabelChanged) = "label_removed",
    /// A dependency was added.
    DependencyAdded(EdgeChanged) = "dependency_added",
    /// A dependency was removed.
    DependencyRemoved(EdgeChanged) = "dependency_removed",
    /// A dependency changed its type or metadata.
    DependencyChanged(EdgeChanged) = "dependency_changed",
    /// A bead was commented on.
    Commented(CommentAdded) = "commented",
    /// A rig was added.
    RigAdded(RigNamed) = "rig_added",
    /// A rig changed its state or settings.
    RigChanged(RigFieldChanged) = "rig_changed",
    /// A rig was removed.
    RigRemoved(RigNamed) = "rig_removed",
    /// A setting was changed.
    SettingChanged(SettingValues) = "setting_changed",
    /// A bead was scheduled.
    Scheduled(ContextOpened) = "scheduled",
    /// A bead is not scheduled any more, and was not dispatched.
    Unscheduled(ContextEnded) = "unscheduled",
    /// A person ended the backoff or cooldown of a scheduled bead.
    RetryNow(ContextNamed) = "retry_now",
    /// A context could not be started too often and was given up.
    CircuitBroken(ContextEnded) = "circuit_broken",
    /// A context can never start as it is and was given up.
    Quarantined(ContextEnded) = "quarantined",
    /// A run has its slot and is being started.
    RunStarting(RunTaken) = "run_starting",
    /// A run could not be started.
    StartFailed(RunEnded) = "start_failed",
    /// A run's worker has taken it.
    Dispatched(RunTaken) = "dispatched",
    /// A fresh session goes on with a run.
    HandedOver(SessionBegun) = "handed_over",
    /// The worker of a run has said nothing for long, and a person is asked.
    RunSilent(SilentSince) = "run_silent",
    /// The worker of a run that was silent goes on.
    RunGoesOn(SilentSince) = "run_goes_on",
    /// The agent of a run waits for something outside, or has been silent for too long.
    RunBlocked(RunWaits) = "run_blocked",
    /// The agent of a run that was blocked goes on.
    RunUnblocked(RunTaken) = "run_unblocked",
    /// A run ended well.
    RunDone(RunEnded) = "run_done",
    /// A run ended badly.
    RunFailed(RunEnded) = "run_failed",
    /// A run ended without saying how.
    RunLost(RunEnded) = "run_lost",
    /// A person or an agent ended a run.
    RunCancelled(RunEnded) = "run_cancelled",
    /// The usage of a run is known.
    RunUsed(RunUsage) = "run_used",
    /// Everything that a convoy tracks is done.
    ConvoyLanded(ConvoyTotals) = "convoy_landed",
    /// A commit of a run was accepted.
    WorkAccepted(AcceptedWork) = "work_accepted",
    /// The work of a run is on the branch it was made for.
    Landed(LandedWork) = "landed",
    /// A merge request was made.
    RequestOpened(RequestChange) = "mr_opened",
    /// A merge request changed its state.
    RequestChanged(RequestChange) = "mr_changed",
    /// A person decided about a merge request, or commented on it.
    Reviewed(ReviewDetails) = "reviewed",
    /// A merge queue was paused or resumed, or its target began or ceased to fail a check.
    QueueChanged(QueueChange) = "mq_changed",
    /// The uncommitted work in the tree of a run was saved.
    Rescued(RescuedWork) = "rescued",
    /// A tree was moved away.
    TreeMoved(TreePlace) = "tree_moved",
    /// A tree that was moved away is back.
    TreeRestored(TreePlace) = "tree_restored",
    /// A tree that was moved away will soon be gone for good.
    TreeDue(TreeDeadline) = "tree_due",
    /// A tree that was moved away is gone for good.
    TreePurged(TreePlace) = "tree_purged",
    /// A bead used up its attempts, and a person is asked.
    Escalated(AttemptsUsed) = "escalated",
    /// A run was over a limit of its own and was ended, and a person is asked.
    OverLimit(LimitReached) = "over_limit",
    /// Nothing is started any more.
    Paused(PauseChanged) = "paused",
    /// Work is started again.
    Resumed(PauseChanged) = "resumed",
    /// Nothing is started with a runtime or an account for a while: too many runs came to nothing at once.
    Parked(ParkBegun) = "parked",
    /// Nothing is started with an account or a runtime until its usage limit has passed.
    Limited(ParkBegun) = "limited",
    /// Work is started with a runtime or an account again.
    Unparked(ParkEnded) = "unparked",
    /// A hook without a worker was released.
    HookReleased(BeadChanged) = "hook_released",
    /// An account was added, changed or removed.
    AccountChanged(AccountChange) = "account_changed",
    /// A worker has finished a step of its run.
    StepDone(StepNamed) = "step_done",
    /// A message was sent.
    MessageSent(MessageDetails) = "message_sent",
    /// A message was put where its recipient looks.
    MessageDelivered(MessageDetails) = "message_delivered",
    /// The recipient of a message has read it.
    MessageSeen(MessageDetails) = "message_seen",
    /// Messages that were read long ago are gone.
    MessagesPurged(PurgeCount) = "messages_purged",
    /// Old events were deleted.
    EventsPurged(PurgeCount) = "events_purged",
    /// A worker or a person asks for a person.
    HelpWanted(MessageDetails) = "help_wanted",
    /// A token was made or revoked.
    TokenChanged(TokenChange) = "token_changed",
    /// A host changed its mode, was declared gone, or came back.
    HostChanged(HostChange) = "host_changed",
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
    /// The bead.
    pub bead: Option<BeadId>,
    /// The rig.
    pub rig: Option<RigSlug>,
    /// The run.
    pub run: Option<RunId>,
    /// The details.
    pub payload: EventPayload,
}

impl NewEvent {
    /// The kind of change.
    pub fn kind(&self) -> EventKind {
        self.payload.kind()
    }
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
    /// The details as they were written, a JSON object.
    pub payload: Json,
}

impl Event {
    /// The details, read.
    pub fn details(&self) -> EventPayload {
        EventPayload::parse(&self.kind, &self.payload)
    }
}

fn read<T: DeserializeOwned>(json: &Json) -> Option<T> {
    serde_json::from_str(json.as_str()).ok()
}

fn write(details: &impl Serialize) -> Result<Json, Invalid> {
    let text = serde_json::to_string(details);
    text.map(Json::trusted).map_err(|error| Invalid(format!("an event cannot be written: {error}")))
}
