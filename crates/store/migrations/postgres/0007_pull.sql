-- Work that agents were given and have begun, for which nobody speaks: whoever looks for silence need not step over all
-- the work that has a lease.
CREATE INDEX runs_unleased ON runs (bead) WHERE executor = 'pull' AND state = 'running' AND lease_expires_at IS NULL;

-- Most beads that change are not scheduled, and to see that is cheap. What follows for those that are is a large statement,
-- and a function in SQL has it planned at every call: that had cost more than all the rest of a change. No plan is kept
-- either: it would have been made when the table was small.
CREATE OR REPLACE FUNCTION refresh_contexts_of(refreshed TEXT) RETURNS VOID LANGUAGE plpgsql
SET plan_cache_mode = force_custom_plan AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM contexts WHERE bead = refreshed AND closed_at IS NULL) THEN
        UPDATE contexts SET (priority, held, asleep_until) =
            (SELECT s.priority, s.held, s.asleep_until FROM context_standing s WHERE s.number = contexts.number)
            WHERE bead = refreshed AND closed_at IS NULL;
    END IF;
END $$;

-- Whoever asks for the next item finds it behind those that are gone, until these are cleared away. By default that
-- would wait for a fifth of the table, which is a long way where there are a million items.
ALTER TABLE beads SET (autovacuum_vacuum_scale_factor = 0.05);
