//! The benchmarks, one file each.

mod contention;
mod convoys;
mod create;
mod daemon;
mod fleet;
mod grouped;
mod http;
mod import;
mod landing;
mod memory;
mod million;
mod pipeline;
mod queue;
mod ready;
mod server;
mod site;
mod transcripts;
mod workers;

pub(crate) use contention::saturate;
pub(crate) use convoys::scan;
pub(crate) use http::{BARE, ONE_BY_ONE, TOGETHER, serve_claims, serve_file};
pub(crate) use site::arrive;

use crate::BenchmarkResult;
use crate::lab::Lab;
use crate::report::ReportRow;

/// Something that can be measured.
pub(crate) struct Benchmark {
    /// Its name for `--only`.
    pub(crate) name: &'static str,
    /// Its description, for people who wait.
    pub(crate) about: &'static str,
    /// Runs it.
    pub(crate) run: fn(&Lab) -> BenchmarkResult<Vec<ReportRow>>,
}

/// All benchmarks.
pub(crate) const ALL: &[Benchmark] = &[
    Benchmark {
        name: "ready",
        about: "bd ready in a large town against a small one",
        run: ready::run,
    },
    Benchmark {
        name: "create",
        about: "bd create against a process that commits one row",
        run: create::run,
    },
    Benchmark {
        name: "import",
        about: "bd import against a prepared insert loop",
        run: import::run,
    },
    Benchmark {
        name: "grouped",
        about: "creates from 64 threads against a bare group-commit loop",
        run: grouped::run,
    },
    Benchmark {
        name: "server",
        about: "creates on PostgreSQL from 64 threads against bare loops under the same lock",
        run: server::run,
    },
    Benchmark {
        name: "contention",
        about: "16 bd create at once, beside a saturated writer and alone",
        run: contention::run,
    },
    Benchmark {
        name: "million",
        about: "what is ready among a million beads against ten thousand, on both engines",
        run: million::run,
    },
    Benchmark {
        name: "queue",
        about: "scheduling, a cycle and the status where little and where much is scheduled",
        run: queue::run,
    },
    Benchmark {
        name: "pipeline",
        about: "a thousand beads from scheduled to closed, against a bare spawn loop",
        run: pipeline::run,
    },
    Benchmark {
        name: "workers",
        about: "from gt sling to a worker in its tree and session, and the list of many of them",
        run: workers::run,
    },
    Benchmark {
        name: "daemon",
        about: "from the end of a run to the next, ten starts at once, deaths, idleness, and many at once",
        run: daemon::run,
    },
    Benchmark {
        name: "landing",
        about: "requests in the merge queue against git by hand, and gt done with and without a check",
        run: landing::run,
    },
    Benchmark {
        name: "convoys",
        about: "staging very many beads, a close in a large convoy, and the picture of one",
        run: convoys::run,
    },
    Benchmark {
        name: "http",
        about: "the work queue over HTTP against bare servers, and many who listen",
        run: http::run,
    },
    Benchmark {
        name: "claims",
        about: "agents that ask for work on PostgreSQL against bare claims, and that nothing is given twice",
        run: http::run_claims,
    },
    Benchmark {
        name: "queues",
        about: "work that 64 agents take and end on PostgreSQL, beside graphile-worker and River",
        run: http::run_queues,
    },
    Benchmark {
        name: "fleet",
        about: "many hosts on one PostgreSQL: cycles, deaths, idle ones, and three against one",
        run: fleet::run,
    },
    Benchmark {
        name: "transcripts",
        about: "the events in the output of an agent against serde_json",
        run: transcripts::run,
    },
    Benchmark {
        name: "telemetry",
        about: "the receiver of telemetry against a bare server that reads the body",
        run: http::run_telemetry,
    },
    Benchmark {
        name: "memory",
        about: "the peak memory of commands in a large town",
        run: memory::run,
    },
];
