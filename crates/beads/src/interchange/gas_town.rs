//! A Gas Town directory: its rigs, settings, accounts and pause state, and the beads of all its stores.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use gt_core::settings::{KEYS, SettingOrigin};
use gt_core::{Json, Prefix, RigSlug};
use gt_records::{RigEntry, Route, pause_remark, rig_entries};
use serde_json::Value;

use super::beads_directory::{self, NAME};
use super::import_contents::{ArrivingSetting, ImportContents, KeptRecord, SourceKind};
use super::rigs_and_settings::{KEPT_ACCOUNTS, KEPT_PAUSE};
use super::{ImportOptions, files};
use gt_town::file_settings;
use gt_town::file_settings::OldFileSettings;
use gt_town::{OperationError, Result};

/// The files that mark a directory as a Gas Town; one of them is enough.
const MARKS: [&str; 2] = [RIGS, "mayor/town.json"];
const RIGS: &str = "mayor/rigs.json";
const ACCOUNTS: &str = "mayor/accounts.json";
/// Where the pause state is; the newer file first.
const STATES: [&str; 2] = [".runtime/scheduler-state.json", ".runtime/queue-state.json"];
/// Files with a meaning for the programs that wrote them only.
const OTHERS: [&str; 6] = [
    "mayor/config.json",
    "mayor/daemon.json",
    "mayor/overseer.json",
    "settings/agents.json",
    "settings/escalation.json",
    "config/messaging.json",
];

/// Whether `directory` is one.
pub(super) fn is_one(directory: &Path) -> bool {
    MARKS.iter().any(|mark| directory.join(mark).is_file())
}

/// Everything that the Gas Town in `root` brings.
pub(super) fn arrival(root: &Path, options: ImportOptions) -> Result<ImportContents> {
    let mut reading = GasTownReader {
        root,
        options,
        arrival: ImportContents { kind: SourceKind::GasTown, ..ImportContents::default() },
        stores: Vec::new(),
    };
    let (routes, wrong) = beads_directory::routes(&root.join(NAME))?;
    reading.refuse_unless_skipping(wrong)?;
    reading.read_rigs(&routes)?;
    reading.read_settings()?;
    reading.read_keepsakes()?;
    reading.read_stores(&routes)?;
    Ok(reading.arrival)
}

struct GasTownReader<'a> {
    root: &'a Path,
    options: ImportOptions,
    arrival: ImportContents,
    /// The `.beads` directories that were read, so that none is read twice.
    stores: Vec<PathBuf>,
}

impl GasTownReader<'_> {
    fn read_rigs(&mut self, routes: &[Route]) -> Result<()> {
        let path = self.root.join(RIGS);
        let mut rigs = match files::json(&path)? {
            None => Vec::new(),
            Some((json, _)) => rig_entries(&json)
                .ok_or_else(|| files::wrong(&path, "there is no object called rigs in it"))?,
        };
        for rig in &mut rigs {
            if !is_plain_name(&rig.name) {
                continue;
            }
            if let Some((json, _)) = files::json(&self.root.join(&rig.name).join("config.json"))? {
                *rig = rig.clone().or(RigEntry::parse(&rig.name, &json));
            }
        }
        for route in routes {
            self.apply_route(&mut rigs, route);
        }
        self.arrival.rigs = rigs;
        Ok(())
    }

    /// A route names the prefix of the rig whose directory it leads to.
    fn apply_route(&mut self, rigs: &mut [RigEntry], route: &Route) {
        let name = first_part(&route.path);
        let prefix = &route.prefix;
        if name == "." {
            return;
        }
        let Some(rig) = rigs.iter_mut().find(|rig| rig.name == name) else {
            self.arrival.left_out.push(format!(
                "the route of {prefix}- leads to {}, and there is no rig {name}; its beads come \
                 without a rig",
                route.path
            ));
            return;
        };
        if rig.prefix.is_empty() {
            prefix.as_str().clone_into(&mut rig.prefix);
        } else if Prefix::parse(&rig.prefix).is_ok_and(|known| known != *prefix) {
            self.arrival.conflicts.push(format!(
                "the route of {prefix}- leads to the rig {name}, whose prefix is {}; beads that \
                 begin with {prefix}- come without a rig",
                rig.prefix
            ));
        }
    }

    fn read_settings(&mut self) -> Result<()> {
        let from_town = file_settings::of_town(self.root)?;
        self.take_settings(from_town, "");
        let names: Vec<String> = self.arrival.rigs.iter().map(|rig| rig.name.clone()).collect();
        for name in names {
            let Ok(slug) = RigSlug::parse(&name) else { continue };
            let directory = self.root.join(&name);
            let from_rig = file_settings::of_rig(&directory, &slug).map_err(|error| {
                OperationError::rejected(format!("{}: {error}", directory.display()))
            })?;
            self.take_settings(from_rig, &format!("{name}/"));
        }
        for other in OTHERS {
            if self.root.join(other).is_file() {
                self.arrival.left_out.push(format!("{other}: means nothing here; it stays there"));
            }
        }
        Ok(())
    }

    fn take_settings(&mut self, found: OldFileSettings, directory: &str) {
        for resolved in found.known {
            let file = match resolved.origin {
                SettingOrigin::File(file) => format!("{directory}{file}"),
                SettingOrigin::Store | SettingOrigin::Default => continue,
            };
            let (name, value) = (resolved.name, resolved.value);
            self.arrival.settings.push(ArrivingSetting { name, value, file });
        }
        let mut unknown: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (file, path) in found.unknown {
            unknown.entry(file).or_default().insert(shown(&path).to_owned());
        }
        for (file, names) in unknown {
            let names: Vec<String> = names.into_iter().collect();
            self.arrival
                .left_out
                .push(format!("{directory}{file}: no setting here is called {}", names.join(", ")));
        }
    }

    fn read_keepsakes(&mut self) -> Result<()> {
        if let Some((value, json)) = self.json_object(ACCOUNTS)? {
            let accounts = value.get("accounts").and_then(Value::as_object);
            let mut handles: Vec<&str> =
                accounts.into_iter().flat_map(|map| map.keys().map(String::as_str)).collect();
            handles.sort_unstable();
            let remark = if handles.is_empty() { "none".to_owned() } else { handles.join(", ") };
            self.arrival.kept.push(KeptRecord { key: KEPT_ACCOUNTS, value: json, remark });
        }
        let mut kept = None;
        for file in STATES {
            let Some((_, state)) = self.json_object(file)? else { continue };
            let remark = pause_remark(&state);
            match kept {
                None => {
                    kept = Some(file);
                    self.arrival.kept.push(KeptRecord { key: KEPT_PAUSE, value: state, remark });
                }
                Some(newer) => self.arrival.left_out.push(format!(
                    "{file} ({remark}): {newer} is the file of a newer version, and counts"
                )),
            }
        }
        Ok(())
    }

    fn json_object(&self, file: &str) -> Result<Option<(Value, Json)>> {
        let path = self.root.join(file);
        let Some((value, text)) = files::json(&path)? else { return Ok(None) };
        if !value.is_object() {
            return Err(files::wrong(&path, "it is not a JSON object"));
        }
        let json = Json::parse(&text)?;
        if gt_records::contains_nul(json.as_str()) {
            return Err(files::wrong(&path, "a text in it contains a NUL character"));
        }
        Ok(Some((value, json)))
    }

    fn read_stores(&mut self, routes: &[Route]) -> Result<()> {
        self.read_store_at(self.root, None)?;
        for number in 0..self.arrival.rigs.len() {
            let name = &self.arrival.rigs[number].name;
            if is_plain_name(name) {
                let rig = self.root.join(name);
                self.read_store_at(&rig.join("mayor/rig"), Some(number))?;
                self.read_store_at(&rig, Some(number))?;
            }
        }
        routes.iter().try_for_each(|route| self.read_store_at(&self.root.join(&route.path), None))
    }

    /// Reads the store of a project, of the rig with this number if it belongs to one.
    fn read_store_at(&mut self, project: &Path, rig: Option<usize>) -> Result<()> {
        let directory = project.join(NAME);
        if !directory.is_dir() {
            return Ok(());
        }
        match self.read_store(&directory, rig) {
            Err(error) if self.options.skip_invalid => {
                self.arrival.left_out.push(error.to_string());
                Ok(())
            }
            Err(OperationError::Rejected(why)) => Err(OperationError::rejected(format!(
                "{why} (--skip-invalid imports everything else)"
            ))),
            read => read,
        }
    }

    fn read_store(&mut self, directory: &Path, rig: Option<usize>) -> Result<()> {
        let contents = beads_directory::read(directory)?;
        if self.stores.contains(&contents.directory) {
            return Ok(());
        }
        self.stores.push(contents.directory.clone());
        if contents.is_empty() {
            let directory = contents.directory.display();
            self.arrival.left_out.push(format!("{directory}: there are no beads in it"));
            return Ok(());
        }
        let brought = contents.bring(self.options)?;
        if let (Some(rig), Some((prefix, _))) = (rig, brought.prefixes.last()) {
            let entry = &mut self.arrival.rigs[rig];
            if entry.prefix.is_empty() {
                entry.prefix.clone_from(prefix);
            }
        }
        self.arrival.absorb(brought);
        Ok(())
    }

    fn refuse_unless_skipping(&mut self, wrong: Vec<String>) -> Result<()> {
        match wrong.first() {
            Some(first) if !self.options.skip_invalid => Err(OperationError::rejected(format!(
                "{first} (nothing was imported; --skip-invalid leaves such lines out)"
            ))),
            _ => {
                self.arrival.left_out.extend(wrong);
                Ok(())
            }
        }
    }
}

/// The part of an unknown setting's path to show: all of it where settings beside it are known, else its first word.
fn shown(path: &str) -> &str {
    match path.split_once('.') {
        Some((head, _)) if !KEYS.iter().any(|known| known.name.split('.').next() == Some(head)) => {
            head
        }
        _ => path,
    }
}

/// Whether a name stays in the directory it is looked up in.
fn is_plain_name(name: &str) -> bool {
    !name.is_empty() && name != "." && name != ".." && !name.contains('/')
}

/// The first directory of a path, or `.` for here.
fn first_part(path: &str) -> &str {
    let path = path.trim_start_matches("./");
    path.split('/').find(|part| !part.is_empty()).unwrap_or(".")
}
