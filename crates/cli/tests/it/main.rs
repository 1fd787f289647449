//! What `gt` and `bd` promise, asked of the real programs.
//!
//! Every test makes a town of its own and looks only at what a user sees: output, exit codes, files.

#![expect(clippy::unwrap_used, reason = "a panic is how the helpers of a test fail")]

mod activity;
mod arguments;
mod bad_input;
mod blocking;
mod claims;
mod close;
mod compat_transcripts;
mod concurrency;
mod config;
mod config_files;
mod create;
mod create_links;
mod damage;
mod delete;
mod dependencies;
mod events;
mod export;
mod ids;
mod import;
mod import_problems;
mod labels_comments;
mod list;
mod list_order;
mod output;
mod ready;
mod rigs;
mod search_stats;
mod server_concurrency;
mod show;
mod standalone;
mod status_doctor;
mod support;
mod town;
mod update;
