//! The checks of a rig, which the setting `rig.<rig>.checks` keeps.

use std::path::Path;

use gt_core::checks::{
    CheckDefinition, SUGGESTION_FILES, parse_checks, suggest_checks, write_checks,
};
use gt_core::merging::{MergeRequest, RequestHold, RequestState};
use gt_core::settings::{SettingName, lookup};
use gt_core::{Rig, RigSlug};
use gt_executors::git::{Repository, files_of_checkout};
use gt_store::{Reader, Writer};

use super::require;
use crate::settings::{layers, put, stored};
use crate::tree_paths::{Trees, git_failed};
use crate::{OperationError, Result, Town};

/// The checks of a rig, in the order in which they run.
pub fn checks(town: &Town, rig: &RigSlug) -> Result<Vec<CheckDefinition>> {
    Ok(layers(town)?.rig_checks(rig)?)
}

/// The same within a transaction.
pub fn checks_in(reader: &Reader<'_>, rig: &RigSlug) -> Result<Vec<CheckDefinition>> {
    Ok(kept(reader, rig)?.1)
}

/// Adds a check to a rig, after those it has; says whether that changed anything.
pub fn add_check(town: &Town, rig: &str, check: &CheckDefinition) -> Result<(Rig, bool)> {
    town.write(|writer| {
        let rig = require(writer, rig)?;
        if !rig.has_trees() {
            return Err(OperationError::rejected(format!(
                "the rig {} has no repository that gt lands work in, so no check would run; add one that has",
                rig.slug
            )));
        }
        let (name, mut checks) = kept(writer, &rig.slug)?;
        match checks.iter().find(|other| other.name == check.name) {
            Some(same) if same == check => return Ok((rig, false)),
            Some(other) => {
                return Err(OperationError::rejected(format!(
                    "the rig {0} has a check {1} already ({2}); remove it first with gt rig check remove {0} {1}",
                    rig.slug, other.name, other.command
                )));
            }
            None => checks.push(check.clone()),
        }
        let text = write_checks(&checks);
        // The limits of a list are checked where it is read.
        parse_checks(&text)?;
        put(writer, &name, Some(&text))?;
        check_again(writer, &rig.slug)?;
        Ok((rig, true))
    })
}

/// Removes a check from a rig.
pub fn remove_check(town: &Town, rig: &str, check: &str) -> Result<(Rig, CheckDefinition)> {
    town.write(|writer| {
        let rig = require(writer, rig)?;
        let (name, mut checks) = kept(writer, &rig.slug)?;
        let Some(at) = checks.iter().position(|other| other.name == check) else {
            let known: Vec<&str> = checks.iter().map(|check| check.name.as_str()).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            return Err(OperationError::rejected(format!(
                "the rig {} has no check \"{}\"; its checks: {known}",
                rig.slug,
                check.chars().take(60).collect::<String>().escape_debug()
            )));
        };
        let removed = checks.remove(at);
        let text = write_checks(&checks);
        put(writer, &name, Some(text.as_str()).filter(|text| !text.is_empty()))?;
        check_again(writer, &rig.slug)?;
        Ok((rig, removed))
    })
}

/// Lets everything be looked at again that waits because of a check: the checks of the rig are others now.
fn check_again(writer: &mut Writer<'_>, rig: &RigSlug) -> Result<()> {
    for queue in writer.merge_queues()?.into_iter().filter(|queue| queue.rig == *rig) {
        if queue.red.is_some() {
            writer.set_red_target(rig, &queue.target, None)?;
        }
    }
    let held = RequestState::Held(RequestHold::CheckError);
    let waits = |request: &MergeRequest| request.rig == *rig && request.state == held;
    for request in writer.open_merge_requests()?.into_iter().filter(waits) {
        let due = MergeRequest { retry_at: Some(writer.now()), ..request };
        writer.save_merge_request(held, &due)?;
    }
    Ok(())
}

/// The setting, and the checks that it keeps. Files cannot set it.
fn kept(reader: &Reader<'_>, rig: &RigSlug) -> Result<(SettingName, Vec<CheckDefinition>)> {
    let (_, name) = lookup(&format!("rig.{rig}.checks"))?;
    let text = stored(reader, &name)?.unwrap_or_default();
    Ok((name, parse_checks(&text)?))
}

/// Whether the repository of a rig may be fetched over a network to look at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MayFetch {
    /// It is cloned if it is not here yet, as the first run would do.
    Yes,
    /// Only a repository that is on this machine is looked at.
    No,
}

/// The checks that the files on the default branch of a rig suggest.
pub fn suggested_checks(
    town: &Town,
    rig: &Rig,
    may_fetch: MayFetch,
) -> Result<Vec<CheckDefinition>> {
    let Some(trees) = Trees::of(town, rig) else { return Ok(Vec::new()) };
    let failed = git_failed(rig);
    let local = Path::new(&rig.repo);
    let repository = match may_fetch {
        MayFetch::No if trees.repository().exists() => trees.repository(),
        _ if local.is_dir() => {
            let branch = format!("refs/heads/{}", rig.default_branch);
            let files = files_of_checkout(local, &branch, &SUGGESTION_FILES).map_err(&failed)?;
            return Ok(suggest_checks(&files));
        }
        MayFetch::No => return Ok(Vec::new()),
        MayFetch::Yes => {
            Repository::clone_from(&rig.repo, trees.repository().path()).map_err(&failed)?
        }
    };
    let Some(tip) = repository.tip(&rig.default_branch).map_err(&failed)? else {
        return Ok(Vec::new());
    };
    Ok(suggest_checks(&repository.files(&tip, &SUGGESTION_FILES).map_err(&failed)?))
}
