-- A run that has reserved a part of the budgets keeps it until its usage is final: its agent reports usage also after the run
-- has ended. An older program leaves the mark; the host of the run removes it when no process of the run is left.
ALTER TABLE runs ADD COLUMN usage_pending INTEGER NOT NULL DEFAULT 0;
CREATE INDEX runs_usage_pending ON runs (bead, epoch) WHERE usage_pending = 1;
