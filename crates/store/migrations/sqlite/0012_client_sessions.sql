-- Both engines have the same tables. On a server this one has a row per client session that has written; a file needs none,
-- because the answer to its COMMIT cannot be lost.
CREATE TABLE client_sessions (
    id         TEXT PRIMARY KEY NOT NULL,
    nonce      TEXT NOT NULL,
    kept_until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
