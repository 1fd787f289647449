//! The engines on which programs that test can keep a town.

/// Where the records of a town are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum TownEngine {
    /// In a file, or in memory.
    Sqlite,
    /// On a server.
    Postgres,
}
