-- The SHA-256 of the token that proves to be the worker of a run; empty while the run has no worker with a token. Workers
-- that an older program has started have none and are believed without one.
ALTER TABLE runs ADD COLUMN token_hash TEXT NOT NULL DEFAULT '';
UPDATE runs SET token_hash = 'older' WHERE state IN ('starting', 'running', 'blocked') AND executor <> 'pull';

-- Beads that a worker has created, with the bead that it worked on: workers of that bead may change them.
CREATE TABLE run_beads (
    bead   TEXT PRIMARY KEY NOT NULL REFERENCES beads (id) ON DELETE CASCADE,
    worker TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- The directories that work on this town. A row is written when a directory gets its identity, and by every process that
-- judges runs while the store is on a server. `seen_at_s` counts seconds of the store's clock.
CREATE TABLE hosts (
    id          TEXT PRIMARY KEY NOT NULL,
    name        TEXT NOT NULL,
    machine     TEXT NOT NULL,
    path        TEXT NOT NULL,
    incarnation TEXT NOT NULL,
    seen_at_s   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
