//! The cost of runs, budgets, accounts, and the work that has landed for it.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use gt_api::{
    AccountUseDocument, BudgetLimitDocument, BudgetUseDocument, BurnDocument, CostDocument,
    FlakyUseDocument, LandingDocument, ListDocument, SearchHitDocument,
};
use gt_core::Timestamp;
use gt_core::cost::CostGrouping;
use gt_core::time::parse_duration;
use gt_daemon::views;
use gt_scheduling::costs::costs;
use gt_scheduling::queue;
use gt_scheduling::runtimes::check_name;
use gt_town::{Town, settings};

use crate::answer::json;
use crate::body::{BodyFields, ChangeRequest};
use crate::problem::{PendingProblem, RequestProblem};
use crate::query::QueryParameters;
use crate::service::SharedService;

/// The most hours of the burn.
const HOURS_MAX: u64 = 24 * 31;
const HOURS_DEFAULT: u64 = 24;

/// Show what runs have cost
///
/// As `gt cost --json`; days are in UTC.
#[utoipa::path(
    get,
    path = "/api/v1/cost",
    tag = "money",
    params(
        ("by" = Option<String>, Query, description = "How the lines are grouped: run, bead, convoy, rig, account, model or day (unless said otherwise)"),
        ("since" = Option<String>, Query, description = "Only what was spent since then: 24h, 7d, or an instant (RFC 3339)"),
    ),
    responses(
        (status = 200, description = "The lines.", body = CostDocument),
        (status = 400, description = "A parameter is wrong."),
    )
)]
pub(super) async fn cost(
    State(service): State<SharedService>,
    mut query: QueryParameters,
) -> Result<Response, PendingProblem> {
    let by = query.take("by")?.unwrap_or_else(|| CostGrouping::Day.as_str().to_owned());
    let wrong = |field: &'static str| {
        move |wrong: gt_core::Invalid| RequestProblem::malformed_field(field, wrong.to_string())
    };
    let grouping = CostGrouping::parse(&by).map_err(wrong("by"))?;
    let from = match query.take("since")? {
        None => Timestamp::from_nanos(0),
        Some(text) => match parse_duration(&text) {
            Ok(ago) => service.now().minus(ago),
            Err(_) => Timestamp::parse(&text).map_err(wrong("since"))?,
        },
    };
    query.finish(&["by", "since"])?;
    let read = move |town: &Town| {
        let day = |at: Timestamp| at.to_string().chars().take("2026-01-01".len()).collect();
        costs(town, grouping, from, Timestamp::from_nanos(i64::MAX), day)
    };
    let report = service.ask(read).await?;
    Ok(json(StatusCode::OK, &views::cost_document(grouping, &report)))
}

/// Show the budgets in force, and what was used of them
///
/// Of the budgets of beads and convoys only the nearly spent ones.
#[utoipa::path(
    get,
    path = "/api/v1/budgets",
    tag = "money",
    responses(
        (status = 200, description = "The budgets.", body = ListDocument<BudgetUseDocument>),
        (status = 400, description = "There are no parameters."),
    )
)]
pub(super) async fn budgets(
    State(service): State<SharedService>,
    query: QueryParameters,
) -> Result<Response, PendingProblem> {
    query.finish(&[])?;
    let status = service.ask(queue::status).await?;
    Ok(whole_list(status.budgets.iter().map(views::budget_use).collect()))
}

/// Change the limit of a budget that is in force
#[utoipa::path(
    patch,
    path = "/api/v1/budgets/{id}",
    tag = "money",
    params(("id" = String, Path, description = "The setting of the budget, such as budget.cost_per_day")),
    request_body = BudgetLimitDocument,
    responses(
        (status = 200, description = "The budgets as they are now.", body = ListDocument<BudgetUseDocument>),
        (status = 409, description = "Its limit is not `if_limit` any more."),
    )
)]
pub(super) async fn change_budget(
    Path(id): Path<String>,
    ChangeRequest { service, caller, body }: ChangeRequest,
) -> Result<Response, PendingProblem> {
    let mut fields = BodyFields::of(&body, "")?;
    let limit = fields.required_words("limit");
    let seen = fields.text("if_limit");
    fields.check()?;
    let change = move |town: &Town| {
        let in_force = queue::status(town)?.budgets;
        let budget = in_force.iter().map(views::budget_use).find(|budget| budget.name == id);
        let budget = budget
            .ok_or_else(|| RequestProblem::not_found(format!("no budget {id} is in force")))?;
        if seen.is_some_and(|seen| seen != budget.limit) {
            let detail =
                format!("the limit of {id} is {} meanwhile; look at it again", budget.limit);
            return Err(RequestProblem::conflict(detail));
        }
        settings::set(town, &id, &limit, check_name)?;
        Ok(queue::status(town)?)
    };
    let status = service.change(&caller, change).await?;
    Ok(whole_list(status.budgets.iter().map(views::budget_use).collect()))
}

/// Show the accounts, and what their services told of their windows
#[utoipa::path(
    get,
    path = "/api/v1/accounts",
    tag = "money",
    responses(
        (status = 200, description = "The accounts.", body = ListDocument<AccountUseDocument>),
        (status = 400, description = "There are no parameters."),
    )
)]
pub(super) async fn accounts(
    State(service): State<SharedService>,
    query: QueryParameters,
) -> Result<Response, PendingProblem> {
    query.finish(&[])?;
    Ok(whole_list(service.ask(views::account_uses).await?))
}

/// Show what was spent hour by hour
///
/// The last hour ends now.
#[utoipa::path(
    get,
    path = "/api/v1/burn",
    tag = "money",
    params(("hours" = Option<u64>, Query, minimum = 1, maximum = 744, description = "How many hours; 24 unless said")),
    responses(
        (status = 200, description = "The hours, the oldest first.", body = BurnDocument),
        (status = 400, description = "A parameter is wrong."),
    )
)]
pub(super) async fn burn(
    State(service): State<SharedService>,
    mut query: QueryParameters,
) -> Result<Response, PendingProblem> {
    let hours = query.take_number("hours")?.unwrap_or(HOURS_DEFAULT);
    query.finish(&["hours"])?;
    let fits = u32::try_from(hours).ok().filter(|_| (1..=HOURS_MAX).contains(&hours));
    let Some(hours) = fits else {
        let detail = format!("{hours} is not between 1 and {HOURS_MAX}");
        return Err(RequestProblem::malformed_field("hours", detail).into());
    };
    let burn = service.ask(move |town: &Town| views::burn_document(town, hours)).await?;
    Ok(json(StatusCode::OK, &burn))
}

/// List checks that passed after they had failed on the same tree
///
/// The last 100 such runs count.
#[utoipa::path(
    get,
    path = "/api/v1/flaky-checks",
    tag = "merge requests",
    responses(
        (status = 200, description = "The checks, the one that was seen last first.", body = ListDocument<FlakyUseDocument>),
        (status = 400, description = "There are no parameters."),
    )
)]
pub(super) async fn flaky_checks(
    State(service): State<SharedService>,
    query: QueryParameters,
) -> Result<Response, PendingProblem> {
    query.finish(&[])?;
    Ok(whole_list(service.ask(views::flaky_uses).await?))
}

/// List what has landed
///
/// In the order of the requests, the newest first.
#[utoipa::path(
    get,
    path = "/api/v1/landings",
    tag = "merge requests",
    params(
        ("limit" = Option<u64>, Query, minimum = 1, maximum = 500, description = "The most landings of a page; 100 unless said"),
        ("cursor" = Option<u64>, Query, description = "The `next` of the page before"),
    ),
    responses(
        (status = 200, description = "A page of receipts. The total is that of the page.", body = ListDocument<LandingDocument>),
        (status = 400, description = "A parameter is wrong."),
    )
)]
pub(super) async fn landings(
    State(service): State<SharedService>,
    mut query: QueryParameters,
) -> Result<Response, PendingProblem> {
    let (limit, before) = (query.take_limit()?, query.take_number("cursor")?);
    query.finish(&["limit", "cursor"])?;
    let read = move |town: &Town| views::landings(town, before, limit);
    let (items, next) = service.ask(read).await?;
    let (total, next) = (items.len() as u64, next.map(|next| next.to_string()));
    Ok(json(StatusCode::OK, &ListDocument { items, total, next }))
}

/// Find beads, runs, convoys and merge requests
///
/// By their names, or a part of the id or the title of a bead.
#[utoipa::path(
    get,
    path = "/api/v1/search",
    tag = "town",
    params(
        ("q" = String, Query, description = "The text to look for"),
        ("limit" = Option<u64>, Query, minimum = 1, maximum = 500, description = "The most hits; 100 unless said"),
    ),
    responses(
        (status = 200, description = "What was found, the best first. The total is that of the answer.", body = ListDocument<SearchHitDocument>),
        (status = 400, description = "A parameter is wrong."),
    )
)]
pub(super) async fn search(
    State(service): State<SharedService>,
    mut query: QueryParameters,
) -> Result<Response, PendingProblem> {
    let text = query.take("q")?;
    let limit = query.take_limit()?;
    query.finish(&["q", "limit"])?;
    let Some(text) = text else {
        return Err(RequestProblem::malformed_field("q", "this is required").into());
    };
    Ok(whole_list(service.ask(move |town: &Town| views::search(town, &text, limit)).await?))
}

/// A list that is on one page.
fn whole_list<T: serde::Serialize>(items: Vec<T>) -> Response {
    let total = items.len() as u64;
    json(StatusCode::OK, &ListDocument { items, total, next: None })
}
