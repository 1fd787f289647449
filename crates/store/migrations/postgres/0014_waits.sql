-- What an open context waits for is decided by the evaluator alone and stored with the context by the program: `waits` is the
-- class of what it waits for, and `due_at` is when its backoff and every deferral are over. No trigger, view or table of
-- counts repeats any of it.
DROP TRIGGER beads_to_contexts ON beads;
DROP TRIGGER parents_to_contexts ON beads;
DROP TRIGGER new_beads_to_contexts ON beads;
DROP TRIGGER new_parts_to_contexts ON dependencies;
DROP TRIGGER old_parts_to_contexts ON dependencies;
DROP TRIGGER changed_parts_to_contexts ON dependencies;
DROP TRIGGER rigs_to_contexts ON rigs;
DROP TRIGGER new_rigs_to_contexts ON rigs;
DROP TRIGGER old_rigs_to_contexts ON rigs;
DROP TRIGGER convoys_to_contexts ON convoys;
DROP TRIGGER tracked_to_contexts ON dependencies;
DROP TRIGGER untracked_to_contexts ON dependencies;
DROP TRIGGER retracked_to_contexts ON dependencies;
DROP TRIGGER contexts_join_lanes ON contexts;
DROP TRIGGER contexts_change_lanes ON contexts;
DROP TRIGGER contexts_leave_lanes ON contexts;
DROP FUNCTION beads_to_contexts();
DROP FUNCTION parents_to_contexts();
DROP FUNCTION parts_to_contexts();
DROP FUNCTION rigs_to_contexts();
DROP FUNCTION convoys_to_contexts();
DROP FUNCTION tracked_to_contexts();
DROP FUNCTION contexts_join_lanes();
DROP FUNCTION contexts_change_lanes();
DROP FUNCTION contexts_leave_lanes();
DROP FUNCTION refresh_contexts_of(TEXT);
DROP FUNCTION refresh_contexts_of_parts(TEXT);
DROP FUNCTION move_lane(TEXT, TEXT, TEXT, BIGINT, BIGINT, TEXT, BIGINT, BIGINT);
DROP TABLE lanes;
DROP VIEW context_standing;
DROP INDEX contexts_line;
DROP INDEX contexts_asleep;
DROP INDEX contexts_stale;

ALTER TABLE contexts ADD COLUMN waits TEXT COLLATE "C" NOT NULL DEFAULT 'nothing'
    CHECK (waits IN ('nothing', 'status', 'blockers', 'assignee', 'type', 'convoy', 'closed'));
ALTER TABLE contexts ADD COLUMN due_at BIGINT;

-- As the evaluator says it, once, for what was scheduled before.
UPDATE contexts SET due_at = asleep_until, waits = (SELECT CASE
        WHEN b.status = 'closed' THEN 'closed'
        WHEN NOT (b.status = 'open' OR (b.status = 'deferred' AND b.defer_until IS NOT NULL)
            OR (contexts.forced = 1 AND b.status IN ('hooked', 'in_progress'))) THEN 'status'
        WHEN b.pinned = 1 THEN 'status'
        WHEN b.open_blockers > 0 THEN 'blockers'
        WHEN b.ephemeral = 1 THEN 'status'
        WHEN b.assignee <> '' AND contexts.forced = 0 AND b.assignee <> contexts.place THEN 'assignee'
        WHEN r.executor = 'pull' AND b.issue_type IN ('epic', 'convoy', 'molecule', 'gate', 'message', 'event',
            'agent', 'role', 'rig', 'merge-request', 'sling-context') THEN 'type'
        WHEN r.executor <> 'pull' AND b.issue_type NOT IN ('task', 'bug', 'feature', 'chore', '') THEN 'type'
        WHEN EXISTS (SELECT 1 FROM dependencies d JOIN convoys v ON v.id = d.issue_id
            WHERE d.depends_on_id = b.id AND d.type = 'tracks' AND v.paused_at IS NOT NULL) THEN 'convoy'
        ELSE 'nothing' END
    FROM beads b LEFT JOIN rigs r ON r.slug = contexts.rig WHERE b.id = contexts.bead)
WHERE closed_at IS NULL;

ALTER TABLE contexts DROP COLUMN held;
ALTER TABLE contexts DROP COLUMN asleep_until;

CREATE INDEX contexts_line ON contexts (rig, place, account, gated, priority, convoys, number)
    WHERE closed_at IS NULL AND starting = 0 AND waits = 'nothing' AND due_at IS NULL;
CREATE INDEX contexts_due ON contexts (due_at)
    WHERE closed_at IS NULL AND starting = 0 AND waits = 'nothing' AND due_at IS NOT NULL;
CREATE INDEX contexts_stale ON contexts (number) WHERE closed_at IS NULL AND starting = 0 AND waits = 'closed';
CREATE INDEX contexts_rig ON contexts (rig) WHERE closed_at IS NULL AND starting = 0;
-- Agents that ask for work find what was scheduled with force, also if it is assigned to another agent.
CREATE INDEX contexts_forced ON contexts (bead) WHERE closed_at IS NULL AND forced = 1;
