-- Where a bead stands for clients of the work queue; nothing if it is a container or machinery. A test keeps this
-- equal to what the core says.
ALTER TABLE beads ADD COLUMN work_status TEXT COLLATE "C" GENERATED ALWAYS AS (
    CASE WHEN ephemeral = 1 OR is_template = 1 OR issue_type IN ('epic', 'convoy', 'molecule', 'gate', 'message',
            'event', 'agent', 'role', 'rig', 'merge-request', 'sling-context') THEN NULL
        WHEN status = 'hooked' THEN 'dispatched'
        WHEN status = 'in_progress' THEN 'in_progress'
        WHEN status = 'blocked' THEN 'blocked'
        WHEN status <> 'closed' THEN 'queued'
        WHEN outcome = 'failed' THEN 'failed'
        WHEN outcome = 'cancelled' THEN 'cancelled'
        ELSE 'completed' END
) STORED;

-- The lists of the work queue: most urgent first, then oldest first, whatever is asked for; and by age.
CREATE INDEX beads_work ON beads (work_status, priority, created_at, id) WHERE work_status IS NOT NULL;
CREATE INDEX beads_work_agent ON beads (assignee, work_status, priority, created_at, id)
    WHERE work_status IS NOT NULL AND assignee <> '';
CREATE INDEX beads_work_rig ON beads (rig, work_status, priority, created_at, id) WHERE work_status IS NOT NULL;
CREATE INDEX beads_work_created ON beads (created_at, id) WHERE work_status IS NOT NULL;
CREATE INDEX beads_work_ended ON beads (work_status, closed_at)
    WHERE work_status IS NOT NULL AND closed_at IS NOT NULL;

-- What agents that ask for work are offered, in the order in which they get it: all of it, and by type.
CREATE INDEX beads_offered ON beads (rig, assignee, priority, created_at, id)
    WHERE work_status = 'queued' AND status = 'open' AND open_blockers = 0;
CREATE INDEX beads_offered_type ON beads (rig, assignee, issue_type, priority, created_at, id)
    WHERE work_status = 'queued' AND status = 'open' AND open_blockers = 0;

-- How long the agent of a run has what it asked for without another word, and until when that is now.
ALTER TABLE runs ADD COLUMN lease_s BIGINT;
ALTER TABLE runs ADD COLUMN lease_expires_at BIGINT;

CREATE INDEX runs_lease ON runs (lease_expires_at) WHERE state = 'running' AND lease_expires_at IS NOT NULL;
-- What was given to an agent that has not picked it up yet.
CREATE INDEX runs_given ON runs (agent) WHERE executor = 'pull' AND state = 'starting';

-- What a request asked for, so that another one of the same name is noticed.
ALTER TABLE requests ADD COLUMN fingerprint TEXT COLLATE "C" NOT NULL DEFAULT '';

-- Who may speak to the server. Of the secret only the SHA-256 is here; the id is the head of that.
CREATE TABLE tokens (
    id         TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    name       TEXT COLLATE "C" NOT NULL,
    hash       BYTEA NOT NULL,
    scopes     TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    created_by TEXT COLLATE "C" NOT NULL,
    expires_at BIGINT,
    revoked_at BIGINT
);
