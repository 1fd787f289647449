-- What a run has used, as far as anybody knows; used_at is when that was written down.
ALTER TABLE runs ADD COLUMN peak_memory_mb BIGINT;
ALTER TABLE runs ADD COLUMN tokens BIGINT;
ALTER TABLE runs ADD COLUMN cost BIGINT;
ALTER TABLE runs ADD COLUMN used_at BIGINT;

CREATE INDEX runs_used ON runs (used_at) WHERE used_at IS NOT NULL;

-- Since when more and more is started with it, because its usage limit has passed.
ALTER TABLE parks ADD COLUMN ramp_since BIGINT;

-- How much memory a run takes that is carried out with this, learned from those before.
CREATE TABLE estimates (
    name      TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    memory_mb BIGINT NOT NULL CHECK (memory_mb >= 0),
    runs      BIGINT NOT NULL CHECK (runs > 0)
);

-- The guards of each machine that hold up starts, since when.
CREATE TABLE guards (
    host  TEXT COLLATE "C" NOT NULL,
    kind  TEXT COLLATE "C" NOT NULL CHECK (kind IN ('memory', 'load')),
    since BIGINT NOT NULL,
    PRIMARY KEY (host, kind)
);
