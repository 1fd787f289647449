-- One accepted commit for one target branch. A bead has at most one that is not over.
CREATE TABLE merge_requests (
    bead         TEXT COLLATE "C" NOT NULL REFERENCES beads (id) ON DELETE CASCADE,
    number       BIGINT NOT NULL,
    -- The run that made the commit; 0 if no run did.
    epoch        BIGINT NOT NULL,
    -- What it brings to its target: the work of a run, the undoing of such work, or the branch of a convoy.
    purpose      TEXT COLLATE "C" NOT NULL CHECK (purpose IN ('work', 'revert', 'integration')),
    rig          TEXT COLLATE "C" NOT NULL,
    target       TEXT COLLATE "C" NOT NULL,
    branch       TEXT COLLATE "C" NOT NULL,
    accepted     TEXT COLLATE "C" NOT NULL,
    -- The commit that the work began from.
    base         TEXT COLLATE "C" NOT NULL,
    merge        TEXT COLLATE "C" NOT NULL CHECK (merge IN ('mr', 'direct', 'pr')),
    review       BIGINT NOT NULL CHECK (review IN (0, 1)),
    state        TEXT COLLATE "C" NOT NULL CHECK (state IN ('queued', 'building', 'checking', 'landing', 'landed', 'review', 'conflict',
        'failed', 'held', 'cancelled', 'superseded')),
    -- Why it is held; empty in every other state.
    held         TEXT COLLATE "C" NOT NULL CHECK ((held = '') = (state <> 'held')),
    -- The words of git, of a check or of the origin about the state.
    detail       TEXT COLLATE "C" NOT NULL,
    -- The place in line.
    position     BIGINT NOT NULL,
    -- It goes before all others; with `fix`, also while the target is red.
    top          BIGINT NOT NULL CHECK (top IN (0, 1)),
    fix          BIGINT NOT NULL CHECK (fix IN (0, 1)),
    -- How often it could not land for a reason of its own, and how often it was built again because the target moved.
    tries        BIGINT NOT NULL,
    rebuilds     BIGINT NOT NULL,
    -- The candidate that it lands with, from the intent on.
    candidate    BIGINT,
    -- The commit of the target that has it.
    landed       TEXT COLLATE "C" NOT NULL,
    -- The run of the check that failed with it.
    check_run    BIGINT,
    -- Not to be tried again before this.
    retry_at     BIGINT,
    pull_branch  TEXT COLLATE "C" NOT NULL,
    pull_number  BIGINT,
    pull_address TEXT COLLATE "C" NOT NULL,
    created_at   BIGINT NOT NULL,
    changed_at   BIGINT NOT NULL,
    PRIMARY KEY (bead, number)
);

CREATE UNIQUE INDEX merge_requests_open ON merge_requests (bead)
    WHERE state NOT IN ('landed', 'cancelled', 'superseded');
CREATE INDEX merge_requests_line ON merge_requests (rig, target, position)
    WHERE state NOT IN ('landed', 'cancelled', 'superseded');
CREATE INDEX merge_requests_position ON merge_requests (position);
CREATE INDEX merge_requests_landed ON merge_requests (landed) WHERE state = 'landed';

-- Commits that were built from requests, and about to be pushed. A row is written before the push, and after it.
CREATE TABLE candidates (
    number     BIGINT PRIMARY KEY,
    rig        TEXT COLLATE "C" NOT NULL,
    target     TEXT COLLATE "C" NOT NULL,
    base       TEXT COLLATE "C" NOT NULL,
    tip        TEXT COLLATE "C" NOT NULL,
    tree       TEXT COLLATE "C" NOT NULL,
    state      TEXT COLLATE "C" NOT NULL CHECK (state IN ('landing', 'landed', 'dropped')),
    builder    TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    changed_at BIGINT NOT NULL
);

CREATE INDEX candidates_landing ON candidates (rig, target) WHERE state = 'landing';
CREATE INDEX candidates_tip ON candidates (tip);

-- The requests of a candidate in their order: the commit of the request, and the commit that it became.
CREATE TABLE candidate_requests (
    candidate BIGINT NOT NULL REFERENCES candidates (number) ON DELETE CASCADE,
    position  BIGINT NOT NULL,
    bead      TEXT COLLATE "C" NOT NULL,
    request   BIGINT NOT NULL,
    before    TEXT COLLATE "C" NOT NULL,
    after     TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (candidate, position)
);

CREATE INDEX candidate_requests_request ON candidate_requests (bead, request);

-- The checks that a candidate has passed, each by the run of the check that says so.
CREATE TABLE candidate_checks (
    candidate BIGINT NOT NULL REFERENCES candidates (number) ON DELETE CASCADE,
    name      TEXT COLLATE "C" NOT NULL,
    check_run BIGINT NOT NULL,
    cached    BIGINT NOT NULL CHECK (cached IN (0, 1)),
    PRIMARY KEY (candidate, name)
);

-- The line of a target branch: the process that builds for it, with a lease in seconds of the store's clock, and what stops it.
CREATE TABLE merge_queues (
    rig        TEXT COLLATE "C" NOT NULL,
    target     TEXT COLLATE "C" NOT NULL,
    builder    TEXT COLLATE "C" NOT NULL,
    lease_s    BIGINT NOT NULL,
    paused_at  BIGINT,
    paused_by  TEXT COLLATE "C" NOT NULL,
    -- The commit of the target on which a check failed, the check, and since when; empty while it is not known to fail.
    red_commit TEXT COLLATE "C" NOT NULL,
    red_check  TEXT COLLATE "C" NOT NULL,
    red_since  BIGINT,
    PRIMARY KEY (rig, target)
);

-- What is kept of a pull request between two looks at it. The row of its merge request has the number and the address.
CREATE TABLE pull_requests (
    bead          TEXT COLLATE "C" NOT NULL REFERENCES beads (id) ON DELETE CASCADE,
    branch        TEXT COLLATE "C" NOT NULL,
    -- The row of the last poll as a hash; empty if it is fetched with the next poll in any case.
    fingerprint   TEXT COLLATE "C" NOT NULL,
    due_at        BIGINT NOT NULL,
    -- The head commit whose failed checks have had a repair; empty if none has.
    repaired_head TEXT COLLATE "C" NOT NULL,
    waits_for     TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (bead, branch)
);

-- The commits that were the tip of the branch of a pull request, in their order, with the accepted commit that each was built
-- from; empty if others have pushed it. A row of ours is written before the push.
CREATE TABLE pull_request_tips (
    bead      TEXT COLLATE "C" NOT NULL REFERENCES beads (id) ON DELETE CASCADE,
    branch    TEXT COLLATE "C" NOT NULL,
    position  BIGINT NOT NULL,
    commit_id TEXT COLLATE "C" NOT NULL,
    accepted  TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (bead, branch, position)
);

-- What a repair of a pull request is to answer: checks that failed on the service, and texts of people. Each text once.
CREATE TABLE pull_request_repairs (
    bead     TEXT COLLATE "C" NOT NULL REFERENCES beads (id) ON DELETE CASCADE,
    request  BIGINT NOT NULL,
    position BIGINT NOT NULL,
    kind     TEXT COLLATE "C" NOT NULL CHECK (kind IN ('check', 'changes_requested', 'review', 'line_comment', 'conversation')),
    -- The identity of a text on the service, or the name of a check.
    name     TEXT COLLATE "C" NOT NULL,
    author   TEXT COLLATE "C" NOT NULL,
    body     TEXT COLLATE "C" NOT NULL,
    file     TEXT COLLATE "C" NOT NULL,
    line     BIGINT,
    address  TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (bead, request, position)
);

-- The texts on a pull request that start no repair, as the last look found them, with the reason. People read them.
CREATE TABLE pull_request_texts (
    bead         TEXT COLLATE "C" NOT NULL REFERENCES beads (id) ON DELETE CASCADE,
    branch       TEXT COLLATE "C" NOT NULL,
    position     BIGINT NOT NULL,
    name         TEXT COLLATE "C" NOT NULL,
    author       TEXT COLLATE "C" NOT NULL,
    trust        TEXT COLLATE "C" NOT NULL,
    body         TEXT COLLATE "C" NOT NULL,
    file         TEXT COLLATE "C" NOT NULL,
    line         BIGINT,
    address      TEXT COLLATE "C" NOT NULL,
    submitted_at BIGINT,
    PRIMARY KEY (bead, branch, position)
);

-- Decisions and comments of people about a request. An approval is for one commit from one base.
CREATE TABLE reviews (
    number     BIGINT PRIMARY KEY,
    bead       TEXT COLLATE "C" NOT NULL REFERENCES beads (id) ON DELETE CASCADE,
    request    BIGINT NOT NULL,
    actor      TEXT COLLATE "C" NOT NULL,
    decision   TEXT COLLATE "C" NOT NULL CHECK (decision IN ('approved', 'rejected', 'comment')),
    accepted   TEXT COLLATE "C" NOT NULL,
    base       TEXT COLLATE "C" NOT NULL,
    file       TEXT COLLATE "C" NOT NULL,
    line       BIGINT,
    body       TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL
);

CREATE INDEX reviews_request ON reviews (bead, request);

-- Each time that a check ran. Only a pass of our runner with the same key makes another run needless.
CREATE TABLE check_runs (
    id          BIGINT PRIMARY KEY,
    rig         TEXT COLLATE "C" NOT NULL,
    name        TEXT COLLATE "C" NOT NULL,
    definition  TEXT COLLATE "C" NOT NULL,
    cache_key   TEXT COLLATE "C" NOT NULL,
    commit_id   TEXT COLLATE "C" NOT NULL,
    tree        TEXT COLLATE "C" NOT NULL,
    purpose     TEXT COLLATE "C" NOT NULL CHECK (purpose IN ('candidate', 'base', 'request', 'manual')),
    result      TEXT COLLATE "C" NOT NULL CHECK (result IN ('passed', 'failed', 'error')),
    error       TEXT COLLATE "C" NOT NULL CHECK ((error = '') = (result <> 'error')),
    exit_code   BIGINT,
    attempt     BIGINT NOT NULL,
    flaky       BIGINT NOT NULL CHECK (flaky IN (0, 1)),
    started_at  BIGINT NOT NULL,
    duration_ms BIGINT NOT NULL,
    host        TEXT COLLATE "C" NOT NULL,
    log         TEXT COLLATE "C" NOT NULL
);

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
    CASE WHEN c.parameters::json ->> 'review_only' = 'true' THEN 1 ELSE 0 END, 'queued', '', '',
    ROW_NUMBER() OVER (ORDER BY r.ended_at, r.bead), 0, 0, 0, 0, '', '', '', r.ended_at, r.ended_at
FROM runs r JOIN contexts c ON c.number = r.context AND c.latest = 1 JOIN beads b ON b.id = r.bead
WHERE r.state = 'done' AND r.accepted_commit NOT IN ('', r.base_commit)
    AND NOT EXISTS (SELECT 1 FROM runs n WHERE n.bead = r.bead AND n.epoch > r.epoch)
    AND ((b.status = 'open' AND c.parameters::json ->> 'review_only' = 'true')
        OR (b.status = 'in_progress' AND b.assignee = r.agent AND c.parameters::json ->> 'merge' = 'mr'
            AND COALESCE(c.parameters::json ->> 'no_merge', 'false') = 'false'));

-- Work that was being pushed for a live run becomes a request that is being pushed: the origin answers whether it arrived. Work
-- that goes to the origin under its own name is pushed again.
INSERT INTO merge_requests (bead, number, epoch, purpose, rig, target, branch, accepted, base, merge, review, state, held, detail, position,
    top, fix, tries, rebuilds, candidate, landed, retry_at, pull_branch, pull_address, created_at, changed_at)
SELECT r.bead, 1, r.epoch, 'work', r.rig, r.base, r.branch, r.accepted_commit, r.base_commit, 'direct', 0,
    CASE WHEN COALESCE(c.parameters::json ->> 'no_merge', 'false') = 'true' THEN 'held' ELSE 'landing' END,
    CASE WHEN COALESCE(c.parameters::json ->> 'no_merge', 'false') = 'true' THEN 'unmerged' ELSE '' END, '',
    (SELECT COUNT(*) FROM merge_requests) + ROW_NUMBER() OVER (ORDER BY r.bead), 0, 0, 0, 0,
    CASE WHEN COALESCE(c.parameters::json ->> 'no_merge', 'false') = 'true' THEN NULL ELSE ROW_NUMBER() OVER (ORDER BY r.bead) END, '',
    CASE WHEN COALESCE(c.parameters::json ->> 'no_merge', 'false') = 'true' THEN 0 END, '', '', r.created_at, r.created_at
FROM runs r JOIN contexts c ON c.number = r.context
WHERE r.landing = 'intended' AND r.state IN ('running', 'blocked') AND r.ended_by = '' AND r.accepted_commit <> '';
INSERT INTO candidates (number, rig, target, base, tip, tree, state, builder, created_at, changed_at)
SELECT m.candidate, m.rig, m.target, m.base, r.landing_commit, '', 'landing', '', m.created_at, m.changed_at
FROM merge_requests m JOIN runs r ON r.bead = m.bead AND r.epoch = m.epoch WHERE m.state = 'landing';
INSERT INTO candidate_requests (candidate, position, bead, request, before, after)
SELECT m.candidate, 0, m.bead, m.number, m.accepted, c.tip
FROM merge_requests m JOIN candidates c ON c.number = m.candidate;
UPDATE runs SET state = 'done', ended_at = (EXTRACT(EPOCH FROM clock_timestamp()) * 1000000000)::BIGINT, reason = 'its worker said that it is done', silent_since = NULL
WHERE landing = 'intended' AND state IN ('running', 'blocked') AND ended_by = '' AND accepted_commit <> '';
UPDATE runs SET landing_commit = '' WHERE landing = 'intended';

UPDATE counters SET value = (SELECT COUNT(*) FROM merge_requests) WHERE name = 'merge_requests';
UPDATE counters SET value = (SELECT COUNT(*) FROM candidates) WHERE name = 'candidates';

-- What is scheduled without a strategy lands as it would have.
UPDATE contexts SET parameters = (parameters::jsonb || '{"merge":"direct"}')::text
WHERE latest = 1 AND (parameters::json ->> 'merge') IS NULL AND COALESCE(parameters::json ->> 'review_only', 'false') = 'false'
    AND COALESCE(parameters::json ->> 'no_merge', 'false') = 'false';

DROP INDEX runs_landing;
ALTER TABLE runs DROP COLUMN landing;
ALTER TABLE runs DROP COLUMN origin_delay;
ALTER TABLE runs DROP COLUMN origin_delay_since;

-- What a message of ours tells a person about, if it was found by us; empty for all others.
ALTER TABLE messages ADD COLUMN topic TEXT COLLATE "C" NOT NULL DEFAULT '' CHECK (topic IN ('', 'foreign-commits', 'repository-changed'));
