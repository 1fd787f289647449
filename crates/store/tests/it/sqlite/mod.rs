//! Behaviour that only SQLite has: files, lock files, crashes, query plans.

mod concurrency;
mod crash;
mod files;
mod foreign;
mod plans;
