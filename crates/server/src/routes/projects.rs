//! Projects.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use gt_api::{NewProjectDocument, ProjectChangeDocument, ProjectDocument};
use gt_beads::beads::FieldEdit;
use gt_core::work::ProjectRef;
use gt_workqueue::work::{self, NewProject, ProjectChange};

use crate::answer::{json, located};
use crate::body::{BodyFields, ChangeRequest};
use crate::problem::{PendingProblem, RequestProblem};
use crate::query::QueryParameters;
use crate::service::SharedService;

fn reference(text: &str) -> Result<ProjectRef, Box<RequestProblem>> {
    ProjectRef::parse(text)
        .map_err(|wrong| RequestProblem::malformed_field("id", wrong.to_string()))
}

/// Make a project
#[utoipa::path(
    post,
    path = "/projects",
    tag = "projects",
    request_body = NewProjectDocument,
    responses(
        (status = 201, description = "It is made.", body = ProjectDocument),
    )
)]
pub(super) async fn create(
    ChangeRequest { service, caller, body }: ChangeRequest,
) -> Result<Response, PendingProblem> {
    let mut fields = BodyFields::of(&body, "")?;
    let new =
        NewProject { name: fields.required("name"), external_ref: fields.text("external_ref") };
    fields.check()?;
    let project = service.change(&caller, |town| work::create_project(town, new)).await?;
    let path = format!("/projects/{}", project.uid);
    Ok(located(json(StatusCode::CREATED, &ProjectDocument::from(&project)), &path))
}

/// List all projects
#[utoipa::path(
    get,
    path = "/projects",
    tag = "projects",
    responses((status = 200, description = "All of them, oldest first.", body = Vec<ProjectDocument>))
)]
pub(super) async fn list(
    State(service): State<SharedService>,
    query: QueryParameters,
) -> Result<Response, PendingProblem> {
    query.finish(&[])?;
    let projects = service.ask(work::projects).await?;
    let documents: Vec<ProjectDocument> = projects.iter().map(ProjectDocument::from).collect();
    Ok(json(StatusCode::OK, &documents))
}

/// Get a project
#[utoipa::path(
    get,
    path = "/projects/{id}",
    tag = "projects",
    params(("id" = String, Path, format = "uuid", description = "A UUID, or the name of the rig")),
    responses(
        (status = 200, description = "The project.", body = ProjectDocument),
    )
)]
pub(super) async fn get(
    State(service): State<SharedService>,
    Path(id): Path<String>,
) -> Result<Response, PendingProblem> {
    let reference = reference(&id)?;
    let project = service.ask(move |town| work::project(town, &reference)).await?;
    Ok(json(StatusCode::OK, &ProjectDocument::from(&project)))
}

/// Rename a project, or give it another name in another system
#[utoipa::path(
    patch,
    path = "/projects/{id}",
    tag = "projects",
    params(("id" = String, Path, format = "uuid", description = "A UUID, or the name of the rig")),
    request_body = ProjectChangeDocument,
    responses(
        (status = 200, description = "The project as it is now.", body = ProjectDocument),
    )
)]
pub(super) async fn change(
    Path(id): Path<String>,
    ChangeRequest { service, caller, body }: ChangeRequest,
) -> Result<Response, PendingProblem> {
    let reference = reference(&id)?;
    let mut fields = BodyFields::of(&body, "")?;
    let change = ProjectChange {
        name: fields.text("name"),
        external_ref: match fields.clearable("external_ref") {
            None => FieldEdit::Keep,
            Some(None) => FieldEdit::Clear,
            Some(Some(json)) => {
                fields.text_in("external_ref", &json).map_or(FieldEdit::Keep, FieldEdit::Set)
            }
        },
    };
    fields.check()?;
    let project =
        service.change(&caller, move |town| work::change_project(town, &reference, change)).await?;
    Ok(json(StatusCode::OK, &ProjectDocument::from(&project)))
}
