//! Operations over a town in memory.

mod import;
mod town;
