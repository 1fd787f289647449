-- One accepted commit for one target branch. A bead has at most one that is not over.
CREATE TABLE merge_requests (
    bead         TEXT NOT NULL REFERENCES beads (id) ON DELETE CASCADE,
    number       INTEGER NOT NULL,
    -- The run that made the commit; 0 if no run did.
    epoch        INTEGER NOT NULL,
    -- What it brings to its target: the work of a run, the undoing of such work, or the branch of a convoy.
    purpose      TEXT NOT NULL CHECK (purpose IN ('work', 'revert', 'integration')),
    rig          TEXT NOT NULL,
    target       TEXT NOT NULL,
    branch       TEXT NOT NULL,
    accepted     TEXT NOT NULL,
    -- The commit that the work began from.
    base         TEXT NOT NULL,
    merge        TEXT NOT NULL CHECK (merge IN ('mr', 'direct', 'pr')),
    review       INTEGER NOT NULL CHECK (review IN (0, 1)),
    state        TEXT NOT NULL CHECK (state IN ('queued', 'building', 'checking', 'landing', 'landed', 'review', 'conflict',
        'failed', 'held', 'cancelled', 'superseded')),
    -- Why it is held; empty in every other state.
    held         TEXT NOT NULL CHECK ((held = '') = (state <> 'held')),
    -- The words of git, of a check or of the origin about the state.
    detail       TEXT NOT NULL,
    -- The place in line.
    position     INTEGER NOT NULL,
    -- It goes before all others; with `fix`, also while the target is red.
    top          INTEGER NOT NULL CHECK (top IN (0, 1)),
    fix          INTEGER NOT NULL CHECK (fix IN (0, 1)),
    -- How often it could not land for a reason of its own, and how often it was built again because the target moved.
    tries        INTEGER NOT NULL,
    rebuilds     INTEGER NOT NULL,
    -- The candidate that it lands with, from the intent on.
    candidate    INTEGER,
    -- The commit of the target that has it.
    landed       TEXT NOT NULL,
    -- The run of the check that failed with it.
    check_run    INTEGER,
    -- Not to be tried again before this.
    retry_at     INTEGER,
    pull_branch  TEXT NOT NULL,
    pull_number  INTEGER,
    pull_address TEXT NOT NULL,
    created_at   INTEGER NOT NULL,
    changed_at   INTEGER NOT NULL,
    PRIMARY KEY (bead, number)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX merge_requests_open ON merge_requests (bead)
    WHERE state NOT IN ('landed', 'cancelled', 'superseded');
CREATE INDEX merge_requests_line ON merge_requests (rig, target, position)
    WHERE state NOT IN ('landed', 'cancelled', 'superseded');
CREATE INDEX merge_requests_position ON merge_requests (position);
CREATE INDEX merge_requests_landed ON merge_requests (landed) WHERE state = 'landed';

-- Commits that were built from requests, and about to be pushed. A row is written before the push, and after it.
CREATE TABLE candidates (
    number     INTEGER PRIMARY KEY,
    rig        TEXT NOT NULL,
    target     TEXT NOT NULL,
    base       TEXT NOT NULL,
    tip        TEXT NOT NULL,
    tree       TEXT NOT NULL,
    state      TEXT NOT NULL CHECK (state IN ('landing', 'landed', 'dropped')),
    builder    TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    changed_at INTEGER NOT NULL
) STRICT;

CREATE INDEX candidates_landing ON candidates (rig, target) WHERE state = 'landing';
CREATE INDEX candidates_tip ON candidates (tip);

-- The requests of a candidate in their order: the commit of the request, and the commit that it became.
CREATE TABLE candidate_requests (
    candidate INTEGER NOT NULL REFERENCES candidates (number) ON DELETE CASCADE,
    position  INTEGER NOT NULL,
    bead      TEXT NOT NULL,
    request   INTEGER NOT NULL,
    before    TEXT NOT NULL,
    after     TEXT NOT NULL,
    PRIMARY KEY (candidate, position)
) STRICT, WITHOUT ROWID;

CREATE INDEX candidate_requests_request ON candidate_requests (bead, request);

-- The checks that a candidate has passed, each by the run of the check that says so.
CREATE TABLE candidate_checks (
    candidate INTEGER NOT NULL REFERENCES candidates (number) ON DELETE CASCADE,
    name      TEXT NOT NULL,
    check_run INTEGER NOT NULL,
    cached    INTEGER NOT NULL CHECK (cached IN (0, 1)),
    PRIMARY KEY (candidate, name)
) STRICT, WITHOUT ROWID;

-- The line of a target branch: the process that builds for it, with a lease in seconds of the store's clock, and what stops it.
CREATE TABLE merge_queues (
    rig        TEXT NOT NULL,
    target     TEXT NOT NULL,
    builder    TEXT NOT NULL,
    lease_s    INTEGER NOT NULL,
    paused_at  INTEGER,
    paused_by  TEXT NOT NULL,
    -- The commit of the target on which a check failed, the check, and since when; empty while it is not known to fail.
    red_commit TEXT NOT NULL,
    red_check  TEXT NOT NULL,
    red_since  INTEGER,
    PRIMARY KEY (rig, target)
) STRICT, WITHOUT ROWID;

-- What is kept of a pull request between two looks at it. The row of its merge request has the number and the address.
CREATE TABLE pull_requests (
    bead          TEXT NOT NULL REFERENCES beads (id) ON DELETE CASCADE,
    branch        TEXT NOT NULL,
    -- The row of the last poll as a hash; empty if it is fetched with the next poll in any case.
    fingerprint   TEXT NOT NULL,
    due_at        INTEGER NOT NULL,
    -- The head commit whose failed checks have had a repair; empty if none has.
    repaired_head TEXT NOT NULL,
    waits_for     TEXT NOT NULL,
    PRIMARY KEY (bead, branch)
) STRICT, WITHOUT ROWID;

-- The commits that were the tip of the branch of a pull request, in their order, with the accepted commit that each was built
-- from; empty if others have pushed it. A row of ours is written before the push.
CREATE TABLE pull_request_tips (
    bead      TEXT NOT NULL REFERENCES beads (id) ON DELETE CASCADE,
    branch    TEXT NOT NULL,
    position  INTEGER NOT NULL,
    commit_id TEXT NOT NULL,
    accepted  TEXT NOT NULL,
    PRIMARY KEY (bead, branch, position)
) STRICT, WITHOUT ROWID;

-- What a repair of a pull request is to answer: checks that failed on the service, and texts of people. Each text once.
CREATE TABLE pull_request_repairs (
    bead     TEXT NOT NULL REFERENCES beads (id) ON DELETE CASCADE,
    request  INTEGER NOT NULL,
    position INTEGER NOT NULL,
    kind     TEXT NOT NULL CHECK (kind IN ('check', 'changes_requested', 'review', 'line_comment', 'conversation')),
    -- The identity of a text on the service, or the name of a check.
    name     TEXT NOT NULL,
    author   TEXT NOT NULL,
    body     TEXT NOT NULL,
    file     TEXT NOT NULL,
    line     INTEGER,
    address  TEXT NOT NULL,
    PRIMARY KEY (bead, request, position)
) STRICT, WITHOUT ROWID;

-- The texts on a pull request that start no repair, as the last look found them, with the reason. People read them.
CREATE TABLE pull_request_texts (
    bead         TEXT NOT NULL REFERENCES beads (id) ON DELETE CASCADE,
    branch       TEXT NOT NULL,
    position     INTEGER NOT NULL,
    name         TEXT NOT NULL,
    author       TEXT NOT NULL,
    trust        TEXT NOT NULL,
    body         TEXT NOT NULL,
    file         TEXT NOT NULL,
    line         INTEGER,
    address      TEXT NOT NULL,
    submitted_at INTEGER,
    PRIMARY KEY (bead, branch, position)
) STRICT, WITHOUT ROWID;

-- Decisions and comments of people about a request. An approval is for one commit from one base.
CREATE TABLE reviews (
    number     INTEGER PRIMARY KEY,
    bead       TEXT NOT NULL REFERENCES beads (id) ON DELETE CASCADE,
    request    INTEGER NOT NULL,
    actor      TEXT NOT NULL,
    decision   TEXT NOT NULL CHECK (decision IN ('approved', 'rejected', 'comment')),
    accepted   TEXT NOT NULL,
    base       TEXT NOT NULL,
    file       TEXT NOT NULL,
    line       INTEGER,
    body       TEXT NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;

CREATE INDEX reviews_request ON reviews (bead, request);

-- Each time that a check ran. Only a pass of our runner with the same key makes another run needless.
CREATE TABLE check_runs (
    id          INTEGER PRIMARY KEY,
    rig         TEXT NOT NULL,
    name        TEXT NOT NULL,
    definition  TEXT NOT NULL,
    cache_key   TEXT NOT NULL,
    commit_id   TEXT NOT NULL,
    tree        TEXT NOT NULL,
    purpose     TEXT NOT NULL CHECK (purpose IN ('candidate', 'base', 'request', 'manual')),
    result      TEXT NOT NULL CHECK (result IN ('passed', 'failed', 'error')),
    error       TEXT NOT NULL CHECK ((error = '') = (result <> 'error')),
    exit_code   INTEGER,
    attempt     INTEGER NOT NULL,
    flaky       INTEGER NOT NULL CHECK (flaky IN (0, 1)),
    started_at  INTEGER NOT NULL,
    duration_ms INTEGER NOT NULL,
    host        TEXT NOT NULL,
    log         TEXT NOT NULL
) STRICT;

CREATE INDEX check_runs_passed ON check_runs (rig, name, cache_key) WHERE result = 'passed';
CREATE INDEX check_runs_commit ON check_runs (commit_id);
CREATE INDEX check_runs_flaky ON check_runs (rig, name) WHERE flaky = 1;

INSERT INTO counters (name, value) VALUES ('merge_requests', 0), ('candidates', 0), ('reviews', 0), ('check_runs', 0);

-- Failed beads that others wait for are listed for people.
CREATE INDEX beads_failed ON beads (id) WHERE outcome = 'failed';

-- Work that waits to be merged, or for a review, becomes a request.
INSERT INTO merge_requests (bead, number, epoch, purpose, rig, target, branch, accepted, base, merge, review, state, held, detail, position,
    top, fix, tries, rebuilds, landed, pull_branch, pull_address, created_at, changed_at)
SELECT r.bead, 1, r.epoch, 'work', r.rig, r.base, r.branch, r.accepted_commit, r.base_commit, 'mr',
    CASE WHEN json_extract(c.parameters, '$.review_only') = 1 THEN 1 ELSE 0 END, 'queued', '', '',
    ROW_NUMBER() OVER (ORDER BY r.ended_at, r.bead), 0, 0, 0, 0, '', '', '', r.ended_at, r.ended_at
FROM runs r JOIN contexts c ON c.number = r.context AND c.latest = 1 JOIN beads b ON b.id = r.bead
WHERE r.state = 'done' AND r.accepted_commit NOT IN ('', r.base_commit)
    AND NOT EXISTS (SELECT 1 FROM runs n WHERE n.bead = r.bead AND n.epoch > r.epoch)
    AND ((b.status = 'open' AND json_extract(c.parameters, '$.review_only') = 1)
        OR (b.status = 'in_progress' AND b.assignee = r.agent AND json_extract(c.parameters, '$.merge') = 'mr'
            AND COALESCE(json_extract(c.parameters, '$.no_merge'), 0) = 0));

-- Work that was being pushed for a live run becomes a request that is being pushed: the origin answers whether it arrived. Work
-- that goes to the origin under its own name is pushed again.
INSERT INTO merge_requests (bead, number, epoch, purpose, rig, target, branch, accepted, base, merge, review, state, held, detail, position,
    top, fix, tries, rebuilds, candidate, landed, retry_at, pull_branch, pull_address, created_at, changed_at)
SELECT r.bead, 1, r.epoch, 'work', r.rig, r.base, r.branch, r.accepted_commit, r.base_commit, 'direct', 0,
    CASE WHEN COALESCE(json_extract(c.parameters, '$.no_merge'), 0) = 1 THEN 'held' ELSE 'landing' END,
    CASE WHEN COALESCE(json_extract(c.parameters, '$.no_merge'), 0) = 1 THEN 'unmerged' ELSE '' END, '',
    (SELECT COUNT(*) FROM merge_requests) + ROW_NUMBER() OVER (ORDER BY r.bead), 0, 0, 0, 0,
    CASE WHEN COALESCE(json_extract(c.parameters, '$.no_merge'), 0) = 1 THEN NULL ELSE ROW_NUMBER() OVER (ORDER BY r.bead) END, '',
    CASE WHEN COALESCE(json_extract(c.parameters, '$.no_merge'), 0) = 1 THEN 0 END, '', '', r.created_at, r.created_at
FROM runs r JOIN contexts c ON c.number = r.context
WHERE r.landing = 'intended' AND r.state IN ('running', 'blocked') AND r.ended_by = '' AND r.accepted_commit <> '';
INSERT INTO candidates (number, rig, target, base, tip, tree, state, builder, created_at, changed_at)
SELECT m.candidate, m.rig, m.target, m.base, r.landing_commit, '', 'landing', '', m.created_at, m.changed_at
FROM merge_requests m JOIN runs r ON r.bead = m.bead AND r.epoch = m.epoch WHERE m.state = 'landing';
INSERT INTO candidate_requests (candidate, position, bead, request, before, after)
SELECT m.candidate, 0, m.bead, m.number, m.accepted, c.tip
FROM merge_requests m JOIN candidates c ON c.number = m.candidate;
UPDATE runs SET state = 'done', ended_at = unixepoch() * 1000000000, reason = 'its worker said that it is done', silent_since = NULL
WHERE landing = 'intended' AND state IN ('running', 'blocked') AND ended_by = '' AND accepted_commit <> '';
UPDATE runs SET landing_commit = '' WHERE landing = 'intended';

UPDATE counters SET value = (SELECT COUNT(*) FROM merge_requests) WHERE name = 'merge_requests';
UPDATE counters SET value = (SELECT COUNT(*) FROM candidates) WHERE name = 'candidates';

-- What is scheduled without a strategy lands as it would have.
UPDATE contexts SET parameters = json_set(parameters, '$.merge', 'direct')
WHERE latest = 1 AND json_extract(parameters, '$.merge') IS NULL AND COALESCE(json_extract(parameters, '$.review_only'), 0) = 0
    AND COALESCE(json_extract(parameters, '$.no_merge'), 0) = 0;

DROP INDEX runs_landing;
ALTER TABLE runs DROP COLUMN landing;
ALTER TABLE runs DROP COLUMN origin_delay;
ALTER TABLE runs DROP COLUMN origin_delay_since;

-- What a message of ours tells a person about, if it was found by us; empty for all others.
ALTER TABLE messages ADD COLUMN topic TEXT NOT NULL DEFAULT '' CHECK (topic IN ('', 'foreign-commits', 'repository-changed'));
