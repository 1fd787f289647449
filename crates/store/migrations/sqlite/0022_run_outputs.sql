-- The end of what a run has printed, for hosts that do not have its files. Its own host has all of it.
CREATE TABLE run_outputs (
    bead    TEXT NOT NULL,
    epoch   INTEGER NOT NULL,
    -- How many bytes the whole output has.
    bytes   INTEGER NOT NULL,
    tail    BLOB NOT NULL,
    kept_at INTEGER NOT NULL,
    PRIMARY KEY (bead, epoch),
    FOREIGN KEY (bead, epoch) REFERENCES runs (bead, epoch) ON DELETE CASCADE
) STRICT;

CREATE INDEX run_outputs_age ON run_outputs (kept_at);
