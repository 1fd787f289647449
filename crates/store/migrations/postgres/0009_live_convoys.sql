-- A convoy can be paused, and can have a cap of its own. What it holds up is repeated with its contexts, as everything is that
-- keeps them: `held` while one of their convoys is paused, and `convoys`, the names of those that have a cap, so that a
-- convoy that is full is a lane that nobody looks into.
ALTER TABLE convoys ADD COLUMN cap BIGINT NOT NULL DEFAULT 0 CHECK (cap >= 0);
ALTER TABLE convoys ADD COLUMN paused_by TEXT COLLATE "C";
ALTER TABLE convoys ADD COLUMN paused_at BIGINT;
ALTER TABLE convoys ADD COLUMN fed_at BIGINT;
ALTER TABLE contexts ADD COLUMN convoys TEXT COLLATE "C" NOT NULL DEFAULT '';

CREATE INDEX convoys_limiting ON convoys (id) WHERE cap > 0 OR paused_at IS NOT NULL;

-- Epics are counted like convoys: their parts are what they wait for.
INSERT INTO convoys (id, members, open_members, failed_members, landings)
SELECT e.id, COUNT(*), SUM(CASE WHEN b.status <> 'closed' THEN 1 ELSE 0 END),
    SUM(CASE WHEN b.status = 'closed' AND b.outcome = 'failed' THEN 1 ELSE 0 END), 0
FROM beads e JOIN dependencies d ON d.depends_on_id = e.id AND d.type = 'parent-child' JOIN beads b ON b.id = d.issue_id
WHERE e.issue_type = 'epic' GROUP BY e.id;

DROP TRIGGER contexts_join_lanes ON contexts;
DROP TRIGGER contexts_change_lanes ON contexts;
DROP TRIGGER contexts_leave_lanes ON contexts;
DROP FUNCTION contexts_join_lanes();
DROP FUNCTION contexts_change_lanes();
DROP FUNCTION contexts_leave_lanes();
DROP FUNCTION move_lane(TEXT, TEXT, TEXT, BIGINT, BIGINT, BIGINT, BIGINT);
DROP TABLE lanes;
DROP INDEX contexts_line;

CREATE INDEX contexts_line ON contexts (rig, place, account, gated, priority, convoys, number)
    WHERE closed_at IS NULL AND starting = 0 AND held = 0 AND asleep_until IS NULL;

CREATE TABLE lanes (
    rig      TEXT COLLATE "C" NOT NULL,
    place    TEXT COLLATE "C" NOT NULL,
    account  TEXT COLLATE "C" NOT NULL,
    gated    BIGINT NOT NULL,
    priority BIGINT NOT NULL,
    convoys  TEXT COLLATE "C" NOT NULL,
    queued   BIGINT NOT NULL CHECK (queued >= 0),
    awake    BIGINT NOT NULL CHECK (awake >= 0 AND awake <= queued),
    PRIMARY KEY (rig, place, account, gated, priority, convoys)
);

INSERT INTO lanes (rig, place, account, gated, priority, convoys, queued, awake)
SELECT rig, place, account, gated, priority, convoys, COUNT(*),
    COUNT(CASE WHEN held = 0 AND asleep_until IS NULL THEN 1 END)
FROM contexts WHERE closed_at IS NULL AND starting = 0
GROUP BY rig, place, account, gated, priority, convoys;

-- Once for a statement and not for a row: very many contexts come in one transaction, and every change of
-- the same lane would leave a version of it behind that the next one has to step over.
CREATE FUNCTION move_lane(of_rig TEXT, of_place TEXT, of_account TEXT, of_gated BIGINT, of_priority BIGINT,
    of_convoys TEXT, more_queued BIGINT, more_awake BIGINT) RETURNS VOID LANGUAGE plpgsql AS $$
BEGIN
    UPDATE lanes SET queued = queued + more_queued, awake = awake + more_awake
        WHERE rig = of_rig AND place = of_place AND account = of_account
            AND gated = of_gated AND priority = of_priority AND convoys = of_convoys;
    IF NOT FOUND THEN
        INSERT INTO lanes (rig, place, account, gated, priority, convoys, queued, awake)
            VALUES (of_rig, of_place, of_account, of_gated, of_priority, of_convoys, more_queued, more_awake);
    END IF;
    DELETE FROM lanes WHERE queued = 0 AND rig = of_rig AND place = of_place AND account = of_account
        AND gated = of_gated AND priority = of_priority AND convoys = of_convoys;
END $$;

CREATE FUNCTION contexts_join_lanes() RETURNS TRIGGER LANGUAGE plpgsql
SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM move_lane(rig, place, account, gated, priority, convoys, COUNT(*),
            COUNT(*) FILTER (WHERE held = 0 AND asleep_until IS NULL))
        FROM arrived WHERE closed_at IS NULL AND starting = 0
        GROUP BY rig, place, account, gated, priority, convoys;
    RETURN NULL;
END $$;

CREATE FUNCTION contexts_leave_lanes() RETURNS TRIGGER LANGUAGE plpgsql
SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM move_lane(rig, place, account, gated, priority, convoys, -COUNT(*),
            -COUNT(*) FILTER (WHERE held = 0 AND asleep_until IS NULL))
        FROM departed WHERE closed_at IS NULL AND starting = 0
        GROUP BY rig, place, account, gated, priority, convoys;
    RETURN NULL;
END $$;

CREATE FUNCTION contexts_change_lanes() RETURNS TRIGGER LANGUAGE plpgsql
SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM move_lane(rig, place, account, gated, priority, convoys, SUM(queued)::BIGINT, SUM(awake)::BIGINT)
        FROM (
            SELECT rig, place, account, gated, priority, convoys, -1 AS queued,
                CASE WHEN held = 0 AND asleep_until IS NULL THEN -1 ELSE 0 END AS awake
                FROM departed WHERE closed_at IS NULL AND starting = 0
            UNION ALL
            SELECT rig, place, account, gated, priority, convoys, 1,
                CASE WHEN held = 0 AND asleep_until IS NULL THEN 1 ELSE 0 END
                FROM arrived WHERE closed_at IS NULL AND starting = 0
        ) moved
        GROUP BY rig, place, account, gated, priority, convoys
        HAVING SUM(queued) <> 0 OR SUM(awake) <> 0;
    RETURN NULL;
END $$;

CREATE TRIGGER contexts_join_lanes AFTER INSERT ON contexts
REFERENCING NEW TABLE AS arrived FOR EACH STATEMENT EXECUTE FUNCTION contexts_join_lanes();
CREATE TRIGGER contexts_change_lanes AFTER UPDATE ON contexts
REFERENCING OLD TABLE AS departed NEW TABLE AS arrived
FOR EACH STATEMENT EXECUTE FUNCTION contexts_change_lanes();
CREATE TRIGGER contexts_leave_lanes AFTER DELETE ON contexts
REFERENCING OLD TABLE AS departed FOR EACH STATEMENT EXECUTE FUNCTION contexts_leave_lanes();

CREATE OR REPLACE VIEW context_standing AS
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
    COALESCE((SELECT STRING_AGG(v.id, ' ' ORDER BY v.id COLLATE "C") FROM dependencies d JOIN convoys v ON v.id = d.issue_id
        WHERE d.depends_on_id = b.id AND d.type = 'tracks' AND v.cap > 0), '') AS convoys
FROM contexts c JOIN beads b ON b.id = c.bead LEFT JOIN rigs r ON r.slug = c.rig
WHERE c.closed_at IS NULL;

CREATE FUNCTION convoys_to_contexts() RETURNS TRIGGER LANGUAGE plpgsql
SET search_path FROM CURRENT AS $$
BEGIN
    UPDATE contexts SET (held, convoys) =
        (SELECT s.held, s.convoys FROM context_standing s WHERE s.number = contexts.number)
        WHERE closed_at IS NULL AND bead IN (SELECT d.depends_on_id FROM dependencies d
            WHERE d.issue_id = NEW.id AND d.type = 'tracks');
    RETURN NULL;
END $$;

CREATE TRIGGER convoys_to_contexts AFTER UPDATE ON convoys FOR EACH ROW
WHEN ((OLD.paused_at IS NULL) <> (NEW.paused_at IS NULL) OR (OLD.cap > 0) <> (NEW.cap > 0))
EXECUTE FUNCTION convoys_to_contexts();

-- Most convoys limit nobody, and to see that is cheap.
CREATE FUNCTION tracked_to_contexts() RETURNS TRIGGER LANGUAGE plpgsql
SET search_path FROM CURRENT AS $$
DECLARE
    convoy TEXT := CASE WHEN TG_OP = 'DELETE' THEN OLD.issue_id ELSE NEW.issue_id END;
    tracked TEXT := CASE WHEN TG_OP = 'DELETE' THEN OLD.depends_on_id ELSE NEW.depends_on_id END;
BEGIN
    IF EXISTS (SELECT 1 FROM convoys WHERE id = convoy AND (cap > 0 OR paused_at IS NOT NULL)) THEN
        UPDATE contexts SET (held, convoys) =
            (SELECT s.held, s.convoys FROM context_standing s WHERE s.number = contexts.number)
            WHERE bead = tracked AND closed_at IS NULL;
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER tracked_to_contexts AFTER INSERT ON dependencies FOR EACH ROW
WHEN (NEW.type = 'tracks') EXECUTE FUNCTION tracked_to_contexts();
CREATE TRIGGER untracked_to_contexts AFTER DELETE ON dependencies FOR EACH ROW
WHEN (OLD.type = 'tracks') EXECUTE FUNCTION tracked_to_contexts();
CREATE TRIGGER retracked_to_contexts AFTER UPDATE ON dependencies FOR EACH ROW
WHEN ((OLD.type = 'tracks') <> (NEW.type = 'tracks')) EXECUTE FUNCTION tracked_to_contexts();
