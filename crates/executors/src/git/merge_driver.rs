//! The program by which git merges certain files of a checkout.

use std::path::Path;

use super::call::GitCall;
use super::error::GitError;

/// Tells the git of a checkout which command merges files with the attribute `merge=<name>`. The setting is that of this clone.
pub fn set_merge_driver(
    checkout: &Path,
    name: &str,
    title: &str,
    command: &str,
) -> Result<(), GitError> {
    for (key, value) in [("name", title), ("driver", command)] {
        let deed = format!("set the merge driver {name} of {}", checkout.display());
        let key = format!("merge.{name}.{key}");
        GitCall::in_checkout(checkout, deed).args(["config", "--local", &key, value]).done()?;
    }
    Ok(())
}
