//! The fields of a bead that a change has changed.

use serde::{Deserialize, Serialize};

use crate::{Bead, Carried, IssueType, Json, Outcome, Priority, RigSlug, Status, Timestamp, Title};

/// A value before and after a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ValueChange<T> {
    /// The value before.
    pub old: T,
    /// The value after.
    pub new: T,
}

/// The cap of a convoy before and after a change; 0 means no cap.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CapChange {
    /// The cap before.
    pub from: u32,
    /// The cap after.
    pub to: u32,
}

macro_rules! changed_fields {
    ($($field:ident: $type:ty,)*) => {
        /// Every field of a bead that differs between two states of it, with both values. The time of the last
        /// change is not one.
        #[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(default)]
        #[expect(missing_docs, reason = "the fields are those of a bead")]
        pub struct ChangedFields {
            $(#[serde(skip_serializing_if = "Option::is_none")]
            pub $field: Option<ValueChange<$type>>,)*
            #[serde(skip_serializing_if = "Option::is_none")]
            pub carried: Option<ValueChange<Option<Json>>>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub cap: Option<CapChange>,
        }

        impl ChangedFields {
            /// The fields that differ.
            pub fn between(old: &Bead, new: &Bead) -> Self {
                Self {
                    $($field: (old.$field != new.$field).then(|| ValueChange {
                        old: old.$field.clone(),
                        new: new.$field.clone(),
                    }),)*
                    carried: (old.carried != new.carried).then(|| ValueChange {
                        old: carried(&old.carried),
                        new: carried(&new.carried),
                    }),
                    cap: None,
                }
            }

            /// The names of the fields that differ.
            pub fn names(&self) -> Vec<&'static str> {
                let mut names = Vec::new();
                $(if self.$field.is_some() {
                    names.push(stringify!($field));
                })*
                if self.carried.is_some() {
                    names.push("carried");
                }
                if self.cap.is_some() {
                    names.push("cap");
                }
                names
            }
        }
    };
}

changed_fields! {
    title: Title,
    description: String,
    design: String,
    acceptance_criteria: String,
    notes: String,
    status: Status,
    outcome: Option<Outcome>,
    priority: Priority,
    issue_type: IssueType,
    assignee: String,
    owner: String,
    estimated_minutes: Option<u32>,
    created_at: Timestamp,
    created_by: String,
    started_at: Option<Timestamp>,
    closed_at: Option<Timestamp>,
    close_reason: String,
    due_at: Option<Timestamp>,
    defer_until: Option<Timestamp>,
    external_ref: Option<String>,
    metadata: Option<Json>,
    ephemeral: bool,
    no_history: bool,
    pinned: bool,
    is_template: bool,
    rig: Option<RigSlug>,
}

impl ChangedFields {
    /// Whether nothing differs.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

fn carried(carried: &Carried) -> Option<Json> {
    (!carried.is_empty()).then(|| Json::object(carried))
}
