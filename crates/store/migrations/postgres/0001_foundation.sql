-- Integers are 64 bit. Instants are nanoseconds since 1970. Flags are 0 or 1. JSON is compact text.
-- Text is compared by its bytes, as SQLite does, whatever the language of the database.

CREATE TABLE counters (
    name  TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    value BIGINT NOT NULL CHECK (value >= 0)
);

INSERT INTO counters (name, value) VALUES ('event', 0);

CREATE TABLE rigs (
    slug           TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    uid            BYTEA NOT NULL UNIQUE,
    prefix         TEXT COLLATE "C" NOT NULL UNIQUE,
    title          TEXT COLLATE "C" NOT NULL,
    path           TEXT COLLATE "C" NOT NULL,
    repo           TEXT COLLATE "C" NOT NULL,
    default_branch TEXT COLLATE "C" NOT NULL,
    executor       TEXT COLLATE "C" NOT NULL CHECK (executor IN ('tmux', 'process', 'ssh', 'pull', 'none')),
    state          TEXT COLLATE "C" NOT NULL CHECK (state IN ('active', 'parked', 'docked')),
    external_ref   TEXT COLLATE "C" NOT NULL,
    settings       TEXT COLLATE "C" NOT NULL,
    created_at     BIGINT NOT NULL,
    updated_at     BIGINT NOT NULL
);

-- How many top-level beads each prefix has, so that the length of a new id needs no count.
CREATE TABLE prefixes (
    prefix TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    beads  BIGINT NOT NULL CHECK (beads >= 0)
);

-- The columns that filters look at come first, so that a scan rarely touches the long texts.
CREATE TABLE beads (
    id                  TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    uid                 BYTEA NOT NULL UNIQUE,
    rig                 TEXT COLLATE "C" REFERENCES rigs (slug) ON DELETE SET NULL,
    status              TEXT COLLATE "C" NOT NULL,
    outcome             TEXT COLLATE "C" CHECK (outcome IN ('success', 'failed', 'cancelled')),
    priority            BIGINT NOT NULL CHECK (priority BETWEEN 0 AND 4),
    issue_type          TEXT COLLATE "C" NOT NULL,
    assignee            TEXT COLLATE "C" NOT NULL,
    created_at          BIGINT NOT NULL,
    updated_at          BIGINT NOT NULL,
    started_at          BIGINT,
    closed_at           BIGINT,
    due_at              BIGINT,
    defer_until         BIGINT,
    ephemeral           BIGINT NOT NULL CHECK (ephemeral IN (0, 1)),
    no_history          BIGINT NOT NULL CHECK (no_history IN (0, 1)),
    pinned              BIGINT NOT NULL CHECK (pinned IN (0, 1)),
    is_template         BIGINT NOT NULL CHECK (is_template IN (0, 1)),
    open_blockers       BIGINT NOT NULL CHECK (open_blockers >= 0),
    last_child          BIGINT NOT NULL DEFAULT 0,
    estimated_minutes   BIGINT,
    title               TEXT COLLATE "C" NOT NULL,
    owner               TEXT COLLATE "C" NOT NULL,
    created_by          TEXT COLLATE "C" NOT NULL,
    close_reason        TEXT COLLATE "C" NOT NULL,
    external_ref        TEXT COLLATE "C",
    metadata            TEXT COLLATE "C",
    description         TEXT COLLATE "C" NOT NULL,
    design              TEXT COLLATE "C" NOT NULL,
    acceptance_criteria TEXT COLLATE "C" NOT NULL,
    notes               TEXT COLLATE "C" NOT NULL,
    carried             TEXT COLLATE "C",
    -- What `ready` may offer at all; a test keeps the list equal to the one in the core.
    workable            BIGINT NOT NULL GENERATED ALWAYS AS (
        CASE WHEN ephemeral = 0 AND pinned = 0 AND issue_type NOT IN (
            'merge-request', 'gate', 'molecule', 'message', 'agent', 'role', 'rig', 'sling-context'
        ) THEN 1 ELSE 0 END
    ) STORED,
    CHECK ((status = 'closed') = (closed_at IS NOT NULL)),
    CHECK (status = 'closed' OR outcome IS NULL)
);

-- The same indexes as on SQLite, and one more: PostgreSQL looks for all parents that were put off before
-- it looks at the first bead that is ready.
CREATE INDEX beads_deferred ON beads (defer_until) WHERE defer_until IS NOT NULL;
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
    bead     TEXT COLLATE "C" NOT NULL REFERENCES beads (id) ON DELETE CASCADE,
    label    TEXT COLLATE "C" NOT NULL,
    position BIGINT NOT NULL,
    PRIMARY KEY (bead, label)
);

CREATE INDEX labels_label ON labels (label, bead);

-- Every label filter reads this view, so that derived labels can join it later.
CREATE VIEW bead_labels AS SELECT bead, label FROM labels;

-- `blocking` is edge_blocks() of this edge now; beads.open_blockers is the sum of it per issue.
-- A target need not exist, so it is no foreign key.
CREATE TABLE dependencies (
    issue_id      TEXT COLLATE "C" NOT NULL REFERENCES beads (id) ON DELETE CASCADE,
    depends_on_id TEXT COLLATE "C" NOT NULL,
    type          TEXT COLLATE "C" NOT NULL,
    blocking      BIGINT NOT NULL CHECK (blocking IN (0, 1)),
    created_at    BIGINT NOT NULL,
    created_by    TEXT COLLATE "C" NOT NULL,
    metadata      TEXT COLLATE "C" NOT NULL,
    thread_id     TEXT COLLATE "C" NOT NULL,
    carried       TEXT COLLATE "C",
    PRIMARY KEY (issue_id, depends_on_id),
    CHECK (issue_id <> depends_on_id)
);

CREATE INDEX dependencies_target ON dependencies (depends_on_id, type);

CREATE TABLE comments (
    bead       TEXT COLLATE "C" NOT NULL REFERENCES beads (id) ON DELETE CASCADE,
    id         TEXT COLLATE "C" NOT NULL,
    author     TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    text       TEXT COLLATE "C" NOT NULL,
    carried    TEXT COLLATE "C",
    PRIMARY KEY (bead, id)
);

-- Numbers come from the counter, inside the transaction of the change: gapless, in commit order.
CREATE TABLE events (
    number  BIGINT PRIMARY KEY NOT NULL,
    at      BIGINT NOT NULL,
    type    TEXT COLLATE "C" NOT NULL,
    bead    TEXT COLLATE "C",
    rig     TEXT COLLATE "C",
    run     TEXT COLLATE "C",
    actor   TEXT COLLATE "C" NOT NULL,
    payload TEXT COLLATE "C" NOT NULL
);

CREATE INDEX events_bead ON events (bead, number) WHERE bead IS NOT NULL;

-- Scopes: 'gt' holds the typed settings, 'bd' whatever `bd config` was told, 'memory' what an
-- imported file asked to remember.
CREATE TABLE settings (
    scope      TEXT COLLATE "C" NOT NULL,
    key        TEXT COLLATE "C" NOT NULL,
    value      TEXT COLLATE "C" NOT NULL,
    updated_at BIGINT NOT NULL,
    updated_by TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (scope, key)
);

-- What SQLite can do with JSON in text, so that a filter is written once: the value of a field as it
-- is spelled, and as text. PostgreSQL has no text with a NUL in it.
CREATE FUNCTION field_as_spelled(document TEXT, field TEXT) RETURNS TEXT
    LANGUAGE SQL IMMUTABLE STRICT PARALLEL SAFE
    AS $$ SELECT CASE WHEN json_typeof(document::json) = 'object' THEN (document::json -> field)::text END $$;

CREATE FUNCTION field_as_text(document TEXT, field TEXT) RETURNS TEXT
    LANGUAGE SQL IMMUTABLE STRICT PARALLEL SAFE
    AS $$ SELECT CASE WHEN json_typeof(document::json) = 'object' AND strpos(document, '\u0000') = 0
        THEN document::json ->> field END $$;

CREATE OPERATOR -> (LEFTARG = TEXT, RIGHTARG = TEXT, FUNCTION = field_as_spelled);
CREATE OPERATOR ->> (LEFTARG = TEXT, RIGHTARG = TEXT, FUNCTION = field_as_text);
