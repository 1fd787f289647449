-- What a run has used, as far as anybody knows; used_at is when that was written down.
ALTER TABLE runs ADD COLUMN peak_memory_mb INTEGER;
ALTER TABLE runs ADD COLUMN tokens INTEGER;
ALTER TABLE runs ADD COLUMN cost INTEGER;
ALTER TABLE runs ADD COLUMN used_at INTEGER;

CREATE INDEX runs_used ON runs (used_at) WHERE used_at IS NOT NULL;

-- Since when more and more is started with it, because its usage limit has passed.
ALTER TABLE parks ADD COLUMN ramp_since INTEGER;

-- How much memory a run takes that is carried out with this, learned from those before.
CREATE TABLE estimates (
    name      TEXT PRIMARY KEY NOT NULL,
    memory_mb INTEGER NOT NULL CHECK (memory_mb >= 0),
    runs      INTEGER NOT NULL CHECK (runs > 0)
) STRICT, WITHOUT ROWID;

-- The guards of each machine that hold up starts, since when.
CREATE TABLE guards (
    host  TEXT NOT NULL,
    kind  TEXT NOT NULL CHECK (kind IN ('memory', 'load')),
    since INTEGER NOT NULL,
    PRIMARY KEY (host, kind)
) STRICT, WITHOUT ROWID;
