//! The inbox.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use gt_api::InboxItemDocument;
use gt_daemon::inbox;
use gt_town::{OperationError, Town};

use crate::answer::json;
use crate::problem::PendingProblem;
use crate::query::QueryParameters;
use crate::service::SharedService;

/// List everything that needs a person
///
/// The same rows in the same order as `gt inbox`.
#[utoipa::path(
    get,
    path = "/api/v1/inbox",
    tag = "inbox",
    params(("rig" = Option<String>, Query, description = "Only what is about this rig")),
    responses(
        (status = 200, description = "The rows.", body = Vec<InboxItemDocument>),
        (status = 400, description = "A parameter is wrong."),
        (status = 404, description = "There is no such rig."),
    )
)]
pub(super) async fn list(
    State(service): State<SharedService>,
    mut query: QueryParameters,
) -> Result<Response, PendingProblem> {
    let rig = query.take("rig")?;
    query.finish(&["rig"])?;
    let read = move |town: &Town| {
        let rig = rig.map(|name| town.read(|reader| gt_town::rig_names::require(reader, &name)));
        let rig = rig.transpose()?.map(|rig| rig.slug);
        let mut items = inbox::inbox(town)?;
        items.retain(|item| rig.is_none() || item.rig == rig);
        inbox::add_details(town, &mut items)?;
        Ok::<_, OperationError>(items)
    };
    let items = service.ask(read).await?;
    let documents: Vec<InboxItemDocument> = items.iter().map(InboxItemDocument::from).collect();
    Ok(json(StatusCode::OK, &documents))
}
