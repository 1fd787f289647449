-- The windows of the subscriptions that runs use, as their services told of them last: how much is used, and when they begin anew.
CREATE TABLE usage_windows (
    kind         TEXT NOT NULL CHECK (kind IN ('runtime', 'account')),
    name         TEXT NOT NULL,
    window_name  TEXT NOT NULL,
    used_percent INTEGER CHECK (used_percent >= 0),
    length_s     INTEGER CHECK (length_s > 0),
    resets_at    INTEGER,
    seen_at      INTEGER NOT NULL,
    PRIMARY KEY (kind, name, window_name)
) STRICT, WITHOUT ROWID;
