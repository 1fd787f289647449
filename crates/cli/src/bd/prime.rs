//! `bd prime`.

use std::fmt::Write as _;

use clap::Args;
use gt_api::{
    PrimerBeadDocument, PrimerCountsDocument, PrimerDocument, SessionContextDocument,
    SessionHookDocument,
};
use gt_beads::beads::{Primer, primer};
use gt_beads::memories::{KeptFact, memories};
use gt_town::{BeadRow, OperationError, Town};

use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::plural;

/// How many beads of each kind are named.
const SHOWN: usize = 5;
/// An agent's context is dear; a long title is cut there.
const TITLE_CHARS: usize = 72;

/// Tell an agent that starts how things stand and how to work here
#[derive(Debug, Default, Args)]
#[command(
    after_help = "Made for the start hook of an agent: prints Markdown, and outside of a town nothing at all. It never
fails, so that it never keeps an agent from starting.

Examples:
  bd prime
  bd prime --full
  bd prime --hook-json"
)]
pub(super) struct PrimeArgs {
    /// Also dependencies, queries and habits
    #[arg(long)]
    full: bool,
    /// As the answer of a session hook: JSON with the text in it
    #[arg(long)]
    hook_json: bool,
    /// Without the commands, for agents that have tools for beads
    #[arg(long, conflicts_with = "full")]
    mcp: bool,
    /// The text of this program, also if the directory .beads has one of its own
    #[arg(long)]
    export: bool,
    /// Only the memories
    #[arg(long)]
    memories_only: bool,
    /// No memories
    #[arg(long, conflicts_with = "memories_only")]
    no_memories: bool,
    /// Accepted for hooks of the original; no text here asks for git commands
    #[arg(long, hide = true)]
    stealth: bool,
}

impl PrimeArgs {
    /// For the hook of an agent.
    pub(super) fn for_hook() -> Self {
        Self { hook_json: true, ..Self::default() }
    }
}

const COMMANDS: &str = "\
- `bd ready` lists what can be worked on, `bd show <id>` tells all about one
- `bd update <id> --claim` takes it before you start; only one can
- `bd create \"Title\" -t bug -p 1 -d \"…\"` notes what you come across
- `bd close <id> --reason \"…\"` when it is done, `--outcome failed` when it did not work
- `bd comments add <id> \"…\"` for the next worker
";

const MORE_COMMANDS: &str = "\
- `bd dep add <id> <other>`: id waits for other; `bd blocked` lists what waits, and for what
- `bd create \"Part\" --parent <id>` makes a part, `bd children <id>` lists them
- `bd query \"priority<=1 AND label=backend AND updated<7d\"` finds anything, `bd query --help` says how
- `bd defer <id> --until +2d` puts off, `bd undefer <id>` takes up again
- `bd activity --limit 20` is what happened lately

## Habits

- One bead, one thing. What you find on the way becomes a bead of its own: `--deps discovered-from:<id>`
- Say in the bead what the next one needs to know; your memory ends with your session
- Never edit the store's files; every change goes through `bd`
- `--json` works everywhere, and an exit code other than 0 means that it was not done
";

pub(super) fn run(context: &CommandContext<'_>, args: &PrimeArgs) -> Result<(), CliError> {
    let page = match prime(context, args) {
        Err(CliError::Operation(OperationError::NoTown(_) | OperationError::NoDirectory)) => {
            String::new()
        }
        Err(CliError::Operation(error)) => {
            context.printer.note(format!("bd prime: {}", CliError::from(error).chain()));
            String::new()
        }
        Ok(Some(page)) => page,
        // It is printed.
        Ok(None) => return Ok(()),
        Err(error) => return Err(error),
    };
    if args.hook_json {
        return context.printer.json_line(&SessionHookDocument {
            hook_specific_output: SessionContextDocument {
                hook_event_name: "SessionStart".to_owned(),
                additional_context: page,
            },
        });
    }
    context.printer.text(&page)
}

/// The page for an agent; nothing if JSON was asked for, which is printed then.
fn prime(context: &CommandContext<'_>, args: &PrimeArgs) -> Result<Option<String>, CliError> {
    let town = context.town()?;
    if context.printer.json() && !args.hook_json {
        context.printer.object(&document(&town, &primer(&town, SHOWN)?))?;
        return Ok(None);
    }
    let kept = if args.no_memories { Vec::new() } else { memories(&town, None)? };
    let remembered = memory_section(&kept);
    if args.memories_only {
        return Ok(Some(remembered));
    }
    let own_text = town.root().join(".beads").join("PRIME.md");
    let page = match std::fs::read_to_string(own_text) {
        Ok(text) if !args.export => text,
        _ => markdown(&town, &primer(&town, SHOWN)?, args),
    };
    Ok(Some(page + &remembered))
}

fn memory_section(kept: &[KeptFact]) -> String {
    if kept.is_empty() {
        return String::new();
    }
    let lines = kept.iter().map(|KeptFact { key, text }| {
        // A memory of several lines stays one entry of the list.
        format!("- `{key}`: {}\n", text.split_whitespace().collect::<Vec<_>>().join(" "))
    });
    format!("\n## Memories\n\n{}", lines.collect::<String>())
}

fn markdown(town: &Town, found: &Primer, args: &PrimeArgs) -> String {
    let mut page = String::from("# Work is tracked in beads (`bd`)\n\n");
    let place = town.root().display();
    let rig = found.rig.as_ref().map_or_else(String::new, |rig| format!(", rig {}", rig.slug));
    // Writing into a text cannot fail.
    let _ = writeln!(page, "You are `{}` in the town {place}{rig}.", town.actor().name);
    let ready = plural(found.ready_count, "bead");
    let (active, waiting) = (found.active_count, found.waiting_count);
    let _ = writeln!(page, "{ready} ready, {active} in progress, {waiting} waiting for others.");
    let more = if found.more_claimed { "- … and more: `bd list --assignee …`\n" } else { "" };
    section(&mut page, "Yours", &found.claimed, more);
    let rest = found.ready_count.saturating_sub(found.ready.len() as u64);
    let more =
        if rest > 0 { format!("- … and {rest} more: `bd ready`\n") } else { String::new() };
    section(&mut page, "Ready", &found.ready, &more);
    if !args.mcp {
        let more = if args.full { MORE_COMMANDS } else { "" };
        let _ = write!(page, "\n## Commands\n\n{COMMANDS}{more}");
    }
    page
}

fn section(page: &mut String, name: &str, rows: &[BeadRow], more: &str) {
    if rows.is_empty() {
        return;
    }
    let _ = write!(page, "\n## {name}\n\n");
    for BeadRow { bead, .. } in rows {
        let mut title: String = bead.title.as_str().chars().take(TITLE_CHARS).collect();
        if title.len() < bead.title.as_str().len() {
            title.push('…');
        }
        let (id, priority, kind) = (&bead.id, bead.priority, &bead.issue_type);
        // A control character in a title must not break the line of the list.
        let title = title.replace(char::is_control, " ");
        let _ = writeln!(page, "- `{id}` {priority} {kind}: {title}");
    }
    page.push_str(more);
}

fn document(town: &Town, found: &Primer) -> PrimerDocument {
    PrimerDocument {
        actor: town.actor().name.clone(),
        town: town.root().display().to_string(),
        rig: found.rig.as_ref().map(|rig| rig.slug.to_string()),
        beads: PrimerCountsDocument {
            ready: found.ready_count,
            in_progress: found.active_count,
            waiting: found.waiting_count,
        },
        claimed: found.claimed.iter().map(bead_document).collect(),
        ready: found.ready.iter().map(bead_document).collect(),
    }
}

fn bead_document(BeadRow { bead, .. }: &BeadRow) -> PrimerBeadDocument {
    PrimerBeadDocument {
        id: bead.id.to_string(),
        title: bead.title.to_string(),
        status: bead.status.to_string(),
        priority: bead.priority.number(),
        issue_type: bead.issue_type.to_string(),
    }
}
