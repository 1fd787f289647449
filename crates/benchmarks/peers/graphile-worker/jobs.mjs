// usage: node jobs.mjs <jobs> <workers>
// Adds jobs that do nothing to graphile-worker, has its workers take and end them, and prints how many nanoseconds that took.
import { Logger, run, runMigrations } from "graphile-worker";
import pg from "pg";

const [jobs, workers] = process.argv.slice(2).map(Number);
const pgPool = new pg.Pool({ max: workers });
const logger = new Logger(() => () => {});
await runMigrations({ pgPool, logger });
await pgPool.query("SELECT graphile_worker.add_job('nothing') FROM generate_series(1, $1)", [jobs]);
await pgPool.query("CREATE VIEW unfinished AS SELECT id FROM graphile_worker.jobs");
await pgPool.query("ANALYZE");

let ended = 0;
const begun = process.hrtime.bigint();
const runner = await run({
  pgPool,
  logger,
  concurrency: workers,
  noHandleSignals: true,
  taskList: { nothing: async () => {} },
});
await new Promise((resolve) => {
  runner.events.on("job:complete", () => {
    ended += 1;
    if (ended === jobs) resolve();
  });
});
console.log(String(process.hrtime.bigint() - begun));
await runner.stop();
await pgPool.end();
