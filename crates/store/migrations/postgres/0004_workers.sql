-- Where the work of a run began, what its worker said at the end (`gt done`), the commit that was accepted,
-- and how far that commit is on its way to the branch it lands on: written down before it is pushed, and after.
ALTER TABLE runs ADD COLUMN base TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN base_commit TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN said TEXT COLLATE "C" NOT NULL DEFAULT '' CHECK (said IN ('', 'completed', 'escalated', 'deferred'));
ALTER TABLE runs ADD COLUMN landing TEXT COLLATE "C" NOT NULL DEFAULT '' CHECK (landing IN ('', 'intended', 'confirmed'));
ALTER TABLE runs ADD COLUMN landing_commit TEXT COLLATE "C" NOT NULL DEFAULT '';

CREATE INDEX runs_landing ON runs (bead, epoch) WHERE landing = 'intended';
CREATE INDEX runs_runtime ON runs (runtime, ended_at);

-- A named place for a worker, with a worktree that is used again. It is at work while a live run has it.
CREATE TABLE polecats (
    rig        TEXT COLLATE "C" NOT NULL REFERENCES rigs (slug) ON DELETE CASCADE,
    name       TEXT COLLATE "C" NOT NULL,
    host       TEXT COLLATE "C" NOT NULL,
    -- 'absent' = there is no tree, or an unfinished one.
    tree       TEXT COLLATE "C" NOT NULL CHECK (tree IN ('absent', 'ready')),
    branch     TEXT COLLATE "C" NOT NULL,
    last_run   TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (rig, name)
);

-- Trees that were moved away. Written before the tree is moved, and after.
CREATE TABLE trash (
    number   BIGINT PRIMARY KEY,
    rig      TEXT COLLATE "C" NOT NULL,
    name     TEXT COLLATE "C" NOT NULL,
    host     TEXT COLLATE "C" NOT NULL,
    path     TEXT COLLATE "C" NOT NULL,
    branch   TEXT COLLATE "C" NOT NULL,
    run      TEXT COLLATE "C" NOT NULL,
    reason   TEXT COLLATE "C" NOT NULL,
    state    TEXT COLLATE "C" NOT NULL CHECK (state IN ('moving', 'kept', 'restored', 'purged')),
    moved_at BIGINT NOT NULL,
    moved_by TEXT COLLATE "C" NOT NULL,
    purge_at BIGINT NOT NULL
);

CREATE INDEX trash_kept ON trash (purge_at) WHERE state IN ('moving', 'kept');
INSERT INTO counters (name, value) VALUES ('trash', 0);

-- What was saved of the trees of runs that did not end well.
CREATE TABLE rescues (
    bead       TEXT COLLATE "C" NOT NULL REFERENCES beads (id) ON DELETE CASCADE,
    epoch      BIGINT NOT NULL,
    rig        TEXT COLLATE "C" NOT NULL,
    host       TEXT COLLATE "C" NOT NULL,
    reference  TEXT COLLATE "C" NOT NULL,
    saved      TEXT COLLATE "C" NOT NULL,
    base       TEXT COLLATE "C" NOT NULL,
    bytes      BIGINT NOT NULL,
    left_out   TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (bead, epoch)
);

-- The steps of a run that its worker has finished.
CREATE TABLE run_steps (
    bead    TEXT COLLATE "C" NOT NULL,
    epoch   BIGINT NOT NULL,
    step    TEXT COLLATE "C" NOT NULL,
    done_at BIGINT NOT NULL,
    done_by TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (bead, epoch, step),
    FOREIGN KEY (bead, epoch) REFERENCES runs (bead, epoch) ON DELETE CASCADE
);

-- Messages with receipts: queued, delivered, seen. Only an escalation, which asks for a person, has a severity.
CREATE TABLE messages (
    number       BIGINT PRIMARY KEY,
    id           TEXT COLLATE "C" NOT NULL UNIQUE,
    kind         TEXT COLLATE "C" NOT NULL CHECK (kind IN ('mail', 'nudge', 'escalation')),
    severity     TEXT COLLATE "C" NOT NULL CHECK (severity IN ('', 'low', 'medium', 'high', 'critical')),
    sender       TEXT COLLATE "C" NOT NULL,
    recipient    TEXT COLLATE "C" NOT NULL,
    subject      TEXT COLLATE "C" NOT NULL,
    body         TEXT COLLATE "C" NOT NULL,
    bead         TEXT COLLATE "C" NOT NULL,
    reply_to     TEXT COLLATE "C" NOT NULL,
    created_at   BIGINT NOT NULL,
    delivered_at BIGINT,
    seen_at      BIGINT,
    CHECK ((kind = 'escalation') = (severity <> ''))
);

CREATE INDEX messages_unseen ON messages (recipient, number) WHERE seen_at IS NULL;
CREATE INDEX messages_recipient ON messages (recipient, number);
CREATE INDEX messages_undelivered ON messages (kind, number) WHERE delivered_at IS NULL AND seen_at IS NULL;
CREATE INDEX messages_asking ON messages (number) WHERE kind = 'escalation' AND seen_at IS NULL;
INSERT INTO counters (name, value) VALUES ('message', 0);

-- Runtimes and accounts that nothing is started with for a while. `strikes` counts beads in a row whose runs came
-- to nothing at once; `bead` is the last of them. While `until` is in the future it is parked; after that one run
-- is tried, and `trial` names it.
CREATE TABLE parks (
    kind    TEXT COLLATE "C" NOT NULL CHECK (kind IN ('runtime', 'account')),
    name    TEXT COLLATE "C" NOT NULL,
    strikes BIGINT NOT NULL CHECK (strikes >= 0),
    bead    TEXT COLLATE "C" NOT NULL,
    since   BIGINT,
    until   BIGINT,
    reason  TEXT COLLATE "C" NOT NULL,
    trial   TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (kind, name),
    CHECK ((since IS NULL) = (until IS NULL))
);
