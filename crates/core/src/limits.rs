//! Every bound of the system in one place, so that nothing grows without limit by accident.

/// Longest title, in bytes.
pub const TITLE_BYTES_MAX: usize = 500;
/// Longest bead id, in bytes.
pub const ID_BYTES_MAX: usize = 200;
/// Longest name of a status, dependency type, issue type, label or person, in bytes.
pub const NAME_BYTES_MAX: usize = 50;
/// Longest label, assignee or actor, in bytes.
pub const LABEL_BYTES_MAX: usize = 255;
/// Longest text that comes from elsewhere and is looked up, such as an assignee or the id of a comment, in
/// bytes; the index of every engine holds two of them.
pub const LOOKED_UP_BYTES_MAX: usize = 1000;
/// Longest name of a request that may be repeated, in bytes.
pub const REQUEST_KEY_BYTES_MAX: usize = 200;
/// Longest line of an imported file, in bytes; the same as the tools we read from.
pub const LINE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Longest message, in bytes; more than a worker should have to read at once.
pub const MESSAGE_BYTES_MAX: usize = 64 * 1024;
/// How much of the end of a run's output the store keeps for other hosts, in bytes.
pub const RUN_OUTPUT_KEPT_BYTES: u64 = 64 * 1024;
/// Most jobs that one write transaction takes together.
pub const WRITE_GROUP_MAX: usize = 256;
/// The same on a server, where others wait meanwhile.
pub const SERVER_WRITE_GROUP_MAX: usize = 64;
/// How many beads are read or printed at a time, so that no command holds a whole town in memory.
pub const PAGE_BEADS: usize = 256;
/// How many candidates an ambiguous id names before it says "and more".
pub const AMBIGUOUS_SHOWN_MAX: usize = 5;
/// How long the log of failed hooks may get before it begins anew, in bytes.
pub const HOOK_LOG_BYTES_MAX: u64 = 1024 * 1024;
/// How much of a failed hook's last words is kept, in bytes.
pub const HOOK_WORDS_BYTES_MAX: usize = 500;
/// Longest query, in bytes; a text that it looks for must fit into a pattern of every engine.
pub const QUERY_BYTES_MAX: usize = 16 * 1024;
/// Most conditions of a query, so that every engine can plan it.
pub const QUERY_CONDITIONS_MAX: usize = 200;
/// Deepest nesting of a query, so that reading it needs little stack.
pub const QUERY_DEPTH_MAX: usize = 50;
/// Most steps a formula may unroll to.
pub const FORMULA_STEPS_MAX: usize = 5_000;
/// Most bytes of text a formula may unroll to.
pub const FORMULA_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Most times that the steps a formula unrolls to may need each other because of loops and expansions.
pub const FORMULA_EDGES_MAX: usize = 50_000;
/// Longest formula file, in bytes.
pub const FORMULA_FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Most work items that are submitted at a time.
pub const WORK_BULK_MAX: usize = 1_000;
/// Most things that a new work item depends on.
pub const WORK_DEPENDENCIES_MAX: usize = 100;
/// Most types of work that an agent asks for at a time.
pub const WORK_TYPES_MAX: usize = 20;
/// How deeply the payload of a work item may be nested. Many JSON parsers refuse more.
pub const PAYLOAD_DEPTH_MAX: usize = 128;
/// Most sessions of the Model Context Protocol that a server keeps at a time; each holds memory and a task.
pub const MCP_SESSIONS_MAX: usize = 256;
