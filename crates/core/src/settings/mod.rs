//! Settings: their names, the values each may have, and their defaults.

mod accessors;
mod keys;
mod layers;
mod text;
mod value;

pub use accessors::{ACCESSORS, Accessor};
pub use keys::{
    KEYS, REMOVED_MACHINE, REMOVED_OF_RIG, Setting, SettingName, lookup, rig_settings, shown,
    suggest,
};
pub use layers::{Layers, Resolved, SettingOrigin};
pub use text::{checked, parse_text};
pub use value::{SettingKind, parse_bytes, parse_decimal, plain_names};
