-- A context is one scheduled dispatch: open = scheduled, closed = decided. `number` is its place in
-- line. `held` and `asleep_until` repeat what the view context_standing says, and lanes counts them,
-- so that neither a dispatch cycle nor the status looks at what cannot start anyway.
CREATE TABLE contexts (
    number          BIGINT PRIMARY KEY NOT NULL CHECK (number > 0),
    id              TEXT COLLATE "C" NOT NULL UNIQUE,
    bead            TEXT COLLATE "C" NOT NULL REFERENCES beads (id) ON DELETE CASCADE,
    rig             TEXT COLLATE "C" NOT NULL,
    place           TEXT COLLATE "C" NOT NULL,
    account         TEXT COLLATE "C" NOT NULL,
    gated           BIGINT NOT NULL CHECK (gated IN (0, 1)),
    forced          BIGINT NOT NULL CHECK (forced IN (0, 1)),
    priority        BIGINT NOT NULL CHECK (priority BETWEEN 0 AND 4),
    origin          TEXT COLLATE "C" NOT NULL,
    parameters      TEXT COLLATE "C" NOT NULL,
    enqueued_at     BIGINT NOT NULL,
    enqueued_by     TEXT COLLATE "C" NOT NULL,
    -- Never earlier than that of a context before it, whatever the clocks said.
    waiting_since   BIGINT NOT NULL,
    next_attempt_at BIGINT,
    failures        BIGINT NOT NULL CHECK (failures >= 0),
    last_failure    TEXT COLLATE "C" NOT NULL,
    attempts        BIGINT NOT NULL CHECK (attempts >= 0),
    starting        BIGINT NOT NULL CHECK (starting IN (0, 1)),
    held            BIGINT NOT NULL CHECK (held IN (0, 1)),
    asleep_until    BIGINT,
    -- The last context of its bead.
    latest          BIGINT NOT NULL CHECK (latest IN (0, 1)),
    closed_at       BIGINT,
    closed_by       TEXT COLLATE "C" NOT NULL,
    close_reason    TEXT COLLATE "C" NOT NULL CHECK (close_reason IN ('', 'dispatched', 'cleared', 'circuit-broken',
        'invalid-context', 'stale-work-bead', 'quarantined')),
    CHECK ((closed_at IS NULL) = (close_reason = '')),
    CHECK (starting = 0 OR closed_at IS NULL)
);

CREATE UNIQUE INDEX contexts_open ON contexts (bead) WHERE closed_at IS NULL;
CREATE UNIQUE INDEX contexts_latest ON contexts (bead) WHERE latest = 1;
CREATE INDEX contexts_bead ON contexts (bead, number);
CREATE INDEX contexts_line ON contexts (rig, place, account, gated, priority, number)
    WHERE closed_at IS NULL AND starting = 0 AND held = 0 AND asleep_until IS NULL;
CREATE INDEX contexts_asleep ON contexts (asleep_until)
    WHERE closed_at IS NULL AND starting = 0 AND asleep_until IS NOT NULL;
CREATE INDEX contexts_backoff ON contexts (next_attempt_at)
    WHERE closed_at IS NULL AND next_attempt_at IS NOT NULL;
CREATE INDEX contexts_waiting ON contexts (number) WHERE closed_at IS NULL;
CREATE INDEX contexts_reason ON contexts (close_reason, bead) WHERE latest = 1;

-- One attempt of one worker at one bead. Live = starting, running or blocked.
CREATE TABLE runs (
    bead            TEXT COLLATE "C" NOT NULL REFERENCES beads (id) ON DELETE CASCADE,
    epoch           BIGINT NOT NULL CHECK (epoch > 0),
    uid             BYTEA NOT NULL UNIQUE,
    context         BIGINT NOT NULL,
    rig             TEXT COLLATE "C" NOT NULL,
    executor        TEXT COLLATE "C" NOT NULL CHECK (executor IN ('tmux', 'process', 'ssh', 'pull', 'none')),
    runtime         TEXT COLLATE "C" NOT NULL,
    agent           TEXT COLLATE "C" NOT NULL,
    place           TEXT COLLATE "C" NOT NULL,
    host            TEXT COLLATE "C" NOT NULL,
    account         TEXT COLLATE "C" NOT NULL,
    session         TEXT COLLATE "C" NOT NULL,
    tree            TEXT COLLATE "C" NOT NULL,
    branch          TEXT COLLATE "C" NOT NULL,
    gated           BIGINT NOT NULL CHECK (gated IN (0, 1)),
    state           TEXT COLLATE "C" NOT NULL CHECK (state IN ('starting', 'running', 'blocked', 'done', 'failed',
        'lost', 'cancelled')),
    starter         TEXT COLLATE "C" NOT NULL,
    formula         TEXT COLLATE "C" NOT NULL,
    steps           TEXT COLLATE "C" NOT NULL,
    created_at      BIGINT NOT NULL,
    created_by      TEXT COLLATE "C" NOT NULL,
    running_at      BIGINT,
    ended_at        BIGINT,
    exit_code       BIGINT,
    exit_signal     BIGINT,
    reason          TEXT COLLATE "C" NOT NULL,
    ended_by        TEXT COLLATE "C" NOT NULL,
    accepted_commit TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (bead, epoch),
    CHECK ((state IN ('starting', 'running', 'blocked')) = (ended_at IS NULL))
);

CREATE UNIQUE INDEX runs_live ON runs (bead) WHERE state IN ('starting', 'running', 'blocked');
CREATE UNIQUE INDEX runs_place ON runs (place)
    WHERE place <> '' AND executor <> 'none' AND state IN ('starting', 'running', 'blocked');
CREATE UNIQUE INDEX runs_pulling ON runs (agent) WHERE executor = 'pull' AND state = 'running';
CREATE INDEX runs_context ON runs (context);
CREATE INDEX runs_created ON runs (created_at, bead, epoch);

-- How many wait, by what admission looks at: `awake` are those that nothing but admission keeps.
CREATE TABLE lanes (
    rig      TEXT COLLATE "C" NOT NULL,
    place    TEXT COLLATE "C" NOT NULL,
    account  TEXT COLLATE "C" NOT NULL,
    gated    BIGINT NOT NULL,
    priority BIGINT NOT NULL,
    queued   BIGINT NOT NULL CHECK (queued >= 0),
    awake    BIGINT NOT NULL CHECK (awake >= 0 AND awake <= queued),
    PRIMARY KEY (rig, place, account, gated, priority)
);

CREATE TABLE scheduler (
    one                 BIGINT PRIMARY KEY NOT NULL CHECK (one = 1),
    paused_by           TEXT COLLATE "C",
    paused_at           BIGINT,
    last_dispatch_at    BIGINT,
    last_dispatch_count BIGINT,
    CHECK ((paused_by IS NULL) = (paused_at IS NULL)),
    CHECK ((last_dispatch_at IS NULL) = (last_dispatch_count IS NULL))
);

INSERT INTO scheduler (one) VALUES (1);
INSERT INTO counters (name, value) VALUES ('context', 0);
INSERT INTO counters (name, value) VALUES ('notice', 0);

CREATE TABLE accounts (
    handle      TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    config_dir  TEXT COLLATE "C" NOT NULL,
    environment TEXT COLLATE "C" NOT NULL,
    max_runs    BIGINT NOT NULL CHECK (max_runs >= 0),
    is_default  BIGINT NOT NULL CHECK (is_default IN (0, 1)),
    created_at  BIGINT NOT NULL
);

CREATE UNIQUE INDEX accounts_default ON accounts (is_default) WHERE is_default = 1;

-- What people are to be told, once for each channel, at least once.
CREATE TABLE outbox (
    number          BIGINT PRIMARY KEY NOT NULL,
    key             TEXT COLLATE "C" NOT NULL,
    channel         TEXT COLLATE "C" NOT NULL CHECK (channel IN ('command', 'webhook')),
    payload         TEXT COLLATE "C" NOT NULL,
    created_at      BIGINT NOT NULL,
    next_attempt_at BIGINT NOT NULL,
    attempts        BIGINT NOT NULL CHECK (attempts >= 0),
    last_error      TEXT COLLATE "C" NOT NULL,
    state           TEXT COLLATE "C" NOT NULL CHECK (state IN ('waiting', 'sent', 'given-up')),
    UNIQUE (key, channel)
);

CREATE INDEX outbox_waiting ON outbox (channel, next_attempt_at, number) WHERE state = 'waiting';
CREATE INDEX outbox_given_up ON outbox (number) WHERE state = 'given-up';

-- What keeps an open context from starting, as far as it is written down: held = by its bead,
-- asleep_until = by a date. The core decides the same from the same facts, and a test compares.
CREATE VIEW context_standing AS
SELECT c.number AS number, b.priority AS priority,
    CASE WHEN b.open_blockers = 0 AND b.pinned = 0 AND b.ephemeral = 0
        AND (b.status = 'open'
            OR (b.status = 'deferred' AND b.defer_until IS NOT NULL)
            OR (c.forced = 1 AND b.status IN ('hooked', 'in_progress')))
        AND (b.assignee = '' OR c.forced = 1 OR b.assignee = c.place)
        AND (CASE WHEN r.executor = 'pull' THEN
                CASE WHEN b.issue_type IN ('epic', 'convoy', 'molecule', 'gate', 'message', 'event',
                    'agent', 'role', 'rig', 'merge-request', 'sling-context') THEN 0 ELSE 1 END
            ELSE
                CASE WHEN b.issue_type IN ('task', 'bug', 'feature', 'chore', '') THEN 1 ELSE 0 END
            END) = 1
    THEN 0 ELSE 1 END AS held,
    (SELECT MAX(x.at) FROM (
        SELECT c.next_attempt_at AS at
        UNION ALL SELECT b.defer_until
        UNION ALL SELECT p.defer_until FROM dependencies d JOIN beads p ON p.id = d.depends_on_id
            WHERE d.issue_id = b.id AND d.type = 'parent-child'
    ) x) AS asleep_until
FROM contexts c JOIN beads b ON b.id = c.bead LEFT JOIN rigs r ON r.slug = c.rig
WHERE c.closed_at IS NULL;

-- Brings what open contexts repeat of their beads up to date. What triggers call finds the tables of its own
-- schema, whoever changes a row and with whatever search path.
CREATE FUNCTION refresh_contexts_of(refreshed TEXT) RETURNS VOID LANGUAGE SQL AS $$
    UPDATE contexts SET (priority, held, asleep_until) =
        (SELECT s.priority, s.held, s.asleep_until FROM context_standing s WHERE s.number = contexts.number)
        WHERE bead = refreshed AND closed_at IS NULL;
$$;

CREATE FUNCTION refresh_contexts_of_parts(parent TEXT) RETURNS VOID LANGUAGE SQL AS $$
    UPDATE contexts SET (priority, held, asleep_until) =
        (SELECT s.priority, s.held, s.asleep_until FROM context_standing s WHERE s.number = contexts.number)
        WHERE closed_at IS NULL AND bead IN (SELECT d.issue_id FROM dependencies d
            WHERE d.depends_on_id = parent AND d.type = 'parent-child');
$$;

CREATE FUNCTION beads_to_contexts() RETURNS TRIGGER LANGUAGE plpgsql
SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM refresh_contexts_of(NEW.id);
    RETURN NULL;
END $$;

CREATE TRIGGER beads_to_contexts AFTER UPDATE ON beads FOR EACH ROW
WHEN (OLD.status <> NEW.status OR (OLD.open_blockers = 0) <> (NEW.open_blockers = 0)
    OR OLD.pinned <> NEW.pinned OR OLD.ephemeral <> NEW.ephemeral OR OLD.issue_type <> NEW.issue_type
    OR OLD.assignee <> NEW.assignee OR OLD.priority <> NEW.priority
    OR OLD.defer_until IS DISTINCT FROM NEW.defer_until)
EXECUTE FUNCTION beads_to_contexts();

CREATE FUNCTION parents_to_contexts() RETURNS TRIGGER LANGUAGE plpgsql
SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM refresh_contexts_of_parts(NEW.id);
    RETURN NULL;
END $$;

CREATE TRIGGER parents_to_contexts AFTER UPDATE ON beads FOR EACH ROW
WHEN (OLD.defer_until IS DISTINCT FROM NEW.defer_until)
EXECUTE FUNCTION parents_to_contexts();

CREATE TRIGGER new_beads_to_contexts AFTER INSERT ON beads FOR EACH ROW
WHEN (NEW.defer_until IS NOT NULL)
EXECUTE FUNCTION parents_to_contexts();

CREATE FUNCTION parts_to_contexts() RETURNS TRIGGER LANGUAGE plpgsql
SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM refresh_contexts_of(CASE WHEN TG_OP = 'DELETE' THEN OLD.issue_id ELSE NEW.issue_id END);
    RETURN NULL;
END $$;

CREATE TRIGGER new_parts_to_contexts AFTER INSERT ON dependencies FOR EACH ROW
WHEN (NEW.type = 'parent-child') EXECUTE FUNCTION parts_to_contexts();
CREATE TRIGGER old_parts_to_contexts AFTER DELETE ON dependencies FOR EACH ROW
WHEN (OLD.type = 'parent-child') EXECUTE FUNCTION parts_to_contexts();
CREATE TRIGGER changed_parts_to_contexts AFTER UPDATE ON dependencies FOR EACH ROW
WHEN (OLD.type <> NEW.type) EXECUTE FUNCTION parts_to_contexts();

-- What may be dispatched to a rig depends on how it works.
CREATE FUNCTION rigs_to_contexts() RETURNS TRIGGER LANGUAGE plpgsql
SET search_path FROM CURRENT AS $$
BEGIN
    UPDATE contexts SET (priority, held, asleep_until) =
        (SELECT s.priority, s.held, s.asleep_until FROM context_standing s WHERE s.number = contexts.number)
        WHERE rig = CASE WHEN TG_OP = 'DELETE' THEN OLD.slug ELSE NEW.slug END AND closed_at IS NULL;
    RETURN NULL;
END $$;

CREATE TRIGGER rigs_to_contexts AFTER UPDATE ON rigs FOR EACH ROW
WHEN (OLD.executor <> NEW.executor) EXECUTE FUNCTION rigs_to_contexts();
CREATE TRIGGER new_rigs_to_contexts AFTER INSERT ON rigs FOR EACH ROW
EXECUTE FUNCTION rigs_to_contexts();
CREATE TRIGGER old_rigs_to_contexts AFTER DELETE ON rigs FOR EACH ROW
EXECUTE FUNCTION rigs_to_contexts();

CREATE FUNCTION contexts_to_lanes() RETURNS TRIGGER LANGUAGE plpgsql
SET search_path FROM CURRENT AS $$
BEGIN
    IF TG_OP <> 'INSERT' AND OLD.closed_at IS NULL AND OLD.starting = 0 THEN
        UPDATE lanes SET queued = queued - 1, awake = awake
                - CASE WHEN OLD.held = 0 AND OLD.asleep_until IS NULL THEN 1 ELSE 0 END
            WHERE rig = OLD.rig AND place = OLD.place AND account = OLD.account
                AND gated = OLD.gated AND priority = OLD.priority;
    END IF;
    IF TG_OP <> 'DELETE' AND NEW.closed_at IS NULL AND NEW.starting = 0 THEN
        INSERT INTO lanes (rig, place, account, gated, priority, queued, awake)
            VALUES (NEW.rig, NEW.place, NEW.account, NEW.gated, NEW.priority, 1,
                CASE WHEN NEW.held = 0 AND NEW.asleep_until IS NULL THEN 1 ELSE 0 END)
            ON CONFLICT (rig, place, account, gated, priority) DO UPDATE SET
                queued = lanes.queued + 1, awake = lanes.awake + excluded.awake;
    END IF;
    IF TG_OP <> 'INSERT' THEN
        DELETE FROM lanes WHERE queued = 0 AND rig = OLD.rig AND place = OLD.place
            AND account = OLD.account AND gated = OLD.gated AND priority = OLD.priority;
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER contexts_join_lanes AFTER INSERT ON contexts FOR EACH ROW
EXECUTE FUNCTION contexts_to_lanes();
CREATE TRIGGER contexts_change_lanes AFTER UPDATE ON contexts FOR EACH ROW
WHEN (OLD.closed_at IS DISTINCT FROM NEW.closed_at OR OLD.starting <> NEW.starting
    OR OLD.held <> NEW.held OR OLD.asleep_until IS DISTINCT FROM NEW.asleep_until
    OR OLD.priority <> NEW.priority)
EXECUTE FUNCTION contexts_to_lanes();
CREATE TRIGGER contexts_leave_lanes AFTER DELETE ON contexts FOR EACH ROW
EXECUTE FUNCTION contexts_to_lanes();

-- The labels that people gave, and those that say where a bead stands with the scheduler; one that was
-- also given is not there twice.
DROP VIEW bead_labels;
CREATE VIEW bead_labels AS
SELECT bead, label FROM labels
UNION ALL SELECT bead, 'gt:queued' FROM contexts WHERE latest = 1 AND close_reason = ''
    AND NOT EXISTS (SELECT 1 FROM labels s WHERE s.bead = contexts.bead AND s.label = 'gt:queued')
UNION ALL SELECT bead, 'queued' FROM contexts WHERE latest = 1 AND close_reason = ''
    AND NOT EXISTS (SELECT 1 FROM labels s WHERE s.bead = contexts.bead AND s.label = 'queued')
UNION ALL SELECT bead, 'gt:queue-dispatched' FROM contexts WHERE latest = 1 AND close_reason = 'dispatched'
    AND NOT EXISTS (SELECT 1 FROM labels s WHERE s.bead = contexts.bead AND s.label = 'gt:queue-dispatched')
UNION ALL SELECT bead, 'gt:dispatch-failed' FROM contexts WHERE latest = 1 AND close_reason IN ('circuit-broken', 'quarantined', 'invalid-context')
    AND NOT EXISTS (SELECT 1 FROM labels s WHERE s.bead = contexts.bead AND s.label = 'gt:dispatch-failed')
UNION ALL SELECT id, 'gt:sling-context' FROM contexts
    WHERE NOT EXISTS (SELECT 1 FROM beads b WHERE b.id = contexts.id);

-- Beads, and contexts as if they were beads: the columns that filters look at. A name that came with an
-- import is its bead's alone.
CREATE VIEW shown_beads AS
SELECT id, rig, status, outcome, priority, issue_type, assignee, created_at, updated_at, started_at,
    closed_at, due_at, defer_until, ephemeral, pinned, is_template, open_blockers, estimated_minutes,
    title, owner, created_by, close_reason, external_ref, metadata, description, design,
    acceptance_criteria, notes, carried, workable
FROM beads
UNION ALL SELECT id, NULL, CASE WHEN closed_at IS NULL THEN 'open' ELSE 'closed' END, NULL, priority,
    'sling-context', '', enqueued_at, COALESCE(closed_at, enqueued_at), NULL,
    closed_at, NULL, NULL, 1, 0, 0, 0, NULL,
    'sling context for ' || bead, '', enqueued_by, close_reason, NULL, NULL,
    '{"version":1,"work_bead_id":"' || bead || '","target_rig":"' || rig || '"'
        || CASE WHEN parameters = '{}' THEN '}' ELSE ',' || substr(parameters, 2) END
        || last_failure, '',
    '', '', NULL, 0
FROM contexts WHERE NOT EXISTS (SELECT 1 FROM beads b WHERE b.id = contexts.id);
