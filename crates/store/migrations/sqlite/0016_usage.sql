-- Everything that one source has said so far about one model in one session of a run. `reported` is the cost that the agent
-- reports, `priced` the one by the table of prices when the row was written.
CREATE TABLE usage_records (
    bead        TEXT NOT NULL REFERENCES beads (id) ON DELETE CASCADE,
    epoch       INTEGER NOT NULL,
    session     INTEGER NOT NULL,
    model       TEXT NOT NULL,
    source      TEXT NOT NULL CHECK (source IN ('output', 'telemetry')),
    input       INTEGER NOT NULL,
    output      INTEGER NOT NULL,
    cache_read  INTEGER NOT NULL,
    cache_write INTEGER NOT NULL,
    reasoning   INTEGER NOT NULL,
    reported    INTEGER,
    priced      INTEGER,
    PRIMARY KEY (bead, epoch, session, model, source)
) STRICT, WITHOUT ROWID;

-- What the usage of a run grew by, and when. A change may be negative: tokens of an unknown model get a name later. `priced` is
-- the part of the cost that is by the table of prices; `unpriced` are the tokens whose cost is unknown. The rows outlive their
-- beads, because the money is spent.
CREATE TABLE spending (
    bead        TEXT NOT NULL,
    epoch       INTEGER NOT NULL,
    model       TEXT NOT NULL,
    at          INTEGER NOT NULL,
    rig         TEXT NOT NULL,
    account     TEXT NOT NULL,
    input       INTEGER NOT NULL,
    output      INTEGER NOT NULL,
    cache_read  INTEGER NOT NULL,
    cache_write INTEGER NOT NULL,
    reasoning   INTEGER NOT NULL,
    cost        INTEGER NOT NULL,
    priced      INTEGER NOT NULL,
    unpriced    INTEGER NOT NULL,
    PRIMARY KEY (bead, epoch, model, at)
) STRICT, WITHOUT ROWID;

CREATE INDEX spending_at ON spending (at);

INSERT INTO usage_records (bead, epoch, session, model, source, input, output, cache_read, cache_write, reasoning, reported)
    SELECT bead, epoch, 1, '', 'output', coalesce(tokens, 0), 0, 0, 0, 0, cost FROM runs
    WHERE used_at IS NOT NULL AND (tokens IS NOT NULL OR cost IS NOT NULL);
INSERT INTO spending (bead, epoch, model, at, rig, account, input, output, cache_read, cache_write, reasoning, cost, priced, unpriced)
    SELECT bead, epoch, '', used_at, rig, account, coalesce(tokens, 0), 0, 0, 0, 0, coalesce(cost, 0), 0,
        CASE WHEN cost IS NULL THEN tokens ELSE 0 END FROM runs
    WHERE used_at IS NOT NULL AND (tokens IS NOT NULL OR cost IS NOT NULL);
DROP INDEX runs_used;
ALTER TABLE runs DROP COLUMN used_at;

-- The limit of its own that a run was over, and what its start reserved in the budgets.
ALTER TABLE runs ADD COLUMN over_limit TEXT CHECK (over_limit IN ('time', 'cost', 'tokens'));
ALTER TABLE runs ADD COLUMN reserved_tokens INTEGER;
ALTER TABLE runs ADD COLUMN reserved_cost INTEGER;

CREATE INDEX runs_measured ON runs (ended_at) WHERE ended_at IS NOT NULL AND (tokens IS NOT NULL OR cost IS NOT NULL);

-- The range of ports of a tree, by its number among all trees of the town, also those of other hosts.
CREATE TABLE port_ranges (
    number INTEGER PRIMARY KEY NOT NULL,
    rig    TEXT NOT NULL REFERENCES rigs (slug) ON DELETE CASCADE,
    -- `polecats/<name>`, or `<host>/checks/<number>`.
    place  TEXT NOT NULL,
    UNIQUE (rig, place)
) STRICT;
