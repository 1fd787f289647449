//! The JSON files that older versions kept settings in.

use std::path::Path;

use gt_core::settings::{Layers, Resolved, SettingOrigin};
use gt_core::{Invalid, RigSlug};
use gt_records::json_settings;

use crate::{OperationError, Result};

/// The files below a town's directory; an earlier one is over a later one.
const FILES: [&str; 2] = ["settings/config.json", "mayor/town-settings.json"];

/// The file below a rig's directory.
const RIG_FILE: &str = "settings/config.json";

/// The settings in older files.
#[derive(Debug, Default)]
pub struct OldFileSettings {
    /// The settings we know, with their files.
    pub known: Vec<Resolved>,
    /// Each other thing that is set there: the file, and the path to it.
    pub unknown: Vec<(String, String)>,
}

/// The settings in the files below a town's directory.
pub fn of_town(root: &Path) -> Result<OldFileSettings> {
    let mut found = OldFileSettings::default();
    let mut layers = Layers::default();
    for file in FILES.into_iter().rev() {
        found.unknown.extend(add(&mut layers, root, file, "")?);
    }
    found.known = set_in_files(&layers);
    Ok(found)
}

/// The settings in the file below a rig's directory.
pub fn of_rig(directory: &Path, rig: &RigSlug) -> Result<OldFileSettings> {
    let mut layers = Layers::default();
    let unknown = add(&mut layers, directory, RIG_FILE, &format!("rig.{rig}"))?;
    Ok(OldFileSettings { known: set_in_files(&layers), unknown })
}

/// The files below a town's directory as layers, weakest first.
pub fn layers(root: &Path) -> Result<Layers> {
    let mut layers = Layers::default();
    for file in FILES.into_iter().rev() {
        add(&mut layers, root, file, "")?;
    }
    Ok(layers)
}

fn set_in_files(layers: &Layers) -> Vec<Resolved> {
    let all = layers.all().into_iter();
    all.filter(|resolved| matches!(resolved.origin, SettingOrigin::File(_))).collect()
}

/// Adds what a file says under `base`; gives what else is set there. A file that cannot be read is an
/// error: taking it for "nothing set" could mean "no limit".
fn add(layers: &mut Layers, root: &Path, file: &str, base: &str) -> Result<Vec<(String, String)>> {
    let path = root.join(file);
    let text = match std::fs::read_to_string(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        read => read.map_err(|source| OperationError::File { action: "read", path, source })?,
    };
    let found = json_settings(&text, base)
        .map_err(|Invalid(why)| OperationError::rejected(format!("{file} {why}")))?;
    layers
        .add(found.known, &SettingOrigin::File(file.to_owned()))
        .map_err(|Invalid(why)| OperationError::rejected(format!("{file}: {why}")))?;
    let inside = |path: String| match path.strip_prefix(base) {
        Some(rest) => rest.trim_start_matches('.').to_owned(),
        None => path,
    };
    Ok(found.unknown.into_iter().map(|path| (file.to_owned(), inside(path))).collect())
}
