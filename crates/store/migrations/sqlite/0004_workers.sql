-- Where the work of a run began, what its worker said at the end (`gt done`), the commit that was accepted,
-- and how far that commit is on its way to the branch it lands on: written down before it is pushed, and after.
ALTER TABLE runs ADD COLUMN base TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN base_commit TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN said TEXT NOT NULL DEFAULT '' CHECK (said IN ('', 'completed', 'escalated', 'deferred'));
ALTER TABLE runs ADD COLUMN landing TEXT NOT NULL DEFAULT '' CHECK (landing IN ('', 'intended', 'confirmed'));
ALTER TABLE runs ADD COLUMN landing_commit TEXT NOT NULL DEFAULT '';

CREATE INDEX runs_landing ON runs (bead, epoch) WHERE landing = 'intended';
CREATE INDEX runs_runtime ON runs (runtime, ended_at);

-- A named place for a worker, with a worktree that is used again. It is at work while a live run has it.
CREATE TABLE polecats (
    rig        TEXT NOT NULL REFERENCES rigs (slug) ON DELETE CASCADE,
    name       TEXT NOT NULL,
    host       TEXT NOT NULL,
    -- 'absent' = there is no tree, or an unfinished one.
    tree       TEXT NOT NULL CHECK (tree IN ('absent', 'ready')),
    branch     TEXT NOT NULL,
    last_run   TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (rig, name)
) STRICT, WITHOUT ROWID;

-- Trees that were moved away. Written before the tree is moved, and after.
CREATE TABLE trash (
    number   INTEGER PRIMARY KEY NOT NULL,
    rig      TEXT NOT NULL,
    name     TEXT NOT NULL,
    host     TEXT NOT NULL,
    path     TEXT NOT NULL,
    branch   TEXT NOT NULL,
    run      TEXT NOT NULL,
    reason   TEXT NOT NULL,
    state    TEXT NOT NULL CHECK (state IN ('moving', 'kept', 'restored', 'purged')),
    moved_at INTEGER NOT NULL,
    moved_by TEXT NOT NULL,
    purge_at INTEGER NOT NULL
) STRICT;

CREATE INDEX trash_kept ON trash (purge_at) WHERE state IN ('moving', 'kept');
INSERT INTO counters (name, value) VALUES ('trash', 0);

-- What was saved of the trees of runs that did not end well.
CREATE TABLE rescues (
    bead       TEXT NOT NULL REFERENCES beads (id) ON DELETE CASCADE,
    epoch      INTEGER NOT NULL,
    rig        TEXT NOT NULL,
    host       TEXT NOT NULL,
    reference  TEXT NOT NULL,
    saved      TEXT NOT NULL,
    base       TEXT NOT NULL,
    bytes      INTEGER NOT NULL,
    left_out   TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (bead, epoch)
) STRICT, WITHOUT ROWID;

-- The steps of a run that its worker has finished.
CREATE TABLE run_steps (
    bead    TEXT NOT NULL,
    epoch   INTEGER NOT NULL,
    step    TEXT NOT NULL,
    done_at INTEGER NOT NULL,
    done_by TEXT NOT NULL,
    PRIMARY KEY (bead, epoch, step),
    FOREIGN KEY (bead, epoch) REFERENCES runs (bead, epoch) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

-- Messages with receipts: queued, delivered, seen. Only an escalation, which asks for a person, has a severity.
CREATE TABLE messages (
    number       INTEGER PRIMARY KEY NOT NULL,
    id           TEXT NOT NULL UNIQUE,
    kind         TEXT NOT NULL CHECK (kind IN ('mail', 'nudge', 'escalation')),
    severity     TEXT NOT NULL CHECK (severity IN ('', 'low', 'medium', 'high', 'critical')),
    sender       TEXT NOT NULL,
    recipient    TEXT NOT NULL,
    subject      TEXT NOT NULL,
    body         TEXT NOT NULL,
    bead         TEXT NOT NULL,
    reply_to     TEXT NOT NULL,
    created_at   INTEGER NOT NULL,
    delivered_at INTEGER,
    seen_at      INTEGER,
    CHECK ((kind = 'escalation') = (severity <> ''))
) STRICT;

CREATE INDEX messages_unseen ON messages (recipient, number) WHERE seen_at IS NULL;
CREATE INDEX messages_recipient ON messages (recipient, number);
CREATE INDEX messages_undelivered ON messages (kind, number) WHERE delivered_at IS NULL AND seen_at IS NULL;
CREATE INDEX messages_asking ON messages (number) WHERE kind = 'escalation' AND seen_at IS NULL;
INSERT INTO counters (name, value) VALUES ('message', 0);

-- Runtimes and accounts that nothing is started with for a while. `strikes` counts beads in a row whose runs came
-- to nothing at once; `bead` is the last of them. While `until` is in the future it is parked; after that one run
-- is tried, and `trial` names it.
CREATE TABLE parks (
    kind    TEXT NOT NULL CHECK (kind IN ('runtime', 'account')),
    name    TEXT NOT NULL,
    strikes INTEGER NOT NULL CHECK (strikes >= 0),
    bead    TEXT NOT NULL,
    since   INTEGER,
    until   INTEGER,
    reason  TEXT NOT NULL,
    trial   TEXT NOT NULL,
    PRIMARY KEY (kind, name),
    CHECK ((since IS NULL) = (until IS NULL))
) STRICT, WITHOUT ROWID;
