//! `bd merge-slot`: a bead that one holder has at a time.

use clap::{Args, Subcommand};
use gt_api::MergeSlotDocument;
use gt_beads::beads::{BeadChanges, NewBead, create, show, update};
use gt_core::{Bead, IssueType, Rig, Status};
use gt_town::{Town, rigs};

use crate::context::CommandContext;
use crate::error::CliError;

/// Let one agent at a time do something, such as merge
#[derive(Debug, Args)]
#[command(after_help = "The merge queue of gt needs no slot.

Examples:
  bd merge-slot create
  bd merge-slot acquire --holder refinery
  bd merge-slot release --holder refinery")]
pub(super) struct MergeSlotArgs {
    #[command(subcommand)]
    verb: SlotVerb,
}

#[derive(Debug, Subcommand)]
enum SlotVerb {
    /// Make the slot of this rig
    Create,
    /// Say which holder has it
    Check,
    /// Take it; exits with 1 if another holder has it
    Acquire(HolderArgs),
    /// Give it back
    Release(HolderArgs),
}

#[derive(Debug, Args)]
struct HolderArgs {
    /// The holder [default: you]
    #[arg(long, value_name = "NAME")]
    holder: Option<String>,
    #[arg(long, hide = true)]
    wait: bool,
}

pub(super) fn run(context: &CommandContext<'_>, args: &MergeSlotArgs) -> Result<(), CliError> {
    let town = context.store_town()?;
    let id = slot_id(&town)?;
    match &args.verb {
        SlotVerb::Create => {
            if slot(&town, &id).is_err() {
                let new = NewBead {
                    title: "Merge slot".to_owned(),
                    id: Some(id.clone()),
                    issue_type: Some(IssueType::parse("slot")?),
                    labels: vec!["gt:slot".to_owned()],
                    ..NewBead::default()
                };
                create(&town, &new, false)?;
            }
        }
        SlotVerb::Check => {}
        SlotVerb::Acquire(args) => {
            let claim = BeadChanges { claim: true, ..BeadChanges::default() };
            change(&held_by(context, args)?, &id, &claim)?;
        }
        SlotVerb::Release(args) => {
            let free = BeadChanges {
                status: Some(Status::Open),
                assignee: Some(String::new()),
                ..BeadChanges::default()
            };
            let holder = held_by(context, args)?;
            let has_it = slot(&town, &id)?.assignee;
            if !has_it.is_empty() && has_it != holder.actor().name {
                return Err(CliError::request(format!("{id} is held by {has_it}")));
            }
            change(&holder, &id, &free)?;
        }
    }
    let bead = slot(&town, &id)?;
    let printer = context.printer;
    let available = bead.status == Status::Open;
    if printer.json() {
        let holder = bead.assignee;
        return printer.object(&MergeSlotDocument { id, available, holder, waiters: Vec::new() });
    }
    match bead.assignee.as_str() {
        "" => printer.done(format!("{id} is free")),
        holder => printer.done(format!("{id} is held by {holder}")),
    }
}

/// The town, for the holder that a command names.
fn held_by(context: &CommandContext<'_>, args: &HolderArgs) -> Result<Town, CliError> {
    match &args.holder {
        Some(name) => context.for_actor(name).store_town(),
        None => context.store_town(),
    }
}

fn change(town: &Town, id: &str, changes: &BeadChanges) -> Result<(), CliError> {
    for result in update(town, &[id.to_owned()], changes)? {
        result?;
    }
    Ok(())
}

fn slot(town: &Town, id: &str) -> Result<Bead, CliError> {
    let found = show(town, &[id.to_owned()])?.into_iter().next();
    let found = found.and_then(Result::ok).map(|shown| shown.row.bead);
    found.ok_or_else(|| CliError::request("there is no slot yet; bd merge-slot create makes it"))
}

/// The slot of the rig of the working directory, or of the town.
fn slot_id(town: &Town) -> Result<String, CliError> {
    let rigs: Vec<Rig> = rigs::list(town)?.into_iter().map(|(rig, _)| rig).collect();
    let rig = town.rig_here(&rigs).or_else(|| <[_; 1]>::try_from(rigs).ok().map(|[only]| only));
    let prefix = rig.map_or_else(|| "hq".to_owned(), |rig| rig.prefix.to_string());
    Ok(format!("{prefix}-merge-slot"))
}
