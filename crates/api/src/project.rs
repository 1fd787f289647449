//! Projects.

use gt_core::work::Project;
use gt_core::{ExecutorKind, Invalid, RigSlug, Uid};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{Clearable, UtcTime};

/// A project.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ProjectDocument {
    #[schema(format = "uuid")]
    pub id: String,
    pub name: String,
    /// Its name in another system.
    #[schema(required)]
    pub external_ref: Option<String>,
    #[schema(value_type = String, format = DateTime)]
    pub created_at: UtcTime,
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: UtcTime,
    /// The rig that it is.
    pub rig: String,
    /// How its work is carried out.
    pub executor: String,
}

impl From<&Project> for ProjectDocument {
    fn from(project: &Project) -> Self {
        Self {
            id: project.uid.to_string(),
            name: project.name.clone(),
            external_ref: project.external_ref.clone(),
            created_at: project.created_at.into(),
            updated_at: project.updated_at.into(),
            rig: project.rig.to_string(),
            executor: project.executor.as_str().to_owned(),
        }
    }
}

impl TryFrom<ProjectDocument> for Project {
    type Error = Invalid;

    fn try_from(project: ProjectDocument) -> Result<Self, Invalid> {
        Ok(Self {
            uid: uid("id", &project.id)?,
            name: project.name,
            external_ref: project.external_ref,
            created_at: project.created_at.0,
            updated_at: project.updated_at.0,
            rig: in_field("rig", RigSlug::parse(&project.rig))?,
            executor: in_field("executor", ExecutorKind::parse(&project.executor))?,
        })
    }
}

/// Names the field that is wrong.
pub(crate) fn in_field<T>(field: &str, read: Result<T, Invalid>) -> Result<T, Invalid> {
    read.map_err(|wrong| Invalid(format!("{field}: {wrong}")))
}

pub(crate) fn uid(field: &str, text: &str) -> Result<Uid, Invalid> {
    let shown = || text.chars().take(60).collect::<String>().escape_debug().to_string();
    Uid::parse(text).ok_or_else(|| Invalid(format!("{field}: \"{}\" is no UUID", shown())))
}

/// A project to be made.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewProjectDocument {
    /// Any text; need not be unique.
    #[schema(min_length = 1)]
    pub name: String,
    /// Its name in another system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external_ref: Option<String>,
}

/// A change to a project.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ProjectChangeDocument {
    #[schema(min_length = 1)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Null takes it away.
    #[schema(value_type = Option<String>)]
    #[serde(skip_serializing_if = "Clearable::is_kept")]
    pub external_ref: Clearable<String>,
}
