//! `bd query`.

use clap::Args;
use gt_api::QueryDocument;
use gt_beads::beads::query_filter;
use gt_core::Clock as _;
use gt_core::query::Query;
use gt_town::{OperationError, SystemClock};

use super::filters::OrderArgs;
use crate::context::CommandContext;
use crate::error::CliError;

const LIMIT: usize = 50;

/// Find beads by a condition such as "priority<=1 AND label=backend"
#[derive(Debug, Args)]
#[command(
    after_help = "A condition is a field, an operator and a value. Join conditions with AND and OR, turn one round with
NOT, group with parentheses. Quote values that hold spaces or signs.

  =  !=           is, is not; a=x,y is one of several; none is \"nothing\"; x* is a pattern.
                  In title, description, design, acceptance and notes: contains, does not.
  ~               contains
  <  <=  >  >=    for numbers and times

Fields: id title description design acceptance notes status outcome close_reason priority type
  assignee owner created_by label parent rig created updated started closed due defer estimate
  spec external_ref mol_type wisp_type metadata.KEY; and, which may stand
  alone, ready blocked ephemeral pinned template.
Times: 2026-05-31, 2026-05-31T12:34:56Z, today, 7d (that long ago), +7d (from now).

Closed beads are left out unless the query speaks of status or closed, or --all is given.

Examples:
  bd query \"priority<=1 AND (label=backend OR type=bug)\"
  bd query \"ready AND assignee=none AND updated<7d\" --sort updated
  bd query \"ephemeral=true AND status=open\" --limit 0 --json
  bd query 'title~\"log in\" AND NOT label=ui' --parse-only"
)]
pub(super) struct QueryArgs {
    /// The condition that a bead must meet
    #[arg(value_name = "EXPRESSION", required = true)]
    expression: Vec<String>,
    /// Also closed and pinned beads
    #[arg(short, long)]
    all: bool,
    #[command(flatten)]
    order: OrderArgs,
    /// Only print how the query was understood
    #[arg(long)]
    parse_only: bool,
    #[arg(long, hide = true)]
    long: bool,
}

pub(super) fn run(context: &CommandContext<'_>, args: &QueryArgs) -> Result<(), CliError> {
    let printer = context.printer;
    let expression = args.expression.join(" ");
    if args.parse_only {
        let now = SystemClock.now();
        let query = Query::parse(&expression, now).map_err(OperationError::from)?;
        if !printer.json() {
            return printer.line(query.to_string());
        }
        return printer.object(&QueryDocument { expression: query.to_string() });
    }
    let town = context.store_town()?;
    let mut filter = query_filter(&town, &expression, args.all)?;
    args.order.apply(&mut filter, Some(LIMIT));
    super::list::print(printer, &town, &filter, |_| String::new())
}
