-- One row per client session that has written. Each write transaction sets the nonce of its session, so that a client that
-- has lost the answer to its COMMIT finds out whether that transaction was committed. A transaction number cannot tell:
-- a server that crashed gives numbers out again. `kept_until` is when the row may be deleted.
CREATE TABLE client_sessions (
    id         TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    nonce      TEXT COLLATE "C" NOT NULL,
    kept_until BIGINT NOT NULL
);
