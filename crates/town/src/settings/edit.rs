//! Changing settings in an editor.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use gt_core::settings::{Resolved, SettingName, SettingOrigin, parse_text, shown};
use gt_executors::editor;

use super::{CheckRuntime, check_known, list, put, stored};
use crate::{OperationError, Result, Town};

/// Opens the settings in the person's editor and applies what they leave there, all at once. If that
/// is refused, what they wrote is kept, and the error says where. Gives what changed.
pub fn edit(
    town: &Town,
    program: &str,
    check_runtime: CheckRuntime,
) -> Result<Vec<(SettingName, Option<String>)>> {
    let path = town.root().join(format!(".gt/settings-{}.edit", std::process::id()));
    let failed = |action: &'static str| {
        let path = path.clone();
        move |source| OperationError::File { action, path, source }
    };
    let before = as_text(town)?;
    gt_executors::private::write(&path, &before).map_err(failed("write"))?;
    let edited = editor::edit(program, &path)
        .map_err(OperationError::from)
        .and_then(|()| std::fs::read_to_string(&path).map_err(failed("read")));
    let applied = edited.and_then(|text| apply_text(town, &before, &text, check_runtime));
    let unchanged = || std::fs::read_to_string(&path).is_ok_and(|text| text == before);
    match applied {
        Err(error) if !unchanged() => Err(OperationError::rejected(format!(
            "{error}; what you wrote is kept in {}",
            path.display()
        ))),
        applied => {
            std::fs::remove_file(&path).map_err(failed("remove"))?;
            applied
        }
    }
}

/// All settings as text that a person can edit: one `name = value` per line, defaults commented out.
fn as_text(town: &Town) -> Result<String> {
    let mut text = String::from(
        "# One setting per line: name = value. A line that is removed or commented out is unset.\n",
    );
    for Resolved { setting, name, value, origin } in list(town)? {
        let mark = if origin == SettingOrigin::Store { "" } else { "# " };
        let kind = setting.kind.describe();
        let _ = write!(text, "\n# {} ({kind})\n{mark}{name} = {value}\n", setting.help);
    }
    Ok(text)
}

/// Applies the difference between the text that a person was given and the text they left, all at once. Changes by
/// others meanwhile stay, unless they concern the same setting: then nothing is applied. Returns the changes.
fn apply_text(
    town: &Town,
    before: &str,
    after: &str,
    check_runtime: CheckRuntime,
) -> Result<Vec<(SettingName, Option<String>)>> {
    let (before, after) = (parse_text(before)?, parse_text(after)?);
    let names: BTreeSet<&SettingName> = before.keys().chain(after.keys()).collect();
    for (name, value) in &after {
        if before.get(name) != Some(value) {
            check_known(town, name, value, check_runtime)?;
        }
    }
    town.write(|writer| {
        let mut changed = Vec::new();
        for name in names {
            let (old, new) = (before.get(name), after.get(name));
            if old == new {
                continue;
            }
            let now = stored(writer, name)?;
            if now.as_ref() != old {
                return Err(OperationError::rejected(format!(
                    "{name} was changed by another process meanwhile (it is {} now); nothing was \
                     applied",
                    now.as_deref().map_or("unset".into(), |now| shown(name.as_str(), now))
                )));
            }
            if put(writer, name, new.map(String::as_str))? {
                changed.push((name.clone(), new.cloned()));
            }
        }
        Ok(changed)
    })
}
