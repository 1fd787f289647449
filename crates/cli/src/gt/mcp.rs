//! `gt mcp`.

use std::sync::Arc;

use clap::Args;
use gt_mcp::{McpCaller, McpRights, McpRole, serve_stdio, serve_streams};

use crate::context::{CommandContext, this_program};
use crate::error::CliError;
use crate::served;

/// Serve agents over the Model Context Protocol, on standard input and output
///
/// An agent that works on a run gets the tools of a worker, for its own run alone. Every other client gets the tools of an
/// operator. gt serve has the same at /mcp for clients with a token.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt mcp                                     # a client starts this and speaks to it
  claude mcp add gt -- gt mcp
  codex mcp add gt -- gt mcp
  npx @modelcontextprotocol/inspector --cli gt mcp --method tools/list")]
pub(super) struct McpArgs {}

pub(super) fn run(context: &CommandContext<'_>, _args: &McpArgs) -> Result<(), CliError> {
    let is_worker = context.environment.may_be_worker();
    let town = context.town()?;
    let role = if is_worker { McpRole::Worker } else { McpRole::Operator };
    // Around a wrapped worker there may be no origin and no sandbox for checks: its supervisor lands the work.
    let program = if context.environment.is_wrapped() { None } else { Some(this_program()?) };
    let process = served::process_owner(&town);
    let caller = McpCaller {
        role,
        town: Arc::new(town),
        rights: McpRights::ALL,
        program,
        process,
        address: context.environment.get("GT_ROLE").map(str::to_owned),
    };
    let served = match served::take_streams() {
        Some((input, output)) => serve_streams(caller, input, output),
        None => serve_stdio(caller),
    };
    served.map_err(|error| CliError::request(format!("the session ended: {error}")))
}
