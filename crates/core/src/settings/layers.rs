//! Which of several sources decides.

use std::collections::{BTreeMap, BTreeSet};

use super::keys::{Setting, SettingName, is_removed, lookup};
use crate::{Invalid, RigSlug};

/// The origin of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettingOrigin {
    /// Set in the store.
    Store,
    /// Read from one of the older settings files.
    File(String),
    /// The default, because no layer sets it.
    Default,
}

/// A setting with the value in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    /// The setting.
    pub setting: &'static Setting,
    /// Its full name.
    pub name: SettingName,
    /// The value in force, in its canonical spelling.
    pub value: String,
    /// Its origin.
    pub origin: SettingOrigin,
}

/// Values by layer: the store over the older files over the defaults. Flags are above all of them
/// and never get here.
#[derive(Debug, Clone, Default)]
pub struct Layers {
    values: BTreeMap<SettingName, (String, SettingOrigin)>,
}

impl Layers {
    /// Adds values, weakest source first. Every value is checked; a wrong one is an error and never
    /// silently "unlimited". Values that a file gives to settings of the store alone are left out.
    pub fn add(
        &mut self,
        values: impl IntoIterator<Item = (String, String)>,
        origin: &SettingOrigin,
    ) -> Result<(), Invalid> {
        for (name, text) in values {
            if is_removed(&name) {
                continue;
            }
            let (setting, name) = lookup(&name)?;
            let is_store = *origin == SettingOrigin::Store;
            if (setting.is_store_only() && !is_store) || (setting.is_file_only() && is_store) {
                continue;
            }
            let value = setting
                .kind
                .canonical(&text)
                .map_err(|Invalid(why)| Invalid(format!("setting {name}: {why}")))?;
            self.values.insert(name, (value, origin.clone()));
        }
        Ok(())
    }

    /// The rigs that have settings of their own.
    pub fn rigs(&self) -> BTreeSet<RigSlug> {
        let names = self.values.keys().filter_map(|name| name.as_str().strip_prefix("rig."));
        let slugs = names.filter_map(|rest| rest.split_once('.'));
        slugs.map(|(slug, _)| RigSlug::trusted(slug.to_owned())).collect()
    }

    /// The value of `name` (or an alias) in force, to be shown. Code that uses a setting calls its accessor.
    pub fn get(&self, name: &str) -> Result<Resolved, Invalid> {
        let (setting, name) = lookup(name)?;
        let (value, origin) = self
            .values
            .get(&name)
            .cloned()
            .unwrap_or_else(|| (setting.default.to_owned(), SettingOrigin::Default));
        Ok(Resolved { setting, name, value, origin })
    }

    /// Every town-wide setting, and the per-rig settings that are set.
    pub fn all(&self) -> Vec<Resolved> {
        let town_wide = super::KEYS.iter().map(|setting| setting.name).filter(|n| !n.contains('*'));
        let per_rig = self.values.keys().map(SettingName::as_str).filter(|n| n.starts_with("rig."));
        town_wide.chain(per_rig).filter_map(|name| self.get(name).ok()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_store_is_over_the_files_over_the_defaults() {
        let mut layers = Layers::default();
        let file = SettingOrigin::File("settings/config.json".into());
        let entry = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        layers
            .add([entry("queue_max_polecats", "7"), entry("queue.batch_size", "2")], &file)
            .unwrap();
        layers.add([entry("queue.max_polecats", "3")], &SettingOrigin::Store).unwrap();
        let get = |name| layers.get(name).map(|r| (r.value, r.origin)).unwrap();
        assert_eq!(get("queue_max_polecats"), ("3".into(), SettingOrigin::Store));
        assert_eq!(get("scheduler.batch_size"), ("2".into(), file));
        assert_eq!(get("scheduler.max_polecats"), ("-1".into(), SettingOrigin::Default));
    }

    #[test]
    fn a_wrong_value_is_an_error_that_names_the_setting() {
        let mut layers = Layers::default();
        let wrong = [("queue_max_polecats".to_owned(), "many".to_owned())];
        let error = layers.add(wrong, &SettingOrigin::Store).unwrap_err().to_string();
        assert!(error.contains("queue.max_polecats"), "{error}");
    }
}
