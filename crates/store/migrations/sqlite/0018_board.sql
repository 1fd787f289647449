-- The lanes of the board. Columns that are always the same come first, or SQLite would rather take another index; the last
-- columns let a lane be counted, and narrowed to a rig, from the index alone. That is why they do without the column
-- workable: SQLite reads the whole row for a generated column.
CREATE INDEX beads_ready_lane ON beads
    (status, open_blockers, ephemeral, pinned, priority, created_at DESC, id, issue_type, rig)
    WHERE status = 'open' AND open_blockers = 0 AND ephemeral = 0 AND pinned = 0;
CREATE INDEX beads_blocked_lane ON beads
    (ephemeral, pinned, priority, created_at DESC, id, status, issue_type, rig, open_blockers)
    WHERE open_blockers > 0 AND status <> 'closed' AND ephemeral = 0 AND pinned = 0;
CREATE INDEX beads_landed_lane ON beads (status, ephemeral, pinned, closed_at, id, issue_type, rig, outcome)
    WHERE status = 'closed' AND ephemeral = 0 AND pinned = 0;
CREATE INDEX runs_rig ON runs (rig, created_at, bead, epoch);
-- The pauses in the history of a convoy.
CREATE INDEX events_pauses ON events (number) WHERE type IN ('paused', 'resumed');
