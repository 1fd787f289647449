//! Settings: the typed ones of the town, and the free ones of `bd config`.

mod edit;

pub use edit::edit;

use std::path::Path;
use std::time::Duration;

use gt_core::limits::LABEL_BYTES_MAX;
use gt_core::settings::{
    Layers, REMOVED_MACHINE, REMOVED_OF_RIG, Resolved, SettingKind, SettingName, SettingOrigin,
    checked, lookup,
};
use gt_core::{Invalid, RigSlug, Status};
use gt_store::{Reader, SettingScope, Writer};

use crate::file_settings::{self, OldFileSettings, of_town};
use crate::hosting::{NoHosting, hosting_of, provider_named};
use crate::{OperationError, Result, Town};

/// Every setting with the value in force and where it comes from.
pub fn list(town: &Town) -> Result<Vec<Resolved>> {
    Ok(layers(town)?.all())
}

/// One setting, by its name or an alias.
pub fn get(town: &Town, name: &str) -> Result<Resolved> {
    let (_, full_name) = lookup(name)?;
    if let Some(slug) = rig_of(&full_name) {
        town.read(|reader| crate::rig_names::require(reader, slug.as_str()))?;
    }
    Ok(layers(town)?.get(name)?)
}

/// Refuses the name of a runtime that the town does not know. Runtimes are defined above the settings.
pub type CheckRuntime = fn(&Town, &str) -> Result<()>;

/// Sets a setting. Gives its full name and the value as it is kept.
pub fn set(
    town: &Town,
    name: &str,
    value: &str,
    check_runtime: CheckRuntime,
) -> Result<(SettingName, String)> {
    let (name, value) = checked(name, value)?;
    check_known(town, &name, &value, check_runtime)?;
    town.write(|writer| {
        put(writer, &name, Some(&value))?;
        Ok((name, value))
    })
}

fn check_known(
    town: &Town,
    name: &SettingName,
    value: &str,
    check_runtime: CheckRuntime,
) -> Result<()> {
    let (setting, _) = lookup(name.as_str())?;
    if setting.is_file_only() {
        return Err(OperationError::rejected(format!(
            "{name} describes one host, and the store is shared by all; write it into settings/config.json in the town's \
             directory of that host, such as {{\"host\": {{\"labels\": \"gpu,linux\"}}}}"
        )));
    }
    if setting.kind == SettingKind::Runtime && !value.is_empty() {
        check_runtime(town, value)?;
    }
    check_hosting(town, name, value)
}

/// Refuses a hosting service that is not known. Refuses the owner of a fork where the service of the rig takes no pull requests
/// from forks, and such a service where an owner is set. Otherwise the first request would say so.
fn check_hosting(town: &Town, name: &SettingName, value: &str) -> Result<()> {
    let Some((slug, key)) = name.as_str().strip_prefix("rig.").and_then(|it| it.rsplit_once('.'))
    else {
        return Ok(());
    };
    if value.is_empty() || !matches!(key, "pr_head" | "hosting") {
        return Ok(());
    }
    let (rig, layers) =
        town.read(|reader| Ok((reader.rig(slug)?, layers_in(town.root(), reader)?)))?;
    let Some(rig) = rig else { return Ok(()) };
    if key == "hosting" {
        provider_named(town, &rig, value)
            .map_err(|NoHosting(why)| OperationError::rejected(format!("{name}: {why}")))?;
    }
    let (owner, service) = match key {
        "pr_head" => (value.to_owned(), layers.rig_hosting(&rig.slug)?),
        _ => (layers.rig_pr_head(&rig.slug)?, value.to_owned()),
    };
    match hosting_of(town, &rig, &service) {
        Ok((_, provider)) if !owner.is_empty() && !provider.takes_forks() => {
            Err(OperationError::rejected(format!(
                "{} opens no merge requests from forks, and {name} would need that; let gt push to the origin itself (gt \
                 config unset rig.{slug}.pr_head)",
                provider.program()
            )))
        }
        // A service that cannot be asked holds the request, and says why.
        _ => Ok(()),
    }
}

/// Unsets a setting; says whether it was set.
pub fn unset(town: &Town, name: &str) -> Result<(SettingName, bool)> {
    let (_, name) = lookup(name)?;
    town.write(|writer| {
        let was_set = writer.put_setting(SettingScope::Town, name.as_str(), None)?;
        Ok((name, was_set))
    })
}

/// Takes the values of the older files into the store, where they can be changed. Gives what changed.
pub fn import(town: &Town) -> Result<Vec<(SettingName, String)>> {
    let OldFileSettings { known, .. } = of_town(town.root())?;
    town.write(|writer| {
        let mut changed = Vec::new();
        for resolved in known {
            if lookup(resolved.name.as_str())?.0.is_file_only() {
                continue;
            }
            if put(writer, &resolved.name, Some(&resolved.value))? {
                changed.push((resolved.name, resolved.value));
            }
        }
        Ok(changed)
    })
}

/// Sets or unsets a setting whose value was checked.
pub fn put(writer: &mut Writer<'_>, name: &SettingName, value: Option<&str>) -> Result<bool> {
    if let Some(slug) = rig_of(name)
        && value.is_some()
    {
        crate::rig_names::require(writer, slug.as_str())?;
    }
    Ok(writer.put_setting(SettingScope::Town, name.as_str(), value)?)
}

/// The value that was set in the store, to compare and to show. It need not be the one in force.
pub fn stored(reader: &Reader<'_>, name: &SettingName) -> Result<Option<String>> {
    Ok(reader.setting(SettingScope::Town, name.as_str())?)
}

/// Forgets what was set for a rig that goes.
pub(crate) fn forget_rig(writer: &mut Writer<'_>, rig: &RigSlug) -> Result<()> {
    let of_rig = format!("rig.{rig}.");
    for (key, _) in writer.settings(SettingScope::Town)? {
        if key.starts_with(&of_rig) {
            writer.put_setting(SettingScope::Town, &key, None)?;
        }
    }
    Ok(())
}

/// Takes the settings of a rig that are removed out of the store; gives the machine that they named, if they named one.
pub(crate) fn take_removed(writer: &mut Writer<'_>, rig: &RigSlug) -> Result<Option<String>> {
    let mut machine = None;
    for key in REMOVED_OF_RIG {
        let name = format!("rig.{rig}.{key}");
        if key == REMOVED_MACHINE {
            machine = writer.setting(SettingScope::Town, &name)?;
        }
        writer.put_setting(SettingScope::Town, &name, None)?;
    }
    Ok(machine.filter(|machine| !machine.trim().is_empty()))
}

fn rig_of(name: &SettingName) -> Option<RigSlug> {
    let (slug, _) = name.as_str().strip_prefix("rig.")?.split_once('.')?;
    Some(RigSlug::trusted(slug.to_owned()))
}

/// The settings in force, with their layers.
pub fn layers(town: &Town) -> Result<Layers> {
    town.read(|reader| layers_in(town.root(), reader))
}

/// Like [`layers`], as a part of a larger transaction.
pub fn layers_in(root: &Path, reader: &Reader<'_>) -> Result<Layers> {
    layers_over(&file_settings::layers(root)?, reader)
}

/// The layers of the older files, for a transaction that must not wait for a disk.
pub fn file_layers(town: &Town) -> Result<Layers> {
    match town.lease_host() {
        Some(host) => Ok(host.settings()),
        None => file_settings::layers(town.root()),
    }
}

/// The settings in the store over those in the files.
pub fn layers_over(files: &Layers, reader: &Reader<'_>) -> Result<Layers> {
    Ok(reader.settings_over(files)??)
}

/// The settings of the store, kept for a caller that asks often.
#[derive(Debug, Default)]
pub struct KeptSettings {
    stored: Option<(u64, Vec<(String, String)>)>,
}

impl KeptSettings {
    /// The settings in force. The store is read again if `state` has changed, a number that changes with its settings.
    pub fn layers(&mut self, town: &Town, state: u64) -> Result<Layers> {
        let stored = match self.stored.take() {
            Some((of, stored)) if of == state => stored,
            _ => town.read_newest(|reader| Ok(reader.settings(SettingScope::Town)?))?,
        };
        let mut layers = file_layers(town)?;
        layers.add(stored.iter().cloned(), &SettingOrigin::Store)?;
        self.stored = Some((state, stored));
        Ok(layers)
    }
}

/// Where the daemon serves the work queue over HTTP; empty if it does not.
pub fn bind_address(town: &Town) -> Result<String> {
    Ok(layers(town)?.serve_bind()?)
}

/// The addresses of the reverse proxies that are believed, separated by commas.
pub fn trusted_proxies(town: &Town) -> Result<String> {
    Ok(layers(town)?.server_trusted_proxies()?)
}

/// How long events and other history are kept.
pub fn history_kept(layers: &Layers) -> Result<Duration> {
    Ok(layers.events_keep()?)
}

/// The value that `bd config` or `bd kv` stored under this key.
pub fn get_free(town: &Town, scope: SettingScope, key: &str) -> Result<Option<String>> {
    town.read(|reader| Ok(reader.setting(scope, key)?))
}

/// All values that `bd config` or `bd kv` keeps.
pub fn list_free(town: &Town, scope: SettingScope) -> Result<Vec<(String, String)>> {
    town.read(|reader| Ok(reader.settings(scope)?))
}

/// Sets or removes a value of `bd config` or `bd kv`; returns whether that changed anything.
pub fn put_free(town: &Town, scope: SettingScope, key: &str, value: Option<&str>) -> Result<bool> {
    check_free(scope, key, value.unwrap_or_default())?;
    town.write(|writer| Ok(writer.put_setting(scope, key, value)?))
}

/// A sentence for each rig whose command is set and not used, because a setting names a runtime that counts before it. With a
/// name, only for the settings of that name.
pub fn unused_commands(town: &Town, about: Option<&str>) -> Result<Vec<String>> {
    let settings = town.scheduler_settings()?;
    let told = settings.unused_commands().into_iter().filter_map(|(rig, setting, runtime)| {
        let command = format!("rig.{rig}.command");
        let is_asked = about.is_none_or(|name| name == command || name == setting);
        is_asked.then(|| {
            format!(
                "{command} is set and not used: {setting} = {runtime} counts; gt config set rig.{rig}.runtime \
                 custom makes the command count"
            )
        })
    });
    Ok(told.collect())
}

/// Why work that is to become pull requests by this setting of a rig would be held, with the command that puts it right. Nothing
/// for every other setting, and for a rig whose hosting service is known.
pub fn lacks_hosting(town: &Town, name: &SettingName) -> Result<Option<String>> {
    let Some((slug, key)) = name.as_str().strip_prefix("rig.").and_then(|it| it.rsplit_once('.'))
    else {
        return Ok(None);
    };
    let (rig, layers) =
        town.read(|reader| Ok((reader.rig(slug)?, layers_in(town.root(), reader)?)))?;
    let Some(rig) = rig.filter(|rig| key == "merge" && !rig.repo.is_empty()) else {
        return Ok(None);
    };
    if layers.rig_merge(&rig.slug)? != "pr" {
        return Ok(None);
    }
    let hosting = hosting_of(town, &rig, &layers.rig_hosting(&rig.slug)?);
    Ok(hosting.err().map(|NoHosting(why)| format!("no pull request can be opened: {why}")))
}

/// Refuses what `bd config` or `bd kv` cannot keep.
pub fn check_free(scope: SettingScope, key: &str, value: &str) -> Result<()> {
    let fits = key.len() <= LABEL_BYTES_MAX && !key.chars().any(char::is_control);
    if key.trim().is_empty() || !fits {
        let shown: String = key.chars().take(60).collect();
        return Err(Invalid(format!(
            "\"{}\" is not a key; use 1 to {LABEL_BYTES_MAX} printable characters",
            shown.escape_debug()
        ))
        .into());
    }
    gt_core::bead::check_text("value", value)?;
    if scope == SettingScope::Beads && key == CUSTOM_STATUSES {
        custom_statuses(value)?;
    }
    let is_named = scope == SettingScope::Beads && key == EXPORT_PATH && !value.is_empty();
    if is_named && !Path::new(value).ends_with(BEADS_FILE) {
        let shown = value.escape_debug();
        return Err(
            Invalid(format!("{EXPORT_PATH}: \"{shown}\" does not end in {BEADS_FILE}")).into()
        );
    }
    Ok(())
}

/// The key under which `bd config` keeps the place of the file of beads. Its value ends in [`BEADS_FILE`], because an import may
/// bring one, and no other file must be replaced.
pub const EXPORT_PATH: &str = "export.path";
/// The file of beads, from the root of a town or of a repository.
pub const BEADS_FILE: &str = ".beads/issues.jsonl";

/// The key under which `bd config` keeps the statuses of a team's own.
pub const CUSTOM_STATUSES: &str = "status.custom";

/// The statuses of a team's own in a value of that key, each with its category: `name` or
/// `name:category`, separated by commas.
fn custom_statuses(value: &str) -> Result<Vec<(Status, String)>> {
    const CATEGORIES: [&str; 4] = ["active", "wip", "done", "frozen"];
    let entries = value.split(',').map(str::trim).filter(|_| !value.is_empty());
    let status = |entry: &str| {
        let (name, category) = entry.split_once(':').unwrap_or((entry, "active"));
        match Status::parse(name) {
            Ok(status @ Status::Custom(_)) if CATEGORIES.contains(&category) => {
                Ok((status, category.to_owned()))
            }
            _ => Err(OperationError::rejected(format!(
                "{CUSTOM_STATUSES}: \"{}\" is not a status of one's own; write name or \
                 name:active|wip|done|frozen, with small letters, digits, - and _",
                entry.escape_debug()
            ))),
        }
    };
    entries.map(status).collect()
}

/// The statuses of a team's own, each with its category; staged convoys have two of theirs.
pub fn known_custom_statuses(reader: &Reader<'_>) -> Result<Vec<(Status, String)>> {
    let configured = reader.setting(SettingScope::Beads, CUSTOM_STATUSES)?.unwrap_or_default();
    let mut known = custom_statuses("staged_ready,staged_warnings")?;
    known.extend(custom_statuses(&configured)?);
    Ok(known)
}

/// The statuses of a team's own that mean that a bead needs no more attention.
pub fn retired_statuses(town: &Town) -> Result<Vec<Status>> {
    let known = town.read(known_custom_statuses)?;
    let retired = |category: &str| matches!(category, "done" | "frozen");
    Ok(known.into_iter().filter(|(_, c)| retired(c)).map(|(status, _)| status).collect())
}
