-- Integers are 64 bit. Instants are nanoseconds since 1970. Flags are 0 or 1. JSON is compact text.

CREATE TABLE counters (
    name  TEXT PRIMARY KEY NOT NULL,
    value INTEGER NOT NULL CHECK (value >= 0)
) STRICT, WITHOUT ROWID;

INSERT INTO counters (name, value) VALUES ('event', 0);

CREATE TABLE rigs (
    slug           TEXT PRIMARY KEY NOT NULL,
    uid            BLOB NOT NULL UNIQUE,
    prefix         TEXT NOT NULL UNIQUE,
    title          TEXT NOT NULL,
    path           TEXT NOT NULL,
    repo           TEXT NOT NULL,
    default_branch TEXT NOT NULL,
    executor       TEXT NOT NULL CHECK (executor IN ('tmux', 'process', 'ssh', 'pull', 'none')),
    state          TEXT NOT NULL CHECK (state IN ('active', 'parked', 'docked')),
    external_ref   TEXT NOT NULL,
    settings       TEXT NOT NULL,
    created_at     INTEGER NOT NULL,
    updated_at     INTEGER NOT NULL
) STRICT;

-- How many top-level beads each prefix has, so that the length of a new id needs no count.
CREATE TABLE prefixes (
    prefix TEXT PRIMARY KEY NOT NULL,
    beads  INTEGER NOT NULL CHECK (beads >= 0)
) STRICT, WITHOUT ROWID;

-- The columns that filters look at come first, so that a scan rarely touches the long texts.
CREATE TABLE beads (
    id                  TEXT PRIMARY KEY NOT NULL,
    uid                 BLOB NOT NULL UNIQUE,
    rig                 TEXT REFERENCES rigs (slug) ON DELETE SET NULL,
    status              TEXT NOT NULL,
    outcome             TEXT CHECK (outcome IN ('success', 'failed', 'cancelled')),
    priority            INTEGER NOT NULL CHECK (priority BETWEEN 0 AND 4),
    issue_type          TEXT NOT NULL,
    assignee            TEXT NOT NULL,
    created_at          INTEGER NOT NULL,
    updated_at          INTEGER NOT NULL,
    started_at          INTEGER,
    closed_at           INTEGER,
    due_at              INTEGER,
    defer_until         INTEGER,
    ephemeral           INTEGER NOT NULL CHECK (ephemeral IN (0, 1)),
    no_history          INTEGER NOT NULL CHECK (no_history IN (0, 1)),
    pinned              INTEGER NOT NULL CHECK (pinned IN (0, 1)),
    is_template         INTEGER NOT NULL CHECK (is_template IN (0, 1)),
    open_blockers       INTEGER NOT NULL CHECK (open_blockers >= 0),
    last_child          INTEGER NOT NULL DEFAULT 0,
    estimated_minutes   INTEGER,
    title               TEXT NOT NULL,
    owner               TEXT NOT NULL,
    created_by          TEXT NOT NULL,
    close_reason        TEXT NOT NULL,
    external_ref        TEXT,
    metadata            TEXT,
    description         TEXT NOT NULL,
    design              TEXT NOT NULL,
    acceptance_criteria TEXT NOT NULL,
    notes               TEXT NOT NULL,
    carried             TEXT,
    -- What `ready` may offer at all; a test keeps the list equal to the one in the core.
    workable            INTEGER NOT NULL GENERATED ALWAYS AS (
        CASE WHEN ephemeral = 0 AND pinned = 0 AND issue_type NOT IN (
            'merge-request', 'gate', 'molecule', 'message', 'agent', 'role', 'rig', 'sling-context'
        ) THEN 1 ELSE 0 END
    ) STORED,
    CHECK ((status = 'closed') = (closed_at IS NOT NULL)),
    CHECK (status = 'closed' OR outcome IS NULL)
) STRICT;

-- Columns that are always the same come first in some of these: without them SQLite would rather take
-- beads_status, which holds more.
CREATE INDEX beads_ready ON beads (open_blockers, workable, priority, created_at DESC, id)
    WHERE status = 'open' AND open_blockers = 0 AND workable = 1;
CREATE INDEX beads_unclosed ON beads (priority, created_at DESC, id) WHERE status <> 'closed';
CREATE INDEX beads_status ON beads (status, priority, created_at DESC, id);
CREATE INDEX beads_blocked ON beads (priority, created_at DESC, id)
    WHERE open_blockers > 0 AND status <> 'closed';
CREATE INDEX beads_assignee ON beads (assignee, status) WHERE assignee <> '';
CREATE INDEX beads_type ON beads (issue_type, status);
CREATE INDEX beads_rig ON beads (rig, status);
CREATE INDEX beads_wake ON beads (status, defer_until)
    WHERE status = 'deferred' AND defer_until IS NOT NULL;

CREATE TABLE labels (
    bead     TEXT NOT NULL REFERENCES beads (id) ON DELETE CASCADE,
    label    TEXT NOT NULL,
    position INTEGER NOT NULL,
    PRIMARY KEY (bead, label)
) STRICT, WITHOUT ROWID;

CREATE INDEX labels_label ON labels (label, bead);

-- Every label filter reads this view, so that derived labels can join it later.
CREATE VIEW bead_labels AS SELECT bead, label FROM labels;

-- `blocking` is edge_blocks() of this edge now; beads.open_blockers is the sum of it per issue.
-- A target need not exist, so it is no foreign key.
CREATE TABLE dependencies (
    issue_id      TEXT NOT NULL REFERENCES beads (id) ON DELETE CASCADE,
    depends_on_id TEXT NOT NULL,
    type          TEXT NOT NULL,
    blocking      INTEGER NOT NULL CHECK (blocking IN (0, 1)),
    created_at    INTEGER NOT NULL,
    created_by    TEXT NOT NULL,
    metadata      TEXT NOT NULL,
    thread_id     TEXT NOT NULL,
    carried       TEXT,
    PRIMARY KEY (issue_id, depends_on_id),
    CHECK (issue_id <> depends_on_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX dependencies_target ON dependencies (depends_on_id, type);

CREATE TABLE comments (
    bead       TEXT NOT NULL REFERENCES beads (id) ON DELETE CASCADE,
    id         TEXT NOT NULL,
    author     TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    text       TEXT NOT NULL,
    carried    TEXT,
    PRIMARY KEY (bead, id)
) STRICT, WITHOUT ROWID;

-- Numbers come from the counter, inside the transaction of the change: gapless, in commit order.
CREATE TABLE events (
    number  INTEGER PRIMARY KEY NOT NULL,
    at      INTEGER NOT NULL,
    type    TEXT NOT NULL,
    bead    TEXT,
    rig     TEXT,
    run     TEXT,
    actor   TEXT NOT NULL,
    payload TEXT NOT NULL
) STRICT;

CREATE INDEX events_bead ON events (bead, number) WHERE bead IS NOT NULL;

-- Scopes: 'gt' holds the typed settings, 'bd' whatever `bd config` was told, 'memory' what an
-- imported file asked to remember.
CREATE TABLE settings (
    scope      TEXT NOT NULL,
    key        TEXT NOT NULL,
    value      TEXT NOT NULL,
    updated_at INTEGER NOT NULL,
    updated_by TEXT NOT NULL,
    PRIMARY KEY (scope, key)
) STRICT, WITHOUT ROWID;
