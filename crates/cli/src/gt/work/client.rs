//! The work queue that a command uses: that of the town, or of a server.

use clap::Args;
use gt_core::WebAddress;
use gt_core::work::TokenSecret;
use gt_workqueue::work::{Remote, WorkClient};

use crate::context::CommandContext;
use crate::error::CliError;
use crate::values::text_of;

/// The arguments that select the work queue.
#[derive(Debug, Args)]
pub(super) struct WorkClientArgs {
    /// Ask the server at this address instead of the town around; the same as `GT_WORK_URL`
    #[arg(long, global = true, value_name = "URL", help_heading = "Which queue", value_parser = WebAddress::parse)]
    url: Option<WebAddress>,
    /// Show this token there; others on this machine can see it, unlike `GT_WORK_TOKEN`
    #[arg(
        long,
        global = true,
        value_name = "TOKEN",
        help_heading = "Which queue",
        hide_default_value = true
    )]
    token: Option<String>,
    /// Show the token in this file there (- is standard input)
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        help_heading = "Which queue",
        conflicts_with = "token"
    )]
    token_file: Option<String>,
}

impl WorkClientArgs {
    /// The way there.
    pub(super) fn open(&self, context: &CommandContext<'_>) -> Result<WorkClient, CliError> {
        let named = context.environment.get("GT_WORK_URL");
        let address = match (&self.url, named) {
            (Some(address), _) => Some(address.clone()),
            (None, Some(text)) => Some(WebAddress::parse(text).map_err(|error| {
                CliError::request(format!("GT_WORK_URL cannot be used: {error}"))
            })?),
            (None, None) => None,
        };
        let Some(address) = address else {
            if self.token.is_some() || self.token_file.is_some() {
                return Err(CliError::request(
                    "a token is shown to a server; say which one with --url or GT_WORK_URL",
                ));
            }
            return Ok(WorkClient::Local(Box::new(context.store_town()?)));
        };
        let remote = Remote::at(address, self.secret(context)?, context.actor()?.name);
        Ok(WorkClient::Remote(Box::new(remote)))
    }

    fn secret(&self, context: &CommandContext<'_>) -> Result<Option<TokenSecret>, CliError> {
        let (text, place) = match (&self.token, &self.token_file) {
            (Some(token), _) => (token.clone(), "--token"),
            (None, Some(path)) => (text_of(path)?, "--token-file"),
            (None, None) => match context.environment.get("GT_WORK_TOKEN") {
                Some(token) => (token.to_owned(), "GT_WORK_TOKEN"),
                None => return Ok(None),
            },
        };
        // The error does not repeat the text, because it may be most of a real token.
        let secret = TokenSecret::parse(text.trim()).ok_or_else(|| {
            CliError::request(format!(
                "{place} has no token in it; tokens begin with gtw_, and gt token create makes them"
            ))
        })?;
        Ok(Some(secret))
    }
}
