//! `bd init`.

use clap::Args;
use gt_api::InstalledDocument;
use gt_beads::beads_directory;
use gt_town::{SystemClock, start_store};

use super::import::import_file;
use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::plural;

/// Make a store in this directory, unless it is inside a town already
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  bd init\n  bd init --prefix app\n  bd init --from-jsonl")]
pub(super) struct InitArgs {
    /// The prefix of the ids of its beads
    #[arg(short, long)]
    prefix: Option<String>,
    /// Import .beads/issues.jsonl, if there is one
    #[arg(long)]
    from_jsonl: bool,
    #[command(flatten)]
    ignored: IgnoredByInit,
}

/// Flags of the original that mean nothing here.
#[derive(Debug, Args)]
struct IgnoredByInit {
    #[arg(long, hide = true)]
    force: bool,
    #[arg(long, hide = true)]
    skip_hooks: bool,
    #[arg(long, hide = true)]
    skip_agents: bool,
    #[arg(long, hide = true)]
    skip_merge_driver: bool,
    #[arg(long, hide = true)]
    stealth: bool,
    #[arg(long, hide = true)]
    non_interactive: bool,
    #[arg(long, hide = true)]
    init_if_missing: bool,
    #[command(flatten)]
    storage: StorageOfOriginal,
}

/// Flags about the storage and the roles of the original; a sentence says that they are ignored.
#[derive(Debug, Args)]
struct StorageOfOriginal {
    #[arg(long, hide = true)]
    server: bool,
    #[arg(long, hide = true)]
    external: bool,
    #[arg(long, hide = true)]
    shared_server: bool,
    #[arg(long, hide = true)]
    contributor: bool,
    #[arg(long, hide = true)]
    team: bool,
    #[arg(long, hide = true)]
    setup_exclude: bool,
    #[arg(long, hide = true)]
    no_db: bool,
    #[arg(long, hide = true)]
    reinit_local: bool,
    #[arg(long, hide = true)]
    discard_remote: bool,
    #[arg(long, hide = true, value_name = "PORT")]
    server_port: Option<String>,
    #[arg(long, hide = true, value_name = "HOST")]
    server_host: Option<String>,
    #[arg(long, hide = true, value_name = "USER")]
    server_user: Option<String>,
    #[arg(long, hide = true, value_name = "PATH")]
    server_socket: Option<String>,
    #[arg(long, hide = true, value_name = "NAME")]
    database: Option<String>,
    #[arg(long, hide = true, value_name = "NAME")]
    backend: Option<String>,
    #[arg(short, long, hide = true, value_name = "NAME")]
    branch: Option<String>,
    #[arg(long, hide = true, value_name = "URL")]
    remote: Option<String>,
    #[arg(long, hide = true, value_name = "ROLE")]
    role: Option<String>,
    #[arg(long, hide = true, value_name = "FILE")]
    agents_file: Option<String>,
    #[arg(long, hide = true, value_name = "NAME")]
    agents_profile: Option<String>,
    #[arg(long, hide = true, value_name = "FILE")]
    agents_template: Option<String>,
    #[arg(long, hide = true, value_name = "TEXT")]
    destroy_token: Option<String>,
}

impl StorageOfOriginal {
    fn is_given(&self) -> bool {
        let flags = [
            self.server,
            self.external,
            self.shared_server,
            self.contributor,
            self.team,
            self.setup_exclude,
            self.no_db,
            self.reinit_local,
            self.discard_remote,
        ];
        let values = [
            &self.server_port,
            &self.server_host,
            &self.server_user,
            &self.server_socket,
            &self.database,
            &self.backend,
            &self.branch,
            &self.remote,
            &self.role,
            &self.agents_file,
            &self.agents_profile,
            &self.agents_template,
            &self.destroy_token,
        ];
        flags.contains(&true) || values.iter().any(|value| value.is_some())
    }
}

pub(super) fn run(context: &CommandContext<'_>, args: &InitArgs) -> Result<(), CliError> {
    let printer = context.printer;
    if args.ignored.storage.is_given() {
        printer
            .note("note: flags about the storage of the original are ignored; the store is in .gt");
    }
    let (root, made) = if let Ok(root) = context.root() {
        (root, None)
    } else {
        let actor = context.actor()?;
        let prefix = args.prefix.as_deref();
        let environment = &context.environment;
        let made = start_store(&context.directory, prefix, environment, &actor, &SystemClock)?;
        (context.directory.clone(), Some(made))
    };
    if let Some((prefix, _)) = &made {
        beads_directory::make(&root, prefix.as_str())?;
    }
    let lines = root.join(".beads").join("issues.jsonl");
    if args.from_jsonl && lines.is_file() {
        let summary = import_file(context, &lines)?;
        let brought = plural(summary.created + summary.updated, "issue");
        printer.note(format!("✓ Imported {brought} from {}", lines.display()));
    }
    if printer.json() {
        let prefix = made.as_ref().map(|(prefix, _)| prefix.to_string());
        return printer.object(&InstalledDocument {
            root: root.display().to_string(),
            created: made.is_some(),
            prefix,
            server: made.and_then(|(_, server)| server),
            joined: None,
        });
    }
    match made {
        Some((prefix, server)) => {
            let place = server.map(|server| format!(", on {server}")).unwrap_or_default();
            printer.done(format!("✓ Made a store in {}{place} (prefix {prefix})", root.display()))
        }
        None => printer.done(format!("Already inside the town {}; nothing to do", root.display())),
    }
}
