//! Stores of earlier schemas, opened by this program.

mod earlier_release;
mod waits;
