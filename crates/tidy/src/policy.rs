//! The policy: the layers of the workspace, and which packages of others we build upon.

/// Which of our crates a crate may depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MayUse {
    /// These alone, by their names without `gt-`.
    Only(&'static str),
    /// All of them: nothing that ships depends on it.
    Anything,
}

/// A crate of ours and its place in the architecture.
#[derive(Debug, Clone, Copy)]
pub struct Layer {
    /// The name of the package.
    pub package: &'static str,
    /// The packages it may depend on, tests aside.
    pub may_use: MayUse,
    /// Why it may use no more.
    pub why: &'static str,
}

/// Every crate of the workspace. Dependencies point from the outside in.
pub const LAYERS: &[Layer] = &[
    Layer {
        package: "gt-core",
        may_use: MayUse::Only(""),
        why: "decisions stay pure, so that they can be tested without a world around them",
    },
    Layer {
        package: "gt-transcripts",
        may_use: MayUse::Only("core"),
        why: "the output of an agent is bytes; where they come from is the caller's business",
    },
    Layer {
        package: "gt-api",
        may_use: MayUse::Only("core transcripts"),
        why: "the wire format is data; what it is made from converts itself into it",
    },
    Layer {
        package: "gt-records",
        may_use: MayUse::Only("core"),
        why: "a format knows what it describes, not where it is kept",
    },
    Layer {
        package: "gt-store",
        may_use: MayUse::Only("core"),
        why: "the store writes what was decided; it neither decides nor speaks to the outside",
    },
    Layer {
        package: "gt-conformance",
        may_use: MayUse::Only("core store"),
        why: "its cases know a store by its verbs alone, so that every engine can be held to them",
    },
    Layer {
        package: "gt-executors",
        may_use: MayUse::Only("core"),
        why: "the crate that starts programs must not know what is stored about them",
    },
    Layer {
        package: "gt-town",
        may_use: MayUse::Only("core records store executors"),
        why: "a town, its settings and its rigs know nothing of the work that is done in it",
    },
    Layer {
        package: "gt-beads",
        may_use: MayUse::Only("core records store executors town"),
        why: "beads can be kept without ever being scheduled",
    },
    Layer {
        package: "gt-scheduling",
        may_use: MayUse::Only("core transcripts records store executors town beads"),
        why: "the scheduler decides what starts; starting it is a trait that others implement",
    },
    Layer {
        package: "gt-workqueue",
        may_use: MayUse::Only("core api records store executors town beads scheduling"),
        why: "pulled work needs no supervisor and no worktree",
    },
    Layer {
        package: "gt-execution",
        may_use: MayUse::Only("core transcripts records store executors town beads scheduling"),
        why: "supervisors and worktrees do not depend on how work is asked for",
    },
    Layer {
        package: "gt-daemon",
        may_use: MayUse::Only(
            "core transcripts api store executors town beads scheduling workqueue execution",
        ),
        why: "the daemon calls operations in turn; no operation calls the daemon",
    },
    Layer {
        package: "gt-deck",
        may_use: MayUse::Only(""),
        why: "the page is files; the data that it shows comes over HTTP",
    },
    Layer {
        package: "gt-mcp",
        may_use: MayUse::Only(
            "core transcripts api records town beads scheduling execution daemon",
        ),
        why: "a tool asks an operation, as a command does; only this crate knows the protocol of agents",
    },
    Layer {
        package: "gt-server",
        may_use: MayUse::Only(
            "core transcripts api deck mcp town beads scheduling workqueue execution daemon",
        ),
        why: "a handler asks an operation, as a command does; it prints nothing and knows no command",
    },
    Layer {
        package: "gt-cli",
        may_use: MayUse::Only(
            "core transcripts api records town beads scheduling workqueue execution daemon mcp server",
        ),
        why: "a command asks an operation; with the store at hand it would go around them",
    },
    Layer {
        package: "gt-testkit",
        may_use: MayUse::Only(""),
        why: "it tests the others from outside",
    },
    Layer {
        package: "gt-chaos",
        may_use: MayUse::Only("testkit"),
        why: "it checks from outside: what is wrong in a library must not be wrong in its checker too",
    },
    Layer {
        package: "gt-agent-trials",
        may_use: MayUse::Only("testkit"),
        why: "it uses the product as an agent and a person do: by its commands",
    },
    Layer { package: "gt-benchmarks", may_use: MayUse::Anything, why: "it measures every layer" },
    Layer { package: "gt-fuzzing", may_use: MayUse::Anything, why: "it tries every parser" },
    Layer { package: "gt-simulator", may_use: MayUse::Anything, why: "it is a world around them" },
    Layer { package: "gt-tidy", may_use: MayUse::Anything, why: "it checks every layer" },
];

/// The database drivers.
pub const DATABASE_DRIVERS: &[&str] = &["rusqlite", "libsqlite3-sys", "tokio-postgres"];

/// The packages that may use those: the store, and the baselines it is measured against.
pub const MAY_USE_DATABASES: &[&str] = &["gt-store", "gt-benchmarks"];

/// Dependencies that need no comment in the root manifest: every reader of Rust knows them.
pub const WELL_KNOWN: &[&str] = &["serde", "thiserror"];

/// The manifests that name versions: that of the workspace, and that of the fuzzer, which is a workspace
/// of its own because it needs another toolchain. Nothing of the latter is shipped.
pub const ROOT_MANIFESTS: &[&str] = &["Cargo.toml", "fuzz/Cargo.toml"];

/// No file of ours is longer. Most are far shorter; this is where a file has become two.
pub const FILE_LINES_MAX: usize = 900;
