//! Every bound of the system in one place, so that nothing grows without limit by accident.

/// Longest title, in bytes.
pub const TITLE_BYTES_MAX: usize = 500;
/// Longest bead id, in bytes.
pub const ID_BYTES_MAX: usize = 200;
/// Longest name of a status, dependency type, issue type, label or person, in bytes.
pub const NAME_BYTES_MAX: usize = 50;
/// Longest label, assignee or actor, in bytes.
pub const LABEL_BYTES_MAX: usize = 255;
/// Longest name of a request that may be repeated, in bytes.
pub const REQUEST_KEY_BYTES_MAX: usize = 200;
/// Longest line of an imported file, in bytes; the same as the tools we read from.
pub const LINE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Most jobs that one write transaction takes together.
pub const WRITE_GROUP_MAX: usize = 256;
/// The same on a server, where others wait meanwhile.
pub const SERVER_WRITE_GROUP_MAX: usize = 64;
/// How many beads are read or printed at a time, so that no command holds a whole town in memory.
pub const PAGE_BEADS: usize = 256;
/// How many candidates an ambiguous id names before it says "and more".
pub const AMBIGUOUS_SHOWN_MAX: usize = 5;
