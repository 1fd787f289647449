//! What `gt` and `bd` promise, asked of the real programs.
//!
//! Every test makes a town of its own and looks only at what a user sees: output, exit codes, files.

#![expect(clippy::unwrap_used, reason = "a panic is how the helpers of a test fail")]

mod accounts;
mod activity;
mod arguments;
mod bad_input;
mod batch;
mod blocking;
mod claims;
mod close;
mod compat_transcripts;
mod concurrency;
mod config;
mod config_files;
mod create;
mod create_links;
mod create_many;
mod create_once;
mod damage;
mod defer;
mod delete;
mod dependencies;
mod events;
mod export;
mod formulas;
mod hooks;
mod ids;
mod import;
mod import_directories;
mod import_fixtures;
mod import_gas_town;
mod import_problems;
mod kv;
mod labels_comments;
mod list;
mod list_order;
mod list_views;
mod live_runs;
mod manual;
mod notify;
mod output;
mod prime;
mod query;
mod queue;
mod quick_starts;
mod ready;
mod rigs;
mod scheduler;
mod search_stats;
mod server_concurrency;
mod server_faults;
mod server_towns;
mod show;
mod show_views;
mod sling;
mod standalone;
mod status_doctor;
mod store;
mod support;
mod town;
mod triage;
mod update;
