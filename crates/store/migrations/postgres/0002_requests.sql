-- A caller that may repeat itself names its request. The first time makes the bead, every other time
-- finds it here.
CREATE TABLE requests (
    key  TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    bead TEXT COLLATE "C" NOT NULL,
    at   BIGINT NOT NULL
);
-- For forgetting, together with the bead.
CREATE INDEX requests_bead ON requests (bead);
