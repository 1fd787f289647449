//! Finding rigs by name, and the names that no rig may have.

use gt_core::{Prefix, Rig};
use gt_store::Reader;

use crate::{OperationError, Result};

/// The rig of this name.
pub fn require(reader: &Reader<'_>, name: &str) -> Result<Rig> {
    if let Some(rig) = reader.rig(name)? {
        return Ok(rig);
    }
    let known = reader.rigs()?.into_iter().map(|rig| rig.slug.to_string()).collect();
    Err(OperationError::NoRig { name: name.to_owned(), known })
}

/// Some prefixes belong to the town itself.
pub fn refuse_reserved(prefix: &Prefix) -> Result<()> {
    if Prefix::RESERVED.contains(&prefix.as_str()) {
        return Err(OperationError::rejected(format!(
            "the prefix {prefix} is reserved; choose another, with gt rig add --prefix for instance"
        )));
    }
    Ok(())
}
