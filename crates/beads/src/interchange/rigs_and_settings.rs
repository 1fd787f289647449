//! Rigs and settings that arrive. Where the town says something else already, it stays, and that is told.

use gt_core::settings::shown;
use gt_core::{Json, Prefix, Rig, RigSlug};
use gt_records::{RigEntry, pause_of};
use gt_store::{Pause, Reader, SettingScope, Writer};

use super::{ImportContents, ImportSummary};
use gt_town::{Result, settings};

/// The key under which the accounts of a Gas Town are kept, as they stood in `mayor/accounts.json`.
pub const KEPT_ACCOUNTS: &str = "accounts";
/// The key under which the pause state of a Gas Town is kept, as it stood in its state file.
pub const KEPT_PAUSE: &str = "pause";

/// Takes over everything that arrives besides beads.
pub(super) fn import_rigs_and_settings(
    writer: &mut Writer<'_>,
    arrival: &ImportContents,
    summary: &mut ImportSummary,
) -> Result<()> {
    for entry in &arrival.rigs {
        add_rig(writer, entry, summary)?;
    }
    for setting in &arrival.settings {
        let name = &setting.name;
        let now = settings::stored(writer, name)?;
        match now {
            Some(now) if now == setting.value => summary.settings_unchanged += 1,
            Some(now) => {
                let now = shown(name.as_str(), &now);
                let value = shown(name.as_str(), &setting.value);
                summary.conflicts.push(format!(
                    "setting {name}: it is {now} here, and {value} in {}; gt config set {name} {value} \
                     takes it",
                    setting.file
                ));
            }
            None => match settings::put(writer, name, Some(&setting.value)) {
                Ok(_) => {
                    let value = shown(name.as_str(), &setting.value).into_owned();
                    summary.settings.push((name.to_string(), value));
                }
                Err(error) => summary.conflicts.push(format!("setting {name}: {error}")),
            },
        }
    }
    for setting in &arrival.free_settings {
        let key = &setting.name;
        let now = writer.setting(SettingScope::Beads, key)?;
        match now {
            Some(now) if now == setting.value => summary.settings_unchanged += 1,
            Some(now) => summary.conflicts.push(format!(
                "bd config {key}: it is \"{now}\" here, and \"{}\" in {}",
                setting.value, setting.file
            )),
            None => match settings::check_free(SettingScope::Beads, key, &setting.value) {
                Ok(()) => {
                    writer.put_setting(SettingScope::Beads, key, Some(&setting.value))?;
                    summary.settings.push((key.clone(), setting.value.clone()));
                }
                Err(error) => {
                    summary.conflicts.push(format!("bd config {key} in {}: {error}", setting.file));
                }
            },
        }
    }
    for keepsake in &arrival.kept {
        let value = Some(keepsake.value.as_str());
        // A copy of what stands there, so a later state of it replaces an earlier one.
        if writer.put_setting(SettingScope::Imported, keepsake.key, value)? {
            summary.kept.push((keepsake.key.to_owned(), keepsake.remark.clone()));
            if keepsake.key == KEPT_PAUSE {
                pause(writer, &keepsake.value, summary)?;
            }
        } else {
            summary.settings_unchanged += 1;
        }
    }
    mention_prefixes(writer, arrival, summary)
}

/// Pauses the town if the Gas Town was paused. The same state once more changes nothing, so that a resume holds.
fn pause(writer: &mut Writer<'_>, state: &Json, summary: &mut ImportSummary) -> Result<()> {
    let Some((by, at)) = pause_of(state) else { return Ok(()) };
    if writer.scheduler_state()?.paused.is_some() {
        return Ok(());
    }
    let by = if by.is_empty() { writer.actor().to_owned() } else { by };
    let at = at.unwrap_or(writer.now()).min(writer.now());
    writer.set_paused(Some(&Pause { by: by.clone(), at }))?;
    summary.remarks.push(format!(
        "the scheduler is paused, as it was there (by {by}): nothing starts until gt scheduler resume"
    ));
    Ok(())
}

fn add_rig(writer: &mut Writer<'_>, entry: &RigEntry, summary: &mut ImportSummary) -> Result<()> {
    let name = &entry.name;
    let slug = match RigSlug::parse(name) {
        Ok(slug) => slug,
        Err(error) => {
            summary.conflicts.push(format!("rig {name}: {error}; its beads come without a rig"));
            return Ok(());
        }
    };
    if let Some(here) = writer.rig(slug.as_str())? {
        match difference(&here, entry) {
            None => summary.rigs_unchanged += 1,
            Some(difference) => summary.conflicts.push(format!("rig {name}: {difference}")),
        }
        return Ok(());
    }
    match free_prefix(writer, entry)? {
        Err(why) => {
            summary.conflicts.push(format!("rig {name}: {why}; its beads come without a rig"));
        }
        Ok(prefix) => {
            let now = writer.now();
            // A rig with a repository has a branch; this is what its old home falls back to.
            let branch = match (entry.repo.as_str(), entry.default_branch.as_str()) {
                ("", _) => "",
                (_, "") => "main",
                (_, branch) => branch,
            };
            let rig = Rig {
                repo: entry.repo.clone(),
                default_branch: branch.to_owned(),
                created_at: entry.added_at.unwrap_or(now),
                ..Rig::new(slug.clone(), name, prefix, slug.as_str(), now)
            };
            writer.insert_rig(&rig)?;
            summary.rigs.push(slug);
        }
    }
    Ok(())
}

/// The prefix of an arriving rig, or why it cannot have it.
fn free_prefix(reader: &Reader<'_>, entry: &RigEntry) -> Result<Result<Prefix, String>> {
    let rigs = reader.rigs()?;
    if entry.prefix.is_empty() {
        let taken = |prefix: &str| rigs.iter().any(|rig| rig.prefix.as_str() == prefix);
        return Ok(Prefix::derive(&entry.name, taken).map_err(|error| error.to_string()));
    }
    let prefix = match Prefix::parse(&entry.prefix) {
        Ok(prefix) => prefix,
        Err(error) => return Ok(Err(error.to_string())),
    };
    if let Err(error) = gt_town::rig_names::refuse_reserved(&prefix) {
        return Ok(Err(error.to_string()));
    }
    Ok(match rigs.iter().find(|rig| rig.prefix == prefix) {
        Some(rig) => Err(format!("the prefix {prefix} belongs to the rig {} here", rig.slug)),
        None => Ok(prefix),
    })
}

/// The differences between the rig that is here and the arriving one.
fn difference(here: &Rig, entry: &RigEntry) -> Option<String> {
    let arriving_prefix = entry.prefix.strip_suffix('-').unwrap_or(&entry.prefix);
    let all = [
        ("prefix", here.prefix.as_str(), arriving_prefix),
        ("repository", here.repo.as_str(), entry.repo.as_str()),
        ("branch", here.default_branch.as_str(), entry.default_branch.as_str()),
    ];
    let differing: Vec<String> = all
        .iter()
        .filter(|(_, here, there)| !there.is_empty() && here != there)
        .map(|(what, here, there)| format!("its {what} is \"{here}\" here, and \"{there}\" there"))
        .collect();
    (!differing.is_empty()).then(|| differing.join("; "))
}

/// Tells which stores have a prefix that belongs to no rig here.
fn mention_prefixes(
    reader: &Reader<'_>,
    arrival: &ImportContents,
    summary: &mut ImportSummary,
) -> Result<()> {
    let rigs = reader.rigs()?;
    for (prefix, file) in &arrival.prefixes {
        let bare = prefix.strip_suffix('-').unwrap_or(prefix);
        let is_known = Prefix::TOWN == bare || rigs.iter().any(|rig| rig.prefix.as_str() == bare);
        if !is_known {
            summary.remarks.push(format!(
                "{file} says that its ids begin with \"{prefix}\", and no rig here has that \
                 prefix; gt rig add <name> --prefix {bare} gives them one, now or later"
            ));
        }
    }
    Ok(())
}
