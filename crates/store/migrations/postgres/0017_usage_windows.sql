-- The windows of the subscriptions that runs use, as their services told of them last: how much is used, and when they begin anew.
CREATE TABLE usage_windows (
    kind         TEXT COLLATE "C" NOT NULL CHECK (kind IN ('runtime', 'account')),
    name         TEXT COLLATE "C" NOT NULL,
    window_name  TEXT COLLATE "C" NOT NULL,
    used_percent BIGINT CHECK (used_percent >= 0),
    length_s     BIGINT CHECK (length_s > 0),
    resets_at    BIGINT,
    seen_at      BIGINT NOT NULL,
    PRIMARY KEY (kind, name, window_name)
);
