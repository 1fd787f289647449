-- A caller that may repeat itself names its request. The first time makes the bead, every other time
-- finds it here.
CREATE TABLE requests (
    key  TEXT PRIMARY KEY NOT NULL,
    bead TEXT NOT NULL,
    at   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
-- For forgetting, together with the bead.
CREATE INDEX requests_bead ON requests (bead);
