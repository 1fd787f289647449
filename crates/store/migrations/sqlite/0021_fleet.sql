-- The declarations of a host, written with each renewal of its lease. Lists are separated by commas. A host that an older program
-- renews has no grace, and is never declared gone. `daemon_at_s` counts seconds of the store's clock, like `seen_at_s`.
ALTER TABLE hosts ADD COLUMN address TEXT NOT NULL DEFAULT '';
ALTER TABLE hosts ADD COLUMN version TEXT NOT NULL DEFAULT '';
ALTER TABLE hosts ADD COLUMN labels TEXT NOT NULL DEFAULT '';
ALTER TABLE hosts ADD COLUMN max_runs INTEGER NOT NULL DEFAULT 0;
ALTER TABLE hosts ADD COLUMN rigs TEXT NOT NULL DEFAULT '';
ALTER TABLE hosts ADD COLUMN runtimes TEXT NOT NULL DEFAULT '';
ALTER TABLE hosts ADD COLUMN memory_mb INTEGER NOT NULL DEFAULT 0;
ALTER TABLE hosts ADD COLUMN memory_free_mb INTEGER NOT NULL DEFAULT 0;
ALTER TABLE hosts ADD COLUMN load_hundredths INTEGER NOT NULL DEFAULT 0;
ALTER TABLE hosts ADD COLUMN cores INTEGER NOT NULL DEFAULT 0;
ALTER TABLE hosts ADD COLUMN grace_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE hosts ADD COLUMN daemon_at_s INTEGER NOT NULL DEFAULT 0;
ALTER TABLE hosts ADD COLUMN mode TEXT NOT NULL DEFAULT 'active' CHECK (mode IN ('active', 'draining', 'removed'));
-- Another host has declared its runs lost, and it has not renewed since.
ALTER TABLE hosts ADD COLUMN is_gone INTEGER NOT NULL DEFAULT 0;

-- Runs that were declared lost because their host was gone, and whose processes and trees that host has not cleared away yet.
CREATE TABLE left_runs (
    bead  TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    host  TEXT NOT NULL,
    PRIMARY KEY (bead, epoch),
    FOREIGN KEY (bead, epoch) REFERENCES runs (bead, epoch) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
CREATE INDEX left_runs_by_host ON left_runs (host);
