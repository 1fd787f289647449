//! Values that are parsed once from the built-in texts of this program.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use crate::Result;

/// Keeps what was read, by name. A text that is a part of this program does not change, and a process that starts or
/// supervises many runs needs the same one for each.
pub struct NamedCache<T>(Mutex<BTreeMap<String, T>>);

impl<T: Clone> Default for NamedCache<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Clone> NamedCache<T> {
    /// Nothing was read yet.
    pub const fn new() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }

    /// The value that is kept by this name; if there is none, the result of `read`. An error is not kept.
    pub fn get(&self, name: &str, read: impl FnOnce() -> Result<T>) -> Result<T> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = kept.get(name) {
            return Ok(known.clone());
        }
        let read = read()?;
        kept.insert(name.to_owned(), read.clone());
        Ok(read)
    }
}
