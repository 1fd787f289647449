//! The details of each kind of event.
//!
//! A field that is left out where it says nothing is marked so; all others are always written. Readers take a default
//! for a field that an earlier version did not write.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use super::{ChangedFields, EventKind, EventPayload};
use crate::{
    Bead, BeadId, Dependency, DependencyType, IssueType, Outcome, Priority, Status, Timestamp,
};

/// A field of a payload, for the reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PayloadField {
    /// The key in the JSON object.
    pub name: &'static str,
    /// The meaning, in a sentence.
    pub meaning: &'static str,
}

/// Payloads whose fields are known to the reference.
macro_rules! payloads {
    ($(
        $(#[doc = $about:literal])*
        $payload:ident {
            $($(#[doc = $doc:literal])* $(#[serde($($how:tt)*)])? $field:ident: $type:ty,)*
        }
    )*) => {$(
        $(#[doc = $about])*
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
        pub struct $payload {
            $($(#[doc = $doc])* $(#[serde($($how)*)])? pub $field: $type,)*
        }

        impl $payload {
            pub(super) const FIELDS: &'static [PayloadField] = &[
                $(PayloadField {
                    name: stringify!($field).trim_ascii(),
                    meaning: concat!($($doc),*),
                },)*
            ];
        }
    )*};
}

payloads! {
    /// A bead that is new.
    BeadCreated {
        /// The title.
        #[serde(default)]
        title: String,
        /// The type.
        issue_type: IssueType,
        /// The status.
        status: Status,
        /// How it ended; left out unless it came closed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        outcome: Option<Outcome>,
        /// The priority, 0 (highest) to 4.
        priority: Priority,
        /// The assignee; empty if there is none.
        #[serde(default)]
        assignee: String,
        /// The dependencies that it came with; left out if there are none.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        dependencies: Vec<EdgeChange>,
    }

    /// A change of a bead.
    BeadChanged {
        /// The title after the change.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        title: String,
        /// Each field of the bead that changed, as `{"old": …, "new": …}`; `cap` of a convoy as `{"from": …, "to": …}`.
        #[serde(default)]
        changes: Box<ChangedFields>,
        /// The dependencies that changed with it; left out if there are none.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        dependencies: Vec<EdgeChange>,
    }

    /// A bead that is gone, as it was.
    BeadDeleted {
        /// The title.
        #[serde(default)]
        title: String,
        /// The type.
        #[serde(default)]
        issue_type: Option<IssueType>,
        /// The status.
        #[serde(default)]
        status: Option<Status>,
        /// How it ended; left out unless it was closed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        outcome: Option<Outcome>,
        /// The priority, 0 (highest) to 4.
        #[serde(default)]
        priority: Option<Priority>,
        /// The assignee; empty if there was none.
        #[serde(default)]
        assignee: String,
        /// The dependencies that it had; left out if there were none.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        dependencies: Vec<EdgeChange>,
        /// The dependencies of other beads on it; left out if there were none.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        dependents: Vec<DependentChange>,
    }

    /// A bead that something happened to.
    BeadNamed {
        /// The title.
        #[serde(default)]
        title: String,
    }

    /// A label of a bead.
    LabelChanged {
        /// The title of the bead.
        #[serde(default)]
        title: String,
        /// The label.
        #[serde(default)]
        label: String,
    }

    /// A dependency of the bead.
    EdgeChanged {
        /// The bead that it depends on.
        depends_on_id: BeadId,
        /// The type of the dependency; of a removed one, the type it had.
        r#type: DependencyType,
        /// The type before; null if there was no such dependency.
        #[serde(default)]
        old: Option<DependencyType>,
        /// The type now; null if there is no such dependency any more.
        #[serde(default)]
        new: Option<DependencyType>,
    }

    /// A comment.
    CommentAdded {
        /// The title of the bead.
        #[serde(default)]
        title: String,
        /// The author.
        #[serde(default)]
        author: String,
        /// The comment itself.
        #[serde(default)]
        text: String,
    }

    /// A rig that was added or removed.
    RigNamed {
        /// The prefix of its beads.
        #[serde(default)]
        prefix: String,
        /// The address of its repository; only of a rig that was added.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        repo: Option<String>,
    }

    /// A change of a rig.
    RigFieldChanged {
        /// The field that changed; left out if it is the state.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        field: Option<String>,
        /// The value before.
        #[serde(default)]
        old: String,
        /// The value now.
        #[serde(default)]
        new: String,
    }

    /// A setting that was changed.
    SettingValues {
        /// The group of settings it belongs to.
        #[serde(default)]
        scope: String,
        /// Its name.
        #[serde(default)]
        key: String,
        /// The value before; null if it was not set.
        #[serde(default)]
        old: Option<String>,
        /// The value now; null if it is not set any more.
        #[serde(default)]
        new: Option<String>,
    }

    /// A context that is in the queue now.
    ContextOpened {
        /// The context.
        #[serde(default)]
        context: String,
        /// How it came into the queue.
        #[serde(default)]
        origin: String,
    }

    /// A context that something happened to.
    ContextNamed {
        /// The context.
        #[serde(default)]
        context: String,
    }

    /// A context that is not in the queue any more.
    ContextEnded {
        /// The context.
        #[serde(default)]
        context: String,
        /// The reason, as one of the names of `gt scheduler contexts`.
        #[serde(default)]
        reason: String,
        /// The last failure, or what else explains the reason; left out if there is nothing to say.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<String>,
    }

    /// A run and its agent.
    RunTaken {
        /// The agent.
        #[serde(default)]
        agent: String,
        /// When the lease of the agent ends; left out if it has none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lease_expires_at: Option<Timestamp>,
    }

    /// A run that has ended.
    RunEnded {
        /// The reason.
        #[serde(default)]
        reason: String,
        /// The agent that had pulled the work; left out for other runs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pulled_by: Option<String>,
    }

    /// A host of a town.
    HostChange {
        /// Its identity.
        #[serde(default)]
        host: String,
        /// Its name.
        #[serde(default)]
        name: String,
        /// `active`, `draining`, `removed`, `gone`, or `back` after it was gone.
        #[serde(default)]
        new: String,
        /// The runs that were declared lost, or that it has cleared away.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        runs: Vec<String>,
        /// Those of them whose work was saved.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        saved: Vec<String>,
    }

    /// A fresh session of a run.
    SessionBegun {
        /// The number of the session.
        #[serde(default)]
        session: u32,
        /// Why it began.
        #[serde(default)]
        why: String,
        /// The commit that the tree was at.
        #[serde(default)]
        head: String,
    }

    /// A run whose worker says nothing, or goes on.
    SilentSince {
        /// Since when it said nothing.
        since: Timestamp,
    }

    /// A run whose agent waits.
    RunWaits {
        /// The agent.
        #[serde(default)]
        pulled_by: String,
        /// Since when it waits.
        since: Timestamp,
        /// The reason for which it waits.
        #[serde(default)]
        why: String,
        /// Whether it waits because it was silent for too long; left out if not.
        #[serde(default, skip_serializing_if = "is_false")]
        stale: bool,
    }

    /// The usage of a run.
    RunUsage {
        /// The most memory it took, in megabytes; left out if it is not known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        peak_memory_mb: Option<u32>,
        /// The tokens it used; left out if they are not known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tokens: Option<u64>,
        /// The cost in dollars; left out if it is not known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<String>,
        /// The faults in the reports about it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        notes: Vec<String>,
    }

    /// A convoy that has landed.
    ConvoyTotals {
        /// The title.
        #[serde(default)]
        title: String,
        /// How often it has landed, this time included.
        #[serde(default)]
        landing: u64,
        /// How many beads it tracks.
        #[serde(default)]
        members: u64,
        /// How many of them failed.
        #[serde(default)]
        failed: u64,
        /// How many of them are open.
        #[serde(default)]
        open: u64,
        /// When it was created.
        since: Timestamp,
        /// The seconds since then.
        #[serde(default)]
        seconds: u64,
        /// The tokens that the runs of its beads have used; left out if none are known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tokens: Option<u64>,
        /// Their cost, in dollars; left out if it is not known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<String>,
    }

    /// Work of a run that was accepted.
    AcceptedWork {
        /// The report of the worker.
        #[serde(default)]
        said: String,
        /// The commit.
        #[serde(default)]
        commit: String,
    }

    /// Work of a run that has landed.
    LandedWork {
        /// The branch of the origin.
        #[serde(default)]
        branch: String,
        /// The commit.
        #[serde(default)]
        commit: String,
        /// The tokens that the runs which led to it have used so far; left out if none are known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tokens: Option<u64>,
        /// Their cost so far, in dollars; left out if it is not known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<String>,
    }

    /// A merge request in a new state.
    RequestChange {
        /// The merge request, `<bead>@<number>`.
        #[serde(default)]
        request: String,
        /// The branch that it is to land on.
        #[serde(default)]
        target: String,
        /// The state before; null if it is new.
        #[serde(default)]
        old: Option<String>,
        /// The state now.
        #[serde(default)]
        new: String,
        /// Why it is held; left out if it is not.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        held: Option<String>,
        /// The words of git, of a check or of the origin; left out if there are none.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        detail: String,
        /// The accepted commit; of a request that has landed, the commit of the target.
        #[serde(default)]
        commit: String,
    }

    /// A review of a merge request.
    ReviewDetails {
        /// The merge request, `<bead>@<number>`.
        #[serde(default)]
        request: String,
        /// `approved`, `rejected` or `comment`.
        #[serde(default)]
        decision: String,
        /// The accepted commit that it is about.
        #[serde(default)]
        commit: String,
        /// The file that a comment is about; left out for the whole request.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        file: String,
        /// The line of the file; left out if none is meant.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        line: Option<u32>,
        /// The words.
        #[serde(default)]
        body: String,
    }

    /// A merge queue that stops, or goes on.
    QueueChange {
        /// The target branch.
        #[serde(default)]
        target: String,
        /// Whether a person paused it.
        #[serde(default)]
        paused: bool,
        /// The commit of the target on which a check fails; empty if none does.
        #[serde(default)]
        red_commit: String,
        /// The check; empty if none fails.
        #[serde(default)]
        red_check: String,
    }

    /// Work of a run that was saved.
    RescuedWork {
        /// The reference of the saved commit.
        #[serde(default)]
        reference: String,
        /// The commit.
        #[serde(default)]
        commit: String,
        /// The files that were not saved, each with the reason.
        #[serde(default)]
        left_out: Vec<String>,
    }

    /// The tree of a polecat.
    TreePlace {
        /// The polecat.
        #[serde(default)]
        polecat: String,
        /// The path of the tree.
        #[serde(default)]
        path: String,
        /// Why it was moved away.
        #[serde(default)]
        reason: String,
    }

    /// The tree of a polecat that is deleted soon.
    TreeDeadline {
        /// The polecat.
        #[serde(default)]
        polecat: String,
        /// The path of the tree.
        #[serde(default)]
        path: String,
        /// Its number in the trash, as text.
        #[serde(default)]
        number: String,
        /// When it is deleted.
        until: Timestamp,
    }

    /// A bead that is not tried again.
    AttemptsUsed {
        /// How many attempts it had.
        #[serde(default)]
        attempts: u32,
    }

    /// A run that was over a limit of its own.
    LimitReached {
        /// The limit: `time`, `cost` or `tokens`.
        #[serde(default)]
        limit: String,
    }

    /// A pause of all starts, or of one convoy.
    PauseChanged {
        /// The title of the convoy; left out if all starts are meant.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
    }

    /// A runtime or an account that is not used for a while.
    ParkBegun {
        /// `runtime` or `account`.
        #[serde(default)]
        kind: String,
        /// Its name.
        #[serde(default)]
        name: String,
        /// The reason.
        #[serde(default)]
        reason: String,
        /// When it is tried again; left out if that is not known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Timestamp>,
        /// Whether it was tried and does not work yet; left out if not.
        #[serde(default, skip_serializing_if = "is_false")]
        again: bool,
    }

    /// A runtime or an account that is used again.
    ParkEnded {
        /// `runtime` or `account`.
        #[serde(default)]
        kind: String,
        /// Its name.
        #[serde(default)]
        name: String,
        /// Whether it was a usage limit; left out if not.
        #[serde(default, skip_serializing_if = "is_false")]
        limit: bool,
    }

    /// A change of an account.
    AccountChange {
        /// The account.
        #[serde(default)]
        account: String,
        /// `put`, `default` or `removed`.
        #[serde(default)]
        change: String,
    }

    /// A step of a run.
    StepNamed {
        /// The step.
        #[serde(default)]
        step: String,
        /// Its title.
        #[serde(default)]
        title: String,
    }

    /// A message, without its text.
    MessageDetails {
        /// The message.
        #[serde(default)]
        message: String,
        /// `mail`, `nudge` or `escalation`.
        #[serde(default)]
        kind: String,
        /// The sender.
        #[serde(default)]
        from: String,
        /// The recipient.
        #[serde(default)]
        to: String,
        /// Its subject, or its first line.
        #[serde(default)]
        subject: String,
        /// The severity; only of an escalation.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        severity: Option<String>,
    }

    /// Records that are gone.
    PurgeCount {
        /// How many.
        #[serde(default)]
        count: u64,
    }

    /// A change of a token.
    TokenChange {
        /// The id of the token, which is no secret.
        #[serde(default)]
        token: String,
        /// Its name.
        #[serde(default)]
        name: String,
        /// Its scopes.
        #[serde(default)]
        scopes: String,
        /// `created` or `revoked`.
        #[serde(default)]
        change: String,
    }
}

/// A dependency of the bead of the event, before and after.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EdgeChange {
    /// The bead that it depends on.
    pub depends_on_id: BeadId,
    /// The type before; none if there was no such dependency.
    #[serde(default)]
    pub old: Option<DependencyType>,
    /// The type after; none if there is no such dependency any more.
    #[serde(default)]
    pub new: Option<DependencyType>,
}

impl EdgeChange {
    /// A dependency that is new.
    pub fn added(edge: &Dependency) -> Self {
        Self { depends_on_id: edge.target.clone(), old: None, new: Some(edge.kind.clone()) }
    }

    /// A dependency that is gone.
    pub fn removed(edge: &Dependency) -> Self {
        Self { depends_on_id: edge.target.clone(), old: Some(edge.kind.clone()), new: None }
    }
}

/// A dependency of another bead on the bead of the event, before and after.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DependentChange {
    /// The bead that depends on it.
    pub issue_id: BeadId,
    /// The type before.
    #[serde(default)]
    pub old: Option<DependencyType>,
    /// The type after; none if there is no such dependency any more.
    #[serde(default)]
    pub new: Option<DependencyType>,
}

impl BeadCreated {
    /// A bead that is new, without its dependencies.
    pub fn of(bead: &Bead) -> Self {
        Self {
            title: bead.title.to_string(),
            issue_type: bead.issue_type.clone(),
            status: bead.status.clone(),
            outcome: bead.outcome,
            priority: bead.priority,
            assignee: bead.assignee.clone(),
            dependencies: Vec::new(),
        }
    }
}

impl BeadDeleted {
    /// A bead that is gone, with the edges from it and to it.
    pub fn of(bead: &Bead, from: &[Dependency], to: &[Dependency]) -> Self {
        let dependent = |edge: &Dependency| DependentChange {
            issue_id: edge.issue.clone(),
            old: Some(edge.kind.clone()),
            new: None,
        };
        Self {
            title: bead.title.to_string(),
            issue_type: Some(bead.issue_type.clone()),
            status: Some(bead.status.clone()),
            outcome: bead.outcome,
            priority: Some(bead.priority),
            assignee: bead.assignee.clone(),
            dependencies: from.iter().map(EdgeChange::removed).collect(),
            dependents: to.iter().map(dependent).collect(),
        }
    }
}

/// A bead that came in by an import.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum BeadImported {
    /// It is new.
    New(BeadCreated),
    /// It was there before.
    Changed(BeadChanged),
}

impl BeadImported {
    pub(super) const FIELDS: &'static [PayloadField] = &[PayloadField {
        name: "",
        meaning: "The fields of `created` if the bead is new, else those of `updated`.",
    }];
}

impl<'de> Deserialize<'de> for BeadImported {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = Box::<RawValue>::deserialize(deserializer)?;
        let new = serde_json::from_str(json.get()).map(Self::New);
        new.or_else(|_| serde_json::from_str(json.get()).map(Self::Changed))
            .map_err(serde::de::Error::custom)
    }
}

/// The kinds of event that tell of a change of a bead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BeadChangeKind {
    /// [`EventKind::Updated`].
    Updated,
    /// [`EventKind::StatusChanged`].
    StatusChanged,
    /// [`EventKind::Claimed`].
    Claimed,
    /// [`EventKind::Closed`].
    Closed,
    /// [`EventKind::Reopened`].
    Reopened,
    /// [`EventKind::HookReleased`].
    HookReleased,
    /// [`EventKind::Imported`].
    Imported,
}

impl EventPayload {
    /// A change of a bead as an event of this kind.
    pub fn of_change(kind: BeadChangeKind, changed: BeadChanged) -> Self {
        match kind {
            BeadChangeKind::Updated => Self::Updated(changed),
            BeadChangeKind::StatusChanged => Self::StatusChanged(changed),
            BeadChangeKind::Claimed => Self::Claimed(changed),
            BeadChangeKind::Closed => Self::Closed(changed),
            BeadChangeKind::Reopened => Self::Reopened(changed),
            BeadChangeKind::HookReleased => Self::HookReleased(changed),
            BeadChangeKind::Imported => Self::Imported(BeadImported::Changed(changed)),
        }
    }

    /// A new bead as an event of this kind.
    pub fn of_new(kind: EventKind, created: BeadCreated) -> Self {
        match (kind, created) {
            (EventKind::Imported, created) => Self::Imported(BeadImported::New(created)),
            (_, created) => Self::Created(created),
        }
    }

    /// The change of a bead, if the event tells of one.
    pub fn bead_change(&self) -> Option<&BeadChanged> {
        match self {
            Self::Updated(changed)
            | Self::StatusChanged(changed)
            | Self::Claimed(changed)
            | Self::Closed(changed)
            | Self::Reopened(changed)
            | Self::HookReleased(changed)
            | Self::Imported(BeadImported::Changed(changed)) => Some(changed),
            _ => None,
        }
    }

    /// The dependencies that changed together with the bead, for kinds of events that list them.
    pub fn dependencies_mut(&mut self) -> Option<&mut Vec<EdgeChange>> {
        match self {
            Self::Created(created) | Self::Imported(BeadImported::New(created)) => {
                Some(&mut created.dependencies)
            }
            Self::Updated(changed)
            | Self::StatusChanged(changed)
            | Self::Claimed(changed)
            | Self::Closed(changed)
            | Self::Reopened(changed)
            | Self::HookReleased(changed)
            | Self::Imported(BeadImported::Changed(changed)) => Some(&mut changed.dependencies),
            _ => None,
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_false(flag: &bool) -> bool {
    !flag
}
