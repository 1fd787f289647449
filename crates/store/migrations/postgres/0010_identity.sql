-- The SHA-256 of the token that proves to be the worker of a run; empty while the run has no worker with a token. Workers
-- that an older program has started have none and are believed without one.
ALTER TABLE runs ADD COLUMN token_hash TEXT COLLATE "C" NOT NULL DEFAULT '';
UPDATE runs SET token_hash = 'older' WHERE state IN ('starting', 'running', 'blocked') AND executor <> 'pull';

-- Beads that a worker has created, with the bead that it worked on: workers of that bead may change them.
CREATE TABLE run_beads (
    bead   TEXT COLLATE "C" PRIMARY KEY NOT NULL REFERENCES beads (id) ON DELETE CASCADE,
    worker TEXT COLLATE "C" NOT NULL
);

-- The directories that work on this town. A row is written when a directory gets its identity, and by every process that
-- judges runs while the store is on a server. `seen_at_s` counts seconds of the store's clock.
CREATE TABLE hosts (
    id          TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    name        TEXT COLLATE "C" NOT NULL,
    machine     TEXT COLLATE "C" NOT NULL,
    path        TEXT COLLATE "C" NOT NULL,
    incarnation TEXT COLLATE "C" NOT NULL,
    seen_at_s   BIGINT NOT NULL
);

-- SQLite has this function: the seconds of the clock of the machine that has the store.
CREATE FUNCTION unixepoch(moment TEXT) RETURNS BIGINT LANGUAGE sql VOLATILE AS $$
    SELECT CAST(FLOOR(EXTRACT(EPOCH FROM clock_timestamp())) AS BIGINT)
$$;
