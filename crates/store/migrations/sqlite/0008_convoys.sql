-- How the beads stand that a convoy tracks, so that the close of the last one can tell: with ten thousand of them nobody
-- counts again at every close. Only beads that are there count.
CREATE TABLE convoys (
    id TEXT NOT NULL PRIMARY KEY REFERENCES beads (id) ON DELETE CASCADE,
    members INTEGER NOT NULL,
    open_members INTEGER NOT NULL,
    failed_members INTEGER NOT NULL,
    landings INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO convoys (id, members, open_members, failed_members, landings)
SELECT c.id, COUNT(*), SUM(CASE WHEN b.status <> 'closed' THEN 1 ELSE 0 END),
    SUM(CASE WHEN b.status = 'closed' AND b.outcome = 'failed' THEN 1 ELSE 0 END), 0
FROM beads c JOIN dependencies d ON d.issue_id = c.id AND d.type = 'tracks' JOIN beads b ON b.id = d.depends_on_id
WHERE c.issue_type = 'convoy' GROUP BY c.id;
