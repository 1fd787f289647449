//! Checks: the commands that must pass on a tree before a branch of a rig is moved to it.

mod definition;
mod path_pattern;
mod result;
mod suggestions;

pub use definition::{
    CHECK_RETRIES_MAX, CHECK_TIMEOUT_DEFAULT, CheckDefinition, check_cache_key, hash_parts,
    parse_checks, write_checks,
};
pub use path_pattern::{PathPattern, parse_path_patterns, write_path_patterns};
pub use result::{CheckError, CheckPurpose, CheckResult, CheckRun, CommandEnd, judge_check};
pub use suggestions::{SUGGESTION_FILES, suggest_checks};
