-- The declarations of a host, written with each renewal of its lease. Lists are separated by commas. A host that an older program
-- renews has no grace, and is never declared gone. `daemon_at_s` counts seconds of the store's clock, like `seen_at_s`.
ALTER TABLE hosts ADD COLUMN address TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE hosts ADD COLUMN version TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE hosts ADD COLUMN labels TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE hosts ADD COLUMN max_runs BIGINT NOT NULL DEFAULT 0;
ALTER TABLE hosts ADD COLUMN rigs TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE hosts ADD COLUMN runtimes TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE hosts ADD COLUMN memory_mb BIGINT NOT NULL DEFAULT 0;
ALTER TABLE hosts ADD COLUMN memory_free_mb BIGINT NOT NULL DEFAULT 0;
ALTER TABLE hosts ADD COLUMN load_hundredths BIGINT NOT NULL DEFAULT 0;
ALTER TABLE hosts ADD COLUMN cores BIGINT NOT NULL DEFAULT 0;
ALTER TABLE hosts ADD COLUMN grace_ms BIGINT NOT NULL DEFAULT 0;
ALTER TABLE hosts ADD COLUMN daemon_at_s BIGINT NOT NULL DEFAULT 0;
ALTER TABLE hosts ADD COLUMN mode TEXT COLLATE "C" NOT NULL DEFAULT 'active' CHECK (mode IN ('active', 'draining', 'removed'));
-- Another host has declared its runs lost, and it has not renewed since.
ALTER TABLE hosts ADD COLUMN is_gone BIGINT NOT NULL DEFAULT 0;

-- Runs that were declared lost because their host was gone, and whose processes and trees that host has not cleared away yet.
CREATE TABLE left_runs (
    bead  TEXT COLLATE "C" NOT NULL,
    epoch BIGINT NOT NULL,
    host  TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (bead, epoch),
    FOREIGN KEY (bead, epoch) REFERENCES runs (bead, epoch) ON DELETE CASCADE
);
CREATE INDEX left_runs_by_host ON left_runs (host);
