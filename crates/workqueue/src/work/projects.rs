//! Projects: rigs, as clients of the work queue see them.

use gt_core::bead::check_text;
use gt_core::work::{Project, ProjectRef};
use gt_core::{ExecutorKind, Invalid, Prefix, Rig, RigSlug, limits};
use gt_store::{Reader, Writer};

use super::error::{MissingKind, WorkError, WorkResult};
use super::requests::{NewProject, ProjectChange};
use gt_beads::beads::FieldEdit;
use gt_town::Town;

/// Makes a project: a rig whose work is pulled. Its name may be anything, and that of another; what its beads are called
/// by is derived from it and stays.
pub fn create_project(town: &Town, new: NewProject) -> WorkResult<Project> {
    check_project_name(&new.name)?;
    check_external_ref(new.external_ref.as_deref())?;
    town.submit(move |_, writer| {
        let rigs = writer.rigs()?;
        let slug =
            RigSlug::derive(&new.name, |slug| rigs.iter().any(|rig| rig.slug.as_str() == slug));
        let prefix = Prefix::derive(slug.as_str(), |prefix| {
            rigs.iter().any(|rig| rig.prefix.as_str() == prefix)
        });
        let prefix = prefix.map_err(|error| WorkError::invalid("name", &error))?;
        let rig = Rig {
            executor: ExecutorKind::Pull,
            external_ref: new.external_ref.unwrap_or_default(),
            ..Rig::new(slug.clone(), &new.name, prefix, slug.as_str(), writer.now())
        };
        writer.insert_rig(&rig)?;
        Ok(project_of(rig))
    })
}

/// Every project, oldest first.
pub fn projects(town: &Town) -> WorkResult<Vec<Project>> {
    let mut rigs = town.read(|reader| Ok(reader.rigs()?))?;
    rigs.retain(|rig| rig.slug.as_str() != RigSlug::INBOX);
    rigs.sort_by(|a, b| (a.created_at, &a.slug).cmp(&(b.created_at, &b.slug)));
    Ok(rigs.into_iter().map(project_of).collect())
}

/// One project.
pub fn project(town: &Town, reference: &ProjectRef) -> WorkResult<Project> {
    let rig = town.read(|reader| Ok(find(reader, reference)?))?;
    rig.map(project_of).ok_or_else(|| missing(reference))
}

/// Renames a project, or gives it another name in another system.
pub fn change_project(
    town: &Town,
    reference: &ProjectRef,
    change: ProjectChange,
) -> WorkResult<Project> {
    if let Some(name) = &change.name {
        check_project_name(name)?;
    }
    if let FieldEdit::Set(reference) = &change.external_ref {
        check_external_ref(Some(reference))?;
    }
    let reference = reference.clone();
    town.submit(move |_, writer| {
        let old = require_rig(writer, &reference)?;
        let mut new = old.clone();
        if let Some(name) = change.name {
            new.title = name;
        }
        match change.external_ref {
            FieldEdit::Keep => {}
            FieldEdit::Clear => new.external_ref = String::new(),
            FieldEdit::Set(name) => new.external_ref = name,
        }
        if new != old {
            new.updated_at = writer.now().of_change_after(old.updated_at);
            writer.change_rig(&old, &new)?;
        }
        Ok(project_of(new))
    })
}

/// The rig of the items of a project, or of those that have none, which is made when it is needed.
pub(super) fn home_in(writer: &mut Writer<'_>, reference: Option<&ProjectRef>) -> WorkResult<Rig> {
    let Some(reference) = reference else { return inbox_in(writer) };
    let missing = || WorkError::Invalid {
        field: "project_id",
        message: format!("there is no project {reference}; GET /projects lists them"),
    };
    find(writer, reference)?.ok_or_else(missing)
}

fn inbox_in(writer: &mut Writer<'_>) -> WorkResult<Rig> {
    if let Some(rig) = writer.rig(RigSlug::INBOX)? {
        return Ok(rig);
    }
    let slug = RigSlug::inbox();
    let path = slug.as_str().to_owned();
    let rig = Rig {
        executor: ExecutorKind::Pull,
        ..Rig::new(slug, "Inbox", Prefix::inbox(), &path, writer.now())
    };
    writer.insert_rig(&rig)?;
    Ok(rig)
}

pub(super) fn require_rig(reader: &Reader<'_>, reference: &ProjectRef) -> WorkResult<Rig> {
    find(reader, reference)?.ok_or_else(|| missing(reference))
}

fn find(reader: &Reader<'_>, reference: &ProjectRef) -> Result<Option<Rig>, gt_store::StoreError> {
    let rig = match reference {
        ProjectRef::Uid(uid) => reader.rig_by_uid(uid)?,
        ProjectRef::Rig(slug) => reader.rig(slug.as_str())?,
    };
    Ok(rig.filter(|rig| rig.slug.as_str() != RigSlug::INBOX))
}

fn missing(reference: &ProjectRef) -> WorkError {
    WorkError::NotFound { what: MissingKind::Project, name: reference.to_string() }
}

fn project_of(rig: Rig) -> Project {
    Project {
        uid: rig.uid,
        name: rig.title,
        external_ref: Some(rig.external_ref).filter(|name| !name.is_empty()),
        created_at: rig.created_at,
        updated_at: rig.updated_at,
        rig: rig.slug,
        executor: rig.executor,
    }
}

fn check_project_name(name: &str) -> WorkResult<()> {
    let invalid = |why: &Invalid| WorkError::invalid("name", why);
    check_text("name", name).map_err(|error| invalid(&error))?;
    if name.trim().is_empty() {
        return Err(invalid(&Invalid::new("a project needs a name")));
    }
    if name.len() > limits::TITLE_BYTES_MAX {
        let most = limits::TITLE_BYTES_MAX;
        return Err(invalid(&Invalid(format!("a name has at most {most} bytes"))));
    }
    Ok(())
}

fn check_external_ref(reference: Option<&str>) -> WorkResult<()> {
    let reference = reference.unwrap_or_default();
    let invalid = |why: &Invalid| WorkError::invalid("external_ref", why);
    check_text("external_ref", reference).map_err(|error| invalid(&error))?;
    if reference.len() > limits::LOOKED_UP_BYTES_MAX {
        let most = limits::LOOKED_UP_BYTES_MAX;
        return Err(invalid(&Invalid(format!("a reference has at most {most} bytes"))));
    }
    Ok(())
}
