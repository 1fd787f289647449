-- The end of what a run has printed, for hosts that do not have its files. Its own host has all of it.
CREATE TABLE run_outputs (
    bead    TEXT COLLATE "C" NOT NULL,
    epoch   BIGINT NOT NULL,
    -- How many bytes the whole output has.
    bytes   BIGINT NOT NULL,
    tail    BYTEA NOT NULL,
    kept_at BIGINT NOT NULL,
    PRIMARY KEY (bead, epoch),
    FOREIGN KEY (bead, epoch) REFERENCES runs (bead, epoch) ON DELETE CASCADE
);

CREATE INDEX run_outputs_age ON run_outputs (kept_at);
