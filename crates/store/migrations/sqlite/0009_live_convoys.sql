-- A convoy can be paused, and can have a cap of its own. What it holds up is repeated with its contexts, as everything is that
-- keeps them: `held` while one of their convoys is paused, and `convoys`, the names of those that have a cap, so that a
-- convoy that is full is a lane that nobody looks into.
ALTER TABLE convoys ADD COLUMN cap INTEGER NOT NULL DEFAULT 0 CHECK (cap >= 0);
ALTER TABLE convoys ADD COLUMN paused_by TEXT;
ALTER TABLE convoys ADD COLUMN paused_at INTEGER;
ALTER TABLE convoys ADD COLUMN fed_at INTEGER;
ALTER TABLE contexts ADD COLUMN convoys TEXT NOT NULL DEFAULT '';

CREATE INDEX convoys_limiting ON convoys (id) WHERE cap > 0 OR paused_at IS NOT NULL;

-- Epics are counted like convoys: their parts are what they wait for.
INSERT INTO convoys (id, members, open_members, failed_members, landings)
SELECT e.id, COUNT(*), SUM(CASE WHEN b.status <> 'closed' THEN 1 ELSE 0 END),
    SUM(CASE WHEN b.status = 'closed' AND b.outcome = 'failed' THEN 1 ELSE 0 END), 0
FROM beads e JOIN dependencies d ON d.depends_on_id = e.id AND d.type = 'parent-child' JOIN beads b ON b.id = d.issue_id
WHERE e.issue_type = 'epic' GROUP BY e.id;

DROP TRIGGER contexts_join_lanes;
DROP TRIGGER contexts_change_lanes;
DROP TRIGGER contexts_leave_lanes;
DROP TABLE lanes;
DROP INDEX contexts_line;

CREATE INDEX contexts_line ON contexts (rig, place, account, gated, priority, convoys, number)
    WHERE closed_at IS NULL AND starting = 0 AND held = 0 AND asleep_until IS NULL;

CREATE TABLE lanes (
    rig      TEXT NOT NULL,
    place    TEXT NOT NULL,
    account  TEXT NOT NULL,
    gated    INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    convoys  TEXT NOT NULL,
    queued   INTEGER NOT NULL CHECK (queued >= 0),
    awake    INTEGER NOT NULL CHECK (awake >= 0 AND awake <= queued),
    PRIMARY KEY (rig, place, account, gated, priority, convoys)
) STRICT, WITHOUT ROWID;

INSERT INTO lanes (rig, place, account, gated, priority, convoys, queued, awake)
SELECT rig, place, account, gated, priority, convoys, COUNT(*),
    COUNT(CASE WHEN held = 0 AND asleep_until IS NULL THEN 1 END)
FROM contexts WHERE closed_at IS NULL AND starting = 0
GROUP BY rig, place, account, gated, priority, convoys;

CREATE TRIGGER contexts_join_lanes AFTER INSERT ON contexts
WHEN NEW.closed_at IS NULL AND NEW.starting = 0
BEGIN
    INSERT INTO lanes (rig, place, account, gated, priority, convoys, queued, awake)
        VALUES (NEW.rig, NEW.place, NEW.account, NEW.gated, NEW.priority, NEW.convoys, 1,
            NEW.held = 0 AND NEW.asleep_until IS NULL)
        ON CONFLICT (rig, place, account, gated, priority, convoys) DO UPDATE SET
            queued = lanes.queued + 1, awake = lanes.awake + excluded.awake;
END;

CREATE TRIGGER contexts_change_lanes AFTER UPDATE ON contexts
WHEN OLD.closed_at IS NOT NEW.closed_at OR OLD.starting <> NEW.starting OR OLD.held <> NEW.held
    OR OLD.asleep_until IS NOT NEW.asleep_until OR OLD.priority <> NEW.priority OR OLD.convoys <> NEW.convoys
BEGIN
    UPDATE lanes SET queued = queued - 1,
            awake = awake - (OLD.held = 0 AND OLD.asleep_until IS NULL)
        WHERE OLD.closed_at IS NULL AND OLD.starting = 0 AND rig = OLD.rig AND place = OLD.place
            AND account = OLD.account AND gated = OLD.gated AND priority = OLD.priority AND convoys = OLD.convoys;
    INSERT INTO lanes (rig, place, account, gated, priority, convoys, queued, awake)
        SELECT NEW.rig, NEW.place, NEW.account, NEW.gated, NEW.priority, NEW.convoys, 1,
            NEW.held = 0 AND NEW.asleep_until IS NULL
        WHERE NEW.closed_at IS NULL AND NEW.starting = 0
        ON CONFLICT (rig, place, account, gated, priority, convoys) DO UPDATE SET
            queued = lanes.queued + 1, awake = lanes.awake + excluded.awake;
    DELETE FROM lanes WHERE queued = 0 AND rig = OLD.rig AND place = OLD.place
        AND account = OLD.account AND gated = OLD.gated AND priority = OLD.priority AND convoys = OLD.convoys;
END;

CREATE TRIGGER contexts_leave_lanes AFTER DELETE ON contexts
WHEN OLD.closed_at IS NULL AND OLD.starting = 0
BEGIN
    UPDATE lanes SET queued = queued - 1,
            awake = awake - (OLD.held = 0 AND OLD.asleep_until IS NULL)
        WHERE rig = OLD.rig AND place = OLD.place
            AND account = OLD.account AND gated = OLD.gated AND priority = OLD.priority AND convoys = OLD.convoys;
    DELETE FROM lanes WHERE queued = 0 AND rig = OLD.rig AND place = OLD.place
        AND account = OLD.account AND gated = OLD.gated AND priority = OLD.priority AND convoys = OLD.convoys;
END;

DROP VIEW context_standing;
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
        AND NOT EXISTS (SELECT 1 FROM dependencies d JOIN convoys v ON v.id = d.issue_id
            WHERE d.depends_on_id = b.id AND d.type = 'tracks' AND v.paused_at IS NOT NULL)
    THEN 0 WHEN b.status = 'closed' THEN 2 ELSE 1 END AS held,
    (SELECT MAX(x.at) FROM (
        SELECT c.next_attempt_at AS at
        UNION ALL SELECT b.defer_until
        UNION ALL SELECT p.defer_until FROM dependencies d JOIN beads p ON p.id = d.depends_on_id
            WHERE d.issue_id = b.id AND d.type = 'parent-child'
    ) x) AS asleep_until,
    COALESCE((SELECT GROUP_CONCAT(x.id, ' ') FROM (SELECT v.id AS id FROM dependencies d JOIN convoys v ON v.id = d.issue_id
        WHERE d.depends_on_id = b.id AND d.type = 'tracks' AND v.cap > 0 ORDER BY v.id) x), '') AS convoys
FROM contexts c JOIN beads b ON b.id = c.bead LEFT JOIN rigs r ON r.slug = c.rig
WHERE c.closed_at IS NULL;

CREATE TRIGGER convoys_to_contexts AFTER UPDATE ON convoys
WHEN (OLD.paused_at IS NULL) <> (NEW.paused_at IS NULL) OR (OLD.cap > 0) <> (NEW.cap > 0)
BEGIN
    UPDATE contexts SET (held, convoys) =
        (SELECT s.held, s.convoys FROM context_standing s WHERE s.number = contexts.number)
        WHERE closed_at IS NULL AND bead IN (SELECT d.depends_on_id FROM dependencies d
            WHERE d.issue_id = NEW.id AND d.type = 'tracks');
END;

CREATE TRIGGER tracked_to_contexts AFTER INSERT ON dependencies
WHEN NEW.type = 'tracks' AND EXISTS (SELECT 1 FROM convoys WHERE id = NEW.issue_id AND (cap > 0 OR paused_at IS NOT NULL))
BEGIN
    UPDATE contexts SET (held, convoys) =
        (SELECT s.held, s.convoys FROM context_standing s WHERE s.number = contexts.number)
        WHERE bead = NEW.depends_on_id AND closed_at IS NULL;
END;

CREATE TRIGGER untracked_to_contexts AFTER DELETE ON dependencies
WHEN OLD.type = 'tracks' AND EXISTS (SELECT 1 FROM convoys WHERE id = OLD.issue_id AND (cap > 0 OR paused_at IS NOT NULL))
BEGIN
    UPDATE contexts SET (held, convoys) =
        (SELECT s.held, s.convoys FROM context_standing s WHERE s.number = contexts.number)
        WHERE bead = OLD.depends_on_id AND closed_at IS NULL;
END;

CREATE TRIGGER retracked_to_contexts AFTER UPDATE OF type ON dependencies
WHEN (OLD.type = 'tracks') <> (NEW.type = 'tracks')
BEGIN
    UPDATE contexts SET (held, convoys) =
        (SELECT s.held, s.convoys FROM context_standing s WHERE s.number = contexts.number)
        WHERE bead = NEW.depends_on_id AND closed_at IS NULL;
END;
